//! Whether what is wrong would be noticed.

use std::time::Duration;

use anyhow::ensure;
use watchkeeper_e2e::{Failure, User};

use super::{Size, client};
use crate::case::{Informers, Outcome, Rules};
use crate::kinds::{Kind, NAMESPACES};
use crate::stage::Stage;
use crate::views::{Form, How, View};

/// A cache that is behind, a handler that was not told, and a list too many.
pub(super) async fn noticed(stage: &mut Stage, _: Size) -> Result<Outcome, Failure> {
    let client = client(stage, User::Admin, false)?;
    let views =
        vec![View::new(Kind::Pods, Form::Typed), View::new(Kind::Sails, Form::Metadata).namespaces(&NAMESPACES)];
    let informers = Informers::start(&client, "checks-can-fail", views, How::default()).await?;
    let soon = Duration::from_secs(1);

    stage.proxy.freeze(true);
    for kind in [Kind::Pods, Kind::Sails] {
        stage.mark(kind, NAMESPACES[0]).await?;
    }
    for watched in &informers.all {
        let found = watched.compare(&stage.client, soon).await.err().map(|failure| failure.to_string());
        let is_noticed = found.as_ref().is_some_and(|text| text.contains("differs: cached None"));
        ensure!(is_noticed, "a cache that is behind is not noticed: {found:?}");
        ensure!(watched.wait_for("e2e-a/marker-0", "999999999", soon).await.is_err(), "what never was has come");
    }
    stage.proxy.freeze(false);

    crate::watched::wait_for_markers(stage, &informers.all, Duration::from_secs(30)).await?;
    let mut outcome = Outcome { informers: informers.all.len(), ..Outcome::default() };
    for watched in &informers.all {
        outcome.objects += watched.compare(&stage.client, Duration::from_secs(30)).await?;
        watched.forget_one();
        let found = watched.compare(&stage.client, soon).await.err().map(|failure| failure.to_string());
        let is_noticed = found.as_ref().is_some_and(|text| text.contains("handler first: "));
        ensure!(is_noticed, "a handler that was not told is not noticed: {found:?}");
    }

    informers.judge(stage, &Rules::default(), &mut outcome)?;
    informers.all.iter().for_each(|watched| watched.informer.relist());
    informers.gaps(1, Duration::from_secs(30)).await?;
    let found = informers.judge(stage, &Rules::default(), &mut Outcome::default()).err();
    let is_noticed = found.as_ref().is_some_and(|failure| failure.to_string().contains("listed again"));
    ensure!(is_noticed, "a list too many is not noticed: {found:?}");
    let asked = Rules { relists: 1, reasons: &[watchkeeper::Reason::Requested], gaps: 1, ..Rules::default() };
    informers.judge(stage, &asked, &mut Outcome::default())?;
    let blind = Rules { blind: Duration::ZERO, ..asked };
    ensure!(informers.judge(stage, &blind, &mut Outcome::default()).is_err(), "a gap is not noticed");
    Ok(outcome)
}
