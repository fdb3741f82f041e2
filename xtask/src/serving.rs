//! The program's server, in a process of its own.

use std::ffi::OsString;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

/// How long it may take to end.
const END: Duration = Duration::from_secs(20);

/// Where cargo puts the program of a profile (`debug` or `release`).
pub(super) fn binary(profile: &str) -> PathBuf {
    let target = std::env::var_os("CARGO_TARGET_DIR").unwrap_or_else(|| OsString::from("target"));
    let root = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/.."));
    root.join(target).join(profile).join(format!("watchkeeper{}", std::env::consts::EXE_SUFFIX))
}

/// A server that is ready. Dropped, it is killed.
pub(super) struct Serving(Child);

impl Serving {
    /// `options` are those of `watchkeeper serve`.
    pub(super) fn start(program: &Path, kubeconfig: &Path, options: &[&str]) -> Result<Self, String> {
        let mut child = Command::new(program)
            .arg("serve")
            .args(options)
            .arg("--kubeconfig")
            .arg(kubeconfig)
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .map_err(|error| format!("{} cannot be run: {error}", program.display()))?;
        let stdout = child.stdout.take();
        let serving = Self(child);
        // It says where its kubeconfig is when it is ready.
        let mut line = String::new();
        let read = stdout.map(|stdout| BufReader::new(stdout).read_line(&mut line));
        match read {
            Some(Ok(bytes)) if bytes > 0 => Ok(serving),
            _ => Err("the server did not start".to_owned()),
        }
    }

    /// Ends it as a service manager does, and wants that it ends well.
    pub(super) fn stop(mut self) -> Result<(), String> {
        let problem = |error: std::io::Error| format!("the server cannot be stopped: {error}");
        let id = self.0.id().to_string();
        Command::new("kill").args(["-TERM", &id]).status().map_err(problem)?;
        let began = Instant::now();
        loop {
            match self.0.try_wait().map_err(problem)? {
                Some(status) if status.success() => return Ok(()),
                Some(status) => return Err(format!("the server ended with {status}")),
                None if began.elapsed() > END => return Err(format!("the server did not end within {END:?}")),
                None => sleep(Duration::from_millis(20)),
            }
        }
    }
}

impl Drop for Serving {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}
