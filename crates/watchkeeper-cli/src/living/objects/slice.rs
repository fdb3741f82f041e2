//! EndpointSlices: which pods stand behind a Service.

use serde_json::{Value, json};

use super::NAME_LABEL;
use crate::living::views::{Owner, PodView, ServiceView};

/// A slice has no more.
const MOST: usize = 1000;

/// The slice of a Service: `None` of one without a selector, whose slices are somebody else's business.
pub(in crate::living) fn of_service(service: &ServiceView, pods: &[&PodView]) -> Option<Value> {
    let metadata = &service.metadata;
    if service.spec.selector.is_empty() {
        return None;
    }
    let owner = Owner {
        api_version: "v1".to_owned(),
        kind: "Service".to_owned(),
        name: metadata.name.clone(),
        uid: metadata.uid.clone(),
        controller: true,
        block_owner_deletion: true,
    };
    Some(json!({
        "apiVersion": "discovery.k8s.io/v1",
        "kind": "EndpointSlice",
        "metadata": {
            "name": name(&metadata.name),
            "namespace": metadata.namespace,
            "labels": {
                "kubernetes.io/service-name": metadata.name,
                "endpointslice.kubernetes.io/managed-by": "endpointslice-controller.k8s.io",
                NAME_LABEL: metadata.labels.get(NAME_LABEL).unwrap_or(&metadata.name),
            },
            "ownerReferences": [owner],
        },
        "addressType": "IPv4",
        "endpoints": endpoints(pods),
        "ports": ports(service),
    }))
}

/// What the slice of a Service is called.
pub(in crate::living) fn name(service: &str) -> String {
    format!("{service}-endpoints")
}

fn endpoints(pods: &[&PodView]) -> Value {
    let mut pods: Vec<&&PodView> = pods.iter().filter(|pod| !pod.status.pod_ip.is_empty() && !pod.is_over()).collect();
    // In whichever order they were found, it is the same slice.
    pods.sort_by(|a, b| a.metadata.name.cmp(&b.metadata.name));
    let endpoint = |pod: &&PodView| {
        let (ready, terminating) = (pod.status.is_ready(), pod.metadata.is_deleting());
        json!({
            "addresses": [pod.status.pod_ip],
            "conditions": {"ready": ready && !terminating, "serving": ready, "terminating": terminating},
            "nodeName": pod.spec.node_name,
            "targetRef": {
                "kind": "Pod",
                "name": pod.metadata.name,
                "namespace": pod.metadata.namespace,
                "uid": pod.metadata.uid,
            },
        })
    };
    pods.into_iter().take(MOST).map(endpoint).collect()
}

fn ports(service: &ServiceView) -> Value {
    let port = |port: &crate::living::views::ServicePort| {
        let number = port.target_port.as_i64().unwrap_or(port.port);
        let protocol = if port.protocol.is_empty() { "TCP" } else { &port.protocol };
        json!({"name": port.name, "port": number, "protocol": protocol})
    };
    service.spec.ports.iter().map(port).collect()
}
