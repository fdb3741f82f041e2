//! What goes with its owner, and with its namespace, by the hands of Kubernetes' own controllers.

use anyhow::ensure;
use k8s_openapi::api::apps::v1::{Deployment, ReplicaSet};
use k8s_openapi::api::core::v1::{ConfigMap, Namespace, Pod, Secret, ServiceAccount};
use kube::api::{DeleteParams, ListParams};
use kube::{Api, Client, Resource, ResourceExt as _};
use serde::de::DeserializeOwned;
use serde_json::json;
use watchkeeper_e2e::Failure;

use crate::stage::Stage;
use crate::wait::{differs, until};
use crate::workloads::{create, deployment_of, namespace, settled};

/// A deployment with its replica set and pods, and what hangs below one of the pods.
struct Tree {
    client: Client,
    namespace: String,
    deployments: Api<Deployment>,
}

const PODS: usize = 6;

impl Tree {
    async fn grow(stage: &Stage, prefix: &str) -> Result<Self, Failure> {
        let client = stage.client();
        let namespace = namespace(&client, prefix).await?;
        let deployments: Api<Deployment> = Api::namespaced(client.clone(), &namespace);
        create(&deployments, deployment_of("web", i32::try_from(PODS)?)).await?;
        settled(&client, &namespace, "web").await?;
        let tree = Self { client, namespace, deployments };
        // Two more levels, so that it is no special case of workloads.
        let pod = tree.api::<Pod>().list(&ListParams::default()).await?.items.remove(0);
        let owner = json!({"apiVersion": "v1", "kind": "Pod", "name": pod.name_any(), "uid": pod.uid()});
        let map = json!({"metadata": {"name": "below", "ownerReferences": [owner]}});
        let map = create(&tree.api::<ConfigMap>(), map).await?;
        let owner = json!({"apiVersion": "v1", "kind": "ConfigMap", "name": "below", "uid": map.uid()});
        create(&tree.api::<Secret>(), json!({"metadata": {"name": "lowest", "ownerReferences": [owner]}})).await?;
        Ok(tree)
    }

    fn api<K>(&self) -> Api<K>
    where
        K: Resource<Scope = k8s_openapi::NamespaceResourceScope>,
        K::DynamicType: Default,
    {
        Api::namespaced(self.client.clone(), &self.namespace)
    }

    /// How many there are of each kind, from the top down. (Of the maps only ours: each namespace may get one.)
    async fn counts(&self) -> Result<[usize; 5], Failure> {
        let below = self.api::<ConfigMap>().get_opt("below").await?;
        let lowest = self.api::<Secret>().get_opt("lowest").await?;
        Ok([
            count(&self.deployments).await?,
            count(&self.api::<ReplicaSet>()).await?,
            count(&self.api::<Pod>()).await?,
            usize::from(below.is_some()),
            usize::from(lowest.is_some()),
        ])
    }

    async fn is_gone(&self) -> Result<(), Failure> {
        until("the tree goes", async || Ok(differs("objects", self.counts().await?, [0; 5]))).await
    }
}

async fn count<K: Clone + DeserializeOwned + std::fmt::Debug>(api: &Api<K>) -> Result<usize, Failure> {
    Ok(api.list(&ListParams::default()).await?.items.len())
}

/// The owner goes first.
pub(super) async fn background(stage: &Stage) -> Result<String, Failure> {
    let tree = Tree::grow(stage, "background").await?;
    tree.deployments.delete("web", &DeleteParams::background()).await?;
    ensure!(tree.deployments.get_opt("web").await?.is_none(), "the owner waits");
    tree.is_gone().await?;
    Ok(format!("Deployment, ReplicaSet, {PODS} Pods, a ConfigMap and a Secret, one below the other"))
}

