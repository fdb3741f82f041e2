//! The header of an object that is written as API servers write it: read in one quick pass.

use std::borrow::Cow;
use std::ops::Range;

use super::{INITIAL_EVENTS_END, ManagedFields, RawHeader};
use crate::object::skim::{Odd, Skim};

const MANAGED_FIELDS: &[u8] = b"managedFields";

/// Reads the header of the object that `json` begins with, and says where that object ends.
pub(super) fn read(json: &[u8]) -> Result<(RawHeader<'_>, usize), Odd> {
    let (mut skim, mut header) = (Skim::new(json), RawHeader::default());
    // How many there are, and where the last of them stand in the text.
    let mut managed_fields = (0, 0..0);
    skim.each_field(|skim, key| {
        match key {
            b"kind" => header.kind = Some(text(skim)?),
            b"apiVersion" => header.api_version = Some(text(skim)?),
            b"metadata" => {
                header.forget_metadata();
                metadata(skim, &mut header, &mut managed_fields)?;
            }
            _ => skim.skip()?,
        }
        Ok(())
    })?;
    header.is_plain = skim.is_ascii();
    let length = skim.offset();
    header.managed_fields = match managed_fields {
        (0, _) => ManagedFields::Absent,
        (1, Range { start, end }) => ManagedFields::FromEnd(length - start..length - end),
        _ => ManagedFields::Unknown,
    };
    Ok((header, length))
}

fn metadata<'a>(
    skim: &mut Skim<'a>,
    header: &mut RawHeader<'a>,
    managed_fields: &mut (usize, Range<usize>),
) -> Result<(), Odd> {
    skim.each_field(|skim, key| {
        match key {
            b"name" => header.name = Some(text(skim)?),
            b"namespace" => header.namespace = Some(text(skim)?),
            b"uid" => header.uid = Some(text(skim)?),
            b"resourceVersion" => header.resource_version = Some(text(skim)?),
            b"deletionTimestamp" => {
                skim.text()?;
                header.deleting = true;
            }
            b"labels" => {
                header.labels.clear();
                skim.each_field(|skim, key| {
                    let key = std::str::from_utf8(key).map_err(|_| Odd::Unusual)?;
                    header.labels.push((Cow::Borrowed(key), text(skim)?));
                    Ok(())
                })?;
            }
            MANAGED_FIELDS => {
                // Before it came the quotes of the key, and a colon.
                let start = skim.offset() - MANAGED_FIELDS.len() - 3;
                skim.skip()?;
                *managed_fields = (managed_fields.0 + 1, start..skim.offset());
            }
            b"annotations" => {
                header.initial_events_end = false;
                skim.each_field(|skim, key| {
                    if key == INITIAL_EVENTS_END.as_bytes() {
                        header.initial_events_end = skim.text()? == "true";
                        return Ok(());
                    }
                    skim.skip_text()
                })?;
            }
            _ => skim.skip()?,
        }
        Ok(())
    })?;
    header.metadata_ended = true;
    Ok(())
}

