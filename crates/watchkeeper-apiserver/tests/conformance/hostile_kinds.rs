//! What a review of custom kinds, controllers and rules found: inputs and orders of events that broke the server once.

use std::time::{Duration, Instant};

use bytes::Bytes;
use http::Method;
use serde_json::{Value, json};
use watchkeeper_apiserver::{AccessRules, ApiServer};

use crate::support::*;

const DEFINITIONS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
const COGS: &str = "/apis/c.example.com/v1/namespaces/default/cogs";

/// A definition with one version.
fn definition(group: &str, kind: &str, schema: Value) -> Value {
    let plural = format!("{}s", kind.to_lowercase());
    json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": format!("{plural}.{group}")},
        "spec": {"group": group, "scope": "Namespaced", "names": {"kind": kind, "plural": plural},
                 "versions": [{"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": schema}}]},
    })
}

fn anything() -> Value {
    json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true})
}

fn cog(name: &str, spec: Value) -> Value {
    json!({"apiVersion": "c.example.com/v1", "kind": "Cog", "metadata": {"name": name}, "spec": spec})
}

/// How long something took, with room for slow machines.
async fn is_quick(limit: Duration, what: impl Future<Output = ()>) {
    let start = Instant::now();
    what.await;
    assert!(start.elapsed() < limit, "took {:?}", start.elapsed());
}

#[tokio::test(start_paused = true)]
async fn a_definition_does_not_take_the_place_of_a_built_in_kind() {
    let server = server();
    let leases = "/apis/coordination.k8s.io/v1/namespaces/default/leases";
    let lease = json!({"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": {"name": "a"},
                       "spec": {"holderIdentity": "me"}});
    server.post(leases, lease).await.ok();
    let mut taking = definition("coordination.k8s.io", "Lease", json!({"type": "object"}));
    let refused = server.post(DEFINITIONS, taking.clone()).await.failure();
    let text = "CustomResourceDefinition.apiextensions.k8s.io \"leases.coordination.k8s.io\" is invalid: \
                metadata.annotations[api-approved.kubernetes.io]: Required value: protected groups must have approval \
                annotation \"api-approved.kubernetes.io\", see https://github.com/kubernetes/enhancements/pull/1111";
    assert_eq!(refused, (422, "Invalid".to_owned(), text.to_owned()));
    taking["metadata"]["annotations"] = json!({"api-approved.kubernetes.io": "unapproved, a try"});
    let taken = server.post(DEFINITIONS, taking).await.ok();
    let path = format!("{DEFINITIONS}/leases.coordination.k8s.io");
    assert_eq!(server.get(&format!("{leases}/a")).await.ok()["spec"]["holderIdentity"], "me", "{taken}");
    let conditions = server.get(&path).await.ok()["status"]["conditions"].clone();
    assert_eq!(conditions[0]["type"], "KubernetesAPIApprovalPolicyConformant");
    assert_eq!(conditions[0]["reason"], "UnapprovedAnnotation");
    server.delete(&path).await.ok();
    assert_eq!(server.get(&path).await.status, 404);
    assert_eq!(server.get(leases).await.names(), ["a"]);
}

