//! Antigravity CLI, the successor of Gemini CLI. By its public documentation and what others captured
//! of it: the program is in no registry, so none of this was tried.
//!
//! A payload does not name its event; each event has members of its own. `continue` is what keeps the
//! agent working, and after a number of times that is not documented it is not asked any more.

use aldis_transcript::Format;
use jsonc_parser::json;
use serde_json::json as value;

use super::hook::call::{CutShort, Event};
use super::hook::fields::Fields;
use super::install::invocation::Invocation;
use super::install::locations::Scope;
use super::install::server::ServerPart;
use super::install::trust::Trust;
use super::spec::*;

pub(super) static SPEC: HostSpec = HostSpec {
    name: "antigravity",
    alias: Some("agy"),
    title: "Antigravity CLI",
    programs: &["agy"],
    get_program: "see antigravity.google/docs/cli",
    headless: Some(Headless {
        calls: &[],
        // Without a folder it works in one of its own.
        command: &["agy", "--output-format", "stream-json", "--add-dir", "."],
        edits: &[],
        everything: &["--dangerously-skip-permissions"],
        edit_tools: &[],
        allow: HostOption::Instead(
            "`permissions.allow` in ~/.gemini/antigravity-cli/settings.json allows single tools",
        ),
        model: HostOption::Named("--model"),
        resume: Some(&["--conversation={session}"]),
        last: &["-p"],
        prompt_by: PromptBy::Argument,
        output: Format::AntigravityStream,
        counts_sessions: false,
    }),
    session_variables: &["ANTIGRAVITY_CONVERSATION_ID"],
    payload: HookPayload {
        members: &[
            "conversationId",
            "executionNum",
            "fullyIdle",
            "invocationNum",
            "terminationReason",
            "workspacePaths",
        ],
        event: |fields| match () {
            () if fields.has_any(STOP_MEMBERS) => Event::Stop,
            () if fields.has("invocationNum") => Event::Other("invocation".to_owned()),
            () => Event::SessionStart { source: None },
        },
        session: |fields| fields.text(&["conversationId"]),
        cwd: |fields, _| {
            let folder = fields.first_of_list("workspacePaths");
            folder.filter(|folder| !folder.is_empty()).map(Into::into)
        },
        cut_short,
        is_marked: |fields| fields.has("conversationId") && !fields.has_any(EVENT_NAMES),
        marked: Marked::Always,
        test_stop: |folder| {
            value!({
                "conversationId": TEST_SESSION, "workspacePaths": [folder], "executionNum": 0,
                "terminationReason": "NO_TOOL_CALL", "error": "", "fullyIdle": true,
            })
        },
        ..HookPayload::USUAL
    },
    answers: Answers {
        allow: |_| Some(value!({})),
        block: |event, reason| {
            (*event == Event::Stop).then(|| value!({"decision": "continue", "reason": reason}))
        },
        ..Answers::STOPS_ONLY
    },
    // Beside each transcript is a whole one, which a look at the folder would count again.
    transcripts: Transcripts {
        folder: Some("antigravity-cli"),
        sessions: &[],
        formats: &[Format::Antigravity],
    },
    settings: SettingsFiles {
        user: ".gemini/config",
        ..SettingsFiles::new(".agents", "hooks.json")
    },
    registration: Registration::Entries(Layout {
        root: "aldis",
        grouped: false,
        events: &["Stop"],
        ..Layout::GROUPED
    }),
    server: |locations, scope| {
        let plain = ServerPart::listed(
            |Invocation { program, args }| json!({ "command": program, "args": args }),
        );
        locations.beside_hooks(&SPEC, scope, Some("mcp_config.json"), plain)
    },
    trust: TrustRules {
        examine: |_, scope, _, _| match scope {
            Scope::Project => Trust::Asks(
                "Antigravity CLI reads a project's hooks while the folder is open as a workspace"
                    .to_owned(),
            ),
            Scope::Local | Scope::User => Trust::Yes("no approval is needed".to_owned()),
        },
        ..TrustRules::NONE
    },
    ..HostSpec::USUAL
};

fn cut_short(fields: &Fields<'_>) -> Option<CutShort> {
    if let Some(error) = fields.text(&["error"]).filter(|error| !error.is_empty()) {
        return Some(CutShort::Failed(error));
    }
    let reason = fields.cow(&["terminationReason"]).unwrap_or_default();
    let reason = reason.strip_prefix("EXECUTOR_TERMINATION_REASON_").unwrap_or(&reason);
    match reason {
        "NO_TOOL_CALL" | "model_stop" | "" => None,
        "USER_CANCELED" | "CANCELED" | "INTERRUPTED" => Some(CutShort::Aborted),
        "ERROR" => Some(CutShort::Failed("error".to_owned())),
        other => Some(CutShort::Other(other.to_owned())),
    }
}

const STOP_MEMBERS: &[&str] = &["terminationReason", "executionNum", "fullyIdle"];
