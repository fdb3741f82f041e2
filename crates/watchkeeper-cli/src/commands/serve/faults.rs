//! What goes wrong, on demand?
//!
//! A file of rules, each with the requests that it is about and what happens to them. It is read strictly: what is
//! misspelt would otherwise be a fault that never comes. `docs/apiserver.md` has the format.

use std::fs;
use std::path::Path;
use std::time::Duration;

use serde::de::Error as _;
use serde::{Deserialize, Deserializer};
use watchkeeper_apiserver::{ApiServer, Ending, Fault, Match, StallAt};

use crate::failure::{Exit, Failure, Outcome};

/// The largest object that is made.
const OVERSIZE: usize = 1 << 30;

/// Reads the rules of a file, and puts them in force. How many there are.
pub(super) async fn begin(path: &Path, server: &ApiServer) -> Outcome<usize> {
    let failed = |why: String| {
        Failure::new(Exit::Error, format!("the rules of {} cannot be used", path.display()))
            .because(why)
            .try_this("see the format, with an example, in docs/apiserver.md")
    };
    let text = fs::read_to_string(path).map_err(|error| failed(error.to_string()))?;
    let rules = parse(&text).map_err(failed)?;
    let kinds = kinds(server).await;
    for (number, rule) in rules.iter().enumerate() {
        if let Some(kind) = rule.on.kind.as_ref().filter(|kind| !kinds.contains(kind)) {
            return Err(failed(format!("rule {}: the server has no kind {kind:?}; name it by its plural", number + 1)));
        }
    }
    let count = rules.len();
    for rule in rules {
        let requests = rule.on.requests();
        let mut faults = rule.then.into_iter();
        // A rule without a fault is no rule of a file.
        if let Some(first) = faults.next() {
            faults.fold(server.faults().on(requests).then(first), |rule, fault| rule.then(fault));
        }
    }
    Ok(count)
}

/// What is in a file.
fn parse(text: &str) -> Result<Vec<Rule>, String> {
    let options = serde_saphyr::options! { with_snippet: false };
    let rules: Vec<Rule> = serde_saphyr::from_str_with_options(text, options).map_err(|error| error.to_string())?;
    for (number, rule) in rules.iter().enumerate() {
        rule.on.check().map_err(|why| format!("rule {}: {why}", number + 1))?;
    }
    if rules.is_empty() { Err("there is no rule in it".to_owned()) } else { Ok(rules) }
}

/// The names of all kinds, with and without their group.
async fn kinds(server: &ApiServer) -> Vec<String> {
    let client = server.client();
    let mut kinds = Vec::new();
    let core = client.list_core_api_resources("v1").await;
    kinds.extend(core.into_iter().flat_map(|list| list.resources).map(|resource| resource.name));
    let groups = client.list_api_groups().await.map(|list| list.groups).unwrap_or_default();
    for group in groups {
        for version in group.versions {
            let list = client.list_api_group_resources(&version.group_version).await;
            for resource in list.into_iter().flat_map(|list| list.resources) {
                kinds.push(format!("{}.{}", resource.name, group.name));
                kinds.push(resource.name);
            }
        }
    }
    kinds
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Rule {
    #[serde(default)]
    on: Requests,
    #[serde(deserialize_with = "one_or_more")]
    then: Vec<Fault>,
}

/// Which requests; all, if nothing is said.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
struct Requests {
    verb: Option<Verb>,
    kind: Option<String>,
    initial_events: Option<bool>,
    nth: Option<u64>,
    from: Option<u64>,
    times: Option<u64>,
}

impl Requests {
    /// A rule that means no request at all would be a fault that never comes.
    fn check(&self) -> Result<(), String> {
        match (self.nth, self.from, self.times) {
            (Some(_), Some(_), _) | (Some(_), _, Some(_)) => {
                Err("`nth` stands alone, without `from` and `times`".into())
            }
            (Some(0), ..) | (_, Some(0), _) => Err("requests are counted from 1".into()),
            (.., Some(0)) => Err("`times: 0` is never".into()),
            _ => Ok(()),
        }
    }

    fn requests(&self) -> Match {
        let requests = Match {
            verb: self.verb.map(|verb| verb.name().to_owned()),
            kind: self.kind.clone(),
            initial_events: self.initial_events,
            ..Match::any()
        };
        // Clients are to survive it and to be counted, not the life in the cluster itself.
        let requests = requests.from_outside();
        match (self.nth, self.from, self.times) {
            (Some(nth), ..) => requests.nth(nth),
            (None, from, times) => {
                let requests = requests.after(from.unwrap_or(1).saturating_sub(1));
                times.into_iter().fold(requests, Match::times)
            }
        }
    }
}

#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Verb {
    Get,
    List,
    Watch,
    Create,
    Update,
    Patch,
    Delete,
    DeleteCollection,
}

