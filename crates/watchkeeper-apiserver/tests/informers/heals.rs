//! Faults that heal on their own, told with writes and handlers before, during and after them.

use std::time::Duration;

use k8s_openapi::api::core::v1::Pod;
use kube_client::core::DynamicObject;
use tokio::time::sleep;
use watchkeeper::{InformerStatus, Reason, TableRow};
use watchkeeper_apiserver::{Fault, Match};

use crate::support::{Bench, MODES, Mode, Sample, Setup};

/// A fault of the next watches, with writes before, during and after, for each way to list and each type: all is true again
/// without any help.
pub(crate) async fn watch_heals(times: u64, fault: Fault, check: impl Fn(&InformerStatus)) {
    for mode in MODES {
        check(&watch_heals_as::<Pod>(Setup::new(mode), times, &fault).await);
        check(&watch_heals_as::<DynamicObject>(Setup::new(mode), times, &fault).await);
        check(&watch_heals_as::<TableRow<Pod>>(Setup::new(mode), times, &fault).await);
    }
}

async fn watch_heals_as<K: Sample>(setup: Setup, times: u64, fault: &Fault) -> InformerStatus {
    let mode = setup.mode;
    let bench = Bench::<K>::start(setup).await;
    bench.write_some();
    sleep(Duration::from_secs(2)).await;
    bench.assert_true("before");
    let rule = bench.server.faults().on(Match::watch("pods").times(times)).then(fault.clone());
    bench.cut().await;
    // A watch that ends within its first second, with no event, counts as broken, whatever ended it.
    sleep(Duration::from_secs(2)).await;
    bench.write_on(6).await;
    bench.listen("late");
    bench.leave().await;
    bench.write_on(8).await;
    let injected = rule.injected();
    finish(bench, &format!("{mode:?} {fault:?}"), injected).await
}

/// A fault of the lists, the first ones and those of a relist.
pub(crate) async fn list_heals(times: u64, fault: Fault, check: impl Fn(&InformerStatus)) {
    for mode in MODES {
        list_heals_with(mode, times, &fault, &check).await;
    }
}

pub(crate) async fn list_heals_with(mode: Mode, times: u64, fault: &Fault, check: impl Fn(&InformerStatus)) {
    check(&list_heals_as::<Pod>(Setup::new(mode), times, fault).await);
    check(&list_heals_as::<DynamicObject>(Setup::new(mode), times, fault).await);
    check(&list_heals_as::<TableRow<Pod>>(Setup::new(mode), times, fault).await);
}

async fn list_heals_as<K: Sample>(setup: Setup, times: u64, fault: &Fault) -> InformerStatus {
    let mode = setup.mode;
    let text = format!("{mode:?} {fault:?}");
    let bench = Bench::<K>::start_with(setup, |server| {
        server.faults().on(mode.lists().times(times)).then(fault.clone());
    })
    .await;
    bench.write_on(3).await;
    bench.listen("late");
    bench.write_on(3).await;
    assert!(!bench.server.faults().injected().is_empty(), "{text}: never injected");
    // After some faults streaming lists are not used for an hour.
    sleep(Duration::from_secs(3700)).await;
    // What could not be used is stale until its next state.
    (0..5).for_each(|name| bench.put(&format!("p{name}")));
    sleep(Duration::from_secs(30)).await;
    bench.assert_true(&format!("after the first list, {text}"));

    let rule = bench.server.faults().on(mode.lists().times(times)).then(fault.clone());
    bench.informer.relist();
    bench.write_on(3).await;
    bench.listen("later");
    bench.leave().await;
    bench.write_on(3).await;
    let injected = rule.injected();
    finish(bench, &text, injected).await
}

async fn finish<K: Sample>(bench: Bench<K>, text: &str, injected: u64) -> InformerStatus {
    assert!(injected > 0, "{text}: never injected, {:?}", bench.informer.status());
    bench.settle().await;
    bench.server.faults().clear();
    bench.settle().await;
    bench.assert_true(&format!("after {text}"));
    bench.write_on(3).await;
    sleep(Duration::from_secs(60)).await;
    bench.assert_true(&format!("after more writes, after {text}"));
    bench.assert_verified(&format!("after {text}")).await;
    bench.end(text).await
}

/// How many lists there were after the first attempt.
pub(crate) fn relists(status: &InformerStatus) -> u64 {
    status.relists.values().sum()
}

pub(crate) fn relists_for(status: &InformerStatus, reason: Reason) -> u64 {
    status.relists.get(&reason).copied().unwrap_or_default()
}

pub(crate) fn restarts_for(status: &InformerStatus, reason: Reason) -> u64 {
    status.watch_restarts.get(&reason).copied().unwrap_or_default()
}
