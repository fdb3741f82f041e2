//! Programs in processes of their own, with their logs.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{ExitStatus, Stdio};
use std::time::Duration;

use anyhow::{Context as _, bail};
use tokio::process::{Child, Command};
use watchkeeper_e2e::Failure;

/// How long a program may take to end when it is asked to.
const END: Duration = Duration::from_secs(20);

/// A running program. Dropped, it is killed.
pub(super) struct Process {
    name: String,
    child: Child,
    log: PathBuf,
}

impl Process {
    /// Starts a program; what it says goes to `<folder>/<name>.log`.
    pub(super) fn start(name: &str, program: &Path, arguments: &[String], folder: &Path) -> Result<Self, Failure> {
        Self::start_with(name, program, arguments, &[], folder)
    }

    /// The same, with variables of its environment.
    pub(super) fn start_with(
        name: &str,
        program: &Path,
        arguments: &[String],
        variables: &[(&str, PathBuf)],
        folder: &Path,
    ) -> Result<Self, Failure> {
        let log = folder.join(format!("{name}.log"));
        let file = File::create(&log).with_context(|| format!("{} cannot be written", log.display()))?;
        let child = Command::new(program)
            .args(arguments)
            .envs(variables.iter().map(|(name, value)| (name, value)))
            .stdin(Stdio::null())
            .stdout(file.try_clone()?)
            .stderr(file)
            .kill_on_drop(true)
            .spawn()
            .with_context(|| format!("{} cannot be run", program.display()))?;
        Ok(Self { name: name.to_owned(), child, log })
    }

    pub(super) fn name(&self) -> &str {
        &self.name
    }

    /// An error, if it has ended by itself.
    pub(super) fn check(&mut self) -> Result<(), Failure> {
        match self.child.try_wait()? {
            None => Ok(()),
            Some(status) => bail!("{} ended with {status}: {}", self.name, self.last_lines()?),
        }
    }

    /// Ends it at once, with no goodbye.
    pub(super) async fn kill(&mut self) -> Result<(), Failure> {
        Ok(self.child.kill().await?)
    }

    /// Ends it as a service manager does.
    pub(super) async fn terminate(&mut self) -> Result<ExitStatus, Failure> {
        self.signal("-TERM").await
    }

    /// Ends it as Ctrl-C does.
    pub(super) async fn interrupt(&mut self) -> Result<ExitStatus, Failure> {
        self.signal("-INT").await
    }

    async fn signal(&mut self, signal: &str) -> Result<ExitStatus, Failure> {
        let id = self.child.id().with_context(|| format!("{} has ended already", self.name))?;
        Command::new("kill").args([signal, &id.to_string()]).status().await?;
        let waited = tokio::time::timeout(END, self.child.wait()).await;
        Ok(waited.with_context(|| format!("{} did not end within {END:?}", self.name))??)
    }

    pub(super) fn log(&self) -> Result<String, Failure> {
        let bytes = std::fs::read(&self.log).with_context(|| format!("{} cannot be read", self.log.display()))?;
        Ok(String::from_utf8_lossy(&bytes).into_owned())
    }

    fn last_lines(&self) -> Result<String, Failure> {
        let log = self.log()?;
        let lines: Vec<&str> = log.lines().collect();
        Ok(lines[lines.len().saturating_sub(5)..].join("\n"))
    }
}
