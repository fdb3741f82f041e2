//! client-go itself on our server: informers, leader election, apply and all else that controllers do.

use std::process::Command;

use super::cluster::{Cluster, Options};
use super::go::{self, Built};
use super::serving::binary;

const MODULE: &str = "e2e/client-go";

pub(super) fn run() -> bool {
    try_it().unwrap_or_else(|problem| {
        eprintln!("error: {problem}");
        false
    })
}

fn try_it() -> Result<bool, String> {
    let options = Options::read()?;
    let program = binary("debug").with_file_name(format!("e2e-client-go{}", std::env::consts::EXE_SUFFIX));
    let program = match go::build(MODULE, &program, "-s -w") {
        Built::Program(program) => program,
        Built::Failed => return Err(format!("{MODULE} cannot be built")),
        Built::NotHere(why) => {
            println!("skipped: client-go is not tried on our server, because {why}");
            return Ok(true);
        }
    };
    let cluster = Cluster::start(&options)?;
    let mut command = Command::new(&program);
    command.arg("--kubeconfig").arg(cluster.kubeconfig()).arg(format!("--controllers={}", cluster.controllers));
    let status = command.status().map_err(|error| format!("{} cannot be run: {error}", program.display()))?;
    cluster.stop()?;
    Ok(status.success())
}
