//! What is asked of kubectl, and what it must say. Every line holds for a kube-apiserver 1.36 too.

use std::ops::RangeInclusive;

use super::{Kubectl, stories};

/// One line of the report.
pub(super) struct Check {
    pub(super) name: &'static str,
    pub(super) what: Do,
    /// The minor versions of kubectl for which it holds.
    pub(super) minors: RangeInclusive<u32>,
    /// Nothing of it is true without garbage collection.
    pub(super) needs_controllers: bool,
}

/// What a check does.
pub(super) enum Do {
    /// A command, what it reads, and which lines it prints (see `patterns`).
    Command {
        line: &'static str,
        input: &'static str,
        says: &'static [&'static str],
        fails: bool,
    },
    Story(fn(&Kubectl) -> Result<(), String>),
}

const ANY: RangeInclusive<u32> = 0..=u32::MAX;

const fn does(name: &'static str, line: &'static str, says: &'static [&'static str]) -> Check {
    let what = Do::Command { line, input: "", says, fails: false };
    Check { name, what, minors: ANY, needs_controllers: false }
}

const fn fails(name: &'static str, line: &'static str, says: &'static [&'static str]) -> Check {
    let what = Do::Command { line, input: "", says, fails: true };
    Check { name, what, minors: ANY, needs_controllers: false }
}

const fn story(name: &'static str, story: fn(&Kubectl) -> Result<(), String>) -> Check {
    Check { name, what: Do::Story(story), minors: ANY, needs_controllers: false }
}

impl Check {
    const fn reads(self, text: &'static str) -> Self {
        let what = match self.what {
            Do::Command { line, says, fails, .. } => Do::Command { line, input: text, says, fails },
            Do::Story(story) => Do::Story(story),
        };
        Self { name: self.name, what, minors: self.minors, needs_controllers: self.needs_controllers }
    }

    const fn since(self, minor: u32) -> Self {
        Self { name: self.name, what: self.what, minors: minor..=u32::MAX, needs_controllers: self.needs_controllers }
    }

    const fn until(self, minor: u32) -> Self {
        Self { name: self.name, what: self.what, minors: 0..=minor, needs_controllers: self.needs_controllers }
    }

    const fn with_controllers(self) -> Self {
        Self { name: self.name, what: self.what, minors: self.minors, needs_controllers: true }
    }
}

const MORE_REPLICAS: &str =
    r#"{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":"side"},"spec":{"replicas":5}}"#;

