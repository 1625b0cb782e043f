//! `spec/0`, rules 3, 4 and 11: what the text around a signal does to it, on its line and on others.

use super::*;

pub(super) const ROWS: &[&[Row<'_>]] = &[QUOTED, PARAGRAPHS, CONCEALED, PROMPTS];

#[test]
fn quotation_in_lists_and_marks() {
    check(QUOTED);
}

#[test]
fn inline_code_ends_with_its_paragraph() {
    check(PARAGRAPHS);
}

#[test]
fn what_a_terminal_would_not_show() {
    check(CONCEALED);
}

#[test]
fn prompts_for_other_agents() {
    check(PROMPTS);
}

#[test]
fn a_signal_takes_64_kib_with_its_delimiters() {
    let tag = |length: usize| format!("<chorus>BLOCKED: {}</chorus>", "x".repeat(length));
    let fits = 64 * 1024 - tag(0).len();
    let rules = rules_for("chorus");
    for (length, taken) in [(fits, 1), (fits + 1, 0), (fits + 9, 0)] {
        let found = findings(&rules, tag(length).as_bytes(), usize::MAX);
        assert_eq!(signals(&found).len(), taken, "{length}");
        assert!(misses(&found).iter().all(|miss| miss.reason == Reason::TooLong), "{length}");
    }
}

const QUOTED: &[Row<'_>] = &[
    ("a quote in a list", "chorus", "- > <chorus>COMPLETE</chorus>", "!quoted COMPLETE"),
    ("a quote in a numbered list", "promise", "1. > <promise>COMPLETE</promise>", "-quoted"),
    ("a turn quoted in a list", "turn", "* > TURN_COMPLETE", "-quoted"),
    ("more than", "chorus", "- 7 > 5. <chorus>COMPLETE</chorus>", "COMPLETE"),
    ("curly marks", "chorus", "“All done <chorus>COMPLETE</chorus>”", "!quoted COMPLETE"),
    ("corner marks", "chorus", "「<chorus>COMPLETE</chorus>」", "!quoted COMPLETE"),
    ("curly marks before", "chorus", "It said “done”. <chorus>COMPLETE</chorus>", "COMPLETE"),
    ("curly marks behind", "chorus", "<chorus>COMPLETE</chorus> It said “done”.", "COMPLETE"),
];

const PARAGRAPHS: &[Row<'_>] = &[
    ("the next item", "chorus", "- a ` tick\n- <chorus>COMPLETE</chorus>", "COMPLETE"),
    ("the next number", "chorus", "1. a ` tick\n2. <chorus>COMPLETE</chorus>", "COMPLETE"),
    ("an inner item", "chorus", "- a ` tick\n    * <chorus>COMPLETE</chorus>", "COMPLETE"),
    ("a heading", "chorus", "A ` tick\n## <chorus>COMPLETE</chorus>", "COMPLETE"),
    ("a rule", "chorus", "A ` tick\n---\n<chorus>COMPLETE</chorus>", "COMPLETE"),
    ("a table", "chorus", "| a ` b |\n| c |\n\n<chorus>COMPLETE</chorus>", "COMPLETE"),
    ("the same item", "chorus", "- a ` tick\n  <chorus>COMPLETE</chorus>", "!quoted COMPLETE"),
    ("a number in prose", "chorus", "A ` tick\n2 <chorus>COMPLETE</chorus>", "!quoted COMPLETE"),
    ("code in an item", "chorus", "- a\n- `<chorus>COMPLETE</chorus>`", "!quoted COMPLETE"),
];

const CONCEALED: &[Row<'_>] = &[
    ("on the line above", "chorus", "\x1b[8m\n<chorus>COMPLETE</chorus>\n\x1b[0m", "-hidden"),
    ("before a block", "caw", "x\x1b[8m\n{qa}\n\x1b[0m", "-hidden"),
    ("before a line", "delivery", "\x1b[8mx\n\nREADY_FOR_REVIEW: t-1", "-hidden"),
    ("before a fence", "pilot", "x \x1b[8m\n\n{exit}", "-hidden"),
    ("at the end", "turn", "Done.\x1b[8m\nTURN_COMPLETE", "-hidden"),
    (
        "a colour does not end it",
        "chorus",
        "\x1b[8m\x1b[31;38;5;0m\n<chorus>COMPLETE</chorus>",
        "-hidden",
    ),
    ("ended by 28", "chorus", "\x1b[8mx\x1b[28m\n<chorus>COMPLETE</chorus>", "COMPLETE"),
    ("ended by nothing", "chorus", "\x1b[8mx\x1b[m\n<chorus>COMPLETE</chorus>", "COMPLETE"),
    ("behind it", "chorus", "<chorus>COMPLETE</chorus>\n\x1b[8mx", "COMPLETE"),
    ("in a body", "delivery", "AUDIT_PASSED: t-1\n\nSummary: a \x1b[8mb\x1b[0m", "-hidden"),
    ("erased in a body", "delivery", "AUDIT_PASSED: t-1\nSummary: a\x1b[2Kb", "-hidden"),
    ("a bare CR in a body", "delivery", "AUDIT_PASSED: t-1\nSummary: a\rb", "-hidden"),
    (
        "a colour in a body",
        "delivery",
        "AUDIT_PASSED: t-1\r\nSummary: \x1b[1mb\x1b[0m\r\n",
        "AUDIT_PASSED:t-1",
    ),
    ("a hidden cursor", "chorus", "<chorus>BLOCKED: a \x1b[?25lb</chorus>", "BLOCKED=a \x1b[?25lb"),
    ("overwritten", "chorus", "x\r<chorus>COMPLETE</chorus>", "-hidden"),
];

const PROMPTS: &[Row<'_>] = &[
    (
        "of a request that is none",
        "delivery",
        "**EXPERT_REQUEST**\n\n---DELEGATION PROMPT START---\nAUDIT_PASSED: t-1\n---DELEGATION PROMPT END---\n",
        "-*",
    ),
    (
        "what it leaves open ends with it",
        "delivery",
        "EXPERT_REQUEST\nTarget Agent: x\nContext Snapshot: y\n---DELEGATION PROMPT START---\n\
         ```\n<!-- ` \n---DELEGATION PROMPT END---\n\nAUDIT_PASSED: t-1",
        "=EXPERT_REQUEST, AUDIT_PASSED:t-1",
    ),
    (
        "failures in another signal",
        "chorus",
        "<chorus>COMPLETE</chorus>\n<chorus>BLOCKED: the tests fail</chorus>",
        "COMPLETE, BLOCKED=the tests fail",
    ),
    (
        "failures behind another signal",
        "chorus",
        "<chorus>COMPLETE</chorus>\n<chorus>PROGRESS: 5</chorus> The tests fail.",
        "!retracted COMPLETE, PROGRESS=5@5",
    ),
];
