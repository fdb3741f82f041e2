//! A server that comes and goes, and a kind that does.

use std::time::Duration;

use anyhow::ensure;
use tokio::time::{Instant, sleep};
use watchkeeper::Reason;
use watchkeeper_e2e::{Failure, User};

use super::{PAUSE, Size, client};
use crate::case::{Informers, Outcome, Rules};
use crate::kinds::{KINDS, Kind};
use crate::stage::Stage;
use crate::views::{self, How};

/// The API server is told to stop, and started again.
pub(super) async fn restart(stage: &mut Stage, size: Size) -> Result<Outcome, Failure> {
    restarted(stage, size, "restart", false).await
}

/// The API server is killed, and started again.
pub(super) async fn kill(stage: &mut Stage, size: Size) -> Result<Outcome, Failure> {
    restarted(stage, size, "kill", true).await
}

async fn restarted(stage: &mut Stage, size: Size, name: &str, kill: bool) -> Result<Outcome, Failure> {
    // Not through the proxy, so that a server that is away refuses connections.
    let client = watchkeeper::client(stage.cluster.config(User::Admin))?;
    let informers = Informers::start(&client, name, views::all(), How::default()).await?;
    let mut churn = stage.churn(&KINDS, PAUSE);
    churn.write(size.changes / 2).await?;
    sleep(Duration::from_millis(1500)).await;
    let began = Instant::now();
    if kill {
        stage.cluster.kill_apiserver().await?;
        stage.cluster.start_apiserver().await?;
    } else {
        stage.cluster.restart_apiserver().await?;
    }
    let away = began.elapsed();
    churn.write(size.changes / 2).await?;
    // They wait for longer and longer, while there is no server.
    informers.gaps(1, Duration::from_secs(120)).await?;
    informers.listen_late()?;
    let changes = churn.stop().await?;
    // A server that has just begun knows no versions from before: 410, once. Of custom kinds it knows nothing at first, and
    // says 503. One that is about to end takes a last watch, and ends it at once.
    let rules = Rules {
        relists: 2,
        reasons: &[Reason::Expired, Reason::Other, Reason::VeryShortWatch],
        gaps: 1,
        most_gaps: u64::MAX,
        blind: away * 3 + Duration::from_secs(15),
        patience: Duration::from_secs(60),
        ..Rules::default()
    };
    informers.finish(stage, changes, rules).await
}

/// The custom kind is taken away with all its objects, and comes again.
pub(super) async fn definition(stage: &mut Stage, size: Size) -> Result<Outcome, Failure> {
    let client = client(stage, User::Admin, false)?;
    let views = views::all().into_iter().filter(|view| matches!(view.kind, Kind::Sails | Kind::Nodes)).collect();
    let informers = Informers::start(&client, "definition-again", views, How::default()).await?;
    let mut churn = stage.churn(&[Kind::Nodes, Kind::ConfigMaps], PAUSE);
    churn.write(size.changes / 2).await?;
    sleep(Duration::from_millis(1500)).await;
    stage.undefine().await?;
    // Each object was deleted, and each deletion told.
    let deadline = Instant::now() + Duration::from_secs(60);
    for watched in informers.all.iter().filter(|watched| watched.view.kind == Kind::Sails) {
        while !watched.informer.store().is_empty() {
            ensure!(Instant::now() < deadline, "{} has {} left", watched.tag, watched.informer.store().len());
            sleep(Duration::from_millis(20)).await;
        }
        // The server ends their watches in its own time, and then knows no such kind.
        while !watched.noted().errors.iter().any(watchkeeper::Error::is_not_found) {
            ensure!(Instant::now() < deadline, "{} still watches: {:?}", watched.tag, watched.informer.status());
            sleep(Duration::from_millis(20)).await;
        }
    }
    churn.write(size.changes / 2).await?;
    stage.define().await?;
    stage.fill(&[Kind::Sails], size.objects).await?;
    let changes = churn.stop().await?;
    // There is no such kind for a while, which is asked for again and again, more and more slowly.
    let rules = Rules {
        relists: 10,
        most_gaps: u64::MAX,
        reasons: &[Reason::Other, Reason::Expired],
        blind: Duration::from_secs(90),
        patience: Duration::from_secs(120),
        ..Rules::default()
    };
    for watched in informers.all.iter().filter(|watched| watched.view.kind == Kind::Nodes) {
        let status = watched.informer.status();
        let untouched = status.partitions.iter().all(|(_, status)| status.gaps == 0 && status.relists.is_empty());
        ensure!(untouched, "{} has nothing to do with it: {status:?}", watched.tag);
    }
    let outcome = informers.finish(stage, changes, rules).await?;
    ensure!(outcome.refused > 0, "nothing was refused: {outcome:?}");
    ensure!(outcome.again <= outcome.lists / 2, "it is enough to list once again: {outcome:?}");
    Ok(outcome)
}
