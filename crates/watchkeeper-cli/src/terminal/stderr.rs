//! What is said to people?

use std::fmt::Display;
use std::io::Write as _;

/// Writes a line, or a few, to stderr. Where that is full or gone, nothing is said: it is no reason to end.
pub(crate) fn tell(message: impl Display) {
    let text = format!("{message}\n");
    let _ = anstream::stderr().write_all(text.as_bytes());
}
