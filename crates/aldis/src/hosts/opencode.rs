//! OpenCode has no command hooks: a plugin hands us the events of its bus and sends our reason as the
//! next prompt.

use std::borrow::Cow;
use std::path::PathBuf;

use aldis_transcript::Format;
use jsonc_parser::cst::CstInputValue;
use jsonc_parser::json;
use serde_json::json as value;

use super::hook::call::Event;
use super::hook::fields::Fields;
use super::install::invocation::Invocation;
use super::install::locations::Scope;
use super::install::server::ServerPart;
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
            value!({
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
    server: |locations, scope| {
        let folder = match scope {
            Scope::Project => Some(locations.project(&SPEC.settings)),
            Scope::User => locations.user_folder(&SPEC.settings).ok(),
            Scope::Local => None,
        };
        let part = ServerPart::Member { path: vec!["mcp".to_owned()], entry: server };
        // It reads both, and people have one.
        let file = |folder: PathBuf| {
            let commented = folder.join("opencode.jsonc");
            if commented.exists() { commented } else { folder.join("opencode.json") }
        };
        folder.map(|folder| (file(folder), part)).into_iter().collect()
    },
    trust: TrustRules::NONE,
    ..HostSpec::USUAL
};

fn server(Invocation { program, args }: Invocation) -> CstInputValue {
    let words = [vec![program], args].concat();
    json!({ "type": "local", "command": words, "enabled": true })
}

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
