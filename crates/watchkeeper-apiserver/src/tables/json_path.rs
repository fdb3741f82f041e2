//! Paths of printer columns: `.spec.list[?(@.type=="Ready")].status`.
//!
//! Counterpart: `k8s.io/client-go/util/jsonpath`, as far as columns use it. What is found first is shown.

use serde_json::Value;

/// How many values are followed at once: a path may ask for everything within everything.
const MOST: usize = 10_000;

/// A path that was read.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct JsonPath {
    steps: Vec<Step>,
}

#[derive(Debug, Clone, PartialEq)]
enum Step {
    Field(String),
    /// `..`: the value itself, and everything within it.
    Descend,
    Wildcard,
    /// From, to, and how far apart; of a list.
    Slice(Option<i64>, Option<i64>, i64),
    /// One entry of a list.
    Index(i64),
    Filter(Filter),
}

#[derive(Debug, Clone, PartialEq)]
struct Filter {
    left: Operand,
    right: Option<(Comparison, Operand)>,
}

#[derive(Debug, Clone, PartialEq)]
enum Operand {
    Path(JsonPath),
    Literal(Value),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Comparison {
    Equal,
    NotEqual,
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
}

impl JsonPath {
    /// Reads a path; none, if it is none.
    pub(super) fn new(text: &str) -> Option<Self> {
        parse(text, 0)
    }

    /// What is found first.
    pub(super) fn first<'a>(&self, value: &'a Value) -> Option<&'a Value> {
        self.find(value).into_iter().next()
    }

    fn find<'a>(&self, value: &'a Value) -> Vec<&'a Value> {
        let mut found = vec![value];
        for step in &self.steps {
            let mut next = Vec::new();
            for value in found {
                step.apply(value, &mut next);
                next.truncate(MOST);
            }
            found = next;
        }
        found
    }
}

impl Step {
    fn apply<'a>(&self, value: &'a Value, found: &mut Vec<&'a Value>) {
        match (self, value) {
            (Self::Field(name), Value::Object(map)) => found.extend(map.get(name)),
            (Self::Wildcard, Value::Object(map)) => found.extend(map.values()),
            (Self::Wildcard, Value::Array(values)) => found.extend(values),
            (Self::Descend, value) => descend(value, found),
            (Self::Index(index), Value::Array(values)) => {
                let index = if *index < 0 { index + values.len() as i64 } else { *index };
                found.extend(usize::try_from(index).ok().and_then(|index| values.get(index)));
            }
            (Self::Slice(from, to, distance), Value::Array(values)) => {
                let length = values.len() as i64;
                let bound = |bound: i64| (if bound < 0 { bound + length } else { bound }).clamp(0, length) as usize;
                let (from, to) = (bound(from.unwrap_or(0)), bound(to.unwrap_or(length)));
                let distance = usize::try_from(*distance).unwrap_or(1).max(1);
                found.extend(values.get(from..to).unwrap_or_default().iter().step_by(distance));
            }
            (Self::Filter(filter), Value::Array(values)) => {
                found.extend(values.iter().filter(|value| filter.matches(value)));
            }
            _ => {}
        }
    }
}

impl Filter {
    fn matches(&self, value: &Value) -> bool {
        let found = |operand: &Operand| match operand {
            Operand::Literal(literal) => Some(literal.clone()),
            Operand::Path(path) => path.first(value).cloned(),
        };
        let left = found(&self.left);
        match &self.right {
            None => left.is_some(),
            Some((comparison, right)) => match (left, found(right)) {
                (Some(left), Some(right)) => comparison.holds(&left, &right),
                _ => false,
            },
        }
    }
}

impl Comparison {
    fn holds(self, left: &Value, right: &Value) -> bool {
        use std::cmp::Ordering::{Equal, Greater, Less};
        let order = match (left, right) {
            (Value::Number(left), Value::Number(right)) => left.as_f64().partial_cmp(&right.as_f64()),
            (Value::String(left), Value::String(right)) => Some(left.cmp(right)),
            (left, right) => (left == right).then_some(Equal),
        };
        match self {
            Self::Equal => order == Some(Equal),
            Self::NotEqual => order != Some(Equal),
            Self::Less => order == Some(Less),
            Self::LessOrEqual => matches!(order, Some(Less | Equal)),
            Self::Greater => order == Some(Greater),
            Self::GreaterOrEqual => matches!(order, Some(Greater | Equal)),
        }
    }
}

