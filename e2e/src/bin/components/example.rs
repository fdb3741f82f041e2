//! Our example of a controller on the real API server, started as people start it.

use std::path::PathBuf;

use anyhow::{Context as _, ensure};
use k8s_openapi::api::core::v1::{ConfigMap, Namespace};
use kube::api::{DeleteParams, Patch, PatchParams};
use kube::{Api, Client, ResourceExt as _};
use serde_json::json;
use watchkeeper_e2e::{Cluster, Failure, Programs, Settings, User};

use crate::process::Process;
use crate::wait::{differs, until};
use crate::workloads::create;

const NAME: &str = "settings";

pub(super) async fn run(programs: &Programs) -> Result<String, Failure> {
    let cluster = Cluster::start(programs, Settings::default()).await?;
    let folder = tempfile::Builder::new().prefix("watchkeeper-example-").tempdir()?;
    let variables = [("KUBECONFIG", cluster.kubeconfig(User::Admin))];
    let arguments = ["--cluster".to_owned()];
    let mut example = Process::start_with("controller", &program()?, &arguments, &variables, folder.path())?;
    let client = Client::try_from(cluster.config(User::Admin))?;
    let seen = story(&client, &mut example).await;
    let log = example.log()?;
    let seen = seen.with_context(|| format!("the example said:\n{log}"))?;
    let status = example.interrupt().await?;
    ensure!(status.success(), "the example ended with {status}:\n{log}");
    cluster.stop().await?;
    Ok(seen)
}

/// What cargo made of it.
fn program() -> Result<PathBuf, Failure> {
    let program =
        std::env::current_exe()?.with_file_name("examples").join(format!("controller{}", std::env::consts::EXE_SUFFIX));
    let command = "cargo build -p watchkeeper-examples --example controller";
    ensure!(program.exists(), "{} is not built: {command}", program.display());
    Ok(program)
}

async fn story(client: &Client, example: &mut Process) -> Result<String, Failure> {
    let namespaces: Api<Namespace> = Api::all(client.clone());
    let settings: Api<ConfigMap> = Api::namespaced(client.clone(), "shop");
    let patch = PatchParams::default();
    let team = |team: Option<&str>| Patch::Merge(json!({"metadata": {"labels": {"team": team}}}));
    let becomes = async |example: &mut Process, what: &str, team: Option<&str>| {
        until(what, async || {
            example.check()?;
            let data = settings.get_opt(NAME).await?.map(|settings| settings.data.unwrap_or_default());
            let wanted = team.map(|team| [("team".to_owned(), team.to_owned())].into());
            Ok(differs("settings", data, wanted))
        })
        .await
    };

    let shop = create(&namespaces, json!({"metadata": {"name": "shop", "labels": {"team": "red"}}})).await?;
    becomes(example, "they are created", Some("red")).await?;
    let first = settings.get(NAME).await?;
    ensure!(first.owner_references().first().map(|owner| &owner.uid) == shop.uid().as_ref(), "nobody owns them");

    let meddled = Patch::Merge(json!({"data": {"team": "mine", "more": "x"}}));
    settings.patch(NAME, &patch, &meddled).await?;
    becomes(example, "they are put right", Some("red")).await?;

    settings.delete(NAME, &DeleteParams::default()).await?;
    becomes(example, "they are made again", Some("red")).await?;
    ensure!(settings.get(NAME).await?.uid() != first.uid(), "they were never away");

    namespaces.patch("shop", &patch, &team(Some("blue"))).await?;
    becomes(example, "they follow the label", Some("blue")).await?;
    namespaces.patch("shop", &patch, &team(None)).await?;
    becomes(example, "they are deleted", None).await?;
    // One that is no longer there is nothing to it.
    namespaces.patch("shop", &patch, &team(Some("green"))).await?;
    becomes(example, "they are created once more", Some("green")).await?;
    Ok("created, put right, made again after a deletion, changed, deleted, and ended by Ctrl-C".to_owned())
}
