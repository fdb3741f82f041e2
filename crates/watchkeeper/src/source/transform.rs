//! Changes objects before anything else sees them.

use std::borrow::Cow;
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, LazyLock};

use bytes::Bytes;
use serde::de::{DeserializeOwned, Deserializer, MapAccess, Visitor};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use crate::object::header::{Key, ManagedFields, RawHeader};

/// Changes the JSON of each object once, when it arrives: client-go's `TransformFunc`.
///
/// It may drop what nobody needs. It may not change an object's name, namespace, uid or version: an object to which that
/// happens, or for which the transform fails or panics, counts as one that cannot be used. In a
/// [table](crate::ListWatch::table) it changes the object of each row.
///
/// ```
/// # use watchkeeper::{ListWatch, Transform};
/// # use k8s_openapi::api::core::v1::Pod;
/// # fn example(client: kube_client::Client) -> ListWatch {
/// ListWatch::of::<Pod>(client).transform(Transform::strip_managed_fields())
/// # }
/// ```
#[derive(Clone)]
pub struct Transform {
    run: Arc<Run>,
    /// It leaves alone what stands in the header.
    keeps_header: bool,
}

type Run = dyn Fn(&[u8]) -> Result<Option<Vec<u8>>, Failed> + Send + Sync;

/// A transform could not do its work.
struct Failed;

impl Transform {
    /// Drops `metadata.managedFields`, which is two fifths of a pod and nothing that a controller looks at.
    pub fn strip_managed_fields() -> Self {
        // One for all, so that it is the same whoever asks for it.
        static RUN: LazyLock<Arc<Run>> =
            LazyLock::new(|| Arc::new(|json| without_managed_fields(json).map_err(|_| Failed)));
        Self { run: RUN.clone(), keeps_header: true }
    }

    /// The two are clones of one.
    pub(crate) fn is_same(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.run, &other.run)
    }

    /// Changes the JSON itself; `None` leaves it as it is.
    pub fn json<E>(transform: impl Fn(&[u8]) -> Result<Option<Vec<u8>>, E> + Send + Sync + 'static) -> Self {
        let run = move |json: &[u8]| transform(json).map_err(|_| Failed);
        Self { run: Arc::new(run), keeps_header: false }
    }

    /// Changes the decoded object, which is then written as JSON again. Fields that `K` does not have are lost.
    pub fn typed<K: DeserializeOwned + Serialize>(transform: impl Fn(&mut K) + Send + Sync + 'static) -> Self {
        let run = move |json: &[u8]| {
            let mut object: K = serde_json::from_slice(json).map_err(|_| Failed)?;
            transform(&mut object);
            serde_json::to_vec(&object).map(Some).map_err(|_| Failed)
        };
        Self { run: Arc::new(run), keeps_header: false }
    }

    /// First this, then that.
    pub fn then(self, next: Self) -> Self {
        let keeps_header = self.keeps_header && next.keeps_header;
        let run = move |json: &[u8]| match (self.run)(json)? {
            None => (next.run)(json),
            Some(changed) => Ok(Some((next.run)(&changed)?.unwrap_or(changed))),
        };
        Self { run: Arc::new(run), keeps_header }
    }

    /// As [`apply`](Self::apply), to an object with this header.
    pub(super) fn apply_to(&self, header: &RawHeader<'_>, json: &[u8]) -> Result<Option<Bytes>, &'static str> {
        let fields =
            if self.is_same(&Self::strip_managed_fields()) { &header.managed_fields } else { &ManagedFields::Unknown };
        match fields {
            ManagedFields::Absent => return Ok(None),
            // Whoever read the header has seen them.
            ManagedFields::FromEnd(_) => {
                if let cut @ Some(_) = fields.cut_from(json) {
                    return Ok(cut);
                }
            }
            ManagedFields::Unknown => {}
        }
        self.apply(json)
    }

    /// The changed JSON; `None` if there is nothing to change. The error says what went wrong.
    fn apply(&self, json: &[u8]) -> Result<Option<Bytes>, &'static str> {
        match catch_unwind(AssertUnwindSafe(|| (self.run)(json))) {
            // Without the room that was left in the vector: that would be kept as long as the object.
            Ok(Ok(changed)) => Ok(changed.map(|json| json.into_boxed_slice().into())),
            Ok(Err(Failed)) => Err("the transform failed on it"),
            Err(_) => Err("the transform panicked on it"),
        }
    }

    pub(super) fn keeps_header(&self) -> bool {
        self.keeps_header
    }
}

