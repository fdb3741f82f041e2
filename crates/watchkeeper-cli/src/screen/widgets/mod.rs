//! The parts of a screen. Each draws what it is given into an area, however small that is.

mod changes;
mod section;
mod spark;
mod table;
mod texts;

pub(crate) use changes::changes;
pub(crate) use section::{help, section};
pub(crate) use spark::spark;
pub(crate) use table::{Cell, Column, Table};
pub(crate) use texts::{clock, short_names, texts};
