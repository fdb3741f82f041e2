//! Who asks, and who may do what?
//!
//! Without rules everybody is `admin` and may do everything, and reviews say so. With [`AccessRules`], each user has a token,
//! requests that no rule allows are refused with 403 in the words of a kube-apiserver, and reviews tell what the rules say.
//!
//! ```
//! use k8s_openapi::api::core::v1::Pod;
//! use kube_client::{Api, api::ListParams};
//! use serde_json::json;
//! use watchkeeper_apiserver::{AccessRules, ApiServer};
//!
//! # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let rules: AccessRules = serde_json::from_value(json!({
//!     "users": [{"name": "alice", "token": "alices-token", "groups": ["developers"]}],
//!     "rules": [{"groups": ["developers"], "verbs": ["get", "list"], "apiGroups": [""], "resources": ["pods"]}],
//! }))?;
//! let server = ApiServer::builder().rules(rules).build();
//! let alice = server.client_of("alice");
//! assert!(Api::<Pod>::all(alice.clone()).list(&ListParams::default()).await.is_ok());
//! let refused = Api::<Pod>::default_namespaced(alice).delete("a", &Default::default()).await.unwrap_err();
//! assert!(refused.to_string().contains(r#"User "alice" cannot delete resource "pods" in API group "" in the namespace "default""#));
//! # Ok(()) }
//! ```

mod asked;
mod user;

use serde::Deserialize;
use serde_json::{Value, json};

pub(crate) use asked::{Asked, check};
pub(crate) use user::{User, bearer};

use crate::failure::Failure;

/// Users, and what they may do. It is read with serde, from JSON or YAML.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AccessRules {
    #[serde(default)]
    users: Vec<KnownUser>,
    #[serde(default)]
    rules: Vec<Rule>,
}

/// Somebody with a token.
#[derive(Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
struct KnownUser {
    name: String,
    #[serde(default)]
    uid: String,
    #[serde(default)]
    groups: Vec<String>,
    #[serde(default)]
    token: String,
}

/// What some users and groups may do: the fields of a role's rule.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase", default)]
struct Rule {
    users: Vec<String>,
    groups: Vec<String>,
    /// Where; everywhere, if none is named.
    namespaces: Vec<String>,
    verbs: Vec<String>,
    api_groups: Vec<String>,
    resources: Vec<String>,
    resource_names: Vec<String>,
    #[serde(rename = "nonResourceURLs")]
    non_resource_urls: Vec<String>,
}

/// What everybody who has shown a token may read.
const DISCOVERY: [&str; 11] = [
    "/api",
    "/api/*",
    "/apis",
    "/apis/*",
    "/healthz",
    "/livez",
    "/openapi",
    "/openapi/*",
    "/readyz",
    "/version",
    "/version/",
];
/// What everybody may read.
const PUBLIC: [&str; 5] = ["/healthz", "/livez", "/readyz", "/version", "/version/"];

impl AccessRules {
    /// Whether a user may do what is asked.
    pub(crate) fn allow(&self, user: &User, asked: &Asked) -> bool {
        user.is_master() || self.of(user).any(|rule| rule.allows(asked))
    }

    /// Refuses what a user may not do.
    pub(crate) fn check(&self, user: &User, asked: &Asked) -> Result<(), Failure> {
        if self.allow(user, asked) { Ok(()) } else { Err(asked.refused(user)) }
    }

    /// Who has a token; none, if nobody has it.
    pub(crate) fn holder(&self, token: &[u8]) -> Option<User> {
        let mut holder = None;
        // All are looked at, however early one fits: how long it takes tells nothing.
        for user in self.users.iter().filter(|user| !user.token.is_empty()) {
            let is_same: bool = subtle::ConstantTimeEq::ct_eq(user.token.as_bytes(), token).into();
            if is_same {
                holder = Some(User::known(&user.name, &user.uid, &user.groups));
            }
        }
        holder
    }

