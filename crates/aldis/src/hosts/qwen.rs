//! Qwen Code: a limit on blocks that tool calls do not reset.

use aldis_transcript::Format;
use serde_json::json;

use super::install::server::{ServerPart, trusted_server};
use super::spec::*;

pub(super) static SPEC: HostSpec = HostSpec {
    name: "qwen",
    title: "Qwen Code",
    programs: &["qwen"],
    get_program: "npm install -g @qwen-code/qwen-code",
    headless: Some(Headless {
        command: &["qwen", "--output-format", "stream-json"],
        edits: &["--approval-mode", "auto-edit"],
        everything: &["--approval-mode", "yolo"],
        edit_tools: &["edit", "write_file"],
        allow: HostOption::Named("--allowed-tools"),
        calls: &[],
        model: HostOption::Named("--model"),
        resume: Some(&["--resume", "{session}"]),
        last: &[],
        prompt_by: PromptBy::Stdin,
        output: Format::ClaudeStream,
        counts_sessions: false,
    }),
    payload: HookPayload {
        members: &["context_limit", "context_usage"],
        is_marked: |fields| fields.has_any(&["context_usage", "context_limit"]),
        // Of the hosts without marks only this one says when it stopped.
        is_faintly_marked: |fields| fields.cow(&["timestamp"]).is_some() && fields.is_stop(),
        marked: Marked::Sometimes,
        test_stop: |folder| {
            let members = json!({
                "last_assistant_message": TEST_TEXT, "timestamp": "2026-01-01T00:00:00.000Z",
            });
            test_stop(folder, members)
        },
        ..HookPayload::USUAL
    },
    block_cap: CapRule {
        limit: Some(8),
        variable: Some("QWEN_CODE_STOP_HOOK_BLOCK_CAP"),
        highest: 100,
        resets_on_tool_use: false,
    },
    transcripts: Transcripts {
        folder: Some(".qwen"),
        sessions: &["projects", "tmp"],
        formats: &[Format::ClaudeCode],
    },
    settings: SettingsFiles::new(".qwen", "settings.json"),
    registration: Registration::Entries(Layout {
        events: Layout::EVENTS_WITH_FAILURE,
        // Times are in milliseconds.
        handler: |invocation, _| shell_handler(&invocation, TIMEOUT_SECONDS * 1000),
        ..Layout::GROUPED
    }),
    server: |locations, scope| {
        locations.beside_hooks(&SPEC, scope, None, ServerPart::listed(trusted_server))
    },
    ..HostSpec::USUAL
};
