//! Connections that end, and such that should.

use std::time::Duration;

use anyhow::ensure;
use tokio::time::sleep;
use watchkeeper::Reason;
use watchkeeper_e2e::{Failure, User};

use super::{PAUSE, Size, client};
use crate::case::{Informers, Outcome, Rules};
use crate::kinds::KINDS;
use crate::stage::Stage;
use crate::views::{self, How};

/// Nothing special.
pub(super) async fn plain(stage: &mut Stage, size: Size) -> Result<Outcome, Failure> {
    let client = client(stage, User::Admin, false)?;
    let mut churn = stage.churn(&KINDS, PAUSE);
    // The first lists come while others write.
    churn.write(size.changes / 4).await?;
    let informers = Informers::start(&client, "plain", views::all(), How::default()).await?;
    churn.write(size.changes).await?;
    informers.listen_late()?;
    churn.write(size.changes).await?;
    let changes = churn.stop().await?;
    informers.finish(stage, changes, Rules::default()).await
}

/// All connections are closed in good order, again and again.
pub(super) async fn cut(stage: &mut Stage, size: Size) -> Result<Outcome, Failure> {
    disturbed(stage, size, "cut", |stage| stage.proxy.cut(), Rules::default()).await
}

/// All connections are closed without a word.
pub(super) async fn reset(stage: &mut Stage, size: Size) -> Result<Outcome, Failure> {
    disturbed(stage, size, "reset", |stage| stage.proxy.reset(), Rules::default()).await
}

/// There is no watch cache, and old versions are forgotten every second: that of a watch on which nothing has happened for as
/// long, too, which no bookmark has moved.
pub(super) async fn without_watch_cache(stage: &mut Stage, size: Size) -> Result<Outcome, Failure> {
    let rules = Rules { relists: size.times, reasons: &[Reason::Expired], ..Rules::default() };
    disturbed(stage, size, "no-watch-cache", |stage| stage.proxy.cut(), rules).await
}

async fn disturbed(
    stage: &Stage,
    size: Size,
    name: &str,
    disturb: fn(&Stage),
    rules: Rules,
) -> Result<Outcome, Failure> {
    let client = client(stage, User::Admin, false)?;
    let informers = Informers::start(&client, name, views::all(), How::default()).await?;
    let mut churn = stage.churn(&KINDS, PAUSE);
    for time in 1..=size.times {
        // A watch that has lived for a second is opened again without a list.
        sleep(Duration::from_millis(1500)).await;
        churn.write(size.changes / 4).await?;
        disturb(stage);
        churn.write(size.changes / 4).await?;
        informers.gaps(time, Duration::from_secs(30)).await?;
    }
    informers.listen_late()?;
    let changes = churn.stop().await?;
    // A list takes its time.
    let blind = if rules.relists == 0 { Duration::from_secs(4) } else { rules.blind };
    let rules = Rules { gaps: size.times, blind, ..rules };
    informers.finish(stage, changes, rules).await
}

/// For a while nothing flows, and nothing is closed. What was sent comes later: there is no gap.
pub(super) async fn frozen(stage: &mut Stage, size: Size) -> Result<Outcome, Failure> {
    let client = client(stage, User::Admin, false)?;
    let informers = Informers::start(&client, "frozen", views::all(), How::default()).await?;
    let mut churn = stage.churn(&KINDS, PAUSE);
    churn.write(size.changes / 2).await?;
    stage.proxy.freeze(true);
    sleep(Duration::from_secs(5)).await;
    churn.write(size.changes / 2).await?;
    stage.proxy.freeze(false);
    let changes = churn.stop().await?;
    informers.finish(stage, changes, Rules::default()).await
}

/// The connections that there are fall silent for ever; new ones work. HTTP/2 asks whether the peer is there, and gets no
/// answer within 45 seconds.
pub(super) async fn half_open(stage: &mut Stage, size: Size) -> Result<Outcome, Failure> {
    let client = client(stage, User::Admin, true)?;
    let informers = Informers::start(&client, "half-open", views::all(), How::default()).await?;
    let mut churn = stage.churn(&KINDS, PAUSE * 10);
    churn.write(size.changes / 4).await?;
    stage.proxy.half_open();
    informers.gaps(1, Duration::from_secs(150)).await?;
    let changes = churn.stop().await?;
    ensure!(changes >= size.changes / 2, "nothing was written meanwhile: {changes}");
    // Nobody was told that the connection is gone: what is told must not begin when that was noticed.
    let rules = Rules {
        gaps: 1,
        least_blind: watchkeeper::defaults::HTTP2_PING_INTERVAL,
        blind: Duration::from_secs(60),
        ..Rules::default()
    };
    informers.finish(stage, changes, rules).await
}
