//! Builds what the comparison runs, and runs it.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::cargo;

/// How everything is built: in Cargo.toml.
const PROFILE: &str = "comparison";

/// `full` or `quick`. What stands behind the command goes to the comparison.
pub(super) fn run(what: &str) -> bool {
    if !cargo("build", &["--profile", PROFILE, "-p", "watchkeeper-bench"], &[]) {
        return false;
    }
    build_client_go();
    let program = folder().join(format!("compare{}", std::env::consts::EXE_SUFFIX));
    match Command::new(&program).arg(what).args(std::env::args().skip(2)).status() {
        Ok(status) => status.success(),
        Err(error) => {
            eprintln!("error: {} cannot be run: {error}", program.display());
            false
        }
    }
}

fn root() -> &'static Path {
    Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/.."))
}

fn folder() -> PathBuf {
    root().join(std::env::var_os("CARGO_TARGET_DIR").unwrap_or_else(|| OsString::from("target"))).join(PROFILE)
}

/// Without Go, or without its modules, the comparison does without client-go.
fn build_client_go() {
    let driver = folder().join(format!("drive-client-go{}", std::env::consts::EXE_SUFFIX));
    eprintln!("$ go build -o {} .", driver.display());
    // Go runs in a folder of its own.
    let driver = std::path::absolute(&driver).unwrap_or(driver);
    let module = root().join("bench/peers/client-go");
    let built = Command::new("go").arg("build").arg("-o").arg(&driver).arg(".").current_dir(module).status();
    let problem = match built {
        Ok(status) if status.success() => return,
        Ok(_) => "it cannot be built here".to_owned(),
        Err(error) => format!("go cannot be run ({error})"),
    };
    // One of before would not be what is compared.
    let _ = std::fs::remove_file(&driver);
    eprintln!("client-go is left out: {problem}. Its columns will be empty.");
}
