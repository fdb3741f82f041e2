//! What a living cluster does.

mod beginning;
mod faults;
mod going_on;
mod happening;
mod support;
