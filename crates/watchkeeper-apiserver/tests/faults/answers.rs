//! Answers that are errors, end in the middle, or are nothing at all.

use watchkeeper::Reason;
use watchkeeper_apiserver::Fault;

use crate::support::{MODES, list_heals, watch_heals};

#[tokio::test(start_paused = true)]
async fn a_forgotten_version_costs_one_list() {
    for mode in MODES {
        let (bench, status) = watch_heals(mode, 1, Fault::expired()).await;
        assert_eq!(bench.relists(Reason::Expired), 1, "{status:?}");
        assert_eq!(status.relists.len(), 1, "{status:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn an_overloaded_server_is_waited_for_without_a_list() {
    for mode in MODES {
        let (bench, status) = watch_heals(mode, 3, Fault::status(429, "TooManyRequests").retry_after(7)).await;
        assert!(status.relists.is_empty(), "{status:?}");
        assert_eq!(bench.restarts(Reason::TooManyRequests), 3, "{status:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn any_other_status_of_a_watch_leads_to_a_list() {
    for mode in MODES {
        for (code, reason) in [(500, "InternalError"), (503, "ServiceUnavailable"), (401, "Unauthorized"), (403, "")] {
            let (_, status) = watch_heals(mode, 1, Fault::status(code, reason)).await;
            assert_eq!(status.relists.values().sum::<u64>(), 1, "{code}: {status:?}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_list_that_is_refused_is_asked_for_again() {
    for mode in MODES {
        for (code, reason) in [
            (410, "Expired"),
            (429, "TooManyRequests"),
            (500, "InternalError"),
            (503, ""),
            (504, "Timeout"),
            (422, "Invalid"),
        ] {
            list_heals(mode, 2, Fault::status(code, reason).retry_after(2)).await;
        }
    }
}

#[tokio::test(start_paused = true)]
async fn an_error_within_a_watch_leads_to_at_most_one_list() {
    for mode in MODES {
        for nth in [0, 2] {
            let expired = Fault::ErrorEvent { nth, code: 410, reason: "Expired".to_owned() };
            let (bench, status) = watch_heals(mode, 1, expired).await;
            assert_eq!(bench.relists(Reason::Expired), 1, "{status:?}");
            assert_eq!(status.relists.len(), 1, "{status:?}");

            let internal = Fault::ErrorEvent { nth, code: 500, reason: "InternalError".to_owned() };
            let (bench, status) = watch_heals(mode, 1, internal).await;
            assert_eq!(bench.relists(Reason::InternalError), 1, "{status:?}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_compaction_costs_at_most_one_list() {
    for mode in MODES {
        let (_, status) = watch_heals(mode, 1, Fault::Compact { revision: None }).await;
        assert!(status.relists.values().sum::<u64>() <= 1, "{status:?}");
        list_heals(mode, 1, Fault::Compact { revision: None }).await;
    }
}

/// The version that the client goes on from is really gone: it is cut off, writes happen, and the history is dropped.
#[tokio::test(start_paused = true)]
async fn a_client_that_was_away_during_a_compaction_lists_once() {
    for mode in MODES {
        let bench = crate::support::Bench::start(mode).await;
        bench.write_on().await;
        // No await in between: the client has no chance to come back before the history is gone.
        bench.server.faults().cut();
        bench.write_some();
        bench.server.compact(bench.server.storage().revision());
        bench.settle().await;
        bench.assert_true("after the compaction");
        let status = bench.status.get();
        assert_eq!(bench.relists(Reason::Expired), 1, "{status:?}");
        assert_eq!(status.relists.len(), 1, "{status:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_body_that_ends_in_the_middle_is_asked_for_again() {
    for mode in MODES {
        let (_, status) = watch_heals(mode, 1, Fault::Truncate).await;
        assert!(status.relists.is_empty(), "{status:?}");
        list_heals(mode, 2, Fault::Truncate).await;
    }
}

#[tokio::test(start_paused = true)]
async fn garbage_is_not_taken_for_objects() {
    for mode in MODES {
        for garbage in [
            b"\x00\xff\xfe no JSON at all".as_slice(),
            b"{\"type\":\"ADDED\",\"object\":{\"metadata\":{\"na",
            b"{}",
            b"null",
            b"<html>sign in</html>",
        ] {
            watch_heals(mode, 2, Fault::Garbage { nth: 2, bytes: garbage.into() }).await;
            list_heals(mode, 1, Fault::garbage(garbage)).await;
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_page_of_a_proxy_is_not_taken_for_a_list() {
    for mode in MODES {
        for fault in [Fault::bad_gateway(), Fault::HtmlPage { code: 200 }] {
            watch_heals(mode, 2, fault.clone()).await;
            list_heals(mode, 2, fault).await;
        }
    }
}
