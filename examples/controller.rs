//! A complete small controller: each namespace has a ConfigMap `settings` that says which team it belongs to, as the
//! namespace's label `team` does, and keeps it, whoever meddles.
//!
//! ```text
//! cargo run --example controller                some meddling on a server in memory
//! cargo run --example controller -- --cluster   the current kubeconfig's cluster, until Ctrl-C; it writes ConfigMaps there
//! ```
//!
//! Events only say which namespace to look at. [`Reconciler::reconcile`] then reads what there is and writes what is missing,
//! each time from the beginning: it does not matter what happened, how often, or whether this program was running then.

use std::sync::Arc;

use k8s_openapi::api::core::v1::{ConfigMap, Namespace};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;
use kube_client::api::{DeleteParams, Patch, PatchParams, PostParams};
use kube_client::{Api, Client, Resource as _};
use serde_json::json;
use tokio_util::sync::CancellationToken;
use watchkeeper::{
    Controller, InformerFactory, Lister, ObjectKey, Outcome, Predicate, RateLimitingQueue, ReconcileError, limiter,
};
use watchkeeper_apiserver::ApiServer;
use watchkeeper_examples::{cluster, pause, server_with, until_ctrl_c, wants_cluster};

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    if wants_cluster()? { run(cluster().await?, until_ctrl_c()).await } else { in_memory().await }
}

/// The controller, until `token` is cancelled.
pub async fn run(client: Client, token: CancellationToken) -> anyhow::Result<()> {
    let factory = InformerFactory::new(client.clone());
    let (namespaces, settings) = (factory.informer::<Namespace>(), factory.informer::<ConfigMap>());
    let reconciler = Arc::new(Reconciler { client, namespaces: namespaces.lister(), settings: settings.lister() });

    let queue = RateLimitingQueue::new(limiter::default_controller());
    let controller = Controller::new("settings", queue)
        .workers(4)
        // What else changes in a namespace is none of our business.
        .reconciles_if(&namespaces, Predicate::labels())
        // A ConfigMap that somebody changed or deleted leads to the namespace that owns it.
        .owns::<Namespace, ConfigMap>(&settings);
    factory.start(token.clone())?;
    controller
        .run(token, move |key| {
            let reconciler = reconciler.clone();
            async move { reconciler.reconcile(&key).await }
        })
        .await?;
    factory.shutdown().await;
    Ok(())
}

/// What reconciling needs: where to read, which costs nothing, and where to write.
struct Reconciler {
    client: Client,
    namespaces: Lister<Namespace>,
    settings: Lister<ConfigMap>,
}

const NAME: &str = "settings";

impl Reconciler {
    /// Makes the ConfigMap of a namespace what it should be. An error is tried again, after a backoff.
    async fn reconcile(&self, key: &ObjectKey) -> Result<Outcome, ReconcileError> {
        let name = key.name();
        // One that is gone, or going, takes what is in it along.
        let Some(namespace) = self.namespaces.get(key).filter(|namespace| !namespace.is_deleting()) else {
            return Ok(Outcome::Done);
        };
        let api: Api<ConfigMap> = Api::namespaced(self.client.clone(), name);
        let present = self.settings.namespace(name).get(NAME);
        let Some(team) = namespace.labels().get("team") else {
            // It belongs to nobody: there shall be no settings, unless they are somebody else's.
            let Some(present) = present else { return Ok(Outcome::Done) };
            if present.decode()?.metadata.owner_references == owners(&*namespace.decode()?) {
                api.delete(NAME, &DeleteParams::default()).await?;
                println!("{name}: deleted");
            }
            return Ok(Outcome::Done);
        };

        let wanted = wanted(&*namespace.decode()?, team);
        let Some(present) = present else {
            return match api.create(&PostParams::default(), &wanted).await {
                Ok(_) => {
                    println!("{name}: created for team {team}");
                    Ok(Outcome::Done)
                }
                // The cache has not heard of it yet: it was made a moment ago, perhaps by us before a restart.
                Err(error) if is_conflict(&error) => {
                    let there = api.get(NAME).await?;
                    println!(
                        "{name}: was there already, {}",
                        if there.data == wanted.data { "as it should be" } else { "otherwise" }
                    );
                    Ok(Outcome::Requeue)
                }
                Err(error) => Err(error.into()),
            };
        };
        let present = present.decode()?;
        if present.metadata.owner_references != wanted.metadata.owner_references {
            // All of it is replaced, if it is still what we have seen.
            let mut update = wanted.clone();
            update.metadata.resource_version = present.metadata.resource_version.clone();
            api.replace(NAME, &PostParams::default(), &update).await?;
            println!("{name}: taken over for team {team}");
        } else if present.data != wanted.data {
            // A merge patch leaves keys that we do not name, so those that are too many are named too.
            let too_many = present
                .data
                .iter()
                .flatten()
                .filter(|(key, _)| !wanted.data.iter().flatten().any(|(ours, _)| ours == *key));
            let mut data = json!(wanted.data);
            for (key, _) in too_many {
                data[key.as_str()] = json!(null);
            }
            api.patch(NAME, &PatchParams::default(), &Patch::Merge(json!({"data": data}))).await?;
            println!("{name}: put right for team {team}");
        }
        Ok(Outcome::Done)
    }
}

/// What the ConfigMap of a namespace should be. It belongs to the namespace, so events of it lead there.
fn wanted(namespace: &Namespace, team: &str) -> ConfigMap {
    let metadata = &namespace.metadata;
    serde_json::from_value(json!({
        "metadata": {
            "name": NAME,
            "namespace": metadata.name,
            "ownerReferences": owners(namespace),
        },
        "data": {"team": team},
    }))
    .expect("a ConfigMap")
}

/// The namespace, as the owner that says how it should be.
fn owners(namespace: &Namespace) -> Option<Vec<OwnerReference>> {
    namespace.controller_owner_ref(&()).map(|owner| vec![owner])
}

fn is_conflict(error: &kube_client::Error) -> bool {
    matches!(error, kube_client::Error::Api(status) if status.code == 409)
}

/// A server on which somebody meddles.
pub async fn in_memory() -> anyhow::Result<()> {
    let server = server_with(&[])?;
    let token = CancellationToken::new();
    let life = tokio::spawn(live(server.clone(), token.clone()));
    run(server.client(), token).await?;
    life.await?
}

/// What happens in the cluster meanwhile.
async fn live(server: ApiServer, token: CancellationToken) -> anyhow::Result<()> {
    let namespaces: Api<Namespace> = Api::all(server.client());
    let settings: Api<ConfigMap> = Api::namespaced(server.client(), "shop");
    let team = |team: Option<&str>| Patch::Merge(json!({"metadata": {"labels": {"team": team}}}));
    let shop = json!({"metadata": {"name": "shop", "labels": {"team": "red"}}});
    namespaces.create(&PostParams::default(), &serde_json::from_value(shop)?).await?;
    pause().await;
    println!("somebody changes it");
    settings
        .patch(NAME, &PatchParams::default(), &Patch::Merge(json!({"data": {"team": "mine", "more": "x"}})))
        .await?;
    pause().await;
    println!("somebody deletes it");
    settings.delete(NAME, &DeleteParams::default()).await?;
    pause().await;
    println!("the shop goes to another team");
    namespaces.patch("shop", &PatchParams::default(), &team(Some("blue"))).await?;
    pause().await;
    println!("settings: {:?}", settings.get(NAME).await?.data);
    println!("the shop goes to nobody");
    namespaces.patch("shop", &PatchParams::default(), &team(None)).await?;
    pause().await;
    token.cancel();
    Ok(())
}
