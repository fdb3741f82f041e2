//! Every number that decides how something behaves, with its counterpart in client-go and the reason where ours differs.
//!
//! | here | client-go | value | why it differs |
//! |---|---|---|---|
//! | [`BACKOFF_INITIAL`], [`BACKOFF_MAX`], [`BACKOFF_FACTOR`], [`BACKOFF_JITTER`] | `NewReflectorWithOptions` | 0.8 s to 30 s, x2, jitter 1.0 | |
//! | [`BACKOFF_RESET`] | same, from the beginning of the last delay | 2 min after the end of the last delay | delays of over 2 min would begin anew each time |
//! | [`PAGE_SIZE`], [`PAGE_BUFFER`] | `defaultPageSize`, `defaultPageBufferSize` | 500, 10 pages | |
//! | [`PAGE_BUFFER_BYTES`] | none | 8 MiB | pages of large objects would fill the memory |
//! | [`MIN_WATCH_TIMEOUT`] | `defaultMinWatchTimeout` | 5 min, requests ask for 1 to 2 times as much | |
//! | [`WATCH_TIMEOUT_GRACE`] | none | 5 s | a server that forgets the timeout must not blind us |
//! | [`VERY_SHORT_WATCH`] | `handleAnyWatch` | 1 s | |
//! | [`MIN_WATCH_INTERVAL`] | none (`RetryWatcher` has it) | 1 s | a server that ends each watch after one event would be asked in a hot loop |
//! | [`LIST_IDLE_TIMEOUT`] | none | 30 s without a byte | a list on a dead connection would wait for ever, and so would a streaming list without its end |
//! | [`INITIAL_EVENTS_WARNING`] | `initialEventsEndBookmarkTicker` | 10 s | |
//! | [`STREAMS_WITHOUT_END`], [`STREAMING_PAUSE`] | none: tried again in each cycle | 2, 1 h | |
//! | [`STALE_FACTOR`], [`STALE_FLOOR`] | none | 3 times the longest gap, at least 150 s | bookmarks come about once a minute, but are not promised |
//! | [`NAMED_STALE_OBJECTS`] | none | 100 | |
//! | [`SLOW_LIST`] | `initTrace.LogIfLong` | 10 s | |
//! | [`INTERNAL_ERROR_RESET`] | `NewRetryWithDeadline(.., time.Minute, ..)` | 1 min | |
//! | [`MAX_FRAME`], [`MAX_SKIPPED_FRAME`] | `streaming.go` (16 MiB, an error) | 16 MiB, 4 times that | one large object must not cost the others |
//! | [`LONGEST_VERSION`] | none | 1 KiB | a version that fits in no request would be the end |
//! | [`MAX_RETRY_AFTER`] | none | 60 s | a proxy's `Retry-After: 86400` would blind us |
//! | [`TCP_KEEPALIVE`], [`TCP_KEEPALIVE_INTERVAL`], [`TCP_KEEPALIVE_RETRIES`], [`TCP_USER_TIMEOUT`] | 30 s (Go's default) | dead peers noticed within 45 s | |
//! | [`HTTP2_PING_INTERVAL`], [`HTTP2_PING_TIMEOUT`] | `ReadIdleTimeout`, `PingTimeout` | 30 s, 15 s | |
//! | [`HTTP2_MAX_STREAMS`] | none | 80 a connection | the API server allows 100; watch 101 would wait for ever |
//! | [`CONNECT_TIMEOUT`] | 30 s dialer | 30 s | |
//! | [`MAX_RAW_BYTES`], [`MODEL_BYTES`], [`MODEL_SHARE`], `DICTIONARY_*` and `TRAIN*` | none: objects are kept decoded | see [`Keep`](crate::Keep) | |
//! | [`BATCH_SIZE`] | `defaultBatchSize` | 1,000 | |
//! | [`SLOW_POP`], [`SLOW_POP_DEPTH`], [`SLOW_POP_MAX`] | `Pop`, `PopBatch` | 100 ms for each entry, 1 s for a batch, if more than 10 wait | |
//! | [`PROCESS_RETRY`], [`PROCESS_RETRY_MAX`] | `RetryOnError`: at once | 5 ms to 1 s, x2 | what always fails would keep a core busy |
//! | [`LONG_BACKLOG`] | `processorListener`: a trace from 1,024 on | 1,024 | |
//! | [`MIN_RESYNC_PERIOD`] | `minimumResyncPeriod` | 1 s | |
//! | [`HANDLER_PANIC_PAUSE`] | `processorListener.run` | 1 s | |
//! | [`SYNC_TIMEOUT`], [`SYNC_REFUSALS`] | none: `WaitForCacheSync` waits for ever | 2 min without progress, 3 | whoever waits wants to know why |
//! | [`LINGER`] | none: informers run until their factory stops | 30 s | |
//! | [`SHARED_DECODES`], [`SHARED_EVENTS`] | none: all objects are kept decoded | 64 events, 1,024 changes | |
//! | [`SLOW_SHUTDOWN`] | none | 10 s | |
//! | [`SYNCED_POLL`] | `syncedPollPeriod` | 100 ms | |
//! | [`CONTROLLER_BACKOFF_INITIAL`], [`CONTROLLER_BACKOFF_MAX`] | `DefaultTypedControllerRateLimiter` | 5 ms to 1000 s | |
//! | [`CONTROLLER_BUCKET_PER_SECOND`], [`CONTROLLER_BUCKET_BURST`] | the same | 10 a second, 100 at once | |
//! | [`LIMITER_ITEMS`] | none: what is never forgotten stays | 100,000 | it would fill the memory |
//! | [`QUEUE_MAX_AGE`] | none | 30 s | what is not urgent would wait for ever |
//! | [`INITIAL_PRIORITY`] | controller-runtime: `LowPriority` | -100 | |
//! | [`CONTROLLER_GRACE`] | controller-runtime: `GracefulShutdownTimeout` | 30 s | |
//! | [`QUEUE_KEPT_CAPACITY`] | none | 1,024 | a first list of a million objects would leave its place behind for ever |
//! | [`QUEUE_INBOX`] | none | 256 | who adds and who takes would wait for each other at each item |
//! | [`QUEUE_DURATION_BUCKETS`] | `workqueue_queue_duration_seconds` and `workqueue_work_duration_seconds` of component-base | 10 ns to 10 s | |
//! | [`PROCESSING_LATENCY_BUCKETS`] | `informer_processing_latency_seconds` of component-base | 1 ms to 10 s | |

