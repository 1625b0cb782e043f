//! Cursor: names of its own, no working directory, and the agent's last message comes as an event
//! before the stop.

use std::path::PathBuf;

use aldis_transcript::Format;
use jsonc_parser::json;
use serde_json::json as value;

use super::Env;
use super::hook::call::{CutShort, Event};
use super::hook::fields::Fields;
use super::install::invocation::Invocation;
use super::install::server::ServerPart;
use super::spec::*;

/// The limit that our own registration asks for; the default is five.
const LOOP_LIMIT: u32 = 50;

pub(super) static SPEC: HostSpec = HostSpec {
    name: "cursor",
    title: "Cursor",
    programs: &["cursor-agent", "cursor"],
    get_program: "see cursor.com/cli",
    headless: Some(Headless {
        command: &["cursor-agent", "-p", "--output-format", "stream-json"],
        edits: &["--force"],
        everything: &["--force"],
        edit_tools: &[],
        allow: HostOption::Instead(
            "Cursor allows everything that `permissions` in .cursor/cli.json does not deny",
        ),
        calls: &[],
        model: HostOption::Named("--model"),
        resume: Some(&["--resume", "{session}"]),
        last: &[],
        prompt_by: PromptBy::Stdin,
        output: Format::CursorStream,
        counts_sessions: false,
    }),
    project_variables: &["CURSOR_PROJECT_DIR", "CLAUDE_PROJECT_DIR"],
    payload: HookPayload {
        members: &["conversation_id", "cursor_version", "generation_id", "workspace_roots"],
        event,
        session: |fields| fields.text(&["conversation_id", "session_id"]),
        final_text: |fields| fields.text(&["last_assistant_message", "summary"]),
        cwd,
        cut_short,
        turn_survives_block: false,
        is_marked: |fields| {
            fields.has("cursor_version")
                || fields.has("conversation_id") && fields.has("generation_id")
        },
        marked: Marked::Always,
        test_stop: |folder| {
            value!({
                "conversation_id": TEST_SESSION, "generation_id": "1", "hook_event_name": "stop",
                "cursor_version": "3.0.0", "workspace_roots": [folder],
                "status": "completed", "loop_count": 0, "transcript_path": null,
            })
        },
        ..HookPayload::USUAL
    },
    answers: Answers {
        allow: |_| Some(value!({})),
        block: |event, reason| {
            matches!(event, Event::Stop | Event::SubagentStop)
                .then(|| value!({"followup_message": reason}))
        },
        context: |_, _| None,
        ..Answers::USUAL
    },
    block_cap: CapRule::fixed(LOOP_LIMIT),
    transcripts: Transcripts {
        folder: Some(".cursor"),
        sessions: &["projects"],
        formats: &[Format::CursorTranscript, Format::CursorStream],
    },
    settings: SettingsFiles::new(".cursor", "hooks.json"),
    registration: Registration::Entries(Layout {
        root: "hooks",
        grouped: false,
        versioned: true,
        events: &[
            "stop",
            "subagentStop",
            "afterAgentResponse",
            "beforeSubmitPrompt",
            "sessionStart",
            "sessionEnd",
        ],
        handler: |invocation, event| {
            let line = invocation.line();
            match event {
                "stop" | "subagentStop" => {
                    json!({ "command": line, "timeout": TIMEOUT_SECONDS, "loop_limit": LOOP_LIMIT })
                }
                _ => json!({ "command": line, "timeout": TIMEOUT_SECONDS }),
            }
        },
        waker: None,
        wakes_after: &[],
    }),
    server: |locations, scope| {
        let plain = ServerPart::listed(
            |Invocation { program, args }| json!({ "command": program, "args": args }),
        );
        locations.beside_hooks(&SPEC, scope, Some("mcp.json"), plain)
    },
    server_note: Some("Cursor may ask once to approve the MCP server"),
    imports: Imports::Translates,
    ..HostSpec::USUAL
};

fn event(fields: &Fields<'_>) -> Event {
    let name = fields.text(EVENT_NAMES).unwrap_or_default();
    match &*name {
        "stop" | "Stop" => Event::Stop,
        "subagentStop" | "SubagentStop" => Event::SubagentStop,
        "afterAgentResponse" => {
            Event::AgentResponse { text: fields.text(&["text"]).unwrap_or_default() }
        }
        "beforeSubmitPrompt" | "UserPromptSubmit" => prompt(fields),
        "sessionStart" | "SessionStart" => Event::SessionStart { source: fields.word(&["source"]) },
        "sessionEnd" | "SessionEnd" => Event::SessionEnd { reason: fields.word(&["reason"]) },
        _ => Event::Other(name),
    }
}

fn cwd(fields: &Fields<'_>, env: &Env) -> Option<PathBuf> {
    let root = fields.first_of_list("workspace_roots").filter(|root| !root.is_empty());
    let root = root.map(|root| local(&root, cfg!(windows)).into());
    root.or_else(|| env.path("CURSOR_PROJECT_DIR"))
}

fn cut_short(fields: &Fields<'_>) -> Option<CutShort> {
    let status = fields.cow(&["status"])?;
    match &*status {
        "completed" => None,
        "aborted" => Some(CutShort::Aborted),
        "error" => Some(CutShort::Failed("error".to_owned())),
        other => Some(CutShort::Other(other.to_owned())),
    }
}

/// On Windows Cursor writes `/d:/dir`, which is no path there.
fn local(root: &str, on_windows: bool) -> &str {
    let drive = root.strip_prefix('/').filter(|rest| {
        let [letter, colon, ..] = rest.as_bytes() else { return false };
        letter.is_ascii_alphabetic() && *colon == b':'
    });
    drive.filter(|_| on_windows).unwrap_or(root)
}

#[cfg(test)]
mod tests {
    //! Paths as they are on another system.

    use super::local;

    #[test]
    fn drives_are_paths_on_windows_only() {
        assert_eq!(local("/d:/dir", true), "d:/dir");
        assert_eq!(local("/d:/dir", false), "/d:/dir");
        for plain in ["/home/dev", "d:/dir", "/", "", "/1:/x", "/é"] {
            assert_eq!(local(plain, true), plain);
        }
    }
}
