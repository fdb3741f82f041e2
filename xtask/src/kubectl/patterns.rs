//! Lines as people write them down: words, with any space between them.
//!
//! `*` stands for any part of a word, `...` at the beginning or at the end for any number of words.

/// The first of the patterns that no line fits, looking for them in their order.
pub(super) fn missing<'a>(text: &str, patterns: &'a [String]) -> Option<&'a str> {
    let mut lines = text.lines();
    patterns.iter().map(String::as_str).find(|pattern| !lines.any(|line| fits(line, pattern)))
}

fn fits(line: &str, pattern: &str) -> bool {
    let words: Vec<&str> = line.split_whitespace().collect();
    let mut wanted: Vec<&str> = pattern.split_whitespace().collect();
    let open_end = wanted.last() == Some(&"...") && wanted.pop().is_some();
    let open_start = wanted.first() == Some(&"...");
    if open_start {
        wanted.remove(0);
    }
    if words.len() < wanted.len() {
        return false;
    }
    let last = words.len() - wanted.len();
    let all_fit = |start: usize| words[start..].iter().zip(&wanted).all(|(word, wanted)| word_fits(word, wanted));
    match (open_start, open_end) {
        (false, false) => last == 0 && all_fit(0),
        (false, true) => all_fit(0),
        (true, false) => all_fit(last),
        (true, true) => (0..=last).any(all_fit),
    }
}

fn word_fits(word: &str, wanted: &str) -> bool {
    let Some((head, tail)) = wanted.split_once('*') else { return word == wanted };
    let Some(rest) = word.strip_prefix(head) else { return false };
    // The next `*` may take as little as it likes.
    (0..=rest.len()).filter(|&at| rest.is_char_boundary(at)).any(|at| word_fits(&rest[at..], tail))
}

#[cfg(test)]
mod tests {
    use super::{fits, missing};

    #[test]
    fn space_does_not_matter_and_words_do() {
        assert!(fits("web   0/1     4s", "web 0/1 *"));
        assert!(fits("web   0/1     4s", "web */1 *s"));
        assert!(!fits("web   0/1     4s", "web 0/1"));
        assert!(!fits("web   0/1     4s", "web 1/1 *"));
    }

    #[test]
    fn both_ends_can_be_open() {
        assert!(fits("pod \"a\" deleted from b", "pod \"a\" deleted ..."));
        assert!(fits("pod \"a\" deleted", "pod \"a\" deleted ..."));
        assert!(fits("error: it is so", "... so"));
        assert!(fits("error: it is so", "... it is ..."));
        assert!(!fits("error: it is so", "... it was ..."));
    }

    #[test]
    fn lines_come_in_their_order() {
        let patterns = |lines: [&str; 2]| lines.map(str::to_owned);
        assert_eq!(missing("a\nb\n", &patterns(["a", "b"])), None);
        assert_eq!(missing("a\nb\n", &patterns(["b", "a"])), Some("a"));
    }
}
