//! Answers that are errors, end in the middle, or are nothing at all.

use k8s_openapi::api::core::v1::Pod;
use watchkeeper::Reason;
use watchkeeper_apiserver::Fault;

use crate::heals::{list_heals, relists, relists_for, restarts_for, watch_heals};
use crate::support::{Bench, MODES, Setup};

#[tokio::test(start_paused = true)]
async fn a_forgotten_version_costs_one_list() {
    watch_heals(1, Fault::expired(), |status| {
        assert_eq!((relists(status), relists_for(status, Reason::Expired)), (1, 1), "{status:?}");
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn an_overloaded_server_is_waited_for_without_a_list() {
    watch_heals(3, Fault::status(429, "TooManyRequests").retry_after(7), |status| {
        assert_eq!(relists(status), 0, "{status:?}");
        assert_eq!(restarts_for(status, Reason::TooManyRequests), 3, "{status:?}");
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn any_other_status_of_a_watch_leads_to_a_list() {
    for (code, reason) in [(500, "InternalError"), (503, "ServiceUnavailable"), (401, "Unauthorized"), (403, "")] {
        watch_heals(1, Fault::status(code, reason), |status| assert_eq!(relists(status), 1, "{code}: {status:?}"))
            .await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_list_that_is_refused_is_asked_for_again() {
    for (code, reason) in
        [(410, "Expired"), (429, "TooManyRequests"), (500, "InternalError"), (504, "Timeout"), (422, "")]
    {
        list_heals(2, Fault::status(code, reason).retry_after(2), |_| {}).await;
    }
}

#[tokio::test(start_paused = true)]
async fn an_error_within_a_watch_leads_to_at_most_one_list() {
    for nth in [0, 2] {
        watch_heals(1, Fault::ErrorEvent { nth, code: 410, reason: "Expired".to_owned() }, |status| {
            assert_eq!((relists(status), relists_for(status, Reason::Expired)), (1, 1), "{status:?}");
        })
        .await;
        watch_heals(1, Fault::ErrorEvent { nth, code: 500, reason: "InternalError".to_owned() }, |status| {
            assert!(relists(status) <= 1 && relists_for(status, Reason::InternalError) == 1, "{status:?}");
        })
        .await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_compaction_costs_at_most_one_list() {
    watch_heals(1, Fault::Compact { revision: None }, |status| assert!(relists(status) <= 1, "{status:?}")).await;
    list_heals(1, Fault::Compact { revision: None }, |_| {}).await;
}

/// The version that the client goes on from is really gone: it is cut off, writes happen, and the history is dropped.
#[tokio::test(start_paused = true)]
async fn a_client_that_was_away_during_a_compaction_lists_once() {
    for mode in MODES {
        let bench = Bench::<Pod>::start(Setup::new(mode)).await;
        bench.write_on(5).await;
        // No await in between: the client has no chance to come back before the history is gone.
        bench.server.faults().cut();
        bench.write_some();
        bench.server.compact(bench.server.storage().revision());
        bench.settle().await;
        bench.assert_true("after the compaction");
        let status = bench.end("compaction").await;
        assert_eq!((relists(&status), relists_for(&status, Reason::Expired)), (1, 1), "{status:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_body_that_ends_in_the_middle_is_asked_for_again() {
    watch_heals(1, Fault::Truncate, |status| assert_eq!(relists(status), 0, "{status:?}")).await;
    list_heals(2, Fault::Truncate, |_| {}).await;
}

#[tokio::test(start_paused = true)]
async fn garbage_is_not_taken_for_objects() {
    for garbage in [b"\x00\xff\xfe no JSON at all".as_slice(), b"{}", b"<html>sign in</html>"] {
        watch_heals(2, Fault::Garbage { nth: 2, bytes: garbage.into() }, |_| {}).await;
        list_heals(1, Fault::garbage(garbage), |_| {}).await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_page_of_a_proxy_is_not_taken_for_a_list() {
    for fault in [Fault::bad_gateway(), Fault::HtmlPage { code: 200 }] {
        watch_heals(2, fault.clone(), |_| {}).await;
        list_heals(2, fault, |_| {}).await;
    }
}
