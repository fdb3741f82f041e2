//! How fast are writes? Creates and updates pods and config maps by direct calls, with managed fields and without.
//!
//! ```text
//! cargo run --release -p watchkeeper-apiserver --example writes
//! ```

use std::time::Instant;

use serde_json::{Value, json};
use watchkeeper_apiserver::ApiServer;

const OBJECTS: usize = 10_000;

/// Makes an object of a number and something that changes.
type Object = fn(usize, &str) -> Value;

fn pod(i: usize, image: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": format!("pod-{i}"), "namespace": "default",
            "labels": {"app": "web", "tier": "front"}, "annotations": {"example.com/owner": "team-a"}},
        "spec": {"containers": [{"name": "web", "image": image, "ports": [{"containerPort": 80}],
            "env": [{"name": "MODE", "value": "production"}, {"name": "REGION", "value": "north"}],
            "resources": {"limits": {"cpu": "500m", "memory": "256Mi"}, "requests": {"cpu": "100m", "memory": "128Mi"}},
            "readinessProbe": {"httpGet": {"path": "/ready", "port": 80}}}],
            "volumes": [{"name": "data", "emptyDir": {}}]}})
}

fn map(i: usize, value: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": format!("map-{i}"), "namespace": "default"},
        "data": {"a": value, "b": "2", "c": "3"}})
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    for managed_fields in [true, false] {
        let server = ApiServer::builder().seed(1).managed_fields(managed_fields).build();
        let kinds = [("pods", pod as Object, "pods"), ("config maps", map, "configmaps")];
        for (name, object, plural) in kinds {
            let began = Instant::now();
            for i in 0..OBJECTS {
                server.create(object(i, "one"))?;
            }
            let created = began.elapsed();
            let began = Instant::now();
            for i in 0..OBJECTS {
                put(&server, plural, object(i, "two")).await?;
            }
            let updated = began.elapsed();
            let rate = |elapsed: std::time::Duration| OBJECTS as f64 / elapsed.as_secs_f64();
            println!(
                "{name}, managed fields {managed_fields}: {:.0} creates/s, {:.0} updates/s",
                rate(created),
                rate(updated)
            );
        }
    }
    Ok(())
}

async fn put(server: &ApiServer, plural: &str, object: Value) -> Result<(), Box<dyn std::error::Error>> {
    use tower::ServiceExt;
    let name = object["metadata"]["name"].as_str().unwrap_or_default();
    let request = http::Request::put(format!("/api/v1/namespaces/default/{plural}/{name}"))
        .header("content-type", "application/json")
        .body(http_body_util::Full::new(bytes::Bytes::from(object.to_string())))?;
    let response = server.service().oneshot(request).await.map_err(|error| error.to_string())?;
    assert!(response.status().is_success(), "{}", response.status());
    Ok(())
}
