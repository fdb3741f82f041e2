//! What each format prints, as a person sees it.

use std::sync::Arc;

use jiff::tz::{TimeZone, offset};
use serde_json::{Value, json};

use super::samples::{change, column, deployments, leases, modified, pods, secrets, time};
use super::*;

fn options(format: &str) -> PrintOptions {
    let zone = Times::In(TimeZone::fixed(offset(1)));
    PrintOptions { format: format.parse().unwrap_or_default(), times: zone, ..PrintOptions::default() }
}

fn pod(name: &str, phase: &str) -> Value {
    json!({
        "apiVersion": "v1", "kind": "Pod",
        "metadata": {"name": name, "namespace": "shop", "resourceVersion": "7", "labels": {"app": "web", "example.com/tier": "front"}},
        "status": {"phase": phase},
    })
}

fn pod_columns() -> Vec<Column> {
    [("Name", 0), ("Ready", 0), ("Status", 0), ("IP", 1)].map(|(name, priority)| column(name, priority)).into()
}

fn pod_change(what: ChangeType, name: &str, phase: &str) -> Change {
    Change {
        cells: vec![json!(name), json!("1/1"), json!(phase), json!("10.0.0.7")],
        ..change(what, pods(), pod(name, phase))
    }
}

fn web(replicas: u32) -> Value {
    json!({
        "apiVersion": "apps/v1", "kind": "Deployment",
        "metadata": {"name": "web", "namespace": "shop", "resourceVersion": replicas.to_string(), "generation": replicas},
        "spec": {"replicas": replicas, "template": {"spec": {"containers": [{"name": "app", "image": format!("web:{replicas}")}, {"name": "log", "image": "log:1"}]}}},
    })
}

fn secret(password: &str) -> Value {
    let applied = format!("{{\"data\":{{\"password\":\"{password}\"}}}}");
    let annotations = json!({"kubectl.kubernetes.io/last-applied-configuration": applied});
    json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "db", "namespace": "shop", "annotations": annotations}, "data": {"password": password}, "stringData": {"token": password}})
}

/// What a printer makes of one call.
fn printed(
    options: PrintOptions,
    print: impl FnOnce(&mut Printer, &mut Vec<u8>) -> Result<Shown, PrintError>,
) -> String {
    let mut out = Vec::new();
    let result = print(&mut Printer::new(options), &mut out);
    let text = String::from_utf8_lossy(&out).into_owned();
    match result {
        Ok(_) => text,
        Err(error) => format!("{text}error: {error}\n"),
    }
}

fn watched(options: PrintOptions, columns: &[Column], changes: Vec<Change>) -> String {
    printed(options, |printer, out| {
        let mut shown = Shown::default();
        for change in &changes {
            shown += printer.change(out, columns, change)?;
        }
        Ok(shown)
    })
}

fn listed(options: PrintOptions, changes: Vec<Change>, single: bool) -> String {
    printed(options, |printer, out| printer.list(out, vec![Group { columns: pod_columns(), changes }], single))
}

