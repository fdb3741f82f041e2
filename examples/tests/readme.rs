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

/// Without a cluster the error says so, and what to do.
#[test]
fn without_a_cluster_the_program_says_what_is_missing() {
    let program = || {
        let mut program = Command::new(env!("CARGO_BIN_EXE_readme"));
        program.env_remove("KUBERNETES_SERVICE_HOST");
        program
    };
    let said = |program: &mut Command| {
        let output = program.output().expect("the program runs");
        assert!(!output.status.success());
        String::from_utf8_lossy(&output.stderr).into_owned()
    };
    let missing = said(program().env("KUBECONFIG", "/nowhere/kubeconfig"));
    assert!(missing.contains("/nowhere/kubeconfig") && missing.contains("set KUBECONFIG"), "{missing}");

    let folder = std::env::temp_dir().join(format!("watchkeeper-broken-{}", std::process::id()));
    std::fs::create_dir_all(&folder).expect("a folder");
    let path = folder.join("kubeconfig");
    std::fs::write(&path, "users: {token: s3cr3t\n").expect("a file");
    let broken = said(program().env("KUBECONFIG", &path));
    std::fs::remove_dir_all(&folder).expect("gone");
    assert!(broken.contains("not valid YAML") && !broken.contains("s3cr3t"), "{broken}");
}
