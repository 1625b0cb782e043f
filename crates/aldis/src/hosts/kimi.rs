//! Kimi Code: its hooks are tables of its own settings, and a stop may be refused once per turn, which
//! is too little to hold a session. It can be run, and its transcripts are read.

use aldis_transcript::Format;

use super::spec::*;

pub(super) static SPEC: HostSpec = HostSpec {
    name: "kimi",
    title: "Kimi Code",
    programs: &["kimi"],
    get_program: "npm install -g @moonshot-ai/kimi-code",
    headless: Some(Headless {
        // Without a person it approves everything by itself.
        command: &["kimi", "--output-format", "stream-json"],
        edits: &[],
        everything: &[],
        edit_tools: &[],
        allow: HostOption::Instead("Kimi Code allows everything when it runs without a person"),
        calls: &[],
        model: HostOption::Named("--model"),
        resume: Some(&["--session", "{session}"]),
        last: &["-p"],
        prompt_by: PromptBy::Argument,
        output: Format::KimiStream,
        counts_sessions: false,
    }),
    transcripts: Transcripts {
        folder: Some(".kimi-code"),
        sessions: &["sessions"],
        formats: &[Format::KimiWire],
    },
    settings: SettingsFiles {
        variable: Some(("KIMI_CODE_HOME", "")),
        ..SettingsFiles::new(".kimi-code", "config.toml")
    },
    ..HostSpec::USUAL
};
