//! What is around the objects: version, health, discovery, and the revision counter.

use serde_json::json;
use watchkeeper_apiserver::ApiServer;

use crate::support::*;

#[tokio::test(start_paused = true)]
async fn c49_version_and_health() {
    let server = server();
    let version = server.get("/version").await;
    assert_eq!(version.ok()["gitVersion"], "v1.36.4");
    assert!(version.text().starts_with("{\n  \"major\": \"1\",\n  \"minor\": \"36\","));
    for endpoint in ["healthz", "livez", "readyz"] {
        let plain = server.get(&format!("/{endpoint}")).await;
        assert_eq!((plain.status, plain.text()), (200, "ok"));
        assert_eq!(plain.headers["content-type"], "text/plain; charset=utf-8");
        let verbose = server.get(&format!("/{endpoint}?verbose")).await;
        assert!(verbose.text().starts_with("[+]ping ok\n[+]log ok\n[+]etcd ok\n"), "{}", verbose.text());
        assert!(verbose.text().ends_with(&format!("{endpoint} check passed\n")));
        assert_eq!(server.get(&format!("/{endpoint}/etcd")).await.text(), "ok");
        assert_eq!(server.get(&format!("/{endpoint}/nope")).await.status, 404);
    }
    let excluded = server.get("/readyz?verbose&exclude=etcd&exclude=foo").await;
    assert!(excluded.text().contains("[+]etcd excluded: ok\n"));
    assert!(excluded.text().contains("warn: some health checks cannot be excluded: no matches for \"foo\"\n"));
}

#[tokio::test(start_paused = true)]
async fn c50_revisions_rise_by_one_and_are_never_used_again() {
    let server = server();
    let start = server.storage().revision();
    let map = server.map("a").await;
    let node = server.post("/api/v1/nodes", json!({"metadata": {"name": "n1"}})).await.ok();
    server.merge(&format!("{MAPS}/a"), json!({"data": {"a": "b"}})).await.ok();
    server.delete("/api/v1/nodes/n1").await.ok();
    // Nothing happens: nothing is counted.
    server.merge(&format!("{MAPS}/a"), json!({"data": {"a": "b"}})).await.ok();
    server.delete("/api/v1/nodes/n1").await;
    assert_eq!((revision(&map), revision(&node)), (start + 1, start + 2));
    let revisions: Vec<u64> = server.storage().journal_since(start).iter().map(|entry| entry.revision).collect();
    assert_eq!(revisions, [start + 1, start + 2, start + 3, start + 4]);

    let path = std::env::temp_dir().join(format!("watchkeeper-apiserver-c50-{}.jsonl", std::process::id()));
    server.save(&path).expect("saved");
    let again = ApiServer::new();
    again.load(&path).expect("loaded");
    std::fs::remove_file(&path).expect("removed");
    let kept = again.get(&format!("{MAPS}/a")).await.ok();
    assert_eq!((revision(&kept), kept["data"]["a"].as_str()), (start + 3, Some("b")));
    assert_eq!(again.get("/api/v1/nodes/n1").await.status, 404);
    assert_eq!(revision(&again.map("b").await), start + 5);
    // The time before is not in the file.
    let mut watch = again.watch(&format!("{MAPS}?watch=true&resourceVersion={start}")).await;
    assert_eq!(watch.next().await.expect("an error")["object"]["code"], 410);
}

#[tokio::test(start_paused = true)]
async fn discovery_is_that_of_a_kube_apiserver() {
    let server = server();
    assert_eq!(server.get("/api").await.ok()["versions"], json!(["v1"]));
    let groups = server.get("/apis").await.ok();
    let names: Vec<String> = groups["groups"].as_array().expect("groups").iter().map(|g| text(&g["name"])).collect();
    assert!(names.contains(&"apps".to_owned()) && names.len() >= 20);
    let apps = "{\"kind\":\"APIGroup\",\"apiVersion\":\"v1\",\"name\":\"apps\",\"versions\":[{\"groupVersion\":\"apps/v1\",\
                \"version\":\"v1\"}],\"preferredVersion\":{\"groupVersion\":\"apps/v1\",\"version\":\"v1\"}}\n";
    assert_eq!(server.get("/apis/apps").await.text(), apps);
    let core = server.get("/api/v1").await;
    let prefix = "{\"kind\":\"APIResourceList\",\"groupVersion\":\"v1\",\"resources\":[{\"name\":\"bindings\",\"singularName\":\
                  \"binding\",\"namespaced\":true,\"kind\":\"Binding\",\"verbs\":[\"create\"]},";
    assert!(core.text().starts_with(prefix), "{}", core.text());
    let core = core.ok();
    let resources = core["resources"].as_array().expect("resources");
    let pods = resources.iter().find(|resource| resource["name"] == "pods").expect("pods");
    assert_eq!(pods["shortNames"], json!(["po"]));
    assert!(resources.iter().any(|resource| resource["name"] == "pods/status"));
    assert_eq!(server.get("/apis/nope").await.text(), "404 page not found\n");
    assert_eq!(server.get("/apis/apps/v9").await.failure().0, 404);
    assert_eq!(server.get("/foo").await.status, 404);
}
