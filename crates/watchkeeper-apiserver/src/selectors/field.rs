//! `fieldSelector=`. Counterpart: `fields.ParseSelector` in `k8s.io/apimachinery/pkg/fields`.

use std::str::FromStr;

use super::InvalidSelector;

/// Requirements on an object's fields, all of which must hold. Which fields there are is the kind's affair.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct FieldSelector {
    terms: Vec<Term>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Term {
    field: String,
    value: String,
    equal: bool,
}

impl FieldSelector {
    /// Whether an object matches, given what its fields are. A field that it lacks is an empty one.
    pub fn matches<'a>(&self, value_of: impl Fn(&str) -> &'a str) -> bool {
        self.terms.iter().all(|term| (value_of(&term.field) == term.value) == term.equal)
    }

    /// The value that a field must have, if there is just one.
    pub fn exact(&self, field: &str) -> Option<&str> {
        self.terms.iter().find(|term| term.equal && term.field == field).map(|term| term.value.as_str())
    }

    /// Whether it matches everything.
    pub fn is_empty(&self) -> bool {
        self.terms.is_empty()
    }

    /// The same selector with other names for its fields; `rename` refuses those that do not exist.
    pub(crate) fn renamed<E>(mut self, rename: impl Fn(&str) -> Result<String, E>) -> Result<Self, E> {
        for term in &mut self.terms {
            term.field = rename(&term.field)?;
        }
        Ok(self)
    }
}

impl FromStr for FieldSelector {
    type Err = InvalidSelector;

    fn from_str(text: &str) -> Result<Self, InvalidSelector> {
        let mut parts = split_terms(text);
        parts.sort_unstable();
        let mut terms = Vec::new();
        for part in parts.into_iter().filter(|part| !part.is_empty()) {
            let Some((field, equal, value)) = split_term(part) else {
                return Err(InvalidSelector(format!("invalid selector: '{text}'; can't understand '{part}'")));
            };
            terms.push(Term { field: field.to_owned(), value: unescaped(value)?, equal });
        }
        Ok(Self { terms })
    }
}

/// The terms between commas; `\,` is no comma.
fn split_terms(text: &str) -> Vec<&str> {
    let mut terms = Vec::new();
    let mut start = 0;
    let mut escaped = false;
    for (i, c) in text.char_indices() {
        match c {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            ',' => {
                terms.push(&text[start..i]);
                start = i + 1;
            }
            _ => {}
        }
    }
    terms.push(&text[start..]);
    terms
}

/// Field, whether it must be equal, and the value as written, split at the first operator.
fn split_term(term: &str) -> Option<(&str, bool, &str)> {
    term.char_indices().find_map(|(i, _)| {
        let rest = &term[i..];
        [("!=", false), ("==", true), ("=", true)]
            .into_iter()
            .find_map(|(operator, equal)| rest.strip_prefix(operator).map(|value| (&term[..i], equal, value)))
    })
}

fn unescaped(value: &str) -> Result<String, InvalidSelector> {
    let bad_escape = |tail: &str| InvalidSelector(format!("invalid field selector: invalid escape sequence: \\{tail}"));
    let mut plain = String::with_capacity(value.len());
    let mut chars = value.chars();
    while let Some(c) = chars.next() {
        match c {
            '\\' => match chars.next() {
                Some(c @ ('\\' | ',' | '=')) => plain.push(c),
                Some(c) => return Err(bad_escape(&c.to_string())),
                None => return Err(bad_escape("")),
            },
            // Go prints the character's number here.
            ',' | '=' => {
                let number = c as u32;
                return Err(InvalidSelector(format!("invalid field selector: unescaped character in value: {number}")));
            }
            c => plain.push(c),
        }
    }
    Ok(plain)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(text: &str) -> FieldSelector {
        text.parse().unwrap_or_else(|error| panic!("{text}: {error}"))
    }

    fn refused(text: &str) -> String {
        text.parse::<FieldSelector>().expect_err(text).to_string()
    }

    #[test]
    fn terms_are_equal_or_not_and_all_must_hold() {
        let fields = |field: &str| match field {
            "metadata.name" => "web-0",
            "status.phase" => "Running",
            _ => "",
        };
        for (text, expected) in [
            ("", true),
            (",", true),
            ("metadata.name=web-0", true),
            ("metadata.name==web-0", true),
            ("metadata.name!=web-0", false),
            ("metadata.name=web-0,status.phase!=Failed", true),
            ("metadata.name=web-0,status.phase=Failed", false),
            ("spec.nodeName=", true),
            ("spec.nodeName!=", false),
        ] {
            assert_eq!(parsed(text).matches(fields), expected, "{text}");
        }
        assert_eq!(parsed("a=b,metadata.name=web-0").exact("metadata.name"), Some("web-0"));
        assert_eq!(parsed("metadata.name!=web-0").exact("metadata.name"), None);
    }

    #[test]
    fn backslashes_escape_commas_equals_and_themselves() {
        assert!(parsed(r"a=b\,c\=d\\e").matches(|_| r"b,c=d\e"));
        assert_eq!(refused(r"a=b\c"), r"invalid field selector: invalid escape sequence: \c");
        assert_eq!(refused(r"a=b\"), r"invalid field selector: invalid escape sequence: \");
        assert_eq!(refused("a=b=c"), "invalid field selector: unescaped character in value: 61");
        assert_eq!(refused("a"), "invalid selector: 'a'; can't understand 'a'");
    }
}
