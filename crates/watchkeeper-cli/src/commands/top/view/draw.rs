//! Where everything stands on the screen of `top`.

use ratatui::Frame;
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::Style;
use ratatui::text::{Line, Span};
use ratatui::widgets::Widget;

use super::Model;
use crate::screen::model::{Row, State};
use crate::screen::palette::{ACCENT, BAD, BUSY, DIM, PLAIN, TITLE, of_state};
use crate::screen::widgets::{Cell, Column, Table, changes, help, section, spark, texts};
use crate::terminal::{bytes, count, escape_text, seconds};

/// For how many seconds there are bars.
const BARS: usize = 20;
/// Silence that is worth showing.
const SILENCE: u64 = 5;

const COLUMNS: [Column; 12] = [
    Column { title: "KIND", width: 18, is_number: false, rank: 0 },
    Column { title: "OBJECTS", width: 9, is_number: true, rank: 1 },
    Column { title: "JSON", width: 8, is_number: true, rank: 6 },
    Column { title: "MEMORY", width: 8, is_number: true, rank: 4 },
    Column { title: "JSON/OBJ", width: 8, is_number: true, rank: 11 },
    Column { title: "MEM/OBJ", width: 8, is_number: true, rank: 10 },
    Column { title: "PER S", width: 6, is_number: true, rank: 3 },
    Column { title: "PER MIN", width: 7, is_number: true, rank: 5 },
    Column { title: "CHANGES", width: BARS as u16, is_number: false, rank: 9 },
    Column { title: "STATE", width: 10, is_number: false, rank: 2 },
    Column { title: "GAPS", width: 5, is_number: true, rank: 7 },
    Column { title: "HEARD", width: 8, is_number: true, rank: 8 },
];

const KEYS: [(&str, &str); 4] = [("q", "quit"), ("p", "pause"), ("↑↓ 1-9", "pick a kind"), ("0", "all")];