impl fmt::Debug for Transform {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Transform")
    }
}

/// The members of a JSON object, in their order.
struct Members<'a>(Vec<(Cow<'a, str>, &'a RawValue)>);

impl<'de> Deserialize<'de> for Members<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Collect;
        impl<'de> Visitor<'de> for Collect {
            type Value = Members<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Members<'de>, A::Error> {
                let mut members = Vec::new();
                while let Some(key) = map.next_key_seed(Key)? {
                    members.push((key, map.next_value()?));
                }
                Ok(Members(members))
            }
        }
        deserializer.deserialize_map(Collect)
    }
}

fn without_managed_fields(json: &[u8]) -> Result<Option<Vec<u8>>, serde_json::Error> {
    let Members(top) = serde_json::from_slice(json)?;
    let mut out: Option<Vec<u8>> = None;
    // What is before this is in `out`.
    let mut copied = 0;
    for (_, metadata) in top.iter().filter(|(key, value)| key == "metadata" && value.get().starts_with('{')) {
        let metadata = metadata.get().as_bytes();
        let Members(members) = serde_json::from_slice(metadata)?;
        if members.iter().all(|(key, _)| key != "managedFields") {
            continue;
        }
        let out = out.get_or_insert_with(|| Vec::with_capacity(json.len()));
        let start = offset_in(json, metadata);
        out.extend_from_slice(&json[copied..start]);
        out.push(b'{');
        let mut end_of_last = 1;
        let mut is_first = true;
        for (key, value) in members {
            let value = value.get().as_bytes();
            let end = offset_in(metadata, value) + value.len();
            if key != "managedFields" {
                if !is_first {
                    out.push(b',');
                }
                is_first = false;
                let between = &metadata[end_of_last..end];
                let key_at = memchr::memchr(b'"', between).unwrap_or_default();
                out.extend_from_slice(&between[key_at..]);
            }
            end_of_last = end;
        }
        out.push(b'}');
        copied = start + metadata.len();
    }
    Ok(out.map(|mut out| {
        out.extend_from_slice(&json[copied..]);
        out
    }))
}

