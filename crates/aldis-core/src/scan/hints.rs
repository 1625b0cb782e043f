//! What to write instead: one sentence per near miss, safe to quote back to an agent.
//!
//! A hint is itself no signal: names stand in back-quotes inside a sentence, values in angle
//! brackets.

use crate::dialect::{Dialect, Payload, Presence, SubjectForm, Syntax};
use crate::signal::Reason;

/// Says how a near miss becomes a signal.
pub(crate) fn hint(dialect: &Dialect, reason: Reason, name: &str, about: Option<&str>) -> String {
    let form = form(dialect, name);
    let about = about.filter(|about| !about.is_empty());
    match reason {
        Reason::BadSubject => {
            format!("the subject is not an id or a path inside the project; write {form}")
        }
        Reason::BadValue => match about {
            Some(member) => format!("`{}` has a value of the wrong type", shown(member)),
            None => "a value has the wrong type".to_owned(),
        },
        Reason::Decorated => format!("remove what stands around it; write {form}"),
        Reason::DuplicateField => {
            format!("`{}` is given twice; give it once", shown(about.unwrap_or("a key")))
        }
        Reason::Hidden => format!(
            "it holds look-alike letters or controls that hide text; write {form} in plain ASCII"
        ),
        Reason::Indented => format!("remove the blanks in front; write {form}"),
        Reason::InvalidJson => "the text is not one valid JSON object; check quotes, commas and \
                                duplicate members"
            .to_owned(),
        Reason::Mentioned => format!(
            "the text around only talks about it; when it is so, write {form} without announcing it"
        ),
        Reason::MissingField => {
            format!("`{}` is missing; add it", shown(about.unwrap_or("a field")))
        }
        Reason::MissingSeparator => format!("a colon is missing; write {form}"),
        Reason::MissingSubject => format!("it does not say what it is about; write {form}"),
        Reason::Misspelled | Reason::WrongCase => format!("spell it exactly; write {form}"),
        Reason::Nested => "one tag stands inside another; write each on its own".to_owned(),
        Reason::NotAtEnd => format!("it must be the last thing in the message; write {form}"),
        Reason::NotWholeLine => format!("other words stand on its line; write {form}"),
        Reason::Padded => format!("remove the blanks inside the tag; write {form}"),
        Reason::Placeholder => format!(
            "`{}` was not filled in; replace it with the real value",
            shown(about.unwrap_or("a placeholder"))
        ),
        Reason::Quoted => format!("it is quoted; when it is so, write {form} as plain text"),
        Reason::Retracted => {
            format!("the text after it takes it back; when it is so, write {form} once more")
        }
        Reason::StatusNotComplete => format!(
            "`{}` contradicts the completion; use it only when the work is complete",
            shown(about.unwrap_or("STATUS"))
        ),
        Reason::TooLong => "it is longer than 64 KiB; shorten it".to_owned(),
        Reason::Unclosed => format!("its end is missing; write {form}"),
        Reason::UnknownField => {
            format!("`{}` is not a key of this block; remove it", shown(about.unwrap_or("a line")))
        }
        Reason::UnknownName => match &dialect.syntax {
            Syntax::Tag(tag) if tag.text.is_some() => {
                "the text is not the agreed one; write it exactly as it was given".to_owned()
            }
            _ => format!("there is no such signal; the names are {}", names(dialect)),
        },
        Reason::UntrustedOrigin => {
            "only the agent's own words count, not what it read or was told".to_owned()
        }
        Reason::WrongToken => {
            "say the code of this run with it, exactly as given in the prompt".to_owned()
        }
    }
}

/// Returns how a signal is written, as part of a sentence.
fn form(dialect: &Dialect, name: &str) -> String {
    let def = dialect.signal(name);
    let name = shown(name);
    match &dialect.syntax {
        Syntax::Block(block) => format!(
            "a block between `{}` lines that starts with `{}: {name}`",
            block.delimiter, block.key
        ),
        Syntax::Fence(fence) => format!("one JSON object in a fence named `{}`", fence.info),
        Syntax::Line(line) => {
            let subject = def.filter(|def| def.subject != Presence::None).map(|def| {
                let what = match def.subject_form {
                    SubjectForm::Id => "<id>",
                    SubjectForm::Path => "<path>",
                    SubjectForm::Text => "<subject>",
                };
                format!("{} {what}", line.separator)
            });
            format!("`{name}{}` alone at the start of a line", subject.unwrap_or_default())
        }
        Syntax::Status(status) => {
            format!("the keys between `{}` and `{}` lines", status.open, status.close)
        }
        Syntax::Tag(tag) => {
            let words = match (def.map(|def| def.payload), &tag.text) {
                (_, Some(_)) => return "the agreed words between the tags".to_owned(),
                (Some(Payload::Text), _) => ": <words>",
                (Some(Payload::Percent), _) => ": <0 to 100>",
                _ => "",
            };
            match (&tag.attribute, def) {
                (Some(attribute), _) => format!("`{} {attribute}=\"<name>\"`", tag.open),
                (None, Some(_)) => format!("`{}{name}{words}{}`", tag.open, tag.close),
                (None, None) => format!("`{}<NAME>{}`", tag.open, tag.close),
            }
        }
        Syntax::Trailer(trailer) => format!("`{}` as the very last word", trailer.keyword),
    }
}

fn names(dialect: &Dialect) -> String {
    let names: Vec<&str> = dialect.signals.iter().map(|def| &*def.name).collect();
    names.join(", ")
}

/// Returns agent text for use inside a sentence: one short line without back-quotes.
fn shown(text: &str) -> String {
    let plain = |c: char| if c.is_control() || c == '`' { ' ' } else { c };
    text.chars().take(60).map(plain).collect::<String>().trim().to_owned()
}
