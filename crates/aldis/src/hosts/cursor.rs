//! Cursor: names of its own, no working directory, and what the agent said comes as an event before
//! the stop.

use std::path::PathBuf;

use aldis_transcript::Format;
use serde_json::{Value, json};

use super::adapter::{Adapter, EVENT_NAMES, prompt};
use super::hook::call::Remark;
use super::hook::fields::Fields;
use super::{BlockCap, CutShort, Env, Event};

/// Cursor's way.
#[derive(Debug)]
pub(super) struct Cursor;

/// The limit that our own registration asks for.
const LOOP_LIMIT: u32 = 50;

impl Adapter for Cursor {
    fn event(&self, fields: &Fields<'_>, remarks: &mut Vec<Remark>) -> Event {
        let name = fields.text(EVENT_NAMES, remarks).unwrap_or_default();
        match &*name {
            "stop" | "Stop" => Event::Stop,
            "subagentStop" | "SubagentStop" => Event::SubagentStop,
            "afterAgentResponse" => {
                Event::AgentResponse { text: fields.text(&["text"], remarks).unwrap_or_default() }
            }
            "beforeSubmitPrompt" | "UserPromptSubmit" => prompt(fields, remarks),
            "sessionStart" | "SessionStart" => {
                Event::SessionStart { source: fields.word(&["source"], remarks) }
            }
            "sessionEnd" | "SessionEnd" => {
                Event::SessionEnd { reason: fields.word(&["reason"], remarks) }
            }
            _ => Event::Other(name),
        }
    }

    fn session(&self, fields: &Fields<'_>, remarks: &mut Vec<Remark>) -> Option<String> {
        fields.text(&["conversation_id", "session_id"], remarks)
    }

    fn final_text(&self, fields: &Fields<'_>, remarks: &mut Vec<Remark>) -> Option<String> {
        fields.text(&["last_assistant_message", "summary"], remarks)
    }

    fn cwd(&self, fields: &Fields<'_>, env: &Env) -> Option<PathBuf> {
        let root = fields.first_of_list("workspace_roots").filter(|root| !root.is_empty());
        let root = root.map(|root| local(&root, cfg!(windows)).into());
        root.or_else(|| env.cursor_project_dir.clone())
    }

    fn project_dir(&self, env: &Env) -> Option<PathBuf> {
        env.cursor_project_dir.clone().or_else(|| env.claude_project_dir.clone())
    }

    fn cut_short(&self, fields: &Fields<'_>) -> Option<CutShort> {
        let status = fields.quiet_text(&["status"])?;
        match &*status {
            "completed" => None,
            "aborted" => Some(CutShort::Aborted),
            "error" => Some(CutShort::Failed("error".to_owned())),
            other => Some(CutShort::Other(other.to_owned())),
        }
    }

    fn allow(&self, _: &Event) -> Option<Value> {
        Some(json!({}))
    }

    fn block(&self, event: &Event, reason: &str) -> Option<Value> {
        matches!(event, Event::Stop | Event::SubagentStop)
            .then(|| json!({"followup_message": reason}))
    }

    fn context(&self, _: &Event, _: &str) -> Option<Value> {
        None
    }

    fn block_cap(&self, _: &Env) -> BlockCap {
        BlockCap::strict(LOOP_LIMIT)
    }

    fn config_dir_name(&self) -> Option<&'static str> {
        Some(".cursor")
    }

    fn formats(&self) -> &'static [Format] {
        &[Format::CursorTranscript, Format::CursorStream]
    }
}

/// On Windows Cursor writes `/d:/dir`, which is no path there.
fn local(root: &str, on_windows: bool) -> &str {
    let drive = root.strip_prefix('/').filter(|rest| {
        let [letter, colon, ..] = rest.as_bytes() else { return false };
        letter.is_ascii_alphabetic() && *colon == b':'
    });
    drive.filter(|_| on_windows).unwrap_or(root)
}

#[cfg(test)]
mod tests {
    //! Paths as they are on another system.

    use super::local;

    #[test]
    fn drives_are_paths_on_windows_only() {
        assert_eq!(local("/d:/dir", true), "d:/dir");
        assert_eq!(local("/d:/dir", false), "/d:/dir");
        for plain in ["/home/dev", "d:/dir", "/", "", "/1:/x", "/é"] {
            assert_eq!(local(plain, true), plain);
        }
    }
}
