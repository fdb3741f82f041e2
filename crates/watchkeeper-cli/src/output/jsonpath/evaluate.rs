//! How is a template followed through an object?

use std::fmt;

use serde_json::Value;

use super::tree::{Filter, Part, Slice, Step};

/// Several recursive descents behind each other multiply. Above so many values in all, nobody reads the answer.
const MOST_VALUES: usize = 1_000_000;

/// A template that does not fit an object. It tells nothing of what stands in the object.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum EvaluationError {
    /// Brackets with an index or a filter, on something that is no list.
    NotAList,
    /// A side of a comparison found several values.
    SeveralCompared,
    /// The template finds too much.
    TooManyValues,
}

impl fmt::Display for EvaluationError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotAList => f.write_str("an index or a filter is used on something that is not a list"),
            Self::SeveralCompared => f.write_str("a filter compares several values at once"),
            Self::TooManyValues => write!(f, "the template finds more than {MOST_VALUES} values"),
        }
    }
}

impl std::error::Error for EvaluationError {}

type Values<'a> = Vec<&'a Value>;

/// What the parts find in an object, a group for each.
pub(super) fn find<'a>(parts: &'a [Part], object: &'a Value) -> Result<Vec<Values<'a>>, EvaluationError> {
    let mut evaluation = Evaluation { groups: Vec::new(), values: 0 };
    evaluation.parts(parts, object)?;
    Ok(evaluation.groups)
}

struct Evaluation<'a> {
    groups: Vec<Values<'a>>,
    values: usize,
}

impl<'a> Evaluation<'a> {
    fn parts(&mut self, parts: &'a [Part], object: &'a Value) -> Result<(), EvaluationError> {
        for part in parts {
            match part {
                Part::Text(text) => {
                    self.count(1)?;
                    self.groups.push(vec![text]);
                }
                Part::Action(steps) => {
                    let found = self.steps(steps, vec![object])?;
                    self.groups.push(found);
                }
                Part::Range(over, body) => {
                    for value in self.steps(over, vec![object])? {
                        self.parts(body, value)?;
                    }
                }
            }
        }
        Ok(())
    }

    fn steps(&mut self, steps: &'a [Step], mut values: Values<'a>) -> Result<Values<'a>, EvaluationError> {
        for step in steps {
            values = self.step(step, values)?;
            // A step that finds nothing counts as well, so that templates end whatever they find.
            self.count(values.len() + 1)?;
        }
        Ok(values)
    }

    fn step(&mut self, step: &'a Step, values: Values<'a>) -> Result<Values<'a>, EvaluationError> {
        match step {
            Step::Field(name) => Ok(values.into_iter().filter_map(|value| value.get(name)).collect()),
            Step::Wildcard => Ok(values.into_iter().flat_map(children).collect()),
            Step::Recursive => {
                let mut found = Vec::new();
                values.into_iter().try_for_each(|value| self.descend(value, &mut found))?;
                Ok(found)
            }
            Step::Slice(slice) => {
                let mut found = Vec::new();
                for list in lists(values) {
                    let list = list?;
                    match *slice {
                        Slice::Index(index) => found.extend(position(index, list.len()).and_then(|at| list.get(at))),
                        Slice::Range(from, to, step) => found.extend(range(list, from, to, step)),
                    }
                }
                Ok(found)
            }
            Step::Union(choices) => {
                let mut found = Vec::new();
                for choice in choices {
                    found.extend(self.steps(choice, values.clone())?);
                }
                Ok(found)
            }
            Step::Filter(filter) => {
                let mut found = Vec::new();
                for list in lists(values) {
                    for item in list? {
                        if self.passes(filter, item)? {
                            found.push(item);
                        }
                    }
                }
                Ok(found)
            }
            // For each value that came, as kubectl does, but a text in any case.
            Step::Literal(literal @ Value::String(_)) => Ok(vec![literal]),
            Step::Literal(literal) => Ok(values.iter().map(|_| literal).collect()),
        }
    }

    /// The value and what is in it, where there is something in it.
    fn descend(&mut self, value: &'a Value, found: &mut Values<'a>) -> Result<(), EvaluationError> {
        let mut below = children(value).peekable();
        if below.peek().is_some() {
            self.count(1)?;
            found.push(value);
            below.try_for_each(|child| self.descend(child, found))?;
        }
        Ok(())
    }

    fn passes(&mut self, filter: &'a Filter, item: &'a Value) -> Result<bool, EvaluationError> {
        match filter {
            // What does not fit is not there.
            Filter::Exists(path) => match self.steps(path, vec![item]) {
                Err(EvaluationError::TooManyValues) => Err(EvaluationError::TooManyValues),
                found => Ok(found.is_ok_and(|found| !found.is_empty())),
            },
            Filter::Compare(left, operator, right) => {
                match (self.steps(left, vec![item])?.as_slice(), self.steps(right, vec![item])?.as_slice()) {
                    ([left], [right]) => Ok(operator.holds(left, right)),
                    ([], _) | (_, []) => Ok(false),
                    _ => Err(EvaluationError::SeveralCompared),
                }
            }
        }
    }

    fn count(&mut self, more: usize) -> Result<(), EvaluationError> {
        self.values = self.values.saturating_add(more);
        if self.values > MOST_VALUES { Err(EvaluationError::TooManyValues) } else { Ok(()) }
    }
}

fn children(value: &Value) -> Box<dyn Iterator<Item = &Value> + '_> {
    match value {
        Value::Array(items) => Box::new(items.iter()),
        Value::Object(fields) => Box::new(fields.values()),
        _ => Box::new(std::iter::empty()),
    }
}

/// The lists among the values. A null is an empty one.
fn lists(values: Values<'_>) -> impl Iterator<Item = Result<&[Value], EvaluationError>> {
    values.into_iter().map(|value| match value {
        Value::Array(items) => Ok(items.as_slice()),
        Value::Null => Ok(&[] as &[Value]),
        _ => Err(EvaluationError::NotAList),
    })
}

/// Where an index points that may count from the end.
fn position(index: i64, length: usize) -> Option<usize> {
    match usize::try_from(index) {
        Ok(at) => Some(at),
        Err(_) => length.checked_sub(usize::try_from(index.unsigned_abs()).ok()?),
    }
}

fn range(list: &[Value], from: Option<i64>, to: Option<i64>, step: u64) -> impl Iterator<Item = &Value> {
    let length = list.len();
    let place = |index: i64| position(index, length).unwrap_or(0).min(length);
    let (from, to) = (from.map_or(0, place), to.map_or(length, place));
    list.get(from..to).unwrap_or_default().iter().step_by(usize::try_from(step).unwrap_or(usize::MAX).max(1))
}
