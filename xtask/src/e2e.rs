//! We and a real Kubernetes, both ways: runs the suites of `e2e/`, and writes what came of them.

use std::ffi::OsString;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use super::cargo;

/// Each suite is a program of the crate, and writes `target/e2e/<name>.md`. The second is its heading.
const SUITES: [(&str, &str); 3] = [
    ("informers", "Our informers on a real API server"),
    ("answers", "The same requests to both API servers"),
    ("components", "Real components on our API server, and our controller on a real one"),
];
/// Those that CI runs: minutes on a warm cache.
const SHORT: [&str; 2] = ["informers", "answers"];

const RESULTS: &str = "docs/e2e.md";
const NOTES: &str = "<!-- notes -->";

/// What stands behind the command.
struct Options {
    short: bool,
    suites: Vec<&'static str>,
}

/// What became of a suite.
enum Ended {
    Passed(Duration),
    Failed,
    Skipped,
}

pub(super) fn run() -> bool {
    with(std::env::args().skip(2))
}

/// As CI runs it.
pub(super) fn run_short() -> bool {
    with(["--short".to_owned()].into_iter())
}

fn with(arguments: impl Iterator<Item = String>) -> bool {
    Options::read(arguments).and_then(|options| options.run()).unwrap_or_else(|problem| {
        eprintln!("error: {problem}");
        false
    })
}

impl Options {
    fn read(arguments: impl Iterator<Item = String>) -> Result<Self, String> {
        let (mut short, mut suites) = (false, Vec::new());
        for argument in arguments {
            match SUITES.iter().find(|(name, _)| *name == argument) {
                Some((name, _)) => suites.push(*name),
                None if argument == "--short" => short = true,
                None => return Err(format!("{argument:?} is not understood: there are --short and {}", names())),
            }
        }
        if suites.is_empty() {
            suites = if short { SHORT.to_vec() } else { SUITES.map(|(name, _)| name).to_vec() };
        }
        Ok(Self { short, suites })
    }

    fn run(&self) -> Result<bool, String> {
        if let Some(missing) = missing() {
            println!("skipped: {missing}");
            return Ok(true);
        }
        // A debug build of our server too, because it stops where numbers overflow. With the whole workspace and an example,
        // dependencies have the features that tests give them, and are not built a second time.
        let mut targets = vec!["--workspace", "--bin", "watchkeeper", "--example", "controller"];
        self.suites.iter().for_each(|suite| targets.extend(["--bin", suite]));
        if !cargo("build", &targets, &[]) {
            return Err("the suites cannot be built".to_owned());
        }
        let mut ended = Vec::new();
        for suite in &self.suites {
            ended.push((*suite, self.suite(suite)?));
        }
        if !self.short {
            write_results(&ended)?;
        }
        for (suite, ended) in &ended {
            match ended {
                Ended::Passed(took) => println!("{suite}: passed in {} s", took.as_secs()),
                Ended::Skipped => println!("{suite}: skipped"),
                Ended::Failed => println!("{suite}: FAILED"),
            }
        }
        Ok(ended.iter().all(|(_, ended)| !matches!(ended, Ended::Failed)))
    }

    fn suite(&self, suite: &str) -> Result<Ended, String> {
        let program = target().join("debug").join(format!("{suite}{}", std::env::consts::EXE_SUFFIX));
        // One of before would be taken for what comes of this run.
        let _ = std::fs::remove_file(fragment(suite));
        let arguments: &[&str] = if self.short { &["--short"] } else { &[] };
        eprintln!("$ {} {}", program.display(), arguments.join(" "));
        let began = Instant::now();
        let status = Command::new(&program).args(arguments).current_dir(root()).status();
        match status.map_err(|error| format!("{} cannot be run: {error}", program.display()))? {
            status if !status.success() => Ok(Ended::Failed),
            // A suite that was skipped has nothing to say.
            _ if !fragment(suite).exists() => Ok(Ended::Skipped),
            _ => Ok(Ended::Passed(began.elapsed())),
        }
    }
}

fn names() -> String {
    SUITES.map(|(name, _)| name).join(", ")
}

