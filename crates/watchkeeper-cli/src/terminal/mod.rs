//! What does the program do to the terminal, and what must objects not do to it?
//!
//! | file | answers |
//! |---|---|
//! | `color` | whether to paint, and in which colours |
//! | `escape` | how text that others wrote is shown, so that it cannot control the terminal |
//! | `numbers` | counts, durations and sizes for people |
//! | `progress` | how far the first lists are, on stderr |
//! | `stderr` | how something is said to people |
//! | `stdout` | where the output goes, and what happens when nobody reads it any more |
//! | `width` | how many columns a text takes |

mod color;
mod escape;
mod numbers;
mod progress;
mod stderr;
mod stdout;
mod width;

pub(crate) use color::{Color, styles};
pub(crate) use escape::{escape_cell, escape_json, escape_lines, escape_text, is_unsafe};
pub(crate) use numbers::{bytes, count, seconds};
pub(crate) use progress::{KindProgress, Progress};
pub(crate) use stderr::tell;
pub(crate) use stdout::{Output, is_reader_gone};
pub(crate) use width::{cut, pad_to, width};
