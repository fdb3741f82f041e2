//! Many watches, and many objects.

use std::time::Duration;

use anyhow::ensure;
use tokio::time::{Instant, sleep};
use watchkeeper::Reason;
use watchkeeper_e2e::{Failure, User};

use super::{PAUSE, Size, client};
use crate::case::{Informers, Outcome, Rules};
use crate::kinds::{KINDS, Kind, TIER};
use crate::stage::Stage;
use crate::views::{self, Form, How, View};

/// Hundreds of watches on few connections.
pub(super) async fn http2(stage: &mut Stage, size: Size) -> Result<Outcome, Failure> {
    let client = client(stage, User::Admin, true)?;
    let before = stage.proxy.accepted();
    let one_each = views::all().into_iter().filter(|view| view.partitions().len() == 1).collect::<Vec<_>>();
    let views: Vec<View> = one_each.iter().cycle().take(size.watches).cloned().collect();
    let informers = Informers::start(&client, "http2", views, How::default()).await?;
    let connections = stage.proxy.accepted() - before;
    let needed = size.watches.div_ceil(watchkeeper::defaults::HTTP2_MAX_STREAMS) as u64;
    ensure!((needed..=needed + 1).contains(&connections), "{connections} connections for {} watches", size.watches);
    let mut churn = stage.churn(&KINDS, PAUSE);
    churn.write(size.changes / 2).await?;
    sleep(Duration::from_millis(1500)).await;
    stage.proxy.reset();
    churn.write(size.changes / 2).await?;
    informers.gaps(1, Duration::from_secs(60)).await?;
    let changes = churn.stop().await?;
    let rules = Rules {
        gaps: 1,
        patience: Duration::from_secs(60),
        // Of each kind of view some are compared by the library too, in other cases.
        verify: false,
        ..Rules::default()
    };
    informers.finish(stage, changes, rules).await
}

/// Many objects of one kind: a first list, changes, a broken connection, and a list that somebody asks for.
pub(super) async fn many(stage: &mut Stage, size: Size) -> Result<Outcome, Failure> {
    let began = Instant::now();
    // Some of these the churn has made already.
    stage.fill_range(&[Kind::ConfigMaps], size.objects..size.many).await?;
    stage.objects = size.many;
    let filled = began.elapsed();
    let client = client(stage, User::Admin, false)?;
    let views = vec![
        View::new(Kind::ConfigMaps, Form::Typed),
        View::new(Kind::ConfigMaps, Form::Metadata),
        View::new(Kind::ConfigMaps, Form::Dynamic).labels(format!("{TIER}=a")),
    ];
    let began = Instant::now();
    let informers = Informers::start(&client, "many-objects", views, How::default()).await?;
    println!(
        "  {} objects were written in {:.1} s, and listed in {:.1} s",
        size.many,
        filled.as_secs_f64(),
        began.elapsed().as_secs_f64()
    );
    let mut churn = stage.churn(&[Kind::ConfigMaps], PAUSE);
    churn.write(size.changes).await?;
    sleep(Duration::from_millis(1500)).await;
    stage.proxy.reset();
    informers.gaps(1, Duration::from_secs(60)).await?;
    churn.write(size.changes).await?;
    for watched in &informers.all {
        watched.informer.relist();
    }
    informers.gaps(2, Duration::from_secs(120)).await?;
    informers.listen_late()?;
    churn.write(size.changes).await?;
    let changes = churn.stop().await?;
    let rules = Rules {
        relists: 1,
        reasons: &[Reason::Requested],
        gaps: 2,
        // The server ends a watch that cannot be sent its events fast enough.
        most_gaps: 6,
        blind: Duration::from_secs(60),
        patience: Duration::from_secs(120),
        ..Rules::default()
    };
    informers.finish(stage, changes, rules).await
}
