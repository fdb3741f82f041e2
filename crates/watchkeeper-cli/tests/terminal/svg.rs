//! A screen as a picture.
//!
//! Text in runs of one colour, each as long as its columns, whatever the font; bars and rules as rectangles, so that they
//! meet.

use std::fmt::Write;

use vt100::{Cell, Color, Screen};

const COLUMN: f64 = 8.4;
const LINE: f64 = 18.0;
const MARGIN: f64 = 18.0;
/// The bar of the window.
const TOP: f64 = 40.0;
const FONT: &str = "ui-monospace, 'SF Mono', 'JetBrains Mono', Menlo, Consolas, 'DejaVu Sans Mono', monospace";

const BACKGROUND: &str = "#12161f";
const BAR: &str = "#1b212d";
const TEXT: &str = "#d5dbe6";
const DIM: &str = "#7d8798";
/// The sixteen colours of a terminal.
const COLOURS: [&str; 16] = [
    "#12161f", "#f0717f", "#8ccf7e", "#e5c76b", "#67a6f2", "#c68aee", "#62c7d6", "#d5dbe6", "#7d8798", "#f58b97",
    "#a3dd97", "#eed48b", "#8bbdf7", "#d5a6f3", "#86d9e5", "#ffffff",
];

/// How a run of cells looks.
#[derive(Clone, Copy, PartialEq)]
struct Look {
    colour: &'static str,
    behind: Option<&'static str>,
    is_bold: bool,
}

/// The screen in a window.
pub fn of(screen: &Screen, title: &str) -> String {
    let (lines, columns) = screen.size();
    let (lines, columns) = (lines.get(), columns.get());
    let (width, height) = (f64::from(columns) * COLUMN + 2.0 * MARGIN, f64::from(lines) * LINE + TOP + 1.5 * MARGIN);
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width:.0}\" height=\"{height:.0}\" viewBox=\"0 0 {width:.0} \
         {height:.0}\" font-family=\"{FONT}\" font-size=\"14\" role=\"img\" aria-label=\"{title}\">\n\
         <rect width=\"100%\" height=\"100%\" rx=\"10\" fill=\"{BACKGROUND}\"/>\n\
         <path d=\"M0 28V10A10 10 0 0 1 10 0H{right:.0}A10 10 0 0 1 {width:.0} 10V28Z\" fill=\"{BAR}\"/>\n\
         <text x=\"{middle:.0}\" y=\"19\" fill=\"{DIM}\" font-size=\"12\" text-anchor=\"middle\">{title}</text>\n",
        right = width - 10.0,
        middle = width / 2.0,
    );
    for (x, colour) in [(18, "#f0717f"), (36, "#e5c76b"), (54, "#8ccf7e")] {
        let _ = writeln!(svg, "<circle cx=\"{x}\" cy=\"14\" r=\"5\" fill=\"{colour}\"/>");
    }
    for line in 0..lines {
        draw_line(&mut svg, screen, line, columns);
    }
    svg.push_str("</svg>\n");
    svg
}

fn draw_line(svg: &mut String, screen: &Screen, line: u16, columns: u16) {
    let y = TOP + f64::from(line) * LINE;
    let cells: Vec<(Look, String)> = (0..columns)
        .filter_map(|column| screen.cell(line, column))
        .map(|cell| (look(cell), cell.contents().to_owned()))
        .collect();
    let mut start = 0;
    while start < cells.len() {
        let look = cells[start].0;
        let is_bar = |text: &str| bar(text).is_some();
        let same = |(other, text): &&(Look, String)| *other == look && is_bar(text) == is_bar(&cells[start].1);
        let length = cells[start..].iter().take_while(same).count();
        draw_run(svg, start, y, look, &cells[start..start + length]);
        start += length;
    }
}

fn draw_run(svg: &mut String, start: usize, y: f64, look: Look, cells: &[(Look, String)]) {
    let at = |column: usize| MARGIN + column as f64 * COLUMN;
    if let Some(behind) = look.behind {
        let width = cells.len() as f64 * COLUMN;
        let _ = writeln!(
            svg,
            "<rect x=\"{:.1}\" y=\"{y:.1}\" width=\"{width:.1}\" height=\"{LINE}\" fill=\"{behind}\"/>",
            at(start)
        );
    }
    if cells.first().is_some_and(|(_, text)| bar(text).is_some()) {
        for (column, (_, text)) in cells.iter().enumerate() {
            let Some((top, height)) = bar(text) else { continue };
            // Rules meet, bars stand apart.
            let width = if height < 0.1 { COLUMN + 0.2 } else { COLUMN - 1.4 };
            let _ = writeln!(
                svg,
                "<rect x=\"{:.1}\" y=\"{:.1}\" width=\"{width:.1}\" height=\"{:.1}\" fill=\"{}\"/>",
                at(start + column),
                y + top * LINE,
                height * LINE,
                look.colour,
            );
        }
        return;
    }
    let text: Vec<char> = cells.iter().map(|(_, text)| text.chars().next().unwrap_or(' ')).collect();
    for (from, words) in words(&text) {
        let weight = if look.is_bold { " font-weight=\"700\"" } else { "" };
        let length = words.chars().count() as f64 * COLUMN;
        let _ = writeln!(
            svg,
            "<text x=\"{:.1}\" y=\"{:.1}\" fill=\"{}\"{weight} textLength=\"{length:.1}\" \
             lengthAdjust=\"spacingAndGlyphs\">{}</text>",
            at(start + from),
            y + 13.5,
            look.colour,
            escape(&words),
        );
    }
}

/// What stands together, with no more than a space in between, and where it begins.
fn words(text: &[char]) -> Vec<(usize, String)> {
    let mut found: Vec<(usize, String)> = Vec::new();
    let mut spaces = 2;
    for (at, character) in text.iter().enumerate() {
        match (character, found.last_mut()) {
            (' ', _) => spaces += 1,
            (character, Some((_, words))) if spaces < 2 => {
                words.extend(std::iter::repeat_n(' ', spaces));
                words.push(*character);
                spaces = 0;
            }
            (character, _) => {
                found.push((at, character.to_string()));
                spaces = 0;
            }
        }
    }
    found
}

/// A bar or a rule: where it begins, and how high it is, as parts of a line.
fn bar(text: &str) -> Option<(f64, f64)> {
    let character = text.chars().next()?;
    match character {
        '\u{2581}'..='\u{2588}' => {
            let height = f64::from(u32::from(character) - 0x2580) / 8.0 * 0.82;
            Some((0.9 - height, height))
        }
        '─' => Some((0.5, 0.055)),
        _ => None,
    }
}

fn look(cell: &Cell) -> Look {
    let of = |colour: Color| match colour {
        Color::Idx(index) => COLOURS.get(usize::from(index)).copied(),
        _ => None,
    };
    let colour = match (of(cell.fgcolor()), cell.dim()) {
        (Some(colour), _) => colour,
        (None, true) => DIM,
        (None, false) => TEXT,
    };
    match cell.inverse() {
        true => Look { colour: BACKGROUND, behind: Some(colour), is_bold: cell.bold() },
        false => Look { colour, behind: of(cell.bgcolor()), is_bold: cell.bold() },
    }
}

fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}
