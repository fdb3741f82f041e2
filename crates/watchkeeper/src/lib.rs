//! watchkeeper keeps an exact, live copy of a Kubernetes cluster inside your process, and tells your code what changed.
//!
//! The modules stand in the order in which a change passes through them:
//!
//! - [`object`]: what is one object, before anybody has decoded it?
//! - [`source`]: where do objects come from? [`client`] makes a client that notices dead peers, [`ListWatch`] lists and
//!   watches a kind with it, [`Scripted`] stands in for a server in tests.
//! - [`pager`]: how does one read a list that is too long for one answer?
//! - [`reflector`]: how does a copy of a kind stay true? [`Reflector`] lists and watches for ever, and writes what it
//!   learns into a [`ReflectorStore`].
//!
//! All that can fail while talking to a server fails with one [`Error`], which knows how it is to be treated. Every
//! number that decides something stands in [`defaults`].
//!
//! Everything runs on the ambient tokio runtime.

pub mod object;
pub mod source;

pub mod pager;
pub mod reflector;

pub mod keyed;

pub mod defaults;
mod error;

pub use error::{Error, ErrorKind};
pub use keyed::{Key, KeyError, KeyFunction, KnownObjects, Queue, StoreOps, object_key};
pub use object::{Cached, DecodeError, InvalidKey, Kind, Labels, Object, ObjectKey, ResourceVersion};
pub use pager::{PagedList, Pager};
pub use reflector::{Backoff, Phase, Reason, Reflector, ReflectorStatus, ReflectorStore, Replacement, StatusReader};
pub use source::{
    BadObject, Bookmark, ClientOptions, DecodeInto, Keep, ListMetadata, ListOptions, ListPart, ListWatch,
    ListerWatcher, Listing, Packing, Scope, Scripted, ScriptedList, ScriptedRequest, ScriptedWatch, StreamingLists,
    Transform, Verb, VersionMatch, WatchEvent, WatchStream, client, client_with,
};

/// The program of the README compiles.
#[cfg(doctest)]
#[doc = include_str!("../../../README.md")]
struct Readme;

/// What the macros need.
#[doc(hidden)]
pub mod __private {
    pub use kube_core::ApiResource;
}