    /// Whether there is a user of this name.
    pub(crate) fn knows(&self, name: &str) -> bool {
        self.users.iter().any(|user| user.name == name)
    }

    /// The user of a name, with the groups that the rules give it.
    pub(crate) fn user(&self, name: &str) -> User {
        match self.users.iter().find(|user| user.name == name) {
            Some(user) => User::known(&user.name, &user.uid, &user.groups),
            None => User::known(name, "", &[]),
        }
    }

    /// What a review of somebody's rules shows: those for resources, and those for other paths.
    pub(crate) fn shown(&self, user: &User, namespace: &str) -> (Vec<Value>, Vec<Value>) {
        let (mut resources, mut others) = (Vec::new(), Vec::new());
        if user.is_master() {
            resources.push(json!({"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"]}));
            others.push(json!({"verbs": ["*"], "nonResourceURLs": ["*"]}));
        }
        for rule in self.of(user).filter(|rule| rule.is_for(namespace)) {
            if !rule.resources.is_empty() {
                let mut shown = json!({"verbs": rule.verbs, "apiGroups": rule.api_groups, "resources": rule.resources});
                if !rule.resource_names.is_empty() {
                    shown["resourceNames"] = json!(rule.resource_names);
                }
                resources.push(shown);
            }
            if !rule.non_resource_urls.is_empty() {
                others.push(json!({"verbs": rule.verbs, "nonResourceURLs": rule.non_resource_urls}));
            }
        }
        (resources, others)
    }

    /// The rules for somebody, and those that every cluster has.
    fn of<'a>(&'a self, user: &'a User) -> impl Iterator<Item = Rule> + 'a {
        let own = self.rules.iter().filter(|rule| rule.is_about(user)).cloned();
        own.chain(common(user))
    }
}

/// What everybody may do in every cluster.
fn common(user: &User) -> Vec<Rule> {
    let texts = |texts: &[&str]| texts.iter().map(|text| (*text).to_owned()).collect::<Vec<_>>();
    let reviews = |group: &str, resources: &[&str]| Rule {
        verbs: texts(&["create"]),
        api_groups: texts(&[group]),
        resources: texts(resources),
        ..Rule::default()
    };
    let reads = |paths: &[&str]| Rule { verbs: texts(&["get"]), non_resource_urls: texts(paths), ..Rule::default() };
    match user.is_authenticated() {
        false => vec![reads(&PUBLIC)],
        true => vec![
            reviews("authorization.k8s.io", &["selfsubjectaccessreviews", "selfsubjectrulesreviews"]),
            reviews("authentication.k8s.io", &["selfsubjectreviews"]),
            reads(&DISCOVERY),
            reads(&PUBLIC),
        ],
    }
}

impl Rule {
    fn is_about(&self, user: &User) -> bool {
        let is_named = |list: &[String], name: &str| list.iter().any(|entry| entry == name || entry == "*");
        is_named(&self.users, &user.name) || user.groups.iter().any(|group| is_named(&self.groups, group))
    }

    fn is_for(&self, namespace: &str) -> bool {
        self.namespaces.is_empty() || self.namespaces.iter().any(|known| known == namespace)
    }

    fn allows(&self, asked: &Asked) -> bool {
        let has = |list: &[String], name: &str| list.iter().any(|entry| entry == name || entry == "*");
        if !has(&self.verbs, asked.verb()) {
            return false;
        }
        match asked {
            Asked::Path { path, .. } => self.non_resource_urls.iter().any(|url| match url.strip_suffix('*') {
                Some(prefix) => path.starts_with(prefix),
                None => url == path,
            }),
            Asked::Resource { namespace, group, resource, subresource, name, .. } => {
                let is_meant = |entry: &String| match entry.split_once('/') {
                    _ if entry == "*" => true,
                    None => subresource.is_empty() && entry == resource,
                    Some(("*", beneath)) => beneath == subresource,
                    Some((of, beneath)) => of == resource && beneath == subresource,
                };
                has(&self.api_groups, group)
                    && self.resources.iter().any(is_meant)
                    && (self.resource_names.is_empty() || self.resource_names.contains(name))
                    && self.is_for(namespace)
            }
        }
    }
}

