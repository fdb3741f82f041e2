//! Runs tasks by turns: each once, then each again.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use crate::configuration::{Configuration, Driver, Task};
use crate::figures::Figures;
use crate::results::Results;
use crate::server::Server;

/// No run takes so long, unless it hangs.
const TOO_LONG: Duration = Duration::from_secs(600);

/// Where the programs are: beside this one.
pub(crate) struct Programs {
    folder: PathBuf,
}

impl Programs {
    pub(crate) fn beside_this() -> Result<Self, String> {
        let this = std::env::current_exe().map_err(|error| error.to_string())?;
        let programs = Self { folder: this.parent().unwrap_or(Path::new(".")).to_owned() };
        for needed in ["load-server", Driver::Watchkeeper.program(), Driver::KubeRs.program()] {
            let path = programs.path(needed);
            if !path.exists() {
                return Err(format!("there is no {}: `cargo xtask bench` builds all that is needed", path.display()));
            }
        }
        Ok(programs)
    }

    fn path(&self, program: &str) -> PathBuf {
        self.folder.join(format!("{program}{}", std::env::consts::EXE_SUFFIX))
    }

    pub(crate) fn has(&self, driver: Driver) -> bool {
        self.path(driver.program()).exists()
    }
}

/// Runs all tasks `rounds` times. A task that fails is a result too.
pub(crate) fn rounds(programs: &Programs, tasks: &[Task], rounds: usize) -> Result<Results, String> {
    let mut results = Results::default();
    let mut servers: BTreeMap<u32, Server> = BTreeMap::new();
    let mut durations: BTreeMap<Configuration, Duration> = BTreeMap::new();
    let all = tasks.len() * rounds;
    for round in 0..rounds {
        for (nth, task) in tasks.iter().enumerate() {
            let done = round * tasks.len() + nth;
            let server = match task.configuration.pods() {
                None => None,
                Some(pods) => {
                    let server = match servers.entry(pods) {
                        Entry::Occupied(started) => started.into_mut(),
                        Entry::Vacant(none) => none.insert(Server::start(&programs.path("load-server"), pods)?),
                    };
                    Some(&*server)
                }
            };
            let left = left(&durations, tasks, done, all);
            eprint!("[{}/{all}{left}] {} .. ", done + 1, task.configuration);
            let began = Instant::now();
            let run = run(&programs.path(task.configuration.driver.program()), task, server);
            durations.insert(task.configuration, began.elapsed());
            match &run {
                Ok(_) => eprintln!("{:.1} s", began.elapsed().as_secs_f64()),
                Err(error) => eprintln!("FAILED: {error}"),
            }
            results.add(task.configuration, run);
        }
    }
    Ok(results)
}

/// How long the rest takes, as far as it is known.
fn left(durations: &BTreeMap<Configuration, Duration>, tasks: &[Task], done: usize, all: usize) -> String {
    if durations.is_empty() {
        return String::new();
    }
    let mean = durations.values().sum::<Duration>() / durations.len() as u32;
    let rest = (done..all).map(|nth| &tasks[nth % tasks.len()].configuration);
    let seconds = rest.map(|one| durations.get(one).copied().unwrap_or(mean)).sum::<Duration>().as_secs();
    if seconds < 100 { format!(", {seconds} s left") } else { format!(", {} min left", seconds.div_ceil(60)) }
}

fn run(program: &Path, task: &Task, server: Option<&Server>) -> Result<Figures, String> {
    if let Some(server) = server {
        server.reset()?;
    }
    let before = server.and_then(Server::cpu_seconds);
    let url = server.map_or("", Server::url);
    let mut child = Command::new(program)
        .args(task.arguments(url))
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .map_err(|error| format!("{} cannot be run: {error}", program.display()))?;
    let (output, errors) = (reader(child.stdout.take()), reader(child.stderr.take()));
    let ended = wait(&mut child, TOO_LONG);
    let (output, errors) = (output.join().unwrap_or_default(), errors.join().unwrap_or_default());
    // What it said last tells most about why it failed.
    let last_words =
        || errors.lines().rev().find(|line| !line.trim().is_empty()).unwrap_or("it said nothing").to_owned();
    match ended {
        Ok(status) if status.success() => {
            let mut figures = Figures::parse(&output)?;
            if let (Some(before), Some(after)) = (before, server.and_then(Server::cpu_seconds)) {
                figures.insert("server.cpu_s", after - before);
            }
            Ok(figures)
        }
        Ok(status) => Err(format!("{status}: {}", last_words())),
        Err(error) => Err(format!("{error}; {}", last_words())),
    }
}

fn reader<R: Read + Send + 'static>(source: Option<R>) -> JoinHandle<String> {
    std::thread::spawn(move || {
        let mut bytes = Vec::new();
        // What could be read counts.
        let _ = source.map(|mut source| source.read_to_end(&mut bytes));
        String::from_utf8_lossy(&bytes).into_owned()
    })
}

fn wait(child: &mut Child, at_most: Duration) -> Result<std::process::ExitStatus, String> {
    let began = Instant::now();
    loop {
        match child.try_wait() {
            Ok(Some(status)) => return Ok(status),
            Ok(None) if began.elapsed() < at_most => std::thread::sleep(Duration::from_millis(20)),
            Ok(None) => {
                let _ = child.kill();
                let _ = child.wait();
                return Err(format!("it did not end in {} s", at_most.as_secs()));
            }
            Err(error) => return Err(error.to_string()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A driver that is a shell. One at a time: a process that is started while the file is written keeps it open for a
    /// moment, and a file that is open for writing cannot be run.
    fn driven(script: &str) -> Result<Figures, String> {
        static ALONE: std::sync::Mutex<()> = std::sync::Mutex::new(());
        let _alone = ALONE.lock();
        let folder = std::env::temp_dir().join(format!("watchkeeper-compare-{}-{}", std::process::id(), script.len()));
        std::fs::create_dir_all(&folder).unwrap();
        let program = folder.join("driver");
        std::fs::write(&program, format!("#!/bin/sh\n{script}\n")).unwrap();
        let task = Task { configuration: Configuration::queue(Driver::ClientGo, 1, 1), phases: "", count: 5 };
        #[cfg(unix)]
        std::fs::set_permissions(&program, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
        let result = run(&program, &task, None);
        std::fs::remove_dir_all(&folder).unwrap();
        result
    }

    #[test]
    fn a_driver_is_told_its_task_and_its_line_is_read() {
        let script = r#"test "$*" = "queue --producers 1 --consumers 1 --items 5" || exit 1
            echo '{"driver":"x","queue":{"cycle_ns":700}}'"#;
        assert_eq!(driven(script).unwrap().get("queue.cycle_ns"), Some(700.0));
    }

    #[test]
    fn a_driver_that_fails_says_why() {
        let error = driven("echo first >&2; echo the cache lacks three pods >&2; exit 1").unwrap_err();
        assert!(error.contains("the cache lacks three pods"), "{error}");
    }
}
