//! Amp: it has no hooks that could be registered, so it can only be run.

use aldis_transcript::Format;

use super::spec::*;

pub(super) static SPEC: HostSpec = HostSpec {
    name: "amp",
    title: "Amp",
    programs: &["amp"],
    get_program: "see ampcode.com/manual",
    headless: Some(Headless {
        command: &["amp", "--execute", "--stream-json"],
        edits: &[],
        everything: &["--dangerously-allow-all"],
        edit_tools: &[],
        allow: HostOption::Instead("`amp.permissions` in Amp's settings allows single tools"),
        calls: &[],
        model: HostOption::Instead("Amp has modes: write `-- --mode NAME` behind the task"),
        resume: None,
        last: &[],
        prompt_by: PromptBy::Stdin,
        output: Format::ClaudeStream,
        counts_sessions: false,
    }),
    ..HostSpec::USUAL
};
