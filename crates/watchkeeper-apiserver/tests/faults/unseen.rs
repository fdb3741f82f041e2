//! What breaks the protocol in a way that no client can see: the comparison does, and a list heals it.

use std::time::Duration;

use tokio::time::sleep;
use watchkeeper::Reason;
use watchkeeper_apiserver::{Differences, Fault, Match};

use crate::support::{Bench, MODES, Mode, list_heals};

/// Changes pods 1 to 4 on a watch with a fault; what the comparison says of it.
async fn noticed(bench: &Bench, fault: Fault) -> Differences {
    bench.put("p1");
    sleep(Duration::from_secs(2)).await;
    bench.assert_true("before");
    let rule = bench.server.faults().on(Match::watch("pods").once()).then(fault);
    bench.cut().await;
    for name in ["p1", "p2", "p3", "p4"] {
        bench.put(name);
        sleep(Duration::from_secs(2)).await;
    }
    sleep(Duration::from_secs(30)).await;
    assert_eq!(rule.injected(), 1);
    let differences = bench.compare().expect_err("the fault is to be noticed");
    assert!(bench.status.get().relists.is_empty(), "nobody has listed: {:?}", bench.status);
    differences
}

async fn healed_by_a_list(bench: &Bench) {
    bench.server.faults().clear();
    bench.force_relist().await;
    bench.assert_true("after the relist");
    bench.write_on().await;
    bench.assert_true("after more writes");
}

#[tokio::test(start_paused = true)]
async fn a_dropped_change_is_noticed() {
    for mode in MODES {
        let bench = Bench::start(mode).await;
        let differences = noticed(&bench, Fault::DropEvent { nth: 2 }).await;
        assert_eq!((differences.len(), differences.stale.len()), (1, 1), "{differences}");
        assert_eq!(differences.stale[0].0, "default/p2");
        healed_by_a_list(&bench).await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_dropped_deletion_and_a_dropped_addition_are_noticed() {
    for mode in MODES {
        let bench = Bench::start(mode).await;
        let faults = bench.server.faults();
        faults.on(Match::watch("pods").once()).then(Fault::DropEvent { nth: 1 }).then(Fault::DropEvent { nth: 2 });
        bench.cut().await;
        bench.delete("p1");
        bench.put("new");
        bench.put("p3");
        sleep(Duration::from_secs(5)).await;
        let differences = bench.compare().expect_err("two events are missing");
        assert_eq!(differences.extra[0].0, "default/p1", "{differences}");
        assert_eq!(differences.missing[0].0, "default/new", "{differences}");
        assert_eq!(differences.len(), 2);
        healed_by_a_list(&bench).await;
    }
}

#[tokio::test(start_paused = true)]
async fn an_object_that_a_list_leaves_out_is_noticed() {
    for mode in MODES {
        let bench = Bench::start_with(mode, 0, |server| {
            server.faults().on(mode.lists().once()).then(Fault::DropEvent { nth: 2 });
        })
        .await;
        let differences = bench.compare().expect_err("an object is missing");
        assert_eq!((differences.len(), differences.missing.len()), (1, 1), "{differences}");
        healed_by_a_list(&bench).await;
    }
}

#[tokio::test(start_paused = true)]
async fn an_old_state_sent_again_is_noticed() {
    for mode in MODES {
        let bench = Bench::start(mode).await;
        let differences = noticed(&bench, Fault::OldState { nth: 1 }).await;
        assert_eq!((differences.len(), differences.stale.len()), (1, 1), "{differences}");
        assert_eq!(differences.stale[0].0, "default/p1");
        assert_eq!(bench.status.get().versions_backwards, 1);
        healed_by_a_list(&bench).await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_watch_that_goes_back_in_time_is_noticed() {
    for mode in MODES {
        let bench = Bench::start(mode).await;
        bench.write_some();
        bench.delete("p0");
        sleep(Duration::from_secs(2)).await;
        // Before the last write there was a p0, and p1 to p4 were older.
        let to = bench.server.storage().revision() - 1;
        let differences = noticed(&bench, Fault::Rewind { nth: 4, to }).await;
        assert!(differences.extra.iter().any(|(key, _)| key == "default/p0"), "{differences}");
        assert!(differences.stale.len() >= 4, "{differences}");
        assert!(bench.status.get().versions_backwards > 0);
        healed_by_a_list(&bench).await;
    }
}

/// A bookmark says that everything up to a version was sent. Whoever goes on from there after a cut misses what was not.
#[tokio::test(start_paused = true)]
async fn a_bookmark_that_lies_is_noticed() {
    for mode in MODES {
        let bench = Bench::start(mode).await;
        bench.server.faults().on(Match::watch("pods").once()).then(Fault::BookmarksLie { ahead: 2 });
        bench.cut().await;
        sleep(Duration::from_secs(100)).await;
        bench.assert_true("nothing was written yet");
        bench.cut().await;
        for name in ["p1", "p2", "p3"] {
            bench.put(name);
        }
        sleep(Duration::from_secs(100)).await;
        let differences = bench.compare().expect_err("two changes were promised and not sent");
        assert_eq!((differences.len(), differences.stale.len()), (2, 2), "{differences}");
        healed_by_a_list(&bench).await;
    }
}

#[tokio::test(start_paused = true)]
async fn an_object_of_another_kind_in_a_watch_is_noticed() {
    for mode in MODES {
        let bench = Bench::start(mode).await;
        let differences = noticed(&bench, Fault::WrongKind { nth: 2 }).await;
        assert_eq!((differences.len(), differences.stale.len()), (1, 1), "{differences}");
        assert_eq!(bench.status.get().wrong_kind, 1);
        healed_by_a_list(&bench).await;
    }
}

/// In a list it makes the whole list doubtful, streamed or in pages, and the reflector lists again on its own.
#[tokio::test(start_paused = true)]
async fn an_object_of_another_kind_in_a_streaming_list_heals_on_its_own() {
    let bench = Bench::start_with(Mode::Streaming, 0, |server| {
        server.faults().on(Match::streaming_list("pods").once()).then(Fault::WrongKind { nth: 2 });
    })
    .await;
    bench.settle().await;
    bench.assert_true("after the list that follows");
    assert_eq!(bench.status.get().relists, [(Reason::UnreadableObject, 1)].into());
}

#[tokio::test(start_paused = true)]
async fn an_object_of_another_kind_in_a_paged_list_heals_on_its_own() {
    list_heals(Mode::Paged, 2, Fault::WrongKind { nth: 2 }).await;
}
