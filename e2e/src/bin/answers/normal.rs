//! An answer without what differs from server to server and from run to run, as lines of text.
//!
//! Versions and uids become names by where they were first seen, so that it shows when the same one comes again: `v3` is the
//! version that the third step brought, `v3.2` the second lowest of several. The version of a list or a bookmark only says up to
//! where it reaches: other writes may have come between, and then it is `>=v3`.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use regex::Regex;
use serde_json::{Map, Value};

use crate::wire::Answer;

/// The headers that are part of an answer. Others name the connection, or what only one server has.
const HEADERS: [&str; 8] =
    ["allow", "cache-control", "content-type", "etag", "location", "retry-after", "vary", "warning"];

static UID: LazyLock<Regex> = LazyLock::new(|| regex("[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}"));
static TIME: LazyLock<Regex> = LazyLock::new(|| regex(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z"));
static AGE: LazyLock<Regex> = LazyLock::new(|| regex(r"^(\d+[dhms])+$"));
/// The places of texts in which versions stand.
static VERSIONS: LazyLock<Regex> = LazyLock::new(|| {
    let before = [
        "too old resource version: V ",
        "too old resource version: ",
        "Too large resource version: ",
        "current: ",
        "precondition ",
        "record ",
        "object meta: ",
        "requested ",
        // In an object that is quoted.
        r#"resourceVersion\\*":\\*""#,
    ];
    regex(&format!(r"({})(\(?)(\d+)\b", before.join("|")))
});

fn regex(pattern: &str) -> Regex {
    Regex::new(pattern).unwrap_or_else(|error| unreachable!("{error}"))
}

/// What one story has seen of one server.
#[derive(Debug, Default)]
pub(crate) struct Seen {
    /// The server's own address.
    host: String,
    versions: BTreeMap<u64, String>,
    uids: BTreeMap<String, String>,
    /// Names and addresses that the server made up.
    made_up: BTreeMap<String, String>,
    /// Ports that the server made up.
    ports: BTreeMap<u64, String>,
    /// What names begin with that the server is to make up.
    prefixes: Vec<String>,
    /// All that was sent: addresses and ports in it are not made up.
    sent: String,
    /// The very version that the request asks for, if it does.
    asked: Option<u64>,
    /// The step whose answer is looked at, and how many new uids it had so far.
    step: (usize, usize),
}

impl Seen {
    /// Nothing yet, of the server with this address.
    pub(crate) fn of(host: &str) -> Self {
        Self { host: host.to_owned(), ..Self::default() }
    }

    /// Looks at what is asked: a page is of its token's version, and what matches exactly is of that which it names.
    pub(crate) fn asks(&mut self, path: &str) {
        let parameters: BTreeMap<&str, &str> = path
            .split_once('?')
            .into_iter()
            .flat_map(|(_, query)| query.split('&'))
            .filter_map(|p| p.split_once('='))
            .collect();
        let parameter = |name: &str| parameters.get(name).copied().unwrap_or_default();
        let is_exact = match parameter("resourceVersionMatch") {
            "" => !matches!(parameter("limit"), "" | "0"),
            other => other == "Exact",
        };
        let of_token = || {
            let token: Value = serde_json::from_slice(&URL_SAFE_NO_PAD.decode(parameter("continue")).ok()?).ok()?;
            token.get("rv")?.as_u64()
        };
        let named = || parameter("resourceVersion").parse().ok().filter(|version| *version > 0 && is_exact);
        self.asked = if parameter("watch").is_empty() { of_token().or_else(named) } else { None };
    }

    /// Looks at what is sent: names may be asked for.
    pub(crate) fn sent(&mut self, body: &str) {
        self.sent += body;
        let body: Value = serde_json::from_str(body).unwrap_or_default();
        let prefix = body.pointer("/metadata/generateName").and_then(Value::as_str).unwrap_or_default();
        if !prefix.is_empty() {
            self.prefixes.push(prefix.to_owned());
        }
    }

    /// An answer to the step with this number, as text.
    pub(crate) fn normalised(&mut self, step: usize, answer: &Answer) -> String {
        self.step = (step, 0);
        let asked = self.asked.take();
        let mut text = format!("{}\n", answer.status);
        let mut headers: Vec<String> =
            answer.headers.iter().filter_map(|(name, value)| self.header(&name.to_lowercase(), value)).collect();
        headers.sort();
        for header in headers {
            text += &header;
            text.push('\n');
        }
        for document in documents(&answer.body) {
            match document {
                // Bookmarks come when they come, but for the one that ends a list.
                Ok(document) if is_bookmark(&document) => {}
                Ok(document) => {
                    self.learn(step, &document);
                    self.asked = asked;
                    write(&mut text, &self.masked(document, "", false), 0);
                    text.push('\n');
                }
                Err(words) => {
                    text += &self.words(&words);
                    text.push('\n');
                }
            }
        }
        self.asked = None;
        if !answer.end.is_empty() {
            text += answer.end;
            text.push('\n');
        }
        text
    }

    fn header(&mut self, name: &str, value: &str) -> Option<String> {
        // Others name connections and audits by uids, which are not to be counted.
        if !HEADERS.contains(&name) {
            return None;
        }
        let value = if name == "etag" { "E".to_owned() } else { self.words(value) };
        Some(format!("{name}: {value}"))
    }

    /// Gives names to the versions of objects that are new.
    fn learn(&mut self, step: usize, document: &Value) {
        let mut found = Vec::new();
        collect(document, false, &mut found);
        found.sort_unstable();
        found.dedup();
        found.retain(|version| !self.versions.contains_key(version));
        let newest = self.versions.keys().next_back().copied().unwrap_or_default();
        let several = found.len() > 1;
        let mut names = Vec::new();
        for (at, version) in found.into_iter().enumerate() {
            let mut name = if several { format!("v{step}.{}", at + 1) } else { format!("v{step}") };
            if version < newest {
                let later = self.versions.range(version..).next().map_or("", |(_, name)| name);
                name = format!("{name} before {later}");
            }
            names.push((version, name));
        }
        // Events come one document after the other: a name that is taken gets a mark.
        for (version, mut name) in names {
            while self.versions.values().any(|taken| *taken == name) {
                name.push('\'');
            }
            self.versions.insert(version, name);
        }
    }

    /// Up to which version of the story this one reaches.
    fn reaches(&self, version: u64) -> String {
        if self.asked == Some(version) {
            return "the one asked for".to_owned();
        }
        self.versions.range(..=version).next_back().map_or(">=v0".to_owned(), |(_, name)| format!(">={name}"))
    }

    fn masked(&mut self, value: Value, key: &str, of_collection: bool) -> Value {
        match value {
            Value::Object(map) => self.masked_object(map, of_collection),
            Value::Array(values) => {
                let mut values: Vec<Value> = values.into_iter().map(|value| self.masked(value, key, false)).collect();
                if key == "managedFields" {
                    // Their order is one of seconds, and differs when a second ends in between.
                    values.sort_by_cached_key(Value::to_string);
                }
                values.into()
            }
            Value::Number(number) if matches!(key, "nodePort" | "healthCheckNodePort") => self.port(number),
            Value::String(text) => self.masked_text(text, key, of_collection).into(),
            other => other,
        }
    }

    fn masked_object(&mut self, map: Map<String, Value>, of_collection: bool) -> Value {
        let collection = is_collection(&map);
        let is_bookmark = map.get("type").is_some_and(|kind| kind == "BOOKMARK");
        let masked = map.into_iter().map(|(key, value)| {
            let part = match key.as_str() {
                "metadata" => collection || of_collection,
                "object" => is_bookmark,
                "resourceVersion" | "continue" => of_collection,
                _ => false,
            };
            let value = self.masked(value, &key, part);
            (key, value)
        });
        Value::Object(masked.collect())
    }

    fn masked_text(&mut self, text: String, key: &str, of_collection: bool) -> String {
        let version = text.parse::<u64>().ok();
        match (key, version) {
            ("resourceVersion", Some(version)) if of_collection => self.reaches(version),
            ("resourceVersion", Some(version)) => {
                self.versions.get(&version).cloned().unwrap_or_else(|| self.reaches(version))
            }
            ("continue", _) if !text.is_empty() => self.token(&text).unwrap_or(text),
            ("clusterIP" | "clusterIPs", _) if !matches!(text.as_str(), "" | "None") => {
                if self.sent.contains(&text) && !self.made_up.contains_key(&text) {
                    return text;
                }
                let next = format!("A{}", self.made_up.len() + 1);
                self.made_up.entry(text).or_insert(next).clone()
            }
            ("cells", _) if AGE.is_match(&text) => "AGE".to_owned(),
            // Names of random letters, which hashes of specs have too, are no uids: all else is text.
            _ => self.words(&text),
        }
    }

    /// A port of the nodes: the same one has the same name again.
    fn port(&mut self, number: serde_json::Number) -> Value {
        let is_asked = |port: &u64| self.sent.contains(&port.to_string()) && !self.ports.contains_key(port);
        let Some(port) = number.as_u64().filter(|port| *port > 0 && !is_asked(port)) else { return number.into() };
        let next = format!("N{}", self.ports.len() + 1);
        self.ports.entry(port).or_insert(next).clone().into()
    }

    /// A continue token with its version by name.
    fn token(&self, token: &str) -> Option<String> {
        let mut token: Value = serde_json::from_slice(&URL_SAFE_NO_PAD.decode(token).ok()?).ok()?;
        let version = token.get("rv")?.as_u64();
        if let Some(version) = version {
            token["rv"] = self.reaches(version).into();
        }
        Some(format!("token {token}"))
    }

    /// A text with names for uids, and letters for times and for what the server made up.
    fn words(&mut self, text: &str) -> String {
        let mut text = if self.host.is_empty() { text.to_owned() } else { text.replace(&self.host, "HOST") };
        let found: Vec<String> = UID.find_iter(&text).map(|found| found.as_str().to_owned()).collect();
        for uid in found {
            let step = &mut self.step;
            let name = self.uids.entry(uid.clone()).or_insert_with(|| {
                step.1 += 1;
                if step.1 == 1 { format!("u{}", step.0) } else { format!("u{}.{}", step.0, step.1) }
            });
            text = text.replace(&uid, name);
        }
        for (made_up, name) in &self.made_up {
            text = text.replace(made_up, name);
        }
        for prefix in &self.prefixes {
            text = without_letters(&text, prefix);
        }
        let text = TIME.replace_all(&text, |found: &regex::Captures<'_>| {
            // Whether there are parts of seconds is part of the form.
            if found.get(1).is_some() { "Tm" } else { "T" }
        });
        // One of them stands behind another.
        let text = VERSIONS.replace_all(&text, "${1}${2}V");
        VERSIONS.replace_all(&text, "${1}${2}V").into_owned()
    }
}

/// The documents of a body: one, the events of a watch, or text.
fn documents(body: &[u8]) -> Vec<Result<Value, String>> {
    let text = String::from_utf8_lossy(body);
    let parsed: Result<Vec<Value>, _> = serde_json::Deserializer::from_str(&text).into_iter().collect();
    match parsed {
        Ok(documents) => documents.into_iter().map(Ok).collect(),
        Err(_) => vec![Err(text.trim().to_owned())],
    }
}

/// Whether the version of this is that of a collection.
fn is_collection(map: &Map<String, Value>) -> bool {
    map.contains_key("items") || map.get("kind").is_some_and(|kind| kind == "Table")
}

/// The versions of objects in a document.
fn collect(value: &Value, of_collection: bool, found: &mut Vec<u64>) {
    match value {
        Value::Object(map) => {
            if map.get("type").is_some_and(|kind| kind == "BOOKMARK") {
                return;
            }
            let collection = is_collection(map);
            for (key, value) in map {
                if key == "resourceVersion" && !of_collection {
                    found.extend(
                        value.as_str().and_then(|text| text.parse::<u64>().ok()).filter(|version| *version > 0),
                    );
                }
                collect(value, key == "metadata" && collection, found);
            }
        }
        Value::Array(values) => values.iter().for_each(|value| collect(value, false, found)),
        _ => {}
    }
}

/// Whether this is an event that only says how far a watch has come.
fn is_bookmark(event: &Value) -> bool {
    let ends_list = event.pointer("/object/metadata/annotations").is_some()
        || event.pointer("/object/rows/0/object/metadata/annotations").is_some();
    event.get("type").is_some_and(|kind| kind == "BOOKMARK") && !ends_list
}

/// A text in which five random letters behind a prefix are a sign.
fn without_letters(text: &str, prefix: &str) -> String {
    const LETTERS: &str = "bcdfghjklmnpqrstvwxz2456789";
    let mut parts = text.split(prefix);
    let mut whole = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        whole += prefix;
        let is_made_up = part.chars().take(5).filter(|c| LETTERS.contains(*c)).count() == 5;
        whole += if is_made_up { "~" } else { "" };
        whole += if is_made_up { &part[5..] } else { part };
    }
    whole
}

