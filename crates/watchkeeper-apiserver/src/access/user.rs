//! Who asks.

use std::sync::{Arc, LazyLock};

use http::HeaderMap;
use http::header::AUTHORIZATION;
use serde_json::{Value, json};

use super::{AccessRules, Asked};
use crate::failure::Failure;
use crate::validation::quoted;

const MASTERS: &str = "system:masters";
const AUTHENTICATED: &str = "system:authenticated";
const ANONYMOUS: &str = "system:anonymous";
/// How the headers begin that say whom somebody plays.
const PLAYS: &str = "impersonate-";
const EXTRA: &str = "impersonate-extra-";
const GROUP: &str = "authentication.k8s.io";

/// Somebody who asks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct User {
    pub(crate) name: String,
    pub(crate) uid: String,
    pub(crate) groups: Vec<String>,
}

impl User {
    /// Who has the port's own token, or is in the same process.
    pub(crate) fn admin() -> Arc<Self> {
        static ADMIN: LazyLock<Arc<User>> = LazyLock::new(|| User::known("admin", "", &[MASTERS.to_owned()]).into());
        ADMIN.clone()
    }

    /// Who has shown no token.
    pub(crate) fn anonymous() -> Self {
        let groups = vec!["system:unauthenticated".to_owned()];
        Self { name: ANONYMOUS.to_owned(), uid: String::new(), groups }
    }

    fn with(mut self, groups: Vec<String>) -> Self {
        self.groups.extend(groups);
        self
    }

    pub(super) fn known(name: &str, uid: &str, groups: &[String]) -> Self {
        let mut groups = groups.to_vec();
        if !groups.iter().any(|group| group == AUTHENTICATED) {
            groups.push(AUTHENTICATED.to_owned());
        }
        Self { name: name.to_owned(), uid: uid.to_owned(), groups }
    }

    /// Who sends a request: whom the gate has found, or who has the token that it shows, or whom that one plays.
    pub(crate) fn of(
        found: Option<&Arc<Self>>,
        headers: &HeaderMap,
        rules: Option<&AccessRules>,
    ) -> Result<Arc<Self>, Failure> {
        let user = match (found, rules) {
            (Some(found), _) => found.clone(),
            (None, Some(rules)) if headers.contains_key(AUTHORIZATION) => {
                bearer(headers).and_then(|token| rules.holder(token)).ok_or_else(Failure::unauthorized)?.into()
            }
            _ => Self::admin(),
        };
        match headers.keys().any(|name| name.as_str().starts_with(PLAYS)) {
            true => user.playing(&Played::of(headers), rules).map(Arc::new),
            false => Ok(user),
        }
    }

    /// The user that somebody plays, if this one may be that one, in each of its parts.
    fn playing(&self, played: &Played<'_>, rules: Option<&AccessRules>) -> Result<Self, Failure> {
        if played.name.is_empty() {
            return Err(Failure::bad_request(played.nameless()));
        }
        if let Some(rules) = rules {
            for asked in played.asked() {
                if !rules.allow(self, &asked) {
                    return Err(asked.refused(self));
                }
            }
        }
        let groups: Vec<String> = match (&played.groups[..], service_account(played.name)) {
            ([], Some((namespace, _))) => {
                vec!["system:serviceaccounts".to_owned(), format!("system:serviceaccounts:{namespace}")]
            }
            (groups, _) => groups.iter().map(|group| (*group).to_owned()).collect(),
        };
        Ok(match rules {
            Some(rules) if played.groups.is_empty() && rules.knows(played.name) => rules.user(played.name),
            _ if played.name == ANONYMOUS => Self::anonymous().with(groups),
            _ => Self::known(played.name, played.uid, &groups),
        })
    }

    pub(super) fn is_master(&self) -> bool {
        self.groups.iter().any(|group| group == MASTERS)
    }

    pub(super) fn is_authenticated(&self) -> bool {
        self.groups.iter().any(|group| group == AUTHENTICATED)
    }

    /// As reviews show it.
    pub(crate) fn shown(&self) -> Value {
        let mut shown = json!({"username": self.name, "groups": self.groups});
        if !self.uid.is_empty() {
            shown["uid"] = self.uid.as_str().into();
        }
        shown
    }
}

/// Whom a request says to play: the parts of its `Impersonate-` headers.
struct Played<'a> {
    name: &'a str,
    uid: &'a str,
    groups: Vec<&'a str>,
    /// Key and value.
    extra: Vec<(&'a str, &'a str)>,
}

impl<'a> Played<'a> {
    fn of(headers: &'a HeaderMap) -> Self {
        // What is no text is nobody's name: it is asked for as it is, and no rule allows it.
        let text = |value: &'a http::HeaderValue| value.to_str().unwrap_or("\u{fffd}");
        let one = |name: &str| headers.get(name).map(text).unwrap_or_default();
        let extra = headers.iter().filter_map(|(name, value)| Some((name.as_str().strip_prefix(EXTRA)?, text(value))));
        Self {
            name: one("impersonate-user"),
            uid: one("impersonate-uid"),
            groups: headers.get_all("impersonate-group").iter().map(text).collect(),
            extra: extra.collect(),
        }
    }

    /// What somebody must be allowed to do that: each part is asked for on its own.
    fn asked(&self) -> Vec<Asked> {
        let asked = |group: &str, resource: &str, subresource: &str, namespace: &str, name: &str| Asked::Resource {
            verb: "impersonate".to_owned(),
            namespace: namespace.to_owned(),
            group: group.to_owned(),
            resource: resource.to_owned(),
            subresource: subresource.to_owned(),
            name: name.to_owned(),
        };
        let mut all = vec![match service_account(self.name) {
            Some((namespace, name)) => asked("", "serviceaccounts", "", namespace, name),
            None => asked("", "users", "", "", self.name),
        }];
        all.extend(self.groups.iter().map(|group| asked("", "groups", "", "", group)));
        all.extend(self.extra.iter().map(|(key, value)| asked(GROUP, "userextras", key, "", value)));
        if !self.uid.is_empty() {
            all.push(asked(GROUP, "uids", "", "", self.uid));
        }
        all
    }

    /// That it says everything but who, in the words of a kube-apiserver.
    fn nameless(&self) -> String {
        let groups: Vec<String> = self.groups.iter().map(|group| quoted(group)).collect();
        let groups = if groups.is_empty() { "(nil)".to_owned() } else { format!("{{{}}}", groups.join(", ")) };
        let uid = quoted(self.uid);
        format!(
            "requested &user.DefaultInfo{{Name:\"\", UID:{uid}, Groups:[]string{groups}, \
             Extra:map[string][]string(nil)}} without impersonating a user name"
        )
    }
}

/// Namespace and name of a service account, if a user is one.
fn service_account(user: &str) -> Option<(&str, &str)> {
    let (namespace, name) = user.strip_prefix("system:serviceaccount:")?.split_once(':')?;
    (!namespace.is_empty() && !name.is_empty() && !name.contains(':')).then_some((namespace, name))
}

/// The token that a request shows.
pub(crate) fn bearer(headers: &HeaderMap) -> Option<&[u8]> {
    let value = headers.get(AUTHORIZATION)?.to_str().ok()?;
    let (scheme, token) = value.trim().split_once(' ')?;
    scheme.eq_ignore_ascii_case("bearer").then(|| token.trim_start().as_bytes())
}
