//! OpenCode has no command hooks: a plugin hands us the events of its bus and sends our reason as the
//! next prompt.

use std::borrow::Cow;
use std::path::PathBuf;

use aldis_transcript::Format;
use jsonc_parser::cst::CstInputValue;
use jsonc_parser::json;
use serde_json::{Value, json as value};

use super::hook::call::Event;
use super::hook::fields::Fields;
use super::install::invocation::Invocation;
use super::install::locations::{Locations, Scope};
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
        calls: &[],
        model: HostOption::Named("--model"),
        resume: Some(&["--session", "{session}"]),
        last: &[],
        prompt_by: PromptBy::Argument,
        output: Format::OpenCode,
        counts_sessions: false,
    }),
    payload: PAYLOAD,
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
            render: |program| script(SPEC.name, program),
        }],
        events: EVENTS,
        also: None,
    },
    server: |locations, scope| server_files(&SPEC, "opencode", locations, scope),
    trust: TrustRules::NONE,
    ..HostSpec::USUAL
};

/// What the plugin tells: an event of the bus as it came, with what it leaves out.
pub(super) const PAYLOAD: HookPayload = HookPayload {
    members: &["client", "part", "properties", "sessionID"],
    event,
    session: |fields| {
        let properties = fields.inside("properties");
        let own = properties.text(&["sessionID"]);
        own.or_else(|| properties.inside("part").text(&["sessionID"]))
    },
    is_marked: |fields| is_bus_event(fields, SPEC.name),
    marked: Marked::Always,
    test_stop: |folder| test_event(SPEC.name, folder),
    ..HookPayload::USUAL
};

/// The events that the plugin listens to.
pub(super) const EVENTS: &[&str] = &["session.idle", "session.status"];

/// Whether a payload is an event of the bus of this program: others came of it, and the plugin says
/// whose it is.
pub(super) fn is_bus_event(fields: &Fields<'_>, host: &str) -> bool {
    let is_event = !fields.has_any(EVENT_NAMES) && fields.has("type") && fields.has("properties");
    // Older plugins do not say it.
    let client = fields.text(&["client"]).unwrap_or_else(|| SPEC.name.to_owned());
    is_event && client == host
}

/// A stop as the plugin tells it.
pub(super) fn test_event(host: &str, folder: &str) -> Value {
    value!({
        "type": "session.idle", "properties": { "sessionID": TEST_SESSION }, "cwd": folder,
        "client": host, "last_assistant_message": TEST_TEXT,
    })
}

/// The plugin of a host.
pub(super) fn script(host: &str, program: &str) -> String {
    let script = include_str!("plugins/opencode.js").replace(SPEC.name, host);
    plugin_script(&script, program)
}

/// Where the server is named: in a file of this name, with or without comments.
pub(super) fn server_files(
    spec: &HostSpec,
    name: &str,
    locations: &Locations,
    scope: Scope,
) -> Vec<(PathBuf, ServerPart)> {
    let folder = match scope {
        Scope::Project => Some(locations.project(&spec.settings)),
        Scope::User => locations.user_folder(&spec.settings).ok(),
        Scope::Local => None,
    };
    let part = ServerPart::Member { path: vec!["mcp".to_owned()], entry: server };
    // It reads both, and people have one.
    let file = |folder: PathBuf| {
        let commented = folder.join(format!("{name}.jsonc"));
        if commented.exists() { commented } else { folder.join(format!("{name}.json")) }
    };
    folder.map(|folder| (file(folder), part)).into_iter().collect()
}

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
            error => Event::StopFailure { error: error.into_owned(), said: None },
        },
        _ => Event::Other(name),
    }
}

fn text<'a>(fields: &Fields<'a>, name: &'static str) -> Cow<'a, str> {
    fields.cow(&[name]).unwrap_or_default()
}
