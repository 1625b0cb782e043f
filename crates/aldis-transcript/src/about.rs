//! What a call of a tool is about. Hosts hand the same few members to their tools, in
//! wrappers of their own.

use std::borrow::Cow;

use crate::members::{Members, Raw, elements, string};
use crate::receipt::is_report_command;

/// What is known of a call.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct ToolInput {
    /// A command, a path, a pattern: as much as the tool was told of it.
    pub(crate) about: String,
    pub(crate) is_command: bool,
    /// A file is written.
    pub(crate) is_write: bool,
    /// How many lines it adds and removes.
    pub(crate) lines: Option<(u64, u64)>,
}

impl ToolInput {
    /// Returns whether it is `aldis signal` and nothing else.
    pub(crate) fn is_report(&self) -> bool {
        self.is_command && is_report_command(&self.about)
    }
}

/// Reads what a tool was told.
pub(crate) fn tool_input(input: Option<Raw<'_>>) -> ToolInput {
    let Some(raw) = input else { return ToolInput::default() };
    // Some hosts write the input as a string that holds an object, or a patch.
    let text = string(raw);
    let inside = text.as_deref().map_or_else(|| raw.bytes(), str::as_bytes);
    match Members::of_bytes(inside) {
        Ok(input) => within(&input, DEPTH_MAX).unwrap_or_default(),
        Err(_) => text.as_deref().and_then(patch).unwrap_or_default(),
    }
}

/// The files that a patch names.
fn patch(text: &str) -> Option<ToolInput> {
    let mut lines = text.lines().filter(|line| line.starts_with("*** "));
    let (_, file) = lines.find_map(|line| line.split_once(" File: "))?;
    Some(ToolInput { is_write: true, ..about(file) })
}

fn within(input: &Members<'_>, depth: usize) -> Option<ToolInput> {
    let found = own(input).or_else(|| {
        let depth = depth.checked_sub(1)?;
        let mut inner = WRAPPERS.iter().filter_map(|name| input.get(name));
        inner.find_map(|inner| within(&Members::lenient(inner), depth)).or_else(|| {
            // A wrapper that is named after the tool.
            let mut all = input.iter();
            let (_, first) = all.next()?;
            within(&Members::lenient(first), depth)
        })
    });
    found.or_else(|| input.text("title").map(|title| about(&title)))
}

/// What these members say, without what is within them.
fn own(input: &Members<'_>) -> Option<ToolInput> {
    let path = input.any_text(&PATHS);
    // What has a path, too, is an editor.
    if let Some(command) = input.any(&COMMANDS).filter(|_| path.is_none()) {
        let words: Vec<Cow<'_, str>> = elements(command).into_iter().filter_map(string).collect();
        let command = words.join(" ");
        return Some(ToolInput { is_command: true, ..about(of_shell(command.trim())) });
    }
    if let Some(path) = path {
        let is_write = CONTENTS.iter().any(|name| input.has(name));
        return Some(ToolInput { is_write, lines: lines(input), ..about(&path) });
    }
    let changes = input.list("changes").into_iter().map(Members::lenient);
    let paths: Vec<_> = changes.filter_map(|change| change.text("path")).collect();
    if !paths.is_empty() {
        return Some(ToolInput { is_write: true, ..about(&paths.join(", ")) });
    }
    input.any_text(&OTHERS).map(|text| about(&text))
}

fn about(text: &str) -> ToolInput {
    ToolInput { about: text.trim().to_owned(), ..ToolInput::default() }
}

/// The command that a shell is started for: `/bin/bash -lc 'cargo test'` is `cargo test`.
fn of_shell(command: &str) -> &str {
    let inner = || {
        let (shell, rest) = command.split_once(' ')?;
        let rest = rest.strip_prefix("-lc ").or_else(|| rest.strip_prefix("-c "))?.trim();
        let quoted = |quote| rest.strip_prefix(quote)?.strip_suffix(quote);
        let is_shell = shell.ends_with("sh") && !shell.contains(char::is_whitespace);
        is_shell.then(|| quoted('\'').or_else(|| quoted('"')).unwrap_or(rest))
    };
    inner().unwrap_or(command)
}

