//! Goose: a payload of three members, and an answer of `{}` is no decision, so nothing is printed.

use aldis_transcript::Format;
use serde_json::json;

use super::install::hooks_file;
use super::spec::*;

pub(super) static SPEC: HostSpec = HostSpec {
    name: "goose",
    title: "Goose",
    programs: &["goose"],
    get_program: "see block.github.io/goose",
    headless: Some(Headless {
        command: &["goose", "run", "--output-format", "stream-json"],
        edits: &[],
        everything: &[],
        edit_tools: &[],
        allow: HostOption::Instead(
            "`goose configure` decides what Goose may do; in its mode `auto` everything",
        ),
        calls: &[],
        model: HostOption::Named("--model"),
        resume: None,
        last: &["-i", "-"],
        prompt_by: PromptBy::Stdin,
        output: Format::Goose,
        counts_sessions: false,
    }),
    payload: HookPayload {
        members: &["event"],
        event: |fields| {
            let name = fields.text(&["event", "hook_event_name"]).unwrap_or_default();
            named_event(name, fields)
        },
        is_marked: |fields| !fields.has_any(EVENT_NAMES) && fields.has("event"),
        marked: Marked::Always,
        test_stop: |_| json!({ "event": "Stop", "session_id": TEST_SESSION, "last_assistant_message": TEST_TEXT }),
        ..HookPayload::USUAL
    },
    answers: Answers::STOPS_ONLY,
    // The default is not documented, so only a limit that was set is known.
    block_cap: CapRule { variable: Some("GOOSE_STOP_HOOK_BLOCK_CAP"), ..CapRule::NONE },
    transcripts: Transcripts { folder: None, sessions: &[], formats: &[] },
    settings: SettingsFiles::new(".agents", "plugins"),
    registration: Registration::Plugin {
        files: &[
            PluginFile {
                path: "aldis/plugin.json",
                mark: "\"name\": \"aldis\"",
                render: |_| {
                    let version = env!("CARGO_PKG_VERSION");
                    format!(
                        "{{\n  \"name\": \"aldis\",\n  \"version\": \"{version}\",\n  \
                         \"description\": \"Calls aldis when an agent stops\"\n}}\n"
                    )
                },
            },
            PluginFile {
                path: "aldis/hooks/hooks.json",
                mark: "hook goose",
                render: |program| hooks_file::new_file(SPEC.name, &HOOKS, program),
            },
        ],
        events: HOOKS.events,
        also: None,
    },
    trust: TrustRules::NONE,
    ..HostSpec::USUAL
};

/// No matcher: `*` would silence the rule.
const HOOKS: Layout = Layout {
    events: &["Stop", "UserPromptSubmit", "SessionStart", "SessionEnd"],
    ..Layout::GROUPED
};
