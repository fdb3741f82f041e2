//! A source that plays what a test wrote down, and records what it was asked.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use futures::future::{self, BoxFuture};
use futures::stream;
use tokio::time::Instant;

use super::{
    BadObject, Bookmark, ListMetadata, ListOptions, ListPart, ListerWatcher, Listing, StreamingLists, WatchEvent,
    WatchStream,
};
use crate::{Error, Object};

/// A source for tests: each list and each watch is answered with the next one of its script.
///
/// When the script has run out, requests wait for ever. Clones are the same source.
///
/// ```
/// use watchkeeper::{Object, Scripted, ScriptedList, ScriptedWatch};
///
/// # fn main() -> Result<(), watchkeeper::Error> {
/// let pod = |version: &str| {
///     Object::from_json(format!(r#"{{"metadata": {{"name": "web", "resourceVersion": "{version}"}}}}"#))
/// };
/// let source = Scripted::new()
///     .answer_list(ScriptedList::new("1", [pod("1")?]))
///     .answer_watch(ScriptedWatch::new().modified(pod("2")?).bookmark("5"));
/// # Ok(()) }
/// ```
#[derive(Clone, Default)]
pub struct Scripted(Arc<Inner>);

#[derive(Default)]
struct Inner {
    script: Mutex<Script>,
    open_watches: Arc<AtomicUsize>,
    streaming: Option<StreamingLists>,
}

#[derive(Default)]
struct Script {
    lists: VecDeque<Result<ScriptedList, Error>>,
    watches: VecDeque<Result<ScriptedWatch, Error>>,
    requests: Vec<ScriptedRequest>,
}

/// A request that a [`Scripted`] source was sent.
#[derive(Debug, Clone)]
pub struct ScriptedRequest {
    /// List or watch.
    pub verb: Verb,
    /// What was asked for.
    pub options: ListOptions,
    /// When.
    pub at: Instant,
}

/// What a request does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verb {
    /// Ask for what there is.
    List,
    /// Ask for what changes.
    Watch,
}

impl Scripted {
    /// A source with an empty script.
    pub fn new() -> Self {
        Self::default()
    }

    /// The same source, which says that it can answer streaming lists. Call this first.
    pub fn with_streaming_lists(self) -> Self {
        Self(Arc::new(Inner { streaming: Some(StreamingLists::default()), ..Inner::default() }))
    }

    /// Answers the next list.
    pub fn answer_list(self, list: ScriptedList) -> Self {
        self.script().lists.push_back(Ok(list));
        self
    }

    /// Answers the next list with an error.
    pub fn fail_list(self, error: Error) -> Self {
        self.script().lists.push_back(Err(error));
        self
    }

    /// Answers the next watch.
    pub fn answer_watch(self, watch: ScriptedWatch) -> Self {
        self.script().watches.push_back(Ok(watch));
        self
    }

    /// Answers the next watch with an error, before its stream.
    pub fn fail_watch(self, error: Error) -> Self {
        self.script().watches.push_back(Err(error));
        self
    }

    /// All that was asked so far.
    pub fn requests(&self) -> Vec<ScriptedRequest> {
        self.script().requests.clone()
    }

    /// All lists that were asked for so far.
    pub fn lists(&self) -> Vec<ListOptions> {
        self.options(Verb::List)
    }

    /// All watches that were asked for so far.
    pub fn watches(&self) -> Vec<ListOptions> {
        self.options(Verb::Watch)
    }

    /// How many streams are open, that is, not dropped.
    pub fn open_watches(&self) -> usize {
        self.0.open_watches.load(Ordering::SeqCst)
    }

    fn options(&self, verb: Verb) -> Vec<ListOptions> {
        let script = self.script();
        script.requests.iter().filter(|request| request.verb == verb).map(|request| request.options.clone()).collect()
    }

    fn record(&self, verb: Verb, options: ListOptions) {
        self.script().requests.push(ScriptedRequest { verb, options, at: Instant::now() });
    }

    fn script(&self) -> MutexGuard<'_, Script> {
        self.0.script.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl ListerWatcher for Scripted {
    fn list(&self, options: ListOptions) -> BoxFuture<'_, Result<Listing, Error>> {
        Box::pin(async move {
            self.record(Verb::List, options);
            let next = self.script().lists.pop_front();
            match next {
                None => future::pending().await,
                Some(list) => Ok(Listing::new(play(list?.steps, ()))),
            }
        })
    }

    fn watch(&self, options: ListOptions) -> BoxFuture<'_, Result<WatchStream, Error>> {
        Box::pin(async move {
            self.record(Verb::Watch, options);
            let next = self.script().watches.pop_front();
            let Some(watch) = next else { return future::pending().await };
            let watch = watch?;
            tokio::time::sleep(watch.opening).await;
            Ok(WatchStream::new(play(watch.steps, Open::new(&self.0.open_watches))))
        })
    }

    fn description(&self) -> String {
        "scripted objects".into()
    }

    fn streaming_lists(&self) -> Option<&StreamingLists> {
        self.0.streaming.as_ref()
    }
}

