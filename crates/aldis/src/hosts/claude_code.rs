//! Claude Code: the form that others copied.

use std::path::Path;

use aldis_transcript::Format;
use jsonc_parser::json;
use serde_json::Value;

use super::install::edit::find;
use super::install::hooks_file::CurrentEntry;
use super::install::invocation::Invocation;
use super::install::locations::{Locations, Scope, path_names};
use super::install::trust::{Trust, json_file};
use super::spec::*;

pub(super) static SPEC: HostSpec = HostSpec {
    name: "claude-code",
    alias: Some("claude"),
    title: "Claude Code",
    programs: &["claude"],
    get_program: "npm install -g @anthropic-ai/claude-code",
    headless: Some(Headless {
        command: &["claude", "-p", "--output-format", "stream-json", "--verbose"],
        edits: &["--permission-mode", "acceptEdits"],
        everything: &["--dangerously-skip-permissions"],
        edit_tools: &["Edit", "MultiEdit", "NotebookEdit", "Write"],
        allow: HostOption::Named("--allowedTools"),
        model: HostOption::Named("--model"),
        resume: Some(&["--resume", "{session}"]),
        last: &[],
        prompt_by: PromptBy::Stdin,
        output: Format::ClaudeStream,
        counts_sessions: false,
    }),
    session_variables: &["CLAUDE_CODE_SESSION_ID"],
    project_variables: &["CLAUDE_PROJECT_DIR"],
    answers: Answers { notice: system_message, ..Answers::USUAL },
    block_cap: CapRule {
        limit: Some(8),
        variable: Some("CLAUDE_CODE_STOP_HOOK_BLOCK_CAP"),
        resets_on_tool_use: true,
        ..CapRule::NONE
    },
    transcripts: Transcripts {
        folder: Some(".claude"),
        sessions: &["projects"],
        formats: &[Format::ClaudeCode],
    },
    settings: SettingsFiles {
        variable: Some(("CLAUDE_CONFIG_DIR", "")),
        local_file: Some("settings.local.json"),
        ..SettingsFiles::new(".claude", "settings.json")
    },
    registration: Registration::Entries(Layout {
        events: Layout::EVENTS_WITH_FAILURE,
        // A program with a list of arguments: no shell.
        handler: |Invocation { program, args }, _| json!({ "type": "command", "command": program, "args": args, "timeout": TIMEOUT_SECONDS }),
        ..Layout::GROUPED
    }),
    trust: TrustRules {
        managed: &[
            "/etc/claude-code/managed-settings.json",
            "/Library/Application Support/ClaudeCode/managed-settings.json",
        ],
        examine: trust,
        plugins: Some("enabledPlugins"),
        merges_identical: true,
        ..TrustRules::FOLDER
    },
    is_original: true,
    ..HostSpec::USUAL
};

/// Interactive sessions ask whether to trust a folder; `claude -p` does not.
fn trust(locations: &Locations, scope: Scope, _: &Path, _: &[CurrentEntry]) -> Trust {
    if scope == Scope::User {
        return Trust::Yes("no approval is needed".to_owned());
    }
    let root = locations.project(&SPEC.settings);
    let own = locations.variable("CLAUDE_CONFIG_DIR").or_else(|| locations.home.clone());
    let state = own.and_then(|folder| json_file(&folder.join(".claude.json")));
    let trusted = path_names(&root).iter().any(|root| {
        let path = ["projects", root.as_str(), "hasTrustDialogAccepted"];
        state.as_ref().and_then(|state| find(state, &path)) == Some(&Value::Bool(true))
    });
    if trusted {
        Trust::Yes("the folder is trusted".to_owned())
    } else {
        Trust::Asks("Claude Code asks once to trust this folder; `claude -p` does not".to_owned())
    }
}
