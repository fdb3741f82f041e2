//! A process that ends with whoever started it.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use anyhow::{Context as _, bail};
use rustix::process::{Pid, Signal, kill_process};
use tokio::time::{Instant, sleep};

use crate::Failure;

/// A process, with a log of what it says. It is killed when this is dropped.
#[derive(Debug)]
pub(super) struct Process {
    name: &'static str,
    child: Child,
    log: PathBuf,
}

impl Process {
    /// Starts a program. Its log goes on where that of an earlier one ended.
    pub(super) fn start(
        name: &'static str,
        program: &Path,
        arguments: &[String],
        folder: &Path,
    ) -> Result<Self, Failure> {
        let log = folder.join(format!("{name}.log"));
        let file = File::options().create(true).append(true).open(&log).context("no log")?;
        let child = Command::new(program)
            .args(arguments)
            .current_dir(folder)
            .stdin(Stdio::null())
            .stdout(file.try_clone()?)
            .stderr(file)
            .spawn()
            .with_context(|| format!("{} cannot be run", program.display()))?;
        Ok(Self { name, child, log })
    }

    /// An error, with the end of its log, if it has ended.
    pub(super) fn check_running(&mut self) -> Result<(), Failure> {
        match self.child.try_wait()? {
            None => Ok(()),
            Some(status) => bail!("{} has ended ({status}):\n{}", self.name, self.log_tail()),
        }
    }

    /// The last it has said.
    pub(super) fn log_tail(&self) -> String {
        let log = fs::read(&self.log).unwrap_or_default();
        let log = String::from_utf8_lossy(&log);
        let lines: Vec<&str> = log.lines().collect();
        lines[lines.len().saturating_sub(20)..].join("\n")
    }

    /// Tells it to end, and waits until it has.
    pub(super) async fn terminate(mut self, patience: Duration) -> Result<(), Failure> {
        let id = i32::try_from(self.child.id()).ok().and_then(Pid::from_raw).context("a process without an id")?;
        kill_process(id, Signal::TERM).with_context(|| format!("{} cannot be told to end", self.name))?;
        let deadline = Instant::now() + patience;
        while self.child.try_wait()?.is_none() {
            if Instant::now() > deadline {
                bail!("{} does not end:\n{}", self.name, self.log_tail());
            }
            sleep(Duration::from_millis(20)).await;
        }
        Ok(())
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // An error means that it has ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
