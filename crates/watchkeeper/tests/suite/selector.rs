//! Label selectors: k8s.io/apimachinery's `labels`.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use proptest::prelude::*;
use proptest::test_runner::RngSeed;
use serde::Deserialize;
use watchkeeper::{Object, Selector};

type Set = BTreeMap<String, String>;

fn labelled(labels: &Set) -> Object {
    let labels = serde_json::to_string(labels).expect("JSON");
    let json = format!(r#"{{"metadata":{{"name":"a","resourceVersion":"1","labels":{labels}}}}}"#);
    Object::from_json(json).expect("an object")
}

fn matches(selector: &str, labels: &[(&str, &str)]) -> bool {
    let labels = labels.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect();
    parsed(selector).matches(labelled(&labels).labels())
}

fn parsed(text: &str) -> Selector {
    Selector::parse(text).unwrap_or_else(|error| panic!("{text:?}: {error}"))
}

fn refused(text: &str) -> (usize, String) {
    let error = Selector::parse(text).expect_err(text);
    (error.at().expect("a place"), error.to_string())
}

/// The vectors come from Go's own parser.
#[test]
fn selectors_are_read_refused_and_matched_as_in_go() {
    #[derive(Deserialize)]
    struct Vector {
        selector: String,
        #[serde(default)]
        error: String,
        #[serde(default)]
        matches: Vec<bool>,
    }
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../watchkeeper-apiserver/data/label-selectors.jsonl");
    let vectors = std::fs::read_to_string(path).expect("the vectors");
    let mut lines = vectors.lines();
    let sets: Vec<Set> = serde_json::from_str(lines.next().expect("label sets")).expect("label sets");
    let objects: Vec<Object> = sets.iter().map(labelled).collect();
    let vectors: Vec<Vector> = lines.map(|line| serde_json::from_str(line).expect("a vector")).collect();
    assert!(vectors.len() >= 160);
    // To Go's lexer a zero byte is the end. Here it is a byte that no label has.
    for vector in vectors.iter().filter(|vector| !vector.selector.contains('\0')) {
        let text = &vector.selector;
        match Selector::parse(text) {
            Err(error) => assert_ne!("", vector.error, "{text:?}: {error}"),
            Ok(selector) => {
                assert_eq!("", vector.error, "{text:?}");
                let found: Vec<bool> = objects.iter().map(|object| selector.matches(object.labels())).collect();
                assert_eq!(found, vector.matches, "{text:?}");
                assert_eq!(parsed(&selector.to_string()), selector, "{text:?}");
            }
        }
    }
    assert_eq!(refused("a\0").0, 0);
}

#[test]
fn all_requirements_must_hold() {
    let labels = [("app", "web"), ("env", "a"), ("partition", "x"), ("a", "2"), ("b", "4")];
    assert!(matches("app=web,tier!=cache,env in (a,b),x notin (c),partition,!legacy,a>1,b<5", &labels));
    for one_fails in ["app=api", "env notin (a)", "!partition", "legacy", "a>2", "b<4", "x"] {
        assert!(!matches(&format!("app=web,{one_fails}"), &labels), "{one_fails}");
    }
}

#[test]
fn unequal_and_not_in_hold_without_the_label() {
    assert!(matches("tier!=cache", &[]) && matches("tier notin (cache,db)", &[]));
    assert!(matches("tier!=cache", &[("tier", "")]) && !matches("tier!=cache", &[("tier", "cache")]));
    assert!(!matches("tier=cache", &[]) && !matches("tier in (cache)", &[]));
}

#[test]
fn an_empty_value_is_a_value() {
    assert!(matches("a=", &[("a", "")]) && !matches("a=", &[]) && !matches("a=", &[("a", "b")]));
    assert!(matches("a in (,b)", &[("a", "")]) && matches("a in ()", &[("a", "")]));
}

#[test]
fn greater_and_less_need_integers_on_both_sides() {
    assert!(matches("a>1", &[("a", "2")]) && !matches("a>2", &[("a", "2")]) && matches("a<10", &[("a", "9")]));
    for (text, value) in [("a>1", "x"), ("a<9", "1.5"), ("a<9", ""), ("a>1", "99999999999999999999")] {
        assert!(!matches(text, &[("a", value)]), "{text} {value}");
    }
    assert!(!matches("a>1", &[]) && !matches("a<1", &[]));
    assert!(refused("a>x").1.contains(r#"'>' and '<' need an integer, and "x" is none"#));
    assert!(refused("a<").1.contains("need an integer"));
    assert!(refused("a>9223372036854775808").1.contains("need an integer"));
}

#[test]
fn in_and_notin_are_words_where_no_operator_can_stand() {
    assert!(matches("in in (in,notin)", &[("in", "notin")]));
    assert!(matches("notin notin (in)", &[]));
    assert!(matches("in,notin=in,!a", &[("in", "x"), ("notin", "in")]));
}

#[test]
fn selectors_that_ask_for_the_same_are_equal() {
    for (one, other) in [
        ("a=b", "a==b"),
        ("a=b", "a in (b)"),
        ("a!=b", "a notin (b)"),
        ("a in (b,c)", "a in (c,b,b)"),
        ("x,!y,a=b", " a = b , x , ! y "),
        ("a>5", "a>05"),
        ("a,a", "a"),
        ("a=", "a in ()"),
        ("", "  "),
    ] {
        assert_eq!(parsed(one), parsed(other), "{one} {other}");
    }
    assert_ne!(parsed("a=b"), parsed("a=c"));
    assert_ne!(parsed("a"), parsed("!a"));
}

#[test]
fn a_selector_prints_what_it_asks_for() {
    let text = "x notin (c,d), legacy, a>1,b < 5,!z, app==web,tier!=cache,env in (b,a)";
    assert_eq!(parsed(text).to_string(), "a>1,app=web,b<5,env in (a,b),legacy,tier!=cache,x notin (c,d),!z");
    assert_eq!(format!("{:?}", parsed("a = b")), r#"Selector("a=b")"#);
}

#[test]
fn everything_matches_all_and_is_the_empty_text() {
    let everything = Selector::everything();
    assert!(
        everything.is_everything() && !everything.is_nothing() && everything.matches(labelled(&Set::new()).labels())
    );
    assert_eq!((everything.to_string().as_str(), parsed("")), ("", everything));
}

#[test]
fn nothing_matches_none_and_says_so_in_its_text() {
    let nothing = Selector::nothing();
    let named = Set::from([("nothing".to_owned(), "x".to_owned())]);
    for labels in [Set::new(), named] {
        assert!(!nothing.matches(labelled(&labels).labels()));
    }
    assert!(nothing.is_nothing() && !nothing.is_everything());
    assert_eq!(parsed(&nothing.to_string()), nothing);
}

#[test]
fn a_label_that_is_asked_for_and_ruled_out_is_nothing() {
    for text in ["a,!a", "!a,a=b", "a in (b,c),x,!a", "a>1,!a", "!a,a!=b,a"] {
        assert!(parsed(text).is_nothing(), "{text}");
    }
    for text in ["", "a", "!a", "!a,a!=b", "a,!b", "a=b,a=c"] {
        assert!(!parsed(text).is_nothing(), "{text}");
    }
}

#[test]
fn selectors_are_made_of_labels() {
    assert_eq!(Selector::label("app", "web").expect("a label"), parsed("app=web"));
    let set = Set::from([("app".to_owned(), "web".to_owned()), ("example.com/tier".to_owned(), String::new())]);
    assert_eq!(Selector::labels(&set).expect("labels"), parsed("app=web,example.com/tier="));
    assert_eq!(Selector::labels(&Set::new()).expect("none"), Selector::everything());
    assert_eq!(parsed("a").and(&parsed("!b,a")), parsed("a,!b"));
    assert_eq!(parsed("a").and(&Selector::everything()), parsed("a"));
    assert!(parsed("a").and(&Selector::nothing()).is_nothing());
}

#[test]
fn a_label_that_no_object_can_have_is_refused() {
    for (key, value) in [("", "a"), ("a b", "c"), ("a", "b c"), ("a", "-"), ("a,b", "c"), ("UPPER.example/a", "")] {
        let error = Selector::label(key, value).expect_err("no label");
        assert_eq!(error.at(), None);
        assert!(error.to_string().starts_with("not a label selector: "), "{error}");
    }
}

#[test]
fn what_is_wrong_is_said_with_its_place() {
    for (text, at, what) in [
        ("a=b,,c", 4, "found ',', expected a label's key or '!'"),
        ("a=b,", 4, "found the end, expected a label's key or '!'"),
        ("a in b", 5, r#"found "b", expected '('"#),
        ("a in (b", 7, "found the end, expected ',' or ')'"),
        ("a in (b c)", 8, r#"found "c", expected ',' or ')'"#),
        ("a is b", 2, r#"found "is", expected in, notin, =, ==, !=, > or <"#),
        ("!a=b", 2, "found '=', expected ',' or the end"),
        ("!!a", 1, "found '!', expected a label's key"),
        ("x, é=1", 3, r#""é" is not a label's key: it may have letters, digits, '-', '_' and '.' only"#),
        ("a = -b", 4, r#""-b" is not a label's value: it must begin and end with a letter or a digit"#),
        ("/a", 0, r#""/a" is not a label's key: its prefix must be a DNS name in lower case"#),
        ("a/b/c", 0, r#""a/b/c" is not a label's key"#),
        ("a/=b", 0, r#""a/" is not a label's key: its name is empty"#),
    ] {
        let (place, said) = refused(text);
        assert_eq!(place, at, "{text}: {said}");
        assert!(said.starts_with(&format!("not a label selector, at byte {at}: {what}")), "{text}: {said}");
    }
}

#[test]
fn errors_quote_no_more_than_a_line() {
    for text in ["é".repeat(100_000), format!("a={}", "b".repeat(100_000)), format!("a {}", "b".repeat(100_000))] {
        assert!(refused(&text).1.len() < 400);
    }
}

/// A requirement as one would write it down, and what it means, spelt out.
#[derive(Debug, Clone)]
struct Wanted {
    key: &'static str,
    operator: &'static str,
    values: Vec<&'static str>,
    bound: u8,
    space: &'static str,
}

impl Wanted {
    fn text(&self) -> String {
        let Self { key, operator, values, bound, space } = self;
        match *operator {
            "in" | "notin" => format!("{key} {operator}{space}({})", values.join(&format!("{space},{space}"))),
            "exists" => format!("{space}{key}"),
            "!" => format!("!{space}{key}"),
            ">" | "<" => format!("{key}{space}{operator}{space}{bound}"),
            _ => format!("{key}{space}{operator}{space}{}", values[0]),
        }
    }

    fn holds(&self, labels: &Set) -> bool {
        let value = labels.get(self.key).map(String::as_str);
        let number = value.and_then(|value| value.parse::<i64>().ok());
        let values: BTreeSet<_> = self.values.iter().copied().collect();
        match (self.operator, value) {
            ("exists", value) => value.is_some(),
            ("!", value) => value.is_none(),
            ("=" | "==", value) => value == Some(self.values[0]),
            ("!=", value) => value != Some(self.values[0]),
            ("in", Some(value)) => values.contains(value),
            ("notin", Some(value)) => !values.contains(value),
            ("in", None) => false,
            ("notin", None) => true,
            (">", _) => number.is_some_and(|number| number > i64::from(self.bound)),
            (_, _) => number.is_some_and(|number| number < i64::from(self.bound)),
        }
    }
}

const KEYS: [&str; 6] = ["a", "b", "in", "notin", "example.com/App", "x_y.z-0"];
const VALUES: [&str; 8] = ["", "a", "b", "in", "notin", "5", "07", "1.5"];

fn wanted() -> impl Strategy<Value = Wanted> {
    let operator = prop::sample::select(vec!["exists", "!", "=", "==", "!=", "in", "notin", ">", "<"]);
    let values = prop::collection::vec(prop::sample::select(&VALUES[..]), 1..5);
    let space = prop::sample::select(vec!["", " ", "\t ", "\n"]);
    (prop::sample::select(&KEYS[..]), operator, values, 0..10_u8, space)
        .prop_map(|(key, operator, values, bound, space)| Wanted { key, operator, values, bound, space })
}

fn labels() -> impl Strategy<Value = Set> {
    let label = (prop::sample::select(&KEYS[..]), prop::sample::select(&VALUES[..]));
    prop::collection::btree_map(
        label.clone().prop_map(|(key, _)| key.to_owned()),
        label.prop_map(|(_, value)| value.to_owned()),
        0..6,
    )
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 512,
        failure_persistence: None,
        rng_seed: RngSeed::Fixed(7),
        ..ProptestConfig::default()
    })]

    #[test]
    fn a_selector_matches_what_its_requirements_spell_out(
        wanted in prop::collection::vec(wanted(), 0..5),
        sets in prop::collection::vec(labels(), 1..8),
    ) {
        let text = wanted.iter().map(Wanted::text).collect::<Vec<_>>().join(",");
        let selector = parsed(&text);
        for labels in &sets {
            let expected = wanted.iter().all(|wanted| wanted.holds(labels));
            prop_assert_eq!(selector.matches(labelled(labels).labels()), expected, "{:?} {:?}", text, labels);
            prop_assert!(!(expected && selector.is_nothing()), "{:?} {:?}", text, labels);
        }
        prop_assert_eq!(selector.is_everything(), wanted.is_empty());
    }

    #[test]
    fn a_selector_that_is_printed_is_read_as_an_equal_one(wanted in prop::collection::vec(wanted(), 0..6)) {
        let selector = parsed(&wanted.iter().map(Wanted::text).collect::<Vec<_>>().join(","));
        let printed = selector.to_string();
        prop_assert_eq!(&parsed(&printed), &selector, "{}", &printed);
        prop_assert_eq!(parsed(&printed).to_string(), printed);
    }

    #[test]
    fn no_text_makes_it_panic_and_errors_have_a_place_in_it(text in r"([-a-c/.0-9=!<>(), \t\n\x00é]|in|notin){0,24}|.{0,40}") {
        match Selector::parse(&text) {
            Ok(selector) => prop_assert_eq!(parsed(&selector.to_string()), selector, "{:?}", text),
            Err(error) => prop_assert!(error.at().is_some_and(|at| text.is_char_boundary(at)), "{:?}: {}", text, error),
        }
    }
}
