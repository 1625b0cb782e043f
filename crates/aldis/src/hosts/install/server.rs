//! The MCP server in a host's files: naming it, allowing its tools, and taking both back.
//!
//! Three forms are enough for all hosts: a member of a JSON object, a string in a JSON list, a table
//! of a TOML file. What is not ours stays byte for byte.

use jsonc_parser::cst::{CstArray, CstInputValue, CstNode, CstObject, CstObjectProp};
use jsonc_parser::json;
use serde_json::Value;
use toml::Table;

use super::edit::{self, Document, EditError};
use super::invocation::{Invocation, is_aldis};

/// The name of the server with every host. It has no underscore: some hosts cut names there.
pub(crate) const SERVER: &str = "aldis";

/// One thing that a host's file says about the server.
#[derive(Clone, Debug)]
pub(crate) enum ServerPart {
    /// A member of an object: how the server is started.
    Member {
        /// Where the object is.
        path: Vec<String>,
        /// Builds the member.
        entry: fn(Invocation) -> CstInputValue,
    },
    /// A string in a list: that its tools may be called.
    Item {
        /// Where the list is; its last name is the list's.
        path: &'static [&'static str],
        /// The string.
        item: &'static str,
    },
    /// A table of a TOML file: how the server is started.
    Table {
        /// Writes what stands below its header.
        entry: fn(&Invocation) -> String,
    },
}

impl ServerPart {
    /// A server among others, under the name that most hosts use.
    pub(crate) fn listed(entry: fn(Invocation) -> CstInputValue) -> Self {
        Self::Member { path: vec!["mcpServers".to_owned()], entry }
    }

    /// Returns the file with this part in it.
    ///
    /// # Errors
    ///
    /// When the file is not laid out as the host wants it, or somebody else's server has our name.
    pub(crate) fn add(&self, program: &str, before: Option<&[u8]>) -> Result<Vec<u8>, EditError> {
        let invocation = Invocation::server(program);
        match self {
            Self::Table { entry } => add_table(&entry(&invocation), program, before),
            Self::Member { path, entry } => edit::changed(before, |document| {
                let object = object_at(document, path)?;
                edit::check_names(&object)?;
                match object.get(SERVER) {
                    None => drop(object.append(SERVER, entry(invocation))),
                    Some(member) => match started_by(value_of(&member).as_ref()) {
                        Some(known) if known == program => {}
                        Some(_) => member.set_value(entry(invocation)),
                        None => return Err(foreign(&member.into())),
                    },
                }
                Ok(())
            }),
            Self::Item { path, item } => edit::changed(before, |document| {
                let (list, object) = (path.last().copied().unwrap_or_default(), parents(path));
                let object = object_at(document, &object)?;
                let array = object
                    .array_value_or_create(list)
                    .ok_or_else(|| misplaced(&object, list, "an array"))?;
                if element(&array, item).is_none() {
                    array.append((*item).into());
                }
                Ok(())
            }),
        }
    }

    /// Returns the file without this part, and without what held nothing else.
    ///
    /// # Errors
    ///
    /// When the file cannot be read.
    pub(crate) fn remove(&self, before: &[u8]) -> Result<Vec<u8>, EditError> {
        if self.program(before)?.is_none() {
            return Ok(before.to_owned());
        }
        let (path, mut document) = match self {
            Self::Table { .. } => return remove_table(before),
            Self::Member { path, .. } => (path.clone(), Document::parse(before)?),
            Self::Item { path, .. } => (owned(path), Document::parse(before)?),
        };
        document = document.without(|document| match self {
            Self::Item { path, item } => {
                let object = existing(document, &parents(path))?;
                element(&object.array_value(path.last()?)?, item)
            }
            _ => existing(document, &path)?.get(SERVER).map(Into::into),
        })?;
        for depth in (0..path.len()).rev() {
            document = document.without(|document| {
                let (name, parents) = path.get(..=depth)?.split_last()?;
                edit::empty(&existing(document, parents)?, name)
            })?;
        }
        Ok(document.text().into_bytes())
    }

    /// Returns the program that this part has the host start, where the part is in the file. A
    /// string in a list names none.
    ///
    /// # Errors
    ///
    /// When the file cannot be read.
    pub(crate) fn program(&self, bytes: &[u8]) -> Result<Option<String>, EditError> {
        let entry = self.entry(bytes)?;
        Ok(match self {
            Self::Item { .. } => entry.map(|_| String::new()),
            Self::Member { .. } | Self::Table { .. } => started_by(entry.as_ref()),
        })
    }

