//! What becomes of objects after a write?
//!
//! In a cluster, controllers beside the API server see to it that what belongs to something goes with it, and that a
//! deleted namespace is emptied. Here the server does that itself, unless [`Controllers::Elsewhere`] says that somebody
//! else does. What follows from a write is noted with it, and done by the request that wrote, before it is answered: one
//! piece after the other from a queue, each a write of its own that watchers see. Nothing waits for time to pass, and a
//! server with a seed does the same in every run.
//!
//! ```
//! use k8s_openapi::api::core::v1::ConfigMap;
//! use kube_client::{Api, ResourceExt, api::DeleteParams};
//! use serde_json::json;
//! use watchkeeper_apiserver::ApiServer;
//!
//! # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let server = ApiServer::new();
//! let owner = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "owner"}});
//! let uid = server.create(owner)?.uid().to_owned();
//! let reference = json!({"apiVersion": "v1", "kind": "ConfigMap", "name": "owner", "uid": uid});
//! let owned = json!({"name": "owned", "ownerReferences": [reference]});
//! server.create(json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": owned}))?;
//!
//! let maps: Api<ConfigMap> = Api::default_namespaced(server.client());
//! maps.delete("owner", &DeleteParams::default()).await?;
//! assert!(maps.get_opt("owned").await?.is_none());
//! # Ok(()) }
//! ```

mod garbage;
mod namespaces;

use std::sync::Arc;

use serde_json::Value;

use crate::crds;
use crate::kinds::Kind;
use crate::server::Inner;
use crate::storage::{Document, Expect, Place, Stored, Work};
use crate::verbs::is_finished;

/// So many pieces of work are done before others get their turn.
const TURN: usize = 32;

/// Who removes what belongs to something that is gone, and empties namespaces.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Controllers {
    /// The server, at once.
    BuiltIn,
    /// Somebody else, as a kube-controller-manager: the server only writes what it is told to.
    Elsewhere,
}

/// Does what follows from what was written, with pauses in which others get their turn. If nobody waits for it any more, the
/// rest is done without pauses.
pub(crate) async fn settle(server: &Arc<Inner>) {
    struct Rest<'a>(&'a Arc<Inner>);
    impl Drop for Rest<'_> {
        fn drop(&mut self) {
            settle_now(self.0);
        }
    }
    let rest = Rest(server);
    let mut done = 0;
    crds::settle(server);
    while let Some(work) = next_work(server) {
        perform(server, work);
        done += 1;
        if done % TURN == 0 {
            tokio::task::yield_now().await;
        }
    }
    drop(rest);
}

/// Does what follows from what was written.
pub(crate) fn settle_now(server: &Arc<Inner>) {
    crds::settle(server);
    while let Some(work) = next_work(server) {
        perform(server, work);
    }
}

/// The next piece of work. What was done may have been done to definitions, and what becomes of these may be work again.
fn next_work(server: &Arc<Inner>) -> Option<Work> {
    server.storage.next_work().or_else(|| {
        crds::settle(server);
        server.storage.next_work()
    })
}

fn perform(server: &Arc<Inner>, work: Work) {
    match work {
        Work::Dependent(place) => garbage::dependent(server, &place),
        Work::Owner(place) => garbage::owner(server, &place),
        Work::Forget(place, uid) => garbage::forget(server, &place, &uid),
        Work::Expel(place) => namespaces::expel(server, &place),
        Work::Namespace(name) => namespaces::empty(server, &name),
    }
    server.storage.work_done();
}

/// What is at a place.
fn found(server: &Inner, place: &Place) -> Option<(Arc<Kind>, Arc<Stored>)> {
    let kind = server.registry.by_id(place.kind)?;
    let object = server.storage.get(&kind, &place.key)?;
    Some((kind, object))
}

/// Changes an object, as long as it is the same one. What nothing holds any more after that goes.
fn rewrite(server: &Inner, kind: &Arc<Kind>, object: &Stored, change: impl Fn(&mut Document)) {
    let (key, uid) = (object.key(), object.uid());
    while let Some(current) = server.storage.get(kind, key).filter(|current| current.uid() == uid) {
        let old = current.document();
        let mut next = old.clone();
        change(&mut next);
        if next == old {
            return;
        }
        let expect = Expect::Revision(current.revision());
        let written = match is_finished(kind, &next) {
            true => server.storage.delete(kind, key, expect).is_ok(),
            false => server.storage.put(kind, key, &next, expect).is_ok(),
        };
        if written {
            return;
        }
    }
}

/// Takes entries out of a list of the metadata; an empty list goes too.
fn remove_entries(document: &mut Document, list: &str, remove: impl Fn(&Value) -> bool) {
    let Some(Value::Array(entries)) = document.metadata_mut().get_mut(list) else { return };
    entries.retain(|entry| !remove(entry));
    if entries.is_empty() {
        document.metadata_mut().remove(list);
    }
}
