//! Pods: what a template makes.

use serde_json::{Value, json};

use crate::living::views::Owner;

/// A new pod of a template. The server makes up its name.
pub(in crate::living) fn of_template(template: &Value, namespace: &str, owner: &Owner) -> Value {
    let prefix = format!("{}-", owner.name);
    json!({
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "generateName": prefix,
            "namespace": namespace,
            "labels": template.pointer("/metadata/labels").cloned().unwrap_or_else(|| json!({})),
            "annotations": template.pointer("/metadata/annotations").cloned().unwrap_or_else(|| json!({})),
            "ownerReferences": [owner],
        },
        "spec": template.get("spec").cloned().unwrap_or_else(|| json!({})),
    })
}
