//! `cargo xtask perf`.

use std::path::PathBuf;
use std::process::{Command, Stdio};

use crate::cargo;

/// Runs of a stage that are counted.
const RUNS: u64 = 200;

pub(crate) fn run(times: bool) -> bool {
    let passed = cargo("bench", &["-p", "watchkeeper", "--bench", "perf"], &[]);
    let counted = instructions();
    let timed = !times || cargo("bench", &["-p", "watchkeeper", "--bench", "stages"], &[]);
    passed && counted && timed
}

/// Counts the instructions of each stage: what valgrind sees of many runs, without what it sees of none.
fn instructions() -> bool {
    if Command::new("valgrind").arg("--version").stdout(Stdio::null()).stderr(Stdio::null()).status().is_err() {
        eprintln!("instructions: skipped, there is no valgrind");
        return true;
    }
    let Some(stages) = stages() else {
        eprintln!("error: the benchmark `stages` cannot be built");
        return false;
    };
    let Ok(names) = Command::new(&stages).arg("--names").output() else { return false };
    println!("instructions of each stage:");
    for name in String::from_utf8_lossy(&names.stdout).lines() {
        match (count(&stages, name, 0), count(&stages, name, RUNS)) {
            (Some(none), Some(many)) => println!("  {:>10}  {name}", many.saturating_sub(none) / RUNS),
            _ => {
                eprintln!("error: valgrind cannot count {name:?}");
                return false;
            }
        }
    }
    true
}

/// Builds the benchmark, and says where it is.
fn stages() -> Option<PathBuf> {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let arguments = ["bench", "-p", "watchkeeper", "--bench", "stages", "--no-run", "--message-format", "json"];
    let output = Command::new(cargo).args(arguments).stderr(Stdio::inherit()).output().ok()?;
    let text = String::from_utf8_lossy(&output.stdout);
    let line = text.lines().rfind(|line| line.contains("\"name\":\"stages\"") && line.contains("\"executable\":\""))?;
    let (_, path) = line.split_once("\"executable\":\"")?;
    Some(PathBuf::from(path.split('"').next()?))
}

fn count(stages: &PathBuf, name: &str, runs: u64) -> Option<u64> {
    let output = Command::new("valgrind")
        .args(["--tool=callgrind", "--callgrind-out-file=/dev/null"])
        .arg(stages)
        .args(["--instructions", name, &runs.to_string()])
        .output()
        .ok()?;
    let text = String::from_utf8_lossy(&output.stderr);
    let line = text.lines().find_map(|line| line.split_once("Collected :"))?.1;
    line.split_whitespace().next()?.parse().ok()
}
