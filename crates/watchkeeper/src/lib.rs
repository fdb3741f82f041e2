//! watchkeeper keeps an exact, live copy of a Kubernetes cluster inside your process, and tells your code what changed.

pub mod defaults;
mod error;
pub mod object;
pub mod pager;
pub mod reflector;
pub mod source;

pub use error::{Error, ErrorKind};
pub use object::{DecodeError, InvalidKey, Labels, Object, ObjectKey, ResourceVersion};
pub use pager::{PagedList, Pager};
pub use reflector::{Backoff, Phase, Reason, Reflector, ReflectorStatus, ReflectorStore, Replacement, StatusReader};
pub use source::{
    BadObject, Bookmark, ClientOptions, ListMetadata, ListOptions, ListPart, ListWatch, ListerWatcher, Listing, Scope,
    Scripted, ScriptedList, ScriptedRequest, ScriptedWatch, StreamingLists, Verb, VersionMatch, WatchEvent,
    WatchStream, client, client_with,
};