fn text<'a>(skim: &mut Skim<'a>) -> Result<Cow<'a, str>, Odd> {
    skim.text().map(Cow::Borrowed)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::{Unread, check, read_carefully};
    use super::*;

    /// Whatever the quick reader says, the careful one says too.
    fn compare(json: &[u8]) -> Result<(), TestCaseError> {
        let careful = read_carefully(json);
        match read(json) {
            Ok((mut quick, length)) => {
                let (careful, careful_length) = careful.map_err(|error| TestCaseError::fail(format!("{error:?}")))?;
                prop_assert!(!quick.is_plain || check(&json[..length]).is_ok());
                quick.is_plain = false;
                quick.managed_fields = ManagedFields::Unknown;
                prop_assert_eq!((format!("{quick:?}"), length), (format!("{careful:?}"), careful_length));
            }
            // Of a number that is cut off behind one of these, the careful reader says that it is none.
            Err(Odd::CutOff) => prop_assert!(
                matches!(careful, Err(Unread::CutOff)) || matches!(json.last(), Some(b'-' | b'+' | b'.' | b'e' | b'E')),
                "{careful:?}"
            ),
            Err(Odd::Unusual) => {}
        }
        Ok(())
    }

    const POD: &str = concat!(
        r#"{"kind":"Pod","apiVersion":"v1","metadata":{"name":"web-0","namespace":"shop","uid":"a-b","resourceVersion":"7","#,
        r#""creationTimestamp":null,"deletionTimestamp":"2026-01-01T00:00:00Z","labels":{"app":"web","é":"ü"},"annotations":"#,
        r#"{"a":"{\"b\":\"c\\n\"}","k8s.io/initial-events-end":"true"},"managedFields":[{"f:x":{".":{},"k:{\"a\":1}":{}}}]},"#,
        r#""spec":{"a":[],"b":[1,-0,10,0.5,-1.5e+7,1E9,2e-3],"c":{"d":[[{}],[true,false,null]]},"e":"\u00e9\ud83d\ude00"}}}"#,
    );

    #[test]
    fn a_usual_object_is_read() {
        let (header, length) = read(POD.as_bytes()).expect("nothing unusual");
        assert_eq!(length, POD.len() - 1, "one bracket more belongs to the event around it");
        assert!(header.deleting && header.initial_events_end && header.metadata_ended && !header.is_plain);
        assert_eq!(header.name.as_deref(), Some("web-0"));
        assert_eq!(header.labels.len(), 2);
        compare(POD.as_bytes()).expect("equal");
        assert!(read(br#"{"metadata":{"name":"a"}}"#).is_ok_and(|(header, _)| header.is_plain));
    }

    #[test]
    fn an_object_that_is_cut_off_anywhere_is_told_apart_from_a_broken_one() {
        for length in 0..POD.len() - 1 {
            compare(&POD.as_bytes()[..length]).unwrap_or_else(|error| panic!("{length}: {error}"));
        }
        assert_eq!(read(&POD.as_bytes()[..200]).expect_err("cut off"), Odd::CutOff);
    }

    /// The same as a part of what is skipped, and so far behind its beginning.
    fn moved(json: &[u8], by: usize) -> Vec<u8> {
        [br#"{"a":[""#, "-".repeat(by).as_bytes(), br#"","#, json, b"]}, and more"].concat()
    }

    #[test]
    fn an_object_may_lie_across_blocks_in_any_way() {
        let pod = &POD.as_bytes()[..POD.len() - 1];
        for by in 0..=128 {
            let json = moved(pod, by);
            let length = json.len() - ", and more".len();
            assert_eq!(read(&json).map(|(_, length)| length), Ok(length), "{by}");
            compare(&json).unwrap_or_else(|error| panic!("{by}: {error}"));
            // Cut off at a few places, which are others each time.
            for length in (8 + by..length).step_by(61) {
                assert_eq!(read(&json[..length]).expect_err("cut off"), Odd::CutOff, "{by}, {length}");
                compare(&json[..length]).unwrap_or_else(|error| panic!("{by}, {length}: {error}"));
            }
        }
    }

    #[test]
    fn what_is_well_is_taken_across_blocks_too() {
        for json in [
            r#"["\\","\\\\\"","\"\\\"","\u00e9\n\/\b\f\r\t"]"#,
            r#"[0,-0,7,1234567,12345678,123456789,1234567890123456789,0.5,-1.5e+7,1E9,2e-3]"#,
            r#"[true,false,null,[],{},[[]],[{}],{"a":{}}]"#,
            r#"{"":"","a":[],"b":{"c":[1,{"d":null}]}}"#,
            r#"["é"]"#,
        ] {
            for by in 0..=64 {
                let json = moved(json.as_bytes(), by);
                let shown = String::from_utf8_lossy(&json);
                assert_eq!(read(&json).map(|(header, _)| header.is_plain), Ok(json.is_ascii()), "{shown}");
                compare(&json).unwrap_or_else(|error| panic!("{shown}: {error}"));
            }
        }
    }

    #[test]
    fn what_is_broken_is_found_across_blocks_too() {
        let words = [
            r#"[01] [1.] [-] [1e] [truefalse] [true"a"] [1"a"] ["a"1] ["a""b"] [1{}] [{}1] [{}{}] [{]] [[}] [{"a":1]] [[1}]"#,
            r#"[1,] [,1] {"a"} {"a":} {"a",1} {"a":1,} {"a":1,2} {"a":1,{}} {"a":1,"b"} {"a":"b":1} {"a":1:2} {"a":{}:2}"#,
            r#"{1:2} {{}} {[]:1} {"a":[],[]} ["a":1] [[]:1] [:1] [1:1] {"a"::1} {,"a":1} ["a",:1] [{},"a":1] [1,,1] {"a":,}"#,
            r#"["\x"] ["\u12g4"] ["a"\"] [\"a"] [nul] [nulll] [tru,1] [12345678a] [é] [1é] ["a"é]"#,
        ]
        .join(" ");
        for json in words.split(' ').chain(["[\"\u{1}\"]", "[\"a\",\n1]", "[\"\\\n\"]", "[1 ]", "[1, 2]", "[\"a\" ,1]"])
        {
            for by in 0..=64 {
                let json = moved(json.as_bytes(), by);
                let shown = String::from_utf8_lossy(&json);
                assert_eq!(read(&json).map(|_| ()), Err(Odd::Unusual), "{shown}");
                compare(&json).unwrap_or_else(|error| panic!("{shown}: {error}"));
            }
        }
    }

    #[test]
    fn what_is_broken_is_not_taken_for_cut_off() {
        for json in
            [r#"[tru,"\u12"#, r#"["\x",tr"#, r#"["\x","\u12"#, r#"[01,"\"#, r#"[1:"a"#, r#"{"a":1,2"#, "[\"\n\",1"]
        {
            for by in 0..=64 {
                let json = [&moved(b"", by)[..by + 9], json.as_bytes()].concat();
                let shown = String::from_utf8_lossy(&json);
                assert_eq!(read(&json).map(|_| ()), Err(Odd::Unusual), "{shown}");
                compare(&json).unwrap_or_else(|error| panic!("{shown}: {error}"));
            }
        }
    }

    #[test]
    fn what_is_unusual_is_left_to_the_careful_reader() {
        let deep = format!(r#"{{"a":{}{}}}"#, "[".repeat(66), "]".repeat(66));
        for json in [
            "",
            "[]",
            "7",
            "{ }",
            r#"{"a": 1}"#,
            r#"{"kind":null}"#,
            r#"{"kind":7}"#,
            r#"{"metadata":[]}"#,
            r#"{"\u006bind":"a"}"#,
            r#"{"metadata":{"name":"\n"}}"#,
            r#"{"metadata":{"annotations":{"a":"\ud800"}}}"#,
            r#"{"metadata":{"labels":{"a":1}}}"#,
            r#"{"a":01}"#,
            r#"{"a":1.}"#,
            r#"{"a":.5}"#,
            r#"{"a":1e}"#,
            r#"{"a":+1}"#,
            r#"{"a":--1}"#,
            r#"{"a":1..5}"#,
            r#"{"a":1.5.5}"#,
            r#"{"a":tru}"#,
            r#"{"a":nul}"#,
            r#"{"a":"\x"}"#,
            r#"{"a":"\u12g4"}"#,
            "{\"a\":\"\u{1}\"}",
            r#"{"a":[1,]}"#,
            r#"{"a":[,1]}"#,
            r#"{"a":{"b"}}"#,
            r#"{"a":{"b":}}"#,
            r#"{"a":{,}}"#,
            r#"{"a":[}]}"#,
            r#"{"a":{]}}"#,
            r#"{"a":1,}"#,
            r#"{,"a":1}"#,
            r#"{"a":1"b":2}"#,
            r#"{"a":[1 2]}"#,
            r#"{"a":{"b":1]}"#,
            r#"{"a":["b":1]}"#,
            &deep,
        ] {
            assert!(read(json.as_bytes()).is_err(), "{json}");
            compare(json.as_bytes()).unwrap_or_else(|error| panic!("{json}: {error}"));
        }
        assert_eq!(read(b"{\"a\":\"\xff\"}").map(|(header, _)| header.is_plain), Ok(false));
        for json in
            [&b"{\"metadata\":{\"name\":\"\xff\"}}"[..], b"{\"\xff\"", b"{\"metadata\":{\"\xff\"", b"{\"\xff\":1}"]
        {
            assert_eq!(read(json).map(|_| ()), Err(Odd::Unusual), "{}", json.escape_ascii());
            compare(json).unwrap_or_else(|error| panic!("{}: {error}", json.escape_ascii()));
        }
    }

    /// Damage of any sort, near each other or not.
    fn damage() -> impl Strategy<Value = Vec<(usize, Option<u8>)>> {
        let byte = prop_oneof![
            Just(None),
            proptest::sample::select(b"\"\\{}[]:,0-+.eEtfnu 1a\n\x00\x1f\x7f\x80\xc3\xff".to_vec()).prop_map(Some),
            any::<u8>().prop_map(Some),
        ];
        proptest::collection::vec((0..POD.len(), byte), 1..4)
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(4096))]

        #[test]
        fn the_two_readers_agree_on_what_is_damaged(damage in damage(), by in 0..64_usize) {
            let mut json = POD.as_bytes().to_vec();
            for (at, byte) in damage {
                let at = at.min(json.len() - 1);
                match byte {
                    Some(byte) => json[at] = byte,
                    None => drop(json.remove(at)),
                }
            }
            compare(&json)?;
            compare(&moved(&json, by))?;
        }

        #[test]
        fn the_two_readers_agree_on_bits_of_json(
            tokens in proptest::collection::vec(proptest::sample::select(vec![
                "{", "}", "[", "]", ":", ",", "\"a\"", "\"metadata\"", "\"name\"", "\"labels\"", "\"annotations\"", "\"kind\"", "\"\\u0061\"",
                "1", "-", "0", "1.5", "e7", "true", "null", " ", "\"", "\\",
            ]), 0..24),
            by in 0..64_usize,
        ) {
            let json = format!("{{{}", tokens.concat());
            compare(json.as_bytes())?;
            compare(&moved(json.as_bytes(), by))?;
        }
    }
}
