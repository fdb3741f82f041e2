//! Shows something that changes, until somebody has seen enough.

use std::time::Duration;

use ratatui::Frame;
use ratatui::buffer::Buffer;
use ratatui::style::Color as Paint;
use tokio::time::{MissedTickBehavior, interval};

use super::keys::{Input, Keys};
use super::terminal_guard::TerminalGuard;
use crate::failure::{Exit, Failure, Outcome};

/// How often it is drawn anew.
const FRAME: Duration = Duration::from_millis(100);

/// Something that can be shown.
pub(crate) trait View {
    /// Looks at how things are.
    fn look(&mut self);

    /// Draws them.
    fn draw(&self, frame: &mut Frame<'_>);

    /// A key was pressed, other than one that ends it.
    fn key(&mut self, input: Input);
}

/// Shows it until a key ends it, or `end` is there. The terminal is as it was before, then.
pub(crate) async fn run(view: &mut impl View, painted: bool, end: impl Future<Output = ()>) -> Outcome<()> {
    let mut guard = TerminalGuard::take().map_err(|error| no_screen(&error))?;
    let mut keys = Keys::read().map_err(|error| no_screen(&error))?;
    let mut frames = interval(FRAME);
    frames.set_missed_tick_behavior(MissedTickBehavior::Delay);
    tokio::pin!(end);
    loop {
        let input = tokio::select! {
            biased;
            () = &mut end => return Ok(()),
            input = keys.next() => Some(input),
            _ = frames.tick() => None,
        };
        if TerminalGuard::has_panicked() {
            return Err(Failure::new(Exit::Error, "the screen has ended, because of the panic above"));
        }
        match input {
            Some(Input::Quit | Input::Gone) => return Ok(()),
            Some(input) => view.key(input),
            None => view.look(),
        }
        let drawn = guard.terminal.draw(|frame| {
            view.draw(frame);
            if !painted {
                without_colours(frame.buffer_mut());
            }
        });
        drawn.map_err(|error| no_screen(&error))?;
    }
}

/// Bold and dim stay: they are no colours.
fn without_colours(buffer: &mut Buffer) {
    for cell in &mut buffer.content {
        cell.fg = Paint::Reset;
        cell.bg = Paint::Reset;
    }
}

fn no_screen(error: &std::io::Error) -> Failure {
    Failure::new(Exit::Error, "the screen cannot be drawn").because(error).try_this("have it printed instead: | cat")
}