#[test]
fn rows_of_a_watch_are_aligned_with_the_first_ones_and_grow() {
    let printed = printed(options(""), |printer, out| {
        let initial = vec![
            pod_change(ChangeType::Added, "web-1", "Running"),
            pod_change(ChangeType::Added, "checkout-7f9c", "Running"),
        ];
        printer.changes(out, &pod_columns(), initial)?;
        printer.change(
            out,
            &pod_columns(),
            &Change { time: time(61_877), ..pod_change(ChangeType::Modified, "web-1", "ContainerCreating") },
        )?;
        printer.change(
            out,
            &pod_columns(),
            &pod_change(ChangeType::Deleted, "a-much-longer-name-than-all", "Succeeded"),
        )?;
        printer.change(out, &pod_columns(), &pod_change(ChangeType::Added, "web-2", "Pending"))
    });
    insta::assert_snapshot!(printed, @r"
    TIME         EVENT    NAME            READY   STATUS
    12:13:04.123 ADDED    web-1           1/1     Running
    12:13:04.123 ADDED    checkout-7f9c   1/1     Running
    12:14:06.000 MODIFIED web-1           1/1     ContainerCreating
    12:13:04.123 DELETED  a-much-longer-name-than-all   1/1     Succeeded
    12:13:04.123 ADDED    web-2                         1/1     Pending
    ");
}

#[test]
fn tables_have_the_columns_that_were_asked_for() {
    let asked = PrintOptions {
        show_kind: true,
        show_namespace: true,
        show_labels: true,
        label_columns: vec!["example.com/tier".to_owned(), "missing".to_owned()],
        ..options("wide")
    };
    let printed = watched(asked, &pod_columns(), vec![pod_change(ChangeType::Added, "web-1", "Running")]);
    insta::assert_snapshot!(printed, @r"
    TIME         EVENT    NAMESPACE   NAME        READY   STATUS    IP         TIER    MISSING   LABELS
    12:13:04.123 ADDED    shop        pod/web-1   1/1     Running   10.0.0.7   front             app=web,example.com/tier=front
    ");
}

#[test]
fn a_kind_with_other_columns_has_its_own_header() {
    let printed = printed(PrintOptions { show_kind: true, times: Times::Hidden, ..options("") }, |printer, out| {
        let columns = [column("Name", 0), column("Up-to-date", 0)];
        let deployment =
            Change { cells: vec![json!("web"), json!(3)], ..change(ChangeType::Added, deployments(), web(3)) };
        printer.change(out, &pod_columns(), &pod_change(ChangeType::Added, "web-1", "Running"))?;
        printer.change(out, &columns, &deployment)?;
        printer.change(out, &pod_columns(), &pod_change(ChangeType::Added, "web-2", "Running"))
    });
    insta::assert_snapshot!(printed, @r"
    EVENT    NAME        READY   STATUS
    ADDED    pod/web-1   1/1     Running
    EVENT    NAME                  UP-TO-DATE
    ADDED    deployment.apps/web   3
    EVENT    NAME        READY   STATUS
    ADDED    pod/web-2   1/1     Running
    ");
}

#[test]
fn hostile_cells_control_nothing_and_push_nothing_away() {
    let cells = vec![json!("\x1b[2Jweb\r"), json!("a\nb"), json!("x".repeat(5000)), json!(null), json!("too many")];
    let hostile = Change { cells, ..pod_change(ChangeType::Added, "web", "") };
    let few = Change { cells: vec![json!("日本")], ..pod_change(ChangeType::Added, "web", "") };
    let printed = watched(PrintOptions { times: Times::Hidden, ..options("wide") }, &pod_columns(), vec![hostile, few]);
    let printed = printed.replace(&"x".repeat(5000), "x*5000");
    insta::assert_snapshot!(printed, @r"
    EVENT    NAME          READY   STATUS                                                                                                                     IP
    ADDED    ^[[2Jweb...   a...    x*5000
    ADDED    日本
    ");
}

#[test]
fn a_listing_is_sorted_and_has_no_events() {
    let changes =
        || vec![pod_change(ChangeType::Added, "web-10", "Running"), pod_change(ChangeType::Added, "web-2", "Pending")];
    insta::assert_snapshot!(listed(options(""), changes(), false), @r"
    NAME     READY   STATUS
    web-10   1/1     Running
    web-2    1/1     Pending
    ");
    let by_name = PrintOptions { sort_by: SortBy::parse(".metadata.name").ok(), no_headers: true, ..options("") };
    insta::assert_snapshot!(listed(by_name, changes(), false), @r"
    web-2    1/1     Pending
    web-10   1/1     Running
    ");
}

#[test]
fn kinds_of_a_listing_stand_apart() {
    let deployment = Change { cells: vec![json!("web")], ..change(ChangeType::Added, deployments(), web(3)) };
    let groups = vec![
        Group { columns: pod_columns(), changes: vec![pod_change(ChangeType::Added, "web-1", "Running")] },
        Group { columns: pod_columns(), changes: Vec::new() },
        Group { columns: vec![column("Name", 0)], changes: vec![deployment] },
    ];
    let printed =
        printed(PrintOptions { show_kind: true, ..options("") }, |printer, out| printer.list(out, groups, false));
    insta::assert_snapshot!(printed, @r"
    NAME        READY   STATUS
    pod/web-1   1/1     Running

    NAME
    deployment.apps/web
    ");
}

#[test]
fn names_say_what_is_gone() {
    let changes = vec![
        change(ChangeType::Added, deployments(), web(1)),
        pod_change(ChangeType::Deleted, "web-1", "Running"),
        pod_change(ChangeType::Added, "\x1b]0;x\x07", ""),
    ];
    assert_eq!(watched(options("name"), &[], changes), "deployment.apps/web\npod/web-1 deleted\npod/^[]0;x^G\n");
}

#[test]
fn a_diff_shows_fields_and_the_rest_on_one_line() {
    let changes = vec![
        change(ChangeType::Added, deployments(), web(3)),
        modified(deployments(), web(3), web(5)),
        change(ChangeType::Modified, deployments(), web(5)),
        change(ChangeType::Deleted, deployments(), web(5)),
    ];
    insta::assert_snapshot!(watched(PrintOptions { show_namespace: true, ..options("diff") }, &[], changes), @r#"
    12:13:04.123 ADDED    deployment.apps/web in shop
    12:13:04.123 MODIFIED deployment.apps/web in shop
      ~ spec.replicas: 3 -> 5
      ~ spec.template.spec.containers[name=app].image: "web:3" -> "web:5"
    12:13:04.123 MODIFIED deployment.apps/web in shop (what it was before is not known)
    12:13:04.123 DELETED  deployment.apps/web in shop
    "#);
}

#[test]
fn noise_is_counted_and_shown_only_if_asked_for() {
    let beat = |second: u8| json!({"metadata": {"name": "node-1", "resourceVersion": second.to_string()}, "spec": {"renewTime": second.to_string()}});
    for (format, all_changes, expected) in [
        ("", false, Shown { shown: 0, hidden: 1 }),
        ("name", false, Shown { shown: 0, hidden: 1 }),
        ("diff", false, Shown { shown: 0, hidden: 1 }),
        ("custom-columns=A:.a", false, Shown { shown: 0, hidden: 1 }),
        ("", true, Shown { shown: 1, hidden: 0 }),
        ("diff", true, Shown { shown: 1, hidden: 0 }),
        ("json", false, Shown { shown: 1, hidden: 0 }),
        ("jsonl", false, Shown { shown: 1, hidden: 0 }),
        ("jsonpath={.kind}", false, Shown { shown: 1, hidden: 0 }),
    ] {
        let mut out = Vec::new();
        let mut printer = Printer::new(PrintOptions { all_changes, ..options(format) });
        let shown = printer.change(&mut out, &[], &modified(leases(), beat(1), beat(2)));
        assert_eq!(shown.ok(), Some(expected), "{format}");
        assert_eq!(out.is_empty() && format != "jsonpath={.kind}", expected.shown == 0, "{format}");
    }
}

#[test]
fn no_format_shows_a_secret() {
    let templates = [
        "jsonpath={.data.password}",
        "jsonpath={..password}",
        "jsonpath={@}",
        "custom-columns=A:.data.password,B:.stringData.*,C:.metadata.annotations",
    ];
    let formats = ["", "wide", "name", "json", "yaml", "jsonl", "diff"].into_iter().chain(templates);
    for format in formats {
        for events in [false, true] {
            let asked = || PrintOptions { output_watch_events: events, all_changes: true, ..options(format) };
            let changes = || {
                vec![
                    change(ChangeType::Added, secrets(), secret("aHVudGVyMg==")),
                    modified(secrets(), secret("aHVudGVyMg=="), secret("c3dvcmRmaXNo")),
                ]
            };
            for text in [
                watched(asked(), &[], changes()),
                listed(asked(), changes(), false),
                listed(asked(), changes().split_off(1), true),
            ] {
                assert!(!text.contains("aHVudGVyMg") && !text.contains("c3dvcmRmaXNo"), "{format}: {text}");
            }
        }
    }
    let open = PrintOptions { show_secrets: true, ..options("jsonpath={.data.password}") };
    assert_eq!(listed(open, vec![change(ChangeType::Added, secrets(), secret("aHVudGVyMg=="))], true), "aHVudGVyMg==");
    let masked = listed(
        options("jsonpath={.data.password}"),
        vec![change(ChangeType::Added, secrets(), secret("aHVudGVyMg=="))],
        true,
    );
    assert_eq!(masked, "*** (7 bytes)");
}

#[test]
fn a_changed_secret_is_seen_to_have_changed() {
    let printed =
        watched(options("diff"), &[], vec![modified(secrets(), secret("aHVudGVyMg=="), secret("c3dvcmRmaXNo"))]);
    insta::assert_snapshot!(printed, @r#"
    12:13:04.123 MODIFIED secret/db
      ~ data.password: "*** (7 bytes)" -> "*** (9 bytes, changed)"
      ~ metadata.annotations['kubectl.kubernetes.io/last-applied-configuration']: "*** (36 bytes)" -> "*** (36 bytes, changed)"
      ~ stringData.token: "*** (12 bytes)" -> "*** (12 bytes, changed)"
    "#);
}

#[test]
fn documents_of_a_watch_follow_each_other() {
    let changes =
        || vec![pod_change(ChangeType::Added, "web-1", "Running"), pod_change(ChangeType::Deleted, "web-1", "Running")];
    insta::assert_snapshot!(watched(options("yaml"), &[], changes()));
    insta::assert_snapshot!(watched(PrintOptions { output_watch_events: true, ..options("json") }, &[], changes()));
}

#[test]
fn a_listing_is_a_list_unless_one_object_was_named() {
    let one = || vec![pod_change(ChangeType::Added, "web-1", "Running")];
    let parse = |text: String| serde_json::from_str::<Value>(&text).ok();
    let list = json!({"apiVersion": "v1", "kind": "List", "items": [pod("web-1", "Running")], "metadata": {"resourceVersion": ""}});
    assert_eq!(parse(listed(options("json"), one(), false)), Some(list));
    assert_eq!(parse(listed(options("json"), one(), true)), Some(pod("web-1", "Running")));
    assert_eq!(listed(options("jsonpath={.items[*].metadata.name}"), one(), false), "web-1");
    assert_eq!(listed(options("jsonpath={.metadata.name}"), one(), true), "web-1");
    assert_eq!(
        listed(options("yaml"), Vec::new(), false),
        "apiVersion: v1\nitems: []\nkind: List\nmetadata:\n  resourceVersion: \"\"\n"
    );
}

#[test]
fn managed_fields_are_left_out_of_documents_only() {
    let object = || json!({"metadata": {"name": "web", "managedFields": [{"manager": "kubectl"}]}});
    let shows = |options| watched(options, &[], vec![change(ChangeType::Added, pods(), object())]).contains("manager");
    let documents = ["json", "yaml"].map(|format| shows(options(format)));
    let asked = ["json", "yaml"].map(|format| shows(PrintOptions { show_managed_fields: true, ..options(format) }));
    let others = ["jsonl", "jsonpath={.metadata}"].map(|format| shows(options(format)));
    assert_eq!((documents, asked, others), ([false; 2], [true; 2], [true; 2]));
}

#[test]
fn a_jsonpath_is_exact_for_programs_and_harmless_on_a_terminal() {
    let hostile = || vec![pod_change(ChangeType::Added, "web", "a\n\x1b[2J\u{202e}")];
    assert_eq!(watched(options("jsonpath={.status.phase}"), &[], hostile()), "a\n\x1b[2J\u{202e}\n");
    let terminal = PrintOptions { terminal: true, ..options("jsonpath={.status.phase}") };
    assert_eq!(watched(terminal, &[], hostile()), "a\n^[[2J\\u202e\n");
    let wrong = watched(options("jsonpath={.status[0]}"), &[], hostile());
    assert_eq!(wrong, "error: shop/web: an index or a filter is used on something that is not a list\n");
}

#[test]
fn custom_columns_stream_like_other_tables() {
    let changes =
        vec![pod_change(ChangeType::Added, "web-1", "Running"), pod_change(ChangeType::Deleted, "checkout", "Failed")];
    insta::assert_snapshot!(watched(options("custom-columns=NAME:.metadata.name,PHASE:.status.phase,NODE:.spec.nodeName"), &[], changes), @r"
    TIME         EVENT    NAME    PHASE     NODE
    12:13:04.123 ADDED    web-1   Running   <none>
    12:13:04.123 DELETED  checkout   Failed    <none>
    ");
}

#[test]
fn colours_mark_what_happened_and_nothing_else() {
    let painted = PrintOptions { color: true, ..options("") };
    let printed = watched(painted, &pod_columns(), vec![pod_change(ChangeType::Deleted, "web-1", "Running")]);
    assert!(printed.starts_with("\x1b[1mTIME"), "{printed:?}");
    assert!(printed.contains("\x1b[2m12:13:04.123 \x1b[0m\x1b[31mDELETED  \x1b[0mweb-1"), "{printed:?}");
}

#[test]
fn a_body_is_decoded_only_where_a_format_needs_it() -> Result<(), watchkeeper::Error> {
    // It is an object for a cache, and no JSON for anything that looks into it: a body that a server cut in two.
    let object = watchkeeper::Object::from_json(
        r#"{"metadata":{"name":"web-1","resourceVersion":"7","labels":{"app":"web"}},"spec":{"replicas":1e999}}"#,
    )?;
    let broken = || Change { object: Body::from(object.clone()), ..pod_change(ChangeType::Added, "web-1", "Running") };
    let labels =
        PrintOptions { label_columns: vec!["app".to_owned()], times: Times::Hidden, no_headers: true, ..options("") };
    assert_eq!(watched(labels, &pod_columns(), vec![broken()]), "ADDED    web-1   1/1     Running   web\n");
    let failed = watched(options("json"), &[], vec![broken()]);
    assert!(failed.starts_with("error: ") && !failed.contains("1e999"), "{failed}");
    let rest = printed(options("jsonl"), |printer, out| {
        printer.changes(out, &[], vec![broken(), pod_change(ChangeType::Added, "web-2", "")])
    });
    assert!(rest.contains("web-2") && rest.contains("error: "), "{rest}");
    Ok(())
}

#[test]
fn items_of_lists_get_the_kind_that_they_lack() -> Result<(), watchkeeper::Error> {
    let object = watchkeeper::Object::from_json(r#"{"metadata":{"name":"web","resourceVersion":"7"}}"#)?;
    let resource = Arc::new(deployments());
    let bare = Change { object: Body::from(object), resource, ..pod_change(ChangeType::Added, "web", "") };
    let printed = watched(options("jsonpath={.apiVersion} {.kind}"), &[], vec![bare]);
    assert_eq!(printed, "apps/v1 Deployment\n");
    Ok(())
}

#[test]
fn lines_of_json_have_their_fields_in_order_and_no_unsafe_character() {
    let printed =
        watched(options("jsonl"), &[], vec![pod_change(ChangeType::Modified, "web-1", "\u{9b}\u{2028}\u{202e}\n")]);
    let expected = concat!(
        r#"{"type":"MODIFIED","time":"2026-11-16T11:13:04.123Z","key":"shop/web-1","resourceVersion":"7","object":{"#,
        r#""apiVersion":"v1","kind":"Pod","metadata":{"labels":{"app":"web","example.com/tier":"front"},"name":"web-1","#,
        r#""namespace":"shop","resourceVersion":"7"},"status":{"phase":"\u009b\u2028\u202e\n"}}}"#,
        "\n"
    );
    assert_eq!(printed, expected);
}
