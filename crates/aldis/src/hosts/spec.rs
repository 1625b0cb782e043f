//! What can differ between hosts: the questions that the rest of the program asks of one.
//!
//! Most hosts copied the form of the first, so each part has a `USUAL` value and a host's file says
//! only what is different there.

use std::path::{Path, PathBuf};

use aldis_transcript::Format;
use jsonc_parser::cst::CstInputValue;
use jsonc_parser::json;
use serde_json::{Value, json as value};

use super::Env;
pub(crate) use super::headless::{Headless, HostOption};
use super::hook::call::{CutShort, Event};
use super::hook::fields::Fields;
use super::install::hooks_file::CurrentEntry;
use super::install::invocation::Invocation;
use super::install::locations::{Locations, Scope};
use super::install::server::ServerPart;
use super::install::trust::Trust;
pub(crate) use crate::settings::prompt_by::PromptBy;

/// Every fact about one host.
#[derive(Debug)]
pub(crate) struct HostSpec {
    /// The stable name: in options, in registered commands, in the store.
    pub(crate) name: &'static str,
    /// A second name that is understood.
    pub(crate) alias: Option<&'static str>,
    /// The name people use.
    pub(crate) title: &'static str,
    /// The programs by which it is started.
    pub(crate) programs: &'static [&'static str],
    /// How to get the program.
    pub(crate) get_program: &'static str,
    /// How it runs without a person.
    pub(crate) headless: Option<Headless>,
    /// The variables in which it names the session to what it starts.
    pub(crate) session_variables: &'static [&'static str],
    /// The variable by which it says that a person is there, and its value.
    pub(crate) attended: Option<(&'static str, &'static str)>,
    /// The variables in which it names the project, the first that is set.
    pub(crate) project_variables: &'static [&'static str],
    /// What it tells an MCP server about a call.
    pub(crate) calls: CallMembers,
    /// What its hooks are told.
    pub(crate) payload: HookPayload,
    /// What its hooks can answer.
    pub(crate) answers: Answers,
    /// How often it lets a hook block in a row before it stops asking. It does so silently.
    pub(crate) block_cap: CapRule,
    /// Where its transcripts lie and what is in them.
    pub(crate) transcripts: Transcripts,
    /// Where its settings are.
    pub(crate) settings: SettingsFiles,
    /// How a hook is registered with it.
    pub(crate) registration: Registration,
    /// Errors that end a turn and pass by themselves, in its own words.
    pub(crate) passing_errors: &'static [&'static str],
    /// What gives a message to a session that is open, where a hook cannot wait beside it.
    pub(crate) queue: Option<SessionQueue>,
    /// What names and allows our MCP server in the files of a scope.
    pub(crate) server: fn(&Locations, Scope) -> Vec<(PathBuf, ServerPart)>,
    /// With which of its flags it ignores us.
    pub(crate) ignored_with: Option<&'static str>,
    /// What is left to do by hand for the server.
    pub(crate) server_note: Option<&'static str>,
    /// Whether it runs what is registered.
    pub(crate) trust: TrustRules,
    /// Whether others copied its form and read its settings: a payload without marks is its own.
    pub(crate) is_original: bool,
    /// What it does with the hooks in the original's settings.
    pub(crate) imports: Imports,
}

impl HostSpec {
    /// What holds for a host that says nothing else; the names are its own.
    pub(crate) const USUAL: Self = Self {
        name: "",
        alias: None,
        title: "",
        programs: &[],
        get_program: "",
        headless: None,
        session_variables: &[],
        attended: None,
        project_variables: &[],
        calls: CallMembers { id: "", turn: "", variable: "" },
        payload: HookPayload::USUAL,
        answers: Answers::USUAL,
        block_cap: CapRule::NONE,
        transcripts: Transcripts { folder: None, sessions: &[], formats: &[] },
        settings: SettingsFiles::new("", ""),
        registration: Registration::Entries(Layout::GROUPED),
        passing_errors: &[],
        queue: None,
        server: |_, _| Vec::new(),
        ignored_with: None,
        server_note: None,
        trust: TrustRules::FOLDER,
        is_original: false,
        imports: Imports::Nothing,
    };

    /// Returns whether a person is there, as far as the host says.
    pub(crate) fn is_attended(&self, env: &Env) -> bool {
        self.attended.is_some_and(|(name, value)| env.text(name) == Some(value))
    }
}

/// Members of the `_meta` of a request by which a tool is called, and what its shell knows of a call;
/// empty where it has none.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CallMembers {
    /// Its id of the call, as its transcript has it.
    pub(crate) id: &'static str,
    /// An object with `thread_id`, `session_id` and `thread_source`.
    pub(crate) turn: &'static str,
    /// The variable in which its shell has the id of the call that it runs.
    pub(crate) variable: &'static str,
}

