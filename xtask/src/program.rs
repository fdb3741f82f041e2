//! The program's promises: its size, how soon it shows the first row, and that the demo runs.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use super::cargo;
use super::serving::{Serving, binary};

/// A release binary has at most so many bytes.
const SIZE: u64 = 25_000_000;
/// From the start of the process to the first row.
const FIRST_ROW: Duration = Duration::from_millis(100);
const TIMES: usize = 9;

pub(super) fn run() -> bool {
    if !cargo("build", &["--release", "-p", "watchkeeper-cli"], &[]) {
        return false;
    }
    let result = check(&binary("release"));
    if let Err(problem) = &result {
        eprintln!("error: {problem}");
    }
    result.is_ok()
}

fn check(program: &Path) -> Result<(), String> {
    let size = std::fs::metadata(program).map_err(|error| format!("there is no program: {error}"))?.len();
    println!("size: {:.1} MB", size as f64 / 1e6);
    if size > SIZE {
        return Err(format!("the program has {size} bytes, and may have {SIZE}"));
    }

    let demo = Command::new(program).args(["demo", "--for", "3s"]).status().map_err(|error| error.to_string())?;
    if !demo.success() {
        return Err(format!("the demo ended with {demo}"));
    }

    let kubeconfig = std::env::temp_dir().join(format!("watchkeeper-xtask-{}", std::process::id()));
    let server = Serving::start(program, &kubeconfig, &["--demo"])?;
    let of_one_namespace = first_rows(program, &kubeconfig, &["-n", "kube-system"])?;
    // Rows are aligned, so the first one waits for the last: here that of some 1,500 pods.
    first_rows(program, &kubeconfig, &["-A"])?;
    drop(server);
    if of_one_namespace > FIRST_ROW {
        return Err(format!("the first row came after {of_one_namespace:?}, and may take {FIRST_ROW:?}"));
    }
    Ok(())
}

/// The median of several.
fn first_rows(program: &Path, kubeconfig: &Path, scope: &[&str]) -> Result<Duration, String> {
    let mut times = Vec::new();
    for _ in 0..TIMES {
        times.push(first_row(program, kubeconfig, scope)?);
    }
    times.sort();
    let (median, least, most) = (times[TIMES / 2], times[0], times[TIMES - 1]);
    println!("first row, watch pods {}: {median:.1?} (median of {TIMES}; {least:.1?} to {most:.1?})", scope.join(" "));
    Ok(median)
}

/// From the start of the process to the first row behind the header.
fn first_row(program: &Path, kubeconfig: &Path, scope: &[&str]) -> Result<Duration, String> {
    let began = Instant::now();
    let mut child = Command::new(program)
        .args(["watch", "pods"])
        .args(scope)
        .arg("--kubeconfig")
        .arg(kubeconfig)
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .map_err(|error| error.to_string())?;
    let stdout = child.stdout.take().ok_or("no output")?;
    let row = BufReader::new(stdout).lines().map_while(Result::ok).find(|line| line.contains("ADDED"));
    let took = began.elapsed();
    let _ = child.kill();
    let _ = child.wait();
    row.map(|_| took).ok_or_else(|| "no row came".to_owned())
}
