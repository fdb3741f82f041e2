//! The colours of a screen: the terminal's own sixteen, which its owner can read on its background, be that dark or light.

use ratatui::style::{Color, Modifier, Style};

use super::model::{State, What};

/// What nothing is to be said of.
pub(crate) const PLAIN: Style = Style::new();
/// Labels, units, rules: what is seldom looked at.
pub(crate) const DIM: Style = Style::new().add_modifier(Modifier::DIM);
/// Titles.
pub(crate) const TITLE: Style = Style::new().add_modifier(Modifier::BOLD);
/// What catches the eye first.
pub(crate) const ACCENT: Style = Style::new().fg(Color::Cyan);
/// All is well.
pub(crate) const GOOD: Style = Style::new().fg(Color::Green);
/// It is being seen to.
pub(crate) const BUSY: Style = Style::new().fg(Color::Yellow);
/// Something is wrong.
pub(crate) const BAD: Style = Style::new().fg(Color::Red);
/// Something is very wrong.
pub(crate) const ALARM: Style = Style::new().fg(Color::Red).add_modifier(Modifier::BOLD);
/// What was picked.
pub(crate) const PICKED: Style = Style::new().add_modifier(Modifier::REVERSED);

/// The colour of a state.
pub(crate) fn of_state(state: &State) -> Style {
    match state {
        State::Watching => GOOD,
        State::New | State::Listing { .. } => ACCENT,
        State::Stale | State::BackingOff => BUSY,
        State::Forbidden | State::Absent | State::Stopped => BAD,
    }
}

/// The colour of a change.
pub(crate) fn of_change(what: What) -> Style {
    match what {
        What::Added => GOOD,
        What::Modified => BUSY,
        What::Deleted => BAD,
    }
}
