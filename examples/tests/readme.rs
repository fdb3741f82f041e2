//! The program of the README is this one, and does what it says: on a server with a kubeconfig, like any other program.

use std::process::Command;

use serde_json::json;
use watchkeeper_apiserver::{ApiServer, ListenOptions};

const PROGRAM: &str = include_str!("../readme.rs");

#[test]
fn the_readme_shows_the_program_that_is_tested() {
    let (_, program) = PROGRAM.split_once("\n\n").expect("a comment on top");
    let readme = std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../README.md")).expect("README.md");
    assert!(readme.contains(program), "README.md does not have the text of examples/readme.rs");
}

#[tokio::test]
async fn the_program_of_the_readme_runs() -> anyhow::Result<()> {
    let server = ApiServer::new();
    for (name, node) in [("web-0", "node-1"), ("web-1", "node-2"), ("db-0", "node-1")] {
        server.create(json!({
            "kind": "Pod", "apiVersion": "v1", "metadata": {"name": name, "namespace": "default"},
            "spec": {"nodeName": node, "containers": [{"name": "main"}]},
        }))?;
    }
    let listening = server.listen(ListenOptions::with_tls()).await?;
    let folder = std::env::temp_dir().join(format!("watchkeeper-readme-{}", std::process::id()));
    std::fs::create_dir_all(&folder)?;
    let kubeconfig = folder.join("kubeconfig");
    listening.write_kubeconfig(&kubeconfig)?;

    let program = env!("CARGO_BIN_EXE_readme");
    let output =
        tokio::task::spawn_blocking(move || Command::new(program).env("KUBECONFIG", &kubeconfig).output()).await??;
    std::fs::remove_dir_all(&folder)?;
    let text = String::from_utf8(output.stdout)?;
    assert!(output.status.success(), "{text}{}", String::from_utf8_lossy(&output.stderr));
    let mut lines: Vec<&str> = text.lines().collect();
    lines.sort_unstable();
    assert_eq!(
        lines,
        [
            "+ default/db-0",
            "+ default/web-0",
            "+ default/web-1",
            "on node-1: Some(\"db-0\")",
            "on node-1: Some(\"web-0\")"
        ]
    );
    Ok(())
}
