//! What to tell an agent so that it speaks a dialect.
//!
//! Instructions name the signals without writing one: an agent that repeats its instructions, or a
//! host that stores them in the transcript, must not satisfy the engine that asked. A property test
//! scans every text this module makes as if the agent had said it and expects nothing.

use crate::dialect::{Dialect, Syntax};

/// Returns the instructions for agents that speak `dialect`.
pub fn instructions(dialect: &Dialect) -> String {
    let text = dialect.prompt.trim();
    if !text.is_empty() {
        return format!("{text}\n");
    }
    if let Syntax::Trailer(_) = &dialect.syntax {
        return format!("{}\n", form(dialect));
    }
    let names: Vec<&str> = dialect.signals.iter().map(|signal| &*signal.name).collect();
    format!("{} The signals are {}.\n", form(dialect), names.join(", "))
}

/// Returns the instructions with the run token that signals must carry.
///
/// The token is told in a sentence, apart from any signal, so that the text is still no signal.
pub fn instructions_with_token(dialect: &Dialect, token: &str) -> String {
    let how = match &dialect.syntax {
        Syntax::Block(_) | Syntax::Line(_) | Syntax::Status(_) => {
            "as a line of its own with the key TOKEN, inside the block or below the signal"
        }
        Syntax::Tag(_) => "first in the words of the tag, with a number sign directly before it",
        Syntax::Fence(_) => "as the JSON member token",
        Syntax::Trailer(_) => "before the keyword",
    };
    format!(
        "{}\nThe code of this run is {token}. Say it with every signal, {how}; a signal without it \
         may be refused. Do not write the code anywhere else.\n",
        instructions(dialect)
    )
}

/// Says in general terms how a dialect without instructions of its own is written.
fn form(dialect: &Dialect) -> String {
    match &dialect.syntax {
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
        Syntax::Tag(_) => {
            "Report with a tag of this dialect around the name of a signal, as plain \
                           text outside code."
                .to_owned()
        }
        Syntax::Trailer(trailer) => format!(
            "Put the keyword {} on a line of its own as the very last thing in your message, without \
             a full stop, quotes, bold or code fence around it.",
            trailer.keyword
        ),
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

    #[test]
    fn another_keyword_is_told() {
        let turn = Dialect::builtin("turn").unwrap().with_word("OVER_TO_YOU").unwrap();
        let text = instructions(&turn);
        assert!(text.contains("OVER_TO_YOU") && !text.contains("TURN"), "{text}");
        let found = scan(&Rules::new([turn.into()]), text.as_bytes(), &Origin::assistant());
        assert!(found.iter().all(|found| found.signal().is_none()), "{found:#?}");
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