/// Who it is, and not the token.
impl std::fmt::Debug for KnownUser {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("KnownUser").field("name", &self.name).field("groups", &self.groups).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asked(verb: &str, namespace: &str, resource: &str, subresource: &str, name: &str) -> Asked {
        Asked::Resource {
            verb: verb.to_owned(),
            namespace: namespace.to_owned(),
            group: String::new(),
            resource: resource.to_owned(),
            subresource: subresource.to_owned(),
            name: name.to_owned(),
        }
    }

    #[test]
    fn rules_match_as_those_of_roles_do() {
        let rules: AccessRules = serde_json::from_value(json!({
            "users": [{"name": "alice", "token": "t1", "groups": ["dev"]}, {"name": "bob", "token": "t2"}],
            "rules": [
                {"users": ["alice"], "namespaces": ["shop"], "verbs": ["get", "list"], "apiGroups": [""],
                 "resources": ["pods", "pods/log"]},
                {"groups": ["dev"], "verbs": ["*"], "apiGroups": ["*"], "resources": ["configmaps"],
                 "resourceNames": ["mine"]},
                {"users": ["bob"], "verbs": ["update"], "apiGroups": ["*"], "resources": ["*/scale"]},
                {"groups": ["system:authenticated"], "verbs": ["get"], "nonResourceURLs": ["/metrics*"]},
            ],
        }))
        .expect("rules");
        let (alice, bob) = (rules.holder(b"t1").expect("a user"), rules.holder(b"t2").expect("a user"));
        assert!(rules.holder(b"t3").is_none() && rules.holder(b"").is_none());
        for (user, asked, expected) in [
            (&alice, asked("get", "shop", "pods", "", "a"), true),
            (&alice, asked("get", "shop", "pods", "log", "a"), true),
            (&alice, asked("get", "shop", "pods", "exec", "a"), false),
            (&alice, asked("get", "other", "pods", "", "a"), false),
            (&alice, asked("list", "", "pods", "", ""), false),
            (&alice, asked("delete", "shop", "pods", "", "a"), false),
            (&alice, asked("delete", "other", "configmaps", "", "mine"), true),
            (&alice, asked("delete", "other", "configmaps", "", "yours"), false),
            (&alice, asked("list", "other", "configmaps", "", ""), false),
            (&bob, asked("get", "shop", "pods", "", "a"), false),
            (&bob, asked("update", "shop", "deployments", "scale", "a"), true),
            (&bob, asked("update", "shop", "deployments", "", "a"), false),
            (&User::admin(), asked("delete", "", "nodes", "", "a"), true),
        ] {
            assert_eq!(rules.allow(user, &asked), expected, "{} {asked:?}", user.name);
        }
        let path = |path: &str| Asked::Path { verb: "get".to_owned(), path: path.to_owned() };
        assert!(rules.allow(&bob, &path("/metrics/cadvisor")) && rules.allow(&bob, &path("/apis/apps")));
        assert!(!rules.allow(&bob, &path("/logs")) && rules.allow(&User::anonymous(), &path("/version")));
        assert!(!rules.allow(&User::anonymous(), &path("/api")));
    }

    #[test]
    fn tokens_are_not_shown_and_misspelt_fields_are_refused() {
        let rules = json!({"users": [{"name": "alice", "token": "secret-token"}]});
        let rules: AccessRules = serde_json::from_value(rules).expect("rules");
        assert!(!format!("{rules:?}").contains("secret-token"));
        assert!(serde_json::from_value::<AccessRules>(json!({"rules": [{"verb": ["get"]}]})).is_err());
    }
}
