//! Pictures of growth: both axes logarithmic, one line for each driver.

use std::fmt::Write as _;

use crate::configuration::{Configuration, thousands};
use crate::plan::{Peer, SIZES, ours};
use crate::results::Results;

const WIDTH: f64 = 760.0;
const HEIGHT: f64 = 420.0;
const LEFT: f64 = 80.0;
const RIGHT: f64 = 170.0;
const TOP: f64 = 50.0;
const BOTTOM: f64 = 50.0;

/// Colours that can be told apart on white and on black, and by those who see few.
const COLOURS: [&str; 4] = ["#0a8f6c", "#d9822b", "#3b82d6", "#b1559d"];

struct Line {
    name: &'static str,
    points: Vec<(f64, f64)>,
}

pub(crate) fn memory(results: &Results) -> String {
    let lines = lines(results, "sync.rss_after", 1e-6);
    picture("Resident memory after sync, by number of pods", &lines, |value| {
        if value >= 1000.0 { format!("{} GB", value / 1000.0) } else { format!("{value} MB") }
    })
}

pub(crate) fn sync(results: &Results) -> String {
    let lines = lines(results, "sync.wall_s", 1.0);
    picture("Time to sync, by number of pods", &lines, |value| {
        if value < 1.0 { format!("{} ms", (value * 1000.0).round()) } else { format!("{value} s") }
    })
}

fn lines(results: &Results, figure: &str, scale: f64) -> Vec<Line> {
    let line = |name, configuration: &dyn Fn(u32) -> Configuration| {
        let point = |size: u32| Some((f64::from(size), results.measured(&configuration(size), figure)?.median * scale));
        Line { name, points: SIZES.into_iter().filter_map(point).collect() }
    };
    let peers = Peer::ALL.into_iter().map(|peer| line(peer.name(), &|size| peer.keys(size)[0]));
    std::iter::once(line("watchkeeper", &ours)).chain(peers).collect()
}

/// Powers of ten around all values.
fn decades(values: impl Iterator<Item = f64> + Clone) -> (i32, i32) {
    let positive = values.filter(|value| *value > 0.0);
    let least = positive.clone().fold(f64::INFINITY, f64::min);
    let most = positive.fold(0.0, f64::max);
    if most == 0.0 { (0, 1) } else { (least.log10().floor() as i32, most.log10().ceil() as i32) }
}

fn picture(title: &str, lines: &[Line], name_value: impl Fn(f64) -> String) -> String {
    let values = lines.iter().flat_map(|line| line.points.iter().map(|(_, value)| *value));
    let (low, high) = decades(values);
    let high = high.max(low + 1);
    let (first, last) = (f64::from(SIZES[0]).log10(), f64::from(SIZES[SIZES.len() - 1]).log10());
    let x = |pods: f64| LEFT + (pods.log10() - first) / (last - first) * (WIDTH - LEFT - RIGHT);
    let y = |value: f64| {
        HEIGHT - BOTTOM - (value.log10() - f64::from(low)) / f64::from(high - low) * (HEIGHT - TOP - BOTTOM)
    };

    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {HEIGHT}\" role=\"img\" \
         aria-label=\"{title}\" font-family=\"sans-serif\" font-size=\"13\">\n<style>\n\
         text {{ fill: #24292f }} .grid {{ stroke: #8884 }} \
         @media (prefers-color-scheme: dark) {{ text {{ fill: #e6edf3 }} }}\n</style>\n\
         <text x=\"{LEFT}\" y=\"26\" font-size=\"16\" font-weight=\"bold\">{title}</text>\n"
    );
    for decade in low..=high {
        let value = 10_f64.powi(decade);
        let (at, right, name) = (y(value), WIDTH - RIGHT, name_value(value));
        let _ = writeln!(svg, "<line class=\"grid\" x1=\"{LEFT}\" x2=\"{right}\" y1=\"{at:.1}\" y2=\"{at:.1}\"/>");
        let _ = writeln!(svg, "<text x=\"{}\" y=\"{:.1}\" text-anchor=\"end\">{name}</text>", LEFT - 8.0, at + 4.0);
    }
    for size in SIZES {
        let (at, bottom) = (x(size.into()), HEIGHT - BOTTOM);
        let _ = writeln!(svg, "<line class=\"grid\" x1=\"{at:.1}\" x2=\"{at:.1}\" y1=\"{TOP}\" y2=\"{bottom}\"/>");
        let name = thousands(size.into());
        let _ = writeln!(svg, "<text x=\"{at:.1}\" y=\"{}\" text-anchor=\"middle\">{name}</text>", bottom + 20.0);
    }
    let mut labels: Vec<(f64, f64, &str, &str)> = Vec::new();
    for (line, colour) in lines.iter().zip(COLOURS).filter(|(line, _)| !line.points.is_empty()) {
        let places: Vec<String> =
            line.points.iter().map(|(pods, value)| format!("{:.1},{:.1}", x(*pods), y(*value))).collect();
        let path = places.join(" ");
        let _ = writeln!(svg, "<polyline points=\"{path}\" fill=\"none\" stroke=\"{colour}\" stroke-width=\"2.5\"/>");
        for (pods, value) in &line.points {
            let _ = writeln!(svg, "<circle cx=\"{:.1}\" cy=\"{:.1}\" r=\"4\" fill=\"{colour}\"/>", x(*pods), y(*value));
        }
        labels.extend(line.points.last().map(|(pods, value)| (y(*value) + 4.0, x(*pods) + 10.0, line.name, colour)));
    }
    // Names stand at the ends of their lines, one below the other.
    labels.sort_by(|a, b| a.0.total_cmp(&b.0));
    let mut lowest = 0.0_f64;
    for (at, left, name, colour) in labels {
        lowest = at.max(lowest + 16.0);
        let _ = writeln!(svg, "<text x=\"{left:.1}\" y=\"{lowest:.1}\" style=\"fill: {colour}\">{name}</text>");
    }
    svg.push_str("</svg>\n");
    svg
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::figures::Figures;

    #[test]
    fn lines_have_a_point_for_each_size_that_was_measured() {
        let mut results = Results::default();
        for (size, seconds) in [(1_000, 0.02), (10_000, 0.2), (100_000, 2.0), (1_000_000, 20.0)] {
            let mut figures = Figures::default();
            figures.insert("sync.wall_s", seconds);
            results.add(ours(size), Ok(figures));
        }
        let svg = sync(&results);
        assert_eq!(svg.matches("<circle").count(), 4);
        // From the lower left to the upper right, a decade each.
        assert!(svg.contains("points=\"80.0,345.9 250.0,265.9 420.0,185.9 590.0,105.9\""), "{svg}");
    }

    #[test]
    fn nothing_measured_is_an_empty_picture() {
        let svg = memory(&Results::default());
        assert!(svg.contains("Resident memory") && !svg.contains("NaN") && !svg.contains("inf"), "{svg}");
    }
}