impl Verb {
    fn name(self) -> &'static str {
        match self {
            Self::Get => "get",
            Self::List => "list",
            Self::Watch => "watch",
            Self::Create => "create",
            Self::Update => "update",
            Self::Patch => "patch",
            Self::Delete => "delete",
            Self::DeleteCollection => "deletecollection",
        }
    }
}

/// The catalogue, as it is written.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase", rename_all_fields = "camelCase")]
enum Written {
    Status {
        code: u16,
        #[serde(default)]
        reason: String,
        retry_after: Option<u32>,
    },
    Refuse,
    CutAfterBytes {
        bytes: usize,
        #[serde(default)]
        ending: WrittenEnding,
    },
    Stall {
        after_bytes: Option<usize>,
        #[serde(default, deserialize_with = "duration")]
        time: Option<Duration>,
    },
    Drip {
        bytes_per_second: u32,
    },
    EndAfter {
        #[serde(deserialize_with = "duration")]
        time: Option<Duration>,
    },
    DuplicateEvent {
        nth: usize,
    },
    DropEvent {
        nth: usize,
    },
    OldState {
        nth: usize,
    },
    Rewind {
        nth: usize,
        to: u64,
    },
    ErrorEvent {
        #[serde(default)]
        nth: usize,
        code: u16,
        #[serde(default)]
        reason: String,
    },
    Compact {
        revision: Option<u64>,
    },
    Truncate,
    Garbage {
        #[serde(default = "first")]
        nth: usize,
        text: Option<String>,
        hex: Option<String>,
    },
    HtmlPage {
        code: u16,
    },
    WrongKind {
        nth: usize,
    },
    Oversize {
        nth: usize,
        bytes: usize,
    },
    BookmarksLate {
        #[serde(deserialize_with = "duration")]
        by: Option<Duration>,
    },
    BookmarksMissing,
    BookmarksLie {
        ahead: u64,
    },
    Restart {
        keep_data: bool,
    },
    Random {
        seed: u64,
    },
}

#[derive(Debug, Clone, Copy, Default, Deserialize)]
#[serde(rename_all = "lowercase")]
enum WrittenEnding {
    #[default]
    Reset,
    Fin,
}

fn first() -> usize {
    1
}

impl Written {
    fn fault(self) -> Result<Fault, String> {
        Ok(match self {
            Self::Status { code, reason, retry_after } => Fault::Status { code: known(code)?, reason, retry_after },
            Self::Refuse => Fault::Refuse,
            Self::CutAfterBytes { bytes, ending } => Fault::CutAfterBytes { bytes, ending: ending.into() },
            Self::Stall { after_bytes, time } => {
                Fault::Stall { at: after_bytes.map_or(StallAt::Headers, StallAt::Bytes), time }
            }
            Self::Drip { bytes_per_second } => Fault::Drip { bytes_per_second },
            Self::EndAfter { time } => Fault::EndAfter { time: time.ok_or("`time` has to say when")? },
            Self::DuplicateEvent { nth } => Fault::DuplicateEvent { nth: counted(nth)? },
            Self::DropEvent { nth } => Fault::DropEvent { nth: counted(nth)? },
            Self::OldState { nth } => Fault::OldState { nth: counted(nth)? },
            Self::Rewind { nth, to } => Fault::Rewind { nth: counted(nth)?, to },
            Self::ErrorEvent { nth, code, reason } => Fault::ErrorEvent { nth, code: known(code)?, reason },
            Self::Compact { revision } => Fault::Compact { revision },
            Self::Truncate => Fault::Truncate,
            Self::Garbage { nth, text, hex } => {
                Fault::Garbage { nth: counted(nth)?, bytes: garbage(text, hex)?.into() }
            }
            Self::HtmlPage { code } => Fault::HtmlPage { code: known(code)? },
            Self::WrongKind { nth } => Fault::WrongKind { nth: counted(nth)? },
            Self::Oversize { bytes, .. } if bytes > OVERSIZE => {
                return Err(format!("`bytes: {bytes}` is too much: {OVERSIZE} at most, as it is made in memory"));
            }
            Self::Oversize { nth, bytes } => Fault::Oversize { nth: counted(nth)?, bytes },
            Self::BookmarksLate { by } => Fault::BookmarksLate { by: by.ok_or("`by` has to say how late")? },
            Self::BookmarksMissing => Fault::BookmarksMissing,
            Self::BookmarksLie { ahead } => Fault::BookmarksLie { ahead },
            Self::Restart { keep_data } => Fault::Restart { keep_data },
            Self::Random { seed } => Fault::Random { seed },
        })
    }
}