/// Draws the whole screen. What does not fit is left out, the least important first.
pub(crate) fn draw(frame: &mut Frame<'_>, model: &Model) {
    let area = frame.area();
    let buffer = frame.buffer_mut();
    let mut rest = area;
    let header = take(&mut rest, if area.height >= 12 { 2 } else { 1 });
    draw_header(buffer, header, model);
    if area.height >= 8 {
        let bottom = Rect { y: rest.bottom() - 1, height: 1, ..rest };
        rest.height -= 1;
        help(buffer, bottom, &KEYS);
    }
    if let Some((label, error)) = trouble(model)
        && rest.height >= 8
    {
        let bottom = Rect { y: rest.bottom() - 1, height: 1, ..rest };
        rest.height -= 1;
        texts(buffer, bottom, [(label, error, BAD)]);
    }
    // Header, kinds, sum, and a line between.
    let wanted = u16::try_from(model.rows.len() + 3).unwrap_or(u16::MAX);
    let kinds = if rest.height >= 16 { wanted.min(rest.height * 2 / 3) } else { wanted.min(rest.height) };
    draw_kinds(buffer, take(&mut rest, kinds), model);
    if rest.height < 2 {
        return;
    }
    if rest.width >= 100 {
        let left = Rect { width: rest.width * 3 / 5, ..rest };
        let right = Rect { x: left.right() + 2, width: rest.width - left.width - 2, ..rest };
        draw_changes(buffer, left, model);
        draw_busiest(buffer, right, model);
    } else {
        draw_changes(buffer, rest, model);
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
    let all = &model.all;
    let open = all.rows.iter().filter(|row| !row.synced && !is_refused(row)).count();
    let refused = all.rows.iter().filter(|row| is_refused(row)).count();
    let mut spans = vec![
        Span::styled("watchkeeper top", TITLE),
        Span::raw("  "),
        Span::styled(escape_text(&model.cluster).into_owned(), ACCENT),
        Span::raw(format!("  {} objects of {} kinds", count(all.objects()), model.rows.len())),
        Span::raw(format!(", {} changes a second", count(all.last_second()))),
    ];
    if open > 0 {
        spans.push(Span::styled(format!("   {open} being read"), ACCENT));
    }
    if refused > 0 {
        spans.push(Span::styled(format!("   {refused} refused"), BAD));
    }
    if model.is_paused {
        spans.push(Span::styled("   paused", BUSY));
    }
    spans.push(Span::styled(format!("   {}", seconds(model.elapsed)), DIM));
    Line::from(spans).render(Rect { height: area.height.min(1), ..area }, buffer);
}

/// What is wrong with the kind that was picked, or with the first with which something is.
fn trouble(model: &Model) -> Option<(String, String)> {
    let is_troubled = |row: &&Row| row.state != State::Watching && row.last_error.is_some();
    let picked = model.picked_row().and_then(|at| model.rows.get(at));
    let row = picked.filter(|row| row.last_error.is_some()).or_else(|| model.rows.iter().find(is_troubled))?;
    let (error, ago) = row.last_error.as_ref()?;
    let name = model.names.get(&row.name).cloned().unwrap_or_default();
    Some((format!("{name}, {} ago:", seconds(*ago)), error.clone()))
}

fn is_refused(row: &Row) -> bool {
    matches!(row.state, State::Forbidden | State::Absent | State::Stopped)
}

fn draw_kinds(buffer: &mut Buffer, area: Rect, model: &Model) {
    let mut rows: Vec<Vec<Cell>> = model.rows.iter().map(|row| kind(row, model)).collect();
    rows.push(total(model));
    Table { columns: &COLUMNS, rows, has_total: true, picked: model.picked_row() }.draw(buffer, area);
}

fn kind(row: &Row, model: &Model) -> Vec<Cell> {
    let name = model.names.get(&row.name).cloned().unwrap_or_default();
    let name = if row.metadata_only { format!("{name} (metadata)") } else { name };
    let or_dim = |number: u64| if number == 0 { DIM } else { PLAIN };
    let heard = match row.last_contact {
        Some(ago) if ago.as_secs() >= SILENCE => Cell::new(seconds(ago), DIM),
        Some(_) => Cell::new("now", DIM),
        None => Cell::new("never", DIM),
    };
    let (second, minute) = (row.rate.last_second(), row.rate.last_minute());
    vec![
        Cell::new(name, PLAIN),
        Cell::new(count(row.objects), if row.synced { PLAIN } else { DIM }),
        size(row.sizes.map(|(json, _)| json), DIM),
        size(row.sizes.map(|(_, memory)| memory), PLAIN),
        size(row.size_of_each().map(|(json, _)| json), DIM),
        size(row.size_of_each().map(|(_, memory)| memory), PLAIN),
        Cell::new(count(second), or_dim(second)),
        Cell::new(count(minute), or_dim(minute)),
        Cell::new(spark(&row.rate.seconds(BARS)), ACCENT),
        Cell::new(row.state.name(), of_state(&row.state)),
        Cell::new(count(row.blind.gaps), or_dim(row.blind.gaps)),
        heard,
    ]
}

fn size(size: Option<u64>, style: Style) -> Cell {
    Cell::new(size.map(bytes).unwrap_or_default(), style)
}

fn total(model: &Model) -> Vec<Cell> {
    let all = &model.all;
    let ((json, memory), each) = (all.sizes(), all.size_of_each());
    let minute = all.rate.as_ref().map_or(0, |rate| rate.last_minute());
    let bars = all.rate.as_ref().map(|rate| spark(&rate.seconds(BARS))).unwrap_or_default();
    vec![
        Cell::new("total", TITLE),
        Cell::new(count(all.objects()), TITLE),
        Cell::new(bytes(json), DIM),
        Cell::new(bytes(memory), TITLE),
        size(each.map(|(json, _)| json), DIM),
        size(each.map(|(_, memory)| memory), TITLE),
        Cell::new(count(all.last_second()), TITLE),
        Cell::new(count(minute), TITLE),
        Cell::new(bars, ACCENT),
        Cell::new("", DIM),
        Cell::new(count(all.gaps()), TITLE),
        Cell::new("", DIM),
    ]
}

fn draw_changes(buffer: &mut Buffer, area: Rect, model: &Model) {
    let picked = model.picked.as_ref().and_then(|picked| model.names.get(picked));
    let beside = picked.map(|name| format!("of {name}")).unwrap_or_default();
    let body = section(buffer, area, "last changes", &beside);
    changes(buffer, body, &model.changes, &model.names);
}

fn draw_busiest(buffer: &mut Buffer, area: Rect, model: &Model) {
    let body = section(buffer, area, "busiest objects", "changes in the last minutes");
    let line = |((kind, key), times): &((std::sync::Arc<str>, watchkeeper::ObjectKey), u64)| {
        let kind = model.names.get(kind).map_or("", String::as_str);
        (format!("{:>6}", count(*times)), format!("{kind} {key}"), PLAIN)
    };
    texts(buffer, body, model.busiest.iter().map(line));
}
