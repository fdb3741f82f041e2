//! How is text shown that others wrote?
//!
//! Names, messages and cells come from whoever may write to the cluster. Printed as they are, they could move the
//! cursor, paint over other rows, or make a text read backwards. Here every character that is an order to the terminal,
//! or that hides or turns its neighbours, becomes text that stands for it. As in kubectl, ESC is `^[` and CR is `\r`.

use std::borrow::Cow;
use std::fmt::Write;

/// The character is an order to the terminal, or changes how others look without being seen itself.
pub(crate) fn is_unsafe(character: char) -> bool {
    matches!(character,
        // C0, DEL and C1: orders.
        '\0'..='\u{1f}' | '\u{7f}'..='\u{9f}'
        // Soft hyphen, and marks that are not seen.
        | '\u{ad}' | '\u{34f}' | '\u{61c}' | '\u{115f}' | '\u{1160}' | '\u{17b4}' | '\u{17b5}' | '\u{180b}'..='\u{180f}'
        // Zero-width characters, marks of direction, line and paragraph separators, overrides of direction.
        | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}'
        // Invisible operators, isolates, deprecated controls, fillers.
        | '\u{2060}'..='\u{206f}' | '\u{3164}' | '\u{feff}' | '\u{ffa0}' | '\u{fff0}'..='\u{fffb}'
        // Shorthand and music controls, tags, and the variation selectors that no emoji needs.
        | '\u{1bca0}'..='\u{1bca3}' | '\u{1d173}'..='\u{1d17a}' | '\u{e0000}'..='\u{e0fff}')
}

/// Text on one line: everything unsafe is escaped, and a line feed and a tab too.
pub(crate) fn escape_text(text: &str) -> Cow<'_, str> {
    escape(text, is_unsafe, human)
}

/// Text of several lines: as [`escape_text`], but line feeds and tabs stay.
pub(crate) fn escape_lines(text: &str) -> Cow<'_, str> {
    escape(text, |character| is_unsafe(character) && !matches!(character, '\n' | '\t'), human)
}

/// A cell of a table: cut with `...` where a new line would begin, as kubectl does, and escaped.
pub(crate) fn escape_cell(text: &str) -> Cow<'_, str> {
    match text.split_once(['\n', '\r', '\u{c}']) {
        None => escape_text(text),
        Some((first, _)) => Cow::Owned(format!("{}...", escape_text(first))),
    }
}

/// JSON, whose own rules let DEL, C1 and the invisible characters through. It stays the same JSON: such characters are
/// in strings only, where `\u` means the same. Line feeds stay: in written JSON they are layout.
pub(crate) fn escape_json(json: &str) -> Cow<'_, str> {
    escape(
        json,
        |character| is_unsafe(character) && character != '\n',
        |escaped, character| {
            for unit in character.encode_utf16(&mut [0; 2]) {
                // Writing into a String does not fail.
                let _ = write!(escaped, "\\u{unit:04x}");
            }
        },
    )
}

fn escape(text: &str, refuse: impl Fn(char) -> bool, replace: impl Fn(&mut String, char)) -> Cow<'_, str> {
    let Some(first) = text.find(&refuse) else { return Cow::Borrowed(text) };
    let (clean, rest) = text.split_at(first);
    let mut escaped = String::with_capacity(text.len() + 8);
    escaped.push_str(clean);
    for character in rest.chars() {
        if refuse(character) {
            replace(&mut escaped, character);
        } else {
            escaped.push(character);
        }
    }
    Cow::Owned(escaped)
}

fn human(escaped: &mut String, character: char) {
    match character {
        '\n' => escaped.push_str("\\n"),
        '\r' => escaped.push_str("\\r"),
        '\t' => escaped.push_str("\\t"),
        '\0'..='\u{1f}' => {
            escaped.push('^');
            escaped.push(char::from(character as u8 + b'@'));
        }
        '\u{7f}' => escaped.push_str("^?"),
        _ => {
            // Writing into a String does not fail.
            let _ = write!(escaped, "\\u{:04x}", u32::from(character));
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn orders_to_the_terminal_are_shown_as_text() {
        assert_eq!(escape_text("\x1b[2Jgone\r\x07\x7f\u{9b}31m"), "^[[2Jgone\\r^G^?\\u009b31m");
        assert_eq!(escape_text("a\u{202e}b\u{200b}c\u{feff}d\u{2066}e"), "a\\u202eb\\u200bc\\ufeffd\\u2066e");
        assert_eq!(escape_text("one\ntwo\tthree"), "one\\ntwo\\tthree");
    }

    #[test]
    fn what_is_harmless_is_not_copied() {
        for text in ["web-7f9c", "größe", "日本語", "naïve 🎉"] {
            assert!(matches!(escape_text(text), Cow::Borrowed(same) if same == text));
        }
    }

    #[test]
    fn cells_end_where_a_line_would() {
        assert_eq!(escape_cell("first\nsecond"), "first...");
        assert_eq!(escape_cell("first\x0csecond"), "first...");
        assert_eq!(escape_cell("\x1b]0;title\x07\rx"), "^[]0;title^G...");
        assert_eq!(escape_cell("a\tb"), "a\\tb");
    }

    #[test]
    fn several_lines_keep_their_layout() {
        assert_eq!(escape_lines("a\tb\n\x1bc"), "a\tb\n^[c");
    }

    proptest! {
        #[test]
        fn nothing_unsafe_is_left(text in any::<String>()) {
            prop_assert!(!escape_text(&text).chars().any(is_unsafe));
            prop_assert!(!escape_cell(&text).chars().any(is_unsafe));
        }

        #[test]
        fn json_means_the_same_after_escaping(text in any::<String>(), unsafe_one in "[\u{7f}-\u{9f}\u{2028}\u{202e}\u{e0001}]") {
            let value = serde_json::Value::from(format!("{text}{unsafe_one}"));
            let json = value.to_string();
            let escaped = escape_json(&json);
            prop_assert!(!escaped.chars().any(is_unsafe));
            prop_assert_eq!(serde_json::from_str::<serde_json::Value>(&escaped).ok(), Some(value));
        }
    }
}
