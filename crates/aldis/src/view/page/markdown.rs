//! A page as Markdown. Whatever agents wrote is text: no markup of theirs works.

use super::Block;
use crate::view::display;
use crate::view::time::{clock_time, localized};
use crate::view::timeline::{MarkKind, Timeline};

/// How much stands in a cell of a table.
const CELL_MAX: usize = 200;

/// Writes a page.
pub(crate) fn markdown(blocks: Vec<Block<'_>>) -> String {
    let mut lines = Vec::new();
    for block in blocks {
        match block {
            Block::Title { title, outcome, mark } => {
                lines.push(format!("# {}", inline(&title)));
                let outcome = format!("**{} {}**", mark.sign(), inline(&outcome));
                lines.extend([String::new(), outcome]);
            }
            Block::Heading(heading) => lines.push(format!("## {}", inline(&heading))),
            Block::Sentence(sentence) => lines.push(inline(&sentence)),
            Block::Facts(facts) => {
                let facts = facts.into_iter();
                lines.extend(facts.map(|(label, fact)| format!("- {label}: {}", inline(&fact))));
            }
            Block::Quote(words) => {
                lines.extend(words.trim().lines().map(|line| format!("> {}", inline(line))));
            }
            // Indented: nothing ends such a block but a line that is not.
            Block::Output(output) => {
                lines.extend(output.lines().map(|line| format!("    {}", display::line(line))));
            }
            Block::Table { head, rows } => {
                lines.push(format!("| {} |", head.join(" | ")));
                lines.push(format!("|{}", " --- |".repeat(head.len())));
                for row in rows {
                    let cells: Vec<String> = row.iter().map(|cell| cut(cell)).collect();
                    lines.push(format!("| {} |", cells.join(" | ")));
                }
            }
            Block::Picture(timeline) => moments(&mut lines, timeline),
        }
        lines.push(String::new());
    }
    lines.join("\n")
}

fn moments(lines: &mut Vec<String>, timeline: &Timeline) {
    let rows = timeline.lanes.iter().flat_map(|lane| lane.marks.iter().map(move |it| (lane, it)));
    let mut rows: Vec<_> = rows.collect();
    rows.sort_by_key(|(_, mark)| mark.at);
    let is_one = timeline.lanes.len() == 1;
    lines.extend(rows.into_iter().map(|(lane, mark)| {
        let symbol = match mark.kind {
            MarkKind::Good => "✓",
            MarkKind::Bad => "✗",
            MarkKind::Note => "·",
        };
        let label = if is_one { String::new() } else { format!("{}: ", inline(&lane.label)) };
        format!(
            "- {} {symbol} {label}{}",
            clock_time(mark.at),
            cut(&localized(mark.at, &mark.title))
        )
    }));
}

fn cut(text: &str) -> String {
    let text = text.replace('\n', " ");
    match text.char_indices().nth(CELL_MAX) {
        Some((end, _)) => format!("{}…", inline(&text[..end])),
        None => inline(&text),
    }
}

/// Words as words: whatever Markdown or HTML would see in them is escaped.
fn inline(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in display::line(text).chars() {
        if matches!(c, '\\' | '`' | '*' | '_' | '[' | ']' | '<' | '>' | '#' | '|' | '~' | '!' | '&')
        {
            out.push('\\');
        }
        out.push(c);
    }
    out
}
