//! The screen with fixed data, in several sizes.

use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use ratatui::Terminal;
use ratatui::backend::TestBackend;
use watchkeeper::ObjectKey;

use super::Model;
use super::draw::draw;
use crate::screen::fixtures::{row, rows, without_times};
use crate::screen::model::{Change, Row, State, What};
use crate::screen::widgets::short_names;

fn model() -> Model {
    let forbidden = Row {
        synced: false,
        sizes: None,
        last_error: Some(("list secrets: 403 Forbidden: no\x1b]0;way".to_owned(), Duration::from_secs(3))),
        ..row("secrets", 0, 0, State::Forbidden)
    };
    let all = rows(vec![row("pods", 1_502, 240, State::Watching), row("events", 80, 9, State::Watching), forbidden]);
    let key = ObjectKey::namespaced("shop", "web-0");
    Model {
        cluster: "prod\x1b[2J".to_owned(),
        elapsed: Duration::from_secs(62),
        names: short_names(all.rows.iter().map(|row| &row.name)),
        rows: all.rows.clone(),
        all,
        changes: vec![Arc::new(Change::known(Timestamp::UNIX_EPOCH, What::Added, "pods", key.clone(), "ready 1/1"))],
        busiest: vec![(("pods".into(), key), 1_234)],
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
    insta::assert_snapshot!(drawn(&model(), 120, 20));
}

#[test]
fn where_there_is_room_objects_are_measured_one_by_one() {
    let text = drawn(&model(), 150, 14);
    let line = |kind: &str| text.lines().find(|line| line.starts_with(&format!("\"{kind}"))).unwrap_or_default();
    assert!(line("KIND").contains("JSON/OBJ   MEM/OBJ"), "{text}");
    assert!(line("pods").contains("10.5 MB  901.2 kB    7.0 kB     600 B"), "{text}");
    assert!(!line("secrets").contains('B'), "nothing is known of it: {text}");
    assert!(line("total").contains("7.0 kB     600 B"), "{text}");
}

#[test]
fn what_is_refused_is_shown_with_its_reason() {
    let text = drawn(&model(), 100, 14);
    assert!(text.contains("forbidden") && text.contains("1 refused"), "{text}");
    assert!(text.contains("403 Forbidden: no^[]0;way"), "{text}");
}

#[test]
fn no_size_is_too_small() {
    let mut model = model();
    model.picked = Some("events".into());
    for columns in [1, 2, 7, 20, 41, 99, 100, 250] {
        for lines in 1..40 {
            let text = drawn(&model, columns, lines);
            assert!(!text.chars().any(|character| character != '\n' && crate::terminal::is_unsafe(character)));
            drawn(&Model::default(), columns, lines);
        }
    }
}
