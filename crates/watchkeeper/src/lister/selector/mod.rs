//! Which objects are meant, by their labels.

mod parse;
mod valid;

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use crate::Labels;

/// Requirements on an object's labels, all of which must hold: client-go's `labels.Selector`. Cheap to clone.
///
/// ```
/// use watchkeeper::{Object, Selector};
///
/// let selector = Selector::parse("app in (web, api), tier != cache, !legacy")?;
/// let pod = r#"{"metadata": {"name": "web-0", "resourceVersion": "7", "labels": {"app": "web"}}}"#;
/// assert!(selector.matches(Object::from_json(pod)?.labels()));
///
/// assert_eq!(selector.to_string(), "app in (api,web),!legacy,tier!=cache");
/// assert_eq!(Selector::label("app", "web")?.and(&Selector::parse("!legacy")?).to_string(), "app=web,!legacy");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// The text is what `kubectl -l` and a request's `labelSelector` take, and so is what [`Display`](fmt::Display) prints. Two
/// selectors that ask for the same in other words (`a=b`, `a==b` and `a in (b)`, or in another order) are equal.
#[derive(Clone, Default, PartialEq, Eq, Hash)]
pub struct Selector {
    /// In order, each once.
    requirements: Arc<[Requirement]>,
}

#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
struct Requirement {
    key: Box<str>,
    condition: Condition,
}

#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
enum Condition {
    Exists,
    DoesNotExist,
    In(OneOf),
    NotIn(OneOf),
    GreaterThan(i64),
    LessThan(i64),
}

/// Some values, in order, each once, at least one.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
struct OneOf(Box<[Box<str>]>);

impl Selector {
    /// Reads a selector: `app=web,tier!=cache,env in (a,b),x notin (c),partition,!legacy,a>1,b<5`.
    ///
    /// `!=` and `notin` hold for objects without the label, too; `>` and `<` for labels that are integers. The empty
    /// text means everything.
    pub fn parse(text: &str) -> Result<Self, InvalidSelector> {
        parse::requirements(text).map(Self::new)
    }

    /// The selector that all objects match, whatever their labels: client-go's `labels.Everything`.
    pub fn everything() -> Self {
        Self::default()
    }

    /// The selector that no object matches: client-go's `labels.Nothing`. Unlike that one it has a text, which means the
    /// same to a server: it asks for a label, and for its absence.
    pub fn nothing() -> Self {
        let requirement = |condition| Requirement { key: "nothing".into(), condition };
        Self::new(vec![requirement(Condition::Exists), requirement(Condition::DoesNotExist)])
    }

    /// The selector of the objects that have this label: `key=value`.
    pub fn label(key: &str, value: &str) -> Result<Self, InvalidSelector> {
        Self::labels([(key, value)])
    }

    /// The selector of the objects that have all these labels: client-go's `labels.SelectorFromSet`.
    pub fn labels<K: AsRef<str>, V: AsRef<str>>(
        labels: impl IntoIterator<Item = (K, V)>,
    ) -> Result<Self, InvalidSelector> {
        let requirement = |(key, value): (K, V)| {
            let (key, value) = (key.as_ref(), value.as_ref());
            valid::key(key).and(valid::value(value)).map_err(|fault| InvalidSelector { at: None, fault })?;
            Ok(Requirement { key: key.into(), condition: Condition::In(OneOf([value.into()].into())) })
        };
        labels.into_iter().map(requirement).collect::<Result<_, _>>().map(Self::new)
    }

    /// The selector of the objects that match both.
    #[must_use]
    pub fn and(&self, other: &Self) -> Self {
        Self::new(self.requirements.iter().chain(&*other.requirements).cloned().collect())
    }

    /// Whether an object with these labels is meant.
    pub fn matches(&self, labels: Labels<'_>) -> bool {
        self.requirements.iter().all(|requirement| requirement.condition.holds(labels.get(&requirement.key)))
    }

