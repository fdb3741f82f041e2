//! What writes do to owners, without a server around them.

use proptest::prelude::*;
use serde_json::{Value, json};

use super::entry::{Entry, Owner, cap, same_but_for_times, write};
use super::json::Order;
use super::owners::{Applied, NotApplied, Writing, apply, update};
use super::set::Set;
use super::{Managed, in_order, manager_name, new_object};
use crate::kinds::{Kind, Registry};

const NOW: &str = "2026-11-16T12:00:00Z";

fn kind(group: &str, plural: &str) -> std::sync::Arc<Kind> {
    Registry::new().find(group, plural).expect("a kind")
}

fn owner(kind: &Kind, manager: &str, applied: bool) -> Owner {
    let api_version = kind.versions[0].api_version.clone();
    Owner { manager: manager.to_owned(), applied, api_version, subresource: String::new() }
}

fn applied(
    kind: &Kind,
    manager: &str,
    live: &Value,
    config: &Value,
    entries: Vec<Entry>,
    force: bool,
) -> Result<(Value, Vec<Entry>), Vec<String>> {
    let writing = Writing { kind, owner: owner(kind, manager, true), now: NOW };
    match apply(&writing, live, config, entries, force) {
        Ok(Applied { object, entries }) => Ok((object.map_or_else(|| live.clone(), as_go_keeps_it), entries)),
        Err(NotApplied::BadItem(bad)) => panic!("{bad}"),
        Err(NotApplied::Conflicts(conflicts)) => Err(conflicts
            .iter()
            .flat_map(|conflict| {
                let paths = conflict.fields.shown_paths(&mut { usize::MAX });
                paths.into_iter().map(|path| format!("{}: {path}", conflict.owner.shown()))
            })
            .collect()),
    }
}

/// An object without what is null or empty: what is left of it when Go has read and written it.
fn as_go_keeps_it(value: Value) -> Value {
    let is_nothing = |value: &Value| match value {
        Value::Array(values) => values.is_empty(),
        Value::Object(map) => map.is_empty(),
        value => value.is_null(),
    };
    match value {
        Value::Object(map) => {
            let kept = map.into_iter().map(|(key, value)| (key, as_go_keeps_it(value)));
            Value::Object(kept.filter(|(_, value)| !is_nothing(value)).collect())
        }
        Value::Array(values) => values.into_iter().map(as_go_keeps_it).collect(),
        scalar => scalar,
    }
}

/// The fields of each owner, as they are written.
fn shown(entries: &[Entry]) -> Vec<(String, String)> {
    let shown = |entry: &Entry| {
        let mut bytes = Vec::new();
        entry.set.write(Order::Steps, &mut bytes);
        (entry.owner.manager.clone(), String::from_utf8(bytes).expect("text"))
    };
    let mut shown: Vec<_> = entries.iter().map(shown).collect();
    shown.sort();
    shown
}

fn pairs(entries: &[(&str, &str)]) -> Vec<(String, String)> {
    entries.iter().map(|(manager, set)| ((*manager).to_owned(), (*set).to_owned())).collect()
}

#[test]
fn every_kind_has_an_object_that_nobody_has_filled_in() {
    for kind in Registry::new().all().iter().filter(|kind| kind.versions[0].allows("create")) {
        for version in &kind.versions {
            let object = new_object(kind, &version.api_version);
            assert!(object.get("metadata").is_some(), "{} {}", version.api_version, kind.kind);
        }
    }
}