/// JSON with one value on each line, and keys in their order, whatever order they came in.
fn write(text: &mut String, value: &Value, depth: usize) {
    let indent = "  ".repeat(depth + 1);
    let last = "  ".repeat(depth);
    match value {
        Value::Object(map) if !map.is_empty() => {
            text.push_str("{\n");
            let sorted: BTreeMap<&String, &Value> = map.iter().collect();
            for (key, value) in sorted {
                text.push_str(&format!("{indent}{key}: "));
                write(text, value, depth + 1);
                text.push('\n');
            }
            text.push_str(&format!("{last}}}"));
        }
        Value::Array(values) if !values.is_empty() => {
            text.push_str("[\n");
            for value in values {
                text.push_str(&indent);
                write(text, value, depth + 1);
                text.push('\n');
            }
            text.push_str(&format!("{last}]"));
        }
        other => text.push_str(&other.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answer(body: &str) -> Answer {
        Answer { status: 200, body: body.as_bytes().to_vec().into(), ..Answer::default() }
    }

    fn object(name: &str, version: u64) -> String {
        format!(r#"{{"kind": "ConfigMap", "metadata": {{"name": "{name}", "resourceVersion": "{version}"}}}}"#)
    }

    #[test]
    fn versions_are_named_by_the_step_that_brought_them() {
        let mut seen = Seen::default();
        assert!(seen.normalised(1, &answer(&object("a", 70))).contains("resourceVersion: \"v1\""));
        assert!(seen.normalised(2, &answer(&object("a", 70))).contains("resourceVersion: \"v1\""));
        assert!(seen.normalised(3, &answer(&object("a", 90))).contains("resourceVersion: \"v3\""));
        assert!(seen.normalised(4, &answer(&object("a", 80))).contains("resourceVersion: \"v4 before v3\""));
    }

    #[test]
    fn the_version_of_a_list_says_how_far_it_reaches() {
        let mut seen = Seen::default();
        let list = format!(
            r#"{{"kind": "List", "metadata": {{"resourceVersion": "75"}}, "items": [{}, {}]}}"#,
            object("a", 74),
            object("b", 71)
        );
        let text = seen.normalised(1, &answer(&list));
        assert!(text.contains("resourceVersion: \">=v1.2\""), "{text}");
        assert!(text.contains("resourceVersion: \"v1.1\""), "{text}");
        let bookmark = r#"{"type": "BOOKMARK", "object": {"metadata": {"resourceVersion": "99", "annotations": {}}}}"#;
        assert!(seen.normalised(2, &answer(bookmark)).contains("resourceVersion: \">=v1.2\""));
    }

    #[test]
    fn a_bookmark_that_ends_no_list_may_come_or_not() {
        let bookmark = r#"{"type": "BOOKMARK", "object": {"metadata": {"resourceVersion": "99"}}}"#;
        assert_eq!(Seen::default().normalised(1, &answer(bookmark)), "200\n");
    }

    #[test]
    fn events_are_one_document_each() {
        let mut seen = Seen::default();
        let events: String =
            [5, 6].map(|version| format!("{{\"type\": \"ADDED\", \"object\": {}}}\n", object("a", version))).concat();
        let text = seen.normalised(1, &answer(&events));
        assert!(text.contains("\"v1\"") && text.contains("\"v1'\""), "{text}");
    }

    #[test]
    fn uids_times_and_versions_in_texts_are_masked() {
        let mut seen = Seen::of("127.0.0.1:1");
        let uid = "01234567-89ab-cdef-0123-456789abcdef";
        let body = format!(
            r#"{{"message": "{uid} at 2026-11-18T00:00:00Z, too old resource version: 5 (17), 127.0.0.1:1", "uid": "{uid}"}}"#
        );
        let text = seen.normalised(1, &answer(&body));
        assert!(text.contains(r#"message: "u1 at T, too old resource version: V (V), HOST""#), "{text}");
        assert!(text.contains(r#"uid: "u1""#), "{text}");
    }

    #[test]
    fn a_continue_token_shows_what_is_in_it() {
        let token = URL_SAFE_NO_PAD.encode(r#"{"v":"meta.k8s.io/v1","rv":70,"start":"b\u0000"}"#);
        let list = format!(
            r#"{{"metadata": {{"continue": "{token}", "resourceVersion": "70"}}, "items": [{}]}}"#,
            object("a", 60)
        );
        let text = Seen::default().normalised(1, &answer(&list));
        assert!(text.contains(r#"\"rv\":\">=v1\""#) && text.contains("start"), "{text}");
    }

    #[test]
    fn a_page_of_another_version_than_the_first_is_told() {
        let page = |version: u64| {
            let mut seen = Seen::default();
            let token = URL_SAFE_NO_PAD.encode(r#"{"v":"meta.k8s.io/v1","rv":70,"start":"a\u0000"}"#);
            let first = format!(
                r#"{{"metadata": {{"continue": "{token}", "resourceVersion": "70"}}, "items": [{}]}}"#,
                object("a", 60)
            );
            seen.asks("/api/v1/configmaps?limit=1");
            let first = seen.normalised(1, &answer(&first));
            seen.asks(&format!("/api/v1/configmaps?limit=1&continue={token}"));
            let second =
                format!(r#"{{"metadata": {{"resourceVersion": "{version}"}}, "items": [{}]}}"#, object("b", 61));
            first + &seen.normalised(2, &answer(&second))
        };
        assert_ne!(page(70), page(75));
    }

    #[test]
    fn another_version_than_the_one_asked_for_is_told() {
        let list = |version: u64| {
            let mut seen = Seen::default();
            seen.normalised(1, &answer(&object("a", 60)));
            seen.asks("/api/v1/configmaps?resourceVersion=60&resourceVersionMatch=Exact");
            let list = format!(r#"{{"metadata": {{"resourceVersion": "{version}"}}, "items": [{}]}}"#, object("a", 60));
            seen.normalised(2, &answer(&list))
        };
        assert_ne!(list(60), list(75));
    }

    #[test]
    fn an_address_or_a_port_that_changes_is_told() {
        let service = |address: &str, port: u32| {
            answer(&format!(r#"{{"spec": {{"clusterIP": "{address}", "ports": [{{"nodePort": {port}}}]}}}}"#))
        };
        let story = |address: &str, port: u32| {
            let mut seen = Seen::default();
            seen.normalised(1, &service("10.0.0.7", 30_001)) + &seen.normalised(2, &service(address, port))
        };
        assert_eq!(story("10.0.0.7", 30_001).matches("N1").count(), 2);
        assert_ne!(story("10.0.0.7", 30_001), story("10.0.0.8", 30_001));
        assert_ne!(story("10.0.0.7", 30_001), story("10.0.0.7", 30_002));
        // What a client asks for it must get.
        let mut seen = Seen::default();
        seen.sent(r#"{"spec": {"ports": [{"nodePort": 30080}]}}"#);
        assert!(seen.normalised(1, &service("10.0.0.7", 30_080)).contains("nodePort: 30080"));
    }

    #[test]
    fn numbers_in_brackets_that_are_no_versions_stay() {
        let text = |number: u32| {
            let body = format!(r#"{{"message": "the integer value of priority ({number}) must not be provided"}}"#);
            Seen::default().normalised(1, &answer(&body))
        };
        assert_ne!(text(5), text(6));
    }

    #[test]
    fn names_that_a_server_made_up_are_masked_everywhere() {
        let mut seen = Seen::default();
        let made = r#"{"metadata": {"generateName": "web-", "name": "web-x7k2p"}}"#;
        seen.sent(r#"{"metadata": {"generateName": "web-"}}"#);
        assert!(seen.normalised(1, &answer(made)).contains("name: \"web-~\""));
        assert!(seen.normalised(2, &answer(r#"{"message": "pods \"web-x7k2p\" not found"}"#)).contains("web-~"));
    }

    #[test]
    fn what_else_is_different_stays() {
        let text = |body| Seen::default().normalised(1, &answer(body));
        assert_ne!(text(r#"{"a": 1}"#), text(r#"{"a": 2}"#));
        assert_ne!(text(r#"{"a": 1}"#), text(r#"{"a": "1"}"#));
        assert_ne!(text("ok"), text("no"));
        assert_eq!(text(r#"{"a": 1, "b": 2}"#), text(r#"{"b": 2, "a": 1}"#));
    }
}
