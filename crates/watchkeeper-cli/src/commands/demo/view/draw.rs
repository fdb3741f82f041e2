//! Where everything stands on the demo's screen.

use std::collections::HashMap;
use std::sync::Arc;

use ratatui::Frame;
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::Style;
use ratatui::text::{Line, Span};
use ratatui::widgets::Widget;

use super::super::check::Checked;
use super::super::model::Model;
use super::stopwatch;
use crate::screen::model::{Row, State};
use crate::screen::palette::{ACCENT, ALARM, BUSY, DIM, GOOD, PLAIN, TITLE, of_state};
use crate::screen::widgets::{Cell, Column, Table, changes, clock, help, section, short_names, spark, texts};
use crate::terminal::{bytes, count, cut, escape_text, seconds};

/// For how many seconds there are bars.
const BARS: usize = 16;

const COLUMNS: [Column; 11] = [
    Column { title: "KIND", width: 15, is_number: false, rank: 0 },
    Column { title: "OBJECTS", width: 8, is_number: true, rank: 1 },
    Column { title: "PER S", width: 5, is_number: true, rank: 4 },
    Column { title: "CHANGES", width: BARS as u16, is_number: false, rank: 7 },
    Column { title: "JSON/OBJ", width: 8, is_number: true, rank: 8 },
    Column { title: "MEM/OBJ", width: 8, is_number: true, rank: 6 },
    Column { title: "STATE", width: 9, is_number: false, rank: 2 },
    Column { title: "GAPS", width: 5, is_number: true, rank: 5 },
    Column { title: "BLIND", width: 7, is_number: true, rank: 9 },
    Column { title: "EQUAL AT", width: 10, is_number: true, rank: 3 },
    Column { title: "BEHIND", width: 10, is_number: true, rank: 10 },
];

const KEYS: [(&str, &str); 5] =
    [("q", "quit"), ("p", "pause"), ("f", "faults on/off"), ("↑↓ 1-9", "changes of one kind"), ("0", "of all")];

/// Draws the whole screen. What does not fit is left out, the least important first.
pub(crate) fn draw(frame: &mut Frame<'_>, model: &Model) {
    let area = frame.area();
    let buffer = frame.buffer_mut();
    let names = short_names(model.rows.rows.iter().map(|row| &row.name));
    let mut rest = area;
    let header = take(&mut rest, if area.height >= 12 { 3 } else { 1 });
    draw_header(buffer, header, model);
    let equal = take(&mut rest, if area.height >= 12 { 2 } else { 1 });
    draw_equal(buffer, equal, model);
    if area.height >= 8 {
        let bottom = Rect { y: rest.bottom() - 1, height: 1, ..rest };
        rest.height -= 1;
        help(buffer, bottom, &KEYS);
    }
    // A header, the kinds and their sum, and a line between this and what follows.
    let kinds = u16::try_from(model.rows.rows.len() + 3).unwrap_or(u16::MAX);
    let left_below = rest.height.saturating_sub(kinds);
    let kinds = if left_below >= 4 { kinds } else { rest.height };
    draw_kinds(buffer, take(&mut rest, kinds), model, &names);
    if rest.width >= 100 {
        let left = Rect { width: rest.width * 3 / 5, ..rest };
        let right = Rect { x: left.right() + 2, width: rest.width - left.width - 2, ..rest };
        draw_changes(buffer, left, model, &names);
        draw_side(buffer, right, model);
    } else {
        draw_changes(buffer, rest, model, &names);
    }
}

/// Takes lines from the top.
fn take(rest: &mut Rect, lines: u16) -> Rect {
    let lines = lines.min(rest.height);
    let taken = Rect { height: lines, ..*rest };
    *rest = Rect { y: rest.y + lines, height: rest.height - lines, ..*rest };
    taken
}