#[test]
fn a_new_object_belongs_to_its_creator() {
    let kind = kind("apps", "deployments");
    let object = json!({"metadata": {"name": "web", "labels": {"a": "b"}}, "spec": {
        "replicas": 1, "selector": {"matchLabels": {"a": "b"}}, "template": {"spec": {
            "containers": [{"name": "web", "ports": [{"containerPort": 80}], "resources": {}}], "volumes": [{"name": "v"}]}}},
        "status": {"replicas": 3}});
    let writing = Writing { kind: &kind, owner: owner(&kind, "me", false), now: NOW };
    let entries = update(&writing, new_object(&kind, "apps/v1"), &object, Vec::new()).expect("entries");
    // Structs that are always there are nobody's; status is written apart; a port has a protocol, said or not.
    let fields = concat!(
        r#"{"f:metadata":{"f:labels":{".":{},"f:a":{}}},"f:spec":{"f:replicas":{},"f:selector":{},"f:template":{"f:spec":{"#,
        r#""f:containers":{"k:{\"name\":\"web\"}":{".":{},"f:name":{},"f:ports":{".":{},"#,
        r#""k:{\"containerPort\":80,\"protocol\":\"TCP\"}":{".":{},"f:containerPort":{}}},"f:resources":{}}},"#,
        r#""f:volumes":{".":{},"k:{\"name\":\"v\"}":{".":{},"f:name":{}}}}}}}"#
    );
    assert_eq!(shown(&entries), pairs(&[("me", fields)]));
    assert_eq!(entries[0].time.as_deref(), Some(NOW));
}

