//! A living cluster.

use tokio_util::sync::CancellationToken;
use watchkeeper_apiserver::ApiServer;

#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct LivingOptions {
    pub(crate) objects: usize,
    pub(crate) seed: u64,
    pub(crate) rate: f64,
    pub(crate) now: Option<jiff::Timestamp>,
}

impl Default for LivingOptions {
    fn default() -> Self {
        Self { objects: 3000, seed: 1, rate: 30.0, now: None }
    }
}

pub(crate) struct Living;

impl Living {
    pub(crate) async fn start(
        _: &ApiServer,
        _: LivingOptions,
        _: CancellationToken,
    ) -> Result<Self, watchkeeper::Error> {
        Ok(Self)
    }
    pub(crate) async fn stop(self) {}
}
