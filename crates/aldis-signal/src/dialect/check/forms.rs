//! What each grammar family needs so that its signals can be heard.

use super::Fault;
use crate::dialect::syntax::{block, fence, line, tag, trailer};
use crate::dialect::{Dialect, Presence, SignalDef, Syntax};
use crate::scan::hints::shown;

/// Checks what the types cannot: whatever is accepted here can be heard.
pub(in crate::dialect) fn check_syntax(dialect: &Dialect) -> Result<(), Fault> {
    if dialect.signals.is_empty() {
        return Err(Fault::new("signals", "a dialect needs at least one signal".to_owned()));
    }
    check_members(dialect)?;
    match &dialect.syntax {
        Syntax::Block(block) => check_block(block),
        Syntax::Fence(fence) => check_fence(dialect, fence),
        Syntax::Line(line) => check_line(dialect, line),
        Syntax::Status(status) => {
            needs_length("syntax.open", &status.open, 3)?;
            needs_length("syntax.close", &status.close, 3)?;
            differs("close", &status.close, &status.open)?;
            has_one_signal(
                dialect,
                "a status block",
                "give the one signal other meanings with `when`, or write another dialect",
            )
        }
        Syntax::Tag(tag) => check_tag(dialect, tag),
        Syntax::Trailer(trailer) => check_trailer(dialect, trailer),
    }
}

/// Members that are looked for by name. Those of a JSON object may have any.
fn check_members(dialect: &Dialect) -> Result<(), Fault> {
    if matches!(dialect.syntax, Syntax::Fence(_)) {
        return Ok(());
    }
    for (index, def) in dialect.signals.iter().enumerate() {
        let conditions = def.when.iter().flat_map(|when| when.conditions.keys());
        let names = (def.fields.iter().map(|name| ("fields", &**name)))
            .chain(def.require.iter().map(|name| ("require", name.as_str())))
            .chain(def.expect.keys().map(|name| ("expect", name.as_str())))
            .chain(def.subject_from.iter().map(|name| ("subject_from", name.as_str())))
            .chain(conditions.map(|name| ("when", name.as_str())));
        for (key, name) in names {
            needs_length(&format!("signals.{index}.{key}"), name, 1)?;
        }
    }
    Ok(())
}

fn check_block(block: &block::Syntax) -> Result<(), Fault> {
    needs_length("syntax.delimiter", &block.delimiter, 3)?;
    needs_key("syntax.key", &block.key, 3)?;
    for (index, key) in block.keys.iter().enumerate() {
        needs_key(&format!("syntax.keys.{index}"), key, 1)?;
    }
    for (index, key) in block.text_keys.iter().enumerate() {
        needs_key(&format!("syntax.text_keys.{index}"), key, 1)?;
    }
    block.claim_needs.keys().try_for_each(|key| needs_key("syntax.claim_needs", key, 1))
}

fn check_fence(dialect: &Dialect, fence: &fence::Syntax) -> Result<(), Fault> {
    let names: Vec<&str> = dialect.signals.iter().map(|def| &*def.name).collect();
    if !names.contains(&fence.default_name.as_str()) {
        let message = format!("there is no signal `{}`", fence.default_name);
        let help = format!("the signals are {}", names.join(", "));
        return Err(Fault::new("syntax.default_name", message).with_help(&help));
    }
    needs_length("syntax.info", &fence.info, 3)?;
    if let Some(bare) = &fence.bare {
        needs_length("syntax.bare", bare, 3)?;
    }
    let Some(legacy) = &fence.legacy else { return Ok(()) };
    needs_length("syntax.legacy.status.heading", &legacy.status.heading, 3)?;
    needs_key("syntax.legacy.transition.key", &legacy.transition.key, 3)?;
    needs_key("syntax.legacy.flag.key", &legacy.flag.key, 3)?;
    for (index, banner) in legacy.banners.iter().enumerate() {
        needs_length(&format!("syntax.legacy.banners.{index}.text"), &banner.text, 3)?;
    }
    let rules = &legacy.status.rules;
    if rules.is_empty() || rules.contains(|c: char| c.is_whitespace() || c.is_control()) {
        let message = format!("no line can be drawn with `{}`", shown(rules));
        return Err(Fault::new("syntax.legacy.status.rules", message)
            .with_help("`rules` lists the characters that a line is drawn with, such as `=`"));
    }
    Ok(())
}

fn check_line(dialect: &Dialect, line: &line::Syntax) -> Result<(), Fault> {
    if let Some(index) = dialect.signals.iter().position(|signal| signal.name.len() < 3) {
        let name = &dialect.signals[index].name;
        let message = format!("`{name}` is too short to stand at the start of a line");
        return Err(Fault::new(format!("signals.{index}.name"), message)
            .with_help("use a name of three letters or more"));
    }
    needs_length("syntax.separator", &line.separator, 1)?;
    line.values.keys().try_for_each(|key| needs_length("syntax.values", key, 1))?;
    let Some(delegation) = &line.delegation else { return Ok(()) };
    needs_length("syntax.delegation.start", &delegation.start, 3)?;
    needs_length("syntax.delegation.end", &delegation.end, 3)?;
    needs_length("syntax.delegation.field", &delegation.field, 1)
}