impl From<WrittenEnding> for Ending {
    fn from(ending: WrittenEnding) -> Self {
        match ending {
            WrittenEnding::Reset => Self::Reset,
            WrittenEnding::Fin => Self::Fin,
        }
    }
}

fn known(code: u16) -> Result<u16, String> {
    if (200..600).contains(&code) { Ok(code) } else { Err(format!("`code: {code}` is no status from 200 to 599")) }
}

/// The first object of an answer is 1.
fn counted(nth: usize) -> Result<usize, String> {
    if nth > 0 { Ok(nth) } else { Err("`nth: 0` never comes: objects are counted from 1".to_owned()) }
}

fn garbage(text: Option<String>, hex: Option<String>) -> Result<Vec<u8>, String> {
    match (text, hex) {
        (Some(text), None) => Ok(text.into_bytes()),
        (None, Some(hex)) => {
            let digits: Option<Vec<u8>> =
                hex.chars().map(|digit| digit.to_digit(16).map(|digit| digit as u8)).collect();
            let digits = digits.filter(|digits| digits.len().is_multiple_of(2));
            let digits = digits.ok_or("`hex` has two digits from 0 to f for each byte")?;
            Ok(digits.chunks_exact(2).map(|pair| pair[0] << 4 | pair[1]).collect())
        }
        _ => Err("garbage has either `text` or `hex`".to_owned()),
    }
}

fn duration<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Duration>, D::Error> {
    let text = String::deserialize(deserializer)?;
    crate::time::duration(&text).map(Some).map_err(D::Error::custom)
}