/// How many lines an edit adds and removes.
fn lines(input: &Members<'_>) -> Option<(u64, u64)> {
    let edits = input.list("edits").into_iter().map(Members::lenient);
    let all = edits.chain([input.clone()]).filter_map(|edit| {
        let new = edit.any_text(&["new_string", "newText", "new_str", "content", "file_text"])?;
        let old = edit.any_text(&["old_string", "oldText", "old_str"]).unwrap_or_default();
        Some(changed(&old, &new))
    });
    all.reduce(|one, other| (one.0 + other.0, one.1 + other.1))
}

/// Lines that differ: what both begin and end with is only there to find the place.
fn changed(old: &str, new: &str) -> (u64, u64) {
    let (old, new): (Vec<&str>, Vec<&str>) = (old.lines().collect(), new.lines().collect());
    let head = old.iter().zip(&new).take_while(|(old, new)| old == new).count();
    let rest = old.len().min(new.len()) - head;
    let ends = old.iter().rev().zip(new.iter().rev()).take(rest);
    let same = head + ends.take_while(|(old, new)| old == new).count();
    ((new.len() - same) as u64, (old.len() - same) as u64)
}

const COMMANDS: [&str; 3] = ["command", "cmd", "CommandLine"];
const PATHS: [&str; 8] = [
    "file_path",
    "notebook_path",
    "absolute_path",
    "filePath",
    "path",
    "target_file",
    "AbsolutePath",
    "TargetFile",
];
const OTHERS: [&str; 9] =
    ["pattern", "query", "url", "skill", "question", "description", "subject", "prompt", "task"];
/// Members of what is written into a file.
const CONTENTS: [&str; 9] = [
    "content",
    "contents",
    "edits",
    "file_text",
    "insert_text",
    "newString",
    "new_source",
    "new_str",
    "new_string",
];
/// Where hosts put what a tool is told.
const WRAPPERS: [&str; 8] =
    ["input", "arguments", "args", "parameters", "rawInput", "value", "toolCall", "action"];

/// How deep wrappers are opened.
const DEPTH_MAX: usize = 3;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_are_told_in_a_line() {
        for (input, about, is_command, lines) in [
            (r#"{"command":"npm  test\n"}"#, "npm  test", true, None),
            (r#""{\"cmd\": \"make\"}""#, "make", true, None),
            (r#"{"command":["bash","-lc","cargo test"]}"#, "cargo test", true, None),
            (r#""*** Begin Patch\n*** Update File: a.rs\n@@""#, "a.rs", false, None),
            (r#"{"command":"view","path":"a.rs"}"#, "a.rs", false, None),
            (r#"{"command":["git","status"]}"#, "git status", true, None),
            (r#"{"command":"/bin/bash -lc 'cargo test'"}"#, "cargo test", true, None),
            (r#"{"command":"fish -c"}"#, "fish -c", true, None),
            (r#"{"file_path":"a.rs","content":"1\n2\n"}"#, "a.rs", false, Some((2, 0))),
            (
                r#"{"file_path":"a","old_string":"x\ny\nz","new_string":"x\n1\n2\nz"}"#,
                "a",
                false,
                Some((2, 1)),
            ),
            (
                r#"{"path":"a","edits":[{"old_string":"x","new_string":""},{"old_string":"a","new_string":"a\nb"}]}"#,
                "a",
                false,
                Some((1, 1)),
            ),
            (r#"{"pattern":"TODO","output_mode":"x"}"#, "TODO", false, None),
            (r#"{"changes":[{"path":"a","kind":"add"},{"path":"b"}]}"#, "a, b", false, None),
            (r#"{"shellToolCall":{"args":{"command":"ls"}}}"#, "ls", true, None),
            (r#"{"toolCall":{"value":{"arguments":{"path":"x"}}}}"#, "x", false, None),
            (r#"{"title":"Look around","kind":"search"}"#, "Look around", false, None),
            (r#"{"title":"t","rawInput":{"command":"ls"}}"#, "ls", true, None),
            (r#"{"a":{"b":{"c":{"d":{"command":"too deep"}}}}}"#, "", false, None),
            ("[1]", "", false, None),
        ] {
            let line = format!("{{\"input\":{input}}}");
            let told = tool_input(Members::of_bytes(line.as_bytes()).unwrap().get("input"));
            let is_write = lines.is_some() || input.contains("changes") || input.contains("***");
            let want = ToolInput { about: about.to_owned(), is_command, is_write, lines };
            assert_eq!(told, want, "{input}");
        }
    }
}
