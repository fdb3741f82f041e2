//! What is shown? Numbers and texts, with no word on how they are drawn: screens and plain lines share them.
//!
//! | file | answers |
//! |---|---|
//! | `observed` | what is counted of one informer |
//! | `row` | what is shown of one kind |
//! | `changes`, `detail` | the last changes, and a few words on each |
//! | `rate` | how often something happens |
//! | `sizes` | how many bytes the objects are |
//! | `busiest` | which objects change most |

mod busiest;
mod changes;
mod detail;
mod observed;
mod rate;
mod row;
mod sizes;

pub(crate) use busiest::{Busiest, Name};
pub(crate) use changes::{Change, Changes, What};
pub(crate) use observed::{Blind, Observed, Watchers};
pub(crate) use rate::Rate;
pub(crate) use row::{Row, Rows, State, each};
pub(crate) use sizes::measure;
