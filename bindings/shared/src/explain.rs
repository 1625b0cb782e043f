//! What was found in a text, for people.

use std::fmt::Write as _;

use crate::Found;

/// Describes each finding: where it is, whether it counts, and if not, why and what to write instead.
pub fn explain(findings: &[Found]) -> String {
    if findings.is_empty() {
        return "no signals and no near misses\n".to_owned();
    }
    let mut text = String::new();
    for found in findings {
        let Found { line, column, dialect, name, .. } = found;
        // Writing to a string cannot fail.
        _ = match (&found.meaning, &found.reason, &found.hint) {
            (Some(meaning), _, _) => {
                writeln!(text, "{line}:{column}: {dialect} {name} counts: {meaning}{}", with(found))
            }
            (None, reason, hint) => {
                let reason = reason.as_deref().unwrap_or_default();
                let hint = hint.as_deref().unwrap_or_default();
                writeln!(
                    text,
                    "{line}:{column}: {dialect} {name} does not count: {reason}\n    {hint}"
                )
            }
        };
    }
    text
}

fn with(found: &Found) -> String {
    let subject = found.subject.as_ref().map(|subject| format!(", of {subject}"));
    let payload = found.payload.as_deref().and_then(|payload| payload.lines().next());
    let payload = payload.map(|payload| format!(", {payload:?}"));
    [subject, payload].into_iter().flatten().collect()
}