fn draw_header(buffer: &mut Buffer, area: Rect, model: &Model) {
    let rows = &model.rows;
    let is_there = !rows.rows.is_empty();
    let mut spans = vec![Span::styled("watchkeeper demo", TITLE), Span::raw("  ")];
    if is_there {
        spans.push(Span::styled(stopwatch(model.elapsed), ACCENT));
        let (objects, synced, kinds) = (count(rows.objects()), rows.synced(), rows.rows.len());
        spans.push(Span::raw(match synced < kinds {
            true => format!("  {objects} objects, {synced} of {kinds} kinds complete"),
            false => format!("  {objects} objects of {kinds} kinds"),
        }));
        if let (json, memory @ 1..) = rows.sizes() {
            spans.push(Span::raw(format!(", {} of JSON in {}", bytes(json), bytes(memory))));
        }
        spans.push(Span::raw(format!(", {} changes a second", rows.last_second())));
    } else {
        spans.push(Span::styled("a cluster is being made", PLAIN));
    }
    if model.rains {
        spans.push(Span::styled("   faults on", BUSY));
    }
    if model.is_paused {
        spans.push(Span::styled("   paused", BUSY));
    }
    Line::from(spans).render(Rect { height: area.height.min(1), ..area }, buffer);
    if area.height >= 3 && is_there {
        let path = escape_text(&model.kubeconfig);
        let line = Line::from(vec![
            Span::styled("try it from elsewhere  ", DIM),
            Span::raw(format!("export KUBECONFIG={path}; kubectl get pods -A -w")),
        ]);
        line.render(Rect { y: area.y + 1, height: 1, ..area }, buffer);
    }
}

fn draw_equal(buffer: &mut Buffer, area: Rect, model: &Model) {
    let verdict = &model.verdict;
    let line = if let Some(difference) = verdict.differences().next() {
        let text = escape_text(difference);
        Line::from(Span::styled(format!("✗ the cache differs: {text}"), ALARM))
    } else if verdict.equal_at().is_some() {
        let unknown = match verdict.not_comparable {
            0 => String::new(),
            times => format!(", {} not possible", count(times)),
        };
        Line::from(vec![
            Span::styled("✓ the cache is equal to the server", GOOD.patch(TITLE)),
            Span::styled(
                format!(
                    "  each kind at its own version: {} comparisons{unknown}, no difference",
                    count(verdict.compared)
                ),
                DIM,
            ),
        ])
    } else {
        Line::from(Span::styled("  the cache has not been compared with the server yet", DIM))
    };
    line.render(Rect { height: area.height.min(1), ..area }, buffer);
}

fn draw_kinds(buffer: &mut Buffer, area: Rect, model: &Model, names: &HashMap<Arc<str>, String>) {
    let unknown = Checked::default();
    let cells = model.rows.rows.iter().enumerate();
    let mut rows: Vec<Vec<Cell>> =
        cells.map(|(at, row)| kind(row, model.verdict.kinds.get(at).unwrap_or(&unknown), names)).collect();
    if !rows.is_empty() {
        rows.push(total(model));
    }
    Table { columns: &COLUMNS, rows, has_total: true, picked: model.picked }.draw(buffer, area);
}

fn kind(row: &Row, checked: &Checked, names: &HashMap<Arc<str>, String>) -> Vec<Cell> {
    let name = names.get(&row.name).cloned().unwrap_or_default();
    let or_dim = |number: u64| if number == 0 { DIM } else { PLAIN };
    let state = match row.state {
        State::Listing { objects: objects @ 1.. } => format!("+{}", count(objects)),
        ref state => state.name().to_owned(),
    };
    let equal = match (&checked.difference, checked.equal_at) {
        (Some(_), _) => Cell::new("✗ differs", ALARM),
        (None, Some(version)) => Cell::new(format!("✓ {version}"), GOOD),
        (None, None) => Cell::new("", DIM),
    };
    let behind = match checked.behind {
        0 => Cell::new("-", DIM),
        changes => Cell::new(format!("{changes}, {}", seconds(checked.behind_for)), BUSY),
    };
    vec![
        Cell::new(name, PLAIN),
        Cell::new(count(row.objects), PLAIN),
        Cell::new(count(row.rate.last_second()), or_dim(row.rate.last_second())),
        Cell::new(spark(&row.rate.seconds(BARS)), ACCENT),
        size(row.size_of_each().map(|(json, _)| json), DIM),
        size(row.size_of_each().map(|(_, memory)| memory), PLAIN),
        Cell::new(state, of_state(&row.state)),
        Cell::new(count(row.blind.gaps), or_dim(row.blind.gaps)),
        Cell::new(if row.blind.gaps == 0 { "-".to_owned() } else { seconds(row.blind.total) }, DIM),
        equal,
        behind,
    ]
}

