//! Each example does what it says on its server in memory, and ends by itself.

use std::cell::RefCell;
use std::collections::BTreeSet;

thread_local! {
    /// What an example has printed. A test has one thread.
    static PRINTED: RefCell<Vec<String>> = const { RefCell::new(Vec::new()) };
}

fn record(line: String) {
    PRINTED.with_borrow_mut(|printed| printed.push(line));
}

/// Stands for the `println!` of the examples, which therefore follow.
macro_rules! println {
    ($($argument:tt)*) => {
        $crate::record(format!($($argument)*))
    };
}

#[allow(dead_code, unreachable_pub, reason = "main is for the program")]
#[path = "../controller.rs"]
mod controller;
#[allow(dead_code, unreachable_pub, reason = "main is for the program")]
#[path = "../delta_fifo.rs"]
mod delta_fifo;
#[allow(dead_code, unreachable_pub, reason = "main is for the program")]
#[path = "../dynamic.rs"]
mod dynamic;
#[allow(dead_code, unreachable_pub, reason = "main is for the program")]
#[path = "../factory.rs"]
mod factory;
#[allow(dead_code, unreachable_pub, reason = "main is for the program")]
#[path = "../few_fields.rs"]
mod few_fields;
#[allow(dead_code, unreachable_pub, reason = "main is for the program")]
#[path = "../handlers_come_and_go.rs"]
mod handlers_come_and_go;
#[allow(dead_code, unreachable_pub, reason = "main is for the program")]
#[path = "../health.rs"]
mod health;
#[allow(dead_code, unreachable_pub, reason = "main is for the program")]
#[path = "../informer.rs"]
mod informer;
#[allow(dead_code, unreachable_pub, reason = "main is for the program")]
#[path = "../metadata_only.rs"]
mod metadata_only;
#[allow(dead_code, unreachable_pub, reason = "main is for the program")]
#[path = "../metrics.rs"]
mod metrics;
#[allow(dead_code, unreachable_pub, reason = "main is for the program")]
#[path = "../namespaces.rs"]
mod namespaces;
#[allow(dead_code, unreachable_pub, reason = "main is for the program")]
#[path = "../work_queue.rs"]
mod work_queue;

/// Runs an example, and gives what it printed.
async fn printed(example: impl Future<Output = anyhow::Result<()>>) -> Vec<String> {
    example.await.unwrap();
    PRINTED.take()
}

#[tokio::test(start_paused = true)]
async fn controller_keeps_the_settings_right() {
    let lines = printed(controller::in_memory()).await;
    let expected = [
        "shop: created for team red",
        "somebody changes it",
        "shop: put right for team red",
        "somebody deletes it",
        "shop: created for team red",
        "the shop goes to another team",
        "shop: put right for team blue",
        "settings: Some({\"team\": \"blue\"})",
        "the shop goes to nobody",
        "shop: deleted",
    ];
    assert_eq!(lines, expected);
}

#[tokio::test(start_paused = true)]
async fn delta_fifo_prints_the_deltas() {
    let lines = printed(delta_fifo::in_memory()).await;
    let expected = [
        "Start syncing...",
        "Type:Replaced: Name:db-0",
        "Type:Replaced: Name:web-0",
        "Type:Replaced: Name:web-1",
        "Type:Added: Name:web-2",
        "Type:Updated: Name:web-0",
        "Type:Deleted: Name:db-0",
        "3 pods are left in the store",
    ];
    assert_eq!(lines, expected);
}

#[tokio::test(start_paused = true)]
async fn dynamic_follows_a_kind_that_has_no_type() {
    let lines = printed(dynamic::in_memory()).await;
    let expected = [
        "shop.example.com/v1/Order is orders",
        "1 there",
        r#"is shop/first: {"customer":"ada"}"#,
        r#"is shop/second: {"customer":"ada"}"#,
        r#"is shop/first: {"customer":"grace"}"#,
        "1 of ada",
    ];
    assert_eq!(lines, expected);
}

#[tokio::test(start_paused = true)]
async fn factory_shares_its_informers() {
    let lines = printed(factory::in_memory()).await;
    let copies: Vec<_> = lines.iter().filter_map(|line| line.strip_prefix("there is a copy of ")).collect();
    assert_eq!(copies, ["configmaps in namespace shop", "pods", "deployments.apps"]);
    let webs: Vec<_> = lines.iter().filter(|line| line.starts_with("web has")).collect();
    assert_eq!(webs, ["web has 2 of 3 pods", "web has 3 of 3 pods"]);
    assert_eq!(lines.iter().filter(|line| line.starts_with("+ ")).count(), 3);
}

#[tokio::test(start_paused = true)]
async fn few_fields_are_a_view_of_the_same_informer() {
    let lines = printed(few_fields::in_memory()).await;
    assert_eq!(lines, ["node-1: 2 running", "node-2: 1 running", "3 pods, 1 informer"]);
}

