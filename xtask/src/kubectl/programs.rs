//! Which kubectl are there: the one on the PATH or else one built from its sources, and Debian's very old one.
//!
//! What is built or fetched is kept in the user's cache folder, and nothing is installed.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use crate::go::{self, Built};

/// A kubectl that runs.
pub(super) struct Program {
    pub(super) path: PathBuf,
    /// Of its version: 36 of 1.36.4.
    pub(super) minor: u32,
}

/// What became of one that was looked for.
pub(super) enum Found {
    Program(Program),
    /// This machine has none, and cannot get it.
    NotHere(String),
}

/// Of e2e/kubectl/go.mod.
const BUILT: (&str, u32) = ("1.37.2", 37);
const PACKAGE: &str = "kubernetes-client";

/// Each with its name. `built` leaves the one on the PATH out.
pub(super) fn all(built: bool) -> Result<Vec<(&'static str, Found)>, String> {
    let on_path = if built { None } else { program(Path::new("kubectl")) };
    let current = match on_path {
        Some(program) => Found::Program(program),
        None => build()?,
    };
    Ok(vec![("kubectl", current), ("Debian's old kubectl", old())])
}

/// A program that tells its version.
fn program(path: &Path) -> Option<Program> {
    let output = run(Command::new(path).args(["version", "--client", "--output=json"])).ok()?;
    let text = String::from_utf8_lossy(&output.stdout);
    // `"gitVersion": "v1.36.4",`
    let version = text.split_once("\"gitVersion\": \"v1.")?.1;
    let minor = version.split_once('.')?.0.parse().ok()?;
    Some(Program { path: path.to_owned(), minor })
}

fn build() -> Result<Found, String> {
    let (version, minor) = BUILT;
    let Some(folder) = cache_folder(&format!("kubectl-{version}")) else { return Ok(no_cache_folder()) };
    let path = folder.join(format!("kubectl{}", std::env::consts::EXE_SUFFIX));
    if let Some(program) = program(&path).filter(|program| program.minor == minor) {
        return Ok(Found::Program(program));
    }
    // Kubernetes writes its version into a program while linking it.
    let package = "k8s.io/component-base/version";
    let linker =
        format!("-s -w -X {package}.gitVersion=v{version} -X {package}.gitMajor=1 -X {package}.gitMinor={minor}");
    match go::build("e2e/kubectl", &path, &linker) {
        Built::NotHere(why) => Ok(Found::NotHere(why)),
        Built::Failed => Err("e2e/kubectl cannot be built".to_owned()),
        Built::Program(path) => {
            program(&path).map(Found::Program).ok_or_else(|| "the built kubectl does not run".to_owned())
        }
    }
}

/// Debian's package, unpacked. It is the oldest one that people still get from a distribution.
fn old() -> Found {
    let Some(folder) = cache_folder(PACKAGE) else { return no_cache_folder() };
    let path = folder.join("usr/bin/kubectl");
    if let Some(program) = program(&path) {
        return Found::Program(program);
    }
    if let Err(why) = unpack(&folder) {
        return Found::NotHere(why);
    }
    match program(&path) {
        Some(program) => Found::Program(program),
        None => Found::NotHere(format!("the package {PACKAGE} has no kubectl that runs here")),
    }
}

fn unpack(folder: &Path) -> Result<(), String> {
    run(Command::new("apt-get").args(["download", PACKAGE]).current_dir(folder))?;
    let entries = fs::read_dir(folder).map_err(|error| error.to_string())?;
    let package = entries
        .filter_map(|entry| Some(entry.ok()?.path()))
        .find(|path| path.extension().is_some_and(|extension| extension == "deb"))
        .ok_or("apt-get left no package")?;
    let unpacked = run(Command::new("dpkg").arg("-x").arg(&package).arg(folder));
    let _ = fs::remove_file(&package);
    unpacked.map(drop)
}

/// Runs a command, or says why that was not possible.
fn run(command: &mut Command) -> Result<Output, String> {
    let name = command.get_program().to_string_lossy().into_owned();
    let output = command.stdin(Stdio::null()).output().map_err(|error| format!("{name} cannot be run ({error})"))?;
    if output.status.success() {
        return Ok(output);
    }
    let said = String::from_utf8_lossy(&output.stderr);
    Err(format!("{name} failed: {}", said.lines().last().unwrap_or("it does not say why")))
}

fn cache_folder(name: &str) -> Option<PathBuf> {
    let of_user = |variable| std::env::var_os(variable).map(PathBuf::from).filter(|path| path.is_absolute());
    let cache = of_user("XDG_CACHE_HOME").or_else(|| Some(of_user("HOME")?.join(".cache")))?;
    let folder = cache.join("watchkeeper").join(name);
    fs::create_dir_all(&folder).ok()?;
    Some(folder)
}

fn no_cache_folder() -> Found {
    Found::NotHere("there is no cache folder: neither XDG_CACHE_HOME nor HOME names one".to_owned())
}
