//! `labelSelector=`. Counterpart: `labels.Parse` in `k8s.io/apimachinery/pkg/labels`.

use std::collections::BTreeSet;
use std::str::FromStr;

use super::InvalidSelector;
use super::lexer::{Token, Word, words};
use crate::validation::{label_key, label_value, quoted};

/// Requirements on an object's labels, all of which must hold.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct LabelSelector {
    requirements: Vec<Requirement>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Requirement {
    key: String,
    operator: Operator,
    values: BTreeSet<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Operator {
    In,
    NotIn,
    Exists,
    DoesNotExist,
    GreaterThan,
    LessThan,
}

impl LabelSelector {
    /// Whether an object matches, given what its labels are.
    pub fn matches<'a>(&self, value_of: impl Fn(&str) -> Option<&'a str>) -> bool {
        self.requirements.iter().all(|requirement| requirement.matches(value_of(&requirement.key)))
    }

    /// Whether it matches everything.
    pub fn is_empty(&self) -> bool {
        self.requirements.is_empty()
    }
}

impl FromStr for LabelSelector {
    type Err = InvalidSelector;

    fn from_str(text: &str) -> Result<Self, InvalidSelector> {
        let requirements = Parser { words: words(text), position: 0 }.requirements().map_err(InvalidSelector)?;
        Ok(Self { requirements })
    }
}

impl Requirement {
    /// What was asked for, if key and values are ones that labels can have.
    fn new(key: String, operator: Operator, values: BTreeSet<String>) -> Result<Self, String> {
        let mut errors = Vec::new();
        if matches!(operator, Operator::GreaterThan | Operator::LessThan) {
            for (i, value) in values.iter().enumerate().filter(|(_, value)| value.parse::<i64>().is_err()) {
                let value = quoted(value);
                errors.push(format!(
                    "values[{i}]: Invalid value: {value}: for 'Gt', 'Lt' operators, the value must be an integer"
                ));
            }
        }
        for (i, value) in values.iter().enumerate() {
            let faults = label_value(value);
            if !faults.is_empty() {
                errors.push(format!("values[{i}][{key}]: Invalid value: {}: {}", quoted(value), faults.join("; ")));
            }
        }
        match errors.len() {
            0 => Ok(Self { key, operator, values }),
            1 => Err(errors.remove(0)),
            _ => Err(format!("[{}]", errors.join(", "))),
        }
    }

    fn matches(&self, value: Option<&str>) -> bool {
        match self.operator {
            Operator::In => value.is_some_and(|value| self.values.contains(value)),
            Operator::NotIn => value.is_none_or(|value| !self.values.contains(value)),
            Operator::Exists => value.is_some(),
            Operator::DoesNotExist => value.is_none(),
            Operator::GreaterThan => self.compared(value, |value, bound| value > bound),
            Operator::LessThan => self.compared(value, |value, bound| value < bound),
        }
    }

    fn compared(&self, value: Option<&str>, holds: impl Fn(i64, i64) -> bool) -> bool {
        let value = value.and_then(|value| value.parse().ok());
        let bound = self.values.first().and_then(|bound| bound.parse().ok());
        value.zip(bound).is_some_and(|(value, bound)| holds(value, bound))
    }
}

/// Recursive descent over the words. `in` and `notin` are operators in an operator's place, and plain names elsewhere.
struct Parser {
    words: Vec<Word>,
    position: usize,
}

impl Parser {
    fn requirements(&mut self) -> Result<Vec<Requirement>, String> {
        let mut requirements = Vec::new();
        loop {
            match self.peek() {
                (Token::Identifier | Token::DoesNotExist, _) => {
                    let requirement = self.requirement().map_err(|e| format!("unable to parse requirement: {e}"))?;
                    requirements.push(requirement);
                    match self.take() {
                        (Token::End, _) => return Ok(requirements),
                        (Token::Comma, _) => match self.peek() {
                            (Token::Identifier | Token::DoesNotExist, _) => {}
                            (_, text) => return Err(format!("found '{text}', expected: identifier after ','")),
                        },
                        (_, text) => return Err(format!("found '{text}', expected: ',' or 'end of string'")),
                    }
                }
                (Token::End, _) => return Ok(requirements),
                (_, text) => return Err(format!("found '{text}', expected: !, identifier, or 'end of string'")),
            }
        }
    }

