//! How long lists are read page by page.

use std::panic::AssertUnwindSafe;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use futures::future::{FutureExt as _, pending};
use futures::stream::{self, StreamExt as _};
use tokio::time::{Instant, sleep};
use watchkeeper::{
    Error, ErrorKind, ListMetadata, ListOptions, ListPart, Listing, Object, PagedList, Pager, Scripted, ScriptedList,
    VersionMatch,
};

use crate::support::*;

/// A server with `total` pods and the version `rv20`.
#[derive(Clone)]
struct Server {
    total: usize,
    /// It has forgotten every page but the first.
    forgets: bool,
    metadata_last: bool,
    requests: Arc<Mutex<Vec<(ListOptions, Instant)>>>,
    items_sent: Arc<AtomicUsize>,
}

impl Server {
    fn with(total: usize) -> Self {
        Self { total, forgets: false, metadata_last: false, requests: Arc::default(), items_sent: Arc::default() }
    }

    fn forgets(self) -> Self {
        Self { forgets: true, ..self }
    }

    fn pager(&self) -> Pager {
        let server = self.clone();
        Pager::new(move |options| {
            let server = server.clone();
            async move { server.answer(options) }
        })
        .page_size(10)
    }

    fn answer(&self, options: ListOptions) -> Result<Listing, Error> {
        self.requests.lock().unwrap().push((options.clone(), Instant::now()));
        let start = match &options.continue_token {
            Some(_) if self.forgets => return Err(expired()),
            Some(token) => token.parse().expect("one of our tokens"),
            None => 0,
        };
        let end = match options.limit.unwrap_or(0) {
            0 => self.total,
            limit => self.total.min(start + limit as usize),
        };
        let metadata = ListPart::Metadata(ListMetadata {
            resource_version: "rv20".into(),
            continue_token: (end < self.total).then(|| end.to_string()),
            remaining_item_count: None,
        });
        let sent = self.items_sent.clone();
        let items = (start..end).map(move |at| {
            sent.fetch_add(1, Ordering::SeqCst);
            ListPart::Item(numbered(at))
        });
        Ok(if self.metadata_last {
            Listing::new(stream::iter(items.chain([metadata]).map(Ok)))
        } else {
            Listing::new(stream::iter(std::iter::once(metadata).chain(items).map(Ok)))
        })
    }

    fn requests(&self) -> Vec<ListOptions> {
        self.requests.lock().unwrap().iter().map(|(options, _)| options.clone()).collect()
    }

    fn limits(&self) -> Vec<Option<u32>> {
        self.requests().iter().map(|options| options.limit).collect()
    }

    fn tokens(&self) -> Vec<Option<String>> {
        self.requests().iter().map(|options| options.continue_token.clone()).collect()
    }
}

fn numbered(at: usize) -> Object {
    pod(&format!("p{at:03}"), "7")
}

fn expired() -> Error {
    Error::api(410, "Expired", "this list has expired")
}

fn names<'a>(objects: impl IntoIterator<Item = &'a Object>) -> Vec<String> {
    objects.into_iter().map(|object| object.key().name().to_owned()).collect()
}

#[track_caller]
fn assert_holds(list: &PagedList, count: usize) {
    assert_eq!(names(&list.items), (0..count).map(|at| format!("p{at:03}")).collect::<Vec<_>>());
    assert_eq!(list.resource_version.as_str(), "rv20");
    assert!(list.bad.is_empty());
}

/// The names that `each_item` shows, and how it ends.
async fn visit(pager: &Pager) -> (Vec<String>, Result<(), Error>) {
    let mut seen = Vec::new();
    let end = pager.each_item(ListOptions::default(), async |object| {
        seen.push(object.key().name().to_owned());
        Ok(())
    });
    let end = end.await;
    (seen, end)
}

#[tokio::test(start_paused = true)]
async fn a_list_of_no_objects_is_one_empty_page() {
    let server = Server::with(0);
    let list = server.pager().list(ListOptions::default()).await.unwrap();
    assert_holds(&list, 0);
    assert!(!list.paginated);
    assert_eq!(server.limits(), [Some(10)]);
}