/// The members of a payload.
#[derive(Clone, Copy, Debug)]
pub(crate) struct HookPayload {
    /// Members that only this host sends.
    pub(crate) members: &'static [&'static str],
    /// Returns what happened.
    pub(crate) event: fn(&Fields<'_>) -> Event,
    /// Returns the session.
    pub(crate) session: fn(&Fields<'_>) -> Option<String>,
    /// Returns the agent's last message.
    pub(crate) final_text: fn(&Fields<'_>) -> Option<String>,
    /// Returns where the agent works.
    pub(crate) cwd: fn(&Fields<'_>, &Env) -> Option<PathBuf>,
    /// Returns why a turn did not end by itself.
    pub(crate) cut_short: fn(&Fields<'_>) -> Option<CutShort>,
    /// Whether a turn keeps its id when a hook made the agent continue.
    pub(crate) turn_survives_block: bool,
    /// Whether the payload has a mark that no other host leaves.
    pub(crate) is_marked: fn(&Fields<'_>) -> bool,
    /// As `is_marked`, for a mark that counts only where the transcript's path names nobody.
    pub(crate) is_faintly_marked: fn(&Fields<'_>) -> bool,
    /// Which payloads have such marks.
    pub(crate) marked: Marked,
    /// Builds a stop for a directory and a session, with no more than is needed.
    pub(crate) test_stop: fn(&str) -> Value,
}

/// Which payloads of a host are always recognised.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Marked {
    /// All.
    Always,
    /// Those of stops.
    AtStops,
    /// Not all: older versions send none.
    Sometimes,
}

impl HookPayload {
    /// As most hosts do it.
    pub(crate) const USUAL: Self = Self {
        members: &[],
        event: |fields| {
            let name = fields.text(EVENT_NAMES).unwrap_or_default();
            named_event(name, fields)
        },
        session: |fields| fields.text(&["session_id", "sessionId"]),
        final_text: |fields| fields.text(&["last_assistant_message", "lastAssistantMessage"]),
        cwd: |fields, _| path(fields, &["cwd"]),
        cut_short: |_| None,
        turn_survives_block: true,
        is_marked: |_| false,
        is_faintly_marked: |_| false,
        marked: Marked::Sometimes,
        test_stop: |folder| test_stop(folder, value!({ "last_assistant_message": TEST_TEXT })),
    };
}

/// The answers to a host, each one JSON object; `None` where there is none at this event.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Answers {
    /// Lets things take their course; `None` is an empty answer.
    pub(crate) allow: fn(&Event) -> Option<Value>,
    /// Makes the agent continue.
    pub(crate) block: fn(&Event, &str) -> Option<Value>,
    /// Tells the agent something.
    pub(crate) context: fn(&Event, &str) -> Option<Value>,
    /// Lets things take their course and tells the user something.
    pub(crate) notice: fn(&Event, &str) -> Option<Value>,
}

impl Answers {
    /// As most hosts understand them.
    pub(crate) const USUAL: Self = Self {
        allow: |_| None,
        block: |event, reason| {
            matches!(event, Event::Stop | Event::SubagentStop)
                .then(|| value!({"decision": "block", "reason": reason}))
        },
        context: |event, text| match event {
            Event::Prompt { .. } => Some(additional_context("UserPromptSubmit", text)),
            Event::SessionStart { .. } => Some(additional_context("SessionStart", text)),
            _ => None,
        },
        notice: |_, _| None,
    };

    /// For hosts that let only the main agent be blocked, and read no context.
    pub(crate) const STOPS_ONLY: Self = Self {
        block: |event, reason| {
            (*event == Event::Stop).then(|| value!({"decision": "block", "reason": reason}))
        },
        context: |_, _| None,
        ..Self::USUAL
    };
}

/// How often a host lets its hooks block.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CapRule {
    /// Blocks in a row; `None` if the host does not count or is not known to.
    pub(crate) limit: Option<u32>,
    /// The variable that changes it; 0 is no limit.
    pub(crate) variable: Option<&'static str>,
    /// The highest that the variable can ask for.
    pub(crate) highest: u32,
    /// Whether a tool call starts the count again.
    pub(crate) resets_on_tool_use: bool,
}

impl CapRule {
    /// No limit.
    pub(crate) const NONE: Self =
        Self { limit: None, variable: None, highest: u32::MAX, resets_on_tool_use: false };

    /// A limit that nothing changes.
    pub(crate) const fn fixed(limit: u32) -> Self {
        Self { limit: Some(limit), ..Self::NONE }
    }
}

/// The transcripts of a host.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Transcripts {
    /// The folder that is in the path of every one.
    pub(crate) folder: Option<&'static str>,
    /// The folders with sessions, below the user's folder of the host.
    pub(crate) sessions: &'static [&'static str],
    /// Their forms, the usual one first; none if unknown.
    pub(crate) formats: &'static [Format],
}

/// Where a host keeps its settings.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SettingsFiles {
    /// The folder in a project.
    pub(crate) project: &'static str,
    /// The folder in the user's home.
    pub(crate) user: &'static str,
    /// The variable that names the user's folder instead, and what is below what it names.
    pub(crate) variable: Option<(&'static str, &'static str)>,
    /// The file in these folders, or the folder for plugins.
    pub(crate) file: &'static str,
    /// The file for one person in one project, where there is one.
    pub(crate) local_file: Option<&'static str>,
}

