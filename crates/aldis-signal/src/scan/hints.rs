//! What to write instead: one sentence per near miss, safe to quote back to an agent.
//!
//! A hint is itself no signal: names stand in back-quotes inside a sentence, values in angle
//! brackets.

use crate::dialect::syntax::tag;
use crate::dialect::{Dialect, Payload, Presence, SignalDef, SubjectForm, Syntax};
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
            format!("{} is given twice; give it once", named(about, "a key"))
        }
        Reason::Hidden => format!(
            "it holds look-alike letters or controls that hide text; write {form} in plain ASCII"
        ),
        Reason::InSentence => {
            format!("it is part of a sentence; when it is true, write {form} on a line of its own")
        }
        Reason::Introduced => format!(
            "the words before it make it an example, a plan or a denial; when it is true, write \
             {form} without them"
        ),
        Reason::Indented => format!("remove the leading spaces; write {form}"),
        Reason::InvalidJson => "the text is not one valid JSON object; check quotes, commas and \
                                duplicate members"
            .to_owned(),
        Reason::MissingField => {
            format!("{} is missing; add it", named(about, "a field"))
        }
        Reason::MissingSeparator => format!("a colon is missing; write {form}"),
        Reason::MissingSubject => format!("it does not say what it is about; write {form}"),
        Reason::Misspelled | Reason::WrongCase => format!("spell it exactly; write {form}"),
        Reason::Nested => "one tag stands inside another; write each on its own".to_owned(),
        Reason::NotAtEnd => format!("it must be the last thing in the message; write {form}"),
        Reason::NotWholeLine => format!("other words stand on its line; write {form}"),
        Reason::Padded => format!("remove the blanks inside the tag; write {form}"),
        Reason::Placeholder => format!(
            "{} was not filled in; replace it with the real value",
            named(about, "a placeholder")
        ),
        Reason::Quoted => format!(
            "it is quoted: in a fence, code, quotation or listing; when it is true, write {form} as plain text outside of it"
        ),
        Reason::Retracted => {
            format!("the text after it takes it back; when it is true, write {form} once more")
        }
        Reason::StatusNotComplete => format!(
            "{} contradicts the completion; use it only when the work is complete",
            named(about, "a field")
        ),
        Reason::TooLong => "it is longer than 64 KiB; shorten it".to_owned(),
        Reason::Unclosed => format!("its end is missing; write {form}"),
        Reason::UnknownField => {
            format!("{} is not a key of this block; remove it", named(about, "a line"))
        }
        Reason::UnknownName => match &dialect.syntax {
            Syntax::Tag(tag) if tag.text.is_some() => {
                format!("the text is not the agreed one; write {form}")
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
            let subject = def
                .filter(|def| def.subject != Presence::None)
                .map(|def| format!("{} <{}>", line.separator, subject(def)));
            format!("`{name}{}` alone at the start of a line", subject.unwrap_or_default())
        }
        Syntax::Status(status) => {
            format!("the keys between `{}` and `{}` lines", status.open, status.close)
        }
        Syntax::Tag(tag) => tag_form(tag, def),
        Syntax::Trailer(trailer) => format!("`{}` as the very last word", trailer.keyword),
    }
}

fn tag_form(tag: &tag::Syntax, def: Option<&SignalDef>) -> String {
    let tag::Syntax { open, close, .. } = tag;
    if let Some(agreed) = &tag.text {
        return format!("`{open}{}{close}`", shown(agreed));
    }
    let payload = def.map(|def| def.payload);
    if let Some(attribute) = &tag.attribute {
        let words = if payload == Some(Payload::Text) { "<words>" } else { "" };
        return format!("`{open} {attribute}=\"<name>\">{words}{close}`");
    }
    let Some(def) = def else { return format!("`{open}<NAME>{close}`") };
    let name = &def.name;
    match (def.payload, &tag.end) {
        (Payload::Text, Some(end)) => format!("`{open}{name}{close}`, the words, and `{end}`"),
        (Payload::Text, None) => format!("`{open}{name}: <words>{close}`"),
        (Payload::Percent, _) => format!("`{open}{name}: <0 to 100>{close}`"),
        (Payload::Json | Payload::None, _) => format!("`{open}{name}{close}`"),
    }
}

/// Says what may stand for a subject: those that have a meaning of their own, or what it looks like.
fn subject(def: &SignalDef) -> String {
    let own = def.when.iter().filter_map(|when| when.conditions.get("subject"));
    let own: Vec<String> = own.map(|subject| shown(subject)).collect();
    match (own.as_slice(), def.subject_form) {
        ([], SubjectForm::Id) => "id".to_owned(),
        ([], SubjectForm::Path) => "path".to_owned(),
        ([], SubjectForm::Text) => "subject".to_owned(),
        ([only], _) => format!("{only} or another"),
        (several, _) => several.join(" or "),
    }
}

/// Returns what a sentence is about in back-quotes, or what it is called in general.
fn named(about: Option<&str>, otherwise: &str) -> String {
    about.map_or_else(|| otherwise.to_owned(), |about| format!("`{}`", shown(about)))
}

fn names(dialect: &Dialect) -> String {
    let names: Vec<&str> = dialect.signals.iter().map(|def| &*def.name).collect();
    names.join(", ")
}

/// Returns agent text for use inside a sentence: one short line without back-quotes.
pub(crate) fn shown(text: &str) -> String {
    let plain = |c: char| if c.is_control() || c == '`' { ' ' } else { c };
    text.chars().take(60).map(plain).collect::<String>().trim().to_owned()
}

#[cfg(test)]
mod tests {
    //! Each hint shows the whole form.

    use crate::message::Origin;
    use crate::scan::{Rules, scan};
    use crate::signal::Finding;

    /// A text with one near miss, and the words of its hint.
    const HINTS: &[(&str, &str)] = &[
        (
            "<<<RALPHEX:QUESTION>>>\nWhich?",
            "write `<<<RALPHEX:QUESTION>>>`, the words, and `<<<RALPHEX:END>>>`",
        ),
        ("<<<RALPHEX:TASK_FAILD>>>", "write `<<<RALPHEX:TASK_FAILED>>>`"),
        ("<event topic=\"a b\">x</event>", "write `<event topic=\"<name>\"><words></event>`"),
        ("<chorus>BLOCKED no net</chorus>", "write `<chorus>BLOCKED: <words></chorus>`"),
        ("HEALTH_AUDIT:", "write `HEALTH_AUDIT: <HEALTHY or UNHEALTHY>` alone"),
        ("REVIEW_PASSED:", "write `REVIEW_PASSED: <id>` alone"),
        ("REVIEW_PASSED: [task_id]", "a placeholder was not filled in; replace"),
        ("<promise>Complete</promise>", "spell it exactly; write `<promise>COMPLETE</promise>`"),
        (
            "`<promise>COMPLETE</promise>`",
            "write `<promise>COMPLETE</promise>` as plain text outside",
        ),
    ];

    #[test]
    fn hints_show_the_whole_form() {
        for (text, words) in HINTS {
            let found = scan(Rules::builtin(), text.as_bytes(), &Origin::assistant());
            let [Finding::NearMiss(miss)] = found.as_slice() else { panic!("{text}: {found:#?}") };
            let hint = miss.hint();
            assert!(hint.contains(words), "{text}: {hint}");
            let said = scan(Rules::builtin(), hint.as_bytes(), &Origin::assistant());
            assert!(said.iter().all(|said| said.signal().is_none()), "{hint}");
        }
    }
}
