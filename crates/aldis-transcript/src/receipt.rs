//! Receipts: what `aldis signal` prints where it can write its report nowhere. One counts only in the
//! result of a call whose command is nothing but `aldis signal`; anything else may print whatever it
//! read somewhere.

use crate::content::text_of;
use crate::item::CallResult;
use crate::members::Members;

/// How the line of a receipt begins.
pub const RECEIPT: &str = "aldis-receipt v1 ";
/// How long one may be.
const LENGTH_MAX: usize = 32 * 1024;
/// Members of results that hold what a command printed, where the result is an object.
const OUTPUTS: [&str; 3] = ["aggregated_output", "stdout", "output"];

/// Returns whether a command is `aldis signal ...` and nothing else: one program, no second command, no
/// expansion, nothing that takes its output elsewhere.
pub fn is_report_command(command: &str) -> bool {
    let Some(words) = plain_words(command.trim()) else { return false };
    let [program, signal, ..] = &*words else { return false };
    let is_ours = program == "aldis" || program.starts_with('/') && program.ends_with("/aldis");
    is_ours && signal == "signal"
}

/// Splits a command that is one plain list of words for a shell; nothing if it is anything else.
fn plain_words(command: &str) -> Option<Vec<String>> {
    let mut words = Vec::new();
    let mut word: Option<String> = None;
    let mut letters = command.chars();
    while let Some(letter) = letters.next() {
        match letter {
            ' ' | '\t' => words.extend(word.take()),
            '\'' => {
                let word = word.get_or_insert_default();
                loop {
                    match letters.next()? {
                        '\'' => break,
                        inner => word.push(inner),
                    }
                }
            }
            '"' => {
                let word = word.get_or_insert_default();
                loop {
                    match letters.next()? {
                        '"' => break,
                        '$' | '`' => return None,
                        '\\' => word.push(escaped(letters.next()?)?),
                        inner => word.push(inner),
                    }
                }
            }
            '\\' => word.get_or_insert_default().push(escaped(letters.next()?)?),
            ';' | '&' | '|' | '<' | '>' | '(' | ')' | '{' | '}' | '$' | '`' | '\n' | '\r' | '#'
            | '*' | '?' | '[' | ']' | '~' | '!' | '=' => return None,
            letter => word.get_or_insert_default().push(letter),
        }
    }
    words.extend(word);
    Some(words)
}

/// A letter behind a backslash. Hosts escape commands once more where they show them, so what would
/// expand may.
fn escaped(letter: char) -> Option<char> {
    (!matches!(letter, '$' | '`' | '\n')).then_some(letter)
}

/// Returns the receipt in a result, if there is exactly one.
pub(crate) fn receipt_in(result: &CallResult<'_>) -> Option<String> {
    let content = result.content?;
    memchr::memmem::find(content.bytes(), RECEIPT.as_bytes())?;
    let printed = Members::lenient(content).any_text(&OUTPUTS).map(std::borrow::Cow::into_owned);
    let printed = printed.unwrap_or_else(|| text_of(content));
    let mut lines = printed.lines().filter(|line| line.starts_with(RECEIPT));
    let (only, another) = (lines.next()?, lines.next());
    (another.is_none() && only.len() <= LENGTH_MAX).then(|| only.trim_end().to_owned())
}

#[cfg(test)]
mod tests {
    //! What is nothing but a report.

    use super::*;

    #[test]
    fn only_the_command_alone_is_a_report() {
        for (command, expected) in [
            ("aldis signal done", true),
            (" aldis  signal done 'all; of it'\n", true),
            ("/usr/bin/aldis signal ask \"keep it?\"", true),
            ("aldis signal done it\\'s\\ done", true),
            ("'aldis' signal done", true),
            ("./aldis signal done", false),
            ("bin/aldis signal done", false),
            ("aldis", false),
            ("aldis status", false),
            ("myaldis signal done", false),
            ("aldis signal done; cat notes", false),
            ("aldis signal done && true", false),
            ("cat notes && aldis signal done", false),
            ("aldis signal done | tee x", false),
            ("aldis signal done > x", false),
            ("aldis signal done $(cat x)", false),
            ("aldis signal done \"$(cat x)\"", false),
            ("aldis signal done `cat x`", false),
            ("aldis signal done $X", false),
            ("PATH=. aldis signal done", false),
            ("aldis signal done\ncat notes", false),
            ("aldis signal done 'open", false),
            ("echo aldis signal done", false),
            ("bash -c 'aldis signal done'", false),
            ("", false),
        ] {
            assert_eq!(is_report_command(command), expected, "{command}");
        }
    }
}
