//! Connections that are cut, stand still, drip, are refused; servers that restart.

use std::time::Duration;

use k8s_openapi::api::core::v1::Pod;
use watchkeeper::Reason;
use watchkeeper_apiserver::{Ending, Fault, StallAt};

use crate::heals::{list_heals, relists, relists_for, restarts_for, watch_heals};
use crate::support::{Bench, MODES, Setup};

async fn cut_watches(ending: Ending) {
    // Shorter than one event; longer. Only a watch that brought something may be cut again and again.
    for (bytes, times) in [(1, 1), (250, 1), (6000, 3)] {
        watch_heals(times, Fault::cut_after_bytes(bytes, ending), |status| {
            assert_eq!(relists(status), 0, "a cut needs no list: {status:?}");
            let restarts = restarts_for(status, Reason::Ended) + restarts_for(status, Reason::Disconnected);
            assert!(restarts > times, "{status:?}");
        })
        .await;
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
    for ending in [Ending::Fin, Ending::Reset] {
        for bytes in [0, 1000] {
            list_heals(1, Fault::cut_after_bytes(bytes, ending), |_| {}).await;
        }
    }
}

#[tokio::test(start_paused = true)]
async fn an_answer_that_comes_late_is_waited_for_or_given_up() {
    for seconds in [5, 4000] {
        watch_heals(1, Fault::stall(Duration::from_secs(seconds)), |_| {}).await;
        list_heals(1, Fault::stall(Duration::from_secs(seconds)), |_| {}).await;
    }
}

#[tokio::test(start_paused = true)]
async fn an_answer_that_stands_still_for_ever_is_given_up() {
    for at in [StallAt::Headers, StallAt::Bytes(700)] {
        watch_heals(1, Fault::stall_for_ever(at), |_| {}).await;
        list_heals(1, Fault::stall_for_ever(at), |_| {}).await;
    }
}

#[tokio::test(start_paused = true)]
async fn an_answer_that_stands_still_for_a_while_goes_on() {
    let fault = Fault::Stall { at: StallAt::Bytes(300), time: Some(Duration::from_secs(20)) };
    watch_heals(1, fault.clone(), |status| assert_eq!(relists(status), 0, "{status:?}")).await;
    list_heals(1, fault, |_| {}).await;
}

#[tokio::test(start_paused = true)]
async fn a_dripping_answer_is_read_to_its_end() {
    let fault = Fault::Drip { bytes_per_second: 400 };
    watch_heals(1, fault.clone(), |status| assert_eq!(relists(status), 0, "{status:?}")).await;
    list_heals(1, fault, |status| {
        assert_eq!((relists(status), relists_for(status, Reason::Requested)), (1, 1), "{status:?}");
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn refused_connections_are_waited_out_without_a_list() {
    watch_heals(4, Fault::Refuse, |status| {
        assert_eq!(relists(status), 0, "{status:?}");
        assert_eq!(restarts_for(status, Reason::Unreachable), 4, "{status:?}");
    })
    .await;
    list_heals(4, Fault::Refuse, |_| {}).await;
}

#[tokio::test(start_paused = true)]
async fn a_restart_with_data_needs_no_list() {
    for mode in MODES {
        let bench = Bench::<Pod>::start(Setup::new(mode)).await;
        for _ in 0..3 {
            bench.write_on(5).await;
            bench.server.faults().restart(true);
            bench.write_some();
        }
        bench.settle().await;
        bench.assert_true("after the restarts");
        let status = bench.end("restarts").await;
        assert_eq!(relists(&status), 0, "{status:?}");
        assert!(restarts_for(&status, Reason::Ended) >= 3, "{status:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_request_that_meets_a_restart_is_made_again() {
    watch_heals(2, Fault::Restart { keep_data: true }, |_| {}).await;
    list_heals(2, Fault::Restart { keep_data: true }, |_| {}).await;
}

/// The request fails, and the list that follows heals everything: handlers hear that all is gone.
#[tokio::test(start_paused = true)]
async fn a_restart_without_data_that_breaks_a_request_heals_on_its_own() {
    watch_heals(1, Fault::Restart { keep_data: false }, |_| {}).await;
    list_heals(1, Fault::Restart { keep_data: false }, |_| {}).await;
}
