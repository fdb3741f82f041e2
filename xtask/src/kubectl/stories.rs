//! What takes more than one command.

use std::io::Read as _;
use std::process::Child;
use std::sync::mpsc;
use std::thread::{self, sleep};
use std::time::{Duration, Instant};

use super::{Kubectl, Said, patterns};

type Outcome = Result<(), String>;

/// How long anything may take that must happen.
const PATIENCE: Duration = Duration::from_secs(20);

/// `get -w` shows what is there, and then what happens.
pub(super) fn watch(kubectl: &Kubectl) -> Outcome {
    let mut watch = Running::start(kubectl, "get configmaps -w -l watched")?;
    // There is nothing to see at first, so the table's head comes with the first object.
    sleep(Duration::from_millis(700));
    kubectl.does("create -f -", &configmap("seen", "labels: {watched: 'yes'}", "{a: '1'}"))?;
    watch.wait_for(&["NAME DATA AGE", "seen 1 *"])?;
    kubectl.does("patch configmap seen --type=merge -p '{\"data\":{\"b\":\"2\"}}'", "")?;
    watch.wait_for(&["seen 1 *", "seen 2 *"])?;
    kubectl.does("delete configmap seen", "")?;
    watch.wait_for(&["seen 1 *", "seen 2 *", "seen 2 *"])
}

pub(super) fn watch_one(kubectl: &Kubectl) -> Outcome {
    let mut watch = Running::start(kubectl, "get pod alone -w --output-watch-events")?;
    watch.wait_for(&["EVENT NAME READY STATUS RESTARTS AGE", "ADDED alone 0/1 Pending 0 *"])?;
    kubectl.does("label pod alone watched=yes", "")?;
    watch.wait_for(&["ADDED alone ...", "MODIFIED alone 0/1 Pending 0 *"])
}

/// Revisions are replica sets, which a controller would make.
pub(super) fn rollout_history(kubectl: &Kubectl) -> Outcome {
    let uid = kubectl.uid("deployment", "web")?;
    for revision in ["1", "2"] {
        kubectl.does("create -f -", &replica_set(revision, &uid))?;
    }
    let said = kubectl.said("rollout history deployment/web", "")?;
    said.expect(true, &lines(&["deployment.apps/web", "REVISION CHANGE-CAUSE", "1 first try", "2 <none>"]))
}

/// The deployment's status is written as its controller writes it.
pub(super) fn rollout_status(kubectl: &Kubectl) -> Outcome {
    let mut rollout = Running::start(kubectl, "rollout status deployment/web --timeout=20s")?;
    rollout.wait_for(&["Waiting for deployment ..."])?;
    kubectl.put_status(
        r#"{"observedGeneration":99,"replicas":3,"updatedReplicas":3,"readyReplicas":3,"availableReplicas":3}"#,
    )?;
    rollout.ends(&["deployment \"web\" successfully rolled out"])
}

