//! Factory's Droid: a sub-agent's stop carries a result and cannot be blocked.

use aldis_transcript::Format;
use serde_json::json;

use super::hook::call::{CutShort, Event};
use super::spec::*;

pub(super) static SPEC: HostSpec = HostSpec {
    name: "droid",
    title: "Droid",
    programs: &["droid"],
    get_program: "npm install -g @factory/cli",
    headless: Some(Headless {
        command: &["droid", "exec", "-o", "stream-json"],
        edits: &["--auto", "low"],
        everything: &["--skip-permissions-unsafe"],
        edit_tools: &[],
        allow: HostOption::Instead(
            "Droid has levels: write `-- --auto medium` or `-- --auto high` behind the task",
        ),
        calls: &[],
        model: HostOption::Named("--model"),
        resume: Some(&["-s", "{session}"]),
        last: &["-f"],
        prompt_by: PromptBy::File,
        output: Format::DroidStream,
        counts_sessions: false,
    }),
    project_variables: &["CLAUDE_PROJECT_DIR"],
    payload: HookPayload {
        members: &[
            "elapsed_time",
            "task_error",
            "task_name",
            "task_result",
            "tool_execution_count",
        ],
        final_text: |fields| {
            fields.text(&["last_assistant_message", "lastAssistantMessage", "task_result"])
        },
        cut_short: |fields| {
            let error = fields.cow(&["task_error"]).filter(|error| !error.is_empty());
            error.map(|error| CutShort::Failed(error.into_owned()))
        },
        is_marked: |fields| {
            fields.has_any(&["tool_execution_count", "elapsed_time", "task_result"])
                || fields.has("hookEventName")
        },
        // The marks came with later releases.
        marked: Marked::Sometimes,
        test_stop: |folder| {
            test_stop(folder, json!({ "tool_execution_count": 0, "elapsed_time": 1 }))
        },
        ..HookPayload::USUAL
    },
    answers: Answers {
        block: |event, reason| {
            (*event == Event::Stop).then(|| json!({"decision": "block", "reason": reason}))
        },
        ..Answers::USUAL
    },
    transcripts: Transcripts {
        folder: Some(".factory"),
        sessions: &["sessions"],
        formats: &[Format::Droid],
    },
    settings: SettingsFiles::new(".factory", "settings.json"),
    registration: Registration::Entries(Layout::GROUPED),
    ..HostSpec::USUAL
};
