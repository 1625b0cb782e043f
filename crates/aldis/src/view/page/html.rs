//! A page as one HTML file: no script, no request, and every word of an agent as text.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use sha2::{Digest as _, Sha256};

use super::{Block, PageMark};
use crate::view::display;
use crate::view::timeline::svg;

/// The style of the page, which is all that its policy allows.
const STYLE: &str = include_str!("style.css");

/// Writes a page; the title is that of its window.
pub(crate) fn html(title: &str, blocks: Vec<Block<'_>>) -> String {
    let hash = STANDARD.encode(Sha256::digest(STYLE.as_bytes()));
    let mut page = format!(
        "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\n\
         <meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'sha256-{hash}'; base-uri 'none'; form-action 'none'\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <title>{}</title>\n<style>{STYLE}</style></head><body><main>\n",
        text(title)
    );
    for block in blocks {
        page.push_str(&written(block));
        page.push('\n');
    }
    page.push_str("</main></body></html>\n");
    page
}

fn written(block: Block<'_>) -> String {
    match block {
        Block::Title { title, outcome, mark } => {
            let class = match mark {
                PageMark::Active => "active",
                PageMark::Good => "good",
                PageMark::Bad => "bad",
            };
            let (title, outcome) = (text(&title), text(&outcome));
            format!("<h1>{title}</h1><p class=\"{class}\">{} {outcome}</p>", mark.sign())
        }
        Block::Heading(heading) => format!("<h2>{}</h2>", text(&heading)),
        Block::Facts(facts) => {
            let facts = facts.into_iter();
            let facts = facts.map(|(label, fact)| format!("<dt>{label}<dd>{}", text(&fact)));
            format!("<dl>{}</dl>", facts.collect::<String>())
        }
        Block::Sentence(sentence) => format!("<p>{}</p>", text(&sentence)),
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
        Block::Picture(timeline) => format!("<figure>{}</figure>", svg(timeline)),
    }
}

/// Words as text.
fn text(words: &str) -> String {
    let words = display::lines(words);
    words.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}
