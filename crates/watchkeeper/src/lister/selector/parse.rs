//! The text of a selector. Counterpart: `labels.Parse` in `k8s.io/apimachinery/pkg/labels`.
//!
//! ```text
//! selector    = [ requirement { "," requirement } ]
//! requirement = key | "!" key | key ( "=" | "==" | "!=" | ">" | "<" ) [ word ]
//!             | key ( "in" | "notin" ) "(" [ word ] { "," [ word ] } ")"
//! ```
//!
//! A word that is left out is the empty one. `in` and `notin` are operators in an operator's place, and words elsewhere.
//! Spaces may stand between all of these.

use super::valid::{self, quoted};
use super::{Condition, InvalidSelector, OneOf, Requirement};

/// Reads the requirements of a selector, in the order of the text.
pub(super) fn requirements(text: &str) -> Result<Vec<Requirement>, InvalidSelector> {
    let mut parser = Parser { text, at: 0 };
    let mut requirements = Vec::new();
    if parser.peek().1 == Token::End {
        return Ok(requirements);
    }
    loop {
        requirements.push(parser.requirement()?);
        match parser.take() {
            (_, Token::End) => return Ok(requirements),
            (_, Token::Comma) => {}
            found => return Err(unexpected(found, "',' or the end")),
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Token<'a> {
    Word(&'a str),
    Open,
    Close,
    Comma,
    Not,
    Equal,
    NotEqual,
    Greater,
    Less,
    End,
}

/// Recursive descent, by hand. It never looks further ahead than one token.
struct Parser<'a> {
    text: &'a str,
    at: usize,
}

impl<'a> Parser<'a> {
    fn requirement(&mut self) -> Result<Requirement, InvalidSelector> {
        match self.take() {
            (_, Token::Not) => {
                let key = self.key("a label's key")?;
                Ok(Requirement { key, condition: Condition::DoesNotExist })
            }
            (at, Token::Word(word)) => {
                let key = checked_key(at, word)?;
                Ok(Requirement { key, condition: self.condition()? })
            }
            found => Err(unexpected(found, "a label's key or '!'")),
        }
    }

    fn key(&mut self, expected: &str) -> Result<Box<str>, InvalidSelector> {
        match self.take() {
            (at, Token::Word(word)) => checked_key(at, word),
            found => Err(unexpected(found, expected)),
        }
    }

    /// What follows a key.
    fn condition(&mut self) -> Result<Condition, InvalidSelector> {
        if matches!(self.peek().1, Token::End | Token::Comma) {
            return Ok(Condition::Exists);
        }
        match self.take() {
            (_, Token::Equal) => Ok(Condition::In(self.one()?)),
            (_, Token::NotEqual) => Ok(Condition::NotIn(self.one()?)),
            (_, Token::Greater) => Ok(Condition::GreaterThan(self.number()?)),
            (_, Token::Less) => Ok(Condition::LessThan(self.number()?)),
            (_, Token::Word("in")) => Ok(Condition::In(self.several()?)),
            (_, Token::Word("notin")) => Ok(Condition::NotIn(self.several()?)),
            found => Err(unexpected(found, "in, notin, =, ==, !=, > or <")),
        }
    }

    fn one(&mut self) -> Result<OneOf, InvalidSelector> {
        Ok(OneOf([self.value()?].into()))
    }

    fn number(&mut self) -> Result<i64, InvalidSelector> {
        let (at, _) = self.peek();
        let value = self.value()?;
        let fault = || format!("'>' and '<' need an integer, and {} is none", quoted(&value));
        value.parse().map_err(|_| InvalidSelector { at: Some(at), fault: fault().into() })
    }

    fn several(&mut self) -> Result<OneOf, InvalidSelector> {
        let open = self.take();
        if open.1 != Token::Open {
            return Err(unexpected(open, "'('"));
        }
        let mut values = Vec::new();
        loop {
            values.push(self.value()?);
            match self.take() {
                (_, Token::Comma) => {}
                (_, Token::Close) => return Ok(OneOf::new(values)),
                found => return Err(unexpected(found, "',' or ')'")),
            }
        }
    }

    /// A value. Where none stands before a comma, a parenthesis or the end, it is the empty one.
    fn value(&mut self) -> Result<Box<str>, InvalidSelector> {
        match self.peek() {
            (at, Token::Word(word)) => {
                self.take();
                valid::value(word).map_err(|fault| InvalidSelector { at: Some(at), fault })?;
                Ok(word.into())
            }
            (_, Token::Comma | Token::Close | Token::End) => Ok("".into()),
            found => Err(unexpected(found, "a label's value")),
        }
    }

    /// The next token, and where it begins.
    fn peek(&self) -> (usize, Token<'a>) {
        let (at, token, _) = self.next();
        (at, token)
    }

    fn take(&mut self) -> (usize, Token<'a>) {
        let (at, token, length) = self.next();
        self.at = at + length;
        (at, token)
    }

    fn next(&self) -> (usize, Token<'a>, usize) {
        let rest = self.text[self.at..].trim_start_matches(is_space);
        let at = self.text.len() - rest.len();
        let (token, length) = match rest.as_bytes() {
            [] => (Token::End, 0),
            [b'(', ..] => (Token::Open, 1),
            [b')', ..] => (Token::Close, 1),
            [b',', ..] => (Token::Comma, 1),
            [b'>', ..] => (Token::Greater, 1),
            [b'<', ..] => (Token::Less, 1),
            [b'!', b'=', ..] => (Token::NotEqual, 2),
            [b'!', ..] => (Token::Not, 1),
            [b'=', b'=', ..] => (Token::Equal, 2),
            [b'=', ..] => (Token::Equal, 1),
            _ => {
                let length = rest.find(|c| is_space(c) || is_symbol(c)).unwrap_or(rest.len());
                (Token::Word(&rest[..length]), length)
            }
        };
        (at, token, length)
    }
}

fn checked_key(at: usize, key: &str) -> Result<Box<str>, InvalidSelector> {
    valid::key(key).map_err(|fault| InvalidSelector { at: Some(at), fault })?;
    Ok(key.into())
}

fn unexpected((at, found): (usize, Token<'_>), expected: &str) -> InvalidSelector {
    let found = match found {
        Token::Word(word) => quoted(word),
        Token::Open => "'('".into(),
        Token::Close => "')'".into(),
        Token::Comma => "','".into(),
        Token::Not => "'!'".into(),
        Token::Equal => "'='".into(),
        Token::NotEqual => "'!='".into(),
        Token::Greater => "'>'".into(),
        Token::Less => "'<'".into(),
        Token::End => "the end".into(),
    };
    InvalidSelector { at: Some(at), fault: format!("found {found}, expected {expected}").into() }
}

fn is_space(c: char) -> bool {
    matches!(c, ' ' | '\t' | '\r' | '\n')
}

fn is_symbol(c: char) -> bool {
    matches!(c, '=' | '!' | '(' | ')' | ',' | '>' | '<')
}
