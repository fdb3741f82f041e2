//! `watchkeeper serve`, run as people run it.
#![cfg(unix)]

mod program;

use std::fs;
use std::net::TcpListener;
use std::time::{Duration, Instant};

use k8s_openapi::api::core::v1::{ConfigMap, Pod};
use kube_client::api::{DynamicObject, ListParams, PostParams};
use kube_client::core::ApiResource;
use kube_client::{Api, Error};
use program::{Served, run, stderr, stdout};
use serde_json::json;
use tempfile::tempdir;

fn config_map(name: &str) -> ConfigMap {
    serde_json::from_value(json!({"metadata": {"name": name}})).expect("a config map")
}

fn version(map: &ConfigMap) -> u64 {
    map.metadata.resource_version.as_deref().and_then(|version| version.parse().ok()).expect("a version")
}

#[tokio::test]
async fn it_serves_by_its_kubeconfig_until_it_is_told_to_end() {
    let folder = tempdir().expect("a folder");
    let served = Served::start(folder.path(), &[]);
    assert_eq!(served.kubeconfig, folder.path().join("watchkeeper.kubeconfig"));
    let maps: Api<ConfigMap> = Api::namespaced(served.client().await, "default");
    maps.create(&PostParams::default(), &config_map("a")).await.expect("created");
    assert_eq!(maps.list(&ListParams::default()).await.expect("a list").items.len(), 1);

    let kubeconfig = served.kubeconfig.clone();
    let (status, rest, errors) = served.stop();
    assert_eq!((status.code(), rest.as_str()), (Some(0), ""), "{errors}");
    assert!(errors.contains(&format!("export KUBECONFIG={}", kubeconfig.display())), "{errors}");
    assert!(errors.contains("serving an empty cluster at https://127.0.0.1:"), "{errors}");
    assert!(!kubeconfig.exists(), "the kubeconfig is of no use any more");
}

#[tokio::test]
async fn a_saved_state_goes_on_after_a_restart() {
    let folder = tempdir().expect("a folder");
    let arguments = ["--load", "state", "--save", "state", "--keep", "--http"];
    let served = Served::start(folder.path(), &arguments);
    let maps: Api<ConfigMap> = Api::namespaced(served.client().await, "default");
    let before = maps.create(&PostParams::default(), &config_map("a")).await.expect("created");
    let (status, _, errors) = served.stop();
    assert!(status.success() && errors.contains("saved to state") && errors.contains("beginning empty"), "{errors}");
    assert!(errors.contains("kubectl gets 401"), "{errors}");
    assert!(folder.path().join("watchkeeper.kubeconfig").exists(), "it was to be kept");

    let served = Served::start(folder.path(), &arguments);
    let maps: Api<ConfigMap> = Api::namespaced(served.client().await, "default");
    let after = maps.get("a").await.expect("it is still there");
    assert_eq!((version(&after), after.metadata.uid), (version(&before), before.metadata.uid.clone()));
    let new = maps.create(&PostParams::default(), &config_map("b")).await.expect("created");
    assert!(version(&new) > version(&before));
    let (status, _, errors) = served.stop();
    assert!(status.success() && errors.contains("a cluster with 5 objects"), "{errors}");
}