/// One fault, or a list of those that happen together.
fn one_or_more<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<Fault>, D::Error> {
    struct OneOrMore;

    impl<'de> serde::de::Visitor<'de> for OneOrMore {
        type Value = Vec<Written>;

        fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
            f.write_str("a fault, or a list of faults")
        }

        fn visit_seq<A: serde::de::SeqAccess<'de>>(self, seq: A) -> Result<Self::Value, A::Error> {
            Vec::deserialize(serde::de::value::SeqAccessDeserializer::new(seq))
        }

        fn visit_map<A: serde::de::MapAccess<'de>>(self, map: A) -> Result<Self::Value, A::Error> {
            Written::deserialize(serde::de::value::MapAccessDeserializer::new(map)).map(|fault| vec![fault])
        }

        fn visit_str<E: serde::de::Error>(self, name: &str) -> Result<Self::Value, E> {
            Written::deserialize(serde::de::value::StrDeserializer::new(name)).map(|fault| vec![fault])
        }
    }

    let written = deserializer.deserialize_any(OneOrMore)?;
    if written.is_empty() {
        return Err(D::Error::custom("nothing happens then: name a fault"));
    }
    written.into_iter().map(|fault| fault.fault().map_err(D::Error::custom)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The example of the documentation, which has every fault.
    fn example() -> &'static str {
        let docs = include_str!("../../../../../docs/apiserver.md");
        let (_, rest) = docs.split_once("```yaml\n# faults.yaml\n").expect("an example");
        rest.split_once("```").expect("its end").0
    }

    #[test]
    fn the_example_of_the_documentation_has_every_fault_that_there_is() {
        let rules = parse(example()).expect("rules");
        let shown: Vec<String> = rules.iter().flat_map(|rule| &rule.then).map(|fault| format!("{fault:?}")).collect();
        // The variants of the enum, read from where they are written: a new one must be writable too.
        let source = include_str!("../../../../watchkeeper-apiserver/src/faults/fault.rs");
        let (_, body) = source.split_once("pub enum Fault {\n").expect("the catalogue");
        let (body, _) = body.split_once("\n}\n").expect("its end");
        let variants: Vec<&str> = body
            .lines()
            .filter_map(|line| {
                line.strip_prefix("    ").filter(|line| line.starts_with(|c: char| c.is_ascii_uppercase()))
            })
            .map(|line| line.trim_end_matches([' ', '{', ',']))
            .collect();
        assert!(variants.len() > 20, "{variants:?}");
        for variant in variants {
            let is_it = |fault: &&String| {
                fault.strip_prefix(variant).is_some_and(|rest| rest.is_empty() || rest.starts_with(" {"))
            };
            assert!(shown.iter().any(|fault| is_it(&fault)), "{variant} is not in the example");
        }
    }

    #[test]
    fn rules_mean_what_they_say() {
        let rules = parse(
            "- on: {verb: watch, kind: pods, nth: 2}\n  then: {cutAfterBytes: {bytes: 700}}\n\
             - on: {verb: list, from: 3, times: 4}\n  then: [refuse, {stall: {time: 40s, afterBytes: 9}}]\n\
             - then: {garbage: {hex: \"00fF\"}}\n",
        )
        .expect("rules");
        assert_eq!(rules[0].on.requests(), Match::watch("pods").nth(2).from_outside());
        assert_eq!(rules[0].then, [Fault::cut_after_bytes(700, Ending::Reset)]);
        let lists = Match { verb: Some("list".to_owned()), ..Match::any() };
        assert_eq!(rules[1].on.requests(), lists.after(2).times(4).from_outside());
        let stall = Fault::Stall { at: StallAt::Bytes(9), time: Some(Duration::from_secs(40)) };
        assert_eq!(rules[1].then, [Fault::Refuse, stall]);
        assert_eq!(rules[2].on.requests(), Match::any().from_outside());
        assert_eq!(rules[2].then, [Fault::garbage(vec![0, 255])]);
    }

    #[test]
    fn json_is_read_too() {
        let rules = parse(r#"[{"on": {"kind": "nodes"}, "then": {"htmlPage": {"code": 502}}}]"#).expect("a rule");
        assert_eq!(rules[0].then, [Fault::bad_gateway()]);
    }

    #[test]
    fn what_is_misspelt_is_named_with_its_line_and_what_is_allowed() {
        for (text, line, needles) in [
            ("- on: {verb: list}\n  thn: refuse\n", 2, ["thn", "then"]),
            ("- on: {vreb: list}\n  then: refuse\n", 1, ["vreb", "verb"]),
            ("- on: {verb: lst}\n  then: refuse\n", 1, ["lst", "list"]),
            ("- on: {}\n  then:\n    status: {code: 429, retryafter: 1}\n", 3, ["retryafter", "retryAfter"]),
            ("- on: {}\n  then:\n    explode: {}\n", 3, ["explode", "refuse"]),
            ("- on: {}\n  then: explode\n", 2, ["explode", "refuse"]),
            ("- then: {status: {code: 7}}\n", 1, ["`code: 7`", "200"]),
            ("- then: {stall: {time: soon}}\n", 1, ["soon", "duration"]),
            ("- then: {garbage: {}}\n", 1, ["`text`", "`hex`"]),
            ("- on: {}\n", 1, ["then", "missing"]),
        ] {
            let error = parse(text).expect_err(text);
            assert!(error.contains(&format!("line {line}")), "{text}: {error}");
            assert!(needles.iter().all(|needle| error.contains(needle)), "{text}: {error}");
        }
        for (text, needle) in [
            ("- on: {nth: 0}\n  then: refuse\n", "rule 1: requests are counted from 1"),
            ("- on: {from: 0}\n  then: refuse\n", "rule 1: requests are counted from 1"),
            ("- on: {times: 0}\n  then: refuse\n", "`times: 0` is never"),
            ("- then: refuse\n- on: {nth: 2, times: 3}\n  then: refuse\n", "rule 2: `nth` stands alone"),
            ("- then: {dropEvent: {nth: 0}}\n", "`nth: 0` never comes"),
            ("- then: {oversize: {nth: 1, bytes: 1000000000000000000}}\n", "too much"),
        ] {
            let error = parse(text).expect_err(text);
            assert!(error.contains(needle), "{text}: {error}");
        }
        assert!(parse("[]").is_err() && parse("").is_err() && parse("on: {}").is_err());
    }
}
