//! May I list and watch, and what would allow it?
//!
//! The server is asked by a review, which is what decides about real requests too. Where it has no reviews, a small list
//! and a short watch are tried.

use std::collections::{BTreeMap, BTreeSet};
use std::io;

use http::Method;
use serde_json::{Value, json};

use super::ask::{self, NOTHING};
use super::report::{Check, Report};
use super::server::User;
use crate::cluster::{Access, Resource, ScopeOptions, Target};

const VERBS: [&str; 2] = ["list", "watch"];
const REVIEWS: &str = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews";

/// What a review, or a try, came to.
enum Decision {
    Allowed,
    Denied(String),
    Unknown(String),
}

/// Something that is not allowed: plurals by group, in a namespace or everywhere.
type Missing = BTreeMap<Option<String>, BTreeMap<String, BTreeSet<String>>>;

/// Checks each kind; those that may be listed and watched.
pub(super) async fn check(
    access: &Access,
    scope: &ScopeOptions,
    targets: &[Target],
    user: &User,
    report: &mut Report,
) -> io::Result<Vec<Target>> {
    let (mut allowed, mut missing) = (Vec::new(), Missing::new());
    for target in targets {
        let resource = &target.resource;
        let namespaces: Vec<Option<String>> = match scope.names(access).filter(|_| resource.namespaced) {
            Some(names) => names.into_iter().map(Some).collect(),
            None => vec![None],
        };
        let mut is_allowed = true;
        for namespace in namespaces {
            let check = kind(access, resource, namespace.as_deref()).await;
            if let Err(check) = check {
                is_allowed = false;
                if check.is_denied {
                    let groups = missing.entry(namespace).or_default();
                    groups.entry(resource.api.group.clone()).or_default().insert(resource.api.plural.clone());
                }
                report.add(check.check)?;
            } else {
                let place = place(resource, namespace.as_deref());
                report.add(Check::ok("rights", format!("you may list and watch {}{place}", resource.full_name())))?;
            }
        }
        if is_allowed {
            allowed.push(target.clone());
        }
    }
    if !missing.is_empty() {
        report.manifest(manifest(&missing, user.name.as_deref()));
    }
    Ok(allowed)
}

struct Refused {
    check: Check,
    is_denied: bool,
}

async fn kind(access: &Access, resource: &Resource, namespace: Option<&str>) -> Result<(), Refused> {
    let (mut denied, mut reason) = (Vec::new(), String::new());
    let name = format!("{}{}", resource.full_name(), place(resource, namespace));
    for verb in VERBS {
        match decide(access, resource, namespace, verb).await {
            Decision::Allowed => {}
            Decision::Denied(why) => {
                denied.push(verb);
                reason = why;
            }
            Decision::Unknown(why) => {
                let check =
                    Check::failed("rights", format!("whether you may {verb} {name} cannot be found out: {why}"));
                let check = check.with_remedy("look at the server's health, and wait longer: --request-timeout 2m");
                return Err(Refused { check, is_denied: false });
            }
        }
    }
    if denied.is_empty() {
        return Ok(());
    }
    let reason = if reason.is_empty() { reason } else { format!(": {reason}") };
    let check = Check::failed("rights", format!("you may not {} {name}{reason}", denied.join(" and ")));
    let check = check.refused().with_remedy("apply the role below, or ask somebody who may");
    Err(Refused { check, is_denied: true })
}

fn place(resource: &Resource, namespace: Option<&str>) -> String {
    match namespace {
        Some(namespace) => format!(" in namespace {namespace}"),
        None if resource.namespaced => " in all namespaces".to_owned(),
        None => String::new(),
    }
}

async fn decide(access: &Access, resource: &Resource, namespace: Option<&str>, verb: &str) -> Decision {
    let review = json!({
        "apiVersion": "authorization.k8s.io/v1", "kind": "SelfSubjectAccessReview",
        "spec": {"resourceAttributes": {
            "namespace": namespace.unwrap_or_default(), "verb": verb, "group": resource.api.group,
            "version": resource.api.version, "resource": resource.api.plural,
        }},
    });
    let answer = match ask::review(access, REVIEWS, &review).await {
        Ok(answer) => answer,
        Err(why) => return Decision::Unknown(why),
    };
    if answer.is_not_served() || answer.status == 403 {
        return attempt(access, resource, namespace, verb).await;
    }
    match answer.json() {
        Ok(document) => {
            let status = |field: &str| document.pointer(&format!("/status/{field}"));
            match status("allowed").and_then(Value::as_bool) {
                Some(true) => Decision::Allowed,
                Some(false) => {
                    Decision::Denied(status("reason").and_then(Value::as_str).unwrap_or_default().to_owned())
                }
                None => Decision::Unknown("the review has no answer in it".to_owned()),
            }
        }
        Err(why) => Decision::Unknown(why),
    }
}

/// Tries it: one object, or a watch of a second.
async fn attempt(access: &Access, resource: &Resource, namespace: Option<&str>, verb: &str) -> Decision {
    let path = match ask::path(&resource.api, namespace) {
        Ok(path) => path,
        Err(why) => return Decision::Unknown(why),
    };
    // A watch from the beginning would bring everything first.
    let path = match verb {
        "watch" => format!("{path}?watch=true&timeoutSeconds=1&{NOTHING}"),
        _ => format!("{path}?limit=1"),
    };
    // The status is all that matters: of a watch nothing more need come.
    let opening = ask::open(&access.client, Method::GET, &path, "application/json", None);
    match tokio::time::timeout(access.request_timeout, opening).await {
        Ok(Ok(answer)) => match answer.status().as_u16() {
            200..=299 => Decision::Allowed,
            401 | 403 => Decision::Denied(format!("a {verb} is refused with {}", answer.status().as_u16())),
            status => Decision::Unknown(format!("a {verb} is answered with {status}")),
        },
        Ok(Err(why)) => Decision::Unknown(why),
        Err(_) => Decision::Unknown(format!("a {verb} is not answered in time")),
    }
}

