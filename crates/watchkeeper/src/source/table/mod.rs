//! What would the server show of an object?
//!
//! A server knows for each kind the columns that people want to see, and their cells: it sends lists and events as Tables
//! if it is asked to ([`ListWatch::table`](crate::ListWatch::table)). A row of one has the cells and the object. What is kept
//! of it is both, as JSON of the form `{"cells":[..],"object":{..}}`, which decodes into a [`TableRow`]; the header is that of
//! the object. What the columns are called is the same for all rows, and is kept once, in [`TableColumns`].
//!
//! Cells say how old an object is, so they change while it does not. Two rows are the same state if their objects are,
//! and if they are of the same columns.
//!
//! A server that has no Tables sends objects. They become rows without cells.

mod columns;
mod read;
mod row;
mod watch;

pub use columns::{TableColumn, TableColumns};
pub(super) use read::{RawRow, is_table_kind};
pub use row::TableRow;
pub(super) use row::{NO_CELLS, body};
pub(super) use watch::{events, read_event_start};
