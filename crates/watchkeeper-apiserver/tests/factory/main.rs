//! The factory of informers on the server: who shares what, when it starts, and when it ends.

mod counted;
mod dynamic;
mod many;
mod measuring;
mod metadata;
mod options;
mod sharing;
mod special;
mod starting;
mod stopping;
mod support;
mod waiting;
