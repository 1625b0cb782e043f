//! OpenClaw has no command hooks: a plugin hands us its events and returns our answer.

use std::path::Path;

use aldis_transcript::Format;
use serde_json::json;

use super::hook::call::Event;
use super::hook::fields::Fields;
use super::install::edit::find;
use super::install::hooks_file::CurrentEntry;
use super::install::locations::{Locations, Scope};
use super::install::trust::{Trust, json_file};
use super::spec::*;

/// How often its runner lets an answer be revised.
const REVISIONS: u32 = 3;

pub(super) static SPEC: HostSpec = HostSpec {
    name: "openclaw",
    title: "OpenClaw",
    programs: &["openclaw"],
    get_program: "npm install -g openclaw",
    payload: HookPayload {
        members: &["action", "messages", "runId", "sessionKey", "success", "workspaceDir"],
        event,
        session: |fields| fields.text(&["sessionId", "sessionKey"]),
        cwd: |fields, _| path(fields, &["cwd", "workspaceDir"]),
        is_marked: |fields| {
            !fields.has_any(EVENT_NAMES) && fields.has_any(&["runId", "sessionKey"])
        },
        marked: Marked::Always,
        test_stop: |folder| {
            json!({
                "runId": "1", "sessionId": TEST_SESSION, "cwd": folder, "stopHookActive": false,
                "lastAssistantMessage": TEST_TEXT,
            })
        },
        ..HookPayload::USUAL
    },
    answers: Answers {
        allow: |event| (*event == Event::Stop).then(|| json!({"action": "continue"})),
        block: |event, reason| {
            let retry = json!({
                "instruction": reason,
                "idempotencyKey": "aldis:gate",
                "maxAttempts": REVISIONS,
            });
            (*event == Event::Stop)
                .then(|| json!({"action": "revise", "reason": reason, "retry": retry}))
        },
        ..Answers::STOPS_ONLY
    },
    block_cap: CapRule::fixed(REVISIONS),
    // Its sessions have Droid's envelope.
    transcripts: Transcripts {
        folder: Some(".openclaw"),
        sessions: &["agents"],
        formats: &[Format::Droid],
    },
    settings: SettingsFiles {
        variable: Some(("OPENCLAW_STATE_DIR", "")),
        ..SettingsFiles::new(".openclaw", "extensions")
    },
    registration: Registration::Plugin {
        files: &[
            PluginFile {
                path: "aldis/package.json",
                mark: "\"name\": \"aldis-openclaw\"",
                render: |_| include_str!("plugins/openclaw.package.json").to_owned(),
            },
            PluginFile {
                path: "aldis/openclaw.plugin.json",
                mark: "\"id\": \"aldis\"",
                render: |_| include_str!("plugins/openclaw.plugin.json").to_owned(),
            },
            PluginFile {
                path: "aldis/index.js",
                mark: "Written by `aldis install openclaw`",
                render: |program| plugin_script(include_str!("plugins/openclaw.js"), program),
            },
        ],
        events: &["before_agent_finalize"],
        also: Some(
            "allow the plugin to see conversations: openclaw config set \
             plugins.entries.aldis.hooks.allowConversationAccess true",
        ),
    },
    trust: TrustRules { examine: trust, ..TrustRules::NONE },
    ..HostSpec::USUAL
};

fn event(fields: &Fields<'_>) -> Event {
    if fields.has_any(&["stopHookActive", "lastAssistantMessage"]) {
        return Event::Stop;
    }
    if fields.has("success") && fields.has("messages") {
        return Event::Other("agent_end".to_owned());
    }
    let kind = fields.text(&["type"]).unwrap_or_default();
    let action = fields.text(&["action"]).unwrap_or_default();
    Event::Other(if action.is_empty() { kind } else { format!("{kind}:{action}") })
}

/// A plugin gets to see what was said only if it is allowed to.
fn trust(locations: &Locations, _: Scope, _: &Path, _: &[CurrentEntry]) -> Trust {
    let config = locations.user_folder(&SPEC.settings).map(|folder| folder.join("openclaw.json"));
    let root = config.as_ref().ok().and_then(|file| json_file(file));
    if root.is_none() && config.is_ok_and(|file| file.exists()) {
        return Trust::Asks(
            "`openclaw.json` cannot be read here; the plugin needs \
             `plugins.entries.aldis.hooks.allowConversationAccess`"
                .to_owned(),
        );
    }
    let entry = root.as_ref().and_then(|root| find(root, &["plugins", "entries", "aldis"]));
    let at = |path: &[&str]| entry.and_then(|entry| find(entry, path)?.as_bool());
    if at(&["enabled"]) == Some(false) {
        return Trust::No {
            why: "the plugin is switched off in `openclaw.json`".to_owned(),
            fix: "openclaw plugins enable aldis".to_owned(),
        };
    }
    if at(&["hooks", "allowConversationAccess"]) == Some(true) {
        return Trust::Yes("the plugin may see conversations".to_owned());
    }
    Trust::No {
        why: "the plugin may not see conversations".to_owned(),
        fix: "openclaw config set plugins.entries.aldis.hooks.allowConversationAccess true"
            .to_owned(),
    }
}
