//! Every number that decides how the server behaves, with its counterpart in a kube-apiserver and the reason where ours
//! differs.
//!
//! | here | kube-apiserver | value | why it differs |
//! |---|---|---|---|
//! | [`VERSION_WAIT`] | `blockTimeout` of the watch cache | 3 s | |
//! | [`WATCH_TIMEOUT`] | `MinRequestTimeout` | 30 min, up to twice that | |
//! | [`BOOKMARKS`], [`BOOKMARK_JITTER`] | `bookmarkFrequency`, a quarter of jitter | 1 min, up to a quarter more | |
//! | [`LAST_BOOKMARK`] | `nextBookmarkTime` | 2 s before the end | |
//! | [`WATCH_BUFFER`] | 10 to 1,000 events | 1,000 events | one size will do |
//! | [`HISTORY_CHANGES`] | the watch cache, 100 to 102,400 events | 102,400 changes of a kind | |
//! | [`HISTORY_AGE`] | etcd's compaction | 5 min | |
//! | [`SHARED_LINES`] | none | 1,000 changes | lines are only shared among those who keep up |
//! | [`JOURNAL`] | none | 100,000 writes | |
//! | [`BODY_LIMIT`] | `MaxRequestBodyBytes` | 3 MiB | |
//! | [`DEPTH_LIMIT`] | Go's 10,000 | 120 levels | other readers of JSON stop at 128, within a list or an event |
//! | [`PATCH_OPERATIONS`] | `maxJSONPatchOperations` | 10,000 | |
//! | [`PATCH_LOOKS`] | none | 10 million values | moving deep things about costs time |
//! | [`VALIDATION_STEPS`] | none | 20 million values | a schema may look at a value many times |
//! | [`CAUSES`], [`SHOWN_VALUE`] | none | 100 complaints, of values with 4,096 characters | what nobody reads takes memory |
//! | [`ANNOTATION_BYTES`] | `TotalAnnotationSizeLimitB` | 256 KiB | |
//! | [`PATTERNS`], [`PATTERN_SIZE`] | Go's limits for each pattern | 500 patterns of a schema, 512 KiB each | compiling takes time |
//! | [`NAME_ATTEMPTS`] | `maxNameGenerationCreateAttempts` | 8 | |
//! | [`GENERATED_PREFIX`], [`GENERATED_SUFFIX`] | `MaxGeneratedNameLength`, `randomLength` | 58 and 5 characters | |
//! | [`POD_GRACE`] | `DefaultTerminationGracePeriodSeconds` | 30 s | |
//! | [`UPDATE_MANAGERS`] | `DefaultMaxUpdateManagers` | 10 | |
//! | [`MANAGER_NAME`] | `FieldManagerMaxLength` | 128 bytes | |
//! | [`MANAGED_SUBRESOURCE`] | `MaxSubresourceNameLength` | 256 bytes | |
//! | [`MANAGED_BYTES`] | etcd's largest request, 1.5 MiB, for the whole object | 1 MiB | objects have a limit of their own here |
//! | [`YAML_ALIASED`] | none | 1 MiB | a few lines of YAML can be made into a lot |
//! | [`MANAGED_DEPTH`] | none | 110 steps | they stand four levels deeper than what they name |
//! | [`GZIP_ABOVE`] | `defaultGzipThresholdBytes` | 128 KiB | |
//! | [`CHUNK`] | none | 64 KiB | long answers are put together as they are read |

use std::time::Duration;

use crate::storage::History;

/// How long a read waits for a version that has not been written yet.
pub const VERSION_WAIT: Duration = Duration::from_secs(3);
/// How long a watch without a timeout lasts at least. It may last twice as long.
pub const WATCH_TIMEOUT: Duration = Duration::from_secs(1800);
/// How often a watch gets a bookmark.
pub const BOOKMARKS: Duration = Duration::from_secs(60);
/// By how much a bookmark may be late, as a part of their distance.
pub const BOOKMARK_JITTER: f64 = 0.25;
/// How long before its end a watch gets the last bookmark.
pub const LAST_BOOKMARK: Duration = Duration::from_secs(2);
/// How many events may wait for a watcher before it is cut off.
pub const WATCH_BUFFER: usize = 1000;

/// How many changes of a kind are kept.
pub const HISTORY_CHANGES: usize = 102_400;
/// How long a change is kept.
pub const HISTORY_AGE: Duration = Duration::from_secs(300);
/// How many changes keep the lines that watchers share.
pub const SHARED_LINES: usize = 1000;
/// How many writes the journal keeps.
pub const JOURNAL: usize = 100_000;

/// The largest body of a request.
pub const BODY_LIMIT: usize = 3 << 20;
/// The deepest object.
pub const DEPTH_LIMIT: usize = 120;
/// The most operations of a JSON patch.
pub const PATCH_OPERATIONS: usize = 10_000;
/// The most values that are looked at before a JSON patch is taken for an attack.
pub const PATCH_LOOKS: usize = 10_000_000;

/// The most values that are looked at before the check of a custom object against its schema is given up.
pub const VALIDATION_STEPS: usize = 20_000_000;
/// About how many complaints a client is told of one object or definition.
pub const CAUSES: usize = 100;
/// How much of a value a complaint shows.
pub const SHOWN_VALUE: usize = 4096;
/// The most bytes that the annotations of an object have, keys and values together.
pub const ANNOTATION_BYTES: usize = 256 << 10;
/// How many different patterns a schema may have.
pub const PATTERNS: usize = 500;
/// How large a compiled pattern may be.
pub const PATTERN_SIZE: usize = 512 << 10;

/// How often a name is made up before the server gives in.
pub const NAME_ATTEMPTS: usize = 8;
/// What is left of a `generateName`, so that prefix and suffix fit into 63 characters.
pub const GENERATED_PREFIX: usize = 58;
/// What is put behind it.
pub const GENERATED_SUFFIX: usize = 5;
/// The seconds that a pod gets to end, if it does not say.
pub const POD_GRACE: i64 = 30;

/// The addresses that services get: the first, and how many there are. A kube-apiserver is told; these are kubeadm's.
pub const SERVICE_ADDRESSES: (std::net::Ipv4Addr, u32) = (std::net::Ipv4Addr::new(10, 96, 0, 10), (1 << 20) - 20);
/// The ports that services get on every node: the first, and how many there are.
pub const NODE_PORTS: (u32, u32) = (30_000, 2768);

/// How many entries of updates managed fields have at most.
pub const UPDATE_MANAGERS: usize = 10;
/// The longest name of a field manager.
pub const MANAGER_NAME: usize = 128;
/// The longest name of a subresource in managed fields.
pub const MANAGED_SUBRESOURCE: usize = 256;
/// The largest managed fields. Who updates an object loses larger ones, and who applies one is refused.
pub const MANAGED_BYTES: usize = 1 << 20;
/// How many bytes the aliases of a configuration in YAML may add to it.
pub const YAML_ALIASED: usize = 1 << 20;
/// The longest path of a managed field. Objects that are deeper are not tracked.
pub const MANAGED_DEPTH: usize = 110;

/// Shorter answers are not worth compressing.
pub const GZIP_ABOVE: usize = 128 << 10;
/// Long answers are sent in chunks of about this size.
pub const CHUNK: usize = 64 << 10;

impl Default for History {
    fn default() -> Self {
        Self { changes: HISTORY_CHANGES, age: HISTORY_AGE }
    }
}
