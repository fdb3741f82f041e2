//! What is happening, in a line each.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};

use jiff::Timestamp;

use super::clock::Clock;

/// How many lines are remembered.
const LINES: usize = 200;

/// Something that happened.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Happening {
    /// When it happened.
    pub(crate) at: Timestamp,
    /// What happened: `rollout of shop/web to 1.8.2`.
    pub(crate) text: String,
}

/// The latest that happened. Clones are the same story.
#[derive(Debug, Clone)]
pub(super) struct Story {
    clock: Clock,
    lines: Arc<Mutex<VecDeque<Happening>>>,
}

impl Story {
    pub(super) fn new(clock: Clock) -> Self {
        Self { clock, lines: Arc::default() }
    }

    /// Adds a line, and forgets the oldest when there are too many.
    pub(super) fn tell(&self, text: impl Into<String>) {
        let line = Happening { at: self.clock.exact(), text: text.into() };
        let mut lines = self.lines.lock().unwrap_or_else(PoisonError::into_inner);
        if lines.len() >= LINES {
            lines.pop_front();
        }
        lines.push_back(line);
    }

    /// The last few lines, oldest first.
    pub(super) fn last(&self, most: usize) -> Vec<Happening> {
        let lines = self.lines.lock().unwrap_or_else(PoisonError::into_inner);
        lines.iter().skip(lines.len().saturating_sub(most)).cloned().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn of_a_long_story_the_last_lines_are_remembered() {
        let story = Story::new(Clock::starting_at(Timestamp::UNIX_EPOCH));
        for i in 0..LINES + 3 {
            story.tell(format!("line {i}"));
        }
        let all = story.last(usize::MAX);
        assert_eq!((all.len(), all[0].text.as_str()), (LINES, "line 3"));
        let last: Vec<String> = story.last(2).into_iter().map(|line| line.text).collect();
        assert_eq!(last, [format!("line {}", LINES + 1), format!("line {}", LINES + 2)]);
    }
}