#[tokio::test(start_paused = true)]
async fn one_page_is_returned_as_it_came() {
    for total in [9, 10] {
        let server = Server::with(total);
        let list = server.pager().list(ListOptions::default()).await.unwrap();
        assert_holds(&list, total);
        assert!(!list.paginated);
        assert_eq!(server.tokens(), [None]);
    }
}

#[tokio::test(start_paused = true)]
async fn two_pages_are_one_list_at_the_version_of_the_first() {
    let server = Server::with(11);
    let list = server.pager().list(ListOptions::default()).await.unwrap();
    assert_holds(&list, 11);
    assert!(list.paginated);
    assert_eq!((server.limits(), server.tokens()), (vec![Some(10); 2], vec![None, Some("10".into())]));
}

#[tokio::test(start_paused = true)]
async fn three_pages_are_one_list() {
    let server = Server { metadata_last: true, ..Server::with(21) };
    let list = server.pager().list(ListOptions::default()).await.unwrap();
    assert_holds(&list, 21);
    assert!(list.paginated);
    assert_eq!(server.tokens(), [None, Some("10".into()), Some("20".into())]);
}

#[tokio::test(start_paused = true)]
async fn a_second_page_that_is_forgotten_fails_the_list_if_no_full_list_is_wanted() {
    let server = Server::with(21).forgets();
    let error = server.pager().full_list_if_expired(false).list(ListOptions::default()).await.unwrap_err();
    assert!(error.is_expired());
    assert_eq!(server.requests().len(), 2);
}

#[tokio::test(start_paused = true)]
async fn a_second_page_that_is_forgotten_makes_a_full_list() {
    let server = Server::with(21).forgets();
    let list = server.pager().list(ListOptions::default()).await.unwrap();
    assert_holds(&list, 21);
    assert!(list.paginated);
    assert_eq!((server.limits(), server.tokens()[2].clone()), (vec![Some(10), Some(10), None], None));
}

#[tokio::test(start_paused = true)]
async fn the_full_list_is_asked_for_at_the_version_that_was_asked_for_first() {
    let server = Server::with(21).forgets();
    let options = ListOptions {
        resource_version: "7".into(),
        resource_version_match: Some(VersionMatch::NotOlderThan),
        limit: Some(5),
        label_selector: Some("app=web".into()),
        ..ListOptions::default()
    };
    server.pager().list(options.clone()).await.unwrap();
    assert_eq!(server.requests()[2], ListOptions { limit: None, ..options });
}

