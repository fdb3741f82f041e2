//! A server in memory on a port, and the program beside it, as a process.

#![allow(dead_code, reason = "each test file uses its part of it")]

use std::io::{BufRead as _, BufReader, Read};
use std::path::PathBuf;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tempfile::TempDir;
use watchkeeper_apiserver::{ApiServer, ListenOptions, Listening, Namespaces};

/// Long enough for a slow and busy machine.
pub(crate) const DEADLINE: Duration = Duration::from_secs(60);

/// A server on a port, and its kubeconfig.
pub(crate) struct Cluster {
    pub server: ApiServer,
    pub listening: Listening,
    folder: TempDir,
}

impl Cluster {
    pub(crate) async fn start() -> Self {
        Self::with(ApiServer::builder().namespaces(Namespaces::OnDemand).build()).await
    }

    pub(crate) async fn with(server: ApiServer) -> Self {
        let listening = server.listen(ListenOptions::with_tls()).await.expect("a port is free");
        let folder = tempfile::tempdir().expect("a folder can be made");
        let cluster = Self { server, listening, folder };
        cluster.listening.write_kubeconfig(cluster.kubeconfig()).expect("it can be written");
        cluster
    }

    pub(crate) fn kubeconfig(&self) -> PathBuf {
        self.folder.path().join("kubeconfig")
    }

    /// The program, for this cluster.
    pub(crate) fn program(&self, arguments: &[&str]) -> Command {
        let mut command = program(arguments);
        command.env("KUBECONFIG", self.kubeconfig());
        command
    }

    pub(crate) fn config_map(&self, name: &str, value: &str) {
        self.put(json!({
            "apiVersion": "v1", "kind": "ConfigMap",
            "metadata": {"name": name, "namespace": "default"}, "data": {"value": value},
        }));
    }

    pub(crate) fn pod(&self, namespace: &str, name: &str, phase: &str) {
        self.put(json!({
            "apiVersion": "v1", "kind": "Pod",
            "metadata": {"name": name, "namespace": namespace, "labels": {"app": "web"}},
            "spec": {"nodeName": "node-1", "containers": [{"name": "main", "image": "example/image"}]},
            "status": {
                "phase": phase,
                "conditions": [{"type": "Ready", "status": if phase == "Running" { "True" } else { "False" }}],
            },
        }));
    }

    pub(crate) fn put(&self, object: Value) {
        self.server.put(object).expect("it is a good object");
    }

    pub(crate) fn remove(&self, group: &str, plural: &str, key: &str) {
        let kind = self.server.kind(group, plural).expect("there is such a kind");
        self.server.remove(&kind, key).expect("it was there");
    }
}

/// The program, without any cluster.
pub(crate) fn program(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_watchkeeper"));
    let gone = ["KUBECONFIG", "RUST_LOG", "NO_COLOR", "CLICOLOR_FORCE", "KUBERNETES_SERVICE_HOST", "COLUMNS"];
    for variable in gone {
        command.env_remove(variable);
    }
    command.args(arguments).env("TZ", "UTC").env("HOME", "/nonexistent").stdin(Stdio::null());
    command
}

/// What a program wrote, and how it ended.
pub(crate) struct Ended {
    pub status: ExitStatus,
    pub stdout: String,
    pub stderr: String,
}

impl Ended {
    pub(crate) fn code(&self) -> Option<i32> {
        self.status.code()
    }

    /// Ends the test with all that is known, unless the program ended like this.
    pub(crate) fn assert_code(&self, code: i32) -> &Self {
        assert_eq!(self.code(), Some(code), "stdout:\n{}\nstderr:\n{}", self.stdout, self.stderr);
        self
    }
}

/// Runs a program to its end.
pub(crate) fn run(mut command: Command) -> Ended {
    let output = command.output().expect("it can be started");
    Ended {
        status: output.status,
        stdout: String::from_utf8(output.stdout).expect("it is text"),
        stderr: String::from_utf8(output.stderr).expect("it is text"),
    }
}

/// A program that goes on.
pub(crate) struct Running {
    child: Child,
    pub stdout: Lines,
    pub stderr: Lines,
}

/// The lines that have come so far.
#[derive(Clone, Default)]
pub(crate) struct Lines(Arc<(Mutex<Vec<String>>, Condvar)>);

impl Running {
    pub(crate) fn start(mut command: Command) -> Self {
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("it can be started");
        let stdout = Lines::of(child.stdout.take().expect("it is piped"));
        let stderr = Lines::of(child.stderr.take().expect("it is piped"));
        Self { child, stdout, stderr }
    }

    /// Ctrl-C.
    pub(crate) fn interrupt(&self) {
        self.signal("INT");
    }

    pub(crate) fn signal(&self, name: &str) {
        let kill = Command::new("kill").arg(format!("-{name}")).arg(self.child.id().to_string()).status();
        assert!(kill.expect("there is kill").success());
    }

    pub(crate) fn end(mut self) -> Ended {
        let deadline = Instant::now() + DEADLINE;
        let status = loop {
            if let Some(status) = self.child.try_wait().expect("it is our child") {
                break status;
            }
            assert!(Instant::now() < deadline, "it does not end; stderr:\n{}", self.stderr.text());
            thread::sleep(Duration::from_millis(10));
        };
        // What it wrote last may still be on its way.
        thread::sleep(Duration::from_millis(50));
        Ended { status, stdout: self.stdout.text(), stderr: self.stderr.text() }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Lines {
    fn of(stream: impl Read + Send + 'static) -> Self {
        let lines = Self::default();
        let writer = lines.clone();
        thread::spawn(move || {
            for line in BufReader::new(stream).lines().map_while(Result::ok) {
                let (all, changed) = &*writer.0;
                all.lock().unwrap_or_else(PoisonError::into_inner).push(line);
                changed.notify_all();
            }
        });
        lines
    }

    pub(crate) fn get(&self) -> Vec<String> {
        self.0.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub(crate) fn text(&self) -> String {
        self.get().join("\n")
    }

    /// Waits for a line that has all of these words.
    pub(crate) fn wait_for(&self, words: &[&str]) -> String {
        self.wait_for_nth(1, words)
    }

    /// Waits for the nth line that has all of these words.
    pub(crate) fn wait_for_nth(&self, nth: usize, words: &[&str]) -> String {
        let (all, changed) = &*self.0;
        let mut lines = all.lock().unwrap_or_else(PoisonError::into_inner);
        let deadline = Instant::now() + DEADLINE;
        loop {
            let found = lines.iter().filter(|line| words.iter().all(|word| line.contains(word))).nth(nth - 1);
            if let Some(line) = found {
                return line.clone();
            }
            let left = deadline.saturating_duration_since(Instant::now());
            assert!(!left.is_zero(), "no line number {nth} with {words:?} in:\n{}", lines.join("\n"));
            lines = changed.wait_timeout(lines, left).unwrap_or_else(PoisonError::into_inner).0;
        }
    }
}
