//! Kilo Code: it came of OpenCode, and its program takes the same plugins, options and settings under
//! names of its own.

use aldis_transcript::Format;

use super::opencode;
use super::spec::*;

pub(super) static SPEC: HostSpec = HostSpec {
    name: "kilo",
    title: "Kilo Code",
    programs: &["kilo"],
    get_program: "npm install -g @kilocode/cli",
    headless: Some(Headless {
        calls: &[],
        command: &["kilo", "run", "--format", "json"],
        edits: &[],
        everything: &["--auto"],
        edit_tools: &[],
        allow: HostOption::Instead(
            "`permission` in kilo.json allows single tools, --yolo all that are not denied there",
        ),
        model: HostOption::Named("--model"),
        resume: Some(&["--session", "{session}"]),
        last: &[],
        prompt_by: PromptBy::Argument,
        output: Format::OpenCode,
        counts_sessions: false,
    }),
    payload: HookPayload {
        is_marked: |fields| opencode::is_bus_event(fields, SPEC.name),
        test_stop: |folder| opencode::test_event(SPEC.name, folder),
        ..opencode::PAYLOAD
    },
    answers: Answers::STOPS_ONLY,
    settings: SettingsFiles {
        user: ".config/kilo",
        variable: Some(("XDG_CONFIG_HOME", "kilo")),
        ..SettingsFiles::new(".kilo", "plugins")
    },
    registration: Registration::Plugin {
        files: &[PluginFile {
            path: "aldis.js",
            mark: "Written by `aldis install kilo`",
            render: |program| opencode::script(SPEC.name, program),
        }],
        events: opencode::EVENTS,
        also: None,
    },
    server: |locations, scope| opencode::server_files(&SPEC, "kilo", locations, scope),
    trust: TrustRules::NONE,
    ..HostSpec::USUAL
};
