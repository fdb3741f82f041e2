//! A cluster by kind, on a screen.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use ratatui::Frame;
use tokio_util::sync::CancellationToken;

use super::{Copies, Options, over};
use crate::failure::{Exit, Outcome};
use crate::screen::model::{Change, Name, Row, Rows};
use crate::screen::widgets::short_names;
use crate::screen::{self, Input, View};
use crate::terminal::Color;

mod draw;
#[cfg(test)]
mod tests;

/// How many changes and busy objects are taken at most: no screen is longer.
const LINES: usize = 100;
/// How many kinds a page is.
const PAGE: usize = 10;

/// What is shown.
#[derive(Default)]
struct Model {
    cluster: String,
    elapsed: Duration,
    /// Those of which there is something.
    rows: Vec<Row>,
    all: Rows,
    names: HashMap<Arc<str>, String>,
    changes: Vec<Arc<Change>>,
    busiest: Vec<(Name, u64)>,
    /// The kind that was picked, by its name: rows come and go.
    picked: Option<Arc<str>>,
    is_paused: bool,
}

struct TopView<'a> {
    copies: &'a Copies,
    model: Model,
}

/// Shows it until somebody has seen enough, or the time is over.
pub(crate) async fn show(options: &Options, color: Color, copies: &Copies, token: CancellationToken) -> Outcome {
    let mut view = TopView { copies, model: Model::default() };
    let end = async {
        tokio::select! {
            () = over(options.duration, copies) => {}
            () = token.cancelled() => {}
        }
    };
    let painted = color.paints(&std::io::stdout());
    screen::run(&mut view, painted, end).await?;
    Ok(Exit::Ok)
}

impl View for TopView<'_> {
    fn look(&mut self) {
        if self.model.is_paused {
            return;
        }
        let (model, copies) = (&mut self.model, self.copies);
        model.cluster.clone_from(&copies.name);
        model.elapsed = copies.started.elapsed();
        model.all.sample(Instant::now(), copies.observed.iter());
        model.rows = copies.shown(&model.all).into_iter().cloned().collect();
        model.names = short_names(copies.observed.iter().map(|kind| &kind.name));
        model.look_at_changes(copies);
        model.busiest = copies.watchers.busiest().top(Instant::now(), LINES);
    }

    fn draw(&self, frame: &mut Frame<'_>) {
        draw::draw(frame, &self.model);
    }

    fn key(&mut self, input: Input) {
        let at = self.model.picked_row();
        let Some(last) = self.model.rows.len().checked_sub(1) else { return };
        let now = match input {
            Input::Pause => {
                self.model.is_paused = !self.model.is_paused;
                return;
            }
            // Above the first are all.
            Input::Up => at.and_then(|at| at.checked_sub(1)),
            Input::PageUp => at.and_then(|at| at.checked_sub(PAGE)),
            Input::Down => Some(at.map_or(0, |at| at + 1).min(last)),
            Input::PageDown => Some(at.map_or(PAGE - 1, |at| at + PAGE).min(last)),
            Input::Pick(picked) => Some(picked.min(last)),
            Input::All => None,
            Input::Faults | Input::Suspend | Input::Resumed | Input::Resized | Input::Quit | Input::Gone => return,
        };
        self.model.picked = now.and_then(|at| self.model.rows.get(at)).map(|row| row.name.clone());
        self.model.look_at_changes(self.copies);
    }
}

impl Model {
    /// Which row is that of the kind that was picked.
    fn picked_row(&self) -> Option<usize> {
        let picked = self.picked.as_ref()?;
        self.rows.iter().position(|row| row.name == *picked)
    }

    fn look_at_changes(&mut self, copies: &Copies) {
        self.changes = copies.watchers.changes.last(LINES, self.picked.as_deref());
    }
}
