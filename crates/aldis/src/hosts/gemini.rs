//! Gemini CLI. Where standard output is empty it reads standard error, so it always gets an answer.

use std::path::Path;

use aldis_transcript::Format;
use jsonc_parser::json;
use serde_json::{Value, json as value};

use super::hook::call::Event;
use super::install::hooks_file::CurrentEntry;
use super::install::locations::{Locations, Scope, path_names};
use super::install::server::{ServerPart, trusted_server};
use super::install::trust::{Trust, json_file};
use super::spec::*;

pub(super) static SPEC: HostSpec = HostSpec {
    name: "gemini",
    title: "Gemini CLI",
    programs: &["gemini"],
    get_program: "npm install -g @google/gemini-cli",
    headless: Some(Headless {
        command: &["gemini", "--output-format", "stream-json", "--skip-trust"],
        edits: &["--approval-mode", "auto_edit"],
        everything: &["--approval-mode", "yolo"],
        edit_tools: &["edit", "replace", "write_file"],
        allow: HostOption::Named("--allowed-tools"),
        calls: &[],
        model: HostOption::Named("--model"),
        resume: Some(&["--resume", "{session}"]),
        last: &[],
        prompt_by: PromptBy::Stdin,
        output: Format::GeminiStream,
        counts_sessions: false,
    }),
    session_variables: &["GEMINI_SESSION_ID"],
    project_variables: &["GEMINI_PROJECT_DIR", "CLAUDE_PROJECT_DIR"],
    payload: HookPayload {
        members: &["prompt_response"],
        event: |fields| {
            let name = fields.text(EVENT_NAMES).unwrap_or_default();
            match &*name {
                "AfterAgent" => Event::Stop,
                "BeforeAgent" => prompt(fields),
                _ => named_event(name, fields),
            }
        },
        final_text: |fields| {
            let text = fields.text(&["prompt_response"]);
            text.filter(|text| text.trim() != "[no response text]")
        },
        is_marked: |fields| {
            let event = fields.cow(EVENT_NAMES).unwrap_or_default();
            matches!(&*event, "AfterAgent" | "BeforeAgent") || fields.has("prompt_response")
        },
        marked: Marked::AtStops,
        test_stop: |folder| {
            let members = value!({
                "hook_event_name": "AfterAgent", "prompt": "hello", "prompt_response": TEST_TEXT,
                "timestamp": "2026-01-01T00:00:00.000Z",
            });
            test_stop(folder, members)
        },
        ..HookPayload::USUAL
    },
    answers: Answers {
        allow: |event| {
            Some(if *event == Event::Stop { value!({"decision": "allow"}) } else { value!({}) })
        },
        block: |event, reason| {
            (*event == Event::Stop).then(|| value!({"decision": "deny", "reason": reason}))
        },
        context: |event, text| match event {
            Event::Prompt { .. } => Some(additional_context("BeforeAgent", text)),
            Event::SessionStart { .. } => Some(additional_context("SessionStart", text)),
            _ => None,
        },
        notice: |event, text| {
            (*event == Event::Stop).then(|| value!({"decision": "allow", "systemMessage": text}))
        },
    },
    transcripts: Transcripts {
        folder: Some(".gemini"),
        sessions: &["tmp"],
        formats: &[Format::GeminiSession],
    },
    settings: SettingsFiles {
        variable: Some(("GEMINI_CLI_HOME", ".gemini")),
        ..SettingsFiles::new(".gemini", "settings.json")
    },
    registration: Registration::Entries(Layout {
        events: &["AfterAgent", "BeforeAgent", "SessionStart", "SessionEnd"],
        // Times are in milliseconds, and hooks are shown by name.
        handler: |invocation, _| {
            let (line, timeout) = (invocation.line(), TIMEOUT_SECONDS * 1000);
            json!({ "name": "aldis", "type": "command", "command": line, "timeout": timeout })
        },
        ..Layout::GROUPED
    }),
    server: |locations, scope| {
        locations.beside_hooks(&SPEC, scope, None, ServerPart::listed(trusted_server))
    },
    trust: TrustRules {
        switches: &[(&["hooksConfig", "enabled"], false), (&["hooks", "enabled"], false)],
        examine: trust,
        ..TrustRules::NONE
    },
    ..HostSpec::USUAL
};

/// It ignores the hooks of folders it does not trust; it announces new ones and runs them.
fn trust(locations: &Locations, scope: Scope, _: &Path, _: &[CurrentEntry]) -> Trust {
    if scope != Scope::Project {
        return Trust::Yes("no approval is needed".to_owned());
    }
    let Ok(home) = locations.user_folder(&SPEC.settings) else {
        return Trust::Asks("the folder of Gemini CLI is not known".to_owned());
    };
    let root = locations.project(&SPEC.settings);
    let folders = json_file(&home.join("trustedFolders.json"));
    let folders = folders.as_ref().and_then(Value::as_object);
    let says = |word: &str, folder: &dyn Fn(&Path) -> bool| {
        let mut folders = folders.into_iter().flatten();
        folders.any(|(path, value)| value == word && folder(Path::new(path)))
    };
    let roots = path_names(&root);
    let below = |folder: &Path| roots.iter().any(|root| Path::new(root).starts_with(folder));
    if says("DO_NOT_TRUST", &|folder| roots.iter().any(|root| Path::new(root) == folder)) {
        let why = format!("Gemini CLI was told not to trust `{}`", root.display());
        let fix = "start `gemini` here and type /permissions to trust the folder".to_owned();
        return Trust::No { why, fix };
    }
    let trusted = says("TRUST_FOLDER", &below)
        || says("TRUST_PARENT", &|folder| folder.parent().is_some_and(below));
    let announced = json_file(&home.join("trusted_hooks.json")).is_some_and(|hooks| {
        roots.iter().any(|root| {
            let keys = hooks.get(root).and_then(Value::as_array);
            let mut keys = keys.into_iter().flatten().filter_map(Value::as_str);
            keys.any(|key| key.starts_with("aldis:"))
        })
    });
    match (trusted, announced) {
        (_, true) => Trust::Yes("known to Gemini CLI".to_owned()),
        (true, false) => Trust::Asks("Gemini CLI announces the hook once and runs it".to_owned()),
        (false, false) => Trust::Asks("Gemini CLI may ask once to trust this folder".to_owned()),
    }
}