/// Roles and bindings that allow what is missing, for `kubectl apply -f -`. Names are written as JSON, which is YAML
/// whatever they hold.
fn manifest(missing: &Missing, user: Option<&str>) -> String {
    let mut text = String::new();
    for (namespace, groups) in missing {
        let (role, place) = match namespace {
            Some(namespace) => ("Role", format!("\n  namespace: {}", quoted(namespace))),
            None => ("ClusterRole", String::new()),
        };
        let rules: String = groups
            .iter()
            .map(|(group, plurals)| {
                let plurals: Vec<String> = plurals.iter().map(|plural| quoted(plural)).collect();
                format!(
                    "- apiGroups: [{}]\n  resources: [{}]\n  verbs: [\"get\", \"list\", \"watch\"]\n",
                    quoted(group),
                    plurals.join(", ")
                )
            })
            .collect();
        // Whoever applies this for other kinds, or for somebody else, must not take away what an earlier one allowed.
        let name = format!("watchkeeper-reader-{:08x}", digest(&format!("{rules}{}", user.unwrap_or_default())));
        text.push_str(&format!(
            "---\n\
             apiVersion: rbac.authorization.k8s.io/v1\n\
             kind: {role}\n\
             metadata:\n  name: {name}{place}\n\
             rules:\n{rules}\
             ---\n\
             apiVersion: rbac.authorization.k8s.io/v1\n\
             kind: {role}Binding\n\
             metadata:\n  name: {name}{place}\n\
             roleRef:\n  apiGroup: rbac.authorization.k8s.io\n  kind: {role}\n  name: {name}\n\
             subjects:\n{}",
            subject(user)
        ));
    }
    text
}

/// FNV-1a: the same in every run and every version.
fn digest(text: &str) -> u32 {
    text.bytes().fold(0x811c_9dc5, |digest, byte| (digest ^ u32::from(byte)).wrapping_mul(0x0100_0193))
}

fn subject(user: Option<&str>) -> String {
    let account =
        user.and_then(|user| user.strip_prefix("system:serviceaccount:")).and_then(|rest| rest.split_once(':'));
    match (account, user) {
        (Some((namespace, name)), _) => {
            format!("- kind: ServiceAccount\n  namespace: {}\n  name: {}\n", quoted(namespace), quoted(name))
        }
        (None, Some(user)) => {
            format!("- kind: User\n  apiGroup: rbac.authorization.k8s.io\n  name: {}\n", quoted(user))
        }
        (None, None) => "- kind: User\n  apiGroup: rbac.authorization.k8s.io\n  \
                         name: \"YOUR-USER\" # the server does not tell it\n"
            .to_owned(),
    }
}

/// A text as JSON, with nothing in it that a terminal would act on.
fn quoted(text: &str) -> String {
    crate::terminal::escape_json(&Value::from(text).to_string()).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn missing() -> Missing {
        let pods = BTreeMap::from([(String::new(), BTreeSet::from(["pods".to_owned()]))]);
        let nodes = BTreeMap::from([
            (String::new(), BTreeSet::from(["nodes".to_owned()])),
            ("apps".to_owned(), BTreeSet::from(["deployments".to_owned()])),
        ]);
        Missing::from([(Some("shop".to_owned()), pods), (None, nodes)])
    }

    #[test]
    fn the_roles_are_yaml_that_allows_what_is_missing() {
        let text = manifest(&missing(), Some("system:serviceaccount:shop:web"));
        let documents: Vec<Value> = serde_saphyr::from_multiple(&text).expect("YAML");
        let kinds: Vec<&Value> = documents.iter().map(|document| &document["kind"]).collect();
        assert_eq!(kinds, ["ClusterRole", "ClusterRoleBinding", "Role", "RoleBinding"]);
        assert_eq!(documents[0]["rules"][1]["apiGroups"], json!(["apps"]));
        assert_eq!(documents[2]["metadata"]["namespace"], "shop");
        assert_eq!(documents[2]["rules"][0]["resources"], json!(["pods"]));
        let subject = json!({"kind": "ServiceAccount", "namespace": "shop", "name": "web"});
        assert_eq!(documents[3]["subjects"], json!([subject]));
        assert_eq!(documents[3]["roleRef"]["name"], documents[2]["metadata"]["name"]);
        let other = manifest(&missing(), Some("jane"));
        assert!(!other.contains(documents[2]["metadata"]["name"].as_str().expect("a name")), "a role of its own");
    }

    #[test]
    fn a_hostile_name_stays_a_name() {
        let name = "jane\nEOF\nrm -rf / \u{9b}31m\"";
        let text = manifest(&missing(), Some(name));
        assert!(!text.contains("\nEOF") && !text.chars().any(|c| c == '\u{9b}'));
        let documents: Vec<Value> = serde_saphyr::from_multiple(&text).expect("YAML");
        assert_eq!(documents[1]["subjects"][0]["name"], name);
    }
}
