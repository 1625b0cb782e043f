//! The hooks part of a host's JSON file: finding, adding and removing our entries.
//!
//! All hosts with command hooks keep them under one member, mostly `hooks`, by event. Most group handlers
//! (`[{"hooks": [handler]}]`), some list them (`[handler]`).

use jsonc_parser::cst::{CstArray, CstInputValue, CstNode, CstObject};
use serde_json::Value;

use super::edit::{self, Document, EMPTY, EditError};
use super::invocation::{HookEntry, Invocation, classify};
use crate::hosts::Host;
use crate::hosts::spec::{Layout, Registration};

/// An entry of ours in a file.
#[derive(Clone, Debug)]
pub(crate) struct CurrentEntry {
    /// The event it listens to.
    pub(crate) event: String,
    /// The program it calls.
    pub(crate) program: String,
    /// The position among the event's entries.
    pub(crate) index: usize,
    /// The position in the group.
    pub(crate) inner: usize,
    /// The handler itself.
    pub(crate) handler: Value,
    /// The group's matcher.
    pub(crate) matcher: Option<String>,
    /// Whether it waits beside a session, and decides nothing.
    pub(crate) is_waker: bool,
    /// Where the handler stands.
    node: CstNode,
}

/// A handler that calls Aldis in another way.
#[derive(Clone, Debug)]
pub(crate) struct OutdatedEntry {
    /// The event it listens to.
    pub(crate) event: String,
    /// The line of the file, from 1.
    pub(crate) line: usize,
    /// What it calls.
    pub(crate) command: String,
}

/// What a file says about Aldis.
#[derive(Clone, Debug, Default)]
pub(crate) struct HookEntries {
    /// As `aldis install` writes them.
    pub(crate) current: Vec<CurrentEntry>,
    /// Others that call Aldis.
    pub(crate) outdated: Vec<OutdatedEntry>,
}

/// Finds all that calls Aldis.
///
/// # Errors
///
/// When a name on the way there stands twice.
pub(crate) fn find(host: &str, document: &Document) -> Result<HookEntries, EditError> {
    let mut found = HookEntries::default();
    edit::check_names(&document.object)?;
    let Some(hooks) = document.object.object_value(root_of(host)) else { return Ok(found) };
    edit::check_names(&hooks)?;
    for property in hooks.properties() {
        let event = property.decoded_name().unwrap_or_default();
        let entries = property.array_value().map(|entries| entries.elements());
        for (index, entry) in entries.into_iter().flatten().enumerate() {
            let group = entry.as_object();
            let handlers = group.as_ref().and_then(|group| group.array_value("hooks"));
            let handlers = handlers.map_or_else(|| vec![entry.clone()], |all| all.elements());
            let matcher = entry.to_serde_value().and_then(|entry| text(entry.get("matcher")?));
            for (inner, node) in handlers.into_iter().enumerate() {
                let handler = node.to_serde_value().unwrap_or_default();
                let kind = classify(host, &handler);
                let is_waker = matches!(kind, HookEntry::Waker(_));
                match kind {
                    HookEntry::Current(program) | HookEntry::Waker(program) => {
                        let (event, matcher) = (event.clone(), matcher.clone());
                        found.current.push(CurrentEntry {
                            event,
                            program,
                            index,
                            inner,
                            handler,
                            matcher,
                            is_waker,
                            node,
                        });
                    }
                    HookEntry::Outdated(command) => found.outdated.push(OutdatedEntry {
                        event: event.clone(),
                        line: edit::line_of(&node),
                        command,
                    }),
                    HookEntry::ThirdParty => {}
                }
            }
        }
    }
    Ok(found)
}

/// Registers what is missing, and puts the program right where it is another one.
///
/// # Errors
///
/// When the file is not laid out as the host wants it. The document may have changed then.
pub(crate) fn add(
    host: &str,
    layout: &Layout,
    program: &str,
    document: &Document,
) -> Result<(), EditError> {
    let found = find(host, document)?;
    if layout.versioned && document.object.get("version").is_none() {
        document.object.append("version", 1_u32.into());
    }
    for event in layout.events {
        let handler = (layout.handler)(Invocation::new(host, program), event);
        let known = found.current.iter().find(|entry| entry.event == *event && !entry.is_waker);
        put(document, layout, event, program, known, handler)?;
    }
    for event in layout.wakes_after {
        let Some(waker) = layout.waker else { break };
        let handler = waker(Invocation::waker(host, program));
        let known = found.current.iter().find(|entry| entry.event == *event && entry.is_waker);
        put(document, layout, event, program, known, handler)?;
    }
    Ok(())
}

