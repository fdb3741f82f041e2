//! Which cluster is it, and what does it have?
//!
//! [`Access`] is how a command reaches a cluster: that of a kubeconfig, the one that it runs in, or one in memory.
//! [`kinds`] finds the kinds that people mean by `po`, `deploy` or `leases.coordination.k8s.io`.

mod access;
mod discovery;
pub(crate) mod kinds;
mod scope;

pub(crate) use access::{Access, AccessOptions, shown};
pub(crate) use kinds::{Resource, Target};
pub(crate) use scope::ScopeOptions;