fn check_tag(dialect: &Dialect, tag: &tag::Syntax) -> Result<(), Fault> {
    needs_length("syntax.open", &tag.open, 3)?;
    needs_length("syntax.close", &tag.close, 1)?;
    differs("close", &tag.close, &tag.open)?;
    if let Some(end) = &tag.end {
        needs_length("syntax.end", end, 3)?;
        if !end.starts_with(&tag.open) {
            let message = format!("`{end}` does not start with `{}`", tag.open);
            return Err(Fault::new("syntax.end", message)
                .with_help("what closes the words is a tag of the same form"));
        }
    }
    if let Some(attribute) = &tag.attribute {
        needs_length("syntax.attribute", attribute, 1)?;
    }
    if let Some(agreed) = &tag.text {
        check_text(tag, agreed)?;
    }
    match (&tag.text, &tag.attribute) {
        (Some(_), _) => has_one_signal(
            dialect,
            "a tag with an agreed `text`",
            "leave `text` out, or write another dialect for the other signal",
        )?,
        (None, Some(_)) => has_one_signal(
            dialect,
            "a tag with an `attribute`",
            "leave `attribute` out, or write another dialect for the other signal",
        )?,
        (None, None) => check_tag_names(dialect)?,
    }
    let subject = |def: &SignalDef| def.subject == Presence::Required;
    let nameless = dialect.signals.iter().position(subject).filter(|_| tag.attribute.is_none());
    match nameless {
        None => Ok(()),
        Some(index) => {
            let name = &dialect.signals[index].name;
            let message = format!("`{name}` needs a subject, and this tag cannot name one");
            Err(Fault::new(format!("signals.{index}.subject"), message)
                .with_help("name the `attribute` that holds it, or leave `subject` out"))
        }
    }
}

/// The name in a tag ends where letters, digits and underscores do.
fn check_tag_names(dialect: &Dialect) -> Result<(), Fault> {
    let word = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
    match dialect.signals.iter().position(|def| !def.name.bytes().all(word)) {
        None => Ok(()),
        Some(index) => {
            let name = &dialect.signals[index].name;
            let message = format!("`{name}` could not be read in a tag");
            Err(Fault::new(format!("signals.{index}.name"), message)
                .with_help("names in tags are made of ASCII letters, digits and `_`"))
        }
    }
}

/// The words that are agreed on, whether a file says them or somebody sets them later.
fn check_text(tag: &tag::Syntax, agreed: &str) -> Result<(), Fault> {
    let (open, close) = (tag.open.as_str(), tag.close.as_str());
    let help = if agreed.contains(open) || agreed.contains(close) {
        format!("a text cannot hold `{open}` or `{close}`")
    } else if !(1..=TEXT_MAX).contains(&agreed.len())
        || agreed.contains(char::is_control)
        || agreed.trim() != agreed
    {
        format!("a text has 1 to {TEXT_MAX} bytes on one line, without blanks at its ends")
    } else {
        return Ok(());
    };
    let message = format!("`{}` cannot be the agreed text", shown(agreed));
    Err(Fault::new("syntax.text", message).with_help(&help))
}

fn check_trailer(dialect: &Dialect, trailer: &trailer::Syntax) -> Result<(), Fault> {
    check_keyword("syntax.keyword", &trailer.keyword)?;
    for (index, keyword) in trailer.alternative_signals.iter().enumerate() {
        check_keyword(&format!("syntax.alternative_signals.{index}"), keyword)?;
    }
    has_one_signal(
        dialect,
        "a trailer",
        "list other keywords in `alternative_signals`, and write another dialect for another meaning",
    )
}

/// A keyword, whether a file says it or somebody sets it later.
fn check_keyword(path: &str, keyword: &str) -> Result<(), Fault> {
    if (3..=64).contains(&keyword.len()) && keyword.bytes().all(|byte| byte.is_ascii_graphic()) {
        return Ok(());
    }
    Err(Fault::new(path, format!("`{}` cannot be a keyword", shown(keyword)))
        .with_help("a keyword has 3 to 64 printable ASCII characters and no spaces"))
}

/// Where the form does not say which signal it is, only the first can be heard.
fn has_one_signal(dialect: &Dialect, what: &str, help: &str) -> Result<(), Fault> {
    match dialect.signals.get(1) {
        None => Ok(()),
        Some(second) => {
            let message = format!("{what} has one signal, `{}` could never be said", second.name);
            Err(Fault::new("signals.1", message).with_help(help))
        }
    }
}

fn needs_length(path: &str, value: &str, least: usize) -> Result<(), Fault> {
    let printable = value.bytes().all(|byte| (b' '..=b'~').contains(&byte));
    if value.len() >= least && value.len() <= 64 && printable && value.trim() == value {
        return Ok(());
    }
    let message = format!(
        "`{}` has {least} to 64 printable ASCII characters, `{value}` does not",
        last_key(path)
    );
    Err(Fault::new(path, message).with_help("use plain ASCII without blanks at the ends"))
}

/// What stands before a colon.
fn needs_key(path: &str, value: &str, least: usize) -> Result<(), Fault> {
    needs_length(path, value, least)?;
    match value.contains(':') {
        true => Err(Fault::new(path, format!("`{value}` holds a colon"))
            .with_help(&format!("write `{}` without it: a colon ends it", last_key(path)))),
        false => Ok(()),
    }
}

fn differs(key: &str, value: &str, open: &str) -> Result<(), Fault> {
    match value == open {
        true => Err(Fault::new(format!("syntax.{key}"), format!("`{key}` is the same as `open`"))
            .with_help("what closes must differ from what opens")),
        false => Ok(()),
    }
}

/// Returns the name of the value that a path leads to, or of the list it is in.
fn last_key(path: &str) -> &str {
    path.rsplit('.').find(|step| step.parse::<usize>().is_err()).unwrap_or(path)
}

/// The longest text that can be agreed on.
const TEXT_MAX: usize = 1024;