/// What this machine lacks, before anything is built.
fn missing() -> Option<String> {
    let go = Command::new("go").arg("version").output();
    if go.is_ok_and(|output| output.status.success()) || is_cached() {
        return None;
    }
    Some(format!(
        "there is no Go, with which a real Kubernetes {} and an etcd {} are built.\nInstall Go 1.26 or newer \
         (https://go.dev/dl), and run this again: the first time it fetches their modules and builds them, about ten \
         minutes on two cores, and keeps the programs in the cache folder.",
        pinned("e2e/kubernetes/go.mod", "k8s.io/kubernetes").unwrap_or_default(),
        pinned("e2e/etcd/go.mod", "go.etcd.io/etcd/server/v3").unwrap_or_default(),
    ))
}

/// Whether somebody built them before. Then Go is not needed.
fn is_cached() -> bool {
    let of_user = |variable| std::env::var_os(variable).map(PathBuf::from).filter(|path| path.is_absolute());
    let cache = of_user("XDG_CACHE_HOME").or_else(|| Some(of_user("HOME")?.join(".cache")));
    let version = pinned("e2e/kubernetes/go.mod", "k8s.io/kubernetes");
    cache.zip(version).is_some_and(|(cache, version)| {
        let folder = cache.join("watchkeeper").join(format!("kubernetes-{version}"));
        let programs = ["etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler", "kubectl"];
        programs.iter().all(|program| folder.join(program).exists())
    })
}

fn write_results(ended: &[(&str, Ended)]) -> Result<(), String> {
    let path = root().join(RESULTS);
    let before = std::fs::read_to_string(&path).unwrap_or_default();
    let mut sections = Vec::new();
    for (suite, ended) in ended {
        let came_of_it = match ended {
            Ended::Passed(took) => format!("passed in {} s", took.as_secs()),
            Ended::Failed => "**failed**".to_owned(),
            Ended::Skipped => continue,
        };
        let file = fragment(suite);
        let text = std::fs::read_to_string(&file).map_err(|error| format!("{}: {error}", file.display()))?;
        let when = format!("{} at {}", date(SystemTime::now()), revision().as_deref().unwrap_or("an unknown revision"));
        sections.push((*suite, format!("`cargo xtask e2e {suite}`, {when}: {came_of_it}.\n\n{}\n", text.trim_end())));
    }
    if sections.is_empty() {
        return Ok(());
    }
    std::fs::write(&path, results(&before, &head(), &sections)).map_err(|error| format!("{RESULTS}: {error}"))?;
    println!("{RESULTS} is written");
    Ok(())
}

/// The whole file: what is to be said of all, and what each suite says. Notes, and suites that were not run, stay as before.
fn results(before: &str, head: &str, sections: &[(&str, String)]) -> String {
    let mut text = "# We and a real Kubernetes\n\n".to_owned();
    text +=
        "Written by `cargo xtask e2e`, each section by its suite. What stands between the marks for notes stays.\n\n";
    text += head;
    let notes = before.split(NOTES).nth(1).unwrap_or("\n");
    let _ = writeln!(text, "\n{NOTES}{notes}{NOTES}");
    for (suite, title) in SUITES {
        let heading = format!("\n## {title}\n\n");
        let new = sections.iter().find(|(name, _)| *name == suite).map(|(_, section)| section.as_str());
        let old = before.split_once(&heading).map(|(_, rest)| rest.split("\n## ").next().unwrap_or(rest));
        if let Some(section) = new.or(old) {
            let _ = writeln!(text, "{heading}{}", section.trim_end());
        }
    }
    text
}

/// What was held against what.
fn head() -> String {
    let of_command = |program: &str, argument: &str| {
        let output = Command::new(program).arg(argument).output().ok()?;
        Some(String::from_utf8_lossy(&output.stdout).trim().to_owned())
    };
    let rows = [
        ("Kubernetes", pinned("e2e/kubernetes/go.mod", "k8s.io/kubernetes")),
        ("etcd", pinned("e2e/etcd/go.mod", "go.etcd.io/etcd/server/v3")),
        ("client-go", pinned("e2e/client-go/go.mod", "k8s.io/client-go")),
        ("kube-rs", locked("kube")),
        ("Go", of_command("go", "version").map(|said| said.replace("go version go", ""))),
        ("Rust", of_command("rustc", "--version").map(|said| said.replace("rustc ", ""))),
        ("processors", std::thread::available_parallelism().ok().map(|count| count.to_string())),
    ];
    let mut text = "| | |\n|---|---|\n".to_owned();
    for (name, value) in rows {
        let _ = writeln!(text, "| {name} | {} |", value.as_deref().unwrap_or("unknown"));
    }
    text
}

