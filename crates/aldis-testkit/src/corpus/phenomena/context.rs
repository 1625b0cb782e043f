//! Where in the message it stands: fences, quotes, comments, tables, search hits, diffs.

use super::{structure, twins};
use crate::corpus::claims::{self, ALL, TAGS, WrittenSignal};
use crate::corpus::filler;
use crate::corpus::{Phenomenon, Rng, SampleDraft};

/// Every line of the signal can carry a prefix and is then none.
const LINES: &[&str] =
    &["caw", "delivery", "chorus", "turn", "promise", "ralph-status", "ralphex", "event", "axiom"];
const TAGS_AND_TURN: &[&str] = &["chorus", "promise", "ralphex", "event", "axiom", "turn"];
const NO_TURN: &[&str] =
    &["caw", "delivery", "chorus", "pilot", "promise", "ralph-status", "ralphex", "event", "axiom"];

pub(super) const PHENOMENA: &[Phenomenon] = &[
    structure("fence", ALL, fence),
    structure("fence_longer", ALL, fence_longer),
    twins("fence_unclosed", ALL, LINES, fence_unclosed),
    structure("fence_tilde", ALL, fence_tilde),
    structure("fence_indented", ALL, fence_indented),
    structure("fence_terminal", &["caw"], fence_terminal),
    structure("inline_code", TAGS_AND_TURN, inline_code),
    structure("inline_code_paragraph", TAGS, inline_code_paragraph),
    structure("block_quote", ALL, block_quote),
    structure("table_row", TAGS_AND_TURN, table_row),
    structure("html_comment", ALL, html_comment),
    twins("html_comment_unclosed", ALL, ALL, html_comment_unclosed),
    structure("search_hit", LINES, search_hit),
    structure("line_number", LINES, line_number),
    structure("diff", LINES, diff),
    structure("quotation_marks", TAGS, quotation_marks),
    structure("closing_sentence", NO_TURN, closing_sentence),
];

/// A fence around the claim, longer than any fence in it.
fn fenced(claim: &WrittenSignal, mark: char, info: &str) -> String {
    let inner = claim.text.starts_with("```");
    let fence = mark.to_string().repeat(if inner && mark == '`' { 4 } else { 3 });
    format!("{fence}{info}\n{}\n{fence}", claim.text)
}

/// The claim behind something that has ended, or `quoted` in its place.
fn after_or_in(
    rng: &mut Rng,
    dialect: &str,
    genuine: bool,
    claim: WrittenSignal,
    ended: &str,
    quoted: &str,
) -> SampleDraft {
    if genuine {
        let text = filler::around(rng, dialect, &claim.text);
        return SampleDraft::heard(
            format!("{ended}\n\n{}\n\n{text}", filler::lead(rng)),
            vec![claim.expected],
        );
    }
    SampleDraft::unheard(filler::around(rng, dialect, quoted))
}

fn fence(rng: &mut Rng, dialect: &'static str, genuine: bool) -> SampleDraft {
    let claim = claims::any(rng, dialect);
    let info = rng.pick(&["text", "markdown", "yaml", "console"]);
    let (ended, quoted) = (filler::fence(rng), fenced(&claim, '`', info));
    after_or_in(rng, dialect, genuine, claim, &ended, &quoted)
}

/// A shorter fence inside does not close the longer one.
fn fence_longer(rng: &mut Rng, dialect: &'static str, genuine: bool) -> SampleDraft {
    let claim = claims::any(rng, dialect);
    let fence = rng.pick(&["````", "`````"]);
    let ended = format!("{fence}markdown\n{}\n{fence}", filler::fence(rng));
    let quoted = format!("{fence}markdown\n```text\nstep 1\n```\n\n{}\n{fence}", claim.text);
    after_or_in(rng, dialect, genuine, claim, &ended, &quoted)
}

/// A fence may be closed by a longer one; one that is not closed quotes to the end.
fn fence_unclosed(rng: &mut Rng, dialect: &'static str, genuine: bool) -> SampleDraft {
    let claim = claims::any(rng, dialect);
    let ended = "```sh\ncargo fmt --check\n`````";
    let quoted = format!("```sh\ncargo fmt --check\n\n{}", claim.text);
    after_or_in(rng, dialect, genuine, claim, ended, &quoted)
}

