//! Which objects does a request mean?
//!
//! [`LabelSelector`] and [`FieldSelector`] read what stands in `labelSelector=` and `fieldSelector=`, with the grammar
//! and the error texts of Kubernetes. Both match nothing but what is kept beside an object: its labels, and the fields
//! that its kind can be selected by.
//!
//! ```
//! use watchkeeper_apiserver::selectors::LabelSelector;
//!
//! let selector: LabelSelector = "app in (web, api), !canary".parse()?;
//! assert!(selector.matches(|key| (key == "app").then_some("web")));
//! assert!(!selector.matches(|_| None));
//! assert!("app in web".parse::<LabelSelector>().is_err());
//! # Ok::<(), watchkeeper_apiserver::selectors::InvalidSelector>(())
//! ```

mod field;
mod label;
mod lexer;

pub use field::FieldSelector;
pub use label::LabelSelector;

/// A selector that the server does not understand. Its text is what Kubernetes says.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct InvalidSelector(pub(crate) String);
