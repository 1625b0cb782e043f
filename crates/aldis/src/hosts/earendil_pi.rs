//! Pi has no command hooks: an extension tells us that the agent ended, and sends our reason as the
//! next message. Pi 0.87 or newer waits for it when it runs without a person, too.

use aldis_transcript::Format;
use serde_json::json;

use super::hook::call::{CutShort, Event};
use super::hook::fields::Fields;
use super::install::locations::Scope;
use super::install::trust::Trust;
use super::spec::*;

pub(super) static SPEC: HostSpec = HostSpec {
    name: "pi",
    title: "Pi",
    programs: &["pi"],
    get_program: "npm install -g @earendil-works/pi-coding-agent",
    headless: Some(Headless {
        calls: &[],
        command: &["pi", "--mode", "json"],
        edits: &[],
        everything: &[],
        edit_tools: &[],
        allow: HostOption::Instead("Pi asks for nothing: it may do what its user may"),
        model: HostOption::Instead("write `-- --model NAME` behind the task"),
        resume: Some(&["--session", "{session}"]),
        last: &["-p"],
        prompt_by: PromptBy::Stdin,
        output: Format::Pi,
        counts_sessions: false,
    }),
    payload: HookPayload {
        event: |fields| match fields.text(&["type"]) {
            Some(kind) if kind == STOP => Event::Stop,
            kind => Event::Other(kind.unwrap_or_default()),
        },
        session: |fields| fields.text(&["sessionId"]),
        cut_short,
        is_marked: |fields| {
            !fields.has_any(EVENT_NAMES)
                && fields.has("sessionId")
                && fields.cow(&["type"]).is_some_and(|kind| kind == STOP)
        },
        marked: Marked::Always,
        test_stop: |folder| {
            json!({
                "type": STOP, "sessionId": TEST_SESSION, "cwd": folder, "status": "stop",
                "last_assistant_message": TEST_TEXT,
            })
        },
        ..HookPayload::USUAL
    },
    answers: Answers::STOPS_ONLY,
    transcripts: Transcripts {
        folder: Some(".pi"),
        sessions: &["sessions"],
        formats: &[Format::Pi],
    },
    settings: SettingsFiles {
        user: ".pi/agent",
        variable: Some(("PI_CODING_AGENT_DIR", "")),
        ..SettingsFiles::new(".pi", "extensions")
    },
    registration: Registration::Plugin {
        files: &[PluginFile {
            path: "aldis.js",
            mark: "Written by `aldis install pi`",
            render: |program| plugin_script(include_str!("plugins/pi.js"), program),
        }],
        events: &[STOP],
        also: None,
    },
    trust: TrustRules {
        examine: |_, scope, _, _| match scope {
            Scope::Project => Trust::Asks("Pi asks once whether to trust this project".to_owned()),
            Scope::Local | Scope::User => Trust::Yes("no approval is needed".to_owned()),
        },
        ..TrustRules::NONE
    },
    ..HostSpec::USUAL
};

fn cut_short(fields: &Fields<'_>) -> Option<CutShort> {
    let reason = fields.cow(&["status"])?;
    match &*reason {
        "stop" | "" => None,
        "aborted" => Some(CutShort::Aborted),
        "error" => Some(CutShort::Failed("error".to_owned())),
        other => Some(CutShort::Other(other.to_owned())),
    }
}

/// The event by which the extension tells of a stop.
const STOP: &str = "agent_end";
