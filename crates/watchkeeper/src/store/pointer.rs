//! Reads single fields out of an object's JSON.
//!
//! A path is followed with the quick reader that headers are read with, and where that gives up, with serde_json's own.
//! Everything beside the path is skipped without building anything. As everywhere, the last of two equal keys wins. Values
//! are taken as they are written (`1.0` is not `1`), so that no number is ever rounded.

use std::fmt;

use compact_str::CompactString;
use serde::Deserialize;
use serde::de::{DeserializeSeed, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::value::RawValue;

use crate::object::skim::{Odd, Skim};

/// Where in an object a value stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Path(Vec<Step>);

#[derive(Debug, Clone, PartialEq, Eq)]
enum Step {
    /// The field of this name, or the element of this number.
    Into(Box<str>),
    /// Every element.
    Each,
}

/// Longer paths end deeper than serde_json goes.
const MOST_STEPS: usize = 127;

impl Path {
    /// A JSON pointer (RFC 6901). A missing slash in front is added: there is nothing else that it could mean.
    pub(super) fn pointer(pointer: &str) -> Self {
        if pointer.is_empty() {
            return Self(Vec::new());
        }
        let steps = pointer.strip_prefix('/').unwrap_or(pointer).split('/');
        Self(steps.map(|step| Step::Into(step.replace("~1", "/").replace("~0", "~").into())).collect())
    }

    /// The uids of an object's owners.
    pub(super) fn owner_uids() -> Self {
        let into = |name: &str| Step::Into(name.into());
        Self(vec![into("metadata"), into("ownerReferences"), Step::Each, into("uid")])
    }

    /// Adds what stands there: the text of a string, of a number or of a truth value, or of each of these in an array.
    /// Where there is something else, or nothing, or no JSON, nothing is added.
    pub(super) fn read(&self, json: &[u8], out: &mut Vec<CompactString>) {
        let start = out.len();
        if self.0.len() > MOST_STEPS || follow(&mut Skim::new(json), &self.0, out).is_err() {
            out.truncate(start);
            self.read_carefully(json, out);
        }
    }

    fn read_carefully(&self, json: &[u8], out: &mut Vec<CompactString>) {
        let start = out.len();
        let mut deserializer = serde_json::Deserializer::from_slice(json);
        if (Walk { steps: &self.0, out }).deserialize(&mut deserializer).is_err() {
            out.truncate(start);
        }
    }
}

impl Step {
    /// The element of an array that is meant, if it is one.
    fn number(&self) -> Option<usize> {
        let Self::Into(name) = self else { return None };
        // RFC 6901 knows no `01`, and parse() would take `+1`.
        name.parse().ok().filter(|number: &usize| **name == *number.to_string())
    }

    /// Elements of an array that are meant: this one, or all.
    fn leads_into(&self, wanted: Option<usize>, element: usize) -> bool {
        matches!(self, Self::Each) || wanted == Some(element)
    }
}

/// Takes a value, and adds what stands in it at the end of these steps.
fn follow(skim: &mut Skim<'_>, steps: &[Step], out: &mut Vec<CompactString>) -> Result<(), Odd> {
    let Some((step, rest)) = steps.split_first() else {
        take(skim.value()?, true, out);
        return Ok(());
    };
    match (skim.first_byte()?, step) {
        (b'{', Step::Into(name)) => {
            let start = out.len();
            skim.each_field(|skim, key| {
                if key != name.as_bytes() {
                    return skim.skip();
                }
                out.truncate(start);
                follow(skim, rest, out)
            })
        }
        (b'[', step) => {
            let wanted = step.number();
            skim.each_element(
                |skim, element| {
                    if step.leads_into(wanted, element) { follow(skim, rest, out) } else { skim.skip() }
                },
            )
        }
        // Here the path ends early. What serde_json reads there, it reads in full: it must be what that would take.
        (b'{', Step::Each) => skim.each_field(|skim, _| skim.skip()),
        (b'"', _) => skim.skip_text(),
        (b't' | b'f' | b'n', _) => skim.skip(),
        _ => Err(Odd::Unusual),
    }
}

struct Walk<'a> {
    steps: &'a [Step],
    out: &'a mut Vec<CompactString>,
}

impl<'de> DeserializeSeed<'de> for Walk<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        if self.steps.is_empty() {
            let found = <&RawValue>::deserialize(deserializer)?;
            take(found.get(), true, self.out);
            return Ok(());
        }
        deserializer.deserialize_any(self)
    }
}

/// Adds the text of what was found.
fn take(found: &str, arrays: bool, out: &mut Vec<CompactString>) {
    match found.as_bytes().first() {
        Some(b'"') => match found.get(1..found.len() - 1) {
            Some(plain) if !plain.contains('\\') => out.push(plain.into()),
            _ => out.extend(serde_json::from_str::<String>(found).ok().map(CompactString::from)),
        },
        Some(b'[') if arrays => {
            for element in serde_json::from_str::<Vec<&RawValue>>(found).unwrap_or_default() {
                take(element.get(), false, out);
            }
        }
        Some(b'-' | b'0'..=b'9' | b't' | b'f') => out.push(found.into()),
        _ => {}
    }
}

