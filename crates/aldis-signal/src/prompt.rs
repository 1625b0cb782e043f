//! What to tell an agent so that it speaks a dialect.
//!
//! Instructions show the form to write, indented by four spaces below a line that ends in a colon, and
//! then say when to write it. So they are quoted by their own structure: an agent that repeats its
//! instructions, or a host that stores them in the transcript, does not satisfy the engine that asked.
//! A property test scans every text this module makes as if the agent had said it and expects no signal.

use crate::dialect::{Dialect, Syntax};

/// What stands for the literal form in the instructions of a dialect with a configurable word.
pub(crate) const FORM: &str = "{form}";

/// Returns the instructions for agents that speak `dialect`.
///
/// ```
/// use aldis_signal::{Dialect, Parser, prompt};
///
/// let promise = Dialect::builtin("promise").unwrap().with_word("ALL GREEN").unwrap();
/// let text = prompt::instructions(&promise);
/// assert!(text.contains("\n    <promise>ALL GREEN</promise>\n"));
/// assert!(!Parser::new(promise.into()).read(&text).is_complete());
/// ```
pub fn instructions(dialect: &Dialect) -> String {
    match dialect.prompt.trim() {
        "" => general(dialect),
        text => text.replace(FORM, &form(dialect)) + "\n",
    }
}

/// Returns the instructions with the run token that signals must carry.
///
/// The token is told in a sentence, apart from any signal, so that the text is still no signal. A
/// keyword that ends the message has no place for one: its instructions are the plain ones.
pub fn instructions_with_token(dialect: &Dialect, token: &str) -> String {
    let how = match &dialect.syntax {
        Syntax::Block(_) | Syntax::Line(_) | Syntax::Status(_) => {
            "as a line of its own with the key TOKEN, inside the block or below the signal"
        }
        Syntax::Tag(_) => "first in the words of the tag, with a number sign directly before it",
        Syntax::Fence(_) => "as the JSON member token",
        Syntax::Trailer(_) => return instructions(dialect),
    };
    format!(
        "{}\nThe code of this run is {token}. Say it with every signal, {how}; a signal without it \
         may be refused. Do not write the code anywhere else.\n",
        instructions(dialect)
    )
}

/// Says how a dialect without instructions of its own is written.
fn general(dialect: &Dialect) -> String {
    let place = match &dialect.syntax {
        Syntax::Block(_) => "End your message with a block of this form, outside any code fence",
        Syntax::Fence(_) => "Report with one JSON object in a fenced block",
        Syntax::Line(_) => "Report with the name of a signal at the very start of a line",
        Syntax::Status(_) => "End your message with this block, one key a line",
        Syntax::Tag(_) => "Report on a line of its own, as plain text outside code",
        Syntax::Trailer(_) => "Put the keyword on a line of its own as the last thing you write",
    };
    let names: Vec<&str> = dialect.signals.iter().map(|signal| &*signal.name).collect();
    let form = form(dialect).replace('\n', "\n    ");
    format!(
        "{place}, without the four spaces in front:\n\n    {form}\n\nThe signals are {}. Do not write one \
         before it is true.\n",
        names.join(", ")
    )
}

/// Returns the first signal of a dialect as it is written.
fn form(dialect: &Dialect) -> String {
    let first = dialect.signals.first().map_or("", |def| &*def.name);
    match &dialect.syntax {
        Syntax::Block(it) => format!("{0}\n{1}: {first}\n{0}", it.delimiter, it.key),
        Syntax::Fence(it) => format!("```{}\n{{\"type\": \"{first}\"}}\n```", it.info),
        Syntax::Line(it) => format!("{first}{} <subject>", it.separator),
        Syntax::Status(it) => format!("{}\nKEY: value\n{}", it.open, it.close),
        Syntax::Tag(it) => match (&it.text, &it.attribute) {
            (Some(agreed), _) => format!("{}{agreed}{}", it.open, it.close),
            (None, Some(attribute)) => {
                format!("{} {attribute}=\"<subject>\"><words>{}", it.open, it.close)
            }
            (None, None) => format!("{}{first}{}", it.open, it.close),
        },
        Syntax::Trailer(it) => it.keyword.clone(),
    }
}

#[cfg(test)]
mod tests {
    //! No instruction is itself a signal, and every form that is shown is one.

    use super::*;
    use std::sync::Arc;

    use crate::dialect::builtins;
    use crate::scan::{Rules, Scan};

    /// Scans what an agent would repeat, by the dialect itself and by all built-in ones.
    #[track_caller]
    fn scans_to_nothing(dialect: &Dialect, text: &str) {
        for rules in [&Rules::new([dialect.clone().into()]), Rules::builtin()] {
            let signals = Scan::new(rules).signals(text.as_bytes());
            assert!(signals.is_empty(), "{text}: {signals:#?}");
        }
    }

    #[test]
    fn instructions_scan_to_nothing() {
        for dialect in builtins() {
            let mut silent = Dialect::clone(dialect);
            silent.prompt.clear();
            for dialect in [dialect, &silent] {
                scans_to_nothing(dialect, &instructions(dialect));
                scans_to_nothing(dialect, &instructions_with_token(dialect, "k7Qd"));
            }
        }
    }

    /// The forms that are shown are signals where they are said.
    #[test]
    fn forms_are_signals() {
        for dialect in builtins() {
            let text = instructions(dialect);
            let mut said = String::new();
            for line in text.lines().filter(|line| line.is_empty() || line.starts_with("    ")) {
                said += line.trim_start();
                said += "\n";
            }
            let said = said.replace("<the time now, ISO 8601>", "2026-03-02T10:00:00Z");
            let rules = Rules::new([Arc::clone(dialect)]);
            let found = Scan::new(&rules).run(said.trim().as_bytes());
            let all = found.iter().all(|found| found.signal().is_some());
            assert!(!found.is_empty() && all, "{}: {said}\n{found:#?}", dialect.name);
        }
    }

    #[test]
    fn configured_words_are_shown() {
        for (name, word, form) in [
            ("turn", "OVER_TO_YOU", "OVER_TO_YOU"),
            ("turn", "OVER", "OVER"),
            ("promise", "COMPLETE", "<promise>COMPLETE</promise>"),
            ("promise", "ALL DONE", "<promise>ALL DONE</promise>"),
            ("promise", "\u{dc}berall fertig!", "<promise>\u{dc}berall fertig!</promise>"),
            ("promise", "TURN_COMPLETE", "<promise>TURN_COMPLETE</promise>"),
        ] {
            let mut dialect = Dialect::builtin(name).unwrap().with_word(word).unwrap();
            for _ in 0..2 {
                let text = instructions(&dialect);
                assert!(text.contains(&format!(":\n\n    {form}\n\n")), "{text}");
                scans_to_nothing(&dialect, &text);
                dialect.prompt.clear();
            }
        }
    }

    /// Nothing would read it.
    #[test]
    fn a_keyword_takes_no_token() {
        let turn = Dialect::builtin("turn").unwrap();
        assert_eq!(instructions_with_token(turn, "k7Qd"), instructions(turn));
    }
}
