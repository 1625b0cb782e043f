//! Codex CLI. It discards an answer with a member it does not know, or with a blank reason, and
//! runs a hook only if the project is trusted and the hash of the very entry was approved.

use std::fs;
use std::path::Path;

use aldis_transcript::Format;
use serde_json::{Map, Value, json};
use sha2::{Digest as _, Sha256};

use super::install::hooks_file::CurrentEntry;
use super::install::invocation::Invocation;
use super::install::locations::{Locations, Scope, path_names};
use super::install::server::ServerPart;
use super::install::trust::Trust;
use super::spec::*;

pub(super) static SPEC: HostSpec = HostSpec {
    name: "codex",
    title: "Codex",
    programs: &["codex"],
    get_program: "npm install -g @openai/codex",
    headless: Some(Headless {
        command: &["codex", "exec", "--json", "--skip-git-repo-check"],
        edits: &["--sandbox", "workspace-write"],
        everything: &["--dangerously-bypass-approvals-and-sandbox"],
        edit_tools: &[],
        allow: HostOption::Instead(
            "Codex has a sandbox: `[sandbox_workspace_write]` in its config.toml opens it in part, --yolo lifts it",
        ),
        calls: &[],
        model: HostOption::Named("--model"),
        resume: Some(&["resume", "{session}"]),
        last: &["-"],
        prompt_by: PromptBy::Stdin,
        output: Format::CodexExec,
        counts_sessions: true,
    }),
    session_variables: &["CODEX_THREAD_ID", "CODEX_SESSION_ID"],
    calls: CallMembers {
        id: "callId",
        turn: "x-codex-turn-metadata",
        variable: "CODEX_TOOL_CALL_ID",
    },
    payload: HookPayload {
        is_marked: |fields| fields.has("turn_id") && fields.has("model"),
        marked: Marked::AtStops,
        test_stop: |folder| {
            let members = json!({
                "last_assistant_message": TEST_TEXT, "model": "none",
                "permission_mode": "default", "transcript_path": null, "turn_id": "1",
            });
            test_stop(folder, members)
        },
        ..HookPayload::USUAL
    },
    answers: Answers { notice: system_message, ..Answers::USUAL },
    transcripts: Transcripts {
        folder: Some(".codex"),
        sessions: &["sessions", "archived_sessions"],
        formats: &[Format::CodexRollout],
    },
    settings: SettingsFiles {
        variable: Some(("CODEX_HOME", "")),
        ..SettingsFiles::new(".codex", "hooks.json")
    },
    registration: Registration::Entries(Layout {
        // Every change of an entry has to be approved again: nothing but the command is in it.
        handler: |invocation, event| {
            // A longer time is cut, with a warning at each start.
            let timeout = if event == "SessionEnd" { 3 } else { TIMEOUT_SECONDS };
            shell_handler(&invocation, timeout)
        },
        ..Layout::GROUPED
    }),
    queue: Some(SessionQueue {
        command: &["codex", "queue", "--thread", "{session}", "--message", "{text}"],
        is_attended: |first| {
            let line: Value = serde_json::from_str(first).unwrap_or_default();
            line.pointer("/payload/originator").and_then(Value::as_str) == Some("codex-tui")
        },
    }),
    server: |locations, scope| {
        let folder = match scope {
            Scope::Project => Some(locations.project(&SPEC.settings).join(SPEC.settings.project)),
            Scope::User => locations.user_folder(&SPEC.settings).ok(),
            Scope::Local => None,
        };
        let table = ServerPart::Table { entry: server };
        folder.map(|folder| (folder.join("config.toml"), table)).into_iter().collect()
    },
    trust: TrustRules { examine: trust, unreadable, ..TrustRules::NONE },
    ..HostSpec::USUAL
};

/// It starts servers with an empty environment but for what is named here.
fn server(Invocation { program, args }: &Invocation) -> String {
    let value = |value: Value| value.to_string();
    let variables = ["ALDIS_AGENT", "ALDIS_RUN", "ALDIS_STATE_DIR", "XDG_STATE_HOME"];
    let (program, args) = (value(json!(program)), value(json!(args)));
    format!("command = {program}\nargs = {args}\nenv_vars = {}\n", value(json!(variables)))
}

