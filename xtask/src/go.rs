//! Programs in Go, where there is Go.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// What became of a program.
pub(super) enum Built {
    Program(PathBuf),
    /// There is no Go, or its modules cannot be had.
    NotHere(String),
    Failed,
}

/// Builds the module in a folder of the repository.
pub(super) fn build(module: &str, program: &Path, linker: &str) -> Built {
    let root = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/.."));
    let go = |arguments: &[&str]| {
        eprintln!("$ go {}", arguments.join(" "));
        let mut command = Command::new("go");
        // As the module says, whatever else Go was told.
        command.args(arguments).env("GOWORK", "off").current_dir(root.join(module));
        command
    };
    // What is missing is a matter of this machine; what does not build then is a matter of the program.
    match go(&["mod", "download"]).stdin(Stdio::null()).output() {
        Err(error) => return Built::NotHere(format!("go cannot be run ({error})")),
        Ok(output) if !output.status.success() => {
            let said = String::from_utf8_lossy(&output.stderr);
            let last = said.lines().last().unwrap_or("it does not say why");
            return Built::NotHere(format!("its modules cannot be had: {last}"));
        }
        Ok(_) => {}
    }
    let Ok(program) = std::path::absolute(program) else { return Built::Failed };
    let output = program.to_string_lossy();
    match go(&["build", "-mod=readonly", "-buildvcs=false", "-ldflags", linker, "-o", &output, "."]).status() {
        Ok(status) if status.success() => Built::Program(program),
        _ => Built::Failed,
    }
}
