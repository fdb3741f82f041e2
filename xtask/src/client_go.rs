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
    let mut passed = true;
    // client-go writes built-in kinds as protobuf, unless it is told otherwise. Both are common.
    for content_type in ["", "application/json"] {
        println!("client-go, bodies in {}:", if content_type.is_empty() { "protobuf" } else { content_type });
        let mut command = Command::new(&program);
        command.arg("--kubeconfig").arg(cluster.kubeconfig());
        command.arg(format!("--controllers={}", cluster.controllers)).arg(format!("--content-type={content_type}"));
        let status = command.status().map_err(|error| format!("{} cannot be run: {error}", program.display()))?;
        passed &= status.success();
    }
    cluster.stop()?;
    Ok(passed)
}
