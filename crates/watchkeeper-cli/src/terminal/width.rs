//! How many columns of a terminal does a text take?
//!
//! East Asian characters and most emoji take two, combining marks none. Texts are escaped before they are measured.

use std::borrow::Cow;

use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

/// The columns that a text takes.
pub(crate) fn width(text: &str) -> usize {
    UnicodeWidthStr::width(text)
}

/// Appends a text, and spaces until it takes so many columns. A text that is wider stays whole.
pub(crate) fn pad_to(line: &mut String, text: &str, columns: usize) {
    line.push_str(text);
    line.extend(std::iter::repeat_n(' ', columns.saturating_sub(width(text))));
}

/// The text, or as much of its beginning as fits with `…` behind it.
pub(crate) fn cut(text: &str, columns: usize) -> Cow<'_, str> {
    // A character takes at least a byte for each column, so that short texts need not be measured.
    if text.len() <= columns || width(text) <= columns {
        return Cow::Borrowed(text);
    }
    let mut taken = 1;
    let fits = |&(_, character): &(usize, char)| {
        taken += character.width().unwrap_or(0);
        taken > columns
    };
    let end = text.char_indices().find(fits).map_or(text.len(), |(at, _)| at);
    Cow::Owned(format!("{}…", text.get(..end).unwrap_or_default()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wide_characters_count_twice_and_marks_not_at_all() {
        assert_eq!([width("web"), width("日本"), width("e\u{301}")], [3, 4, 1]);
        let mut line = String::new();
        pad_to(&mut line, "日本", 6);
        assert_eq!(line, "日本  ");
    }

    #[test]
    fn a_cut_text_fits_with_its_mark() {
        assert_eq!(cut("replicas", 8), "replicas");
        assert_eq!(cut("replicas", 5), "repl…");
        assert_eq!(cut("日本語文", 4), "日…");
        assert_eq!(cut("replicas", 1), "…");
        assert_eq!(cut("replicas", 0), "…");
        assert_eq!(cut("", 0), "");
    }
}
