//! Line dialects: `NAME: subject` or a bare `NAME` from column 0.

use super::*;

const NAMES: &[&str] = &[
    "READY_FOR_REVIEW",
    "REVIEW_PASSED",
    "AUDIT_FAILED",
    "CHECKPOINT",
    "HEALTH_AUDIT",
    "EXPERT_ADVICE",
    "FILE CONFLICT",
    "REMEDIATION_COMPLETE",
    "READY_FOR_REVIEWS",
    "NOT_READY_FOR_REVIEW",
    "ready_for_review",
];

const SUBJECTS: &[&str] = &[
    "t1",
    "task-2",
    "a.b_c",
    "HEALTHY",
    "",
    "[task_id]",
    "{id}",
    "two words",
    "../up",
    "src/main.rs",
    "-bad",
    "t1.",
    "`t1`",
    "\"t1\"",
    "t1!?",
    "/abs",
    "a123456789b123456789c123456789d123456789e123456789f123456789g1234",
    "a123456789b123456789c123456789d123456789e123456789f123456789g12345",
];

const SEPARATORS: &[&str] = &[": ", ":", ":  ", " ", "", " : "];
const PREFIXES: &[&str] =
    &["", "", "", "", "", " ", "\t", "- ", "> ", "**", "# ", "| ", "src/a.rs:3:"];

fn is_id(subject: &str) -> bool {
    subject.len() <= 64
        && subject.starts_with(|c: char| c.is_ascii_alphanumeric())
        && subject.chars().all(|c| c.is_ascii_alphanumeric() || "._-".contains(c))
}

fn is_placeholder(subject: &str) -> bool {
    subject.starts_with('[') && subject.ends_with(']')
        || subject.starts_with('{') && subject.ends_with('}')
}

/// Reads one unquoted line.
fn read(line: &str) -> Option<(&str, Option<&str>)> {
    if line == "REMEDIATION_COMPLETE" {
        return Some((line, None));
    }
    let (name, rest) = line.split_once(':')?;
    let subject = rest.trim_matches([' ', '\t']).trim_start_matches(['`', '"']);
    let subject = subject.trim_end_matches(['.', '!', '?', '`', '"']);
    let fits = match name {
        "READY_FOR_REVIEW" | "REVIEW_PASSED" | "AUDIT_FAILED" | "CHECKPOINT" => is_id(subject),
        "EXPERT_ADVICE" | "HEALTH_AUDIT" => !subject.is_empty(),
        "FILE CONFLICT" => {
            !subject.is_empty() && !subject.starts_with('/') && !subject.starts_with("..")
        }
        _ => false,
    };
    (fits && !is_placeholder(subject)).then_some((name, Some(subject)))
}

fn expected(text: &str) -> Vec<Said> {
    let unquoted = lines(text).into_iter().filter(|line| !line.quoted);
    unquoted
        .filter_map(|line| {
            let (name, subject) = read(line.text)?;
            Some((name.to_owned(), subject.map(str::to_owned), line.start))
        })
        .collect()
}

fn line() -> impl Strategy<Value = String> {
    let signal = (select(PREFIXES), select(NAMES), select(SEPARATORS), select(SUBJECTS)).prop_map(
        |(prefix, name, separator, subject)| format!("{prefix}{name}{separator}{subject}"),
    );
    let good = (select(&NAMES[..7]), select(&SUBJECTS[..4]))
        .prop_map(|(name, subject)| format!("{name}: {subject}"));
    prop_oneof![
        3 => signal,
        3 => good,
        1 => owned(&["REMEDIATION_COMPLETE", "REMEDIATION_COMPLETE  ", "REMEDIATION_COMPLETE now"]),
        1 => owned(&["Summary: fine", "- item", "Files Modified:", "- src/a.rs:12: off by one"]),
        4 => owned(AROUND),
    ]
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn lines_are_read_alike(
        parts in vec(line(), 0..16), crlf in any::<bool>(), last in any::<bool>(),
    ) {
        let text = joined(&parts, crlf, last);
        prop_assert_eq!(taken(&plain_rules("delivery"), &text), expected(&text), "{:?}", text);
    }
}