fn revision() -> Option<String> {
    let output = Command::new("git").args(["rev-parse", "--short", "HEAD"]).current_dir(root()).output().ok()?;
    output.status.success().then(|| String::from_utf8_lossy(&output.stdout).trim().to_owned())
}

/// The version of a module that a go.mod asks for, without its `v`.
fn pinned(file: &str, module: &str) -> Option<String> {
    let text = std::fs::read_to_string(root().join(file)).ok()?;
    let version = text.lines().find_map(|line| {
        let line = line.trim().strip_prefix("require ").unwrap_or(line.trim());
        line.strip_prefix(module)?.strip_prefix(" v")
    })?;
    Some(version.split_whitespace().next()?.to_owned())
}

/// The version of a crate in Cargo.lock.
fn locked(name: &str) -> Option<String> {
    let text = std::fs::read_to_string(root().join("Cargo.lock")).ok()?;
    let package = text.split_once(&format!("name = \"{name}\"\nversion = \""))?.1;
    Some(package.split_once('"')?.0.to_owned())
}

/// `2026-11-18`, in UTC.
fn date(now: SystemTime) -> String {
    let days = now.duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs() / 86_400);
    // Years that begin in March have their leap day at the end: Howard Hinnant's `civil_from_days`.
    let shifted = days + 719_468;
    let (era, of_era) = (shifted / 146_097, shifted % 146_097);
    let year_of_era = (of_era - of_era / 1_460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month = (5 * of_year + 2) / 153;
    let day = of_year - (153 * month + 2) / 5 + 1;
    let month = if month < 10 { month + 3 } else { month - 9 };
    let year = year_of_era + era * 400 + u64::from(month <= 2);
    format!("{year:04}-{month:02}-{day:02}")
}

fn fragment(suite: &str) -> PathBuf {
    root().join("target/e2e").join(format!("{suite}.md"))
}

fn target() -> PathBuf {
    root().join(std::env::var_os("CARGO_TARGET_DIR").unwrap_or_else(|| OsString::from("target")))
}

fn root() -> &'static Path {
    Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/.."))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_date_is_that_of_the_calendar() {
        let at = |seconds| date(UNIX_EPOCH + Duration::from_secs(seconds));
        assert_eq!(at(0), "1970-01-01");
        assert_eq!(at(951_782_400), "2000-02-29");
        assert_eq!(at(1_798_761_599), "2026-12-31");
        assert_eq!(at(1_798_761_600), "2027-01-01");
    }

    #[test]
    fn notes_and_suites_that_were_not_run_stay() {
        let both = [("answers", "| case |\n".to_owned()), ("components", "old\n".to_owned())];
        let first = results("", "head\n", &both);
        assert!(first.contains("head\n\n<!-- notes -->\n<!-- notes -->\n\n## The same requests to both"));
        assert!(!first.contains("Our informers"));
        let noted = first.replace("<!-- notes -->\n<!--", "<!-- notes -->\nSeen.\n<!--");
        let again = results(&noted, "other\n", &[("components", "new\n".to_owned())]);
        assert!(again.contains("other\n\n<!-- notes -->\nSeen.\n<!-- notes -->\n\n## "));
        assert!(again.contains("\n\n| case |\n\n## Real components"));
        assert!(again.ends_with("\n\nnew\n") && !again.contains("old") && !again.contains("head"));
        assert_eq!(results(&again, "other\n", &[]), again);
    }

    #[test]
    fn versions_are_those_of_the_modules() {
        let kubernetes = pinned("e2e/kubernetes/go.mod", "k8s.io/kubernetes").expect("a version");
        assert!(kubernetes.starts_with("1."), "{kubernetes}");
        assert!(pinned("e2e/etcd/go.mod", "go.etcd.io/etcd/server/v3").expect("a version").starts_with("3."));
        assert!(locked("kube").expect("a version").starts_with("5."));
    }

    #[test]
    fn what_is_not_understood_is_said() {
        let read = |arguments: &[&str]| Options::read(arguments.iter().map(|&argument| argument.to_owned()));
        assert_eq!(read(&["--short"]).expect("options").suites, SHORT);
        assert_eq!(read(&["components"]).expect("options").suites, ["components"]);
        assert!(read(&["compnents"]).is_err());
    }
}
