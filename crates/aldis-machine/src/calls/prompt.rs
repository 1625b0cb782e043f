//! How a prompt asks for calls, for agents that are known to have the tools. What is to be written
//! follows as the way of those that do not.

use std::fmt::Write as _;

use super::table::TABLE;
use crate::delivery::Role;

/// The tools, with when to call each and how the call is filled in.
const FORMS: [(&str, &str, &str); 5] = [
    ("complete", "When the work is done, call", r#"{"summary": "what you did"}"#),
    (
        "verdict",
        "When you have judged the work, call",
        r#"{"verdict": "reject", "summary": "why", "findings": [{"what": "what is wrong", "path": "src/a.rs", "line": 7}]}"#,
    ),
    (
        "blocked",
        "When something is missing that you cannot get, call",
        r#"{"reason": "what is missing", "needs": "access"}"#,
    ),
    (
        "ask_human",
        "When only a human can decide something, call",
        r#"{"question": "what to decide"}"#,
    ),
    ("progress", "At milestones, call", r#"{"summary": "what you have just done", "percent": 40}"#),
];

/// Returns how an agent of this role reports by calls; nothing where it has no tool.
pub(crate) fn preference(machine: &str, role: Option<Role>) -> String {
    let may = |tool: &str| {
        TABLE.iter().any(|row| {
            let of_role =
                row.roles.is_empty() || role.is_some_and(|role| row.roles.contains(&role));
            row.machine == machine && row.tool == tool && of_role
        })
    };
    let forms: Vec<_> = FORMS.iter().filter(|(tool, ..)| may(tool)).collect();
    let Some((first, ..)) = forms.first() else { return String::new() };
    let mut text = format!(
        "Report by calling the tools of the MCP server aldis (your list of tools may show one as \
         mcp__aldis__{first}). The answer says at once whether the report counts, and what comes \
         next.\n\n"
    );
    for (tool, when, arguments) in forms {
        let _ = writeln!(text, "{when}:\n\n    {tool} {arguments}\n");
    }
    text.push_str(
        "Report each thing once. Only if you do not have these tools, or an answer says that nothing \
         was recorded, write the report as text instead, in the form that follows.\n\n",
    );
    text
}
