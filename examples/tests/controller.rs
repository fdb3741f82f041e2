//! The controller of `examples/controller.rs`, tested as one would test one's own: the real controller, on an API server that
//! speaks the real protocol, with faults on demand, under a clock that waits for nobody.

use std::time::Duration;

use k8s_openapi::api::core::v1::{ConfigMap, Namespace};
use kube_client::Api;
use kube_client::api::{DeleteParams, Patch, PatchParams, PostParams};
use serde_json::{Value, json};
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;
use watchkeeper_apiserver::{ApiServer, Fault, Match};

#[allow(dead_code, unreachable_pub, reason = "main is for the program")]
#[path = "../controller.rs"]
mod controller;

/// A cluster, and the controller that runs on it.
struct Cluster {
    server: ApiServer,
    namespaces: Api<Namespace>,
    token: CancellationToken,
    running: JoinHandle<anyhow::Result<()>>,
}

impl Cluster {
    /// Step one: a server, and the controller with a client of it. Nothing else is needed.
    fn start() -> Self {
        Self::over(watchkeeper_examples::server_with(&[]).expect("a server"))
    }

    fn over(server: ApiServer) -> Self {
        let token = CancellationToken::new();
        let running = tokio::spawn(controller::run(server.client(), token.clone()));
        Self { namespaces: Api::all(server.client()), server, token, running }
    }

    /// Step two: do what users do.
    async fn namespace(&self, name: &str, team: &str) {
        let namespace = json!({"metadata": {"name": name, "labels": {"team": team}}});
        let namespace = serde_json::from_value(namespace).expect("a namespace");
        self.namespaces.create(&PostParams::default(), &namespace).await.expect("created");
    }

    fn settings(&self, namespace: &str) -> Api<ConfigMap> {
        Api::namespaced(self.server.client(), namespace)
    }

    /// Step three: look at what the controller made of it. The clock is paused, so an hour takes no time; within it, whatever
    /// can go right has.
    async fn team(&self, namespace: &str) -> Option<Value> {
        tokio::time::sleep(Duration::from_secs(3600)).await;
        let settings = self.settings(namespace).get_opt("settings").await.expect("an answer")?;
        Some(json!(settings.data))
    }

    async fn stop(self) {
        self.token.cancel();
        self.running.await.expect("no panic").expect("no error");
    }
}

fn of(team: &str) -> Option<Value> {
    Some(json!({"team": team}))
}

#[tokio::test(start_paused = true)]
async fn each_namespace_of_a_team_has_settings_and_others_have_none() {
    let cluster = Cluster::start();
    cluster.namespace("shop", "red").await;
    cluster.namespace("bank", "blue").await;
    assert_eq!(cluster.team("shop").await, of("red"));
    assert_eq!(cluster.team("bank").await, of("blue"));
    assert_eq!(cluster.team("default").await, None);

    let nobody = Patch::Merge(json!({"metadata": {"labels": {"team": null}}}));
    cluster.namespaces.patch("shop", &PatchParams::default(), &nobody).await.expect("patched");
    assert_eq!(cluster.team("shop").await, None);
    cluster.stop().await;
}

#[tokio::test(start_paused = true)]
async fn whoever_meddles_it_is_put_right() {
    let cluster = Cluster::start();
    cluster.namespace("shop", "red").await;
    assert_eq!(cluster.team("shop").await, of("red"));
    let settings = cluster.settings("shop");

    let meddle = json!({"data": {"team": "mine", "more": "x"}});
    settings.patch("settings", &PatchParams::default(), &Patch::Merge(meddle)).await.expect("patched");
    assert_eq!(cluster.team("shop").await, of("red"));

    settings.delete("settings", &DeleteParams::default()).await.expect("deleted");
    assert_eq!(cluster.team("shop").await, of("red"));

    let orphan = json!({"metadata": {"ownerReferences": null}});
    settings.patch("settings", &PatchParams::default(), &Patch::Merge(orphan)).await.expect("patched");
    assert_eq!(cluster.team("shop").await, of("red"));
    let owners = settings.get("settings").await.expect("there").metadata.owner_references;
    assert_eq!(owners.map(|owners| owners.len()), Some(1), "it has its owner again");
    cluster.stop().await;
}

#[tokio::test(start_paused = true)]
async fn settings_of_somebody_else_are_left_alone_where_no_team_wants_any() {
    let cluster = Cluster::start();
    let theirs = json!({"metadata": {"name": "settings", "namespace": "default"}, "data": {"theirs": "x"}});
    let theirs = serde_json::from_value(theirs).expect("a ConfigMap");
    cluster.settings("default").create(&PostParams::default(), &theirs).await.expect("created");
    cluster.namespace("shop", "red").await;
    assert_eq!(cluster.team("shop").await, of("red"));
    // Another label brings the namespace up.
    let other = Patch::Merge(json!({"metadata": {"labels": {"tier": "x"}}}));
    cluster.namespaces.patch("default", &PatchParams::default(), &other).await.expect("patched");
    assert_eq!(cluster.team("default").await, Some(json!({"theirs": "x"})));
    cluster.stop().await;
}

#[tokio::test(start_paused = true)]
async fn what_happened_while_it_was_away_is_put_right_when_it_comes_back() {
    let cluster = Cluster::start();
    cluster.namespace("shop", "red").await;
    assert_eq!(cluster.team("shop").await, of("red"));
    let server = cluster.server.clone();
    cluster.stop().await;

    let cluster_without: Api<ConfigMap> = Api::namespaced(server.client(), "shop");
    cluster_without.delete("settings", &DeleteParams::default()).await.expect("deleted");
    let cluster = Cluster::over(server);
    assert_eq!(cluster.team("shop").await, of("red"));
    cluster.stop().await;
}

#[tokio::test(start_paused = true)]
async fn writes_that_fail_are_tried_again() {
    for fault in [Fault::status(500, "InternalError"), Fault::status(429, "TooManyRequests"), Fault::bad_gateway()] {
        let cluster = Cluster::start();
        let creations = Match::verb("create", "configmaps").times(5);
        let rule = cluster.server.faults().on(creations).then(fault);
        cluster.namespace("shop", "red").await;
        assert_eq!(cluster.team("shop").await, of("red"));
        assert_eq!(rule.injected(), 5, "each was tried, and failed");
        cluster.stop().await;
    }
}

#[tokio::test(start_paused = true)]
async fn watches_that_break_and_versions_that_are_forgotten_hide_nothing() {
    let cluster = Cluster::start();
    cluster.namespace("shop", "red").await;
    assert_eq!(cluster.team("shop").await, of("red"));
    for (round, team) in ["blue", "green", "red"].into_iter().enumerate() {
        // While nobody watches, the namespace goes to another team, and what happened is forgotten.
        let refused =
            cluster.server.faults().on(Match::watch("namespaces")).then(Fault::status(503, "ServiceUnavailable"));
        cluster.server.faults().cut();
        let to = Patch::Merge(json!({"metadata": {"labels": {"team": team}}}));
        cluster.namespaces.patch("shop", &PatchParams::default(), &to).await.expect("patched");
        cluster.server.compact(cluster.server.storage().revision());
        tokio::time::sleep(Duration::from_secs(30)).await;
        refused.remove();
        assert_eq!(cluster.team("shop").await, of(team), "round {round}");
    }
    cluster.stop().await;
}
