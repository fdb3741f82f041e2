//! How is a template read?
//!
//! A cursor over the text, a function for each construct. Nesting is bounded, since filters may hold filters.

use std::fmt;

use serde_json::{Number, Value};

use super::tree::{Filter, Operator, Part, Slice, Step};

/// Filters in filters, and ranges in ranges. Nobody writes more; the stack must not depend on it.
const DEEPEST: usize = 32;

/// A template that cannot be read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct SyntaxError {
    /// What is wrong.
    reason: String,
    /// The character at which it shows, counted from 1.
    position: usize,
}

impl fmt::Display for SyntaxError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} at character {}", self.reason, self.position)
    }
}

impl std::error::Error for SyntaxError {}

/// Reads a template.
pub(super) fn parse(template: &str) -> Result<Vec<Part>, SyntaxError> {
    let mut parser = Parser { text: template, at: 0, depth: 0 };
    let mut ranges: Vec<(Vec<Step>, Vec<Part>)> = Vec::new();
    let mut parts = Vec::new();
    while let Some(part) = parser.part()? {
        match part {
            Piece::Part(part) => parts.push(part),
            Piece::Range(_) if ranges.len() >= DEEPEST => return Err(parser.error("too many ranges in ranges")),
            Piece::Range(over) => ranges.push((over, std::mem::take(&mut parts))),
            Piece::End => {
                let Some((over, before)) = ranges.pop() else {
                    return Err(parser.error("{end} without {range}"));
                };
                let body = std::mem::replace(&mut parts, before);
                parts.push(Part::Range(over, body));
            }
        }
    }
    // As in kubectl, what is not ended ends with the template.
    while let Some((over, before)) = ranges.pop() {
        let body = std::mem::replace(&mut parts, before);
        parts.push(Part::Range(over, body));
    }
    Ok(parts)
}

enum Piece {
    Part(Part),
    Range(Vec<Step>),
    End,
}

struct Parser<'a> {
    text: &'a str,
    at: usize,
    depth: usize,
}

