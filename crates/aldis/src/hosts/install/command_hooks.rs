//! The hosts that run a command at an event: which events, and what an entry looks like.
//!
//! Ten seconds are the limit everywhere, in the host's own unit: a hook answers in milliseconds, and
//! one that does not must not hold the session.

use jsonc_parser::cst::CstInputValue;
use jsonc_parser::json;

use super::hooks_file::Layout;
use super::invocation::Invocation;

/// Takes a program with a list of arguments: no shell.
pub(crate) const CLAUDE_CODE: Layout = Layout {
    grouped: true,
    versioned: false,
    events: &[
        "Stop",
        "SubagentStop",
        "StopFailure",
        "UserPromptSubmit",
        "SessionStart",
        "SessionEnd",
    ],
    handler: |invocation, _| {
        let Invocation { program, args } = invocation;
        json!({ "type": "command", "command": program, "args": args, "timeout": SECONDS })
    },
};

/// Asks for review again whenever an entry changes: nothing but the command may ever be in it.
pub(crate) const CODEX: Layout = Layout {
    grouped: true,
    versioned: false,
    events: &["Stop", "SubagentStop", "UserPromptSubmit", "SessionStart", "SessionEnd"],
    handler: |invocation, event| {
        // More than this is cut to it with a warning at each start.
        let timeout = if event == "SessionEnd" { 3 } else { SECONDS };
        line(&invocation, timeout)
    },
};

/// Counts milliseconds, and shows hooks by name.
pub(crate) const GEMINI: Layout = Layout {
    grouped: true,
    versioned: false,
    events: &["AfterAgent", "BeforeAgent", "SessionStart", "SessionEnd"],
    handler: |invocation, _| {
        let line = invocation.line();
        json!({ "name": "aldis", "type": "command", "command": line, "timeout": (SECONDS * 1000) })
    },
};

/// Says what the agent said in an event of its own, and gives up after five continuations unless
/// told otherwise.
pub(crate) const CURSOR: Layout = Layout {
    grouped: false,
    versioned: true,
    events: &[
        "stop",
        "subagentStop",
        "afterAgentResponse",
        "beforeSubmitPrompt",
        "sessionStart",
        "sessionEnd",
    ],
    handler: |invocation, event| {
        let line = invocation.line();
        match event {
            "stop" | "subagentStop" => {
                json!({ "command": line, "timeout": SECONDS, "loop_limit": CURSOR_LOOP_LIMIT })
            }
            _ => json!({ "command": line, "timeout": SECONDS }),
        }
    },
};

/// Names the event in the payload only for keys in this spelling.
pub(crate) const COPILOT: Layout = Layout {
    grouped: false,
    versioned: true,
    events: &["Stop", "SubagentStop", "UserPromptSubmit", "SessionStart", "SessionEnd"],
    handler: |invocation, _| {
        let Invocation { program, args } = invocation;
        json!({ "type": "command", "exec": program, "args": args, "timeoutSec": SECONDS })
    },
};

/// Counts milliseconds.
pub(crate) const QWEN: Layout = Layout {
    grouped: true,
    versioned: false,
    events: CLAUDE_CODE.events,
    handler: |invocation, _| line(&invocation, SECONDS * 1000),
};

/// Has no event for a failed turn.
pub(crate) const DROID: Layout = Layout {
    grouped: true,
    versioned: false,
    events: CODEX.events,
    handler: |invocation, _| line(&invocation, SECONDS),
};

/// Has four of our events. No matcher: `*` would silence the rule.
pub(crate) const GOOSE: Layout = Layout {
    grouped: true,
    versioned: false,
    events: &["Stop", "UserPromptSubmit", "SessionStart", "SessionEnd"],
    handler: |invocation, _| line(&invocation, SECONDS),
};

/// A handler with a line for a shell.
fn line(invocation: &Invocation, timeout: u64) -> CstInputValue {
    let line = invocation.line();
    json!({ "type": "command", "command": line, "timeout": timeout })
}

const SECONDS: u64 = 10;
const CURSOR_LOOP_LIMIT: u64 = 50;