/// In this order: later ones need what earlier ones made.
pub(super) const CHECKS: &[Check] = &[
    does("version", "version", &["... Version: ..."]),
    does(
        "api-resources",
        "api-resources",
        &[
            "NAME SHORTNAMES APIVERSION NAMESPACED KIND",
            "configmaps cm v1 true ConfigMap",
            "deployments deploy apps/v1 true Deployment",
        ],
    ),
    does(
        "api-resources -o wide",
        "api-resources -o wide --api-group=apps",
        &["deployments deploy apps/v1 true Deployment ..."],
    ),
    does(
        "api-resources --verbs",
        "api-resources --verbs=list,watch --namespaced=false -o name",
        &["namespaces", "nodes"],
    ),
    does("api-versions", "api-versions", &["apps/v1", "v1"]),
    does("get --raw", "get --raw /healthz", &["ok"]),
    does("explain", "explain deployment.spec.replicas", &["... replicas <integer>", "... Number of desired pods. ..."]),
    does("explain --recursive", "explain pods --recursive", &["containers <[]* ...", "imagePullPolicy <string> ..."]),
    does("auth can-i", "auth can-i create deployments.apps", &["yes"]),
    does("auth can-i --list", "auth can-i --list", &["Resources Non-Resource URLs Resource Names Verbs"]),
    does("auth whoami", "auth whoami", &["ATTRIBUTE VALUE", "Username ..."]).since(28),
    //
    does("create namespace", "create namespace {ns}", &["namespace/{ns} created"]),
    fails(
        "create namespace again",
        "create namespace {ns}",
        &[r#"... (AlreadyExists): namespaces "{ns}" already exists"#],
    ),
    does("create -f", "create -f web.yaml", &["deployment.apps/web created"]),
    does("create --dry-run=server", "create -f pod.yaml --dry-run=server", &["pod/alone created (server dry run)"]),
    does("create -f of a pod", "create -f pod.yaml", &["pod/alone created"]),
    does("create configmap", "create configmap settings --from-literal=mode=before", &["configmap/settings created"]),
    does("create deployment", "create deployment made --image=example.com/main:1", &["deployment.apps/made created"]),
    does("create service", "create service clusterip made --tcp=80:8080", &["service/made created"]),
    does("create secret", "create secret generic made --from-literal=word=open", &["secret/made created"]),
    does("create serviceaccount", "create serviceaccount made", &["serviceaccount/made created"]),
    does("create job", "create job made --image=example.com/main:1", &["job.batch/made created"]),
    does(
        "create role",
        "create role made --verb=get --resource=pods",
        &["role.rbac.authorization.k8s.io/made created"],
    ),
    does("run", "run quick --image=example.com/main:1", &["pod/quick created"]),
    does("expose", "expose deployment web --port=80", &["service/web exposed"]),
    does(
        "autoscale",
        "autoscale deployment web --min=1 --max=3",
        &["horizontalpodautoscaler.autoscaling/web autoscaled"],
    ),
    //
    does("get", "get deployments", &["NAME READY UP-TO-DATE AVAILABLE AGE", "made 0/1 0 0 *", "web 0/2 0 0 *"]),
    does(
        "get -o wide",
        "get deployment web -o wide",
        &[
            "NAME READY UP-TO-DATE AVAILABLE AGE CONTAINERS IMAGES SELECTOR",
            "web 0/2 0 0 * main example.com/main:1 app=web",
        ],
    ),
    does(
        "get -o json",
        "get deployment web -o json",
        &[r#""apiVersion": "apps/v1","#, r#""kind": "Deployment","#, r#""replicas": 2,"#],
    ),
    does(
        "get -o yaml",
        "get deployments -o yaml",
        &["items:", "kind: Deployment", "imagePullPolicy: IfNotPresent", "kind: List"],
    ),
    does("get -o name", "get deployments,pods -o name", &["deployment.apps/web", "pod/alone"]),
    does(
        "get -o jsonpath",
        "get deployment web -o jsonpath={.spec.template.spec.containers[0].ports}",
        &[r#"[{"containerPort":80,"protocol":"TCP"}]"#],
    ),
    does(
        "get -o custom-columns",
        "get pod alone -o custom-columns=POD:.metadata.name,POLICY:.spec.restartPolicy",
        &["POD POLICY", "alone Always"],
    ),
    does(
        "get --show-labels",
        "get pods --show-labels",
        &["NAME READY STATUS RESTARTS AGE LABELS", "alone 0/1 Pending 0 * app=alone"],
    ),
    does("get -l", "get pods -l app=alone --no-headers", &["alone 0/1 Pending 0 *"]),
    does("get -l of none", "get pods -l app=none", &["No resources found in {ns} namespace."]),
    does(
        "get --field-selector",
        "get pods --field-selector=status.phase=Pending,metadata.name!=alone -o name",
        &["pod/quick"],
    ),
    does("get --sort-by", "get pods --sort-by=.metadata.name", &["alone ...", "quick ..."]),
    does("get --chunk-size", "get pods --chunk-size=1", &["alone ...", "quick ..."]),
    does("get -A", "get configmaps -A", &["NAMESPACE NAME DATA AGE", "{ns} settings 1 *"]),
    does("get all", "get all", &["pod/alone ...", "service/web ...", "deployment.apps/web ..."]),
    does("get of a file", "get -f shop.yaml --ignore-not-found", &[]),
    fails("get of an absent pod", "get pod absent", &[r#"Error from server (NotFound): pods "absent" not found"#]),
    fails(
        "get of an absent kind",
        "get submarines",
        &[r#"error: the server doesn't have a resource type "submarines""#],
    ),
    story("get -w", stories::watch),
    story("get -w of one object", stories::watch_one),
    does(
        "describe deployment",
        "describe deployment web",
        &["Name: web", "Replicas: 2 desired | ...", "Image: example.com/main:1"],
    ),
    does(
        "describe pod",
        "describe pod alone",
        &["Name: alone", "Status: Pending", "Image: example.com/main:1", "Events: <none>"],
    ),
    does("describe configmap", "describe configmap settings", &["Name: settings", "mode:", "before"]),
    does("describe service", "describe service web", &["Name: web", "Selector: app=web", "Port: <unset> 80/TCP"]),
    does("describe namespace", "describe namespace {ns}", &["Name: {ns}", "Status: Active"]),
    fails(
        "describe of an absent pod",
        "describe pod absent",
        &[r#"Error from server (NotFound): pods "absent" not found"#],
    ),
    //
    does("label", "label deployment web tier=front", &["deployment.apps/web labeled"]),
    fails(
        "label again",
        "label deployment web tier=back",
        &["error: 'tier' already has a value (front), and --overwrite is false"],
    ),
    does("label --overwrite", "label deployment web tier=back --overwrite", &["deployment.apps/web labeled"]),
    does("label of all", "label pods --all seen=yes", &["pod/alone labeled", "pod/quick labeled"]),
    does("label that goes", "label deployment web tier-", &["deployment.apps/web ..."]),
    does("annotate", "annotate pod alone 'note=two words'", &["pod/alone annotated"]),
    does("edit", "edit configmap settings", &["configmap/settings edited"]),
    does("edited", "get configmap settings -o jsonpath={.data.mode}", &["after"]),
    does("set image", "set image deployment/web main=example.com/main:2", &["deployment.apps/web image updated"]),
    does("set env", "set env deployment/web LEVEL=debug", &["deployment.apps/web env updated"]),
    does(
        "set resources",
        "set resources deployment web --limits=cpu=200m,memory=512Mi",
        &["deployment.apps/web resource requirements updated"],
    ),
    does(
        "set in all",
        "get deployment web -o jsonpath={.spec.template.spec.containers[0]}",
        &[r#"*"image":"example.com/main:2"*"#],
    ),
    does("replace", "replace -f -", &["configmap/settings replaced"])
        .reads(r#"{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"settings"},"data":{"mode":"replaced"}}"#),
    fails("replace of an absent object", "replace -f -", &["... (NotFound): ..."])
        .reads(r#"{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"absent"}}"#),
    //
    does("apply", "apply -f shop.yaml", &["service/shop created", "deployment.apps/shop created"]),
    does("apply again", "apply -f shop.yaml", &["service/shop unchanged", "deployment.apps/shop unchanged"]),
    does(
        "apply --dry-run=server",
        "apply -f shop-changed.yaml --dry-run=server",
        &["service/shop configured (server dry run)", "deployment.apps/shop configured (server dry run)"],
    ),
    fails("diff", "diff -f shop-changed.yaml", &["... example.com/shop:1", "... example.com/shop:2"]),
    does(
        "apply of a change",
        "apply -f shop-changed.yaml",
        &["service/shop configured", "deployment.apps/shop configured"],
    ),
    does("applied ports", "get service shop -o jsonpath={.spec.ports[*].port}", &["80 9090"]),
    does(
        "applied containers",
        "get deployment shop -o jsonpath={.spec.template.spec.containers[*].image}",
        &["example.com/shop:2 example.com/side:1"],
    ),
    does("applied env", "get deployment shop -o jsonpath={.spec.template.spec.containers[0].env[*].name}", &["KEEP"]),
    does(
        "apply view-last-applied",
        "apply view-last-applied deployment/shop",
        &["kind: Deployment", "... image: example.com/shop:2"],
    ),
    does(
        "apply set-last-applied",
        "apply set-last-applied -f shop.yaml",
        &["service/shop configured", "deployment.apps/shop configured"],
    ),
    fails("apply of an unknown field", "apply -f -", &["... unknown field ..."])
        .reads(r#"{"apiVersion":"v1","kind":"Service","metadata":{"name":"odd"},"spec":{"port":[]}}"#),
    fails("apply of an invalid object", "apply -f -", &[r#"The Service "odd" is invalid: ..."#])
        .reads(r#"{"apiVersion":"v1","kind":"Service","metadata":{"name":"odd"},"spec":{"ports":[{"port":0}]}}"#),
    does("apply --server-side", "apply --server-side -f side.yaml", &["deployment.apps/side serverside-applied"]),
    does("apply --server-side again", "apply --server-side -f side.yaml", &["deployment.apps/side serverside-applied"]),
    fails(
        "apply --server-side with a conflict",
        "apply --server-side --field-manager=other --validate=false -f -",
        &[r#"error: Apply failed with 1 conflict: conflict with "kubectl": .spec.replicas"#],
    )
    .reads(MORE_REPLICAS),
    does(
        "apply --force-conflicts",
        "apply --server-side --field-manager=other --force-conflicts --validate=false -f -",
        &["deployment.apps/side serverside-applied"],
    )
    .reads(MORE_REPLICAS),
    does("managers", "get deployment side -o jsonpath={.metadata.managedFields[*].manager}", &["kubectl other"])
        .until(20),
    does(
        "managers",
        "get deployment side --show-managed-fields -o jsonpath={.metadata.managedFields[*].manager}",
        &["kubectl other"],
    )
    .since(21),
    does(
        "apply --server-side after apply",
        "apply --server-side --force-conflicts -f shop.yaml",
        &["service/shop serverside-applied", "deployment.apps/shop serverside-applied"],
    ),
    //
    does(
        "patch",
        r#"patch deployment web -p '{"spec":{"template":{"spec":{"containers":[{"name":"side","image":"s"}]}}}}'"#,
        &["deployment.apps/web patched"],
    ),
    does("patched", "get deployment web -o jsonpath={.spec.template.spec.containers[*].name}", &["side main"]),
    does("patch of nothing", "patch deployment web -p '{}'", &["deployment.apps/web patched (no change)"]),
    does(
        "patch --type=merge",
        r#"patch deployment web --type=merge -p '{"metadata":{"labels":{"by":"merge"}}}'"#,
        &["deployment.apps/web patched"],
    ),
    does(
        "patch --type=json",
        r#"patch deployment web --type=json -p '[{"op":"remove","path":"/spec/template/spec/containers/0"}]'"#,
        &["deployment.apps/web patched"],
    ),
    does("patched by json", "get deployment web -o jsonpath={.spec.template.spec.containers[*].name}", &["main"]),
    fails(
        "patch with a failing test",
        r#"patch deployment web --type=json -p '[{"op":"test","path":"/spec/replicas","value":77}]'"#,
        &["The request is invalid* ..."],
    ),
    does(
        "patch --subresource",
        r#"patch deployment web --subresource=status --type=merge -p '{"status":{"replicas":2}}'"#,
        &["deployment.apps/web patched"],
    )
    .since(24),
    //
    does("scale", "scale deployment web --replicas=3", &["deployment.apps/web scaled"]),
    does("scaled", "get deployment web -o jsonpath={.spec.replicas}", &["3"]),
    fails(
        "scale with another number before",
        "scale deployment web --current-replicas=7 --replicas=1",
        &["error: Expected replicas to be 7, was 3"],
    ),
    story("rollout history", stories::rollout_history),
    does(
        "rollout history of one",
        "rollout history deployment/web --revision=1",
        &["... revision #1", "Image: example.com/main:1"],
    ),
    does("rollout undo", "rollout undo deployment/web --to-revision=1", &["deployment.apps/web rolled back"]),
    does(
        "rolled back",
        "get deployment web -o jsonpath={.spec.template.spec.containers[0].image}",
        &["example.com/main:1"],
    ),
    does("rollout restart", "rollout restart deployment/web", &["deployment.apps/web restarted"]),
    does("rollout pause", "rollout pause deployment/web", &["deployment.apps/web paused"]),
    does("rollout resume", "rollout resume deployment/web", &["deployment.apps/web resumed"]),
    story("rollout status", stories::rollout_status),
    //
    does("create -f of a node", "create -f -", &["node/{ns} created"])
        .reads(r#"{"apiVersion":"v1","kind":"Node","metadata":{"name":"{ns}"}}"#),
    does("cordon", "cordon {ns}", &["node/{ns} cordoned"]),
    does("taint", "taint node {ns} wet=yes:NoSchedule", &["node/{ns} tainted"]),
    does("uncordon", "uncordon {ns}", &["node/{ns} uncordoned"]),
    does("describe node", "describe node {ns}", &["Name: {ns}", "... wet=yes:NoSchedule", "Unschedulable: false"]),
    does("delete node", "delete node {ns}", &[r#"node "{ns}" deleted ..."#]),
    //
    story("wait --for=condition", stories::wait_for_condition),
    story("wait --for=delete", stories::wait_for_deletion),
    does(
        "wait --for=jsonpath",
        "wait --for=jsonpath={.spec.replicas}=3 deployment/web --timeout=10s",
        &["deployment.apps/web condition met"],
    )
    .since(23),
    fails(
        "wait in vain",
        "wait --for=condition=Sunk pod/alone --timeout=1s",
        &["error: timed out waiting for the condition on pods/alone"],
    ),
    //
    does(
        "apply of a definition",
        "apply -f crd.yaml",
        &["customresourcedefinition.apiextensions.k8s.io/sails.kubectl.example.com created"],
    ),
    does(
        "wait for a definition",
        "wait --for=condition=Established crd/sails.kubectl.example.com --timeout=20s",
        &["customresourcedefinition.apiextensions.k8s.io/sails.kubectl.example.com condition met"],
    ),
    story("apply of a custom object", stories::apply_custom),
    does("apply of a custom object again", "apply -f sail.yaml", &["sail.kubectl.example.com/main unchanged"]),
    does("get of custom objects", "get sails", &["NAME AREA", "main 40"]),
    does("get -o wide of custom objects", "get sl -o wide", &["NAME AREA CLOTH", "main 40 canvas"]),
    does("get of a category", "get rigging -o name", &["sail.kubectl.example.com/main"]),
    does(
        "apply of a change of a custom object",
        "apply -f sail-changed.yaml",
        &["sail.kubectl.example.com/main configured"],
    ),
    fails(
        "apply of an invalid custom object",
        "apply -f sail-wrong.yaml",
        &[r#"... "wrong" is invalid: spec.cloth: Unsupported value: "paper": supported values: "canvas", "nylon""#],
    ),
    does(
        "patch of a custom object",
        r#"patch sail main --type=merge -p '{"spec":{"area":60}}'"#,
        &["sail.kubectl.example.com/main patched"],
    ),
    does("label of a custom object", "label sail main wet=yes", &["sail.kubectl.example.com/main labeled"]),
    does("scale of a custom object", "scale sail main --replicas=1", &["sail.kubectl.example.com/main scaled"]),
    does("scaled custom object", "get sail main -o jsonpath={.spec}", &[r#"{"area":60,"cloth":"nylon","reefs":1}"#]),
    does(
        "describe of a custom object",
        "describe sail main",
        &["Name: main", "Labels: wet=yes", "Kind: Sail", "Area: 60"],
    ),
    does(
        "explain of a custom kind",
        "explain sail.spec",
        &["... How the sail is made.", "area <integer> -required-", "... In square metres."],
    ),
    does(
        "apply --server-side of a custom object",
        "apply --server-side --force-conflicts -f sail.yaml",
        &["sail.kubectl.example.com/main serverside-applied"],
    ),
    does(
        "delete of a definition",
        "delete crd sails.kubectl.example.com",
        &[r#"customresourcedefinition.apiextensions.k8s.io "sails.kubectl.example.com" deleted"#],
    ),
    fails("get of a kind that is gone", "get sails.v1.kubectl.example.com", &[]),
    //
    story("delete --cascade=background", stories::delete_background).with_controllers(),
    story("delete --cascade=foreground", stories::delete_foreground).with_controllers(),
    story("delete --cascade=orphan", stories::delete_orphan).with_controllers(),
    does("delete --dry-run=server", "delete pod alone --dry-run=server", &[r#"pod "alone" deleted ..."#]),
    does("delete", "delete pod alone", &[r#"pod "alone" deleted ..."#]),
    fails(
        "delete of an absent object",
        "delete pod alone",
        &[r#"Error from server (NotFound): pods "alone" not found"#],
    ),
    does("delete --force", "delete pod quick --force --grace-period=0", &[r#"pod "quick" force deleted ..."#]),
    does("delete -f", "delete -f shop.yaml", &[r#"service "shop" ..."#, r#"deployment.apps "shop" deleted ..."#]),
    does("delete -l", "delete deployments -l app=web", &[r#"deployment.apps "web" deleted ..."#]),
    does("delete --all", "delete configmaps --all", &[r#"configmap "settings" deleted ..."#]),
    does("delete namespace", "delete namespace {ns} --timeout=30s", &[r#"namespace "{ns}" deleted"#])
        .with_controllers(),
    fails(
        "get of a deleted namespace",
        "get namespace {ns}",
        &[r#"Error from server (NotFound): namespaces "{ns}" not found"#],
    )
    .with_controllers(),
];
