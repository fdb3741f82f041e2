//! The demo on a screen.

use std::io::Write as _;
use std::sync::Arc;
use std::time::Duration;

use ratatui::Frame;
use tokio::sync::OnceCell;
use tokio_util::sync::CancellationToken;

use super::check::Verdict;
use super::model::Model;
use super::{Cluster, Options, last_words, over};
use crate::failure::{Failure, Outcome};
use crate::screen::{self, Input, View};
use crate::terminal::{Color, escape_text};

mod draw;
#[cfg(test)]
mod tests;

/// How many kinds a page is.
const PAGE: usize = 5;

/// The demo, from before it is there.
struct DemoView {
    model: Model,
    cluster: Arc<OnceCell<Cluster>>,
}

/// Shows the demo until it is over, and gives what came of comparing.
pub(crate) async fn show(options: &Options, color: Color, token: CancellationToken) -> Outcome<Verdict> {
    let cluster: Arc<OnceCell<Cluster>> = Arc::default();
    let mut view = DemoView { model: Model::new(options), cluster: cluster.clone() };
    let mut failed: Option<Failure> = None;
    let end = async {
        let going_on = async {
            let started = cluster.get_or_try_init(|| Cluster::start(options)).await?;
            started.sync(options.seed).await?;
            over(options).await;
            Ok::<(), Failure>(())
        };
        tokio::select! {
            result = going_on => failed = result.err(),
            () = token.cancelled() => {}
        }
    };
    let painted = color.paints(&std::io::stdout());
    screen::run(&mut view, painted, end).await?;
    drop(view);
    if let Some(failure) = failed {
        return Err(failure);
    }
    match Arc::into_inner(cluster).and_then(OnceCell::into_inner) {
        Some(cluster) => {
            let verdict = cluster.stop().await;
            // Where the terminal is gone, there is nobody to tell.
            let _ = writeln!(std::io::stdout(), "{}", escape_text(&last_words(&verdict)));
            Ok(verdict)
        }
        // Somebody had seen enough before there was anything to see.
        None => Ok(Verdict::default()),
    }
}

impl View for DemoView {
    fn look(&mut self) {
        if let Some(cluster) = self.cluster.get()
            && !self.model.is_paused
        {
            self.model.look(cluster);
        }
    }

    fn draw(&self, frame: &mut Frame<'_>) {
        draw::draw(frame, &self.model);
    }

    fn key(&mut self, input: Input) {
        let Some(cluster) = self.cluster.get() else { return };
        let (picked, last) = (self.model.picked, self.model.rows.rows.len().checked_sub(1));
        self.model.picked = match input {
            Input::Pause => {
                self.model.is_paused = !self.model.is_paused;
                picked
            }
            Input::Faults => {
                cluster.rain.turn();
                self.model.rains = cluster.rain.is_on();
                picked
            }
            // Above the first are all.
            Input::Up => picked.and_then(|at| at.checked_sub(1)),
            Input::PageUp => picked.and_then(|at| at.checked_sub(PAGE)),
            Input::Down => last.map(|last| picked.map_or(0, |at| at + 1).min(last)),
            Input::PageDown => last.map(|last| picked.map_or(PAGE - 1, |at| at + PAGE).min(last)),
            Input::Pick(at) => Some(at).filter(|at| last.is_some_and(|last| *at <= last)).or(picked),
            Input::All => None,
            Input::Suspend | Input::Resumed | Input::Resized | Input::Quit | Input::Gone => picked,
        };
        if self.model.picked != picked {
            self.model.look_at_changes(cluster);
        }
    }
}

/// `00:42`, `1:02:03`.
fn stopwatch(elapsed: Duration) -> String {
    let seconds = elapsed.as_secs();
    match seconds / 3600 {
        0 => format!("{:02}:{:02}", seconds / 60, seconds % 60),
        hours => format!("{hours}:{:02}:{:02}", seconds / 60 % 60, seconds % 60),
    }
}
