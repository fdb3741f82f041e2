//! Where does the state go?

use std::fs::File;
use std::io::{BufRead as _, BufReader, Read as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use serde::Deserialize;
use tokio_util::sync::{CancellationToken, DropGuard};
use watchkeeper_apiserver::ApiServer;

use crate::failure::{Exit, Failure, Outcome};

/// The first line of a saved state is short.
const FIRST_LINE: u64 = 256;

/// Saves a server's state to a file. Two saves do not get in each other's way.
#[derive(Clone)]
pub(super) struct Saver {
    path: PathBuf,
    one_at_a_time: Arc<tokio::sync::Mutex<()>>,
}

impl Saver {
    /// Refuses a file that is there and holds something else.
    pub(super) fn new(path: PathBuf) -> Outcome<Self> {
        if path.is_dir() || (path.exists() && !is_saved_state(&path)) {
            return Err(Failure::new(Exit::Error, format!("the state is not saved to {}", path.display()))
                .because("something is there already, and it is no saved state")
                .try_this("name another file: --save FILE"));
        }
        Ok(Self { path, one_at_a_time: Arc::default() })
    }

    /// Where.
    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Saves now. What was there is replaced at once, or stays.
    pub(super) async fn save(&self, server: &ApiServer) -> Outcome<()> {
        let _turn = self.one_at_a_time.lock().await;
        let (path, server) = (self.path.clone(), server.clone());
        let saved = tokio::task::spawn_blocking(move || server.save(&path)).await;
        let why = match saved {
            Ok(Ok(())) => return Ok(()),
            Ok(Err(error)) => error.to_string(),
            Err(error) => error.to_string(),
        };
        Err(Failure::new(Exit::Error, format!("the state is not saved to {}", self.path.display()))
            .because(why)
            .try_this("see whether its folder is there, can be written to, and has room"))
    }

    /// Saves as often as this, until the guard is dropped. A save that fails is told, and tried again at its next turn.
    pub(super) fn every(&self, period: Option<Duration>, server: &ApiServer) -> DropGuard {
        let token = CancellationToken::new();
        if let Some(period) = period.filter(|period| !period.is_zero()) {
            let (saver, server, token) = (self.clone(), server.clone(), token.clone());
            tokio::spawn(async move {
                while token.run_until_cancelled(tokio::time::sleep(period)).await.is_some() {
                    if let Err(failure) = saver.save(&server).await {
                        eprintln!("{failure}");
                    }
                }
            });
        }
        token.drop_guard()
    }
}

/// Whether a file begins as a saved state does.
pub(super) fn is_saved_state(path: &Path) -> bool {
    #[derive(Deserialize)]
    #[serde(deny_unknown_fields)]
    struct Head {
        #[serde(rename = "revision")]
        _revision: u64,
    }

    let Ok(file) = File::open(path) else { return false };
    let mut line = String::new();
    let read = BufReader::new(file.take(FIRST_LINE)).read_line(&mut line);
    read.is_ok() && serde_json::from_str::<Head>(&line).is_ok()
}