/// Where a part begins within the whole that it was cut from.
fn offset_in(whole: &[u8], part: &[u8]) -> usize {
    part.as_ptr() as usize - whole.as_ptr() as usize
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::object::header::read_prefix;

    fn stripped(json: &str) -> Option<String> {
        let changed = Transform::strip_managed_fields().apply(json.as_bytes()).expect("JSON");
        changed.map(|json| String::from_utf8(json.to_vec()).expect("text"))
    }

    /// The object as it is made of a list's item: with its kind in front.
    fn stripped_with_header(json: &str) -> Option<String> {
        let (header, _) = read_prefix(json.as_bytes()).expect("JSON");
        let kind = if json == "{}" { "{\"kind\":\"Pod\"" } else { "{\"kind\":\"Pod\"," };
        let whole = format!("{kind}{}", &json[1..]);
        let changed = Transform::strip_managed_fields().apply_to(&header, whole.as_bytes()).expect("JSON");
        changed.map(|json| String::from_utf8(json.to_vec()).expect("text").replacen(kind, "{", 1))
    }

    #[test]
    fn managed_fields_are_cut_out_wherever_they_stand_and_nothing_else_is() {
        let cases = [
            (
                r#"{"metadata":{"managedFields":[{"a":"}"}],"name":"x"},"spec":{}}"#,
                r#"{"metadata":{"name":"x"},"spec":{}}"#,
            ),
            (r#"{"metadata":{"name":"x","managedFields":null}}"#, r#"{"metadata":{"name":"x"}}"#),
            (r#"{"metadata":{"managedFields":[]}}"#, r#"{"metadata":{}}"#),
            (
                r#"{"metadata":{"a":1,"managed\u0046ields":[1],"b": {"managedFields":1}}}"#,
                r#"{"metadata":{"a":1,"b": {"managedFields":1}}}"#,
            ),
            (
                r#"{"metadata":{"managedFields":[],"a":"\"","managedFields":[],"c":2}}"#,
                r#"{"metadata":{"a":"\"","c":2}}"#,
            ),
            (
                r#"{ "metadata" : { "a" : 1 , "managedFields" : [ 1 ] , "\"b" : 2 } }"#,
                r#"{ "metadata" : {"a" : 1,"\"b" : 2} }"#,
            ),
            (
                r#"{"metadata":{"managedFields":1,"n":1},"metadata":{"n":2,"managedFields":1}}"#,
                r#"{"metadata":{"n":1},"metadata":{"n":2}}"#,
            ),
        ];
        for (before, after) in cases {
            assert_eq!(stripped(before).as_deref(), Some(after), "{before}");
            assert_eq!(stripped_with_header(before).as_deref(), Some(after), "{before}");
        }
        for unchanged in
            [r#"{"metadata":{"name":"x"}}"#, r#"{"metadata":null}"#, r#"{"spec":{"managedFields":[]}}"#, "{}"]
        {
            assert_eq!(stripped(unchanged), None, "{unchanged}");
            assert_eq!(stripped_with_header(unchanged), None, "{unchanged}");
        }
    }

    #[test]
    fn transforms_follow_each_other_and_fail_without_harm() {
        let rename = |from: &'static str, to: &'static str| {
            Transform::json(move |json: &[u8]| {
                let text = std::str::from_utf8(json)?;
                Ok::<_, std::str::Utf8Error>(text.contains(from).then(|| text.replace(from, to).into_bytes()))
            })
        };
        let both = rename("a", "b").then(rename("b", "c"));
        assert_eq!(both.apply(b"a").expect("done").as_deref(), Some(b"c".as_slice()));
        assert_eq!(both.apply(b"b").expect("done").as_deref(), Some(b"c".as_slice()));
        assert_eq!(
            rename("a", "b").then(rename("x", "y")).apply(b"a").expect("done").as_deref(),
            Some(b"b".as_slice())
        );
        assert_eq!(both.apply(b"z").expect("done"), None);
        assert!(Transform::typed::<u32>(|_| {}).apply(b"{}").is_err());
        let quiet = std::panic::take_hook();
        std::panic::set_hook(Box::new(|_| {}));
        let panicking = Transform::json(|_: &[u8]| -> Result<_, ()> { panic!("no") }).apply(b"{}");
        std::panic::set_hook(quiet);
        assert!(panicking.is_err());
    }

    #[test]
    fn what_was_cut_out_takes_no_memory() {
        let json = format!(r#"{{"metadata":{{"name":"x","managedFields":"{}"}}}}"#, "f".repeat(1000));
        let transforms = [
            Transform::strip_managed_fields(),
            Transform::json(|_: &[u8]| {
                let mut roomy = Vec::with_capacity(1000);
                roomy.extend_from_slice(b"{}");
                Ok::<_, ()>(Some(roomy))
            }),
            Transform::typed::<serde_json::Value>(|object| object["metadata"]["managedFields"] = "".into()),
        ];
        for transform in transforms {
            let changed = transform.apply(json.as_bytes()).expect("done").expect("changed");
            let length = changed.len();
            assert_eq!(changed.try_into_mut().expect("one's own").capacity(), length);
        }
    }
}