fn size(size: Option<u64>, style: Style) -> Cell {
    Cell::new(size.map(bytes).unwrap_or_default(), style)
}

fn total(model: &Model) -> Vec<Cell> {
    let rows = &model.rows;
    let each = rows.size_of_each();
    let bars = rows.rate.as_ref().map(|rate| spark(&rate.seconds(BARS))).unwrap_or_default();
    vec![
        Cell::new("total", TITLE),
        Cell::new(count(rows.objects()), TITLE),
        Cell::new(count(rows.last_second()), TITLE),
        Cell::new(bars, ACCENT),
        size(each.map(|(json, _)| json), DIM),
        size(each.map(|(_, memory)| memory), TITLE),
        Cell::new(String::new(), DIM),
        Cell::new(count(rows.gaps()), TITLE),
        Cell::new(String::new(), DIM),
        Cell::new(String::new(), DIM),
        Cell::new(String::new(), DIM),
    ]
}

fn draw_changes(buffer: &mut Buffer, area: Rect, model: &Model, names: &HashMap<Arc<str>, String>) {
    let picked = model.picked.and_then(|at| model.rows.rows.get(at)).and_then(|row| names.get(&row.name));
    let beside = picked.map(|name| format!("of {name}")).unwrap_or_default();
    let body = section(buffer, area, "last changes", &beside);
    changes(buffer, body, &model.changes, names);
}

/// Beside the changes: what is happening, what goes wrong, and what waits to be done.
fn draw_side(buffer: &mut Buffer, area: Rect, model: &Model) {
    let mut rest = area;
    let shows_faults = model.rains || model.faults.total > 0;
    let share = if shows_faults { area.height / 3 } else { area.height / 2 };
    let story = section(buffer, take_with_gap(&mut rest, share), "what is happening", "");
    texts(buffer, story, model.story.iter().map(|line| (clock(line.at), line.text.clone(), PLAIN)));
    if shows_faults {
        let each: Vec<String> = model.faults.counts.iter().map(|(name, times)| format!("{name} {times}")).collect();
        let beside = format!("{}: {}", count(model.faults.total), each.join(", "));
        let faults = section(buffer, take_with_gap(&mut rest, share), "faults", &beside);
        texts(buffer, faults, model.faults.last.iter().rev().map(|fault| (clock(fault.at), fault.text.clone(), BUSY)));
    }
    let queues = section(buffer, rest, "queues of the controllers", "waiting, done");
    draw_queues(buffer, queues, model);
}

/// Takes lines from the top, of which the last stays empty.
fn take_with_gap(rest: &mut Rect, lines: u16) -> Rect {
    let taken = take(rest, lines.max(4));
    Rect { height: taken.height.saturating_sub(1), ..taken }
}

/// Two beside each other, the busiest first.
fn draw_queues(buffer: &mut Buffer, area: Rect, model: &Model) {
    let mut queues = model.queues.clone();
    queues.sort_by_key(|queue| std::cmp::Reverse(queue.processed));
    let half = area.width / 2;
    for (at, queue) in queues.iter().enumerate().take(2 * usize::from(area.height)) {
        let (line, column) = (at / 2, u16::from(at % 2 == 1));
        let Ok(line) = u16::try_from(line) else { break };
        let place = Rect { x: area.x + column * half, y: area.y + line, width: half.saturating_sub(1), height: 1 };
        let waiting = queue.depth + queue.in_flight;
        let done = format!("{:>2} {:>6}", count(waiting as u64), count(queue.processed));
        let room = usize::from(place.width).saturating_sub(done.len() + 1);
        let name = format!("{:<room$} ", cut(queue.name, room));
        let style = if waiting > 0 { BUSY } else { PLAIN };
        Line::from(vec![Span::styled(name, DIM), Span::styled(done, style)]).render(place, buffer);
    }
}