impl<'de> Visitor<'de> for Walk<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("anything")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        let Some((Step::Into(name), rest)) = self.steps.split_first() else {
            IgnoredAny.visit_map(map)?;
            return Ok(());
        };
        let start = self.out.len();
        while let Some(here) = map.next_key_seed(Is(name))? {
            if here {
                self.out.truncate(start);
                map.next_value_seed(Walk { steps: rest, out: &mut *self.out })?;
            } else {
                map.next_value::<IgnoredAny>()?;
            }
        }
        Ok(())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<(), A::Error> {
        let Some((step, rest)) = self.steps.split_first() else { return Ok(()) };
        let wanted = step.number();
        for at in 0.. {
            let more = if step.leads_into(wanted, at) {
                seq.next_element_seed(Walk { steps: rest, out: &mut *self.out })?.is_some()
            } else {
                seq.next_element::<IgnoredAny>()?.is_some()
            };
            if !more {
                break;
            }
        }
        Ok(())
    }

    fn visit_unit<E>(self) -> Result<(), E> {
        Ok(())
    }

    fn visit_bool<E>(self, _: bool) -> Result<(), E> {
        Ok(())
    }

    fn visit_i64<E>(self, _: i64) -> Result<(), E> {
        Ok(())
    }

    fn visit_u64<E>(self, _: u64) -> Result<(), E> {
        Ok(())
    }

    fn visit_f64<E>(self, _: f64) -> Result<(), E> {
        Ok(())
    }

    fn visit_str<E>(self, _: &str) -> Result<(), E> {
        Ok(())
    }
}

/// Whether a key is this one.
struct Is<'a>(&'a str);

impl<'de> DeserializeSeed<'de> for Is<'_> {
    type Value = bool;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<bool, D::Error> {
        deserializer.deserialize_str(self)
    }
}

