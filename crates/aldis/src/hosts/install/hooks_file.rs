//! The hooks part of a host's JSON file: finding, adding and removing our entries.
//!
//! All hosts with command hooks keep them under `hooks`, by event. Most group handlers
//! (`[{"hooks": [handler]}]`), some list them (`[handler]`).

use super::Host;
use super::edit::{Document, EditError, Json, Kind, Node};
use super::invocation::{Invocation, Spelling, spelling};

/// How a host writes hooks.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Layout {
    /// Whether handlers stand in groups.
    pub(crate) grouped: bool,
    /// Whether the file starts with `"version": 1`.
    pub(crate) versioned: bool,
    /// The events to listen to, in the host's spelling.
    pub(crate) events: &'static [&'static str],
    /// Builds the handler for an event.
    pub(crate) handler: fn(Invocation, &str) -> Json,
}

/// An entry of ours in a file.
#[derive(Clone, Debug)]
pub(crate) struct Entry {
    /// The event it listens to.
    pub(crate) event: String,
    /// The program it calls.
    pub(crate) program: String,
    /// The position among the event's entries.
    pub(crate) index: usize,
    /// The position in the group.
    pub(crate) inner: usize,
    /// The handler itself.
    pub(crate) handler: Node,
    /// The group's matcher.
    pub(crate) matcher: Option<String>,
}

/// A handler that calls Aldis in another way.
#[derive(Clone, Debug)]
pub(crate) struct Stranger {
    /// The event it listens to.
    pub(crate) event: String,
    /// The line of the file, from 1.
    pub(crate) line: usize,
    /// What it calls.
    pub(crate) command: String,
}

/// What a file says about Aldis.
#[derive(Clone, Debug, Default)]
pub(crate) struct Found {
    /// Our entries.
    pub(crate) ours: Vec<Entry>,
    /// Other entries that call Aldis.
    pub(crate) others: Vec<Stranger>,
}

/// Finds all that calls Aldis.
pub(crate) fn find(host: Host, document: &Document) -> Result<Found, EditError> {
    let mut found = Found::default();
    let root = document.root()?;
    let Some(events) = root.get("hooks").and_then(Node::members) else { return Ok(found) };
    for (position, (event, _, entries)) in events.iter().enumerate() {
        // Of several members with one name the host sees the last.
        if events.iter().skip(position + 1).any(|(later, ..)| later == event) {
            continue;
        }
        for (index, entry) in entries.items().unwrap_or_default().iter().enumerate() {
            let matcher = entry.get("matcher").and_then(Node::text).map(str::to_owned);
            let alone = std::slice::from_ref(entry);
            let handlers = entry.get("hooks").and_then(Node::items).unwrap_or(alone);
            for (inner, handler) in handlers.iter().enumerate() {
                match spelling(host, handler) {
                    Spelling::Ours(program) => found.ours.push(Entry {
                        event: event.clone(),
                        program,
                        index,
                        inner,
                        handler: handler.clone(),
                        matcher: matcher.clone(),
                    }),
                    Spelling::Other(command) => found.others.push(Stranger {
                        event: event.clone(),
                        line: document.line(handler),
                        command,
                    }),
                    Spelling::Foreign => {}
                }
            }
        }
    }
    Ok(found)
}

/// Registers what is missing, and puts the program right where it is another one.
pub(crate) fn add(
    host: Host,
    layout: &Layout,
    program: &str,
    document: &mut Document,
) -> Result<(), EditError> {
    let root = document.root()?;
    if layout.versioned && root.get("version").is_none() {
        document.append(&root, Some("version"), &Json::Number(1));
    }
    for event in layout.events {
        let handler = (layout.handler)(Invocation::new(host, program), event);
        let found = find(host, document)?;
        if let Some(entry) = found.ours.iter().find(|entry| entry.event == *event) {
            if entry.program != program {
                document.replace(&entry.handler, &handler);
            }
            continue;
        }
        let entry = if layout.grouped {
            Json::Object(vec![("hooks", Json::Array(vec![handler]))])
        } else {
            handler
        };
        add_entry(document, event, entry)?;
    }
    Ok(())
}

fn add_entry(document: &mut Document, event: &str, entry: Json) -> Result<(), EditError> {
    let root = document.root()?;
    let Some(hooks) = root.get("hooks") else {
        document.append(&root, Some("hooks"), &Json::Object(Vec::new()));
        return add_entry(document, event, entry);
    };
    if !matches!(hooks.kind, Kind::Object(_)) {
        return Err(document.error(hooks, "`hooks` is not an object"));
    }
    match hooks.get(event) {
        None => document.append(hooks, Some(event), &Json::Array(vec![entry])),
        Some(entries) if entries.items().is_some() => document.append(entries, None, &entry),
        Some(other) => {
            return Err(document.error(other, format!("`hooks.{event}` is not an array")));
        }
    }
    Ok(())
}

/// Removes our entries, and what held nothing else.
pub(crate) fn remove(host: Host, document: &mut Document) -> Result<(), EditError> {
    while let Some(entry) = find(host, document)?.ours.pop() {
        let root = document.root()?;
        let Some(entries) = root.find(&["hooks", &entry.event]) else { break };
        let group = entries.items().and_then(|entries| entries.get(entry.index));
        match group.and_then(|group| group.get("hooks")) {
            Some(handlers) if handlers.items().is_some_and(|handlers| handlers.len() > 1) => {
                document.remove(handlers, entry.inner);
            }
            _ => document.remove(entries, entry.index),
        }
        prune(document, &["hooks"], &entry.event)?;
        prune(document, &[], "hooks")?;
    }
    Ok(())
}

/// Removes a member that holds nothing any more.
fn prune(document: &mut Document, path: &[&str], name: &str) -> Result<(), EditError> {
    let root = document.root()?;
    let Some(container) = root.find(path) else { return Ok(()) };
    let members = container.members().unwrap_or_default();
    let Some(index) = members.iter().rposition(|(key, ..)| key == name) else { return Ok(()) };
    if members.get(index).is_some_and(|(.., value)| document.is_blank(value)) {
        document.remove(container, index);
    }
    Ok(())
}

/// Whether a file says nothing beyond what a new one of ours would.
pub(crate) fn is_idle(document: &Document) -> Result<bool, EditError> {
    let mut document = document.clone();
    let root = document.root()?;
    let members = root.members().unwrap_or_default();
    if let [(name, _, Node { kind: Kind::Number(number), .. })] = members
        && name == "version"
        && number == "1"
    {
        document.remove(&root, 0);
    }
    Ok(document.is_blank(&document.root()?))
}

#[cfg(test)]
mod tests;
