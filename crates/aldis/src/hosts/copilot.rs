//! Copilot CLI: payloads in two spellings, one of which does not name its event.

use aldis_transcript::Format;
use jsonc_parser::json;
use serde_json::json as value;

use super::hook::call::{CutShort, Event};
use super::hook::fields::Fields;
use super::install::invocation::Invocation;
use super::install::locations::Scope;
use super::install::server::{ServerPart, project_server};
use super::spec::*;

pub(super) static SPEC: HostSpec = HostSpec {
    name: "copilot",
    title: "Copilot CLI",
    programs: &["copilot"],
    get_program: "npm install -g @github/copilot",
    headless: Some(Headless {
        command: &["copilot", "--output-format", "json"],
        edits: &["--allow-tool=write"],
        everything: &["--yolo"],
        edit_tools: &["create", "edit", "write"],
        allow: HostOption::Named("--allow-tool"),
        calls: &["aldis"],
        model: HostOption::Named("--model"),
        resume: Some(&["--resume={session}"]),
        last: &["-p"],
        prompt_by: PromptBy::Argument,
        output: Format::Copilot,
        counts_sessions: false,
    }),
    payload: HookPayload {
        members: &["stopReason", "stop_reason", "initialPrompt"],
        event,
        cut_short,
        is_marked: |fields| fields.has_any(STOP_REASONS),
        marked: Marked::AtStops,
        test_stop: |folder| {
            let members =
                value!({ "stop_reason": "end_turn", "timestamp": "2026-01-01T00:00:00.000Z" });
            test_stop(folder, members)
        },
        ..HookPayload::USUAL
    },
    answers: Answers { context: |_, _| None, ..Answers::USUAL },
    block_cap: CapRule::fixed(8),
    transcripts: Transcripts {
        folder: Some(".copilot"),
        sessions: &["session-state"],
        formats: &[Format::Copilot],
    },
    settings: SettingsFiles {
        user: ".copilot",
        variable: Some(("COPILOT_HOME", "")),
        ..SettingsFiles::new(".github", "hooks/aldis.json")
    },
    // Only keys in this spelling get payloads that name their event.
    registration: Registration::Entries(Layout {
        grouped: false,
        versioned: true,
        handler: |Invocation { program, args }, _| json!({ "type": "command", "exec": program, "args": args, "timeoutSec": TIMEOUT_SECONDS }),
        ..Layout::GROUPED
    }),
    server: |locations, scope| match scope {
        Scope::Project => {
            let file = locations.project(&SPEC.settings).join(".mcp.json");
            vec![(file, ServerPart::listed(project_server))]
        }
        scope => {
            let own = ServerPart::listed(
                |Invocation { program, args }| json!({ "type": "local", "command": program, "args": args, "tools": ["*"] }),
            );
            locations.beside_hooks(&SPEC, scope, Some("mcp-config.json"), own)
        }
    },
    server_note: Some(
        "Copilot CLI asks before it calls a tool, unless started with --allow-tool aldis",
    ),
    imports: Imports::Runs,
    ..HostSpec::USUAL
};

fn event(fields: &Fields<'_>) -> Event {
    if let Some(name) = fields.text(EVENT_NAMES) {
        return named_event(name, fields);
    }
    let has = |names: &[&str]| fields.has_any(names);
    match () {
        () if has(&["agentId", "agentName", "agent_id"]) && has(STOP_REASONS) => {
            Event::SubagentStop
        }
        () if has(STOP_REASONS) || has(&["stop_hook_active"]) => Event::Stop,
        () if has(&["prompt"]) => prompt(fields),
        () if has(&["source", "initialPrompt"]) => {
            Event::SessionStart { source: fields.word(&["source"]) }
        }
        () if has(&["reason"]) => Event::SessionEnd { reason: fields.word(&["reason"]) },
        () => Event::Other(String::new()),
    }
}

fn cut_short(fields: &Fields<'_>) -> Option<CutShort> {
    let reason = fields.cow(STOP_REASONS)?;
    match &*reason {
        "end_turn" | "" => None,
        "aborted" | "cancelled" | "canceled" | "interrupted" => Some(CutShort::Aborted),
        "error" => Some(CutShort::Failed("error".to_owned())),
        other => Some(CutShort::Other(other.to_owned())),
    }
}

const STOP_REASONS: &[&str] = &["stopReason", "stop_reason"];
