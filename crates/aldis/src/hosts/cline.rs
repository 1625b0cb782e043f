//! Cline: its hooks cannot decide anything, so it is only recognised, to say so.

use super::hook::fields::Fields;

/// The name people use.
pub(super) const TITLE: &str = "Cline";
/// Members that only it sends.
pub(super) const MEMBERS: &[&str] = &["clineVersion", "hookName"];

/// Whether it sent a payload.
pub(super) fn is_sender(fields: &Fields<'_>) -> bool {
    MEMBERS.iter().all(|name| fields.has(name))
}