    /// It asks for nothing, so that all objects match.
    pub fn is_everything(&self) -> bool {
        self.requirements.is_empty()
    }

    /// It asks for a label, and for its absence, so that no object matches. (There are other ways to match none, which
    /// this does not tell.)
    pub fn is_nothing(&self) -> bool {
        let absent = |requirement: &Requirement| requirement.condition == Condition::DoesNotExist;
        let contradict = |of_one_key: &[Requirement]| {
            of_one_key.iter().any(absent) && !of_one_key.iter().all(|requirement| requirement.condition.holds(None))
        };
        self.requirements.chunk_by(|one, two| one.key == two.key).any(contradict)
    }

    fn new(mut requirements: Vec<Requirement>) -> Self {
        requirements.sort_unstable();
        requirements.dedup();
        Self { requirements: requirements.into() }
    }
}

impl Condition {
    /// Whether it holds for a label of this value, or for its absence.
    fn holds(&self, value: Option<&str>) -> bool {
        let number = || value.and_then(|value| value.parse::<i64>().ok());
        match self {
            Self::Exists => value.is_some(),
            Self::DoesNotExist => value.is_none(),
            Self::In(values) => value.is_some_and(|value| values.contains(value)),
            Self::NotIn(values) => value.is_none_or(|value| !values.contains(value)),
            Self::GreaterThan(bound) => number().is_some_and(|number| number > *bound),
            Self::LessThan(bound) => number().is_some_and(|number| number < *bound),
        }
    }
}

impl OneOf {
    fn new(mut values: Vec<Box<str>>) -> Self {
        values.sort_unstable();
        values.dedup();
        Self(values.into())
    }

    fn contains(&self, value: &str) -> bool {
        self.0.binary_search_by(|known| (**known).cmp(value)).is_ok()
    }
}

impl FromStr for Selector {
    type Err = InvalidSelector;

    fn from_str(text: &str) -> Result<Self, InvalidSelector> {
        Self::parse(text)
    }
}

/// What [`parse`](Selector::parse) reads as an equal selector.
impl fmt::Display for Selector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (place, requirement) in self.requirements.iter().enumerate() {
            let comma = if place > 0 { "," } else { "" };
            write!(f, "{comma}{requirement}")?;
        }
        Ok(())
    }
}

/// For requests: [`ListWatch::labels`](crate::ListWatch::labels) takes a selector.
impl From<&Selector> for String {
    fn from(selector: &Selector) -> Self {
        selector.to_string()
    }
}

impl fmt::Display for Requirement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let key = &self.key;
        match &self.condition {
            Condition::Exists => write!(f, "{key}"),
            Condition::DoesNotExist => write!(f, "!{key}"),
            Condition::In(OneOf(values)) => match &**values {
                [value] => write!(f, "{key}={value}"),
                values => write!(f, "{key} in ({})", values.join(",")),
            },
            Condition::NotIn(OneOf(values)) => match &**values {
                [value] => write!(f, "{key}!={value}"),
                values => write!(f, "{key} notin ({})", values.join(",")),
            },
            Condition::GreaterThan(bound) => write!(f, "{key}>{bound}"),
            Condition::LessThan(bound) => write!(f, "{key}<{bound}"),
        }
    }
}

impl fmt::Debug for Selector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Selector({:?})", self.to_string())
    }
}

/// A text that is not a selector, or a label that no object can have.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InvalidSelector {
    at: Option<usize>,
    fault: Box<str>,
}

impl InvalidSelector {
    /// The byte of the text at which it stops being a selector; none, if it was not made from a text.
    pub fn at(&self) -> Option<usize> {
        self.at
    }
}

impl fmt::Display for InvalidSelector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { at, fault } = self;
        match at {
            Some(at) => write!(f, "not a label selector, at byte {at}: {fault}"),
            None => write!(f, "not a label selector: {fault}"),
        }
    }
}

impl std::error::Error for InvalidSelector {}
