//! What can go wrong between a server and its clients, on demand?
//!
//! [`Faults`] holds rules: which requests, and what happens to them. A rule names the requests by verb, kind and count
//! ([`Match`]), and one or more [`Fault`]s. Nothing of it costs anything while there are no rules. Every fault that is
//! injected is written down, with its time and its request, and
//! [`ApiServer::journal`](crate::ApiServer::journal) shows it beside the writes.
//!
//! ```
//! use http_body_util::Empty;
//! use tower::ServiceExt;
//! use watchkeeper_apiserver::{ApiServer, Fault, Match};
//!
//! # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error + Send + Sync>> {
//! let server = ApiServer::new();
//! let rule = server.faults().on(Match::list("pods").nth(2)).then(Fault::status(503, "ServiceUnavailable"));
//!
//! let mut codes = Vec::new();
//! for _ in 0..3 {
//!     let request = http::Request::get("/api/v1/pods").body(Empty::<bytes::Bytes>::new())?;
//!     codes.push(server.service().oneshot(request).await?.status().as_u16());
//! }
//! assert_eq!(codes, [200, 503, 200]);
//! assert_eq!(rule.injected(), 1);
//! rule.remove();
//! # Ok(()) }
//! ```
//!
//! The way of a request, once there are rules: `rules` finds those that match and writes them down, `serve` does what
//! comes before the answer, `events` changes the lines of a watch and `items` those of a list, `wire` holds back or cuts
//! off the bytes.

mod events;
mod fault;
mod items;
mod matching;
mod objects;
mod random;
mod record;
mod rules;
mod serve;
mod wire;

use std::sync::Arc;

pub use fault::{Ending, Fault, StallAt};
pub use matching::Match;
pub(crate) use record::merged;
pub use record::{FaultRecord, Record};
pub(crate) use rules::Injector;
pub(crate) use serve::answer;
pub use wire::{Cut, OnSocket};

use crate::server::Inner;

/// The faults of a server. [`ApiServer::faults`](crate::ApiServer::faults) gives it; clones are the same.
#[derive(Clone)]
pub struct Faults {
    server: Arc<Inner>,
}

/// Requests that something is to happen to. [`Faults::on`] makes it.
#[must_use = "nothing happens before `then` says what"]
pub struct On {
    faults: Faults,
    requests: Match,
}

/// A rule that is in force. Dropping it changes nothing; [`remove`](Self::remove) ends it.
#[derive(Clone)]
pub struct Rule {
    faults: Faults,
    id: u64,
}

impl Faults {
    pub(crate) fn new(server: Arc<Inner>) -> Self {
        Self { server }
    }

    /// Names the requests of a rule. Their count begins when the rule does.
    pub fn on(&self, requests: Match) -> On {
        On { faults: self.clone(), requests }
    }

    /// Ends all rules. What they have done to answers that are under way goes on.
    pub fn clear(&self) {
        self.server.faults.clear();
    }

    /// Everything that was injected so far, oldest first. A fault is written down when its request comes; one that waits
    /// for the n-th object of an answer stands here even if there are fewer.
    pub fn injected(&self) -> Vec<FaultRecord> {
        self.server.faults.records()
    }

    /// Cuts all watches, all answers that a fault holds back, and all connections of all ports; clients can come back at
    /// once.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")] async fn main() {
    /// let server = watchkeeper_apiserver::ApiServer::new();
    /// server.faults().cut();
    /// # }
    /// ```
    pub fn cut(&self) {
        cut(&self.server);
    }

    /// Restarts the server: all is cut as by [`cut`](Self::cut), and without its data it is a new cluster, whose revisions begin anew.
    ///
    /// ```
    /// use watchkeeper_apiserver::ApiServer;
    ///
    /// let server = ApiServer::new();
    /// server.create(serde_json::json!({"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n1"}}))?;
    /// server.faults().restart(true);
    /// assert_eq!(server.storage().revision(), 6);
    /// server.faults().restart(false);
    /// assert_eq!(server.storage().revision(), 5, "as after the start");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn restart(&self, keep_data: bool) {
        restart(&self.server, keep_data);
    }
}

impl On {
    /// Says what happens, and puts the rule in force.
    pub fn then(self, fault: Fault) -> Rule {
        let id = self.faults.server.faults.add(self.requests, fault);
        Rule { faults: self.faults, id }
    }
}

impl Rule {
    /// Something else that happens to the same requests.
    pub fn then(self, fault: Fault) -> Self {
        self.faults.server.faults.extend(self.id, fault);
        self
    }

    /// Ends the rule.
    pub fn remove(&self) {
        self.faults.server.faults.remove(self.id);
    }

    /// To how many requests it has happened.
    pub fn injected(&self) -> u64 {
        self.faults.server.faults.injected_by(self.id)
    }
}

/// What [`Faults::restart`] and [`Fault::Restart`] do.
fn restart(server: &Arc<Inner>, keep_data: bool) {
    cut(server);
    if !keep_data {
        server.storage.wipe();
        crate::crds::settle(server);
        server.faults.data_was_lost();
        server.found();
        // Whoever came in between has seen what is no more.
        cut(server);
    }
}

/// What [`Faults::cut`] does. Connections hear of it first: a watch whose connection is open would end properly.
fn cut(server: &Inner) {
    server.faults.cut();
    server.storage.disconnect();
}
