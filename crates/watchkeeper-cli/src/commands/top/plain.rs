//! A cluster by kind, printed once.

use std::io::Write;
use std::time::Instant;

use tokio_util::sync::CancellationToken;

use super::{Copies, Options, nothing_readable};
use crate::failure::{Exit, Failure, Outcome};
use crate::screen::model::{Row, Rows, State, each};
use crate::terminal::{Output, bytes, count, escape_cell, is_reader_gone, pad_to, width};

/// Which columns are numbers.
const COLUMNS: [(&str, bool); 10] = [
    ("KIND", false),
    ("OBJECTS", true),
    ("JSON", true),
    ("MEMORY", true),
    ("JSON/OBJ", true),
    ("MEM/OBJ", true),
    ("CHANGES", true),
    ("GAPS", true),
    ("RELISTS", true),
    ("STATE", false),
];

/// Waits for the copies, and prints a table of them.
pub(crate) async fn print(options: &Options, copies: &Copies, token: CancellationToken) -> Outcome {
    let waited = async {
        copies.settled().await;
        copies.measured().await;
        if let Some(duration) = options.duration {
            tokio::time::sleep(duration).await;
        }
    };
    tokio::select! {
        () = waited => {}
        () = token.cancelled() => return Ok(Exit::Interrupted),
    }
    let mut rows = Rows::default();
    rows.sample(Instant::now(), copies.observed.iter());
    if !rows.rows.is_empty() && rows.synced() == 0 {
        let why = rows.rows.iter().find_map(|row| row.last_error.as_ref()).map(|(error, _)| error.clone());
        return Err(nothing_readable(copies, why));
    }
    match table(&mut Output::stdout(), &copies.shown(&rows)) {
        Err(error) if !is_reader_gone(&error) => Err(Failure::from(error)),
        _ => Ok(Exit::Ok),
    }
}

fn table(out: &mut impl Write, rows: &[&Row]) -> std::io::Result<()> {
    let mut lines = vec![COLUMNS.map(|(title, _)| title.to_owned())];
    lines.extend(rows.iter().map(|row| cells(row)));
    lines.push(total(rows));
    let widths: Vec<usize> =
        (0..COLUMNS.len()).map(|at| lines.iter().map(|line| width(&line[at])).max().unwrap_or_default()).collect();
    for line in &lines {
        let mut text = String::new();
        for ((cell, (_, is_number)), columns) in line.iter().zip(COLUMNS).zip(&widths) {
            if is_number {
                text.extend(std::iter::repeat_n(' ', columns.saturating_sub(width(cell))));
                text.push_str(cell);
            } else {
                pad_to(&mut text, cell, *columns);
            }
            text.push_str("   ");
        }
        writeln!(out, "{}", text.trim_end())?;
    }
    out.flush()
}

fn cells(row: &Row) -> [String; 10] {
    let name = if row.metadata_only { format!("{} (metadata)", row.name) } else { row.name.to_string() };
    let state = match (&row.state, &row.last_error) {
        (State::Watching, _) | (_, None) => row.state.name().to_owned(),
        (state, Some((error, _))) => format!("{}: {error}", state.name()),
    };
    [
        escape_cell(&name).into_owned(),
        if row.synced { count(row.objects) } else { "-".to_owned() },
        size(row.sizes.filter(|_| row.synced).map(|(json, _)| json)),
        size(row.sizes.filter(|_| row.synced).map(|(_, memory)| memory)),
        size(row.size_of_each().map(|(json, _)| json)),
        size(row.size_of_each().map(|(_, memory)| memory)),
        count(row.rate.total()),
        count(row.blind.gaps),
        count(row.relists),
        escape_cell(&state).into_owned(),
    ]
}

fn size(size: Option<u64>) -> String {
    size.map_or_else(|| "-".to_owned(), bytes)
}

fn total(rows: &[&Row]) -> [String; 10] {
    let sum = |number: fn(&Row) -> u64| rows.iter().map(|row| number(row)).sum::<u64>();
    let (json, memory) =
        (sum(|row| row.sizes.map_or(0, |(json, _)| json)), sum(|row| row.sizes.map_or(0, |(_, memory)| memory)));
    let each = each(json, memory, sum(|row| row.size_of_each().map_or(0, |_| row.objects)));
    [
        "total".to_owned(),
        count(sum(|row| if row.synced { row.objects } else { 0 })),
        bytes(json),
        bytes(memory),
        size(each.map(|(json, _)| json)),
        size(each.map(|(_, memory)| memory)),
        count(sum(|row| row.rate.total())),
        count(sum(|row| row.blind.gaps)),
        count(sum(|row| row.relists)),
        String::new(),
    ]
}