/// The value and everything within it; values have a bounded depth.
fn descend<'a>(value: &'a Value, found: &mut Vec<&'a Value>) {
    if found.len() >= MOST {
        return;
    }
    found.push(value);
    match value {
        Value::Array(values) => values.iter().for_each(|value| descend(value, found)),
        Value::Object(map) => map.values().for_each(|value| descend(value, found)),
        _ => {}
    }
}

/// Filters have paths, which have filters: not too many.
fn parse(text: &str, depth: usize) -> Option<JsonPath> {
    if depth > 8 {
        return None;
    }
    let mut steps = Vec::new();
    let mut rest = text;
    while let Some(c) = rest.chars().next() {
        match c {
            '.' if rest.starts_with("..") => {
                steps.push(Step::Descend);
                // A name may follow at once.
                rest = &rest[1..];
                if rest[1..].starts_with('[') || rest.len() == 1 {
                    rest = &rest[1..];
                }
            }
            '.' => rest = field(&rest[1..], &mut steps)?,
            '[' => {
                let end = closing(rest)?;
                bracket(&rest[1..end], &mut steps, depth)?;
                rest = &rest[end + 1..];
            }
            '$' | '@' if steps.is_empty() => rest = &rest[1..],
            c if steps.is_empty() && !ends_name(c) => rest = field(rest, &mut steps)?,
            _ => return None,
        }
    }
    Some(JsonPath { steps })
}

/// A name, up to the next dot or bracket that is not escaped.
fn field<'a>(text: &'a str, steps: &mut Vec<Step>) -> Option<&'a str> {
    let mut name = String::new();
    let mut characters = text.char_indices();
    let mut end = text.len();
    while let Some((i, c)) = characters.next() {
        match c {
            '\\' => name.push(characters.next()?.1),
            c if ends_name(c) => {
                end = i;
                break;
            }
            c => name.push(c),
        }
    }
    match name.as_str() {
        "" => {}
        "*" => steps.push(Step::Wildcard),
        _ => steps.push(Step::Field(name)),
    }
    Some(&text[end..])
}

fn ends_name(c: char) -> bool {
    matches!(c, '.' | '[' | ']' | ' ' | '{' | '}')
}

/// Where a bracket ends, whatever is quoted in it.
fn closing(text: &str) -> Option<usize> {
    let mut quote = None;
    let mut depth = 0;
    let mut escaped = false;
    for (i, c) in text.char_indices() {
        match (quote, c) {
            _ if escaped => escaped = false,
            (_, '\\') => escaped = true,
            (Some(open), c) if c == open => quote = None,
            (Some(_), _) => {}
            (None, '\'' | '"') => quote = Some(c),
            (None, '[') => depth += 1,
            (None, ']') => {
                depth -= 1;
                if depth == 0 {
                    return Some(i);
                }
            }
            _ => {}
        }
    }
    None
}

fn bracket(text: &str, steps: &mut Vec<Step>, depth: usize) -> Option<()> {
    if text == "*" {
        steps.push(Step::Wildcard);
        return Some(());
    }
    if let Some(filter) = text.strip_prefix("?(").and_then(|rest| rest.strip_suffix(')')) {
        steps.push(Step::Filter(self::filter(filter, depth)?));
        return Some(());
    }
    let quoted = text.strip_prefix('\'').and_then(|rest| rest.strip_suffix('\''));
    if let Some(name) = quoted {
        // What is quoted is a path again: its dots count, unless they are escaped.
        let mut rest = name;
        while !rest.is_empty() {
            let behind = field(rest.strip_prefix('.').unwrap_or(rest), steps)?;
            // Something ends a name here that begins no other one.
            if behind.len() == rest.len() {
                return None;
            }
            rest = behind;
        }
        return Some(());
    }
    let number = |text: &str| if text.is_empty() { Some(None) } else { text.parse::<i64>().ok().map(Some) };
    let parts: Option<Vec<Option<i64>>> = text.split(':').map(number).collect();
    steps.push(match parts?.as_slice() {
        [Some(index)] => Step::Index(*index),
        [from, to] => Step::Slice(*from, *to, 1),
        [from, to, distance] => Step::Slice(*from, *to, distance.unwrap_or(1)),
        _ => return None,
    });
    Some(())
}