#[tokio::test]
async fn the_state_is_saved_every_now_and_then_too() {
    let folder = tempdir().expect("a folder");
    let served = Served::start(folder.path(), &["--save", "state", "--save-every", "100ms"]);
    let maps: Api<ConfigMap> = Api::namespaced(served.client().await, "default");
    maps.create(&PostParams::default(), &config_map("saved-soon")).await.expect("created");
    let started = Instant::now();
    while !fs::read_to_string(folder.path().join("state")).expect("the state").contains("saved-soon") {
        assert!(started.elapsed() < program::PATIENCE, "it is not saved");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

#[test]
fn a_save_that_fails_is_told_and_is_no_good_end() {
    let folder = tempdir().expect("a folder");
    let states = folder.path().join("states");
    fs::create_dir(&states).expect("a folder");
    let served = Served::start(folder.path(), &["--save", "states/state"]);
    fs::remove_dir_all(&states).expect("it is gone");
    let (status, _, errors) = served.stop();
    assert_eq!(status.code(), Some(1), "{errors}");
    assert!(errors.contains("error: the state is not saved to states/state"), "{errors}");

    // One that cannot work at all is told at once.
    let output = run(folder.path(), &["serve", "--save", "nowhere/state"]);
    assert_eq!(output.status.code(), Some(1));
    fs::write(folder.path().join("notes.txt"), "mine").expect("a file");
    let output = run(folder.path(), &["serve", "--save", "notes.txt"]);
    assert!(stderr(&output).contains("no saved state"), "{}", stderr(&output));
    assert_eq!(fs::read_to_string(folder.path().join("notes.txt")).expect("the file"), "mine");
}

#[tokio::test]
async fn manifests_of_a_folder_are_there_from_the_beginning() {
    let folder = tempdir().expect("a folder");
    let manifests = folder.path().join("manifests");
    fs::create_dir(&manifests).expect("a folder");
    let definition = json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": "orders.shop.example.com"},
        "spec": {"group": "shop.example.com", "scope": "Namespaced", "names": {"kind": "Order", "plural": "orders"},
                 "versions": [{"name": "v1", "served": true, "storage": true,
                               "schema": {"openAPIV3Schema": {"type": "object"}}}]},
    });
    let order =
        json!({"apiVersion": "shop.example.com/v1", "kind": "Order", "metadata": {"name": "o", "namespace": "shop"}});
    fs::write(manifests.join("a.json"), format!("{order}\n{definition}")).expect("a file");
    fs::write(
        manifests.join("b.yaml"),
        "apiVersion: v1\nkind: Pod\nmetadata: {name: web, namespace: shop}\nstatus: {phase: Running}\n---\n\
         apiVersion: v1\nkind: Namespace\nmetadata: {name: shop}\n",
    )
    .expect("a file");
    fs::write(manifests.join("readme.txt"), "not a manifest").expect("a file");
    let served = Served::start(folder.path(), &["--load", "manifests", "--save", "state"]);
    let client = served.client().await;
    let pods: Api<Pod> = Api::namespaced(client.clone(), "shop");
    let pod = pods.get("web").await.expect("the pod");
    assert_eq!(pod.status.and_then(|status| status.phase).as_deref(), Some("Running"));
    let orders = ApiResource {
        group: "shop.example.com".into(),
        version: "v1".into(),
        api_version: "shop.example.com/v1".into(),
        kind: "Order".into(),
        plural: "orders".into(),
    };
    let list = |client| Api::<DynamicObject>::all_with(client, &orders);
    assert_eq!(list(client).list(&ListParams::default()).await.expect("orders").items.len(), 1);
    assert!(served.stop().2.contains("a cluster with 4 objects"));

    // The definition in the saved state makes the kind again.
    let served = Served::start(folder.path(), &["--load", "state"]);
    let orders = list(served.client().await).list(&ListParams::default()).await.expect("orders");
    assert_eq!(orders.items.len(), 1);
}

#[test]
fn what_cannot_be_loaded_is_named() {
    let folder = tempdir().expect("a folder");
    let pod = "apiVersion: v1\nkind: Pod\nmetadata: {name: web, namespace: shop}\n";
    for (name, text, needles) in [
        ("a.yaml", pod.to_owned(), ["a.yaml, document 1: Pod shop/web", "--namespaces on-demand"]),
        ("b.yaml", format!("{pod}---\nkind: [\n"), ["b.yaml cannot be loaded", "line"]),
        ("c.yaml", "apiVersion: v1\nkind: Pdo\nmetadata: {name: a}\n".into(), ["document 1: Pdo a", "no kind"]),
        (
            "d.yaml",
            "apiVersion: v1\nkind: Node\nmetadata: {name: \"\\e[2J\"}\n".into(),
            ["Node ^[[2J", "metadata.name"],
        ),
        ("e", "{\"revision\": 7}\n{\"group\": 1}\n".into(), ["saved state e cannot be loaded", "line 2"]),
        ("f.json", "{}".into(), ["something without a name", "it has no kind"]),
        ("g.yaml", String::new(), ["g.yaml cannot be loaded", "no object"]),
    ] {
        fs::write(folder.path().join(name), text).expect("a file");
        let output = run(folder.path(), &["serve", "--load", name]);
        let errors = stderr(&output);
        assert_eq!((output.status.code(), stdout(&output).as_str()), (Some(1), ""), "{errors}");
        assert!(needles.iter().all(|needle| errors.contains(needle)) && !errors.contains('\x1b'), "{name}: {errors}");
    }
    let output = run(folder.path(), &["serve", "--load", "nothing"]);
    assert_eq!(output.status.code(), Some(1));
    assert!(!folder.path().join("watchkeeper.kubeconfig").exists());
}

