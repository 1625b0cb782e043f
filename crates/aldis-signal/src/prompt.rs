//! What to tell an agent so that it speaks a dialect.
//!
//! Instructions name the signals without writing one: an agent that repeats its instructions, or a
//! host that stores them in the transcript, must not satisfy the engine that asked. A property test
//! scans every text this module makes as if the agent had said it and expects nothing.

use std::borrow::Borrow;

use crate::dialect::syntax::tag;
use crate::dialect::{Dialect, Syntax};

/// Returns the instructions for agents that speak `dialect`.
pub fn instructions(dialect: &Dialect) -> String {
    let mut text = match dialect.prompt.trim() {
        "" => form(dialect),
        text => text.to_owned(),
    };
    if let Syntax::Tag(tag::Syntax { text: Some(agreed), .. }) = &dialect.syntax {
        // The words alone, outside the tag, say nothing.
        let said = match spelled(agreed).filter(|_| !agreed.contains(' ')) {
            Some(spelled) => format!("made of {spelled}"),
            None => format!("\"{agreed}\", without the quotation marks"),
        };
        text = format!("{text}\nThe agreed text is {said}.");
    }
    text.push('\n');
    text
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

/// Says in general terms how a dialect without instructions of its own is written.
fn form(dialect: &Dialect) -> String {
    let form = match &dialect.syntax {
        Syntax::Block(block) => format!(
            "End your message with a block between two lines of `{}`; its first line has the key {} \
             and the name of a signal.",
            block.delimiter, block.key
        ),
        Syntax::Fence(fence) => format!(
            "Report with one JSON object in a fenced block whose info string is {}.",
            fence.info
        ),
        Syntax::Line(_) => {
            "Report with the name of a signal at the very start of a line, and what \
                            it is about behind a colon."
                .to_owned()
        }
        Syntax::Status(_) => {
            "End your message with the status block of this dialect, one key a line.".to_owned()
        }
        Syntax::Tag(tag) if tag.text.is_some() => {
            return "When it is completely and truly so, write the agreed text between the opening \
                    and the closing tag of this dialect, as plain text outside code."
                .to_owned();
        }
        Syntax::Tag(_) => {
            "Report with a tag of this dialect around the name of a signal, as plain \
                           text outside code."
                .to_owned()
        }
        Syntax::Trailer(trailer) => return trailer_form(&trailer.keyword),
    };
    let names: Vec<&str> = dialect.signals.iter().map(|signal| &*signal.name).collect();
    format!("{form} The signals are {}.", names.join(", "))
}

fn trailer_form(keyword: &str) -> String {
    let place = "on a line of its own as the very last thing in your message";
    let plain = "without a full stop, quotes, bold or code fence around it";
    match spelled(keyword) {
        Some(spelled) => format!("Put the keyword {place}: {spelled}, {plain}."),
        None => format!("Put the keyword {keyword} {place}, {plain}."),
    }
}

/// Says a word with underscores without writing it: `A_B` would look as if it was said.
fn spelled(word: &str) -> Option<String> {
    let parts: Vec<&str> = word.split('_').collect();
    if parts.len() < 2 {
        return None;
    }
    if parts.contains(&"") {
        return Some(format!("{}, written together", listed(&runs(word))));
    }
    let small = word.contains(char::is_lowercase);
    let case = if small { "in exactly these letters" } else { "in capitals" };
    let joints = if parts.len() == 2 { "an underscore" } else { "underscores" };
    Some(format!("the words {}, {case}, joined by {joints}", listed(&parts)))
}

/// Returns the words of a word and the underscores between them, said in words.
fn runs(word: &str) -> Vec<String> {
    let mut runs = Vec::new();
    let mut rest = word;
    while let Some(first) = rest.chars().next() {
        let length = rest.find(|c| (c == '_') != (first == '_')).unwrap_or(rest.len());
        let (run, behind) = rest.split_at(length);
        runs.push(match (first, length) {
            ('_', 1) => "an underscore".to_owned(),
            ('_', _) => format!("{length} underscores"),
            _ => run.to_owned(),
        });
        rest = behind;
    }
    runs
}

/// Returns `A, B and C`.
fn listed<S: Borrow<str>>(words: &[S]) -> String {
    match words.split_last() {
        Some((last, [])) => last.borrow().to_owned(),
        Some((last, others)) => format!("{} and {}", others.join(", "), last.borrow()),
        None => String::new(),
    }
}

#[cfg(test)]
mod tests {
    //! No instruction is itself a signal.

    use super::*;
    use crate::dialect::builtins;
    use crate::message::Origin;
    use crate::scan::{Rules, scan};

    #[test]
    fn instructions_scan_to_nothing() {
        for dialect in builtins() {
            for text in [instructions(dialect), instructions_with_token(dialect, "k7Qd")] {
                let found = scan(Rules::builtin(), text.as_bytes(), &Origin::assistant());
                assert!(found.is_empty(), "{}: {found:#?}", dialect.name);
            }
        }
    }

    /// Scans what an agent would repeat, by the dialect itself and by all built-in ones.
    #[track_caller]
    fn scans_to_nothing(dialect: Dialect, text: &str) {
        for rules in [&Rules::new([dialect.into()]), Rules::builtin()] {
            let found = scan(rules, text.as_bytes(), &Origin::assistant());
            assert!(found.is_empty(), "{text}: {found:#?}");
        }
    }

    #[test]
    fn another_keyword_is_told() {
        for (word, told) in [
            ("OVER_TO_YOU", "the words OVER, TO and YOU, in capitals, joined by underscores,"),
            (
                "Over_out",
                "the words Over and out, in exactly these letters, joined by an underscore,",
            ),
            ("__DONE_", "2 underscores, DONE and an underscore, written together,"),
        ] {
            let turn = Dialect::builtin("turn").unwrap().with_word(word).unwrap();
            let text = instructions(&turn);
            assert!(text.contains(told) && !text.contains("TURN"), "{text}");
            scans_to_nothing(turn, &text);
        }
        let turn = Dialect::builtin("turn").unwrap().with_word("OVER").unwrap();
        assert!(instructions(&turn).contains("the keyword OVER on a line"));
    }

    #[test]
    fn the_agreed_text_is_told() {
        let promise = Dialect::builtin("promise").unwrap();
        for (word, told) in [
            ("COMPLETE", "The agreed text is \"COMPLETE\", without the quotation marks."),
            ("ALL DONE", "\"ALL DONE\""),
            ("LOOP COMPLETE", "\"LOOP COMPLETE\""),
            ("\u{dc}berall fertig!", "\"\u{dc}berall fertig!\""),
            ("TURN_COMPLETE", "made of the words TURN and COMPLETE, in capitals, joined by"),
            ("QA_COMPLETE", "made of the words QA and COMPLETE"),
        ] {
            let mut promise = promise.with_word(word).unwrap();
            let text = instructions(&promise);
            assert!(text.contains(told), "{text}");
            scans_to_nothing(promise.clone(), &text);
            promise.prompt.clear();
            let text = instructions(&promise);
            assert!(text.contains(told) && !text.contains("PROMISE"), "{text}");
            scans_to_nothing(promise, &text);
        }
    }

    /// Nothing would read it.
    #[test]
    fn a_keyword_takes_no_token() {
        let turn = Dialect::builtin("turn").unwrap();
        assert_eq!(instructions_with_token(turn, "k7Qd"), instructions(turn));
    }

    #[test]
    fn a_dialect_without_instructions_gets_some() {
        let mut dialect = Dialect::clone(&builtins()[0]);
        dialect.prompt.clear();
        let text = instructions(&dialect);
        assert!(text.contains("QA_COMPLETE") && text.contains("---"), "{text}");
        let found = scan(Rules::builtin(), text.as_bytes(), &Origin::assistant());
        assert!(found.iter().all(|found| found.signal().is_none()), "{found:#?}");
    }
}