#[test]
fn an_update_takes_what_it_changes_from_everybody() {
    let kind = kind("", "configmaps");
    let first = json!({"metadata": {}, "data": {"a": "1", "b": "1"}});
    let second = json!({"metadata": {}, "data": {"a": "2", "c": "1"}});
    let write = |manager: &str, old: &Value, new: &Value, entries| {
        let writing = Writing { kind: &kind, owner: owner(&kind, manager, false), now: NOW };
        update(&writing, old, new, entries).expect("entries")
    };
    let entries = write("one", new_object(&kind, "v1"), &first, Vec::new());
    let entries = write("two", &first, &second, entries);
    let expected = [("one", r#"{"f:data":{}}"#), ("two", r#"{"f:data":{"f:a":{},"f:c":{}}}"#)];
    assert_eq!(shown(&entries), pairs(&expected));
    // What changes nothing changes nobody's fields, nor any time.
    let writing = Writing { kind: &kind, owner: owner(&kind, "three", false), now: "2030-01-01T00:00:00Z" };
    let same = update(&writing, &second, &second, entries.clone()).expect("entries");
    assert!(same_but_for_times(&entries, &same));
    assert!(same.iter().all(|entry| entry.time.as_deref() == Some(NOW)));
}

#[test]
fn what_was_applied_and_is_not_any_longer_goes_unless_somebody_else_owns_it() {
    let kind = kind("", "configmaps");
    let config = |data: Value| json!({"metadata": {"name": "a"}, "data": data});
    let (object, entries) =
        applied(&kind, "one", &json!({"metadata": {}}), &config(json!({"a": "1", "b": "1", "c": "1"})), vec![], false)
            .expect("applied");
    let (object, entries) =
        applied(&kind, "two", &object, &config(json!({"b": "1"})), entries, false).expect("applied");
    let (object, entries) =
        applied(&kind, "one", &object, &config(json!({"c": "2"})), entries, false).expect("applied");
    assert_eq!(object["data"], json!({"b": "1", "c": "2"}));
    let (object, entries) =
        applied(&kind, "one", &object, &json!({"metadata": {"name": "a"}}), entries, false).expect("applied");
    assert_eq!(object["data"], json!({"b": "1"}));
    assert_eq!(shown(&entries), pairs(&[("two", r#"{"f:data":{"f:b":{}}}"#)]));
}

#[test]
fn what_others_own_is_a_conflict_unless_it_is_forced() {
    let kind = kind("apps", "deployments");
    let config = |replicas: i64, image: &str| json!({"spec": {"replicas": replicas, "template": {"spec": {"containers": [{"name": "web", "image": image}]}}}});
    let (object, entries) =
        applied(&kind, "one", &json!({"metadata": {}}), &config(1, "a"), vec![], false).expect("applied");
    let refused = applied(&kind, "two", &object, &config(2, "b"), entries.clone(), false).expect_err("conflicts");
    assert_eq!(refused, ["\"one\": .spec.replicas", "\"one\": .spec.template.spec.containers[name=\"web\"].image"]);
    let (object, entries) = applied(&kind, "two", &object, &config(2, "b"), entries, true).expect("applied");
    assert_eq!(object["spec"]["replicas"], 2);
    let left = r#"{"f:spec":{"f:template":{"f:spec":{"f:containers":{"k:{\"name\":\"web\"}":{".":{},"f:name":{}}}}}}}"#;
    assert_eq!(shown(&entries)[0], ("one".to_owned(), left.to_owned()));
}

#[test]
fn merged_lists_keep_the_order_of_the_configuration_and_the_neighbours_of_the_rest() {
    let kind = kind("", "pods");
    let names = |names: &[&str]| {
        let containers: Vec<Value> = names.iter().map(|name| json!({"name": name})).collect();
        json!({"spec": {"containers": containers}})
    };
    for (live, config, expected) in [
        (&["a", "b", "c"][..], &["c", "a"][..], &["b", "c", "a"][..]),
        (&["a", "b"], &["c"], &["a", "b", "c"]),
        (&["a", "b"], &["c", "b"], &["a", "c", "b"]),
        (&["a", "b", "c", "d"], &["d", "x", "b"], &["a", "c", "d", "x", "b"]),
        (&["a"], &["x", "a", "y"], &["x", "a", "y"]),
    ] {
        let (object, _) = applied(&kind, "one", &names(live), &names(config), vec![], false).expect("applied");
        assert_eq!(object, names(expected), "{live:?} with {config:?}");
    }
}

#[test]
fn too_many_updates_are_folded_into_one() {
    let kind = kind("", "configmaps");
    let entry = |i: usize| {
        let set = Set::of_fields(&[&["data", &i.to_string()]]);
        Entry::new(owner(&kind, &format!("m{i:02}"), false), set, Some(format!("2026-01-01T00:00:{i:02}Z")))
    };
    let mut entries: Vec<Entry> = (0..12).rev().map(entry).collect();
    cap(&mut entries);
    assert_eq!(entries.len(), 10);
    let folded = entries.iter().find(|entry| entry.owner.manager == "ancient-changes").expect("a bucket");
    assert_eq!(folded.set, Set::of_fields(&[&["data", "0"], &["data", "1"], &["data", "2"]]));
    assert_eq!(folded.time.as_deref(), Some("2026-01-01T00:00:02Z"));
}

#[test]
fn entries_are_sorted_by_operation_time_and_name() {
    let kind = kind("", "configmaps");
    let entry = |manager: &str, applied, time: Option<&str>| {
        Entry::new(owner(&kind, manager, applied), Set::of_fields(&[&["data"]]), time.map(str::to_owned))
    };
    let mut entries = vec![
        entry("d", false, Some("2026-01-01T00:00:01Z")),
        entry("c", true, Some("2026-01-01T00:00:02Z")),
        entry("b", true, Some("2026-01-01T00:00:02Z")),
        entry("a", true, None),
        entry("e", false, Some("2026-01-01T00:00:00Z")),
    ];
    let bytes = write(&mut entries, Order::Steps).expect("bytes");
    let order: String = entries.iter().map(|entry| entry.owner.manager.as_str()).collect();
    assert_eq!(order, "abced");
    let first =
        r#"[{"manager":"a","operation":"Apply","apiVersion":"v1","fieldsType":"FieldsV1","fieldsV1":{"f:data":{}}},"#;
    assert!(bytes.starts_with(first.as_bytes()), "{bytes:?}");
    // Written ones are read again as they were, sent ones too.
    assert_eq!(write(&mut super::track::read(&Managed::Written(bytes.clone())), Order::Steps), Some(bytes.clone()));
    let values: Vec<Value> = serde_json::from_slice(&bytes).expect("JSON");
    assert_eq!(Managed::Sent(values.clone()).bytes(&kind), Some(bytes.clone()));
    assert_eq!(in_order(&values), bytes);
}

#[test]
fn managers_are_called_as_their_program_or_as_they_say() {
    assert_eq!(manager_name("me", "kubectl/v1.36 (linux)"), "me");
    assert_eq!(manager_name("", "kubectl/v1.36 (linux)"), "kubectl");
    assert_eq!(manager_name("", "a\tb\u{7f}ü"), "abü");
    assert_eq!(manager_name("", &"ü".repeat(100)), "ü".repeat(64));
    assert_eq!(manager_name("", ""), "");
}

/// A configuration of a deployment, small enough to meet others.
fn config() -> impl Strategy<Value = Value> {
    let text = || prop::sample::select(vec!["1", "2"]);
    let labels = prop::collection::btree_map(prop::sample::select(vec!["a", "b", "c"]), text(), 0..3);
    let port =
        (prop::sample::select(vec![80, 443]), prop::option::of(Just("UDP"))).prop_map(
            |(port, protocol)| match protocol {
                Some(protocol) => json!({"containerPort": port, "protocol": protocol}),
                None => json!({"containerPort": port}),
            },
        );
    let distinct = |ports: Vec<Value>| {
        let mut seen: Vec<Value> = Vec::new();
        ports.into_iter().for_each(|port| {
            if !seen.contains(&port) {
                seen.push(port)
            }
        });
        seen
    };
    let container = (text(), prop::collection::vec(port, 0..3), prop::option::of(prop::collection::vec(text(), 0..3)));
    let containers = prop::collection::btree_map(prop::sample::select(vec!["x", "y", "z"]), container, 0..3);
    (labels, prop::option::of(0..3_i64), containers).prop_map(move |(labels, replicas, containers)| {
        let containers: Vec<Value> = containers
            .into_iter()
            .map(|(name, (image, ports, args))| {
                let mut container = json!({"name": name, "image": image, "ports": distinct(ports)});
                if let Some(args) = args {
                    container["args"] = json!(args);
                }
                container
            })
            .collect();
        let mut config =
            json!({"metadata": {"name": "d", "labels": labels}, "spec": {"template": {"spec": {"containers": containers}}}});
        if let Some(replicas) = replicas {
            config["spec"]["replicas"] = replicas.into();
        }
        // Who says that there is nothing owns it, and nobody else may say so.
        as_go_keeps_it(config)
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn applying_twice_is_applying_once(
        configs in prop::collection::vec((prop::sample::select(vec!["one", "two", "three"]), config()), 1..6),
    ) {
        let kind = kind("apps", "deployments");
        let (mut object, mut entries) = (json!({"metadata": {"name": "d"}}), Vec::new());
        for (manager, config) in &configs {
            (object, entries) = applied(&kind, manager, &object, config, entries, true).expect("forced");
        }
        let (manager, config) = configs.last().expect("a configuration");
        let (again, entries_again) =
            applied(&kind, manager, &object, config, entries.clone(), false).expect("nobody else's");
        prop_assert_eq!(&again, &object);
        prop_assert_eq!(shown(&entries_again), shown(&entries));
        // What was applied last is there, and owned.
        prop_assert_eq!(object.pointer("/spec/replicas"), config.pointer("/spec/replicas").or(object.pointer("/spec/replicas")));
        for (key, value) in config["metadata"]["labels"].as_object().into_iter().flatten() {
            prop_assert_eq!(&object["metadata"]["labels"][key], value);
        }
    }

    #[test]
    fn when_everybody_applies_nothing_nothing_is_left(
        configs in prop::collection::vec((prop::sample::select(vec!["one", "two", "three"]), config()), 1..6),
    ) {
        let kind = kind("apps", "deployments");
        let (mut object, mut entries) = (json!({"metadata": {"name": "d"}}), Vec::new());
        for (manager, config) in &configs {
            (object, entries) = applied(&kind, manager, &object, config, entries, true).expect("forced");
        }
        for manager in ["one", "two", "three"] {
            (object, entries) = applied(&kind, manager, &object, &json!({"metadata": {"name": "d"}}), entries, false).expect("applied");
        }
        prop_assert!(entries.is_empty());
        let left = object["spec"]["template"]["spec"]["containers"].as_array().map_or(0, Vec::len);
        prop_assert_eq!(left, 0, "{}", object);
        prop_assert!(object["spec"].get("replicas").is_none());
    }
}
