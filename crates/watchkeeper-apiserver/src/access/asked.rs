//! What a request asks for, as rules see it.

use std::sync::Arc;

use http::{HeaderMap, Method, Uri};

use super::{AccessRules, User};
use crate::failure::{Details, Failure};
use crate::http::options::Options;
use crate::http::route::Route;
use crate::kinds::{Kind, qualified};
use crate::selectors::FieldSelector;
use crate::validation::{path_segment, quoted};

/// What a user wants to do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Asked {
    Resource {
        verb: String,
        /// Empty outside of namespaces, and for all of them.
        namespace: String,
        group: String,
        resource: String,
        subresource: String,
        name: String,
    },
    Path {
        verb: String,
        path: String,
    },
}

/// Refuses what the rules do not allow. Answers with who asks.
pub(crate) fn check(
    rules: Option<&AccessRules>,
    found: Option<&Arc<User>>,
    method: &Method,
    uri: &Uri,
    headers: &HeaderMap,
) -> Result<Arc<User>, Failure> {
    let user = User::of(found, headers, rules)?;
    if let Some(rules) = rules {
        rules.check(&user, &Asked::of(method, uri))?;
    }
    Ok(user)
}

impl Asked {
    /// To create an object by writing it where there is none: that is asked for beside the verb of the request.
    pub(crate) fn creation(kind: &Kind, namespace: Option<&str>, name: &str) -> Self {
        Self::Resource {
            verb: "create".to_owned(),
            namespace: place(namespace, &kind.group, &kind.plural, Some(name)),
            group: kind.group.clone(),
            resource: kind.plural.clone(),
            subresource: String::new(),
            name: name.to_owned(),
        }
    }

    fn of(method: &Method, uri: &Uri) -> Self {
        let Route::Resource(path) = Route::of(uri.path()) else {
            return Self::Path { verb: method.as_str().to_lowercase(), path: uri.path().to_owned() };
        };
        let options = Options::of(uri.query().unwrap_or_default()).unwrap_or_default();
        let verb = match (method.as_str(), &path.name) {
            ("GET" | "HEAD", _) if path.watch => "watch",
            ("GET" | "HEAD", Some(_)) => "get",
            ("GET" | "HEAD", None) if options.watch => "watch",
            ("GET" | "HEAD", None) => "list",
            ("POST", _) => "create",
            ("PUT", _) => "update",
            ("PATCH", _) => "patch",
            ("DELETE", Some(_)) => "delete",
            ("DELETE", None) => "deletecollection",
            _ => "",
        };
        let namespace = place(path.namespace.as_deref(), &path.group, &path.plural, path.name.as_deref());
        let name = match path.name {
            Some(name) => name,
            // Who asks for all objects of one name asks for that one.
            None if matches!(verb, "list" | "watch") => only_name(&options.field_selector).unwrap_or_default(),
            None => String::new(),
        };
        Self::Resource {
            verb: verb.to_owned(),
            namespace,
            group: path.group,
            resource: path.plural,
            subresource: path.subresource.unwrap_or_default(),
            name,
        }
    }

    pub(super) fn verb(&self) -> &str {
        match self {
            Self::Resource { verb, .. } | Self::Path { verb, .. } => verb,
        }
    }

    /// That it is not allowed, in the words of a kube-apiserver.
    pub(super) fn refused(&self, user: &User) -> Failure {
        let user = quoted(&user.name);
        match self {
            Self::Path { verb, path } => {
                let text = format!("forbidden: User {user} cannot {verb} path {}", quoted(path));
                Failure::not_allowed(text, Details::default())
            }
            Self::Resource { verb, namespace, group, resource, subresource, name } => {
                let what = match name.is_empty() {
                    true => qualified(resource, group),
                    false => format!("{} {}", qualified(resource, group), quoted(name)),
                };
                let beneath = if subresource.is_empty() { String::new() } else { format!("/{subresource}") };
                let place = match namespace.is_empty() {
                    true => "at the cluster scope".to_owned(),
                    false => format!("in the namespace {}", quoted(namespace)),
                };
                let text = format!(
                    "{what} is forbidden: User {user} cannot {verb} resource {} in API group {} {place}",
                    quoted(&format!("{resource}{beneath}")),
                    quoted(group)
                );
                let details =
                    Details { name: name.clone(), group: group.clone(), kind: resource.clone(), ..Details::default() };
                Failure::not_allowed(text, details)
            }
        }
    }
}

/// Where something is. A namespace is in itself.
fn place(namespace: Option<&str>, group: &str, plural: &str, name: Option<&str>) -> String {
    let is_namespace = group.is_empty() && plural == "namespaces";
    namespace.or(name.filter(|_| is_namespace)).unwrap_or_default().to_owned()
}

/// The name that a field selector wants, if it can be one.
fn only_name(selector: &str) -> Option<String> {
    let selector: FieldSelector = selector.parse().ok()?;
    selector.exact("metadata.name").filter(|name| path_segment(name).is_empty()).map(str::to_owned)
}