/// Registers a handler for an event, or gives the one that is there its program.
fn put(
    document: &Document,
    layout: &Layout,
    event: &str,
    program: &str,
    known: Option<&CurrentEntry>,
    handler: CstInputValue,
) -> Result<(), EditError> {
    match known {
        Some(entry) if entry.program == program => {}
        Some(entry) => update(&entry.node, handler),
        None if layout.grouped => {
            let group = vec![("hooks".to_owned(), CstInputValue::Array(vec![handler]))];
            event_array(document, layout.root, event)?.append(CstInputValue::Object(group));
        }
        None => drop(event_array(document, layout.root, event)?.append(handler)),
    }
    Ok(())
}

/// Gives a handler of ours its new program; whatever else was added to it stays.
fn update(node: &CstNode, handler: CstInputValue) {
    let (Some(node), CstInputValue::Object(members)) = (node.as_object(), handler) else { return };
    for (name, value) in members {
        match node.get(&name) {
            Some(member) => member.set_value(value),
            None => drop(node.append(&name, value)),
        }
    }
}

/// Returns the entries of an event, made where they are missing.
fn event_array(document: &Document, name: &str, event: &str) -> Result<CstArray, EditError> {
    let not = |holder: &CstObject, name: &str, what: String| {
        let line = holder.get(name).map_or(1, |property| edit::line_of(&property.into()));
        EditError { line, message: what }
    };
    let root = &document.object;
    let hooks = root
        .object_value_or_create(name)
        .ok_or_else(|| not(root, name, format!("`{name}` is not an object")))?;
    let entries = hooks
        .array_value_or_create(event)
        .ok_or_else(|| not(&hooks, event, format!("`{name}.{event}` is not an array")))?;
    entries.ensure_multiline();
    Ok(entries)
}

/// Returns a file that holds nothing but our entries.
pub(crate) fn new_file(host: &str, layout: &Layout, program: &str) -> String {
    let document = Document::parse(EMPTY.as_bytes());
    // An empty object has room for every entry.
    let document = document.and_then(|it| add(host, layout, program, &it).map(|()| it.text()));
    document.unwrap_or_default()
}

/// Returns the document without our entries, and without what held nothing else.
///
/// # Errors
///
/// As [`find`].
pub(crate) fn remove(host: &str, mut document: Document) -> Result<Document, EditError> {
    let root = root_of(host);
    // From the back, so that the positions in front stay right.
    while let Some(CurrentEntry { event, index, inner, .. }) = find(host, &document)?.current.pop()
    {
        document = document.without(|document| {
            let hooks = document.object.object_value(root)?;
            let entry = hooks.array_value(&event)?.elements().get(index)?.clone();
            let handlers = entry.as_object().and_then(|group| group.array_value("hooks"));
            let handlers = handlers.map(|handlers| handlers.elements()).unwrap_or_default();
            if handlers.len() > 1 { handlers.get(inner).cloned() } else { Some(entry) }
        })?;
        let hooks = |document: &Document| document.object.object_value(root);
        document = document.without(|document| edit::empty(&hooks(document)?, &event))?;
        document = document.without(|document| edit::empty(&document.object, root))?;
    }
    Ok(document)
}

/// Whether a file says nothing beyond what a new one of ours would, once our entries are gone.
pub(crate) fn is_idle(text: &str) -> bool {
    let words: String = text.split_whitespace().collect();
    matches!(
        words.trim_start_matches('\u{feff}'),
        "" | "{}" | "{\"version\":1}" | "{\"version\":1,}"
    )
}

/// Returns the member under which a host has its hooks.
fn root_of(host: &str) -> &'static str {
    match host.parse::<Host>().map(|host| host.spec().registration) {
        Ok(Registration::Entries(layout)) => layout.root,
        Ok(Registration::Plugin { .. }) | Err(_) => Layout::GROUPED.root,
    }
}

fn text(value: &Value) -> Option<String> {
    value.as_str().map(str::to_owned)
}

#[cfg(test)]
mod tests;
