//! OpenCode has no command hooks: a plugin hands us the events of its bus and sends our reason as the
//! next prompt.

use std::borrow::Cow;

use aldis_transcript::Format;
use serde_json::json;

use super::hook::call::Event;
use super::hook::fields::Fields;
use super::spec::*;

pub(super) static SPEC: HostSpec = HostSpec {
    name: "opencode",
    title: "OpenCode",
    programs: &["opencode"],
    get_program: "npm install -g opencode-ai",
    headless: Some(Headless {
        command: &["opencode", "run", "--format", "json"],
        edits: &[],
        everything: &["--auto"],
        edit_tools: &[],
        allow: HostOption::Instead(
            "`permission` in opencode.json allows single tools, --yolo all that are not denied there",
        ),
        model: HostOption::Named("--model"),
        resume: Some(&["--session", "{session}"]),
        last: &[],
        prompt_by: PromptBy::Argument,
        output: Format::OpenCode,
        counts_sessions: false,
    }),
    payload: HookPayload {
        members: &["part", "properties", "sessionID"],
        event,
        session: |fields| {
            let properties = fields.inside("properties");
            let own = properties.text(&["sessionID"]);
            own.or_else(|| properties.inside("part").text(&["sessionID"]))
        },
        is_marked: |fields| {
            !fields.has_any(EVENT_NAMES) && fields.has("type") && fields.has("properties")
        },
        marked: Marked::Always,
        test_stop: |folder| {
            json!({
                "type": "session.idle", "properties": { "sessionID": TEST_SESSION }, "cwd": folder,
                "last_assistant_message": TEST_TEXT,
            })
        },
        ..HookPayload::USUAL
    },
    answers: Answers::STOPS_ONLY,
    transcripts: Transcripts { folder: None, sessions: &[], formats: &[Format::OpenCode] },
    settings: SettingsFiles {
        user: ".config/opencode",
        variable: Some(("XDG_CONFIG_HOME", "opencode")),
        ..SettingsFiles::new(".opencode", "plugins")
    },
    registration: Registration::Plugin {
        files: &[PluginFile {
            path: "aldis.js",
            mark: "Written by `aldis install opencode`",
            render: |program| plugin_script(include_str!("plugins/opencode.js"), program),
        }],
        events: &["session.idle", "session.status"],
        also: None,
    },
    trust: TrustRules::NONE,
    ..HostSpec::USUAL
};

fn event(fields: &Fields<'_>) -> Event {
    let name = fields.text(&["type"]).unwrap_or_default();
    let properties = fields.inside("properties");
    match &*name {
        "session.idle" => Event::Stop,
        "session.status" if text(&properties.inside("status"), "type") == "idle" => Event::Stop,
        "session.error" => match text(&properties.inside("error"), "name") {
            error if error == "MessageAbortedError" => Event::Interrupt,
            error => Event::StopFailure { error: error.into_owned() },
        },
        _ => Event::Other(name),
    }
}

fn text<'a>(fields: &Fields<'a>, name: &'static str) -> Cow<'a, str> {
    fields.cow(&[name]).unwrap_or_default()
}
