//! The plot: one bar a row, calls per core-second on a scale by tens, so that the slow rows can be read too.

use std::fmt::Write as _;

use super::whole;
use crate::measure::Figures;

const BAR: f64 = 18.0;
const GAP: f64 = 6.0;
const LABELS: f64 = 200.0;
const WIDTH: f64 = 560.0;
const RIGHT: f64 = 90.0;
const TOP: f64 = 56.0;
/// The scale begins here.
const LEAST: f64 = 100.0;

pub(super) fn bars(rows: &[Figures]) -> String {
    let mut rows: Vec<&Figures> = rows.iter().filter(|row| row.void.is_none()).collect();
    rows.sort_by(|a, b| b.calls_per_core_second.median.total_cmp(&a.calls_per_core_second.median));
    let most = rows.first().map_or(LEAST * 10.0, |row| row.calls_per_core_second.median.max(LEAST * 10.0));
    let decades = (most / LEAST).log10();
    let place = |calls: f64| WIDTH * ((calls.max(LEAST) / LEAST).log10() / decades);
    let (width, height) = (LABELS + WIDTH + RIGHT, TOP + rows.len() as f64 * (BAR + GAP) + GAP);
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width:.0} {height:.0}\" font-family=\"sans-serif\" \
         font-size=\"12\">\n<rect width=\"100%\" height=\"100%\" fill=\"#fff\"/>\n\
         <text x=\"8\" y=\"20\" font-size=\"15\">Tool calls per core-second (each line is ten times the one before)</text>\n"
    );
    let mut line = LEAST;
    while line <= most {
        let x = LABELS + place(line);
        let label = whole(line);
        let _ = writeln!(
            svg,
            "<line x1=\"{x:.1}\" x2=\"{x:.1}\" y1=\"{TOP}\" y2=\"{height:.0}\" stroke=\"#ccc\"/>\
             <text x=\"{x:.1}\" y=\"{:.0}\" text-anchor=\"middle\" fill=\"#666\">{label}</text>",
            TOP - 6.0
        );
        line *= 10.0;
    }
    for (number, row) in rows.iter().enumerate() {
        let y = TOP + GAP + number as f64 * (BAR + GAP);
        let (bar, text) = (place(row.calls_per_core_second.median), y + BAR - 5.0);
        let color = match row.row.as_str() {
            "floor" => "#999",
            name if name.starts_with("weir") => "#1a7f5a",
            _ => "#4a6fa5",
        };
        let _ = writeln!(
            svg,
            "<text x=\"{:.0}\" y=\"{text:.0}\" text-anchor=\"end\">{}</text>\
             <rect x=\"{LABELS}\" y=\"{y:.0}\" width=\"{bar:.1}\" height=\"{BAR}\" fill=\"{color}\"/>\
             <text x=\"{:.1}\" y=\"{text:.0}\">{}</text>",
            LABELS - 8.0,
            row.row,
            LABELS + bar + 6.0,
            whole(row.calls_per_core_second.median)
        );
    }
    svg.push_str("</svg>\n");
    svg
}