pub(super) fn wait_for_condition(kubectl: &Kubectl) -> Outcome {
    let mut wait = Running::start(kubectl, "wait --for=condition=Available deployment/web --timeout=20s")?;
    sleep(Duration::from_millis(700));
    kubectl.put_status(r#"{"observedGeneration":99,"conditions":[{"type":"Available","status":"True"}]}"#)?;
    wait.ends(&["deployment.apps/web condition met"])
}

pub(super) fn wait_for_deletion(kubectl: &Kubectl) -> Outcome {
    kubectl.does("create -f -", &configmap("leaving", "", "{}"))?;
    let mut wait = Running::start(kubectl, "wait --for=delete configmap/leaving --timeout=20s")?;
    sleep(Duration::from_millis(700));
    kubectl.does("delete configmap leaving", "")?;
    wait.ends(&["configmap/leaving condition met"])
}

/// A definition is established a moment before its kind is served.
pub(super) fn apply_custom(kubectl: &Kubectl) -> Outcome {
    let began = Instant::now();
    loop {
        let said = kubectl.said("apply -f sail.yaml", "")?;
        let result = said.expect(true, &lines(&["sail.kubectl.example.com/main created"]));
        if result.is_ok() || began.elapsed() > PATIENCE / 4 {
            return result;
        }
    }
}

pub(super) fn delete_background(kubectl: &Kubectl) -> Outcome {
    family(kubectl)?;
    kubectl.does("delete configmap owner --cascade=background", "")?;
    gone(kubectl, "child")
}

pub(super) fn delete_foreground(kubectl: &Kubectl) -> Outcome {
    family(kubectl)?;
    kubectl.does("delete configmap owner --cascade=foreground", "")?;
    // It waited for the owner, and the owner waited for the child.
    match kubectl.said("get configmap child", "")? {
        Said { success: false, .. } => Ok(()),
        Said { .. } => Err("the child is still there".to_owned()),
    }
}

pub(super) fn delete_orphan(kubectl: &Kubectl) -> Outcome {
    family(kubectl)?;
    kubectl.does("delete configmap owner --cascade=orphan", "")?;
    let owners = kubectl.said("get configmap child -o jsonpath={.metadata.ownerReferences}", "")?;
    owners.expect(true, &[])?;
    if !owners.stdout.is_empty() {
        return Err(format!("the child still has an owner: {}", owners.stdout));
    }
    kubectl.does("delete configmap child", "")
}

/// An owner and its child.
fn family(kubectl: &Kubectl) -> Outcome {
    kubectl.does("create -f -", &configmap("owner", "", "{}"))?;
    let uid = kubectl.uid("configmap", "owner")?;
    let reference = format!(
        "ownerReferences: [{{apiVersion: v1, kind: ConfigMap, name: owner, uid: {uid}, blockOwnerDeletion: true}}]"
    );
    kubectl.does("create -f -", &configmap("child", &reference, "{}"))
}

fn gone(kubectl: &Kubectl, name: &str) -> Outcome {
    let began = Instant::now();
    while kubectl.said(&format!("get configmap {name}"), "")?.success {
        if began.elapsed() > PATIENCE {
            return Err(format!("{name} is still there after {PATIENCE:?}"));
        }
        sleep(Duration::from_millis(100));
    }
    Ok(())
}

fn configmap(name: &str, metadata: &str, data: &str) -> String {
    format!("apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: {name}, {metadata}}}\ndata: {data}\n")
}

fn replica_set(revision: &str, uid: &str) -> String {
    let cause = if revision == "1" { ", kubernetes.io/change-cause: first try" } else { "" };
    format!(
        "apiVersion: apps/v1
kind: ReplicaSet
metadata:
  name: web-{revision}
  labels: {{app: web}}
  annotations: {{deployment.kubernetes.io/revision: '{revision}'{cause}}}
  ownerReferences: [{{apiVersion: apps/v1, kind: Deployment, name: web, uid: {uid}, controller: true}}]
spec:
  replicas: 0
  selector: {{matchLabels: {{app: web, pod-template-hash: h{revision}}}}}
  template:
    metadata: {{labels: {{app: web, pod-template-hash: h{revision}}}}}
    spec: {{containers: [{{name: main, image: 'example.com/main:{revision}'}}]}}
"
    )
}

fn lines(texts: &[&str]) -> Vec<String> {
    texts.iter().map(|&text| text.to_owned()).collect()
}

impl Kubectl<'_> {
    /// A command of which nothing is wanted but that it works.
    fn does(&self, line: &str, input: &str) -> Outcome {
        self.said(line, input)?.expect(true, &[]).map_err(|problem| format!("{line}: {problem}"))
    }

    fn uid(&self, kind: &str, name: &str) -> Result<String, String> {
        let said = self.said(&format!("get {kind} {name} -o jsonpath={{.metadata.uid}}"), "")?;
        said.expect(true, &[])?;
        Ok(said.stdout)
    }

    /// Old ones can write a status in no other way than with the object as it is read from the server.
    fn put_status(&self, status: &str) -> Outcome {
        let path = "/apis/apps/v1/namespaces/{ns}/deployments/web";
        let whole = self.said(&format!("get --raw {path}"), "")?;
        whole.expect(true, &[])?;
        let (before, _) = whole.stdout.rsplit_once("\"status\":").ok_or("the deployment has no status")?;
        self.does(&format!("replace --raw {path}/status -f -"), &format!("{before}\"status\":{status}}}"))
    }
}

/// A command that runs beside others.
struct Running {
    child: Child,
    output: mpsc::Receiver<String>,
    text: String,
}

impl Running {
    fn start(kubectl: &Kubectl, line: &str) -> Result<Self, String> {
        let mut child = kubectl.command(line).spawn().map_err(|error| format!("kubectl cannot be run: {error}"))?;
        let (sender, output) = mpsc::channel();
        let streams: [Option<Box<dyn std::io::Read + Send>>; 2] = [
            child.stdout.take().map(|stream| Box::new(stream) as _),
            child.stderr.take().map(|stream| Box::new(stream) as _),
        ];
        for mut stream in streams.into_iter().flatten() {
            let sender = sender.clone();
            // It ends with the process.
            thread::spawn(move || {
                let mut bytes = [0; 4096];
                while let Ok(length @ 1..) = stream.read(&mut bytes) {
                    let text = String::from_utf8_lossy(&bytes[..length]).into_owned();
                    if sender.send(text).is_err() {
                        break;
                    }
                }
            });
        }
        Ok(Self { child, output, text: String::new() })
    }

    /// Waits until these lines came, with any between them.
    fn wait_for(&mut self, wanted: &[&str]) -> Outcome {
        let began = Instant::now();
        let wanted = lines(wanted);
        while let Some(line) = patterns::missing(&self.text, &wanted) {
            let left = PATIENCE.saturating_sub(began.elapsed());
            match self.output.recv_timeout(left) {
                Ok(text) => self.text.push_str(&text),
                Err(_) => return Err(format!("the line {line:?} did not come; it printed:\n{}", self.text)),
            }
        }
        Ok(())
    }

    /// Waits until these lines came, and wants that it ends well then.
    fn ends(&mut self, wanted: &[&str]) -> Outcome {
        self.wait_for(wanted)?;
        match self.child.wait() {
            Ok(status) if status.success() => Ok(()),
            Ok(status) => Err(format!("it ended with {status}, and printed:\n{}", self.text)),
            Err(error) => Err(error.to_string()),
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