    /// Returns what stands in the file where this part belongs, whoever wrote it.
    ///
    /// # Errors
    ///
    /// When the file cannot be read.
    pub(crate) fn entry(&self, bytes: &[u8]) -> Result<Option<Value>, EditError> {
        Ok(match self {
            Self::Table { .. } => {
                let table = parse_table(bytes)?;
                let entry = table.get(TABLES).and_then(|servers| servers.get(SERVER));
                entry.map(json_of).transpose()?
            }
            Self::Member { path, .. } => {
                let object = existing(&Document::parse(bytes)?, path);
                object.and_then(|object| value_of(&object.get(SERVER)?))
            }
            Self::Item { path, item } => {
                let object = existing(&Document::parse(bytes)?, &parents(path));
                let array = object.and_then(|it| it.array_value(path.last()?));
                array.and_then(|array| element(&array, item)?.to_serde_value())
            }
        })
    }
}

/// The server in the file of a project that more than one host reads.
pub(crate) fn project_server(Invocation { program, args }: Invocation) -> CstInputValue {
    json!({ "type": "stdio", "command": program, "args": args, "alwaysLoad": true })
}

/// The server where a host calls the tools of a trusted one without asking.
pub(crate) fn trusted_server(Invocation { program, args }: Invocation) -> CstInputValue {
    json!({ "command": program, "args": args, "trust": true })
}

/// The program of an entry of ours: `aldis mcp`, in any of the forms that hosts have.
pub(crate) fn started_by(entry: Option<&Value>) -> Option<String> {
    let entry = entry?;
    let text = |value: &Value| value.as_str().map(str::to_owned);
    let words: Option<Vec<String>> = match entry.get("command")? {
        Value::Array(words) => words.iter().map(text).collect(),
        command => {
            let args = entry.get("args")?.as_array()?;
            std::iter::once(command).chain(args).map(text).collect()
        }
    };
    match words?.as_slice() {
        [program, mcp] if is_aldis(program) && mcp == "mcp" => Some(program.clone()),
        _ => None,
    }
}

fn value_of(member: &CstObjectProp) -> Option<Value> {
    member.value()?.to_serde_value()
}

fn owned(path: &[&str]) -> Vec<String> {
    path.iter().map(|name| (*name).to_owned()).collect()
}

/// The path to what holds the last name of a path.
fn parents(path: &[&str]) -> Vec<String> {
    owned(path.split_last().map_or(&[][..], |(_, parents)| parents))
}

/// Returns an object of a file, made where it is missing.
fn object_at(document: &Document, path: &[String]) -> Result<CstObject, EditError> {
    let mut object = document.object.clone();
    edit::check_names(&object)?;
    for name in path {
        let inner = object.object_value_or_create(name);
        object = inner.ok_or_else(|| misplaced(&object, name, "an object"))?;
        edit::check_names(&object)?;
    }
    Ok(object)
}

/// Returns an object of a file, if it is there.
fn existing(document: &Document, path: &[String]) -> Option<CstObject> {
    path.iter().try_fold(document.object.clone(), |object, name| object.object_value(name))
}

/// Returns the string of a list that is this one.
fn element(array: &CstArray, item: &str) -> Option<CstNode> {
    let is_item = |node: &CstNode| node.to_serde_value().is_some_and(|value| value == item);
    array.elements().into_iter().find(is_item)
}

fn misplaced(holder: &CstObject, name: &str, what: &str) -> EditError {
    let line = holder.get(name).map_or(1, |property| edit::line_of(&property.into()));
    EditError { line, message: format!("`{name}` is not {what}") }
}

fn foreign(node: &CstNode) -> EditError {
    EditError::at(node, format!("another MCP server is named `{SERVER}`"))
}

/// The table that holds the servers, in the TOML files that are known.
const TABLES: &str = "mcp_servers";

fn parse_table(bytes: &[u8]) -> Result<Table, EditError> {
    let wrong = |message: String| EditError { line: 1, message };
    let text = str::from_utf8(bytes).map_err(|_| wrong("not UTF-8".to_owned()))?;
    text.parse::<Table>().map_err(|error| {
        let at = error.span().map_or(0, |span| span.start);
        let line = 1 + text.get(..at).unwrap_or_default().matches('\n').count();
        EditError { line, message: format!("not valid TOML: {}", error.message()) }
    })
}