use std::time::Duration;

/// The first wait after a failure.
pub const BACKOFF_INITIAL: Duration = Duration::from_millis(800);
/// The longest wait after a failure, before jitter.
pub const BACKOFF_MAX: Duration = Duration::from_secs(30);
/// What each wait is of the one before.
pub const BACKOFF_FACTOR: f64 = 2.0;
/// A wait of `d` becomes one between `d` and `d * (1 + jitter)`.
pub const BACKOFF_JITTER: f64 = 1.0;
/// After this long without a wait the next one is the first again.
pub const BACKOFF_RESET: Duration = Duration::from_secs(120);

/// Objects in a page of a list.
pub const PAGE_SIZE: u32 = 500;
/// Pages that are fetched ahead.
pub const PAGE_BUFFER: usize = 10;
/// Bytes of objects that are fetched ahead.
pub const PAGE_BUFFER_BYTES: usize = 8 << 20;

/// The shortest timeout that a watch asks for. The longest is twice that.
pub const MIN_WATCH_TIMEOUT: Duration = Duration::from_secs(300);
/// How long after the timeout that it asked for a watch is given up.
pub const WATCH_TIMEOUT_GRACE: Duration = Duration::from_secs(5);
/// A watch that ends sooner, with no event, has failed.
pub const VERY_SHORT_WATCH: Duration = Duration::from_secs(1);
/// The least time between two openings of a watch, and between a list and one that somebody [asks](crate::Relister) for.
pub const MIN_WATCH_INTERVAL: Duration = Duration::from_secs(1);

/// How long a list may be silent, in pages or as a stream.
pub const LIST_IDLE_TIMEOUT: Duration = Duration::from_secs(30);
/// How often a streaming list that does not end is mentioned in the log.
pub const INITIAL_EVENTS_WARNING: Duration = Duration::from_secs(10);
/// Streaming lists in a row that ended without their bookmark, after which pages are used.
pub const STREAMS_WITHOUT_END: u32 = 2;
/// How long pages are used before a streaming list is tried again.
pub const STREAMING_PAUSE: Duration = Duration::from_secs(3600);

