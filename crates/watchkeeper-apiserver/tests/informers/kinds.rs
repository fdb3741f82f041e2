//! A kind that goes away and comes back, and a right that does.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::time::Duration;

use k8s_openapi::api::core::v1::Pod;
use tokio::time::sleep;
use tracing::span;
use tracing::{Event, Level, Metadata, Subscriber};
use watchkeeper_apiserver::{Fault, Match};

use crate::support::{Bench, MODES, Setup};

/// Counts what a person would be shown: warnings and errors.
struct Counting(Arc<AtomicUsize>);

impl Subscriber for Counting {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        metadata.is_event() && *metadata.level() <= Level::WARN
    }

    fn new_span(&self, _: &span::Attributes<'_>) -> span::Id {
        span::Id::from_u64(1)
    }

    fn record(&self, _: &span::Id, _: &span::Record<'_>) {}
    fn record_follows_from(&self, _: &span::Id, _: &span::Id) {}

    fn event(&self, _: &Event<'_>) {
        self.0.fetch_add(1, Relaxed);
    }

    fn enter(&self, _: &span::Id) {}
    fn exit(&self, _: &span::Id) {}
}

/// For an hour every request is refused. The log has a handful of lines of it, requests keep their distance, the status says
/// what is wrong, what is cached stays, and afterwards everything goes on without a restart.
async fn refused_for_an_hour(fault: Fault) {
    for mode in MODES {
        let bench = Bench::<Pod>::start(Setup::new(mode)).await;
        bench.write_on(3).await;
        let lines = Arc::new(AtomicUsize::new(0));
        let logs = tracing::subscriber::set_default(Counting(lines.clone()));
        let rule = bench.server.faults().on(Match { verb: None, ..Match::list("pods") }).then(fault.clone());
        let objects = bench.informer.store().snapshot().len();
        bench.cut().await;
        bench.write_some();
        sleep(Duration::from_secs(3600)).await;
        drop(logs);
        let status = bench.informer.status();
        assert!(lines.load(Relaxed) <= 8, "{mode:?} {fault:?}: {} lines", lines.load(Relaxed));
        assert!((60..=400).contains(&rule.injected()), "{mode:?} {fault:?}: {} requests", rule.injected());
        assert!(status.last_error.is_some() && !status.is_current(Duration::from_secs(600)), "{status:?}");
        assert_eq!(status.objects, objects, "what was known stays");

        bench.listen("late");
        bench.server.faults().clear();
        sleep(Duration::from_secs(90)).await;
        bench.assert_true("when it is back");
        bench.leave().await;
        bench.write_on(3).await;
        sleep(Duration::from_secs(60)).await;
        bench.assert_true("and later");
        bench.assert_verified("and later").await;
        bench.end("refused").await;
    }
}

/// As after the deletion of its CustomResourceDefinition.
#[tokio::test(start_paused = true)]
async fn a_kind_that_is_gone_floods_no_log_and_may_come_back() {
    refused_for_an_hour(Fault::status(404, "NotFound")).await;
}

#[tokio::test(start_paused = true)]
async fn a_right_that_is_lost_floods_no_log_and_may_come_back() {
    refused_for_an_hour(Fault::status(403, "Forbidden")).await;
    refused_for_an_hour(Fault::status(401, "Unauthorized")).await;
}
