//! Lines of text that others wrote, and how names are made short.

use std::collections::HashMap;
use std::sync::Arc;

use jiff::Timestamp;
use jiff::tz::TimeZone;
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::Style;
use ratatui::text::{Line, Span};
use ratatui::widgets::Widget;

use crate::screen::palette::DIM;
use crate::terminal::{cut, escape_text};

/// The time of day.
pub(crate) fn clock(at: Timestamp) -> String {
    at.to_zoned(TimeZone::system()).strftime("%H:%M:%S").to_string()
}

/// Draws lines of a label and a text, as many as fit.
pub(crate) fn texts(buffer: &mut Buffer, area: Rect, lines: impl IntoIterator<Item = (String, String, Style)>) {
    for (y, (label, text, style)) in (area.y..area.bottom()).zip(lines) {
        let room = usize::from(area.width).saturating_sub(label.len() + 1);
        let text = escape_text(&text);
        let line = Line::from(vec![
            Span::styled(format!("{label} "), DIM),
            Span::styled(cut(&text, room).into_owned(), style),
        ]);
        line.render(Rect { y, height: 1, ..area }, buffer);
    }
}

/// `deployments` of `deployments.apps`, unless that is the beginning of another one too.
pub(crate) fn short_names<'a>(names: impl Iterator<Item = &'a Arc<str>> + Clone) -> HashMap<Arc<str>, String> {
    let plural = |name: &str| name.split('.').next().unwrap_or(name).to_owned();
    let mut seen: HashMap<String, usize> = HashMap::new();
    for name in names.clone() {
        *seen.entry(plural(name)).or_default() += 1;
    }
    let short = |name: &Arc<str>| {
        let plural = plural(name);
        let is_one = seen.get(&plural).is_none_or(|count| *count < 2);
        let short = if is_one { plural } else { name.to_string() };
        (name.clone(), escape_text(&short).into_owned())
    };
    names.map(short).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_short_where_they_mean_one_kind() {
        let names: Vec<Arc<str>> = ["pods", "events", "events.events.k8s.io", "deployments.apps"].map(Arc::from).into();
        let short = short_names(names.iter());
        let of = |name: &str| short.get(name).map(String::as_str);
        assert_eq!([of("pods"), of("deployments.apps")], [Some("pods"), Some("deployments")]);
        assert_eq!([of("events"), of("events.events.k8s.io")], [Some("events"), Some("events.events.k8s.io")]);
    }
}