/// A watch is stale after this many times its longest silence between bookmarks...
pub const STALE_FACTOR: u32 = 3;
/// ... but not before this.
pub const STALE_FLOOR: Duration = Duration::from_secs(150);

/// Objects that could not be used which the status and the log name.
pub const NAMED_STALE_OBJECTS: usize = 100;

/// Lists that take longer are logged, with their steps.
pub const SLOW_LIST: Duration = Duration::from_secs(10);
/// After this long without an internal error of the server the window for retrying them starts anew.
pub const INTERNAL_ERROR_RESET: Duration = Duration::from_secs(60);

/// The largest object that is read.
pub const MAX_FRAME: usize = 16 << 20;
/// An object of this many times the limit ends the connection; a smaller one is skipped.
pub const MAX_SKIPPED_FRAME: usize = 4;

/// The longest version, in bytes, that is asked for: one that fits in no request would fail for ever.
pub const LONGEST_VERSION: usize = 1024;

/// The longest wait that a server can ask for.
pub const MAX_RETRY_AFTER: Duration = Duration::from_secs(60);

/// Silence on a connection after which TCP asks whether the peer is there.
pub const TCP_KEEPALIVE: Duration = Duration::from_secs(15);
/// Time between two such questions.
pub const TCP_KEEPALIVE_INTERVAL: Duration = Duration::from_secs(10);
/// Questions without an answer after which the peer is dead.
pub const TCP_KEEPALIVE_RETRIES: u32 = 3;
/// How long sent data may stay unacknowledged.
pub const TCP_USER_TIMEOUT: Duration = Duration::from_secs(30);
/// How long a connection may take to be made.
pub const CONNECT_TIMEOUT: Duration = Duration::from_secs(30);

/// Time between two pings of an HTTP/2 connection.
pub const HTTP2_PING_INTERVAL: Duration = Duration::from_secs(30);
/// How long a ping may stay unanswered.
pub const HTTP2_PING_TIMEOUT: Duration = Duration::from_secs(15);
/// Requests at once on one HTTP/2 connection.
pub const HTTP2_MAX_STREAMS: usize = 80;

/// Raw bodies that wait to be packed, in bytes. Beyond this, reading waits.
pub const MAX_RAW_BYTES: usize = 8 << 20;
/// Bodies of packed objects that others may be much like are kept at hand: at most this part of what has come...
pub const MODEL_SHARE: usize = 128;
/// ... and at most as many bytes.
pub const MODEL_BYTES: usize = 4 << 20;
/// The first dictionary of a kind is made of this many bytes of bodies.
pub const DICTIONARY_SAMPLE: usize = 4 << 20;
/// A kind with fewer bytes of bodies has no dictionary, and stays raw.
pub const DICTIONARY_MIN_BODIES: usize = 1 << 20;
/// A dictionary is at most this part of its kind's bodies...
pub const DICTIONARY_SHARE: usize = 16;
/// ... and at most this large, in bytes.
pub const DICTIONARY_MAX: usize = 128 << 10;
/// The most objects that a dictionary is made of.
pub const DICTIONARY_OBJECTS: usize = 64;
/// The largest dictionary that is asked of zstd's trainer.
pub const TRAINED_DICTIONARY_MAX: usize = 64 << 10;
/// A kind with fewer bytes of bodies has no trained dictionary: to train one would take more memory than all that is kept.
pub const TRAINING_MIN_BODIES: usize = 128 << 20;
/// zstd's level with a dictionary of whole objects. Higher ones take more memory than they save.
pub const RAW_DICTIONARY_LEVEL: i32 = 1;
/// zstd's level with a trained dictionary.
pub const TRAINED_DICTIONARY_LEVEL: i32 = 3;
/// How much smaller a new dictionary must make objects to replace the one in use.
pub const DICTIONARY_GAIN: f64 = 0.1;
/// Another dictionary is tried when the last objects are this many times as large as when it was made...
pub const DICTIONARY_DRIFT: f64 = 1.5;
/// ... and this is how many are looked at, of those that are like no other: one of each template, about.
pub const DICTIONARY_WINDOW: usize = 100;
/// The first wait between looks whether the first list is in the store, so that a dictionary of all of it can be tried; and
/// between looks for objects that still need an old dictionary.
pub const REPACK_WAIT: Duration = Duration::from_secs(1);
/// The longest wait between such looks.
pub const REPACK_WAIT_MAX: Duration = Duration::from_secs(60);
/// The most entries that come out of an [`AtomicFifo`](crate::AtomicFifo) as one batch.
pub const BATCH_SIZE: usize = 1000;
/// Processing what came out of a queue is slow if each entry takes longer than this...
pub const SLOW_POP: Duration = Duration::from_millis(100);
/// ... or all of them longer than this...
pub const SLOW_POP_MAX: Duration = Duration::from_secs(1);
/// ... while more than this many others wait.
pub const SLOW_POP_DEPTH: usize = 10;
/// The first wait after a [`Pump`](crate::Pump)'s function failed, if it is to be tried again...
pub const PROCESS_RETRY: Duration = Duration::from_millis(5);
/// ... and the longest.
pub const PROCESS_RETRY_MAX: Duration = Duration::from_secs(1);
/// How often a function is asked whether it has synced, where nobody tells.
pub const SYNCED_POLL: Duration = Duration::from_millis(100);
/// The bounds of the buckets of `informer_processing_latency_seconds`.
pub const PROCESSING_LATENCY_BUCKETS: [f64; 12] =
    [0.001, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0];