fn json_of(entry: &toml::Value) -> Result<Value, EditError> {
    let wrong = |error: serde_json::Error| EditError { line: 1, message: error.to_string() };
    serde_json::to_value(entry).map_err(wrong)
}

/// Appends the table. What stands in the file already is not read by anybody in another way: a table
/// begins where its header is.
fn add_table(entry: &str, program: &str, before: Option<&[u8]>) -> Result<Vec<u8>, EditError> {
    let before = before.unwrap_or_default();
    let servers = parse_table(before)?.remove(TABLES);
    let known = servers.as_ref().and_then(|servers| servers.get(SERVER));
    let known = known.map(json_of).transpose()?;
    let rest = match known.map(|known| started_by(Some(&known))) {
        None => before.to_owned(),
        Some(Some(known)) if known == program => return Ok(before.to_owned()),
        Some(Some(_)) => remove_table(before)?,
        Some(None) => {
            let line = line_of_table(before).map_or(1, |(line, _)| line + 1);
            let message = format!("another MCP server is named `{SERVER}`");
            return Err(EditError { line, message });
        }
    };
    let mut after = String::from_utf8_lossy(&rest).into_owned();
    let end = if after.contains("\r\n") { "\r\n" } else { "\n" };
    if !after.is_empty() && !after.ends_with('\n') {
        after.push_str(end);
    }
    if !after.is_empty() {
        after.push_str(end);
    }
    after.push_str(&format!("[{TABLES}.{SERVER}]\n{entry}").replace('\n', end));
    // Servers that stand inline have no place for another.
    parse_table(after.as_bytes()).map_err(|_| EditError {
        line: 1,
        message: format!("`{TABLES}` is written inline; write it as `[{TABLES}.NAME]` tables"),
    })?;
    Ok(after.into_bytes())
}

/// Cuts the table out, from its header to the next one's, and the blank line before it.
fn remove_table(before: &[u8]) -> Result<Vec<u8>, EditError> {
    let text = String::from_utf8_lossy(before).into_owned();
    let mut wanted = parse_table(before)?;
    let inline = || EditError {
        line: 1,
        message: format!("`{TABLES}.{SERVER}` is not a table of its own; remove it by hand"),
    };
    let (first, last) = line_of_table(before).ok_or_else(inline)?;
    let lines: Vec<&str> = text.split_inclusive('\n').collect();
    let (head, tail) =
        (lines.get(..first).unwrap_or_default(), lines.get(last..).unwrap_or_default());
    let head = match head.split_last() {
        Some((blank, rest)) if blank.trim().is_empty() => rest,
        _ => head,
    };
    let after = [head.concat(), tail.concat()].concat();
    // Everything else must mean what it meant.
    if let Some(servers) = wanted.get_mut(TABLES).and_then(toml::Value::as_table_mut) {
        servers.remove(SERVER);
        if servers.is_empty() {
            wanted.remove(TABLES);
        }
    }
    let mut left = parse_table(after.as_bytes())?;
    if left.get(TABLES).and_then(toml::Value::as_table).is_some_and(Table::is_empty) {
        left.remove(TABLES);
    }
    if left == wanted { Ok(after.into_bytes()) } else { Err(inline()) }
}

/// Returns the lines of the table and of those below it, from 0: the first, and the one after the
/// last. Comments and blank lines at its end belong to what follows.
fn line_of_table(bytes: &[u8]) -> Option<(usize, usize)> {
    let text = String::from_utf8_lossy(bytes);
    let own = format!("{TABLES}.{SERVER}");
    let header = |line: &str| -> Option<String> {
        let name = line.trim().strip_prefix('[')?.split(']').next()?;
        Some(name.chars().filter(|c| !c.is_whitespace() && *c != '"').collect())
    };
    let is_own = |name: &str| {
        name.strip_prefix(&own).is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
    };
    let lines: Vec<&str> = text.split_inclusive('\n').collect();
    let first = lines.iter().position(|line| header(line).is_some_and(|name| is_own(&name)))?;
    let mut last = first;
    for (at, line) in lines.iter().enumerate().skip(first) {
        if header(line).is_some_and(|name| !is_own(&name)) {
            break;
        }
        if !line.trim().is_empty() && !line.trim_start().starts_with('#') {
            last = at;
        }
    }
    Some((first, last + 1))
}

#[cfg(test)]
mod tests;
