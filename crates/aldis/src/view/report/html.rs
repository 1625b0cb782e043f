//! A report as one HTML file: no script, no request, and every word of an agent as text.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use sha2::{Digest as _, Sha256};

use super::outline::{Block, outline};
use crate::view::display;
use crate::view::timeline::{Timeline, svg};
use crate::view::wire::report::ReportForm;

/// The style of the page, which is all that its policy allows.
const STYLE: &str = include_str!("style.css");

/// Writes a report.
pub(crate) fn html(form: &ReportForm, timeline: &Timeline) -> String {
    let hash = STANDARD.encode(Sha256::digest(STYLE.as_bytes()));
    let mut page = format!(
        "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\n\
         <meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'sha256-{hash}'; base-uri 'none'; form-action 'none'\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <title>{}</title>\n<style>{STYLE}</style></head><body><main>\n",
        text(&form.title)
    );
    for block in outline(form) {
        page.push_str(&written(form, timeline, block));
        page.push('\n');
    }
    page.push_str("</main></body></html>\n");
    page
}

fn written(form: &ReportForm, timeline: &Timeline, block: Block<'_>) -> String {
    match block {
        Block::Title { title, outcome, good } => {
            let (class, mark) = match (form.active, good) {
                (true, _) => ("active", "●"),
                (false, true) => ("good", "✔"),
                (false, false) => ("bad", "✘"),
            };
            format!("<h1>{}</h1><p class=\"{class}\">{mark} {}</p>", text(title), text(outcome))
        }
        Block::Heading(heading) => format!("<h2>{heading}</h2>"),
        Block::Facts(facts) => {
            let facts = facts.into_iter();
            let facts = facts.map(|(label, fact)| format!("<dt>{label}<dd>{}", text(&fact)));
            format!("<dl>{}</dl>", facts.collect::<String>())
        }
        Block::Quote(words) => format!("<blockquote>{}</blockquote>", text(words)),
        Block::Output(output) => format!("<pre>{}</pre>", text(output)),
        Block::Table { head, rows } => {
            let head: String = head.iter().map(|cell| format!("<th>{cell}")).collect();
            let row = |row: Vec<String>| {
                let cells: String = row.iter().map(|cell| format!("<td>{}", text(cell))).collect();
                format!("<tr>{cells}")
            };
            let rows: String = rows.into_iter().map(row).collect();
            format!("<div><table><tr>{head}{rows}</table></div>")
        }
        Block::Picture => format!("<figure>{}</figure>", svg(timeline)),
    }
}

/// Words as text.
fn text(words: &str) -> String {
    let words = display::lines(words);
    words.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}
