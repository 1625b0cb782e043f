//! What a call is about: what kind of tool it is, and the command, path or question it was given.
//!
//! Hosts name their tools as they like, but what a shell is given is called a command everywhere, and
//! what writes a file is given its path and its content. So the input decides; only tools that say
//! nothing by their input are known by name.

use super::ToolKind;
use crate::json::strings;
use crate::members::{Members, Raw, elements, string};

/// Returns the kind of a tool, and what it was told.
pub(super) fn about(name: &str, input: Option<Raw<'_>>) -> (ToolKind, String) {
    let Some(raw) = input else { return (named(name, &Members::default()), String::new()) };
    // Some hosts write the input as a string that holds an object.
    let text = string(raw);
    let inside = text.as_deref().map_or_else(|| raw.bytes(), str::as_bytes);
    let Ok(input) = Members::of_bytes(inside) else {
        let text = text.map_or_else(|| strings(raw), std::borrow::Cow::into_owned);
        let file = patched_file(&text).map(str::to_owned);
        return (named(name, &Members::default()), file.unwrap_or(text));
    };
    let path = input.any_text(&PATHS);
    if let (Some(command), None) = (input.any(&["command", "cmd"]), &path) {
        return (ToolKind::Command, words(command));
    }
    let is_write = path.is_some() && CONTENTS.iter().any(|name| input.has(name));
    let kind = if is_write { ToolKind::Write } else { named(name, &input) };
    let changed = input.list("changes").into_iter().next();
    let changed = changed.and_then(|change| Members::lenient(change).text("path"));
    let what = path.or(changed).or_else(|| input.any_text(&OTHERS));
    (kind, what.map_or_else(|| strings(raw), std::borrow::Cow::into_owned))
}

/// Returns what a tool is by its name alone.
fn named(name: &str, input: &Members<'_>) -> ToolKind {
    let last = name.rsplit(['/', '.']).next().unwrap_or(name);
    match last.rsplit("__").next().unwrap_or(last) {
        "AskUserQuestion"
        | "ExitPlanMode"
        | "ask_followup_question"
        | "ask_user"
        | "exit_plan_mode"
        | "question"
        | "request_user_input" => ToolKind::Ask,
        "apply_patch" | "file_change" => ToolKind::Write,
        "attempt_completion" | "task_complete" => ToolKind::Claim,
        "update_goal" if input.str("status") == "complete" => ToolKind::Claim,
        _ => ToolKind::Other,
    }
}

/// The words of a command: a line, or a list of which the last is what a shell was given.
fn words(command: Raw<'_>) -> String {
    if let Some(line) = string(command) {
        return line.into_owned();
    }
    let words: Vec<_> = elements(command).into_iter().filter_map(string).collect();
    match &*words {
        [shell, flag, line] if shell.ends_with("sh") && flag.starts_with('-') => line.to_string(),
        words => words.join(" "),
    }
}

/// The first file that a patch names.
fn patched_file(patch: &str) -> Option<&str> {
    let mut lines = patch.lines().filter(|line| line.starts_with("*** "));
    lines.find_map(|line| Some(line.split_once(" File: ")?.1))
}

/// Members that name a file.
const PATHS: [&str; 7] =
    ["absolute_path", "file_path", "filePath", "filename", "notebook_path", "path", "target_file"];
/// Members of what is written into it.
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
/// Members that say what other tools are about, the best first.
const OTHERS: [&str; 7] =
    ["question", "query", "pattern", "url", "description", "prompt", "objective"];

#[cfg(test)]
mod tests {
    //! Inputs as hosts write them.

    use super::*;
    use ToolKind::{Ask, Claim, Command, Other, Write};

    #[test]
    fn the_input_says_what_a_tool_does() {
        for (name, input, kind, what) in [
            ("Bash", r#"{"command":"npm test","description":"d"}"#, Command, "npm test"),
            ("shell", r#"{"command":["bash","-lc","cargo test"]}"#, Command, "cargo test"),
            ("exec_command", r#""{\"cmd\": \"make\"}""#, Command, "make"),
            ("Write", r#"{"file_path":"a.rs","content":"x"}"#, Write, "a.rs"),
            ("Read", r#"{"file_path":"a.rs"}"#, Other, "a.rs"),
            ("edit", r#"{"command":"create","path":"a.rs","file_text":""}"#, Write, "a.rs"),
            ("apply_patch", r#""*** Begin Patch\n*** Update File: a.rs\n@@""#, Write, "a.rs"),
            ("file_change", r#"{"changes":[{"path":"a.rs","kind":"add"}]}"#, Write, "a.rs"),
            ("AskUserQuestion", r#"{"questions":[{"question":"Why?"}]}"#, Ask, "Why?"),
            ("mcp__goals__update_goal", r#"{"status":"complete"}"#, Claim, "complete"),
            ("update_goal", r#"{"status":"blocked"}"#, Other, "blocked"),
            ("Grep", r#"{"pattern":"x"}"#, Other, "x"),
            ("odd", "[1,", Other, ""),
        ] {
            let raw = format!(r#"{{"input":{input}}}"#);
            let members = Members::before_cut(raw.as_bytes());
            assert_eq!(
                about(name, members.get("input")),
                (kind, what.to_owned()),
                "{name} {input}"
            );
        }
        assert_eq!(about("Bash", None), (Other, String::new()));
    }
}