/// Counts a stream as open for as long as it lives.
struct Open(Arc<AtomicUsize>);

impl Open {
    fn new(count: &Arc<AtomicUsize>) -> Self {
        count.fetch_add(1, Ordering::SeqCst);
        Self(count.clone())
    }
}

impl Drop for Open {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::SeqCst);
    }
}

enum Step<T> {
    Item(T),
    Wait(Duration),
    Error(Error),
    Hang,
}

fn play<T: Send + 'static, G: Send + 'static>(
    steps: VecDeque<Step<T>>,
    guard: G,
) -> impl stream::Stream<Item = Result<T, Error>> + Send {
    stream::unfold((steps, guard), |(mut steps, guard)| async move {
        loop {
            match steps.pop_front()? {
                Step::Item(item) => return Some((Ok(item), (steps, guard))),
                Step::Wait(time) => tokio::time::sleep(time).await,
                Step::Error(error) => return Some((Err(error), (VecDeque::new(), guard))),
                Step::Hang => future::pending().await,
            }
        }
    })
}

/// The answer to one list.
pub struct ScriptedList {
    steps: VecDeque<Step<ListPart>>,
}

impl ScriptedList {
    /// A list at `version`.
    pub fn new(version: &str, items: impl IntoIterator<Item = Object>) -> Self {
        let metadata = ListMetadata { resource_version: version.into(), ..ListMetadata::default() };
        let items = items.into_iter().map(|item| Step::Item(ListPart::Item(item)));
        Self { steps: std::iter::once(Step::Item(ListPart::Metadata(metadata))).chain(items).collect() }
    }

    /// There are more pages.
    pub fn continues(mut self, token: &str) -> Self {
        if let Some(Step::Item(ListPart::Metadata(metadata))) = self.steps.front_mut() {
            metadata.continue_token = Some(token.to_owned());
        }
        self
    }

    /// Then comes an object that cannot be used.
    pub fn bad(mut self, object: BadObject) -> Self {
        self.steps.push_back(Step::Item(ListPart::Bad(object)));
        self
    }

    /// Then comes another object.
    pub fn item(mut self, object: Object) -> Self {
        self.steps.push_back(Step::Item(ListPart::Item(object)));
        self
    }

    /// Then nothing comes for a time.
    pub fn wait(mut self, time: Duration) -> Self {
        self.steps.push_back(Step::Wait(time));
        self
    }

    /// Then nothing comes any more.
    pub fn hang(mut self) -> Self {
        self.steps.push_back(Step::Hang);
        self
    }

    /// Then the list breaks off.
    pub fn error(mut self, error: Error) -> Self {
        self.steps.push_back(Step::Error(error));
        self
    }
}

/// The answer to one watch. When all has been played, the stream ends, unless it [hangs](Self::hang).
#[derive(Default)]
pub struct ScriptedWatch {
    opening: Duration,
    steps: VecDeque<Step<WatchEvent>>,
}

impl ScriptedWatch {
    /// A watch that ends at once.
    pub fn new() -> Self {
        Self::default()
    }

    /// The stream opens only after a time.
    pub fn opens_after(mut self, time: Duration) -> Self {
        self.opening = time;
        self
    }

    /// Then comes this event.
    pub fn event(mut self, event: WatchEvent) -> Self {
        self.steps.push_back(Step::Item(event));
        self
    }

    /// Then an object is added.
    pub fn added(self, object: Object) -> Self {
        self.event(WatchEvent::Added(object))
    }

    /// Then an object changes.
    pub fn modified(self, object: Object) -> Self {
        self.event(WatchEvent::Modified(object))
    }

    /// Then an object is deleted.
    pub fn deleted(self, object: Object) -> Self {
        self.event(WatchEvent::Deleted(object))
    }

    /// Then comes a bookmark.
    pub fn bookmark(self, version: &str) -> Self {
        self.event(WatchEvent::Bookmark(Bookmark { resource_version: version.into(), initial_events_end: false }))
    }

    /// Then comes the bookmark that ends the initial events.
    pub fn initial_events_end(self, version: &str) -> Self {
        self.event(WatchEvent::Bookmark(Bookmark { resource_version: version.into(), initial_events_end: true }))
    }

    /// Then the server says, within the stream, that something is wrong.
    pub fn error_event(self, error: Error) -> Self {
        self.event(WatchEvent::Error(error))
    }

    /// Then nothing comes for a time.
    pub fn wait(mut self, time: Duration) -> Self {
        self.steps.push_back(Step::Wait(time));
        self
    }

    /// Then nothing comes any more, and the stream does not end.
    pub fn hang(mut self) -> Self {
        self.steps.push_back(Step::Hang);
        self
    }

    /// Then the stream breaks off.
    pub fn error(mut self, error: Error) -> Self {
        self.steps.push_back(Step::Error(error));
        self
    }
}
