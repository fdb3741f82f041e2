//! Events that come twice or too large, and bookmarks that come late or never.

use std::time::Duration;

use tokio::time::sleep;
use watchkeeper::Reason;
use watchkeeper_apiserver::{Fault, Match};

use crate::support::{Bench, MAX_OBJECT, MODES, Mode, list_heals, watch_heals};

#[tokio::test(start_paused = true)]
async fn an_event_that_comes_twice_changes_nothing() {
    for mode in MODES {
        for nth in [1, 3] {
            let (_, status) = watch_heals(mode, 1, Fault::DuplicateEvent { nth }).await;
            assert!(status.relists.is_empty() && status.versions_backwards == 0, "{status:?}");
            list_heals(mode, 1, Fault::DuplicateEvent { nth }).await;
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_watch_whose_time_is_over_goes_on_without_a_list() {
    for mode in MODES {
        let (bench, status) = watch_heals(mode, 3, Fault::EndAfter { time: Duration::from_secs(4) }).await;
        assert!(status.relists.is_empty(), "{status:?}");
        assert!(bench.restarts(Reason::Ended) >= 3, "{status:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_large_object_is_an_object() {
    for mode in MODES {
        let (_, status) = watch_heals(mode, 1, Fault::Oversize { nth: 1, bytes: MAX_OBJECT / 2 }).await;
        assert!(status.relists.is_empty() && status.stale_objects.is_empty(), "{status:?}");
        list_heals(mode, 1, Fault::Oversize { nth: 1, bytes: MAX_OBJECT / 2 }).await;
    }
}

/// What is known of it stands, the status says so, and its next state heals it.
#[tokio::test(start_paused = true)]
async fn an_object_above_the_limit_is_stale_until_its_next_state() {
    for mode in MODES {
        let bench = Bench::start(mode).await;
        let fault = Fault::Oversize { nth: 1, bytes: MAX_OBJECT * 2 };
        bench.server.faults().on(Match::watch("pods").once()).then(fault);
        bench.cut().await;
        bench.put("p1");
        bench.put("p2");
        sleep(Duration::from_secs(5)).await;
        let differences = bench.compare().expect_err("p1 could not be used");
        assert_eq!((differences.len(), differences.stale.len()), (1, 1), "{differences}");
        assert_eq!(bench.status.get().stale_objects.len(), 1);
        bench.put("p1");
        sleep(Duration::from_secs(5)).await;
        bench.assert_true("after the next state");
        assert!(bench.status.get().stale_objects.is_empty() && bench.status.get().relists.is_empty());
    }
}

#[tokio::test(start_paused = true)]
async fn an_object_out_of_all_bounds_costs_a_list() {
    for mode in MODES {
        let (_, status) = watch_heals(mode, 1, Fault::Oversize { nth: 1, bytes: MAX_OBJECT * 6 }).await;
        assert!(status.stale_objects.is_empty(), "{status:?}");
        list_heals(mode, 1, Fault::Oversize { nth: 1, bytes: MAX_OBJECT * 6 }).await;
    }
}

#[tokio::test(start_paused = true)]
async fn bookmarks_that_come_late_change_nothing() {
    for mode in MODES {
        for seconds in [10, 50, 400] {
            let (_, status) = watch_heals(mode, 3, Fault::BookmarksLate { by: Duration::from_secs(seconds) }).await;
            assert!(status.relists.is_empty(), "{status:?}");
        }
    }
}

/// A bookmark that says less than is known moves the client back: after a cut it is told everything since once more.
#[tokio::test(start_paused = true)]
async fn a_cut_behind_a_late_bookmark_repeats_changes_and_loses_none() {
    for mode in MODES {
        let bench = Bench::start(mode).await;
        let fault = Fault::BookmarksLate { by: Duration::from_secs(10) };
        bench.server.faults().on(Match::watch("pods").once()).then(fault);
        bench.cut().await;
        let mut seconds = 0;
        while bench.status.get().versions_backwards == 0 {
            bench.write_some();
            sleep(Duration::from_secs(1)).await;
            seconds += 1;
            assert!(seconds < 120, "no bookmark came behind newer events: {:?}", bench.status);
        }
        bench.cut().await;
        bench.write_some();
        bench.settle().await;
        bench.assert_true("after the cut");
        assert!(bench.status.get().relists.is_empty(), "{:?}", bench.status);
    }
}

/// The one that ends a streaming list is late by more than its patience, and by less.
#[tokio::test(start_paused = true)]
async fn a_late_end_of_a_streaming_list_is_waited_for_or_given_up() {
    for seconds in [10, 50, 400] {
        list_heals(Mode::Streaming, 3, Fault::BookmarksLate { by: Duration::from_secs(seconds) }).await;
    }
}

#[tokio::test(start_paused = true)]
async fn without_bookmarks_the_watch_goes_on() {
    for mode in MODES {
        let (_, status) = watch_heals(mode, 3, Fault::BookmarksMissing).await;
        assert!(status.relists.is_empty(), "{status:?}");
    }
}

/// Streaming lists that do not come to their end are given up, and pages are used.
#[tokio::test(start_paused = true)]
async fn without_its_bookmark_a_streaming_list_becomes_a_paged_one() {
    list_heals(Mode::Streaming, 9, Fault::BookmarksMissing).await;
}