#[tokio::test]
async fn faults_of_a_file_happen() {
    let folder = tempdir().expect("a folder");
    let rules =
        "- on: {verb: list, kind: configmaps, nth: 2}\n  then: {status: {code: 429, reason: TooManyRequests}}\n";
    fs::write(folder.path().join("faults.yaml"), rules).expect("a file");
    let served = Served::start(folder.path(), &["--faults", "faults.yaml"]);
    let maps: Api<ConfigMap> = Api::all(served.client().await);
    assert!(maps.list(&ListParams::default()).await.is_ok());
    let refused = maps.list(&ListParams::default()).await;
    assert!(matches!(&refused, Err(Error::Api(status)) if status.code == 429), "{refused:?}");
    assert!(maps.list(&ListParams::default()).await.is_ok());

    for (rules, needles) in [
        ("- on: {verb: list}\n  thne: refuse\n", ["thne", "line 2"]),
        ("- on: {kind: pdos}\n  then: refuse\n", ["pdos", "rule 1"]),
    ] {
        fs::write(folder.path().join("faults.yaml"), rules).expect("a file");
        let output = run(folder.path(), &["serve", "--faults", "faults.yaml", "--kubeconfig", "other"]);
        let errors = stderr(&output);
        assert_eq!(output.status.code(), Some(1), "{errors}");
        assert!(needles.iter().all(|needle| errors.contains(needle)), "{errors}");
    }
}