impl Visitor<'_> for Is<'_> {
    type Value = bool;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a key")
    }

    fn visit_str<E>(self, key: &str) -> Result<bool, E> {
        Ok(key == self.0)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn read(pointer: &str, json: &str) -> Vec<CompactString> {
        let mut out = vec!["before".into()];
        Path::pointer(pointer).read(json.as_bytes(), &mut out);
        assert_eq!(out.remove(0), "before");
        out
    }

    #[test]
    fn scalars_are_taken_as_they_are_written() {
        let json = r#"{"a": {"s": "x\ny", "i": -7, "f": 1.50, "big": 123456789012345678901234567890, "t": true,
            "n": null, "o": {}, "list": ["p", 2, null, false, ["q"], {"r": 1}]}}"#;
        assert_eq!(read("/a/s", json), ["x\ny"]);
        assert_eq!(read("/a/i", json), ["-7"]);
        assert_eq!(read("/a/f", json), ["1.50"]);
        assert_eq!(read("/a/big", json), ["123456789012345678901234567890"]);
        assert_eq!(read("/a/t", json), ["true"]);
        assert_eq!(read("/a/list", json), ["p", "2", "false"]);
        for nothing in ["/a/n", "/a/o", "/a", "/b", "/a/s/x", "/a/list/5/r/x", "", "/"] {
            assert_eq!(read(nothing, json), [""; 0], "{nothing}");
        }
        assert_eq!(read("", "\"whole\""), ["whole"]);
    }

    #[test]
    fn pointers_are_those_of_rfc_6901() {
        let json = r#"{"": "empty", "a/b": 1, "m~n": 2, "~1": 3, "x": ["zero", {"y": "one"}], "1": "key", " ": 4, "\u00e9": 5}"#;
        assert_eq!(read("/", json), ["empty"]);
        assert_eq!(read("/a~1b", json), ["1"]);
        assert_eq!(read("/m~0n", json), ["2"]);
        assert_eq!(read("/~01", json), ["3"]);
        assert_eq!(read("/ ", json), ["4"]);
        assert_eq!(read("/é", json), ["5"]);
        assert_eq!(read("/x/0", json), ["zero"]);
        assert_eq!(read("/x/1/y", json), ["one"]);
        assert_eq!(read("/1", json), ["key"]);
        assert_eq!(read("x/0", json), ["zero"], "a slash in front is added");
        for nothing in ["/x/2", "/x/00", "/x/+0", "/x/-", "/x/18446744073709551615", "/x/y"] {
            assert_eq!(read(nothing, json), [""; 0], "{nothing}");
        }
    }

    #[test]
    fn of_equal_keys_the_last_wins() {
        assert_eq!(read("/a/b", r#"{"a": {"b": 1}, "a": {"b": 2, "b": 3}}"#), ["3"]);
        assert_eq!(read("/a/b", r#"{"a": {"b": 1}, "a": null}"#), [""; 0]);
        assert_eq!(read("/a/b", r#"{"a": {"b": 1}, "a": {}}"#), [""; 0]);
    }

    #[test]
    fn what_is_no_json_has_no_values() {
        for json in ["", "{", r#"{"a": 1"#, r#"{"a": 1, "b": }"#, "nonsense", r#"{"a": "\ud800"}"#] {
            assert_eq!(read("/a", json), [""; 0], "{json}");
        }
    }

    #[test]
    fn owners_are_found_in_each_reference() {
        let mut out = Vec::new();
        let json = br#"{"metadata": {"ownerReferences": [{"uid": "a", "name": "x"}, {"name": "y"}, null, {"uid": "b", "uid": "c"}]}}"#;
        Path::owner_uids().read(json, &mut out);
        assert_eq!(out, ["a", "c"]);
    }

    const POD: &str = concat!(
        r#"{"metadata":{"name":"web-0","ownerReferences":[{"uid":"a","name":"x"},{"uid":"b"},true,null,"s",[],{}],"a":{"é":"ü\n\u00e9"}},"#,
        r#""spec":{"n":["z",[0,{"a":"x"}],-1.50e7,true,null,"\\"],"s":"","o":{"a":{},"b":[[]]}},"spec":{"n":[{"a":[1,2]}]}} and more"#,
    );

    /// What stands there in place of a byte.
    fn damage() -> impl Strategy<Value = Vec<u8>> {
        let tokens =
            ["", "\\ud800", "1e400", "\"\\ud800\",", "1e400,", "{\"k\":1},", "{\"\\ud800\":1},", " ", "0", "[", "{"];
        prop_oneof![
            any::<u8>().prop_map(|byte| vec![byte]),
            proptest::sample::select(tokens.to_vec()).prop_map(|token| token.as_bytes().to_vec()),
            Just(b"\"\xff\",".to_vec()),
        ]
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(4096))]

        #[test]
        fn the_two_readers_find_the_same_also_in_what_is_damaged(
            damage in proptest::collection::vec((0..POD.len(), damage()), 0..3),
            steps in proptest::collection::vec(proptest::sample::select(vec![
                "metadata", "ownerReferences", "uid", "spec", "n", "a", "o", "s", "é", "0", "1", "01", "b", "*",
            ]), 0..4),
        ) {
            let mut json = POD.as_bytes().to_vec();
            for (at, bytes) in damage {
                let at = at.min(json.len() - 1);
                json.splice(at..=at, bytes);
            }
            let step = |step: &str| if step == "*" { Step::Each } else { Step::Into(step.into()) };
            let path = Path(steps.into_iter().map(step).collect());
            let (mut quick, mut careful) = (Vec::new(), Vec::new());
            path.read_carefully(&json, &mut careful);
            if follow(&mut Skim::new(&json), &path.0, &mut quick).is_ok() {
                prop_assert_eq!(&quick, &careful);
            }
            quick.clear();
            path.read(&json, &mut quick);
            prop_assert_eq!(quick, careful);
        }
    }

    /// Where the path ends early serde_json reads what is there, and refuses all of it if that is nothing that it could take.
    #[test]
    fn what_ends_a_path_early_is_looked_at_as_carefully_as_ever() {
        let check = |path: &Path, json: &str| {
            let (mut found, mut careful) = (Vec::new(), Vec::new());
            path.read(json.as_bytes(), &mut found);
            path.read_carefully(json.as_bytes(), &mut careful);
            assert_eq!(found, careful, "{json}");
        };
        for odd in
            [r#""\ud800""#, "1e400", "-1e999999999999", r#"{"\ud800":1}"#, "{\"k\":1}", "7", "\"s\"", "01", "nul"]
        {
            check(&Path::owner_uids(), &format!(r#"{{"metadata":{{"ownerReferences":[{{"uid":"a"}},{odd}]}}}}"#));
            check(
                &Path::owner_uids(),
                &format!(r#"{{"metadata":{{"ownerReferences":{odd},"ownerReferences":[{{"uid":"a"}}]}}}}"#),
            );
            check(&Path::pointer("/a/b"), &format!(r#"{{"a":{odd},"a":{{"b":"x"}}}}"#));
            check(&Path::pointer(""), odd);
            check(&Path::pointer(""), &format!("-{odd} "));
        }
        let deep = |levels: usize| format!("{}1{}", "{\"a\":".repeat(levels), "}".repeat(levels));
        for levels in [1, 60, 64, 126, 127, 128, 129, 5000] {
            check(&Path::pointer(&"/a".repeat(levels)), &deep(levels));
        }
    }

    #[test]
    fn what_a_server_writes_is_read_quickly() {
        let found = |pointer: &str| {
            let mut out = Vec::new();
            follow(&mut Skim::new(POD.as_bytes()), &Path::pointer(pointer).0, &mut out).map(|()| out)
        };
        assert_eq!(found("/metadata/name"), Ok(vec!["web-0".into()]));
        assert_eq!(found("/metadata/ownerReferences/1/uid"), Ok(vec!["b".into()]));
        assert_eq!(found("/spec/n/0/a"), Ok(vec!["1".into(), "2".into()]), "the last of equal keys");
        assert_eq!(found("/spec/s"), Ok(vec![]));
    }

    #[test]
    fn deep_nesting_beside_the_path_is_skipped() {
        let deep = format!(r#"{{"x": {}{}, "a": 1}}"#, "[".repeat(9_000), "]".repeat(9_000));
        assert_eq!(read("/a", &deep), ["1"]);
    }
}
