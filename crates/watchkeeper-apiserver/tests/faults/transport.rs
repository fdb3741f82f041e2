//! Connections that are cut, stand still, drip, are refused; servers that restart.

use std::time::Duration;

use tokio::time::sleep;
use watchkeeper::Reason;
use watchkeeper_apiserver::{Ending, Fault, Match, StallAt};

use crate::support::{Bench, MODES, Mode, list_heals, watch_heals};

/// A seed.
const LONG_WATCHES: u64 = 1;

async fn cut_watches(ending: Ending) {
    for mode in MODES {
        // Shorter than one event; longer. Only a watch that brought something may be cut again and again.
        for (bytes, times) in [(1, 1), (250, 1), (900, 3), (5000, 3)] {
            let (bench, status) = watch_heals(mode, times, Fault::cut_after_bytes(bytes, ending)).await;
            assert!(status.relists.is_empty(), "{mode:?} {bytes}: a cut needs no list: {status:?}");
            let restarts = bench.restarts(Reason::Ended) + bench.restarts(Reason::Disconnected);
            assert!(restarts > times, "{status:?}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_watch_that_is_closed_early_goes_on_without_a_list() {
    cut_watches(Ending::Fin).await;
}

#[tokio::test(start_paused = true)]
async fn a_watch_that_is_reset_goes_on_without_a_list() {
    cut_watches(Ending::Reset).await;
}

#[tokio::test(start_paused = true)]
async fn a_list_that_is_cut_off_is_asked_for_again() {
    for mode in MODES {
        for ending in [Ending::Fin, Ending::Reset] {
            for bytes in [0, 100, 1000] {
                list_heals(mode, 1, Fault::cut_after_bytes(bytes, ending)).await;
            }
        }
    }
}

#[tokio::test(start_paused = true)]
async fn an_answer_that_comes_late_is_waited_for_or_given_up() {
    for mode in MODES {
        for seconds in [5, 200, 4000] {
            watch_heals(mode, 1, Fault::stall(Duration::from_secs(seconds))).await;
            list_heals(mode, 1, Fault::stall(Duration::from_secs(seconds))).await;
        }
    }
}

#[tokio::test(start_paused = true)]
async fn an_answer_that_stands_still_for_ever_is_given_up() {
    for mode in MODES {
        for at in [StallAt::Headers, StallAt::Bytes(0), StallAt::Bytes(700), StallAt::Bytes(2000)] {
            watch_heals(mode, 1, Fault::stall_for_ever(at)).await;
            list_heals(mode, 1, Fault::stall_for_ever(at)).await;
        }
    }
}

#[tokio::test(start_paused = true)]
async fn an_answer_that_stands_still_for_a_while_goes_on() {
    for mode in MODES {
        let fault = Fault::Stall { at: StallAt::Bytes(300), time: Some(Duration::from_secs(20)) };
        let (_, status) = watch_heals(mode, 1, fault.clone()).await;
        assert!(status.relists.is_empty(), "{status:?}");
        list_heals(mode, 1, fault).await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_dripping_answer_is_read_to_its_end() {
    for mode in MODES {
        for bytes_per_second in [40, 2000] {
            let (_, status) = watch_heals(mode, 1, Fault::Drip { bytes_per_second }).await;
            assert!(status.relists.is_empty(), "{status:?}");
            let (_, status) = list_heals(mode, 1, Fault::Drip { bytes_per_second }).await;
            assert_eq!(status.relists.len(), 1, "only the forced one: {status:?}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn refused_connections_are_waited_out_without_a_list() {
    for mode in MODES {
        let (bench, status) = watch_heals(mode, 4, Fault::Refuse).await;
        assert!(status.relists.is_empty(), "{status:?}");
        assert_eq!(bench.restarts(Reason::Unreachable), 4, "{status:?}");
        list_heals(mode, 4, Fault::Refuse).await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_restart_with_data_needs_no_list() {
    for mode in MODES {
        let bench = Bench::start(mode).await;
        bench.write_on().await;
        for _ in 0..3 {
            bench.server.faults().restart(true);
            bench.write_some();
            bench.write_on().await;
        }
        bench.settle().await;
        bench.assert_true("after the restarts");
        assert!(bench.status.get().relists.is_empty(), "{:?}", bench.status);
        assert!(bench.restarts(Reason::Ended) >= 3, "{:?}", bench.status);
    }
}

#[tokio::test(start_paused = true)]
async fn a_request_that_meets_a_restart_is_made_again() {
    for mode in MODES {
        watch_heals(mode, 2, Fault::Restart { keep_data: true }).await;
        list_heals(mode, 2, Fault::Restart { keep_data: true }).await;
    }
}

/// A new cluster at the old address, as after a backup was restored: its revisions begin anew.
///
/// The protocol does not tell a client so: a watch from a version that the new cluster has not reached yet is accepted,
/// and silent (a kube-apiserver does the same). The reflector has seen bookmarks before, and mistrusts a watch without.
#[tokio::test(start_paused = true)]
async fn a_restart_without_data_is_noticed_when_the_watch_brings_no_bookmarks() {
    for mode in MODES {
        let bench = Bench::start(mode).await;
        bench.write_on().await;
        let old = bench.server.storage().revision();
        sleep(Duration::from_secs(150)).await;
        bench.server.faults().restart(false);
        bench.put("new");
        sleep(Duration::from_secs(100)).await;
        assert!(bench.server.storage().revision() < old);
        let differences = bench.compare().expect_err("a new cluster");
        assert_eq!(differences.missing.len(), 1, "{differences}");
        assert!(differences.extra.len() > 3, "{differences}");

        // The watch's own time, at most ten minutes, and a backoff.
        sleep(Duration::from_secs(640)).await;
        bench.assert_true("after the silent watch");
        bench.write_on().await;
        bench.assert_true("after more writes");
    }
}

/// The same, met by a request: that one fails, and the list that follows heals everything.
#[tokio::test(start_paused = true)]
async fn a_restart_without_data_that_breaks_a_request_heals_on_its_own() {
    for mode in MODES {
        watch_heals(mode, 1, Fault::Restart { keep_data: false }).await;
        list_heals(mode, 1, Fault::Restart { keep_data: false }).await;
    }
}

/// Two bookmarks get through, then nothing does: a second watch is tried long before the first one's own timeout.
#[tokio::test(start_paused = true)]
async fn a_silent_watch_is_replaced_where_bookmarks_came_before() {
    // The seed decides how long watches ask to last; here it is nine minutes and more.
    let bench = Bench::start_with(Mode::Streaming, LONG_WATCHES, |_| {}).await;
    bench.server.faults().on(Match::watch("pods").once()).then(Fault::stall_for_ever(StallAt::Bytes(200)));
    bench.cut().await;
    sleep(Duration::from_secs(250)).await;
    bench.write_on().await;
    assert!(bench.compare().is_err(), "the watch stands still");
    sleep(Duration::from_secs(220)).await;
    bench.assert_true("after the second watch");
    assert_eq!(bench.restarts(Reason::Stale), 1, "{:?}", bench.status);
}
