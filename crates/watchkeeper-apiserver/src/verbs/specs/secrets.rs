//! What secrets of a type must have.

use serde_json::Value;

use super::{Causes, data, is_empty, text};

/// What is wrong with a secret.
pub(super) fn check(object: &Value, causes: &mut Causes) {
    data(object, causes);
    let part = object.get("data").unwrap_or(&Value::Null);
    let lacks = |key: &str| part.get(key).is_none();
    let mut require = |key: &str| causes.required(format!("data[{key}]"), "");
    match text(object, "type") {
        "kubernetes.io/service-account-token" => {
            let annotations = object.pointer("/metadata/annotations").unwrap_or(&Value::Null);
            if is_empty(annotations, "kubernetes.io/service-account.name") {
                causes.required("metadata.annotations[kubernetes.io/service-account.name]", "");
            }
        }
        "kubernetes.io/dockercfg" if lacks(".dockercfg") => require(".dockercfg"),
        "kubernetes.io/dockerconfigjson" if lacks(".dockerconfigjson") => require(".dockerconfigjson"),
        "kubernetes.io/basic-auth" if lacks("username") && lacks("password") => {
            require("username");
            require("password");
        }
        "kubernetes.io/ssh-auth" if is_empty(part, "ssh-privatekey") => require("ssh-privatekey"),
        "kubernetes.io/tls" => ["tls.crt", "tls.key"].into_iter().filter(|key| lacks(key)).for_each(require),
        _ => {}
    }
}
