//! What a path means.

use percent_encoding::percent_decode_str;

/// The places of the server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Route {
    /// `/`
    Index,
    /// `/version`
    Version,
    /// `/healthz`, `/livez`, `/readyz`, and one check of them.
    Health { endpoint: String, check: Option<String> },
    /// `/openapi/v2`
    OpenApiV2,
    /// `/openapi/v3`, and one document of it.
    OpenApiV3 { path: Option<String> },
    /// `/api`
    CoreVersions,
    /// `/apis`
    Groups,
    /// `/apis/<group>`
    Group(String),
    /// `/api/v1`, `/apis/<group>/<version>`
    Resources { group: String, version: String },
    /// Anything beneath a version.
    Resource(ResourcePath),
    /// A path beneath a version that no resource can have.
    NoResource { group: String },
    /// Anything else.
    Unknown,
}

/// A collection, an object of it, or something beneath that object.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct ResourcePath {
    pub(crate) group: String,
    pub(crate) version: String,
    pub(crate) namespace: Option<String>,
    pub(crate) plural: String,
    pub(crate) name: Option<String>,
    pub(crate) subresource: Option<String>,
    /// The old way to ask for a watch: `/api/v1/watch/pods`.
    pub(crate) watch: bool,
}

impl Route {
    /// Reads a path.
    pub(crate) fn of(path: &str) -> Self {
        // As in Go, an escaped slash is one.
        let path = percent_decode_str(path).decode_utf8_lossy();
        let path = path.strip_prefix('/').unwrap_or(&path);
        // Beneath the API a slash at the end means nothing; elsewhere it makes another path.
        let is_lenient = path.starts_with("api") || path == "version/";
        let path = if is_lenient { path.strip_suffix('/').unwrap_or(path) } else { path };
        let segments: Vec<&str> = path.split('/').collect();
        match segments.as_slice() {
            [""] => Self::Index,
            ["version"] => Self::Version,
            [endpoint @ ("healthz" | "livez" | "readyz")] => {
                Self::Health { endpoint: (*endpoint).to_owned(), check: None }
            }
            [endpoint @ ("healthz" | "livez" | "readyz"), check @ ..] => {
                Self::Health { endpoint: (*endpoint).to_owned(), check: Some(check.join("/")) }
            }
            ["openapi", "v2"] => Self::OpenApiV2,
            ["openapi", "v3"] => Self::OpenApiV3 { path: None },
            ["openapi", "v3", path @ ..] => Self::OpenApiV3 { path: Some(path.join("/")) },
            ["api"] => Self::CoreVersions,
            ["api", version] => Self::Resources { group: String::new(), version: (*version).to_owned() },
            ["api", version, rest @ ..] => resource("", version, rest),
            ["apis"] => Self::Groups,
            ["apis", group] if !group.is_empty() => Self::Group((*group).to_owned()),
            ["apis", "", ..] => Self::Unknown,
            ["apis", group, version] => Self::Resources { group: (*group).to_owned(), version: (*version).to_owned() },
            ["apis", group, version, rest @ ..] => resource(group, version, rest),
            _ => Self::Unknown,
        }
    }
}

fn resource(group: &str, version: &str, rest: &[&str]) -> Route {
    let nowhere = Route::NoResource { group: group.to_owned() };
    // A namespace without a name is all of them.
    let rest = match rest {
        ["namespaces", "", tail @ ..] if !tail.is_empty() => tail,
        rest => rest,
    };
    if rest.iter().any(|segment| segment.is_empty()) {
        return nowhere;
    }
    let (watch, rest) = match rest {
        ["watch", rest @ ..] if !rest.is_empty() => (true, rest),
        rest => (false, rest),
    };
    // What stands behind `namespaces/<name>` is a collection in it, unless it is a part of the namespace itself.
    let (namespace, rest) = match rest {
        ["namespaces", _] | ["namespaces", _, "status" | "finalize"] => (None, rest),
        ["namespaces", namespace, rest @ ..] if !rest.is_empty() => (Some((*namespace).to_owned()), rest),
        rest => (None, rest),
    };
    let (plural, name, subresource) = match rest {
        [plural] => (plural, None, None),
        [plural, name] => (plural, Some(name), None),
        [plural, name, subresource] => (plural, Some(name), Some(subresource)),
        _ => return nowhere,
    };
    Route::Resource(ResourcePath {
        group: group.to_owned(),
        version: version.to_owned(),
        namespace,
        plural: (*plural).to_owned(),
        name: name.map(|name| (*name).to_owned()),
        subresource: subresource.map(|subresource| (*subresource).to_owned()),
        watch,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `namespace plural name subresource` of a path, `-` for what is not there.
    fn shown(path: &str) -> String {
        match Route::of(path) {
            Route::Resource(path) => {
                let or_dash = |part: Option<String>| part.unwrap_or_else(|| "-".to_owned());
                let watch = if path.watch { "watch " } else { "" };
                let (namespace, name) = (or_dash(path.namespace), or_dash(path.name));
                format!("{watch}{namespace} {} {name} {}", path.plural, or_dash(path.subresource))
            }
            route => format!("{route:?}"),
        }
    }

    #[test]
    fn paths_name_collections_objects_and_what_is_beneath_them() {
        for (path, expected) in [
            ("/api/v1/pods", "- pods - -"),
            ("/api/v1/pods/", "- pods - -"),
            ("/api/v1/namespaces", "- namespaces - -"),
            ("/api/v1/namespaces/shop", "- namespaces shop -"),
            ("/api/v1/namespaces/shop/status", "- namespaces shop status"),
            ("/api/v1/namespaces/shop/finalize", "- namespaces shop finalize"),
            ("/api/v1/namespaces/shop/pods", "shop pods - -"),
            ("/api/v1/namespaces/shop/pods/web-0", "shop pods web-0 -"),
            ("/apis/apps/v1/namespaces/shop/deployments/web/scale", "shop deployments web scale"),
            ("/api/v1/watch/namespaces/shop/pods", "watch shop pods - -"),
            ("/apis/rbac.authorization.k8s.io/v1/clusterroles/system%3Anode", "- clusterroles system:node -"),
            ("/api/v1/namespaces//pods", "- pods - -"),
            ("/api/v1/namespaces/shop/pods/a%2Fstatus", "shop pods a status"),
            ("/api/v1//pods", r#"NoResource { group: "" }"#),
            ("/api/v1/namespaces/shop/pods/a/b/c", r#"NoResource { group: "" }"#),
            ("/apis/apps", r#"Group("apps")"#),
            ("/", "Index"),
            ("", "Index"),
            ("/foo", "Unknown"),
            ("/version/", "Version"),
            ("/livez/ping", r#"Health { endpoint: "livez", check: Some("ping") }"#),
        ] {
            assert_eq!(shown(path), expected, "{path}");
        }
    }
}