/// The owner goes last.
pub(super) async fn foreground(stage: &Stage) -> Result<String, Failure> {
    let tree = Tree::grow(stage, "foreground").await?;
    let deleted = tree.deployments.delete("web", &DeleteParams::foreground()).await?;
    let waits = deleted.left().is_some_and(|owner| owner.finalizers() == ["foregroundDeletion"]);
    ensure!(waits, "the owner does not wait");
    let mut early = None;
    until("the owner goes", async || {
        // What it owns is counted first: it must not be there when the owner is gone.
        let below = count(&tree.api::<ReplicaSet>()).await? + count(&tree.api::<Pod>()).await?;
        let owner = tree.deployments.get_opt("web").await?;
        if owner.is_none() {
            let now = count(&tree.api::<ReplicaSet>()).await? + count(&tree.api::<Pod>()).await?;
            early = (now > 0).then_some(now);
        }
        Ok(owner.map(|_| format!("{below} below it")))
    })
    .await?;
    ensure!(early.is_none(), "the owner went before {early:?} of its own");
    tree.is_gone().await?;
    Ok("the same tree, its root last".to_owned())
}

/// The owner goes, and what it owned stays and belongs to nobody.
pub(super) async fn orphan(stage: &Stage) -> Result<String, Failure> {
    let tree = Tree::grow(stage, "orphan").await?;
    tree.deployments.delete("web", &DeleteParams::orphan()).await?;
    until("the owner goes", async || Ok(tree.deployments.get_opt("web").await?.map(|_| "it is there".to_owned())))
        .await?;
    ensure!(tree.counts().await? == [0, 1, PODS, 1, 1], "left: {:?}", tree.counts().await?);
    let set = tree.api::<ReplicaSet>().list(&ListParams::default()).await?.items.remove(0);
    ensure!(set.owner_references().is_empty(), "the replica set still has an owner");
    // A new deployment takes it over, as it does in a cluster.
    create(&tree.deployments, deployment_of("web", i32::try_from(PODS)?)).await?;
    settled(&tree.client, &tree.namespace, "web").await?;
    let adopted = tree.api::<ReplicaSet>().list(&ListParams::default()).await?.items;
    ensure!(adopted.len() == 1 && adopted[0].uid() == set.uid(), "the replica set was not taken over");
    ensure!(adopted[0].owner_references().len() == 1, "the replica set has no owner");
    Ok(format!("a ReplicaSet and {PODS} Pods stayed, and a new Deployment took them over"))
}

/// All that is in a namespace goes, and then it does.
pub(super) async fn namespace_goes(stage: &Stage) -> Result<String, Failure> {
    let tree = Tree::grow(stage, "namespace").await?;
    let namespaces: Api<Namespace> = Api::all(tree.client.clone());
    // A controller makes it in each namespace.
    let accounts: Api<ServiceAccount> = tree.api();
    until("its account", async || Ok(accounts.get_opt("default").await?.is_none().then(|| "none".to_owned()))).await?;
    let free = json!({"metadata": {"name": "held", "finalizers": ["e2e.watchkeeper/hold"]}});
    create(&tree.api::<ConfigMap>(), free).await?;
    namespaces.delete(&tree.namespace, &DeleteParams::default()).await?;
    // It says what holds it.
    until("what holds it is said", async || {
        let conditions = namespaces.get(&tree.namespace).await?.status.and_then(|status| status.conditions);
        let holds =
            conditions.iter().flatten().any(|c| c.type_ == "NamespaceFinalizersRemaining" && c.status == "True");
        Ok((!holds).then(|| format!("{conditions:?}")))
    })
    .await?;
    let patch = kube::api::Patch::Merge(json!({"metadata": {"finalizers": null}}));
    tree.api::<ConfigMap>().patch("held", &kube::api::PatchParams::default(), &patch).await?;
    until("it goes", async || {
        let left = namespaces.get_opt(&tree.namespace).await?;
        Ok(left.map(|namespace| format!("{:?}", namespace.status.and_then(|status| status.conditions))))
    })
    .await?;
    ensure!(tree.counts().await? == [0; 5], "left: {:?}", tree.counts().await?);
    Ok("a deployment's tree, an account and a held ConfigMap".to_owned())
}
