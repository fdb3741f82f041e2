//! What a template is made of.

use serde_json::Value;

/// A part of a template.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Part {
    /// Text outside of braces; a JSON string, so that it can be found like a value.
    Text(Value),
    /// `{.path}`: what the steps find.
    Action(Vec<Step>),
    /// `{range .path}...{end}`: the parts, once for each value that the steps find.
    Range(Vec<Step>, Vec<Part>),
}

/// A step from values to other values.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Step {
    /// `.name`
    Field(String),
    /// `.*`
    Wildcard,
    /// `..`: the value, and everything in it that has something in it.
    Recursive,
    /// `[0]`, `[1:3]`, `[*]`
    Slice(Slice),
    /// `['a','b']`
    Union(Vec<Vec<Step>>),
    /// `[?(@.a=="b")]`
    Filter(Box<Filter>),
    /// `"text"`, `7`, `true`: whatever came before, it is this.
    Literal(Value),
}

/// Which items of a list.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Slice {
    /// One item; counted from the end, if negative.
    Index(i64),
    /// From, to and step of a range.
    Range(Option<i64>, Option<i64>, u64),
}

/// Which items of a list, by what is in them.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Filter {
    /// The path finds something.
    Exists(Vec<Step>),
    /// Two paths or literals compare so.
    Compare(Vec<Step>, Operator, Vec<Step>),
}

/// How two values are compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Operator {
    Equal,
    NotEqual,
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
}
