//! Claude Code: the form that others copied.

use std::path::{Path, PathBuf};

use aldis_transcript::Format;
use jsonc_parser::json;
use serde_json::{Value, json as value};

use super::hook::call::Event;
use super::install::edit::find;
use super::install::hooks_file::CurrentEntry;
use super::install::invocation::Invocation;
use super::install::locations::{Locations, Scope, path_names};
use super::install::server::{SERVER, ServerPart, project_server};
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
        calls: &["mcp__aldis", "mcp__plugin_aldis_aldis"],
        model: HostOption::Named("--model"),
        resume: Some(&["--resume", "{session}"]),
        last: &[],
        prompt_by: PromptBy::Stdin,
        output: Format::ClaudeStream,
        counts_sessions: false,
    }),
    session_variables: &["CLAUDE_CODE_SESSION_ID"],
    attended: Some(("CLAUDE_CODE_ENTRYPOINT", "cli")),
    calls: CallMembers { id: "claudecode/toolUseId", turn: "", variable: "" },
    project_variables: &["CLAUDE_PROJECT_DIR"],
    answers: Answers {
        notice: |event, text| match event {
            Event::Prompt { .. } => Some(value!({ "systemMessage": text })),
            event => system_message(event, text),
        },
        ..Answers::USUAL
    },
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
        waker: Some(
            |Invocation { program, args }| json!({ "type": "command", "command": program, "args": args, "timeout": WAKE_SECONDS_MAX, "asyncRewake": true }),
        ),
        wakes_after: &["Stop", "StopFailure"],
        ..Layout::GROUPED
    }),
    passing_errors: &["overloaded", "rate_limit", "server_error"],
    server,
    ignored_with: Some(
        "sessions started with --bare or --safe-mode ignore the hook and the server; with \
         --strict-mcp-config or --setting-sources they may ignore either",
    ),
    trust: TrustRules {
        managed: &[
            "/etc/claude-code/managed-settings.json",
            "/Library/Application Support/ClaudeCode/managed-settings.json",
            r"C:\Program Files\ClaudeCode\managed-settings.json",
        ],
        examine: trust,
        plugins: Some("enabledPlugins"),
        merges_identical: true,
        ..TrustRules::FOLDER
    },
    is_original: true,
    ..HostSpec::USUAL
};

/// The file in which it keeps its own state, and the servers of one person.
fn state_file(locations: &Locations) -> Option<PathBuf> {
    let folder = locations.variable("CLAUDE_CONFIG_DIR").or_else(|| locations.home.clone());
    folder.map(|folder| folder.join(".claude.json"))
}

/// It asks before it calls a tool, and without a person refuses to. What allows the tools counts in
/// settings of one person; in those of a project only once the folder is trusted.
fn server(locations: &Locations, scope: Scope) -> Vec<(PathBuf, ServerPart)> {
    let root = locations.project(&SPEC.settings);
    let own = root.join(SPEC.settings.project).join("settings.local.json");
    let allowed = ServerPart::Item { path: &["permissions", "allow"], item: "mcp__aldis" };
    let named = |path: Vec<String>| ServerPart::Member { path, entry: project_server };
    let servers = "mcpServers".to_owned();
    match scope {
        Scope::Project => vec![
            (root.join(".mcp.json"), named(vec![servers])),
            (own.clone(), allowed),
            (own, ServerPart::Item { path: &["enabledMcpjsonServers"], item: SERVER }),
        ],
        Scope::Local => {
            let project = vec!["projects".to_owned(), root.display().to_string(), servers];
            let state = state_file(locations).map(|file| (file, named(project)));
            state.into_iter().chain([(own, allowed)]).collect()
        }
        Scope::User => {
            let state = state_file(locations).map(|file| (file, named(vec![servers])));
            let settings = locations.user_folder(&SPEC.settings).ok();
            let settings = settings.map(|folder| (folder.join(SPEC.settings.file), allowed));
            state.into_iter().chain(settings).collect()
        }
    }
}

/// Interactive sessions ask whether to trust a folder; `claude -p` does not.
fn trust(locations: &Locations, scope: Scope, _: &Path, _: &[CurrentEntry]) -> Trust {
    if scope == Scope::User {
        return Trust::Yes("no approval is needed".to_owned());
    }
    let root = locations.project(&SPEC.settings);
    let state = state_file(locations).and_then(|file| json_file(&file));
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