/// An empty queue keeps room for this many entries. More is given back.
pub const QUEUE_KEPT_CAPACITY: usize = 1024;
/// Those who add to a work queue leave this many items together to be taken in.
pub const QUEUE_INBOX: usize = 256;

/// A handler that has this many events to hear is mentioned in the log.
pub const LONG_BACKLOG: usize = 1024;
/// The shortest time between two resyncs of a handler.
pub const MIN_RESYNC_PERIOD: Duration = Duration::from_secs(1);
/// How long a handler that panicked is left alone.
pub const HANDLER_PANIC_PAUSE: Duration = Duration::from_secs(1);
/// How long one waits for an informer's first list without progress.
pub const SYNC_TIMEOUT: Duration = Duration::from_secs(120);
/// How often in a row a server may say that a first list is not to be had (400, 401, 403, 404, 422) before those who wait
/// are told.
pub const SYNC_REFUSALS: u32 = 3;
/// How long an informer runs on when nobody needs it any more.
pub const LINGER: Duration = Duration::from_secs(30);
/// What one handler decodes is shared with the others for this many events.
pub const SHARED_DECODES: usize = 64;
/// Handlers share the events of at most this many changes that came at once.
pub const SHARED_EVENTS: usize = 1024;
/// An informer that stops mentions handlers that have not returned for this long.
pub const SLOW_SHUTDOWN: Duration = Duration::from_secs(10);

/// How often a state of the server that is gone is looked for in a newer one, when a cache is compared with it.
pub const VERIFY_ATTEMPTS: u32 = 3;
/// Between two looks at what differs.
pub const VERIFY_PAUSE: Duration = Duration::from_secs(1);
/// The first of the waits for a change that may be on its way.
pub const VERIFY_POLL: Duration = Duration::from_millis(50);
/// How long a change may be on its way: longer than bookmarks are apart.
pub const VERIFY_WAIT: Duration = Duration::from_secs(90);
/// How many differences are told one by one.
pub const VERIFY_DIFFERENCES: usize = 100;

/// What a controller's item waits after its first failure...
pub const CONTROLLER_BACKOFF_INITIAL: Duration = Duration::from_millis(5);
/// ... and at most.
pub const CONTROLLER_BACKOFF_MAX: Duration = Duration::from_secs(1000);
/// How many failed items of a controller are tried again in a second...
pub const CONTROLLER_BUCKET_PER_SECOND: f64 = 10.0;
/// ... after so many at once.
pub const CONTROLLER_BUCKET_BURST: u32 = 100;
/// Of how many items a rate limiter remembers failures.
pub const LIMITER_ITEMS: usize = 100_000;
/// Times of items in a work queue and of the work on them, in seconds.
pub const QUEUE_DURATION_BUCKETS: [f64; 10] = [1e-8, 1e-7, 1e-6, 1e-5, 1e-4, 1e-3, 1e-2, 0.1, 1.0, 10.0];
/// How long an item of a low priority waits at most while others keep coming.
pub const QUEUE_MAX_AGE: Duration = Duration::from_secs(30);
/// The priority of what was there before a controller.
pub const INITIAL_PRIORITY: i32 = -100;
/// How long a controller's running work may take to finish when it is stopped.
pub const CONTROLLER_GRACE: Duration = Duration::from_secs(30);