fn filter(text: &str, depth: usize) -> Option<Filter> {
    let comparisons = [
        ("==", Comparison::Equal),
        ("!=", Comparison::NotEqual),
        ("<=", Comparison::LessOrEqual),
        (">=", Comparison::GreaterOrEqual),
        ("<", Comparison::Less),
        (">", Comparison::Greater),
    ];
    // The first operator, and of those that begin alike the longest.
    let found = comparisons.iter().filter_map(|(sign, comparison)| Some((text.find(sign)?, sign, comparison)));
    let found = found.min_by_key(|(at, sign, _)| (*at, usize::MAX - sign.len()));
    Some(match found {
        None => Filter { left: operand(text, depth)?, right: None },
        Some((at, sign, comparison)) => Filter {
            left: operand(&text[..at], depth)?,
            right: Some((*comparison, operand(&text[at + sign.len()..], depth)?)),
        },
    })
}

fn operand(text: &str, depth: usize) -> Option<Operand> {
    let text = text.trim();
    for quote in ['"', '\''] {
        if let Some(literal) = text.strip_prefix(quote).and_then(|rest| rest.strip_suffix(quote)) {
            return Some(Operand::Literal(literal.into()));
        }
    }
    if let Ok(literal @ (Value::Number(_) | Value::Bool(_))) = serde_json::from_str(text) {
        return Some(Operand::Literal(literal));
    }
    parse(text, depth + 1).map(Operand::Path)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn paths_find_what_kubectl_would() {
        let object = json!({"spec": {
            "s": "text", "list": [{"name": "a", "v": 1}, {"name": "b", "v": 2}], "m": {"x.y": "1", "z": {"w": 2}},
        }});
        let found = |path: &str| JsonPath::new(path).expect(path).first(&object).cloned();
        for (path, expected) in [
            (".spec.s", Some(json!("text"))),
            (".spec.list[*].name", Some(json!("a"))),
            (".spec.list[1].name", Some(json!("b"))),
            (".spec.list[-1].name", Some(json!("b"))),
            (".spec.list[-1:].name", Some(json!("b"))),
            (".spec.list[:1].name", Some(json!("a"))),
            (r#".spec.list[?(@.name=="b")].v"#, Some(json!(2))),
            (".spec.list[?(@.v>1)].name", Some(json!("b"))),
            (".spec.list[?(@.w)].name", None),
            (r".spec.m.x\.y", Some(json!("1"))),
            (r".spec.m['x\.y']", Some(json!("1"))),
            (".spec.m['x.y']", None),
            (".spec['m'].z.w", Some(json!(2))),
            (".spec..w", Some(json!(2))),
            (".spec.nothing.at.all", None),
            (".spec.list[7].name", None),
        ] {
            assert_eq!(found(path), expected, "{path}");
        }
        assert_eq!(JsonPath::new(".spec["), None);
        assert_eq!(JsonPath::new(".spec[x]"), None);
    }

    #[test]
    fn what_is_no_path_is_not_read_for_ever() {
        for path in [". spec", ".{a}", ".]", " ", "]", ".a['b c']", ".a['b]c']", ".a['[']", ".a[?(@. b)]", ".a.}"] {
            assert_eq!(JsonPath::new(path), None, "{path}");
        }
    }

    #[test]
    fn what_asks_for_everything_within_everything_ends() {
        let object = (0..100).fold(json!(1), |inner, _| json!({"a": inner, "b": 1}));
        let path = JsonPath::new(&"..a".repeat(50)).expect("a path");
        assert!(path.find(&object).len() <= MOST);
    }
}
