//! What flags of the API server change.

use std::time::Duration;

use anyhow::ensure;
use tokio::time::sleep;
use watchkeeper_e2e::{Failure, User};

use super::{PAUSE, Size, client};
use crate::case::{Informers, Outcome, Rules};
use crate::kinds::KINDS;
use crate::stage::{Stage, read};
use crate::views::{self, How};

/// The server knows no streaming lists: lists come in pages.
pub(super) async fn no_streaming(stage: &mut Stage, size: Size) -> Result<Outcome, Failure> {
    let client = client(stage, User::Admin, false)?;
    let mut churn = stage.churn(&KINDS, PAUSE);
    let informers = Informers::start(&client, "no-streaming-lists", views::all(), How::default()).await?;
    churn.write(size.changes).await?;
    sleep(Duration::from_millis(1500)).await;
    stage.proxy.cut();
    churn.write(size.changes / 4).await?;
    informers.gaps(1, Duration::from_secs(30)).await?;
    let changes = churn.stop().await?;
    let outcome = informers.finish(stage, changes, Rules { gaps: 1, ..Rules::default() }).await?;
    ensure!(outcome.streams == 0 && outcome.refused > 0, "there were streaming lists: {outcome:?}");
    Ok(outcome)
}

/// Every fiftieth request makes the server say that the HTTP/2 connection is to be left.
pub(super) async fn goaway(stage: &mut Stage, size: Size) -> Result<Outcome, Failure> {
    let client = client(stage, User::Admin, true)?;
    let before = stage.proxy.accepted();
    let informers = Informers::start(&client, "goaway", views::all(), How::default()).await?;
    let mut churn = stage.churn(&KINDS, PAUSE);
    churn.write(size.changes / 4).await?;
    for _ in 0..600 {
        read(&client, "/version").await?;
    }
    churn.write(size.changes / 4).await?;
    let changes = churn.stop().await?;
    let connections = stage.proxy.accepted() - before;
    ensure!(connections >= 4, "the server never said so: {connections} connections");
    // Watches that are open stay so, and new ones are opened elsewhere, as is what was sent just before the word came.
    let outcome = informers.finish(stage, changes, Rules::default()).await?;
    ensure!(outcome.again == 0, "the server answered more lists than the first ones: {outcome:?}");
    Ok(outcome)
}

/// Watches ask for no timeout, and the server ends each after three to six seconds.
pub(super) async fn short_watches(stage: &mut Stage, size: Size) -> Result<Outcome, Failure> {
    let client = client(stage, User::Admin, false)?;
    let how = How { server_ends_watches: true, ..How::default() };
    let informers = Informers::start(&client, "short-watches", views::all(), how).await?;
    let mut churn = stage.churn(&KINDS, PAUSE);
    churn.write(size.changes / 2).await?;
    informers.gaps(size.times, Duration::from_secs(60)).await?;
    let changes = churn.stop().await?;
    // Also when nothing is written.
    informers.gaps(size.times + 1, Duration::from_secs(30)).await?;
    let rules = Rules { gaps: size.times + 1, most_gaps: u64::MAX, blind: Duration::from_secs(4), ..Rules::default() };
    let outcome = informers.finish(stage, changes, rules).await?;
    ensure!(outcome.watches > outcome.lists * size.times, "watches did not end: {outcome:?}");
    Ok(outcome)
}
