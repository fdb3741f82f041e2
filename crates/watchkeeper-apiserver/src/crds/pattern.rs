//! Patterns of schemas. They are written for Go's `regexp`; here the `regex` crate runs them, which is of the same family:
//! no pattern takes more than linear time. What the two read differently is translated.

use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, LazyLock, Mutex, PoisonError};

use regex::{Regex, RegexBuilder};

use crate::defaults::{PATTERN_SIZE, PATTERNS};

/// A pattern that can be matched.
#[derive(Clone)]
pub(crate) struct Pattern {
    text: Arc<str>,
    regex: Regex,
    /// How many states it may be in, roughly: what each character of a text may cost.
    weight: usize,
}

impl Pattern {
    /// Reads a pattern, or says in Go's words why it is none. Definitions are looked at more than once: what was read is
    /// remembered for a while.
    pub(crate) fn new(text: &str) -> Result<Self, String> {
        static READ: LazyLock<Mutex<HashMap<String, Result<Pattern, String>>>> = LazyLock::new(Mutex::default);
        let read = || READ.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = read().get(text) {
            return known.clone();
        }
        let pattern = Self::read(text);
        let mut read = read();
        if read.len() >= 2 * PATTERNS {
            read.clear();
        }
        read.insert(text.to_owned(), pattern.clone());
        pattern
    }

    fn read(text: &str) -> Result<Self, String> {
        let translated = translate(text);
        let regex = RegexBuilder::new(&translated.text).size_limit(PATTERN_SIZE).nest_limit(100).build();
        let regex = regex.map_err(|error| format!("error parsing regexp: {}", go_error(text, &error)))?;
        Ok(Self { text: text.into(), regex, weight: translated.weight })
    }

    pub(crate) fn text(&self) -> &str {
        &self.text
    }

    pub(crate) fn matches(&self, text: &str) -> bool {
        self.regex.is_match(text)
    }

    /// What matching a text may cost, in steps.
    pub(crate) fn cost(&self, text: &str) -> usize {
        self.weight.saturating_mul(text.len()) / STATES_PER_STEP
    }
}

/// How many states of a pattern are looked at in the time of one step of a validation.
const STATES_PER_STEP: usize = 8;

impl fmt::Debug for Pattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.text, f)
    }
}

impl PartialEq for Pattern {
    fn eq(&self, other: &Self) -> bool {
        self.text == other.text
    }
}

struct Translated {
    text: String,
    weight: usize,
}

/// The same pattern for the other crate: classes of Go are ASCII, its brackets do not nest, and braces that count nothing
/// are characters.
fn translate(pattern: &str) -> Translated {
    let mut out = String::with_capacity(pattern.len() + 16);
    // Weights of the open groups, and of what may be repeated next.
    let mut groups: Vec<usize> = Vec::new();
    let (mut weight, mut last) = (0usize, 0usize);
    let mut rest = pattern.chars().peekable();
    let mut in_class = false;
    let mut class_start = false;
    while let Some(c) = rest.next() {
        if c == '\\' {
            let Some(escaped) = rest.next() else {
                out.push('\\');
                break;
            };
            out.push_str(&escape(escaped, in_class));
            // A class of Unicode is an automaton of its own.
            let cost = if matches!(escaped, 'p' | 'P') { 200 } else { 1 };
            if !in_class {
                (weight, last) = (weight.saturating_add(cost), cost);
            } else {
                (weight, last) = (weight.saturating_add(cost), last.saturating_add(cost));
            }
            class_start = false;
            continue;
        }
        if in_class {
            match c {
                ']' if !class_start => {
                    in_class = false;
                    out.push(']');
                }
                ']' => out.push_str("\\]"),
                '^' if class_start && out.ends_with('[') => {
                    // The first bracket behind it is a character too.
                    out.push('^');
                    continue;
                }
                '[' if rest.peek() == Some(&':') => out.push('['),
                '[' => out.push_str("\\["),
                '&' | '~' => {
                    out.push('\\');
                    out.push(c);
                }
                '-' if out.ends_with('-') => out.push_str("\\-"),
                c => out.push(c),
            }
            class_start = false;
            continue;
        }
        match c {
            '[' => {
                in_class = true;
                class_start = true;
                (weight, last) = (weight.saturating_add(1), 1);
                out.push('[');
            }
            '(' => {
                groups.push(weight);
                out.push('(');
            }
            ')' => {
                last = weight.saturating_sub(groups.pop().unwrap_or(0));
                out.push(')');
            }
            '{' => match count(&mut rest) {
                Some((text, most)) => {
                    weight = weight.saturating_add(last.saturating_mul(most.saturating_sub(1)));
                    last = last.saturating_mul(most.max(1));
                    out.push_str(&text);
                }
                None => out.push_str("\\{"),
            },
            c => {
                (weight, last) = (weight.saturating_add(1), 1);
                out.push(c);
            }
        }
    }
    Translated { text: out, weight: weight.max(1) }
}

