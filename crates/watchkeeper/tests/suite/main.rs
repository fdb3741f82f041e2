//! The behaviours of the library, one module for each part of it. `docs/conformance.md` names these tests.

#[allow(unreachable_pub, reason = "what the tests share")]
mod support;

#[path = "../corpus/mod.rs"]
mod corpus;

// With the model checker's locks the queues work in tests/model.rs only.
#[cfg(not(feature = "model-check"))]
#[allow(unreachable_pub, reason = "what the tests share")]
mod queue_support;

#[cfg(not(feature = "model-check"))]
mod atomic_fifo;
#[cfg(not(feature = "model-check"))]
mod delta_fifo;
#[cfg(not(feature = "model-check"))]
mod delta_fifo_replace;
#[cfg(not(feature = "model-check"))]
mod pump;
#[cfg(not(feature = "model-check"))]
mod queue_properties;
#[cfg(not(feature = "model-check"))]
mod workqueue;

mod bad_input;
mod cached;
mod conformance;
mod controller;
mod controller_faults;
mod hostile;
mod identity;
mod index;
#[cfg(not(feature = "model-check"))]
mod informer;
mod informer_identity;
mod informer_shutdown;
mod known_defects;
mod list_reader;
mod list_watch;
mod lister;
mod lister_wait;
mod metrics;
mod object;
mod packing;
mod pager;
mod prometheus;
mod reflector;
mod reflector_gaps;
mod reflector_list;
mod reflector_liveness;
mod reflector_relist;
mod reflector_status;
mod reflector_watch;
mod reflector_watch_objects;
mod secrets_in_logs;
mod selector;
mod smoke;
mod store;
mod store_properties;
mod store_snapshots;
mod store_source;
mod streaming_list;
mod streaming_list_faults;
mod synctrack;
mod table;
mod thread_safe_store;
mod transform;
mod verify;
mod watch_reader;
