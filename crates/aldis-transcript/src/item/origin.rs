//! Who a text comes from: what hosts write in a user's name is told from what users write.

use aldis_signal::message::{Origin, Role};

/// Returns the origin of something a tool printed, was told, or the agent only thought.
pub(crate) fn tool(detail: impl Into<String>) -> Origin {
    Origin::new(Role::Tool).with_detail(detail)
}

/// Returns the origin of something the host wrote.
pub(crate) fn host(detail: impl Into<String>) -> Origin {
    Origin::new(Role::Host).with_detail(detail)
}

/// Returns the origin of text in the system's name.
pub(crate) fn system(detail: impl Into<String>) -> Origin {
    Origin::new(Role::System).with_detail(detail)
}

/// Returns the origin of something a user wrote or that was written in a user's name.
pub(crate) fn user(text: &str) -> Origin {
    let text = text.trim_start();
    if is_feedback(text) {
        return host("hook feedback");
    }
    if NOTICES.iter().any(|start| text.starts_with(start)) {
        return host("notice");
    }
    Origin::new(Role::User).with_detail("prompt")
}

/// Returns whether a text is what a hook answered to the agent.
pub(crate) fn is_feedback(text: &str) -> bool {
    FEEDBACK.iter().any(|start| text.starts_with(start))
}

/// How a line begins that says that a user interrupted the agent.
pub(crate) const INTERRUPTED: &str = "[Request interrupted by user";

/// How hooks' feedback begins that hosts write in a user's name without marking it.
const FEEDBACK: [&str; 2] = ["Stop hook feedback:", "<hook_prompt"];

/// How other texts begin that hosts write in a user's name without marking them.
const NOTICES: [&str; 11] = [
    INTERRUPTED,
    "<local-command-",
    "<bash-stdout>",
    "<bash-stderr>",
    "<system-reminder>",
    "<task-notification>",
    "<environment_context>",
    "<user_instructions>",
    "<turn_aborted>",
    "<permissions instructions>",
    "# AGENTS.md instructions",
];
