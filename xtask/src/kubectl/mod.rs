//! kubectl on our server: the one of this machine, and a very old one.
//!
//! | file | answers |
//! |---|---|
//! | `programs` | which kubectl are there |
//! | `checks` | what is asked of each, and what it must say |
//! | `stories` | what takes more than one command: watches, waits, owners |
//! | `patterns` | whether it said that |

mod checks;
mod patterns;
mod programs;
mod stories;

use std::io::Write as _;
use std::path::Path;
use std::process::{Command, Stdio};

use self::checks::{CHECKS, Check, Do};
use self::programs::{Found, Program};
use super::cluster::{Cluster, Options};

pub(super) fn run() -> bool {
    try_all().unwrap_or_else(|problem| {
        eprintln!("error: {problem}");
        false
    })
}

fn try_all() -> Result<bool, String> {
    let options = Options::read()?;
    let mut programs = Vec::new();
    for (name, found) in programs::all(options.built)? {
        match found {
            Found::Program(program) => programs.push(program),
            Found::NotHere(why) => println!("skipped: {name} is not tried on our server, because {why}"),
        }
    }
    if programs.is_empty() {
        return Ok(true);
    }
    let cluster = Cluster::start(&options)?;
    let mut passed = true;
    // One after the other: they make the same definition of a kind.
    for program in &programs {
        let kubectl = Kubectl::new(program, &cluster)?;
        for check in CHECKS {
            passed &= kubectl.report(check);
        }
    }
    cluster.stop()?;
    Ok(passed)
}

/// A kubectl with a cluster and a namespace.
pub(super) struct Kubectl<'a> {
    program: &'a Program,
    cluster: &'a Cluster,
    namespace: String,
}

/// What a command printed, and whether it succeeded.
pub(super) struct Said {
    stdout: String,
    stderr: String,
    success: bool,
}

impl<'a> Kubectl<'a> {
    fn new(program: &'a Program, cluster: &'a Cluster) -> Result<Self, String> {
        let namespace = format!("kubectl-{}-{}", program.minor, std::process::id());
        std::fs::create_dir_all(cluster.folder().join(&namespace)).map_err(|error| error.to_string())?;
        Ok(Self { program, cluster, namespace })
    }

    /// One line, or some more if it failed.
    fn report(&self, check: &Check) -> bool {
        let name = format!("kubectl-1.{} {}", self.program.minor, check.name);
        if !check.minors.contains(&self.program.minor) {
            return true;
        }
        if check.needs_controllers && !self.cluster.controllers {
            println!("skipped {name}: there are no controllers");
            return true;
        }
        let result = match check.what {
            Do::Command { line, input, says, fails } => {
                self.said(line, input).and_then(|said| said.expect(!fails, &self.fill_all(says)))
            }
            Do::Story(story) => story(self),
        };
        match &result {
            Ok(()) => println!("ok {name}"),
            Err(problem) => println!("FAILED {name}: {}", problem.trim_end().replace('\n', "\n    ")),
        }
        result.is_ok()
    }

    /// `{ns}` is the namespace.
    fn fill(&self, text: &str) -> String {
        text.replace("{ns}", &self.namespace)
    }

    fn fill_all(&self, texts: &[&str]) -> Vec<String> {
        texts.iter().map(|text| self.fill(text)).collect()
    }

    /// A command of words, where a word with spaces stands between single quotes.
    fn command(&self, line: &str) -> Command {
        let folder = self.cluster.folder().join(&self.namespace);
        let mut command = Command::new(&self.program.path);
        command
            .args(["--namespace", &self.namespace])
            .args(words(&self.fill(line)))
            // Nothing of the user's own settings and caches, and nothing left among them.
            .env_clear()
            .env("PATH", std::env::var_os("PATH").unwrap_or_default())
            .env("HOME", &folder)
            .env("TMPDIR", &folder)
            .env("KUBECONFIG", self.cluster.kubeconfig())
            .env("KUBE_EDITOR", "sed -i s/before/after/")
            .current_dir(Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../e2e/kubectl/manifests")))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        command
    }

    /// Runs a command with a text on its standard input.
    fn said(&self, line: &str, input: &str) -> Result<Said, String> {
        let problem = |error: std::io::Error| format!("kubectl cannot be run: {error}");
        let mut child = self.command(line).spawn().map_err(problem)?;
        if let Some(mut stdin) = child.stdin.take() {
            // Whoever does not read it says why.
            let _ = stdin.write_all(self.fill(input).as_bytes());
        }
        let output = child.wait_with_output().map_err(problem)?;
        Ok(Said {
            stdout: String::from_utf8_lossy(&output.stdout).into_owned(),
            stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
            success: output.status.success(),
        })
    }
}

impl Said {
    /// Wants lines, in this order, on both outputs together.
    fn expect(&self, success: bool, lines: &[String]) -> Result<(), String> {
        let all = format!("{}{}", self.stdout, self.stderr);
        if self.success != success {
            let how = if success { "it failed" } else { "it did not fail" };
            return Err(format!("{how}, and printed:\n{all}"));
        }
        match patterns::missing(&all, lines) {
            None => Ok(()),
            Some(line) => Err(format!("the line {line:?} is missing in:\n{all}")),
        }
    }
}

fn words(line: &str) -> Vec<String> {
    let mut words = Vec::new();
    for (index, part) in line.split('\'').enumerate() {
        if index % 2 == 1 {
            words.push(part.to_owned());
        } else {
            words.extend(part.split_whitespace().map(str::to_owned));
        }
    }
    words
}

#[cfg(test)]
mod tests {
    use super::words;

    #[test]
    fn quotes_keep_words_together() {
        assert_eq!(words("patch pod 'a b' -p  '{}'"), ["patch", "pod", "a b", "-p", "{}"]);
    }
}
