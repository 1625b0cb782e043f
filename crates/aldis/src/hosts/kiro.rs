//! Kiro CLI: its Stop hook is told neither what the agent said nor where that is written, and version 3
//! asks it once per prompt, which is too little to hold a session. It can be run, and the sessions of
//! version 2 are read. By its documentation: the program is in no registry, so none of this was tried.

use aldis_transcript::Format;

use super::spec::*;

pub(super) static SPEC: HostSpec = HostSpec {
    name: "kiro",
    title: "Kiro CLI",
    programs: &["kiro-cli"],
    get_program: "see kiro.dev/docs/cli",
    headless: Some(Headless {
        calls: &[],
        command: &["kiro-cli", "chat", "--no-interactive"],
        edits: &[],
        everything: &["--trust-all-tools"],
        edit_tools: &[],
        allow: HostOption::Named("--trust-tools"),
        model: HostOption::Named("--model"),
        resume: None,
        last: &[],
        prompt_by: PromptBy::Argument,
        output: Format::Text,
        counts_sessions: false,
    }),
    transcripts: Transcripts {
        folder: Some(".kiro"),
        sessions: &["sessions"],
        formats: &[Format::Kiro],
    },
    settings: SettingsFiles::new(".kiro", "hooks"),
    ..HostSpec::USUAL
};
