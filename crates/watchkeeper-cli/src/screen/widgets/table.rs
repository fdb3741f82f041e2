//! A table whose less important columns go when there is no room for them.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::Style;
use ratatui::text::Span;
use ratatui::widgets::Widget;

use crate::screen::palette::{DIM, PICKED};
use crate::terminal::{cut, width};

/// What stands between two columns.
const BETWEEN: u16 = 2;

/// A column.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Column {
    /// What stands above it.
    pub(crate) title: &'static str,
    /// How wide it is; the first one gets what is left, up to twice as much.
    pub(crate) width: u16,
    /// Numbers stand on the right.
    pub(crate) is_number: bool,
    /// The columns with the highest rank go first.
    pub(crate) rank: u8,
}

/// What stands in one place. Escaped already.
#[derive(Debug, Clone)]
pub(crate) struct Cell {
    /// The text.
    pub(crate) text: String,
    /// Its colour.
    pub(crate) style: Style,
}

/// A table.
pub(crate) struct Table<'a> {
    /// Its columns.
    pub(crate) columns: &'a [Column],
    /// Its rows, with a cell for each column.
    pub(crate) rows: Vec<Vec<Cell>>,
    /// The last row is a sum: it stays at the bottom.
    pub(crate) has_total: bool,
    /// Which row was picked.
    pub(crate) picked: Option<usize>,
}

impl Cell {
    /// A text in a colour.
    pub(crate) fn new(text: impl Into<String>, style: Style) -> Self {
        Self { text: text.into(), style }
    }
}

impl Table<'_> {
    /// Draws the header, and as many rows as fit; the picked one is among them.
    pub(crate) fn draw(&self, buffer: &mut Buffer, area: Rect) {
        if area.is_empty() {
            return;
        }
        let places = self.places(area);
        for (at, place) in &places {
            let column = self.columns[*at];
            draw(buffer, *place, column.title, DIM, column.is_number);
        }
        let body = Rect { y: area.y + 1, height: area.height - 1, ..area };
        for (y, at) in (body.y..body.bottom()).zip(self.shown(usize::from(body.height))) {
            for (column, place) in &places {
                if let Some(cell) = self.rows[at].get(*column) {
                    let is_number = self.columns[*column].is_number;
                    draw(buffer, Rect { y, ..*place }, &cell.text, cell.style, is_number);
                }
            }
            if self.picked == Some(at) {
                buffer.set_style(Rect { y, height: 1, ..area }, PICKED);
            }
        }
    }

    /// Which rows are shown.
    fn shown(&self, room: usize) -> Vec<usize> {
        let count = self.rows.len();
        if count <= room {
            return (0..count).collect();
        }
        let body = if self.has_total { count - 1 } else { count };
        let room_for_body = if self.has_total { room.saturating_sub(1) } else { room };
        let first = match self.picked {
            Some(picked) if picked >= room_for_body => (picked + 1).saturating_sub(room_for_body).min(body),
            _ => 0,
        };
        let shown = first..(first + room_for_body).min(body);
        shown.chain(self.has_total.then_some(count - 1).filter(|_| room > 0)).collect()
    }

    /// The columns that fit, and where they stand.
    fn places(&self, area: Rect) -> Vec<(usize, Rect)> {
        let mut kept: Vec<usize> = (0..self.columns.len()).collect();
        let needed = |kept: &[usize]| -> u16 {
            let widths = kept.iter().map(|at| self.columns[*at].width + BETWEEN);
            widths.sum::<u16>().saturating_sub(BETWEEN)
        };
        while kept.len() > 1 && needed(&kept) > area.width {
            let Some(last) = kept.iter().copied().max_by_key(|at| (self.columns[*at].rank, *at)) else { break };
            kept.retain(|at| *at != last);
        }
        let spare = area.width.saturating_sub(needed(&kept));
        let mut x = area.x;
        let mut places = Vec::new();
        for at in kept {
            let own = self.columns[at].width;
            let own = if at == 0 { own + spare.min(own) } else { own };
            let own = own.min(area.right().saturating_sub(x));
            places.push((at, Rect { x, y: area.y, width: own, height: 1 }));
            x = x.saturating_add(own + BETWEEN).min(area.right());
        }
        places
    }
}

fn draw(buffer: &mut Buffer, place: Rect, text: &str, style: Style, is_number: bool) {
    if place.is_empty() {
        return;
    }
    let text = cut(text, usize::from(place.width));
    let spare = usize::from(place.width).saturating_sub(width(&text));
    let text = if is_number { format!("{}{text}", " ".repeat(spare)) } else { text.into_owned() };
    Span::styled(text, style).render(place, buffer);
}

#[cfg(test)]
mod tests {
    use super::*;

    const COLUMNS: [Column; 3] = [
        Column { title: "KIND", width: 6, is_number: false, rank: 0 },
        Column { title: "OBJECTS", width: 7, is_number: true, rank: 1 },
        Column { title: "BYTES", width: 5, is_number: true, rank: 2 },
    ];

    fn drawn(columns: u16, lines: u16, picked: Option<usize>) -> String {
        let row = |name: &str| vec![Cell::new(name, DIM), Cell::new("12", DIM), Cell::new("7 B", DIM)];
        let rows = ["pods", "nodes", "leases", "total"].map(row).into();
        let area = Rect::new(0, 0, columns, lines);
        let mut buffer = Buffer::empty(area);
        Table { columns: &COLUMNS, rows, has_total: true, picked }.draw(&mut buffer, area);
        let text: Vec<String> = (0..lines)
            .map(|y| (0..columns).map(|x| buffer[(x, y)].symbol()).collect::<String>().trim_end().to_owned())
            .collect();
        text.join("\n")
    }

    #[test]
    fn columns_go_when_there_is_no_room_for_them() {
        assert_eq!(drawn(22, 2, None), "KIND    OBJECTS  BYTES\ntotal        12    7 B");
        assert_eq!(drawn(16, 2, None), "KIND     OBJECTS\ntotal         12");
        assert_eq!(drawn(3, 2, None), "KI…\nto…");
    }

    #[test]
    fn the_picked_row_and_the_total_are_always_there() {
        assert_eq!(drawn(16, 3, Some(2)), "KIND     OBJECTS\nleases        12\ntotal         12");
        assert_eq!(drawn(16, 5, None).lines().count(), 5);
        assert_eq!(drawn(16, 1, Some(2)), "KIND     OBJECTS");
    }
}
