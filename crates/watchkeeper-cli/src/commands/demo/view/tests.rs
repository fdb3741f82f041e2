//! The screen with fixed data, in several sizes.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use ratatui::Terminal;
use ratatui::backend::TestBackend;
use watchkeeper::ObjectKey;

use super::super::check::{Checked, Verdict};
use super::super::faults::{Injected, Log};
use super::super::model::Model;
use super::draw::draw;
use crate::living::{Happening, QueueSample};
use crate::screen::fixtures::{row, rows, without_times};
use crate::screen::model::{Change, State, What};

fn model() -> Model {
    let at = Timestamp::UNIX_EPOCH;
    let equal = |version| Checked { equal_at: Some(version), compared: 40, ..Checked::default() };
    let behind = Checked { behind: 12, behind_for: Duration::from_millis(420), ..equal(9_801) };
    let change = |what, kind: &str, namespace: &str, name: &str, detail: &str| {
        Arc::new(Change::known(at, what, kind, ObjectKey::namespaced(namespace, name), detail))
    };
    Model {
        url: "https://127.0.0.1:41234".to_owned(),
        kubeconfig: "/tmp/watchkeeper-x/kubeconfig".to_owned(),
        elapsed: Duration::from_secs(83),
        rows: rows(vec![
            row("nodes", 50, 4, State::Watching),
            row("pods", 1_502, 240, State::BackingOff),
            row("endpointslices.discovery.k8s.io", 131, 0, State::Listing { objects: 77 }),
        ]),
        verdict: Verdict {
            kinds: vec![equal(10_233), behind, equal(10_231)],
            compared: 120,
            compared_bytes: 9,
            not_comparable: 2,
        },
        rains: true,
        faults: Log {
            total: 2,
            counts: BTreeMap::from([("410", 1), ("cut", 1)]),
            last: VecDeque::from([
                Injected { at, name: "cut", text: "all connections are cut".to_owned() },
                Injected { at, name: "410", text: "pods: 410, its version is too old".to_owned() },
            ]),
        },
        changes: vec![
            change(What::Modified, "pods", "shop", "web-7d9f-x2x4z", "Pending → Running"),
            change(What::Added, "endpointslices.discovery.k8s.io", "shop", "web-abcde", "ready 3/3"),
            change(What::Deleted, "nodes", "", "evil\x1b[2J\u{202e}name", "hostile\r\ntext"),
        ],
        story: vec![Happening { at, text: "rollout of shop/web to 1.8.2".to_owned() }],
        queues: vec![
            QueueSample { name: "deployment", depth: 3, waiting: 1, in_flight: 1, processed: 1_204, retries: 0 },
            QueueSample { name: "kubelet", depth: 0, waiting: 9, in_flight: 0, processed: 88, retries: 2 },
        ],
        picked: None,
        is_paused: false,
    }
}

fn drawn(model: &Model, columns: u16, lines: u16) -> String {
    let Ok(mut terminal) = Terminal::new(TestBackend::new(columns, lines));
    let Ok(_) = terminal.draw(|frame| draw(frame, model));
    without_times(&terminal.backend().to_string())
}

#[test]
fn a_wide_screen_has_everything() {
    insta::assert_snapshot!(drawn(&model(), 120, 26));
}

#[test]
fn a_narrow_screen_has_what_matters() {
    insta::assert_snapshot!(drawn(&model(), 60, 14));
}

#[test]
fn a_difference_cannot_be_overlooked() {
    let mut model = model();
    model.verdict.kinds[1].difference = Some("pods at revision 9801: missing shop/web-0 (17)".to_owned());
    model.picked = Some(1);
    model.is_paused = true;
    insta::assert_snapshot!(drawn(&model, 100, 16));
}

#[test]
fn before_there_is_a_cluster_one_is_being_made() {
    let text = drawn(&Model::default(), 60, 12);
    assert!(text.contains("a cluster is being made"), "{text}");
}

#[test]
fn no_size_is_too_small() {
    let model = model();
    for columns in [1, 2, 7, 20, 41, 99, 100, 250] {
        for lines in 1..40 {
            drawn(&model, columns, lines);
            drawn(&Model::default(), columns, lines);
        }
    }
}

#[test]
fn nothing_that_others_wrote_controls_the_terminal() {
    let text = drawn(&model(), 200, 40);
    assert!(text.contains("evil^[[2J\\u202ename"), "{text}");
    assert!(!text.chars().any(|character| character != '\n' && crate::terminal::is_unsafe(character)));
}