#[test]
fn what_is_taken_is_left_alone() {
    let folder = tempdir().expect("a folder");
    let taken = TcpListener::bind("127.0.0.1:0").expect("a port");
    let port = taken.local_addr().expect("its address").port().to_string();
    let output = run(folder.path(), &["serve", "--port", &port]);
    assert_eq!(output.status.code(), Some(1));
    assert!(stderr(&output).contains("leave --port out"), "{}", stderr(&output));

    let output = run(folder.path(), &["serve", "--address", "0.0.0.0"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(stderr(&output).contains("--allow-other-addresses"), "{}", stderr(&output));

    fs::write(folder.path().join("config"), "apiVersion: v1\nkind: Config\n").expect("a file");
    let output = run(folder.path(), &["serve", "--kubeconfig", "config"]);
    assert_eq!(output.status.code(), Some(1));
    assert_eq!(fs::read_to_string(folder.path().join("config")).expect("the file").lines().count(), 2);

    let served = Served::start(folder.path(), &[]);
    let text = served.config_text();
    let output = run(folder.path(), &["serve"]);
    assert!(stderr(&output).contains("its server is running"), "{}", stderr(&output));
    assert_eq!(served.config_text(), text);
}

#[tokio::test]
async fn a_second_signal_does_not_wait() {
    let folder = tempdir().expect("a folder");
    fs::write(folder.path().join("faults.yaml"), "- on: {kind: pods}\n  then: {stall: {}}\n").expect("a file");
    let served = Served::start(folder.path(), &["--faults", "faults.yaml"]);
    let pods: Api<Pod> = Api::all(served.client().await);
    let hanging = tokio::spawn(async move { pods.list(&ListParams::default()).await.is_ok() });
    tokio::time::sleep(Duration::from_millis(300)).await;
    served.terminate();
    // It now waits for the answer, for five seconds.
    tokio::time::sleep(Duration::from_millis(300)).await;
    let (status, ..) = served.stop();
    assert_eq!(status.code(), Some(130));
    hanging.abort();
}

#[test]
fn a_saved_state_and_manifests_are_both_there_in_any_order() {
    let folder = tempdir().expect("a folder");
    let map = |name: &str| format!("apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: {name}, namespace: default}}\n");
    fs::write(folder.path().join("old.yaml"), map("old")).expect("a file");
    fs::write(folder.path().join("new.yaml"), map("new")).expect("a file");
    assert!(Served::start(folder.path(), &["--load", "old.yaml", "--save", "state"]).stop().0.success());
    let served = Served::start(folder.path(), &["--load", "new.yaml", "--load", "state", "--save", "both"]);
    assert!(served.stop().0.success());
    let both = fs::read_to_string(folder.path().join("both")).expect("the state");
    assert!(both.contains(r#""name":"old""#) && both.contains(r#""name":"new""#), "{both}");

    let output = run(folder.path(), &["serve", "--load", "state", "--load", "both"]);
    assert_eq!(output.status.code(), Some(2), "{}", stderr(&output));
}

#[tokio::test]
async fn faults_happen_to_clients_and_not_to_the_life_in_the_cluster() {
    let folder = tempdir().expect("a folder");
    fs::write(folder.path().join("faults.yaml"), "- on: {nth: 1}\n  then: {status: {code: 429}}\n").expect("a file");
    let arguments = ["--demo", "--objects", "50", "--rate", "50", "--faults", "faults.yaml"];
    let served = Served::start(folder.path(), &arguments);
    // Life goes on, and asks for a lot.
    tokio::time::sleep(Duration::from_secs(1)).await;
    let pods: Api<Pod> = Api::all(served.client().await);
    let refused = pods.list(&ListParams::default()).await;
    assert!(matches!(&refused, Err(Error::Api(status)) if status.code == 429), "{refused:?}");
}

#[test]
fn who_does_not_want_to_wait_for_the_beginning_ends_it_and_nothing_is_saved() {
    let folder = tempdir().expect("a folder");
    let many: String = (0..60_000)
        .map(|number| {
            format!("---\napiVersion: v1\nkind: ConfigMap\nmetadata: {{name: m{number}, namespace: default}}\n")
        })
        .collect();
    fs::write(folder.path().join("many.yaml"), many).expect("a file");
    for arguments in [["--load", "many.yaml", "--save", "state"], ["--demo", "--objects=300000", "--save", "state"]] {
        let mut child =
            program::watchkeeper(folder.path()).arg("serve").args(arguments).spawn().expect("the program starts");
        std::thread::sleep(Duration::from_millis(500));
        let sent = std::process::Command::new("kill").args(["-TERM", &child.id().to_string()]).status();
        assert!(sent.is_ok_and(|status| status.success()));
        let started = Instant::now();
        let status = child.wait().expect("its status");
        assert!(started.elapsed() < Duration::from_secs(5), "it goes on for {:?}", started.elapsed());
        assert_eq!(status.code(), Some(130));
        assert!(!folder.path().join("state").exists() && !folder.path().join("watchkeeper.kubeconfig").exists());
    }
}

#[test]
fn of_two_that_begin_at_once_one_has_the_kubeconfig() {
    let folder = tempdir().expect("a folder");
    let start = || program::watchkeeper(folder.path()).arg("serve").spawn().expect("the program starts");
    let mut both = [start(), start()];
    let started = Instant::now();
    let refused = loop {
        let ended = both.iter_mut().position(|child| child.try_wait().expect("its status").is_some());
        if let Some(ended) = ended {
            break ended;
        }
        assert!(started.elapsed() < program::PATIENCE, "both think that it is theirs");
        std::thread::sleep(Duration::from_millis(20));
    };
    let [first, second] = &mut both;
    let (refused, other) = if refused == 0 { (first, second) } else { (second, first) };
    assert_eq!(refused.wait().expect("its status").code(), Some(1));
    assert!(other.try_wait().expect("its status").is_none());
    other.kill().expect("it was running");
    other.wait().expect("its status");
}

#[tokio::test]
async fn a_state_with_a_definition_that_makes_no_kind_goes_on_too() {
    let folder = tempdir().expect("a folder");
    let definition = json!({"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": "foos.example.com", "resourceVersion": "2"}, "spec": {}});
    let line = json!({"group": "apiextensions.k8s.io", "resource": "customresourcedefinitions"}).to_string();
    let line = format!("{},\"object\":{definition}}}", line.trim_end_matches('}'));
    fs::write(folder.path().join("state"), format!("{{\"revision\":9}}\n{line}\n")).expect("a file");
    let (status, _, errors) = Served::start(folder.path(), &["--load", "state"]).stop();
    assert!(status.success() && errors.contains("makes no kind"), "{errors}");
}