impl<'a> Parser<'a> {
    fn rest(&self) -> &'a str {
        self.text.get(self.at..).unwrap_or_default()
    }

    fn peek(&self) -> Option<char> {
        self.rest().chars().next()
    }

    fn next(&mut self) -> Option<char> {
        let character = self.peek()?;
        self.at += character.len_utf8();
        Some(character)
    }

    fn eat(&mut self, expected: &str) -> bool {
        let found = self.rest().starts_with(expected);
        if found {
            self.at += expected.len();
        }
        found
    }

    fn error(&self, reason: impl Into<String>) -> SyntaxError {
        let position = self.text.get(..self.at).unwrap_or_default().chars().count() + 1;
        SyntaxError { reason: reason.into(), position }
    }

    /// Text up to a brace, or what is in braces.
    fn part(&mut self) -> Result<Option<Piece>, SyntaxError> {
        let rest = self.rest();
        if rest.is_empty() {
            return Ok(None);
        }
        if self.eat("{") {
            return self.action().map(Some);
        }
        let text = rest.split('{').next().unwrap_or_default();
        self.at += text.len();
        Ok(Some(Piece::Part(Part::Text(Value::from(text)))))
    }

    fn action(&mut self) -> Result<Piece, SyntaxError> {
        self.skip_spaces();
        let keyword = self.keyword();
        if !matches!(keyword, "" | "true" | "false" | "range" | "end") {
            return Err(self.error(format!("unknown word {keyword:?}: a path begins with a dot")));
        }
        if matches!(keyword, "range" | "end") {
            self.at += keyword.len();
        }
        let steps = self.steps(false)?;
        if !self.eat("}") {
            return Err(self.unexpected("a } that ends the action"));
        }
        match keyword {
            "range" => Ok(Piece::Range(steps)),
            "end" if steps.is_empty() => Ok(Piece::End),
            "end" => Err(self.error("{end} takes nothing")),
            _ => Ok(Piece::Part(Part::Action(steps))),
        }
    }

    /// The steps up to something that is none. In a filter, comparison operators and brackets end names as well.
    fn steps(&mut self, filter: bool) -> Result<Vec<Step>, SyntaxError> {
        let mut steps: Vec<Step> = Vec::new();
        loop {
            self.skip_spaces();
            let Some(character) = self.peek() else { return Ok(steps) };
            match character {
                '@' | '$' => self.at += 1,
                '[' => steps.extend(self.brackets()?),
                '"' | '\'' => steps.push(Step::Literal(Value::String(self.quoted()?))),
                '.' if self.eat("..") => {
                    if steps.last() == Some(&Step::Recursive) {
                        return Err(self.error("two recursive descents in a row"));
                    }
                    steps.push(Step::Recursive);
                    if self.peek().is_some_and(|next| next == '_' || next == '*' || next.is_alphanumeric()) {
                        steps.extend(self.field(filter)?);
                    }
                }
                '.' => {
                    self.at += 1;
                    steps.extend(self.field(filter)?);
                }
                '+' | '-' | '0'..='9' => steps.push(Step::Literal(self.number()?)),
                _ => match self.keyword() {
                    word @ ("true" | "false") => {
                        self.at += word.len();
                        steps.push(Step::Literal(Value::Bool(word == "true")));
                    }
                    "" => return Ok(steps),
                    word => return Err(self.error(format!("unknown word {word:?}: text stands in quotes"))),
                },
            }
        }
    }

    /// A name, in which a backslash takes away the meaning of the next character. No name is the value itself.
    fn field(&mut self, filter: bool) -> Result<Option<Step>, SyntaxError> {
        let mut name = String::new();
        let mut escaped = false;
        while let Some(character) = self.peek() {
            if character == '\\' {
                self.at += 1;
                let Some(next) = self.next() else { return Err(self.error("a backslash with nothing behind it")) };
                name.push(next);
                escaped = true;
            } else if ends_name(character) || filter && matches!(character, '!' | '<' | '>' | '=' | ')') {
                break;
            } else {
                name.push(character);
                self.at += character.len_utf8();
            }
        }
        Ok(match name.as_str() {
            "" => None,
            "*" if !escaped => Some(Step::Wildcard),
            _ => Some(Step::Field(name)),
        })
    }

    /// What is in brackets: a filter, or one or several indices, ranges and names.
    fn brackets(&mut self) -> Result<Vec<Step>, SyntaxError> {
        if self.eat("[?(") {
            return Ok(vec![Step::Filter(Box::new(self.filter()?))]);
        }
        self.at += 1;
        let mut choices = Vec::new();
        loop {
            self.skip_spaces();
            choices.push(self.choice()?);
            self.skip_spaces();
            match self.next() {
                Some(',') => {}
                Some(']') => break,
                _ => return Err(self.error("unterminated brackets")),
            }
        }
        match choices.len() {
            1 => Ok(choices.pop().unwrap_or_default()),
            _ => Ok(vec![Step::Union(choices)]),
        }
    }

    fn choice(&mut self) -> Result<Vec<Step>, SyntaxError> {
        if let Some(quote @ ('\'' | '"')) = self.peek() {
            self.at += 1;
            let Some(end) = self.rest().find(quote) else { return Err(self.error("unterminated name in brackets")) };
            // As in kubectl, dots in the quotes part names, unless there is a backslash before them.
            let path = format!(".{}", self.rest().get(..end).unwrap_or_default());
            let mut inner = Parser { text: &path, at: 0, depth: self.depth };
            let mut steps = Vec::new();
            while inner.eat(".") {
                steps.extend(inner.field(false)?);
            }
            if !inner.rest().is_empty() {
                return Err(self.error("a name in brackets that is no name"));
            }
            self.at += end + 1;
            return Ok(steps);
        }
        let text = self.rest().split([',', ']']).next().unwrap_or_default();
        let slice = slice(text.trim()).ok_or_else(|| self.error(format!("{:?} is no index", text.trim())))?;
        self.at += text.len();
        Ok(vec![Step::Slice(slice)])
    }

    fn filter(&mut self) -> Result<Filter, SyntaxError> {
        if self.depth >= DEEPEST {
            return Err(self.error("too many filters in filters"));
        }
        self.depth += 1;
        let left = self.steps(true)?;
        let filter = match self.operator()? {
            None => Filter::Exists(left),
            Some(operator) => Filter::Compare(left, operator, self.steps(true)?),
        };
        self.skip_spaces();
        if !self.eat(")]") {
            return Err(self.unexpected("a )] that ends the filter"));
        }
        self.depth -= 1;
        Ok(filter)
    }

    fn operator(&mut self) -> Result<Option<Operator>, SyntaxError> {
        self.skip_spaces();
        let rest = self.rest();
        let text = rest.get(..rest.len() - rest.trim_start_matches(['!', '<', '>', '=']).len()).unwrap_or_default();
        let operator = match text {
            "" => return Ok(None),
            "==" => Operator::Equal,
            "!=" => Operator::NotEqual,
            "<" => Operator::Less,
            "<=" => Operator::LessOrEqual,
            ">" => Operator::Greater,
            ">=" => Operator::GreaterOrEqual,
            _ => return Err(self.error(format!("{text:?} is no comparison"))),
        };
        self.at += text.len();
        Ok(Some(operator))
    }

    fn number(&mut self) -> Result<Value, SyntaxError> {
        let rest = self.rest();
        let digits = rest.strip_prefix(['+', '-']).unwrap_or(rest);
        let length = rest.len() - digits.trim_start_matches(|digit: char| digit == '.' || digit.is_ascii_digit()).len();
        let text = rest.get(..length).unwrap_or_default();
        let integer = text.parse::<i64>().map(Number::from).ok();
        let number = integer.or_else(|| text.parse::<f64>().ok().and_then(Number::from_f64));
        let number = number.ok_or_else(|| self.error(format!("{text:?} is no number")))?;
        self.at += length;
        Ok(Value::Number(number))
    }

    /// A text in quotes, with the escapes that Go and JSON share.
    fn quoted(&mut self) -> Result<String, SyntaxError> {
        let quote = self.next();
        let mut text = String::new();
        loop {
            match self.next() {
                None | Some('\n') => return Err(self.error("unterminated quoted text")),
                character if character == quote => return Ok(text),
                Some('\\') => text.push(self.escape()?),
                Some(character) => text.push(character),
            }
        }
    }

    fn escape(&mut self) -> Result<char, SyntaxError> {
        let digits = match self.next() {
            Some('n') => return Ok('\n'),
            Some('t') => return Ok('\t'),
            Some('r') => return Ok('\r'),
            Some('a') => return Ok('\u{7}'),
            Some('b') => return Ok('\u{8}'),
            Some('f') => return Ok('\u{c}'),
            Some('v') => return Ok('\u{b}'),
            Some(same @ ('\\' | '"' | '\'' | '/')) => return Ok(same),
            Some('x') => 2,
            Some('u') => 4,
            Some('U') => 8,
            _ => return Err(self.error("unknown escape in quoted text")),
        };
        let hex = self.rest().get(..digits).filter(|hex| hex.bytes().all(|digit| digit.is_ascii_hexdigit()));
        let character = hex.and_then(|hex| u32::from_str_radix(hex, 16).ok()).and_then(char::from_u32);
        let character = character.ok_or_else(|| self.error("an escape that is no character"))?;
        self.at += digits;
        Ok(character)
    }

    fn skip_spaces(&mut self) {
        self.at += self.rest().len() - self.rest().trim_start_matches([' ', '\t']).len();
    }

    /// The word that comes, without taking it.
    fn keyword(&self) -> &'a str {
        let rest = self.rest();
        let after = rest.trim_start_matches(|character: char| character == '_' || character.is_alphabetic());
        rest.get(..rest.len() - after.len()).unwrap_or_default()
    }

    fn unexpected(&self, expected: &str) -> SyntaxError {
        match self.peek() {
            None => self.error(format!("the template ends without {expected}")),
            Some(character) => self.error(format!("{character:?} instead of {expected}")),
        }
    }
}

fn ends_name(character: char) -> bool {
    matches!(character, ' ' | '\t' | '\r' | '\n' | '.' | ',' | '[' | ']' | '$' | '@' | '{' | '}')
}

fn slice(text: &str) -> Option<Slice> {
    let number = |text: &str| match text {
        "" => Some(None),
        _ => text.parse::<i64>().ok().map(Some),
    };
    let mut parts = text.split(':');
    let first = parts.next().unwrap_or_default();
    let (second, third) = (parts.next(), parts.next());
    if parts.next().is_some() || text.contains('+') {
        return None;
    }
    match (first, second) {
        ("*", None) => Some(Slice::Range(None, None, 1)),
        // So it is in kubectl.
        ("", None) => Some(Slice::Index(0)),
        (index, None) => Some(Slice::Index(index.parse().ok()?)),
        (from, Some(to)) => {
            let step = number(third.unwrap_or_default())?.unwrap_or(1);
            let step = u64::try_from(step).ok().filter(|step| *step > 0)?;
            Some(Slice::Range(number(from)?, number(to)?, step))
        }
    }
}
