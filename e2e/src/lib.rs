//! A real Kubernetes, started and stopped by test programs.
//!
//! The programs in `src/bin` are the suites; `cargo xtask e2e` runs them. Each finds or builds the real programs
//! ([`Programs`]), starts a cluster of them ([`Cluster`]), disturbs it (also by a [`Proxy`] in between), and says what came
//! of it ([`Report`]).

mod arguments;
mod cluster;
mod interrupt;
mod programs;
mod proxy;
mod report;

pub use arguments::Arguments;
pub use cluster::{Cluster, Settings, User};
pub use interrupt::unless_interrupted;
pub use programs::{NotHere, Programs};
pub use proxy::Proxy;
pub use report::Report;

/// Why something did not work, with its context.
pub type Failure = anyhow::Error;