fn fence_tilde(rng: &mut Rng, dialect: &'static str, genuine: bool) -> SampleDraft {
    let claim = claims::any(rng, dialect);
    let ended = format!("~~~\n{}\n```\n~~~", filler::fence(rng));
    let quoted = fenced(&claim, '~', "text");
    after_or_in(rng, dialect, genuine, claim, &ended, &quoted)
}

/// In a list item fences are indented; what stands in them may start in column 0.
fn fence_indented(rng: &mut Rng, dialect: &'static str, genuine: bool) -> SampleDraft {
    let claim = claims::any(rng, dialect);
    let ended = "1. Build it.\n\n   ```sh\n   cargo build\n   ```\n\n2. Ship it.".to_owned();
    let blanks = rng.pick(&[" ", "  ", "   "]);
    let fence = if claim.text.starts_with("```") { "````" } else { "```" };
    let quoted =
        format!("- as in the guide\n\n{blanks}{fence}text\n{}\n{blanks}{fence}", claim.text);
    after_or_in(rng, dialect, genuine, claim, &ended, &quoted)
}

/// Models wrap what they were shown wrapped: a bare fence with one block at the end counts.
fn fence_terminal(rng: &mut Rng, _: &'static str, genuine: bool) -> SampleDraft {
    let claim = claims::caw(rng);
    let before = filler::before(rng);
    if genuine {
        let end = rng.pick(&["", "\n", "\n\n", "  \n"]);
        return SampleDraft::heard(
            format!("{before}```\n{}\n```{end}", claim.text),
            vec![claim.expected],
        );
    }
    let text = match rng.below(3) {
        0 => format!("{before}```\n{}\n```\n\n{}", claim.text, filler::closing(rng)),
        1 => format!("{before}```yaml\n{}\n```\n", claim.text),
        _ => format!("{before}```\nstep 4 of 4\n{}\n```\n", claim.text),
    };
    SampleDraft::unheard(text)
}

fn inline_code(rng: &mut Rng, dialect: &'static str, genuine: bool) -> SampleDraft {
    let claim = claims::any(rng, dialect);
    let ended = "Renamed `load_all` to `load` and dropped ``a ` b``.";
    let ticks = rng.pick(&["`", "``"]);
    let quoted = match dialect {
        "turn" => format!("The keyword is {ticks}{}{ticks}", claim.text),
        _ => format!("The module handles {ticks}{}{ticks} as input.", claim.text),
    };
    after_or_in(rng, dialect, genuine, claim, ended, &quoted)
}

/// Inline code ends with its paragraph, closed or not.
fn inline_code_paragraph(rng: &mut Rng, dialect: &'static str, genuine: bool) -> SampleDraft {
    let claim = claims::any(rng, dialect);
    let ended = "The key is the ` character on most layouts.";
    let quoted = format!("Handled: `a list of\n{}\nand more` in the table.", claim.text);
    after_or_in(rng, dialect, genuine, claim, ended, &quoted)
}

fn block_quote(rng: &mut Rng, dialect: &'static str, genuine: bool) -> SampleDraft {
    let claim = claims::any(rng, dialect);
    let ended = format!("> {}\n> {}", filler::sentence(rng), filler::sentence(rng));
    let mark = rng.pick(&["> ", ">", "> > ", "  > "]);
    let quoted = claim.text.lines().map(|line| format!("{mark}{line}")).collect::<Vec<_>>();
    after_or_in(rng, dialect, genuine, claim, &ended, &quoted.join("\n"))
}

fn table_row(rng: &mut Rng, dialect: &'static str, genuine: bool) -> SampleDraft {
    let claim = claims::any(rng, dialect);
    let ended = filler::table(rng);
    let head = "| step | text |\n|---|---|";
    let quoted = match dialect {
        "turn" => format!("{head}\n| last | {}", claim.text),
        _ => format!("{head}\n| last | {} |", claim.text),
    };
    after_or_in(rng, dialect, genuine, claim, &ended, &quoted)
}

