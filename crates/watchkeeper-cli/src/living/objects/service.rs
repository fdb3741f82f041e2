//! Services.

use serde_json::{Value, json};

use super::NAME_LABEL;
use crate::living::world::App;

/// The Service of an application, under this address.
pub(in crate::living) fn of_app(app: &App, ip: &str) -> Value {
    json!({
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": app.name, "namespace": app.namespace, "labels": app.labels()},
        "spec": {
            "type": "ClusterIP",
            "clusterIP": ip,
            "clusterIPs": [ip],
            "ipFamilies": ["IPv4"],
            "ipFamilyPolicy": "SingleStack",
            "internalTrafficPolicy": "Cluster",
            "sessionAffinity": "None",
            "selector": {NAME_LABEL: app.name},
            "ports": [{"name": "http", "port": 80, "targetPort": app.port, "protocol": "TCP"}],
        },
        "status": {"loadBalancer": {}},
    })
}