impl SettingsFiles {
    /// A folder of the same name in projects and in the home.
    pub(crate) const fn new(folder: &'static str, file: &'static str) -> Self {
        Self { project: folder, user: folder, variable: None, file, local_file: None }
    }
}

/// What a registration consists of.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Registration {
    /// Entries in a JSON file that others write too.
    Entries(Layout),
    /// A plugin: files of our own.
    Plugin {
        /// The files.
        files: &'static [PluginFile],
        /// The events it listens to, in the host's spelling.
        events: &'static [&'static str],
        /// What the user has to do besides.
        also: Option<&'static str>,
    },
}

impl Registration {
    /// Returns the events that are listened to, in the host's spelling.
    pub(crate) fn events(&self) -> &'static [&'static str] {
        match self {
            Self::Entries(layout) => layout.events,
            Self::Plugin { events, .. } => events,
        }
    }
}

/// How a host writes hooks.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Layout {
    /// The member of the file that has the events.
    pub(crate) root: &'static str,
    /// Whether handlers stand in groups.
    pub(crate) grouped: bool,
    /// Whether the file starts with `"version": 1`.
    pub(crate) versioned: bool,
    /// The events to listen to, in the host's spelling.
    pub(crate) events: &'static [&'static str],
    /// Builds the handler for an event.
    pub(crate) handler: fn(Invocation, &str) -> CstInputValue,
    /// Builds the handler that waits beside a session that stopped, where the host can be woken.
    pub(crate) waker: Option<fn(Invocation) -> CstInputValue>,
    /// After which events it waits.
    pub(crate) wakes_after: &'static [&'static str],
}

/// A host's own queue of messages for its sessions.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SessionQueue {
    /// The command, with `{session}` and `{text}`.
    pub(crate) command: &'static [&'static str],
    /// Whether a person has the session of this transcript open, by its first line: a session that
    /// nobody has open would read the message only when it is opened again.
    pub(crate) is_attended: fn(&str) -> bool,
}

impl Layout {
    /// The usual events, and the one for a turn that an error ended.
    pub(crate) const EVENTS_WITH_FAILURE: &[&str] =
        &["Stop", "SubagentStop", "StopFailure", "UserPromptSubmit", "SessionStart", "SessionEnd"];

    /// Groups of handlers with a line for a shell.
    pub(crate) const GROUPED: Self = Self {
        root: "hooks",
        grouped: true,
        versioned: false,
        events: &["Stop", "SubagentStop", "UserPromptSubmit", "SessionStart", "SessionEnd"],
        handler: |invocation, _| shell_handler(&invocation, TIMEOUT_SECONDS),
        waker: None,
        wakes_after: &[],
    };
}

/// A file that `aldis install` writes whole.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PluginFile {
    /// Where, below the place for plugins.
    pub(crate) path: &'static str,
    /// By what we know it again, whatever version wrote it.
    pub(crate) mark: &'static str,
    /// Its text with the program to call put in.
    pub(crate) render: fn(&str) -> String,
}

/// Whether a host runs a hook that is registered.
#[derive(Clone, Copy, Debug)]
pub(crate) struct TrustRules {
    /// Settings that turn hooks off: where, and the value that does.
    pub(crate) switches: &'static [(&'static [&'static str], bool)],
    /// Settings files of whoever manages the computer.
    pub(crate) managed: &'static [&'static str],
    /// Looks for what the host wants to be told before it runs a registration in a file.
    pub(crate) examine: fn(&Locations, Scope, &Path, &[CurrentEntry]) -> Trust,
    /// Says why the host would not read a file that is valid here.
    pub(crate) unreadable: fn(&[u8]) -> Option<String>,
    /// The setting that lists plugins, ours among them.
    pub(crate) plugins: Option<&'static str>,
    /// Whether identical handlers of several files run once.
    pub(crate) merges_identical: bool,
}