    fn requirement(&mut self) -> Result<Requirement, String> {
        let (mut token, mut key) = self.take();
        let negated = token == Token::DoesNotExist;
        if negated {
            (token, key) = self.take();
        }
        if token != Token::Identifier {
            return Err(format!("found '{key}', expected: identifier"));
        }
        let faults = label_key(&key);
        if !faults.is_empty() {
            return Err(format!("<nil>: Invalid value: {}: {}", quoted(&key), faults.join("; ")));
        }
        // `!key` decides by itself, whatever follows; a lone key asks for its presence.
        if negated {
            return Requirement::new(key, Operator::DoesNotExist, BTreeSet::new());
        }
        if matches!(self.peek().0, Token::End | Token::Comma) {
            return Requirement::new(key, Operator::Exists, BTreeSet::new());
        }
        let word = self.take_word();
        let (operator, values) = match word.token {
            Token::In => (Operator::In, self.set()?),
            Token::NotIn => (Operator::NotIn, self.set()?),
            Token::Equals | Token::DoubleEquals => (Operator::In, self.value()?),
            Token::NotEquals => (Operator::NotIn, self.value()?),
            Token::GreaterThan => (Operator::GreaterThan, self.value()?),
            Token::LessThan => (Operator::LessThan, self.value()?),
            _ => return Err(format!("found '{}', expected: in, notin, =, ==, !=, gt, lt", word.text)),
        };
        Requirement::new(key, operator, values)
    }

    fn value(&mut self) -> Result<BTreeSet<String>, String> {
        if matches!(self.peek().0, Token::End | Token::Comma) {
            return Ok(BTreeSet::from([String::new()]));
        }
        match self.take() {
            (Token::Identifier, text) => Ok(BTreeSet::from([text])),
            (_, text) => Err(format!("found '{text}', expected: identifier")),
        }
    }

    fn set(&mut self) -> Result<BTreeSet<String>, String> {
        let (token, text) = self.take();
        if token != Token::OpenPar {
            return Err(format!("found '{text}' expected: '('"));
        }
        match self.peek() {
            (Token::Identifier | Token::Comma, text) => {
                let values = self.members()?;
                match self.take().0 {
                    Token::ClosedPar => Ok(values),
                    _ => Err(format!("found '{text}', expected: ')'")),
                }
            }
            (Token::ClosedPar, _) => {
                self.take();
                Ok(BTreeSet::from([String::new()]))
            }
            (_, text) => Err(format!("found '{text}', expected: ',', ')' or identifier")),
        }
    }

    /// The values between the parentheses; between two commas, and beside a parenthesis, stands the empty one.
    fn members(&mut self) -> Result<BTreeSet<String>, String> {
        let mut values = BTreeSet::new();
        loop {
            match self.take() {
                (Token::Identifier, text) => {
                    values.insert(text);
                    match self.peek() {
                        (Token::Comma, _) => {}
                        (Token::ClosedPar, _) => return Ok(values),
                        (_, text) => return Err(format!("found '{text}', expected: ',' or ')'")),
                    }
                }
                (Token::Comma, _) => {
                    if values.is_empty() {
                        values.insert(String::new());
                    }
                    match self.peek().0 {
                        Token::ClosedPar => {
                            values.insert(String::new());
                            return Ok(values);
                        }
                        Token::Comma => {
                            values.insert(String::new());
                        }
                        _ => {}
                    }
                }
                (_, text) => return Err(format!("found '{text}', expected: ',', or identifier")),
            }
        }
    }

    /// The next word, in a place where `in` is a name.
    fn peek(&self) -> (Token, String) {
        as_name(self.words[self.position.min(self.words.len() - 1)].clone())
    }

    fn take(&mut self) -> (Token, String) {
        as_name(self.take_word())
    }

    /// The next word. Behind the last one stands the last one: the end.
    fn take_word(&mut self) -> Word {
        let word = self.words[self.position.min(self.words.len() - 1)].clone();
        self.position += 1;
        word
    }
}

fn as_name(word: Word) -> (Token, String) {
    match word.token {
        Token::In | Token::NotIn => (Token::Identifier, word.text),
        token => (token, word.text),
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use serde::Deserialize;

    use super::*;

    #[derive(Deserialize)]
    struct Vector {
        selector: String,
        #[serde(default)]
        error: String,
        #[serde(default)]
        matches: Vec<bool>,
    }

    /// The vectors come from Go's own parser: `data/README.md` says how.
    #[test]
    fn selectors_parse_match_and_fail_as_they_do_in_go() {
        let mut lines = include_str!("../../data/label-selectors.jsonl").lines();
        let sets: Vec<BTreeMap<String, String>> = serde_json::from_str(lines.next().unwrap()).unwrap();
        let vectors: Vec<Vector> = lines.map(|line| serde_json::from_str(line).unwrap()).collect();
        assert!(vectors.len() >= 160);
        for vector in vectors {
            match vector.selector.parse::<LabelSelector>() {
                Err(error) => assert_eq!(error.to_string(), vector.error, "{:?}", vector.selector),
                Ok(selector) => {
                    assert_eq!("", vector.error, "{:?}", vector.selector);
                    let matches: Vec<bool> =
                        sets.iter().map(|set| selector.matches(|key| set.get(key).map(String::as_str))).collect();
                    assert_eq!(matches, vector.matches, "{:?}", vector.selector);
                }
            }
        }
    }
}