#[tokio::test(start_paused = true)]
async fn a_first_page_that_is_forgotten_is_no_reason_for_a_full_list() {
    let source = Scripted::new().fail_list(expired()).answer_list(ScriptedList::new("1", []));
    let error = Pager::over(source.clone()).list(ListOptions::default()).await.unwrap_err();
    assert!(error.is_expired());
    assert_eq!(source.lists().len(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_forgotten_token_of_the_caller_makes_a_full_list_without_it() {
    let server = Server::with(21).forgets();
    let options = ListOptions { continue_token: Some("10".into()), ..ListOptions::default() };
    assert_holds(&server.pager().list(options).await.unwrap(), 21);
    assert_eq!(server.tokens(), [Some("10".into()), None]);
}

#[tokio::test(start_paused = true)]
async fn other_errors_of_a_later_page_fail_the_list() {
    let source = Scripted::new()
        .answer_list(ScriptedList::new("1", [pod("a", "1")]).continues("t"))
        .fail_list(Error::api(500, "InternalError", "etcd"));
    let error = Pager::over(source.clone()).list(ListOptions::default()).await.unwrap_err();
    assert!(error.is_internal());
    assert_eq!(source.lists().len(), 2);
}

#[tokio::test(start_paused = true)]
async fn the_version_is_asked_for_with_the_first_page_only() {
    let server = Server::with(21);
    let options = ListOptions { resource_version: "7".into(), ..ListOptions::default() };
    server.pager().list(options).await.unwrap();
    let versions: Vec<String> = server.requests().iter().map(|options| options.resource_version.to_string()).collect();
    assert_eq!(versions, ["7", "", ""]);
}

#[tokio::test(start_paused = true)]
async fn the_match_is_asked_for_with_the_first_page_only() {
    let server = Server::with(11);
    let options = ListOptions {
        resource_version: "7".into(),
        resource_version_match: Some(VersionMatch::Exact),
        field_selector: Some("spec.nodeName=n".into()),
        ..ListOptions::default()
    };
    server.pager().list(options.clone()).await.unwrap();
    let requests = server.requests();
    assert_eq!(requests[0], ListOptions { limit: Some(10), ..options });
    assert_eq!((requests[1].resource_version_match, requests[1].resource_version.as_str()), (None, ""));
    assert_eq!(requests[1].field_selector.as_deref(), Some("spec.nodeName=n"), "the rest goes with every page");
}

#[tokio::test(start_paused = true)]
async fn the_limit_of_the_caller_wins_over_the_page_size() {
    let server = Server::with(11);
    server.pager().list(ListOptions { limit: Some(6), ..ListOptions::default() }).await.unwrap();
    assert_eq!(server.limits(), [Some(6), Some(6)]);
}

#[tokio::test(start_paused = true)]
async fn a_page_size_of_zero_asks_for_all_at_once() {
    let server = Server::with(1_200);
    let list = server.pager().page_size(0).list(ListOptions::default()).await.unwrap();
    assert_eq!((list.items.len(), list.paginated, server.limits()), (1_200, false, vec![None]));
}

#[tokio::test(start_paused = true)]
async fn a_page_has_500_objects_by_default() {
    let source = Scripted::new().answer_list(ScriptedList::new("1", []));
    Pager::over(source.clone()).list(ListOptions::default()).await.unwrap();
    assert_eq!(source.lists()[0].limit, Some(500));
}

#[tokio::test(start_paused = true)]
async fn objects_that_cannot_be_used_are_part_of_the_list() {
    let bad = watchkeeper::BadObject { key: Some(key("x")), resource_version: "3".into(), problem: "it is odd" };
    let source = Scripted::new().answer_list(ScriptedList::new("1", [pod("a", "1")]).bad(bad.clone()));
    let list = Pager::over(source).list(ListOptions::default()).await.unwrap();
    assert_eq!((names(&list.items), list.bad), (vec!["a".to_owned()], vec![bad]));
}

#[tokio::test(start_paused = true)]
async fn each_item_visits_every_object_of_every_page_in_order() {
    for total in [0, 9, 10, 11, 21] {
        let (seen, end) = visit(&Server::with(total).pager()).await;
        assert_eq!(seen, (0..total).map(|at| format!("p{at:03}")).collect::<Vec<_>>());
        assert!(end.is_ok());
    }
}

#[tokio::test(start_paused = true)]
async fn each_item_visits_the_pages_that_came_and_then_tells_that_the_next_is_forgotten() {
    let server = Server::with(21).forgets();
    let (seen, end) = visit(&server.pager()).await;
    assert_eq!(seen.len(), 10);
    assert!(end.unwrap_err().is_expired());
    assert_eq!(server.requests().len(), 2, "objects that were seen cannot be taken back, so there is no full list");
}

#[tokio::test(start_paused = true)]
async fn an_error_of_the_callback_ends_each_item_at_once() {
    #[derive(Debug, PartialEq)]
    enum Stop {
        Here(usize),
        Server(String),
    }
    impl From<Error> for Stop {
        fn from(error: Error) -> Self {
            Self::Server(error.to_string())
        }
    }
    let server = Server::with(51);
    let mut seen = 0;
    let pager = server.pager().page_buffer(2);
    let end = pager.each_item(ListOptions::default(), async |_| {
        seen += 1;
        if seen == 3 { Err(Stop::Here(seen)) } else { Ok(()) }
    });
    assert_eq!((end.await, seen), (Err(Stop::Here(3)), 3));
    let asked = server.requests().len();
    pass(seconds(60)).await;
    assert_eq!(server.requests().len(), asked, "nothing is asked for afterwards");
}

#[tokio::test(start_paused = true)]
async fn a_panic_of_the_callback_comes_out_in_the_caller_and_ends_the_reading() {
    let server = Server::with(51);
    let pager = server.pager().page_buffer(1);
    let end = pager.each_item(ListOptions::default(), async |_| -> Result<(), Error> { panic!("of the callback") });
    let panic = AssertUnwindSafe(end).catch_unwind().await.unwrap_err();
    assert_eq!(panic.downcast_ref::<&str>(), Some(&"of the callback"));
    pass(seconds(60)).await;
    assert_eq!(server.requests().len(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_panic_of_the_source_comes_out_in_the_caller() {
    let asked = Pager::new(|_| async { panic!("of the source") });
    let read = Pager::new(|_| async { Ok(Listing::new(stream::once(async { panic!("of the source") }))) });
    for pager in [asked, read] {
        let panic = AssertUnwindSafe(pager.list(ListOptions::default())).catch_unwind().await.unwrap_err();
        assert_eq!(panic.downcast_ref::<&str>(), Some(&"of the source"));
        let panic = AssertUnwindSafe(visit(&pager)).catch_unwind().await.unwrap_err();
        assert_eq!(panic.downcast_ref::<&str>(), Some(&"of the source"));
    }
}

#[tokio::test(start_paused = true)]
async fn dropping_the_future_drops_the_request_and_stops_the_fetching() {
    let requests = Arc::new(());
    let held = requests.clone();
    let pager = Pager::new(move |_| {
        let held = held.clone();
        async move {
            let never = stream::once(pending::<Result<ListPart, Error>>()).map(move |part| (part, held.clone()).0);
            Ok(Listing::new(never))
        }
    });
    let reading = tokio::time::timeout(seconds(1), pager.list(ListOptions::default())).await;
    assert!(reading.is_err(), "it was dropped while it waited");
    drop(pager);
    pass(seconds(1)).await;
    assert_eq!(Arc::strong_count(&requests), 1, "the answer is gone");
}

#[tokio::test(start_paused = true)]
async fn cancelling_in_the_middle_of_each_item_stops_the_fetching() {
    let server = Server::with(51);
    let pager = server.pager().page_buffer(1);
    let mut seen = 0;
    let reading = pager.each_item(ListOptions::default(), async |_| -> Result<(), Error> {
        seen += 1;
        if seen == 3 { pending().await } else { Ok(()) }
    });
    assert!(tokio::time::timeout(seconds(1), reading).await.is_err());
    pass(seconds(60)).await;
    assert_eq!((seen, server.requests().len()), (3, 1));
}

#[tokio::test(start_paused = true)]
async fn no_more_pages_than_the_buffer_are_asked_for_ahead() {
    for (buffer, in_use, expected) in [(1, 1, 1), (1, 2, 2), (1, 5, 5), (2, 1, 2), (2, 2, 3), (2, 5, 5), (10, 1, 5)] {
        let server = Server::with(50);
        let mut asked = 0;
        let pager = server.pager().page_buffer(buffer);
        let end = pager.each_item(ListOptions::default(), async |object| {
            if object.key() == numbered((in_use - 1) * 10).key() {
                pass(seconds(1)).await;
                asked = server.requests().len();
            }
            Ok::<_, Error>(())
        });
        end.await.unwrap();
        assert_eq!(asked, expected, "buffer of {buffer}, at page {in_use}");
        assert_eq!(server.requests().len(), 5);
    }
}

#[tokio::test(start_paused = true)]
async fn no_more_bytes_than_the_buffer_are_read_ahead() {
    let size = numbered(0).json().expect("a body").len();
    let server = Server::with(50);
    let mut ahead = 0;
    let mut used = 0;
    let pager = server.pager().buffer_bytes(3 * size);
    let end = pager.each_item(ListOptions::default(), async |_| {
        pass(seconds(1)).await;
        used += 1;
        ahead = ahead.max(server.items_sent.load(Ordering::SeqCst) - used);
        Ok::<_, Error>(())
    });
    end.await.unwrap();
    // Three are in the buffer, and one has been read to learn how large it is.
    assert_eq!((used, ahead), (50, 4));
}

#[tokio::test(start_paused = true)]
async fn an_object_that_is_larger_than_the_buffer_is_let_through_alone() {
    let server = Server::with(30);
    let mut ahead = 0;
    let mut used = 0;
    let pager = server.pager().buffer_bytes(10);
    let end = pager.each_item(ListOptions::default(), async |_| {
        pass(seconds(1)).await;
        used += 1;
        ahead = ahead.max(server.items_sent.load(Ordering::SeqCst) - used);
        Ok::<_, Error>(())
    });
    end.await.unwrap();
    assert_eq!((used, ahead), (30, 2));
}

/// A page that takes ten seconds, and when the next one was asked for.
async fn next_page_after_a_slow_one(metadata_last: bool) -> f64 {
    let start = Instant::now();
    let asked = Arc::new(Mutex::new(None));
    let second = asked.clone();
    let pager = Pager::new(move |options: ListOptions| {
        let more = options.continue_token.is_none();
        if !more {
            *second.lock().unwrap() = Some(start.elapsed());
        }
        let metadata = ListPart::Metadata(ListMetadata {
            resource_version: "1".into(),
            continue_token: more.then(|| "t".into()),
            remaining_item_count: None,
        });
        let item = ListPart::Item(pod("a", "1"));
        let mut parts = vec![metadata, item];
        if metadata_last {
            parts.reverse();
        }
        async move {
            Ok(Listing::new(stream::iter(parts).enumerate().then(|(at, part)| async move {
                if at == 1 {
                    sleep(seconds(10)).await;
                }
                Ok(part)
            })))
        }
    });
    assert_eq!(pager.list(ListOptions::default()).await.unwrap().items.len(), 2);
    asked.lock().unwrap().expect("a second page").as_secs_f64()
}

#[tokio::test(start_paused = true)]
async fn the_next_page_is_asked_for_while_one_is_being_read_if_its_metadata_came_first() {
    assert_eq!(next_page_after_a_slow_one(false).await, 0.0);
}

#[tokio::test(start_paused = true)]
async fn the_next_page_is_asked_for_after_one_was_read_if_its_metadata_came_last() {
    assert_eq!(next_page_after_a_slow_one(true).await, 10.0);
}

#[tokio::test(start_paused = true)]
async fn a_server_that_does_not_answer_is_given_up_after_the_idle_timeout() {
    let begin = Instant::now();
    let error = Pager::new(|_| pending()).list(ListOptions::default()).await.unwrap_err();
    assert_eq!((error.kind(), begin.elapsed()), (ErrorKind::Timeout, seconds(30)));
}

#[tokio::test(start_paused = true)]
async fn a_list_that_falls_silent_is_given_up_after_the_idle_timeout() {
    let begin = Instant::now();
    let list = ScriptedList::new("1", [pod("a", "1")]).wait(seconds(6)).item(pod("b", "1")).hang();
    let pager = Pager::over(Scripted::new().answer_list(list)).idle_timeout(seconds(7));
    let error = pager.list(ListOptions::default()).await.unwrap_err();
    assert_eq!((error.kind(), begin.elapsed()), (ErrorKind::Timeout, seconds(13)));
    assert!(error.to_string().contains("sent nothing for 7s"), "{error}");
}

#[tokio::test(start_paused = true)]
async fn bytes_that_make_no_object_yet_are_no_silence() {
    let parts = stream::iter(0..20).then(|_| async {
        sleep(seconds(20)).await;
        Ok(ListPart::Progress)
    });
    let parts = Arc::new(Mutex::new(Some(parts)));
    let pager = Pager::new(move |_| {
        let parts = parts.clone();
        async move { Ok(Listing::new(parts.lock().unwrap().take().unwrap())) }
    });
    assert!(pager.list(ListOptions::default()).await.is_ok());
}

#[tokio::test(start_paused = true)]
async fn time_that_the_caller_takes_is_no_silence_of_the_server() {
    let server = Server::with(20);
    let answers = server.clone();
    let pager = Pager::new(move |options| {
        let server = answers.clone();
        async move {
            sleep(seconds(10)).await;
            sleep(seconds(10)).await;
            server.answer(options)
        }
    });
    let mut seen = 0;
    let pager = pager.page_size(10).buffer_bytes(1);
    let end = pager.each_item(ListOptions::default(), async |_| {
        seen += 1;
        pass(seconds(600)).await;
        Ok::<_, Error>(())
    });
    end.await.unwrap();
    assert_eq!(seen, 20);
}
