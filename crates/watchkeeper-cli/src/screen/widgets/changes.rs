//! The last changes, a line each.

use std::collections::HashMap;
use std::sync::Arc;

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::text::{Line, Span};
use ratatui::widgets::Widget;

use super::clock;
use crate::screen::model::Change;
use crate::screen::palette::{DIM, PLAIN, of_change};
use crate::terminal::{cut, escape_text, pad_to};

/// How wide kinds are.
const KIND: usize = 14;
/// How wide names and details have to be at least, if there are to be both.
const KEY: usize = 16;
const DETAIL: usize = 10;

/// Draws changes, the newest first: when, what, which kind, which object, and a few words.
pub(crate) fn changes(buffer: &mut Buffer, area: Rect, changes: &[Arc<Change>], names: &HashMap<Arc<str>, String>) {
    let (room, with_time) = (usize::from(area.width), area.width >= 40);
    for (y, change) in (area.y..area.bottom()).zip(changes) {
        let mut spans = Vec::new();
        if with_time {
            spans.push(Span::styled(format!("{} ", clock(change.at)), DIM));
        }
        spans.push(Span::styled(format!("{:<8} ", change.what.name()), of_change(change.what)));
        let mut kind = String::new();
        let name = names.get(&change.kind).map_or(&*change.kind, String::as_str);
        pad_to(&mut kind, &cut(name, KIND), KIND + 1);
        spans.push(Span::styled(kind, DIM));
        let used: usize = spans.iter().map(Span::width).sum();
        let left = room.saturating_sub(used);
        let key = change.key.to_string();
        let key = escape_text(&key);
        let detail = escape_text(change.detail());
        // Details stand below each other, where there is room for any.
        let for_key = if left >= KEY + DETAIL { (left * 3 / 5).max(KEY) } else { left };
        let mut column = String::new();
        pad_to(&mut column, &cut(&key, for_key.saturating_sub(1)), for_key);
        spans.push(Span::styled(column, PLAIN));
        spans.push(Span::styled(cut(&detail, left - for_key).into_owned(), DIM));
        Line::from(spans).render(Rect { y, height: 1, ..area }, buffer);
    }
}