impl TrustRules {
    /// Asks for nothing.
    pub(crate) const NONE: Self = Self {
        switches: &[],
        managed: &[],
        examine: |_, _, _, _| Trust::Yes("no approval is needed".to_owned()),
        unreadable: |_| None,
        plugins: None,
        merges_identical: false,
    };

    /// Asks about folders that bring hooks along, and has one switch for all hooks.
    pub(crate) const FOLDER: Self = Self {
        switches: &[(&["disableAllHooks"], true)],
        examine: |_, scope, _, _| match scope {
            Scope::Project => Trust::Asks("you may be asked once to trust this folder".to_owned()),
            Scope::Local | Scope::User => Trust::Yes("no approval is needed".to_owned()),
        },
        ..Self::NONE
    };
}

/// What a host does with the hooks that it finds in the original's settings.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Imports {
    /// Nothing.
    Nothing,
    /// Runs them.
    Runs,
    /// Runs them, without its own limit, and translates their answers.
    Translates,
}

/// The events as the original names them.
pub(crate) fn named_event(name: String, fields: &Fields<'_>) -> Event {
    match &*name {
        "Stop" => Event::Stop,
        "SubagentStop" => Event::SubagentStop,
        "StopFailure" => Event::StopFailure {
            error: fields.text(&["error"]).unwrap_or_default(),
            said: fields.text(&["last_assistant_message"]),
        },
        "UserPromptSubmit" => prompt(fields),
        "SessionStart" => Event::SessionStart { source: fields.word(&["source"]) },
        "SessionEnd" => Event::SessionEnd { reason: fields.word(&["reason"]) },
        "Interrupt" => Event::Interrupt,
        _ => Event::Other(name),
    }
}

/// A prompt that is about to be sent.
pub(crate) fn prompt(fields: &Fields<'_>) -> Event {
    let text = fields.text(&["prompt"]).unwrap_or_default();
    Event::Prompt { text, source: fields.word(&["source"]) }
}

/// A path that is not empty.
pub(crate) fn path(fields: &Fields<'_>, names: &[&'static str]) -> Option<PathBuf> {
    fields.cow(names).filter(|path| !path.is_empty()).map(|path| path.into_owned().into())
}

/// Context in the original's form.
pub(crate) fn additional_context(event: &str, text: &str) -> Value {
    value!({"hookSpecificOutput": {"hookEventName": event, "additionalContext": text}})
}

/// A message to the user at a stop, in the original's form.
pub(crate) fn system_message(event: &Event, text: &str) -> Option<Value> {
    (*event == Event::Stop).then(|| value!({ "systemMessage": text }))
}

/// A handler with a line for a shell.
pub(crate) fn shell_handler(invocation: &Invocation, timeout: u64) -> CstInputValue {
    let line = invocation.line();
    json!({ "type": "command", "command": line, "timeout": timeout })
}

/// A stop in the original's form, with these members besides or instead.
pub(crate) fn test_stop(folder: &str, members: Value) -> Value {
    let mut payload = value!({
        "session_id": TEST_SESSION, "cwd": folder, "hook_event_name": "Stop",
        "stop_hook_active": false,
    });
    if let (Some(payload), Value::Object(members)) = (payload.as_object_mut(), members) {
        payload.extend(members);
    }
    payload
}

/// Completes the script of a plugin: the function that calls the hook, with the program to call.
pub(crate) fn plugin_script(script: &str, program: &str) -> String {
    let program = format!("{PROGRAM_LINE}{};", Value::from(program));
    let ask = include_str!("plugins/ask.js").replacen(ASK_PROGRAM, &program, 1);
    script.replacen(ASK_LINE, &ask, 1)
}

/// Under which names hosts send the name of the event.
pub(crate) const EVENT_NAMES: &[&str] = &["hook_event_name", "hookEventName"];
/// How long a host waits for a hook: it answers in milliseconds, and one that does not must not
/// hold the session.
pub(crate) const TIMEOUT_SECONDS: u64 = 10;
/// How long a host lets the handler wait that wakes a session: half a day. It ends itself earlier,
/// as the settings say.
pub(crate) const WAKE_SECONDS_MAX: u64 = 12 * 60 * 60;
/// The line of a plugin's script that names the program.
pub(crate) const PROGRAM_LINE: &str = "const PROGRAM = ";
/// That line as it is in the source.
const ASK_PROGRAM: &str = "const PROGRAM = \"aldis\";";
/// The line of a plugin's script where that function belongs.
const ASK_LINE: &str = "// ask.js\n";
/// The session and the last message of a test stop.
pub(crate) const TEST_SESSION: &str = "aldis-doctor";
pub(crate) const TEST_TEXT: &str = "Hello.";