fn html_comment(rng: &mut Rng, dialect: &'static str, genuine: bool) -> SampleDraft {
    let claim = claims::any(rng, dialect);
    let ended = "<!-- generated by the importer -->";
    let quoted = match rng.chance(50) && TAGS.contains(&dialect) {
        true => format!("<!-- {} -->", claim.text),
        false => format!("<!--\n{}\n-->", claim.text),
    };
    after_or_in(rng, dialect, genuine, claim, ended, &quoted)
}

/// A comment that is not closed hides the rest of the message.
fn html_comment_unclosed(rng: &mut Rng, dialect: &'static str, genuine: bool) -> SampleDraft {
    let claim = claims::any(rng, dialect);
    let ended = "<!--\ngenerated by the importer\n-->";
    let quoted = format!("<!-- notes of the importer\n\n{}", claim.text);
    after_or_in(rng, dialect, genuine, claim, ended, &quoted)
}

/// What `grep -n` and its context lines print.
fn search_hit(rng: &mut Rng, dialect: &'static str, genuine: bool) -> SampleDraft {
    let claim = claims::any(rng, dialect);
    let path = rng.pick(&["docs/prompt.md", "src/loop.rs", "README.md", "a/b-c/notes.txt"]);
    let mut number = rng.between(1, 900);
    let mark = if rng.chance(60) { ':' } else { '-' };
    let mut lines = Vec::new();
    for line in claim.text.lines() {
        lines.push(format!("{path}{mark}{number}{mark}{line}"));
        number += 1;
    }
    let ended = format!("{path}:{number}:fn main() {{");
    after_or_in(rng, dialect, genuine, claim, &ended, &lines.join("\n"))
}

/// What file viewers print.
fn line_number(rng: &mut Rng, dialect: &'static str, genuine: bool) -> SampleDraft {
    let claim = claims::any(rng, dialect);
    let mut number = rng.between(1, 900);
    let mark = rng.pick(&["\t", "→"]);
    let mut lines = Vec::new();
    for line in claim.text.lines() {
        lines.push(format!("{number:>6}{mark}{line}"));
        number += 1;
    }
    let ended = format!("{number:>6}{mark}fn main() {{");
    after_or_in(rng, dialect, genuine, claim, &ended, &lines.join("\n"))
}

fn diff(rng: &mut Rng, dialect: &'static str, genuine: bool) -> SampleDraft {
    let claim = claims::any(rng, dialect);
    let mark = rng.pick(&["+", "-"]);
    let quoted = claim.text.lines().map(|line| format!("{mark}{line}")).collect::<Vec<_>>();
    let ended = "@@ -1,2 +1,2 @@\n-let a = 1;\n+let a = 2;";
    let quoted = format!("@@ -3,2 +3,9 @@\n{}", quoted.join("\n"));
    after_or_in(rng, dialect, genuine, claim, ended, &quoted)
}

fn quotation_marks(rng: &mut Rng, dialect: &'static str, genuine: bool) -> SampleDraft {
    let claim = claims::any(rng, dialect);
    let (open, close) = rng.pick(&[("\"", "\""), ("“", "”")]);
    let ended = format!("The title is now {open}Limits and budgets{close} everywhere.");
    let quoted = format!("Value: {open}{}{close}", claim.text);
    after_or_in(rng, dialect, genuine, claim, &ended, &quoted)
}

/// A polite sentence after the claim changes nothing.
fn closing_sentence(rng: &mut Rng, dialect: &'static str, genuine: bool) -> SampleDraft {
    let claim = claims::done(rng, dialect);
    let (before, closing) = (filler::before(rng), filler::closing(rng));
    let gap = if claim.text.ends_with("---") || rng.chance(50) { "\n\n" } else { "\n" };
    if genuine {
        return SampleDraft::heard(
            format!("{before}{}{gap}{closing}", claim.text),
            vec![claim.expected],
        );
    }
    let quoted = fenced(&claim, '`', "text");
    SampleDraft::unheard(format!("{before}{quoted}{gap}{closing}"))
}