#[tokio::test(start_paused = true)]
async fn handlers_come_and_go_without_a_gap() {
    let lines = printed(handlers_come_and_go::in_memory()).await;
    let of = |handler: &str| -> Vec<&str> {
        let prefix = format!("  {handler}: shop/");
        lines.iter().filter_map(|line| line.strip_prefix(&prefix)).collect()
    };
    assert_eq!(of("early"), ["web-0 is there", "web-1 is there", "web-2 is new"]);
    assert_eq!(
        of("late"),
        ["web-0 is there", "web-1 is there", "web-2 is new", "web-0 has changed", "web-2 is gone", "web-3 is new"]
    );
    assert_eq!(of("node-1"), ["web-2 is there", "web-2 is gone"]);
    assert_eq!(lines.last().unwrap(), "1 handler is left");
}

#[tokio::test(start_paused = true)]
async fn health_sees_the_server_go_and_come_back() {
    let lines = printed(health::in_memory()).await;
    let changes: Vec<&str> = lines.iter().map(|line| line.split(" (").next().unwrap()).collect();
    let expected = [
        "before the start: ready false, live true",
        "now: ready false, live true",
        "now: ready true, live true",
        "the server goes away",
        "now: ready true, live true",
        "now: ready true, live false",
        "the server comes back",
        "now: ready true, live false",
        "now: ready true, live true",
    ];
    assert_eq!(changes, expected, "{lines:#?}");
    assert!(lines[5].contains("BackingOff") && lines[5].contains("connection refused"), "{}", lines[5]);
}

#[tokio::test(start_paused = true)]
async fn informer_finds_by_index_and_tells_all_handlers() {
    let mut lines = printed(informer::in_memory()).await;
    let end = lines.split_off(5);
    // Which of the first three comes first is the server's business.
    lines[..3].sort();
    assert_eq!(lines[..3], ["+ bank/db-0 (Initial)", "+ shop/web-0 (Initial)", "+ shop/web-1 (Initial)"]);
    lines[3..].sort();
    assert_eq!(lines[3..], ["on node-1: bank/db-0", "on node-1: shop/web-0"]);
    assert_eq!(end, ["+ shop/web-2 (Watch)", "~ shop/web-0", "- bank/db-0", "3 pods are left, 1 were deleted"]);
}

#[tokio::test(start_paused = true)]
async fn metadata_only_leaves_the_rest_with_the_server() {
    let lines = printed(metadata_only::in_memory()).await;
    assert_eq!(lines.len(), 2);
    for (line, name) in lines.iter().zip(["colours", "fonts"]) {
        assert!(line.starts_with(&format!("shop/{name}: of design, ")), "{line}");
        let bytes: usize = line.split(' ').nth(3).unwrap().parse().unwrap();
        assert!(bytes < 1_000, "the data has 10,000 bytes: {line}");
    }
}

#[tokio::test(start_paused = true)]
async fn metrics_show_each_informer() {
    let lines = printed(metrics::in_memory()).await;
    let value = |metric: &str, resource: &str| {
        let (metric, label) = (format!("{metric}{{"), format!("resource=\"{resource}\""));
        let line = lines.iter().find(|line| line.starts_with(&metric) && line.contains(&label));
        line.and_then(|line| line.rsplit(' ').next()).unwrap_or("nothing").to_owned()
    };
    assert_eq!(value("informer_store_objects", "pods"), "3");
    assert_eq!(value("informer_store_objects", "pods in namespace shop"), "2");
    assert_eq!(value("informer_delivered_notifications_total", "pods"), "3");
    assert_eq!(value("informer_lists_total", "pods"), "1");
}

#[tokio::test(start_paused = true)]
async fn namespaces_are_watched_one_by_one() {
    let lines = printed(namespaces::in_memory()).await;
    let expected = [
        "bank: Watching, pods: 1",
        "empty: Watching, pods: 0",
        "shop: Watching, pods: 2",
        "and then:",
        "bank: Watching, pods: 1",
        "empty: Watching, pods: 1",
        "shop: Watching, pods: 2",
    ];
    assert_eq!(lines, expected);
}

#[tokio::test(start_paused = true)]
async fn work_queue_sends_each_mail_once_and_tries_again() {
    let lines = printed(work_queue::in_memory()).await;
    let expected = [
        "10 ms: alarm is sent",
        "10 ms: ada is sent",
        "10 ms: grace: the mail server is busy",
        "20 ms: barbara is sent",
        "20 ms: newsletter is sent",
        "120 ms: grace: the mail server is busy",
        "330 ms: grace is sent",
        "1010 ms: reminder is sent",
        "2000 ms: all is done",
    ];
    assert_eq!(lines, expected);
}

#[test]
fn each_example_that_needs_no_cluster_is_tested() {
    let folder = std::fs::read_dir(env!("CARGO_MANIFEST_DIR")).unwrap();
    let names = folder.map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let examples: BTreeSet<String> = names.filter_map(|name| Some(name.strip_suffix(".rs")?.to_owned())).collect();
    let here = include_str!("examples.rs");
    let untested: Vec<_> =
        examples.iter().filter(|name| !here.contains(&format!("printed({name}::in_memory())"))).collect();
    // The README's program has a test of its own.
    assert_eq!(untested, ["readme"]);
}
