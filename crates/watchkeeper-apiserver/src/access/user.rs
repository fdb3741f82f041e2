//! Who asks.

use std::sync::{Arc, LazyLock};

use http::HeaderMap;
use http::header::AUTHORIZATION;
use serde_json::{Value, json};

use super::{AccessRules, Asked};
use crate::failure::Failure;

const MASTERS: &str = "system:masters";
const AUTHENTICATED: &str = "system:authenticated";
/// The header that names whom somebody plays.
const PLAYED: &str = "impersonate-user";

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
        Self { name: "system:anonymous".to_owned(), uid: String::new(), groups }
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
        match headers.contains_key(PLAYED) {
            true => user.playing(headers, rules).map(Arc::new),
            false => Ok(user),
        }
    }

    /// The user that `Impersonate-User` names, if this one may be that one.
    fn playing(&self, headers: &HeaderMap, rules: Option<&AccessRules>) -> Result<Self, Failure> {
        let text = |name: &str| headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or_default();
        let name = text(PLAYED);
        let asked = Asked::Resource {
            verb: "impersonate".to_owned(),
            namespace: String::new(),
            group: String::new(),
            resource: "users".to_owned(),
            subresource: String::new(),
            name: name.to_owned(),
        };
        if rules.is_some_and(|rules| !rules.allow(self, &asked)) {
            return Err(asked.refused(self));
        }
        let groups = headers.get_all("impersonate-group").iter().filter_map(|value| value.to_str().ok());
        let groups: Vec<String> = groups.map(str::to_owned).collect();
        Ok(match rules {
            Some(rules) if groups.is_empty() => rules.user(name),
            _ => Self::known(name, text("impersonate-uid"), &groups),
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

/// The token that a request shows.
pub(crate) fn bearer(headers: &HeaderMap) -> Option<&[u8]> {
    let value = headers.get(AUTHORIZATION)?.to_str().ok()?;
    let (scheme, token) = value.trim().split_once(' ')?;
    scheme.eq_ignore_ascii_case("bearer").then(|| token.trim_start().as_bytes())
}
