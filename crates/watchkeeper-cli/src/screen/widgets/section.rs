//! A title with a rule behind it, and the line of keys at the bottom.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::text::{Line, Span};
use ratatui::widgets::Widget;

use crate::screen::palette::{ACCENT, DIM, TITLE};
use crate::terminal::{cut, width};

/// Draws a title, something less important behind it, and a rule to the end of the line; gives what is left of the area.
pub(crate) fn section(buffer: &mut Buffer, area: Rect, title: &str, beside: &str) -> Rect {
    if area.is_empty() {
        return area;
    }
    let room = usize::from(area.width).saturating_sub(width(title) + 2);
    let beside = if beside.is_empty() { String::new() } else { format!("{} ", cut(beside, room)) };
    let used = width(title) + 1 + width(&beside);
    let rule = "─".repeat(usize::from(area.width).saturating_sub(used));
    let line =
        Line::from(vec![Span::styled(format!("{title} "), TITLE), Span::styled(beside, DIM), Span::styled(rule, DIM)]);
    line.render(Rect { height: 1, ..area }, buffer);
    Rect { y: area.y + 1, height: area.height - 1, ..area }
}

/// Draws keys and what they do.
pub(crate) fn help(buffer: &mut Buffer, area: Rect, keys: &[(&str, &str)]) {
    let mut spans = Vec::new();
    for (key, does) in keys {
        spans.push(Span::styled((*key).to_owned(), ACCENT));
        spans.push(Span::styled(format!(" {does}   "), DIM));
    }
    Line::from(spans).render(area, buffer);
}
