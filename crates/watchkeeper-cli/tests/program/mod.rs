//! The program, run as people run it.

// Each test file uses its part of this.
#![allow(dead_code)]

use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Output, Stdio};
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

use kube_client::config::{KubeConfigOptions, Kubeconfig};
use kube_client::{Client, Config};

/// Busy machines are slow.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);

/// The program, in a folder, with no cluster that it could find by itself.
pub(crate) fn watchkeeper(folder: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_watchkeeper"));
    command.current_dir(folder).env("HOME", folder).env_remove("KUBECONFIG").env("NO_COLOR", "1");
    command.env_remove("KUBERNETES_SERVICE_HOST").env_remove("RUST_LOG").stdin(Stdio::null());
    command
}

/// Runs it to its end.
pub(crate) fn run(folder: &Path, arguments: &[&str]) -> Output {
    watchkeeper(folder).args(arguments).output().expect("the program runs")
}

/// What it wrote to stdout.
pub(crate) fn stdout(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// What it wrote to stderr.
pub(crate) fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// A `watchkeeper serve` that is ready. It is killed when the test ends.
pub(crate) struct Served {
    child: Child,
    pub(crate) kubeconfig: PathBuf,
    rest: mpsc::Receiver<String>,
    errors: mpsc::Receiver<String>,
}

impl Served {
    /// Starts it with its kubeconfig in `folder`, and waits until it is ready.
    pub(crate) fn start(folder: &Path, arguments: &[&str]) -> Self {
        let mut child = watchkeeper(folder)
            .arg("serve")
            .args(arguments)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("the program starts");
        let mut stdout = BufReader::new(child.stdout.take().expect("its stdout"));
        let mut stderr = child.stderr.take().expect("its stderr");
        let (first_line, first) = mpsc::channel();
        let (rest_text, rest) = mpsc::channel();
        thread::spawn(move || {
            let (mut line, mut text) = (String::new(), String::new());
            let _ = stdout.read_line(&mut line);
            let _ = first_line.send(line);
            let _ = stdout.read_to_string(&mut text);
            let _ = rest_text.send(text);
        });
        let (error_text, errors) = mpsc::channel();
        thread::spawn(move || {
            let mut text = String::new();
            let _ = stderr.read_to_string(&mut text);
            let _ = error_text.send(text);
        });
        let line = first.recv_timeout(PATIENCE).unwrap_or_default();
        if !line.ends_with('\n') {
            let _ = child.kill();
            let _ = child.wait();
            panic!("it is not ready: {}", errors.recv_timeout(PATIENCE).unwrap_or_default());
        }
        Self { child, kubeconfig: PathBuf::from(line.trim_end()), rest, errors }
    }

    pub(crate) fn config_text(&self) -> String {
        std::fs::read_to_string(&self.kubeconfig).expect("the kubeconfig")
    }

    /// A client by its kubeconfig.
    pub(crate) async fn client(&self) -> Client {
        let kubeconfig = Kubeconfig::read_from(&self.kubeconfig).expect("the kubeconfig");
        let config = Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default()).await;
        watchkeeper::client(config.expect("a configuration")).expect("a client")
    }

    /// Sends SIGTERM.
    pub(crate) fn terminate(&self) {
        let sent = Command::new("kill").args(["-TERM", &self.child.id().to_string()]).status();
        assert!(sent.is_ok_and(|status| status.success()));
    }

    /// Waits for its end: how it ended, what else was on stdout, and stderr.
    pub(crate) fn ended(mut self) -> (ExitStatus, String, String) {
        let started = Instant::now();
        loop {
            if let Some(status) = self.child.try_wait().expect("its status") {
                let rest = self.rest.recv_timeout(PATIENCE).unwrap_or_default();
                return (status, rest, self.errors.recv_timeout(PATIENCE).unwrap_or_default());
            }
            assert!(started.elapsed() < PATIENCE, "it does not end");
            thread::sleep(Duration::from_millis(20));
        }
    }

    /// Ends it as a person does.
    pub(crate) fn stop(self) -> (ExitStatus, String, String) {
        self.terminate();
        self.ended()
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
