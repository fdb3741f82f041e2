//! Fixed data for the tests of screens.

use std::time::{Duration, Instant};

use super::model::{Blind, Rate, Row, Rows, State};

/// A kind with so many objects and changes.
pub(crate) fn row(name: &str, objects: u64, changes: u64, state: State) -> Row {
    let start = Instant::now();
    let mut rate = Rate::new(start);
    for second in 1..=6 {
        rate.sample(start + Duration::from_secs(second), changes * second / 6);
    }
    let blind =
        Blind { gaps: u64::from(state != State::Watching), total: Duration::from_millis(1_300), ..Blind::default() };
    Row {
        name: name.into(),
        metadata_only: false,
        synced: true,
        objects,
        state,
        rate,
        sizes: Some((objects * 7_000, objects * 600)),
        blind,
        relists: 0,
        last_contact: Some(Duration::from_secs(1)),
        last_error: None,
    }
}

/// These kinds.
pub(crate) fn rows(rows: Vec<Row>) -> Rows {
    let rate = rows.iter().map(|row| row.rate.clone()).max_by_key(Rate::total);
    let mut fixed = Rows::default();
    (fixed.rows, fixed.rate) = (rows, rate);
    fixed
}

/// The text with `hh:mm:ss` in the place of each time of day: where the test runs shall not matter.
pub(crate) fn without_times(text: &str) -> String {
    let mut shown: Vec<char> = text.chars().collect();
    for at in 0..shown.len().saturating_sub(7) {
        let is_time = (at..at + 8).all(|place| match place - at {
            2 | 5 => shown[place] == ':',
            _ => shown[place].is_ascii_digit(),
        });
        if is_time {
            shown.splice(at..at + 8, "hh:mm:ss".chars());
        }
    }
    shown.into_iter().collect()
}
