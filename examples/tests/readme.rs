//! The program of the README is this one, and does what it says: on a server with a kubeconfig, like any other program.

use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};

use anyhow::Context as _;
use serde_json::json;
use watchkeeper_apiserver::{ApiServer, ListenOptions};

const PROGRAM: &str = include_str!("../readme.rs");

/// `cargo test` has built it beside this test. (`cargo test --test readme` alone has not.)
fn program() -> Command {
    let test = std::env::current_exe().expect("a path");
    let folder = test.parent().and_then(Path::parent).expect("the folder of the build");
    let mut program = Command::new(folder.join("examples").join("readme"));
    program.env_remove("KUBERNETES_SERVICE_HOST");
    program
}

#[test]
fn the_readme_shows_the_program_that_is_tested() {
    let (_, program) = PROGRAM.split_once("\n\n").expect("a comment on top");
    let readme = std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../README.md")).expect("README.md");
    assert!(readme.contains(program), "README.md does not have the text of examples/readme.rs");
}

/// Until Ctrl-C, which stops it cleanly.
#[cfg(unix)]
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_program_of_the_readme_runs() -> anyhow::Result<()> {
    let server = ApiServer::new();
    let pod = |name: &str, node: &str| {
        json!({
            "kind": "Pod", "apiVersion": "v1", "metadata": {"name": name, "namespace": "default"},
            "spec": {"nodeName": node, "containers": [{"name": "main"}]}, "status": {"phase": "Running"},
        })
    };
    for (name, node) in [("web-0", "node-1"), ("web-1", "node-2"), ("db-0", "node-1")] {
        server.put(pod(name, node))?;
    }
    let listening = server.listen(ListenOptions::with_tls()).await?;
    let folder = std::env::temp_dir().join(format!("watchkeeper-readme-{}", std::process::id()));
    std::fs::create_dir_all(&folder)?;
    let kubeconfig = folder.join("kubeconfig");
    listening.write_kubeconfig(&kubeconfig)?;

    let ran = tokio::task::spawn_blocking(move || -> anyhow::Result<Vec<String>> {
        let mut program = program().env("KUBECONFIG", &kubeconfig).stdout(Stdio::piped()).spawn()?;
        let mut lines = BufReader::new(program.stdout.take().context("a pipe")?).lines();
        let mut printed: Vec<String> = lines.by_ref().take(4).collect::<Result<_, _>>()?;
        // Something happens, and is told.
        let pods = server.kind("", "pods").context("a server knows pods")?;
        server.remove(&pods, "default/web-1");
        printed.extend(lines.next().transpose()?);
        Command::new("kill").args(["-INT", &program.id().to_string()]).status()?;
        anyhow::ensure!(program.wait()?.success(), "it was not stopped cleanly");
        printed[1..4].sort_unstable();
        Ok(printed)
    })
    .await??;
    std::fs::remove_dir_all(&folder)?;
    let expected = [
        "2 pods on node-1",
        "default/db-0 is Running",
        "default/web-0 is Running",
        "default/web-1 is Running",
        "default/web-1 is gone",
    ];
    assert_eq!(ran, expected);
    Ok(())
}

/// Without a cluster the error says so, and what to do.
#[test]
fn without_a_cluster_the_program_says_what_is_missing() {
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
