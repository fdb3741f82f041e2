//! Versions that are forgotten: 410.

use std::time::Duration;

use anyhow::ensure;
use tokio::time::{Instant, sleep};
use watchkeeper::Reason;
use watchkeeper_e2e::{Failure, User};

use super::{PAUSE, Size, client};
use crate::audit::Requests;
use crate::case::{Informers, Outcome, Rules};
use crate::kinds::KINDS;
use crate::stage::Stage;
use crate::views::{self, How};

/// Without a watch cache, and with etcd compacted every second: who is away for longer has lost the thread.
pub(super) async fn watch(stage: &mut Stage, size: Size) -> Result<Outcome, Failure> {
    let client = client(stage, User::Admin, false)?;
    let informers = Informers::start(&client, "compaction-watch", views::all(), How::default()).await?;
    let mut churn = stage.churn(&KINDS, PAUSE);
    churn.write(size.changes / 2).await?;
    sleep(Duration::from_millis(1500)).await;
    stage.proxy.close(true);
    // What was known a second ago is forgotten in the next.
    churn.write(size.changes / 2).await?;
    sleep(Duration::from_millis(2500)).await;
    stage.proxy.close(false);
    informers.gaps(1, Duration::from_secs(60)).await?;
    churn.write(size.changes / 4).await?;
    let changes = churn.stop().await?;
    once_each(informers, stage, changes).await
}

/// With a watch cache, which remembers no more than what has happened since the API server began.
pub(super) async fn restart(stage: &mut Stage, size: Size) -> Result<Outcome, Failure> {
    let client = client(stage, User::Admin, false)?;
    let informers = Informers::start(&client, "compaction-restart", views::all(), How::default()).await?;
    let mut churn = stage.churn(&KINDS, PAUSE);
    churn.write(size.changes / 2).await?;
    sleep(Duration::from_millis(1500)).await;
    stage.proxy.close(true);
    churn.write(size.changes / 2).await?;
    stage.cluster.compact().await?;
    stage.cluster.restart_apiserver().await?;
    stage.proxy.close(false);
    informers.gaps(1, Duration::from_secs(120)).await?;
    churn.write(size.changes / 4).await?;
    let changes = churn.stop().await?;
    once_each(informers, stage, changes).await
}

/// Each of them was told 410 once, and listed once for that.
async fn once_each(informers: Informers, stage: &Stage, changes: u64) -> Result<Outcome, Failure> {
    for watched in &informers.all {
        for (namespace, status) in watched.informer.status().partitions {
            let expired = status.relists.get(&Reason::Expired).copied().unwrap_or_default();
            ensure!(expired == 1, "{} in {namespace:?} was told 410 {expired} times", watched.tag);
        }
    }
    let rules = Rules {
        relists: 1,
        reasons: &[Reason::Expired],
        gaps: 1,
        most_gaps: u64::MAX,
        blind: Duration::from_secs(90),
        patience: Duration::from_secs(60),
        ..Rules::default()
    };
    let outcome = informers.finish(stage, changes, rules).await?;
    ensure!(outcome.again > 0, "nothing was listed again: {outcome:?}");
    Ok(outcome)
}

/// Lists come in small pages, and between two pages etcd is compacted.
pub(super) async fn continues(stage: &mut Stage, size: Size) -> Result<Outcome, Failure> {
    let client = client(stage, User::Admin, false)?;
    let mut churn = stage.churn(&KINDS, PAUSE);
    churn.write(size.changes / 4).await?;
    let how = How { page_size: Some(3), ..How::default() };
    let informers = Informers::begin(&client, "compaction-continue", views::all(), how)?;
    let deadline = Instant::now() + Duration::from_secs(20);
    let expired = loop {
        stage.cluster.compact().await?;
        let asked = Requests::read(&stage.cluster.folder().join("audit.log"), &informers.tags)?;
        let expired: u64 = asked.values().map(|requests| requests.expired_pages).sum();
        if expired > 0 || Instant::now() > deadline {
            break expired;
        }
    };
    ensure!(expired > 0, "no page was too late");
    informers.synced().await?;
    churn.write(size.changes / 4).await?;
    let changes = churn.stop().await?;
    // The list's own version may be forgotten before the watch begins.
    let rules = Rules {
        relists: 8,
        most_gaps: u64::MAX,
        reasons: &[Reason::Expired],
        blind: Duration::from_secs(60),
        patience: Duration::from_secs(60),
        ..Rules::default()
    };
    informers.finish(stage, changes, rules).await
}
