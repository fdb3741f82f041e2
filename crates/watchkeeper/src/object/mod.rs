//! What is one object, before anybody has decoded it?
//!
//! Everything from the source on passes [`Object`]s: cheap handles to a header that is always at hand and a body that
//! is decoded when somebody asks. See [`ObjectKey`] for what identifies one, [`ResourceVersion`] for its age.
//!
//! ```
//! use watchkeeper::Object;
//!
//! let pod = Object::from_json(r#"{"metadata": {"name": "web-0", "namespace": "shop", "resourceVersion": "7"}}"#)?;
//! assert_eq!(pod.key().to_string(), "shop/web-0");
//! assert_eq!(pod.resource_version().as_str(), "7");
//! # Ok::<(), watchkeeper::Error>(())
//! ```

mod cached;
mod decode_error;
mod decodes;
mod handle;
pub(crate) mod header;
mod key;
mod kind;
mod labels;
pub(crate) mod packed;
pub(crate) mod skim;
mod splice;
mod text;
mod version;

pub use cached::Cached;
pub use decode_error::DecodeError;
pub(crate) use decodes::{Places, Shared};
pub use handle::Object;
pub(crate) use handle::{WeakObject, body_hash};
pub use key::{InvalidKey, ObjectKey};
pub use kind::Kind;
pub(crate) use labels::LabelSets;
pub use labels::Labels;
pub use version::ResourceVersion;
