//! The words of an explanation.

use std::time::Duration;

use aldis_signal::{Origin, Reason, Role, Warning};

use crate::view::display;

/// Says why something does not count, as a label under the source.
pub(super) fn label(reason: Reason) -> &'static str {
    match reason {
        Reason::BadSubject => "not an id or path that can be used",
        Reason::BadValue => "a value that is not allowed here",
        Reason::Decorated => "something stands in front of it",
        Reason::DuplicateField => "a key is given twice",
        Reason::Hidden => "shows a person something else than its bytes say",
        Reason::InSentence => "part of a sentence",
        Reason::Introduced => "announced, doubted or an example",
        Reason::Indented => "must start its line",
        Reason::InvalidJson => "not JSON that can be used",
        Reason::MissingField => "a required member is missing",
        Reason::MissingSeparator => "no colon after the name",
        Reason::MissingSubject => "does not say what it is about",
        Reason::Misspelled => "not spelled like the signal",
        Reason::Nested => "closed inside another tag",
        Reason::NotAtEnd => "text follows, and it must come last",
        Reason::NotWholeLine => "other words stand on its line",
        Reason::Padded => "blanks inside the tag",
        Reason::Placeholder => "a template that was not filled in",
        Reason::Quoted => "quoted, not said",
        Reason::Retracted => "taken back by the text after it",
        Reason::StatusNotComplete => "its own status says otherwise",
        Reason::TooLong => "too long",
        Reason::Unclosed => "never closed",
        Reason::UnknownField => "a key that the dialect does not have",
        Reason::UnknownName => "a name that the dialect does not have",
        Reason::UntrustedOrigin => "not said by the agent",
        Reason::WrongCase => "in the wrong case",
        Reason::WrongToken => "without the token of this run",
        _ => "not a signal",
    }
}

/// Says who said it, as a label under the source.
pub(super) fn said_by(origin: &Origin) -> String {
    let who = match origin.role {
        Role::Assistant => "the assistant",
        Role::Host => "the host",
        Role::Subagent => "a sub-agent",
        Role::System => "the system",
        Role::Tool => "a tool",
        Role::User => "the user",
    };
    match &origin.agent {
        Some(agent) => format!("said by {who} `{}`", display::excerpt(agent, 64)),
        None => format!("said by {who}"),
    }
}

/// Says what was odd about a signal that counts all the same.
pub(super) fn warning_words(warning: &Warning) -> String {
    match warning {
        Warning::BadValue => "a field has a value that is not on its list".to_owned(),
        Warning::Clamped => "a number was out of range".to_owned(),
        Warning::Coerced => "a value had another type and was converted".to_owned(),
        Warning::DuplicateField(field) => {
            format!("the field `{field}` is given more than once; the first counts")
        }
        Warning::IndicatorNotBool => "an indicator is not true or false and was dropped".to_owned(),
        Warning::LegacyInvalid(field) => format!("`{field}` of the old form could not be read"),
        Warning::MissingClosingDelimiter => "the closing line is missing".to_owned(),
        Warning::MissingDelimiters => "the lines around it are missing".to_owned(),
        Warning::MissingField(field) => format!("the field `{field}` is missing"),
        Warning::MissingPayload => "words were expected with it".to_owned(),
        Warning::MissingSpace => "no blank after the colon".to_owned(),
        Warning::PhaseMismatch => "the phase named is not the signal's own".to_owned(),
        Warning::UnknownType => "the dialect does not have this type".to_owned(),
        Warning::UnknownVersion => "the dialect does not have this version".to_owned(),
        _ => "unusual, and taken all the same".to_owned(),
    }
}

/// Says how much was read in what time: `1.1 MB, 0.4 ms`.
pub(super) fn amount_words(bytes: u64, time: Duration) -> String {
    let size = display::bytes(bytes);
    let seconds = time.as_secs_f64();
    if seconds < 1.0 {
        format!("{size}, {:.1} ms", seconds * 1e3)
    } else {
        format!("{size}, {seconds:.1} s")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn amounts_read_like_amounts() {
        let table = [
            (0, 400, "0 B, 0.4 ms"),
            (1_100_000, 400, "1.1 MB, 0.4 ms"),
            (2_500, 2_000_000, "2.5 kB, 2.0 s"),
            (3_000_000_000, 1_500_000, "3.0 GB, 1.5 s"),
        ];
        for (bytes, micros, words) in table {
            assert_eq!(amount_words(bytes, Duration::from_micros(micros)), words);
        }
    }
}