#[tokio::test(start_paused = true)]
async fn the_entries_of_a_set_may_be_deep() {
    let server = server();
    let items =
        json!({"type": "object", "x-kubernetes-map-type": "atomic", "x-kubernetes-preserve-unknown-fields": true});
    let set = json!({"type": "array", "x-kubernetes-list-type": "set", "items": items});
    let schema = json!({"type": "object", "properties": {"spec": {"type": "object", "properties": {"set": set}}}});
    server.post(DEFINITIONS, definition("c.example.com", "Cog", schema)).await.ok();
    // 23 levels took a gigabyte.
    let deep = |n: usize| (0..n).fold(json!("x"), |inner, _| json!([inner]));
    is_quick(Duration::from_secs(10), async {
        for n in [10, 16, 22, 100] {
            let set = json!([{"a": deep(n), "b": 1}, {"a": deep(n), "b": 2}]);
            server.post(COGS, cog(&format!("a{n}"), json!({"set": set}))).await.ok();
            let set = json!([{"a": deep(n), "b": 1}, {"b": 1, "a": deep(n)}]);
            let refused = server.post(COGS, cog("b", json!({"set": set}))).await;
            assert_eq!(refused.status, 422, "{}", refused.text());
        }
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn what_is_dropped_is_not_told_without_end() {
    let server = server();
    let map = json!({"type": "object", "additionalProperties": {"type": "object"}});
    let schema = json!({"type": "object", "properties": {"spec": map}});
    server.post(DEFINITIONS, definition("c.example.com", "Cog", schema)).await.ok();
    // Each of them is told with the whole path: 5 GB.
    let fields: serde_json::Map<String, Value> = (0..5000).map(|i| (format!("f{i}"), json!(1))).collect();
    let long = "k".repeat(1_000_000);
    let spec = json!({ long: fields });
    is_quick(Duration::from_secs(10), async {
        server.post(COGS, cog("a", spec.clone())).await.ok();
        let refused = server.post(&format!("{COGS}?fieldValidation=Strict"), cog("b", spec)).await;
        assert_eq!(refused.status, 400);
        assert!(refused.bytes.len() < 20_000_000, "{}", refused.bytes.len());
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn what_a_built_in_kind_does_not_have_is_not_told_without_end() {
    let server = server();
    let fields: serde_json::Map<String, Value> = (0..50_000).map(|i| (format!("f{i}"), json!(1))).collect();
    let long = "k".repeat(1_000_000);
    let schema = json!({"type": "object", "properties": { long: fields }});
    is_quick(Duration::from_secs(20), async {
        let path = format!("{DEFINITIONS}?fieldValidation=Strict");
        let refused = server.post(&path, definition("c.example.com", "Cog", schema)).await;
        assert!(refused.bytes.len() < 20_000_000, "{}", refused.bytes.len());
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn embedded_objects_are_not_complained_of_without_end() {
    let server = server();
    let item =
        json!({"type": "object", "x-kubernetes-embedded-resource": true, "x-kubernetes-preserve-unknown-fields": true});
    let map = json!({"type": "object", "additionalProperties": {"type": "array", "items": item}});
    let schema = json!({"type": "object", "properties": {"spec": map}});
    server.post(DEFINITIONS, definition("c.example.com", "Cog", schema)).await.ok();
    let spec = json!({ "k".repeat(1_000_000): vec![json!({}); 20_000] });
    is_quick(Duration::from_secs(20), async {
        let refused = server.post(COGS, cog("a", spec)).await;
        assert_eq!(refused.status, 422);
        assert!(refused.bytes.len() < 30_000_000, "{}", refused.bytes.len());
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn many_controllers_are_complained_of_once() {
    let server = server();
    let reference = |i: usize| {
        json!({"apiVersion": "v1", "kind": "ConfigMap", "name": "o", "uid": format!("{i}"),
                                      "controller": true})
    };
    let owned = json!({"name": "a", "ownerReferences": (0..20_000).map(reference).collect::<Vec<_>>()});
    is_quick(Duration::from_secs(20), async {
        let refused = server.post(MAPS, json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": owned})).await;
        assert_eq!(refused.status, 422);
        assert!(refused.bytes.len() < 20_000_000, "{}", refused.bytes.len());
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_column_whose_path_cannot_be_read_holds_up_nobody() {
    let server = server();
    for (i, path) in [". spec", ".{a}", ".spec['a b']"].into_iter().enumerate() {
        let mut definition = definition(&format!("c{i}.example.com"), "Cog", anything());
        let column = json!({"name": "a", "type": "string", "jsonPath": path});
        definition["spec"]["versions"][0]["additionalPrinterColumns"] = json!([column]);
        server.post(DEFINITIONS, definition).await.ok();
    }
}

#[tokio::test(start_paused = true)]
async fn a_number_of_replicas_is_not_too_deep_for_an_object() {
    let server = server();
    let mut definition = definition("c.example.com", "Cog", anything());
    let deep = format!(".spec{}", ".a".repeat(100_000));
    definition["spec"]["versions"][0]["subresources"] =
        json!({"scale": {"specReplicasPath": deep, "statusReplicasPath": ".status.replicas"}});
    assert_eq!(server.post(DEFINITIONS, definition).await.status, 422);
}

#[tokio::test(start_paused = true)]
async fn complaints_do_not_repeat_a_long_enumeration() {
    let server = server();
    let allowed: Vec<String> = (0..50_000).map(|i| format!("value-{i}")).collect();
    let list = json!({"type": "array", "items": {"type": "string", "enum": allowed}});
    let schema = json!({"type": "object", "properties": {"spec": {"type": "object", "properties": {"list": list}}}});
    server.post(DEFINITIONS, definition("c.example.com", "Cog", schema)).await.ok();
    let refused = server.post(COGS, cog("a", json!({"list": vec!["x"; 1000]}))).await;
    assert_eq!(refused.status, 422);
    assert!(refused.bytes.len() < 5_000_000, "{}", refused.bytes.len());
}

#[tokio::test(start_paused = true)]
async fn a_definition_of_many_versions_is_checked_in_bounded_time() {
    let server = server();
    let mut definition = definition("c.example.com", "Cog", anything());
    let versions: Vec<Value> = (1..=60)
        .map(|version| {
            let fields: serde_json::Map<String, Value> = (0..500)
                .map(|i| {
                    (format!("f{i}"), json!({"type": "string", "pattern": format!("(\\pL{{8}}){{2}}{version}x{i}")}))
                })
                .collect();
            json!({"name": format!("v{version}"), "served": true, "storage": version == 1,
                   "schema": {"openAPIV3Schema": {"type": "object", "properties": fields}}})
        })
        .collect();
    definition["spec"]["versions"] = json!(versions);
    is_quick(Duration::from_secs(40), async {
        let answer = server.post(DEFINITIONS, definition).await;
        assert_eq!(answer.status, 422, "{}", &answer.text()[..500.min(answer.text().len())]);
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn defaults_of_many_versions_are_checked_in_bounded_time() {
    let server = server();
    let mut definition = definition("c.example.com", "Cog", anything());
    let versions: Vec<Value> = (1..=40)
        .map(|version| {
            // Each entry of the default is looked at by each of the schemas.
            let any: Vec<Value> = (0..150).map(|i| json!({"minimum": 1_000_000 + version * 1000 + i})).collect();
            let items = json!({"type": "integer", "anyOf": any});
            let field = json!({"type": "array", "items": items, "default": vec![1; 10_000]});
            json!({"name": format!("v{version}"), "served": true, "storage": version == 1,
                   "schema": {"openAPIV3Schema": {"type": "object", "properties": {"a": field.clone(), "b": field}}}})
        })
        .collect();
    definition["spec"]["versions"] = json!(versions);
    is_quick(Duration::from_secs(40), async {
        assert_eq!(server.post(DEFINITIONS, definition).await.status, 422);
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_definition_that_waits_for_its_objects_slows_down_nobody() {
    let server = server();
    let fields: serde_json::Map<String, Value> = (0..500)
        .map(|i| (format!("f{i}"), json!({"type": "string", "maxLength": 10, "description": "x".repeat(100)})))
        .collect();
    let schema = json!({"type": "object", "properties": {"spec": {"type": "object", "properties": fields}}});
    server.post(DEFINITIONS, definition("c.example.com", "Cog", schema)).await.ok();
    for i in 0..500 {
        let mut cog = cog(&format!("c{i}"), json!({}));
        cog["metadata"]["finalizers"] = json!(["example.com/hold"]);
        server.create(cog).expect("a cog");
    }
    server.delete(&format!("{DEFINITIONS}/cogs.c.example.com")).await.ok();
    is_quick(Duration::from_secs(20), async {
        for i in 0..500 {
            server.map(&format!("m{i}")).await;
        }
        for i in 0..500 {
            server.merge(&format!("{COGS}/c{i}"), json!({"metadata": {"finalizers": null}})).await.ok();
        }
    })
    .await;
    assert_eq!(server.get(&format!("{DEFINITIONS}/cogs.c.example.com")).await.status, 404);
    server.post(DEFINITIONS, definition("c.example.com", "Cog", anything())).await.ok();
    assert!(server.get(COGS).await.names().is_empty());
}

#[tokio::test(start_paused = true)]
async fn an_object_of_many_owners_is_written_in_bounded_time() {
    let server = server();
    let reference = |i: usize| {
        json!({"apiVersion": "v1", "kind": "ConfigMap", "name": format!("o{i}"),
                                      "uid": format!("00000000-0000-0000-0000-{i:012}")})
    };
    let owner = server.map("o").await;
    let mut references: Vec<Value> = (0..15_000).map(reference).collect();
    references.push(json!({"apiVersion": "v1", "kind": "ConfigMap", "name": "o", "uid": owner["metadata"]["uid"]}));
    let owned = json!({"name": "a", "ownerReferences": references});
    is_quick(Duration::from_secs(10), async {
        server.post(MAPS, json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": owned})).await.ok();
    })
    .await;
    let kept = server.get(&format!("{MAPS}/a")).await.ok();
    assert_eq!(kept["metadata"]["ownerReferences"].as_array().expect("owners").len(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_budget_of_everything_is_about_every_pod() {
    let server = server();
    let budget = json!({"apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": {"name": "all"},
                        "spec": {"selector": {}, "minAvailable": 1}});
    let budgets = "/apis/policy/v1/namespaces/default/poddisruptionbudgets";
    server.post(budgets, budget).await.ok();
    let pod = json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"},
                     "spec": {"containers": [{"name": "c", "image": "i"}]}});
    server.post(PODS, pod).await.ok();
    server.merge(&format!("{PODS}/p/status"), json!({"status": {"phase": "Running"}})).await.ok();
    let eviction = json!({"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": "p"}});
    assert_eq!(server.post(&format!("{PODS}/p/eviction"), eviction.clone()).await.status, 429);
    // One that selects nothing at all is about none.
    server.delete(&format!("{budgets}/all")).await.ok();
    let none = json!({"apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": {"name": "none"},
                      "spec": {"minAvailable": 1}});
    server.post(budgets, none).await.ok();
    assert_eq!(server.post(&format!("{PODS}/p/eviction"), eviction).await.status, 201);
}

fn with_rules(rules: Value) -> ApiServer {
    let rules: AccessRules = serde_json::from_value(rules).expect("rules");
    builder().rules(rules).build()
}

#[tokio::test(start_paused = true)]
async fn whoever_plays_somebody_may_not_choose_any_group() {
    let server = with_rules(json!({
        "users": [{"name": "alice", "token": "t"}],
        "rules": [
            {"users": ["alice"], "verbs": ["impersonate"], "apiGroups": [""], "resources": ["users"], "resourceNames": ["bob"]},
            {"users": ["alice"], "verbs": ["impersonate"], "apiGroups": [""], "resources": ["groups"], "resourceNames": ["dev"]},
            {"groups": ["dev"], "verbs": ["get", "list"], "apiGroups": [""], "resources": ["pods"]},
        ],
    }));
    let alice = ("authorization", "Bearer t");
    let asked = async |headers: &[(&str, &str)]| {
        let headers: Vec<(&str, &str)> = [alice].into_iter().chain(headers.iter().copied()).collect();
        server.call(Method::GET, PODS, &headers, Bytes::new()).await
    };
    assert_eq!(asked(&[]).await.status, 403);
    assert_eq!(asked(&[("impersonate-user", "bob"), ("impersonate-group", "dev")]).await.status, 200);
    let (code, _, text) =
        asked(&[("impersonate-user", "bob"), ("impersonate-group", "system:masters")]).await.failure();
    assert_eq!(code, 403);
    let expected = "groups \"system:masters\" is forbidden: User \"alice\" cannot impersonate resource \"groups\" in API \
                    group \"\" at the cluster scope";
    assert_eq!(text, expected);
    let several = [("impersonate-user", "bob"), ("impersonate-group", "dev"), ("impersonate-group", "system:masters")];
    assert_eq!(asked(&several).await.status, 403);
    assert_eq!(asked(&[("impersonate-user", "bob"), ("impersonate-uid", "1")]).await.status, 403);
    assert_eq!(asked(&[("impersonate-user", "bob"), ("impersonate-extra-scopes", "all")]).await.status, 403);
    assert_eq!(asked(&[("impersonate-user", "system:serviceaccount:kube-system:root")]).await.status, 403);
    // Nobody plays a group alone.
    let nameless = "requested &user.DefaultInfo{Name:\"\", UID:\"\", Groups:[]string{\"dev\"}, \
                    Extra:map[string][]string(nil)} without impersonating a user name";
    let expected = (400, "BadRequest".to_owned(), nameless.to_owned());
    assert_eq!(asked(&[("impersonate-group", "dev")]).await.failure(), expected);
}

#[tokio::test(start_paused = true)]
async fn whoever_may_read_one_object_may_list_and_watch_it() {
    let server = with_rules(json!({
        "rules": [{"users": ["alice"], "verbs": ["get", "list", "watch"], "apiGroups": [""], "resources": ["configmaps"],
                   "resourceNames": ["mine"]}],
    }));
    server.map("mine").await;
    server.map("other").await;
    let asked = async |path: &str| {
        server.call(Method::GET, &format!("{MAPS}{path}"), &[("impersonate-user", "alice")], Bytes::new()).await
    };
    assert_eq!(asked("?fieldSelector=metadata.name%3Dmine").await.names(), ["mine"]);
    let watch = "?watch=true&fieldSelector=metadata.name%3Dmine&resourceVersion=0&timeoutSeconds=1";
    assert_eq!(asked(watch).await.status, 200);
    for path in ["", "?fieldSelector=metadata.name%3Dother", "?fieldSelector=metadata.name!%3Dmine", "?watch=true"] {
        assert_eq!(asked(path).await.status, 403, "{path}");
    }
}

#[test]
fn nothing_is_left_in_a_namespace_that_went_while_it_was_written_to() {
    let server = server();
    let maps = server.kind("", "configmaps").expect("a kind");
    for round in 0..200 {
        let name = format!("ns{round}");
        server
            .create(json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}))
            .expect("a namespace");
        std::thread::scope(|scope| {
            for thread in 0..3 {
                let (server, name) = (&server, &name);
                scope.spawn(move || {
                    for i in 0..20 {
                        let metadata = json!({"name": format!("m{thread}-{i}"), "namespace": name});
                        let map = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata});
                        if server.create(map).is_err() {
                            break;
                        }
                    }
                });
            }
            let (server, name) = (&server, &name);
            scope.spawn(move || {
                let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
                runtime.block_on(server.delete(&format!("/api/v1/namespaces/{name}")))
            });
        });
        let left: Vec<String> = server.storage().objects(&maps).iter().map(|map| map.key().to_owned()).collect();
        assert_eq!(left, Vec::<String>::new(), "round {round}");
    }
}

#[test]
fn a_definition_goes_with_everything_while_its_objects_are_written() {
    let server = server();
    let maps = server.kind("", "configmaps").expect("a kind");
    for round in 0..100 {
        server.create(definition("c.example.com", "Cog", anything())).expect("a definition");
        std::thread::scope(|scope| {
            for thread in 0..3 {
                let server = &server;
                scope.spawn(move || {
                    for i in 0..20 {
                        let name = format!("c{thread}-{i}");
                        let Ok(cog) = server.create(cog(&name, json!({}))) else { break };
                        let reference =
                            json!({"apiVersion": "c.example.com/v1", "kind": "Cog", "name": name, "uid": cog.uid()});
                        let metadata = json!({"name": name, "ownerReferences": [reference]});
                        server
                            .create(json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata}))
                            .expect("a map");
                    }
                });
            }
            let server = &server;
            scope.spawn(move || {
                let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
                runtime.block_on(server.delete(&format!("{DEFINITIONS}/cogs.c.example.com")))
            });
        });
        assert!(server.kind("c.example.com", "cogs").is_none(), "round {round}");
        let left: Vec<String> = server.storage().objects(&maps).iter().map(|map| map.key().to_owned()).collect();
        // What was written when nobody knew its owner's kind any more is left alone: at most the last map of each thread.
        assert!(left.len() <= 3, "round {round}: {left:?}");
        for key in left {
            server.remove(&maps, &key);
        }
    }
}

#[tokio::test(start_paused = true)]
async fn definitions_that_want_the_same_names_are_not_looked_at_again_and_again() {
    let server = server();
    let mut first = definition("c.example.com", "Cog", anything());
    first["spec"]["names"]["shortNames"] = json!(["co"]);
    server.post(DEFINITIONS, first).await.ok();
    is_quick(Duration::from_secs(20), async {
        for i in 0..300 {
            let mut other = definition("c.example.com", &format!("Wheel{i}"), anything());
            other["spec"]["names"]["shortNames"] = json!(["co"]);
            server.post(DEFINITIONS, other).await.ok();
        }
    })
    .await;
    // The first of those who were refused gets what is given back.
    server.delete(&format!("{DEFINITIONS}/cogs.c.example.com")).await.ok();
    let accepted = server.get(&format!("{DEFINITIONS}/wheel0s.c.example.com")).await.ok()["status"].clone();
    assert_eq!(accepted["acceptedNames"]["shortNames"], json!(["co"]), "{accepted}");
    let refused = server.get(&format!("{DEFINITIONS}/wheel1s.c.example.com")).await.ok()["status"].clone();
    assert_eq!(refused["acceptedNames"].get("shortNames"), None, "{refused}");
}
