//! Events that come twice or too large, and bookmarks that come late or never.

use std::time::Duration;

use k8s_openapi::api::core::v1::Pod;
use tokio::time::sleep;
use watchkeeper::{Found, InformerStatus};
use watchkeeper_apiserver::{Fault, Match};

use crate::heals::{list_heals, list_heals_with, relists, watch_heals};
use crate::support::{Bench, MAX_OBJECT, MODES, Mode, Setup};

fn no_list(status: &InformerStatus) {
    assert_eq!(relists(status), 0, "{status:?}");
}

#[tokio::test(start_paused = true)]
async fn an_event_that_comes_twice_changes_nothing() {
    for nth in [1, 3] {
        watch_heals(1, Fault::DuplicateEvent { nth }, |status| {
            no_list(status);
            assert!(status.partitions.iter().all(|(_, status)| status.versions_backwards == 0), "{status:?}");
        })
        .await;
        list_heals(1, Fault::DuplicateEvent { nth }, |_| {}).await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_large_object_is_an_object() {
    let fault = Fault::Oversize { nth: 1, bytes: MAX_OBJECT / 2 };
    watch_heals(1, fault.clone(), |status| {
        no_list(status);
        assert_eq!(status.stale_object_count, 0, "{status:?}");
    })
    .await;
    list_heals(1, fault, |_| {}).await;
}

/// What is known of it stands, the comparison with the server says so and why, and its next state heals it.
#[tokio::test(start_paused = true)]
async fn an_object_above_the_limit_is_stale_until_its_next_state() {
    for mode in MODES {
        let bench = Bench::<Pod>::start(Setup::new(mode)).await;
        let fault = Fault::Oversize { nth: 1, bytes: MAX_OBJECT * 2 };
        bench.server.faults().on(Match::watch("pods").once()).then(fault);
        bench.cut().await;
        bench.put("p1");
        bench.put("p2");
        sleep(Duration::from_secs(30)).await;
        assert_eq!(bench.informer.status().stale_object_count, 1);
        let verification = bench.informer.verify_against_server().await.unwrap();
        assert_eq!(verification.difference_count, 1, "{verification}");
        let difference = &verification.differences[0];
        assert!(matches!(difference.found, Found::Different { .. }) && difference.unusable.is_some(), "{verification}");
        assert!(verification.to_string().contains("cannot be used"), "{verification}");
        bench.put("p1");
        sleep(Duration::from_secs(30)).await;
        bench.assert_true("after the next state");
        bench.assert_verified("after the next state").await;
        let status = bench.end("stale").await;
        assert_eq!((status.stale_object_count, relists(&status)), (0, 0), "{status:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn an_object_out_of_all_bounds_costs_a_list() {
    let fault = Fault::Oversize { nth: 1, bytes: MAX_OBJECT * 6 };
    watch_heals(1, fault.clone(), |status| assert_eq!(status.stale_object_count, 0, "{status:?}")).await;
    list_heals(1, fault, |_| {}).await;
}

#[tokio::test(start_paused = true)]
async fn bookmarks_that_come_late_change_nothing() {
    for seconds in [10, 400] {
        watch_heals(3, Fault::BookmarksLate { by: Duration::from_secs(seconds) }, no_list).await;
    }
}

/// A bookmark that says less than is known moves the version back. The comparison is not deceived by that.
#[tokio::test(start_paused = true)]
async fn a_cut_behind_a_late_bookmark_repeats_changes_and_loses_none() {
    for mode in MODES {
        let bench = Bench::<Pod>::start(Setup::new(mode)).await;
        let fault = Fault::BookmarksLate { by: Duration::from_secs(10) };
        bench.server.faults().on(Match::watch("pods").once()).then(fault);
        bench.cut().await;
        let mut seconds = 0;
        while bench.informer.status().partitions[0].1.versions_backwards == 0 {
            bench.write_some();
            sleep(Duration::from_secs(1)).await;
            seconds += 1;
            assert!(seconds < 120, "no bookmark came behind newer events");
        }
        bench.assert_verified("behind a late bookmark").await;
        bench.cut().await;
        bench.write_some();
        bench.settle().await;
        bench.assert_true("after the cut");
        no_list(&bench.end("late bookmark").await);
    }
}

/// The one that ends a streaming list is late by more than its patience, and by less.
#[tokio::test(start_paused = true)]
async fn a_late_end_of_a_streaming_list_is_waited_for_or_given_up() {
    for seconds in [10, 400] {
        let fault = Fault::BookmarksLate { by: Duration::from_secs(seconds) };
        list_heals_with(Mode::Streaming, 3, &fault, |_| {}).await;
    }
}

#[tokio::test(start_paused = true)]
async fn without_bookmarks_the_watch_goes_on() {
    watch_heals(3, Fault::BookmarksMissing, no_list).await;
}

/// Streaming lists that do not come to their end are given up, and pages are used.
#[tokio::test(start_paused = true)]
async fn without_its_bookmark_a_streaming_list_becomes_a_paged_one() {
    list_heals_with(Mode::Streaming, 9, &Fault::BookmarksMissing, |_| {}).await;
}