/// The approvals are in `config.toml`: `trust_level` of a project, and for each handler
/// `hooks.state."FILE:EVENT:GROUP:HANDLER".trusted_hash`.
fn trust(locations: &Locations, scope: Scope, file: &Path, entries: &[CurrentEntry]) -> Trust {
    let Ok(home) = locations.user_folder(&SPEC.settings) else {
        return Trust::Asks("the folder of Codex is not known".to_owned());
    };
    let config = home.join("config.toml");
    let text = fs::read_to_string(&config).unwrap_or_default();
    let Ok(table) = text.parse::<toml::Table>() else {
        let why = format!("`{}` is not valid TOML", locations.shown(&config));
        return Trust::No { why, fix: "correct the file".to_owned() };
    };
    let table = toml::Value::Table(table);
    let at = |path: &[&str]| path.iter().try_fold(&table, |value, name| value.get(name));
    if at(&["features", "hooks"]).and_then(toml::Value::as_bool) == Some(false) {
        let why = format!("`features.hooks` in `{}` turns hooks off", locations.shown(&config));
        return Trust::No { why, fix: "codex features enable hooks".to_owned() };
    }
    let root = locations.project(&SPEC.settings);
    let trusts = |root: &String| {
        at(&["projects", root, "trust_level"]).and_then(toml::Value::as_str) == Some("trusted")
    };
    if scope == Scope::Project && !path_names(&root).iter().any(trusts) {
        let why =
            format!("Codex does not trust `{}`, so it ignores the hooks there", root.display());
        let fix = "start `codex` here and trust the folder when asked".to_owned();
        return Trust::No { why, fix };
    }
    let approved = |entry: &&CurrentEntry| {
        path_names(file).iter().any(|file| {
            let key = format!("{file}:{}:{}:{}", snake(&entry.event), entry.index, entry.inner);
            let state = at(&["hooks", "state", &key]);
            let known = state.and_then(|state| state.get("trusted_hash")?.as_str());
            let enabled = state.and_then(|state| state.get("enabled")?.as_bool());
            enabled != Some(false) && known == Some(&hash(entry))
        })
    };
    let missing = entries.iter().filter(|entry| !approved(entry));
    let missing: Vec<&str> = missing.map(|entry| entry.event.as_str()).collect();
    if missing.is_empty() {
        return Trust::Yes("approved in Codex".to_owned());
    }
    Trust::No {
        why: format!("not approved in Codex: {}", missing.join(", ")),
        fix: "start `codex`, type /hooks, review and trust the entries of aldis".to_owned(),
    }
}

/// The hash by which Codex knows an approved handler: of its meaning, not of its text.
fn hash(entry: &CurrentEntry) -> String {
    let text = |name: &str| entry.handler.get(name).and_then(Value::as_str);
    let brief = matches!(entry.event.as_str(), "SessionEnd" | "Interrupt");
    let timeout = match entry.handler.get("timeout").and_then(Value::as_u64) {
        Some(timeout) if brief => timeout.clamp(1, 3),
        Some(timeout) => timeout.max(1),
        None if brief => 1,
        None => 600,
    };
    // Members must be in alphabetical order; the map may keep the order of insertion.
    let mut handler = Map::new();
    handler.insert("async".into(), (entry.handler.get("async") == Some(&true.into())).into());
    handler.insert("command".into(), text("command").into());
    if let Some(message) = text("statusMessage") {
        handler.insert("statusMessage".into(), message.into());
    }
    handler.insert("timeout".into(), timeout.into());
    handler.insert("type".into(), "command".into());
    let mut identity = Map::new();
    identity.insert("event_name".into(), snake(&entry.event).into());
    identity.insert("hooks".into(), json!([handler]));
    let matched = !matches!(entry.event.as_str(), "Stop" | "UserPromptSubmit" | "SessionEnd");
    if let Some(matcher) = entry.matcher.as_deref().filter(|_| matched) {
        identity.insert("matcher".into(), matcher.into());
    }
    let digest = Sha256::digest(Value::Object(identity).to_string());
    let digits: Vec<String> = digest.iter().map(|byte| format!("{byte:02x}")).collect();
    format!("sha256:{}", digits.concat())
}

/// It reads plain JSON with two members and no others.
fn unreadable(bytes: &[u8]) -> Option<String> {
    match serde_json::from_slice(bytes) {
        Ok(Value::Object(members)) => {
            let known = |name: &String| matches!(name.as_str(), "description" | "hooks");
            let other = members.keys().find(|name| !known(name))?;
            Some(format!("it does not know `{}`", crate::view::display::excerpt(other, 40)))
        }
        Ok(_) => Some("it is not an object".to_owned()),
        Err(error) => Some(format!("line {} is not plain JSON", error.line())),
    }
}

fn snake(event: &str) -> String {
    let mut name = String::new();
    for c in event.chars() {
        if c.is_ascii_uppercase() && !name.is_empty() {
            name.push('_');
        }
        name.push(c.to_ascii_lowercase());
    }
    name
}

#[cfg(test)]
mod tests;
