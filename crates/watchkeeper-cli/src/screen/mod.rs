//! How is something shown that changes all the time?
//!
//! A [`View`] looks at how things are and draws them; [`run()`] shows it ten times a second, hands it the keys, and leaves
//! the terminal as it was, whatever happens. The `model` is what is shown, without a word on how; `widgets` are the parts of
//! a screen, a file each. Whatever others wrote is escaped where it is drawn.

#[cfg(test)]
pub(crate) mod fixtures;
mod keys;
pub(crate) mod model;
pub(crate) mod palette;
mod run;
mod terminal_guard;
pub(crate) mod widgets;

pub(crate) use keys::Input;
pub(crate) use run::{View, run};
pub(crate) use terminal_guard::{give_back, is_possible};
