//! What does a library have to offer to be driven?

use std::sync::Arc;

use clap::ValueEnum;
use k8s_openapi::api::core::v1::Pod;

use super::Outcome;
use super::arguments::Handler;
use super::heard::Heard;
use super::reads::Look;

/// A library that keeps a cache, and tells handlers what changes.
pub(crate) trait Library {
    /// What it is called in results.
    const NAME: &str;
    /// The package whose version is said.
    const PACKAGE: &str;
    type Mode: ValueEnum + Clone + Copy + Send + Sync + 'static;
    type Cache: Cache;

    /// Lists and watches pods from now on, with one handler for each of `heard`. Pods may be asked for `by_node`: a library
    /// that has indexes has one for that.
    async fn start(setup: Setup<'_, Self::Mode>, by_node: bool) -> Outcome<Self::Cache>;
}

/// What is to be started.
pub(crate) struct Setup<'a, M> {
    pub(crate) server: http::Uri,
    pub(crate) mode: M,
    pub(crate) handler: Handler,
    pub(crate) heard: &'a [Arc<Heard>],
}

/// A cache that is kept, and how it is read. Cheap to clone.
pub(crate) trait Cache: Clone + Send + 'static {
    type Key: Send + Sync + 'static;
    type Selector: Send + Sync + 'static;

    /// Returns when the first list can be read.
    async fn synced(&self) -> Outcome;

    /// Nothing is left to be done behind the scenes, as far as the library tells.
    fn is_at_rest(&self) -> bool;

    /// Calls `each` with namespace, name and version of every pod.
    fn all(&self, each: impl FnMut(&str, &str, &str));

    fn key(namespace: &str, name: &str) -> Self::Key;
    fn selector(label: &str, value: &str) -> Outcome<Self::Selector>;

    fn get(&self, key: &Self::Key, look: &mut Look);
    fn namespace(&self, namespace: &str, look: &mut Look);
    fn node(&self, node: &str, look: &mut Look);
    fn matching(&self, selector: &Self::Selector, look: &mut Look);
}

/// What the handler `decode` reads of a pod.
pub(crate) fn read_pod(pod: &Pod) -> usize {
    let length = |text: Option<&String>| text.map_or(0, String::len);
    let (spec, status) = (pod.spec.as_ref(), pod.status.as_ref());
    length(pod.metadata.name.as_ref())
        + length(spec.and_then(|spec| spec.node_name.as_ref()))
        + length(status.and_then(|status| status.phase.as_ref()))
        + length(status.and_then(|status| status.pod_ip.as_ref()))
        + spec.map_or(0, |spec| spec.containers.len())
}