/// The digits behind an opening brace, if they count something: `{2}`, `{2,}`, `{2,5}`.
fn count(rest: &mut std::iter::Peekable<std::str::Chars<'_>>) -> Option<(String, usize)> {
    let mut ahead = rest.clone();
    let mut text = String::new();
    loop {
        match ahead.next()? {
            '}' => break,
            c if c.is_ascii_digit() || c == ',' => text.push(c),
            _ => return None,
        }
    }
    let (low, high) = text.split_once(',').unwrap_or((&text, &text));
    if low.is_empty() || high.contains(',') {
        return None;
    }
    let low: usize = low.parse().ok()?;
    let most = if high.is_empty() { low.saturating_add(1) } else { high.parse().ok()? };
    *rest = ahead;
    Some((format!("{{{text}}}"), most))
}

/// An escape, with Go's meaning.
fn escape(escaped: char, in_class: bool) -> String {
    let class = |inner: &str| if in_class { inner.to_owned() } else { format!("[{inner}]") };
    match escaped {
        'd' => class("0-9"),
        'w' => class("0-9A-Za-z_"),
        's' => class("\\t\\n\\f\\r "),
        'D' => "[^0-9]".to_owned(),
        'W' => "[^0-9A-Za-z_]".to_owned(),
        'S' => "[^\\t\\n\\f\\r ]".to_owned(),
        'b' if !in_class => "(?-u:\\b)".to_owned(),
        'B' if !in_class => "(?-u:\\B)".to_owned(),
        // To Go these are characters, to the other crate the edges of a word.
        '<' | '>' => escaped.to_string(),
        other => format!("\\{other}"),
    }
}

/// What Go says of a pattern. Its commonest complaints are told apart; the others get a general text.
fn go_error(pattern: &str, error: &regex::Error) -> String {
    if matches!(error, regex::Error::CompiledTooBig(_)) {
        return "expression too large".to_owned();
    }
    for group in ["(?=", "(?!", "(?<=", "(?<!"] {
        if pattern.contains(group) {
            return format!("invalid or unsupported Perl syntax: `{}`", &group[..3]);
        }
    }
    let text = error.to_string();
    let says = |part: &str| text.contains(part);
    if says("unclosed character class") {
        let start = pattern.find('[').unwrap_or(0);
        return format!("missing closing ]: `{}`", &pattern[start..]);
    }
    if says("unclosed group") {
        return format!("missing closing ): `{pattern}`");
    }
    if says("unopened group") {
        return format!("unexpected ): `{pattern}`");
    }
    if says("repetition operator missing expression") {
        let operator = pattern.find(['*', '+', '?']).and_then(|i| pattern[i..].chars().next()).unwrap_or('*');
        return format!("missing argument to repetition operator: `{operator}`");
    }
    if says("incomplete escape") {
        return "trailing backslash at end of expression: ``".to_owned();
    }
    if says("unrecognized escape") {
        return "invalid escape sequence".to_owned();
    }
    if says("invalid character class range") {
        return "invalid character class range".to_owned();
    }
    "invalid expression".to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_go_reads_differently_is_translated() {
        let matches = |pattern: &str, text: &str| Pattern::new(pattern).expect(pattern).matches(text);
        assert!(matches(r"^\d+$", "12") && !matches(r"^\d+$", "١٢"));
        assert!(matches(r"^[\w-]+$", "a-b") && !matches(r"^\w$", "ä"));
        assert!(matches(r"^[[]$", "[") && matches(r"^[]a]$", "]") && matches(r"^[^]a]$", "b"));
        assert!(matches(r"^[a&&b]+$", "a&b") && matches(r"^[[:alpha:]]$", "x"));
        assert!(matches(r"^a{,2}$", "a{,2}") && matches(r"^{a}$", "{a}") && matches(r"^a{2,3}$", "aa"));
        assert!(matches(r"^.$", "ä") && matches(r"^[+--]$", ","));
        assert!(matches(r"\bword\b", "a word"));
        assert!(matches(r"^\<a\>$", "<a>") && !matches(r"^\<a\>$", "a"));
    }

    #[test]
    fn what_is_no_pattern_is_refused_in_go_s_words() {
        let error = |pattern: &str| Pattern::new(pattern).expect_err(pattern);
        assert_eq!(error("["), "error parsing regexp: missing closing ]: `[`");
        assert_eq!(error("a(?=b)"), "error parsing regexp: invalid or unsupported Perl syntax: `(?=`");
        assert_eq!(error("a(b"), "error parsing regexp: missing closing ): `a(b`");
        assert_eq!(error("*a"), "error parsing regexp: missing argument to repetition operator: `*`");
        assert_eq!(error("((a{1000}){1000}){1000}"), "error parsing regexp: expression too large");
    }

    #[test]
    fn what_a_pattern_may_cost_grows_with_what_it_counts() {
        let weight = |pattern: &str| Pattern::new(pattern).expect(pattern).weight;
        assert!(weight("(ab{10}){10}") > 90);
        assert!(weight("^[a-z]+$") < 10);
    }
}
