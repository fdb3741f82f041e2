//! A user who may read, may not, and may again.

use std::time::Duration;

use anyhow::ensure;
use http::Method;
use serde_json::json;
use tokio::time::{Instant, sleep};
use watchkeeper::Reason;
use watchkeeper_e2e::{Failure, User};

use super::{PAUSE, Size, client};
use crate::case::{Informers, Outcome, Rules};
use crate::digest::Digests;
use crate::kinds::KINDS;
use crate::stage::{Stage, make, write};
use crate::views::{self, How};

const RBAC: &str = "/apis/rbac.authorization.k8s.io/v1";

/// The right to list and watch is taken away, which a watch notices when it is opened again; and it is given back.
pub(super) async fn lost(stage: &mut Stage, size: Size) -> Result<Outcome, Failure> {
    let role = json!({
        "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole", "metadata": {"name": "e2e-reader"},
        "rules": [{"apiGroups": ["*"], "resources": ["*"], "verbs": ["get", "list", "watch"]}],
    });
    make(&stage.client, &format!("{RBAC}/clusterroles"), &role).await?;
    grant(stage).await?;
    let client = client(stage, User::Powerless, false)?;
    // The rule takes a moment to be known.
    sleep(Duration::from_secs(1)).await;
    let informers = Informers::start(&client, "no-right-to-list", views::all(), How::default()).await?;
    let mut churn = stage.churn(&KINDS, PAUSE);
    churn.write(size.changes / 4).await?;
    revoke(stage).await?;
    sleep(Duration::from_millis(1500)).await;
    stage.proxy.cut();
    let deadline = Instant::now() + Duration::from_secs(30);
    for watched in &informers.all {
        // Each namespace of it was refused, at least twice.
        let namespaces = watched.view.partitions().len();
        let refusals = || watched.noted().errors.iter().filter(|error| error.is_forbidden()).count();
        while refusals() < 2 * namespaces {
            ensure!(Instant::now() < deadline, "{} was refused {} times", watched.tag, refusals());
            sleep(Duration::from_millis(20)).await;
        }
    }
    // What there was stays, though the server has gone on.
    let kept = |informers: &Informers| -> Result<Vec<Digests>, Failure> {
        informers.all.iter().map(|watched| Digests::of_cache(&watched.informer.store().snapshot())).collect()
    };
    let before = kept(&informers)?;
    churn.write(size.changes / 2).await?;
    ensure!(before.iter().all(|digests| !digests.is_empty()), "a cache was emptied");
    ensure!(before == kept(&informers)?, "a cache moved without the right to read");
    grant(stage).await?;
    let changes = churn.stop().await?;
    let rules = Rules {
        relists: 8,
        reasons: &[Reason::Other],
        gaps: 1,
        most_gaps: u64::MAX,
        blind: Duration::from_secs(90),
        patience: Duration::from_secs(90),
        ..Rules::default()
    };
    // The marker is waited for with that patience; until then there may still be no watch.
    informers.gaps(1, rules.patience).await?;
    let outcome = informers.finish(stage, changes, rules).await?;
    ensure!(outcome.again == outcome.lists / 2, "each lists once again, when it may: {outcome:?}");
    Ok(outcome)
}

async fn grant(stage: &Stage) -> Result<(), Failure> {
    let binding = json!({
        "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRoleBinding", "metadata": {"name": "e2e-reader"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "e2e-reader"},
        "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": "powerless"}],
    });
    make(&stage.client, &format!("{RBAC}/clusterrolebindings"), &binding).await
}

async fn revoke(stage: &Stage) -> Result<(), Failure> {
    write(&stage.client, Method::DELETE, &format!("{RBAC}/clusterrolebindings/e2e-reader"), None).await?;
    Ok(())
}
