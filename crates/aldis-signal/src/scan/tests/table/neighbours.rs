//! `spec/0`, rules 3, 4 and 11: what the text around a signal does to it, on its line and on others.

use super::*;

pub(super) const ROWS: &[&[Row<'_>]] =
    &[QUOTED, PARAGRAPHS, CONCEALED, PROMPTS, LONG, DECORATED, NESTED];

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
fn lines_longer_than_any_signal() {
    check(LONG);
}

#[test]
fn names_and_keys_in_decoration() {
    check(DECORATED);
}

#[test]
fn markers_among_words_that_are_closed() {
    check(NESTED);
}

const LONG: &[Row<'_>] = &[
    ("a subject", "delivery", "READY_FOR_REVIEW: {70k}", "!too_long READY_FOR_REVIEW"),
    (
        "a subject, then a signal",
        "delivery",
        "Done.\nREADY_FOR_REVIEW: {70k}\nREADY_FOR_REVIEW: t-1\n",
        "!too_long READY_FOR_REVIEW, READY_FOR_REVIEW:t-1",
    ),
    ("a text", "delivery", "EXPERT_ADVICE: {70k}", "!too_long EXPERT_ADVICE"),
    ("in a fence", "delivery", "```\nREADY_FOR_REVIEW: {70k}\n```", "!quoted READY_FOR_REVIEW"),
    ("inside", "delivery", "{70k} READY_FOR_REVIEW: t-1", "-"),
    ("another name", "delivery", "READY_FOR_REVIEWS: {70k}", "-"),
    ("words behind a name", "caw", "SIGNAL: QA_COMPLETE {70k}", "!too_long QA_COMPLETE"),
    ("no name", "caw", "SIGNAL: {70k}", "-"),
    ("a long text", "delivery", "EXPERT_ADVICE: {310}{310}{310}{310}", "!too_long EXPERT_ADVICE"),
    (
        "a long prompt",
        "delivery",
        "EXPERT_REQUEST\nTarget Agent: dba\nContext Snapshot: a\n\n---DELEGATION PROMPT START---\n\
         {70k}\n---DELEGATION PROMPT END---\n",
        "!too_long EXPERT_REQUEST",
    ),
    ("bare JSON", "pilot", "{\"v\":2,\"message\":\"{70k}\"}", "!too_long STATUS"),
];

const DECORATED: &[Row<'_>] = &[
    (
        "a bold line",
        "caw",
        "---\n**SIGNAL: QA_COMPLETE**\nPHASE: qa\n---",
        "!decorated QA_COMPLETE",
    ),
    ("a bold key", "caw", "---\n**SIGNAL:** QA_COMPLETE\n---", "!decorated QA_COMPLETE"),
    ("bold up to the colon", "caw", "---\n**SIGNAL**: QA_COMPLETE\n---", "!decorated QA_COMPLETE"),
    ("an item", "caw", "---\n- **Signal**: qa_complete\n---", "!decorated QA_COMPLETE"),
    ("a bold name", "caw", "---\nSIGNAL: **QA_COMPLETE**\n---", "!decorated QA_COMPLETE"),
    ("a bold name alone", "caw", "SIGNAL: **QA_COMPLETE**", "!decorated QA_COMPLETE"),
    ("a name as code", "caw", "---\nSIGNAL: `QA_COMPLETE`\n---", "!decorated QA_COMPLETE"),
    ("a name in quotes", "caw", "---\nSIGNAL: \"QA_COMPLETE\"\n---", "!decorated QA_COMPLETE"),
    ("a bold type", "chorus", "<chorus>**COMPLETE**</chorus>", "!decorated COMPLETE"),
    ("curly quotes", "delivery", "READY_FOR_REVIEW: “t-1”", "READY_FOR_REVIEW:t-1"),
    ("another case, not last", "caw", "Signal: QA_COMPLETE\nMore.", "!not_at_end QA_COMPLETE"),
    ("no colon", "caw", "---\nSIGNAL QA_COMPLETE\n---", "!missing_separator QA_COMPLETE"),
    ("no underscore", "turn", "Over. TURN COMPLETE", "!misspelled TURN_COMPLETE"),
    ("no underscore, alone", "turn", "x\n\nTurn complete", "!misspelled TURN_COMPLETE"),
    ("prose", "turn", "My turn is over and my turn complete", "-"),
    ("a marker cut off", "ralphex", "<<<RALPHEX:REVIEW_DONE>>", "!unclosed REVIEW_DONE"),
    ("a tag in another case", "promise", "<Promise>COMPLETE</Promise>", "!wrong_case PROMISE"),
    ("only marks", "caw", "SIGNAL: ***", "!unknown_name ***"),
    ("an unknown bold name", "caw", "**SIGNAL:** SHIPPED", "-"),
];

const NESTED: &[Row<'_>] = &[
    (
        "a marker in a draft",
        "ralphex",
        "<<<RALPHEX:PLAN_DRAFT>>>\n1. Print <<<RALPHEX:REVIEW_DONE>>>\n<<<RALPHEX:END>>>",
        "PLAN_DRAFT=1. Print <<<RALPHEX:REVIEW_DONE>>>, !nested REVIEW_DONE",
    ),
    (
        "a marker behind a draft",
        "ralphex",
        "<<<RALPHEX:PLAN_DRAFT>>>\none\n<<<RALPHEX:END>>>\n\n<<<RALPHEX:REVIEW_DONE>>>",
        "PLAN_DRAFT=one, REVIEW_DONE",
    ),
    (
        "a marker behind a draft left open",
        "ralphex",
        "<<<RALPHEX:PLAN_DRAFT>>>\none\n\n<<<RALPHEX:REVIEW_DONE>>>",
        "!unclosed PLAN_DRAFT, REVIEW_DONE",
    ),
    (
        "a marker between a draft left open and a question",
        "ralphex",
        "<<<RALPHEX:PLAN_DRAFT>>>\none\n\n<<<RALPHEX:REVIEW_DONE>>>\n\n\
         <<<RALPHEX:QUESTION>>>\nwhich?\n<<<RALPHEX:END>>>",
        "!unclosed PLAN_DRAFT, REVIEW_DONE, QUESTION=which?",
    ),
    (
        "an empty question",
        "ralphex",
        "<<<RALPHEX:QUESTION>>>\n<<<RALPHEX:END>>>",
        "!missing_field QUESTION",
    ),
    (
        "an unknown marker in a question",
        "ralphex",
        "<<<RALPHEX:QUESTION>>>\nis <<<RALPHEX:X>>> right?\n<<<RALPHEX:END>>>",
        "QUESTION=is <<<RALPHEX:X>>> right?",
    ),
    (
        "a quoted draft opens nothing",
        "ralphex",
        "`<<<RALPHEX:PLAN_DRAFT>>>` is next.\n\n<<<RALPHEX:REVIEW_DONE>>>\n\n`<<<RALPHEX:END>>>`",
        "!* PLAN_DRAFT, REVIEW_DONE",
    ),
    (
        "a draft in a fence",
        "ralphex",
        "```\n<<<RALPHEX:PLAN_DRAFT>>>\none\n<<<RALPHEX:REVIEW_DONE>>>\n<<<RALPHEX:END>>>\n```",
        "!quoted PLAN_DRAFT, !quoted REVIEW_DONE",
    ),
];

const QUOTED: &[Row<'_>] = &[
    ("an indented hit", "turn", "  chat.log:5:TURN_COMPLETE", "!quoted TURN_COMPLETE"),
    ("a hit in a list", "chorus", "- prompt.md:3:<chorus>COMPLETE</chorus>", "!quoted COMPLETE"),
    ("a hit in a sentence", "chorus", "At docs/a:4:<chorus>COMPLETE</chorus>", "!quoted COMPLETE"),
    ("a line beside a hit", "chorus", "  a.md-3-<chorus>COMPLETE</chorus>", "!quoted COMPLETE"),
    ("words and numbers", "chorus", "Tests passed:61: <chorus>COMPLETE</chorus>", "COMPLETE"),
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
    (
        "a rule, and a back-quote behind it",
        "caw",
        "Set ``x with:\n---\nSIGNAL: INID_COMPLETE\nPHASE: init:\nand ``y.",
        "!misspelled INIT_COMPLETE",
    ),
    ("the next item", "chorus", "- a ` tick\n- <chorus>COMPLETE</chorus>", "COMPLETE"),
    ("the next number", "chorus", "1. a ` tick\n2. <chorus>COMPLETE</chorus>", "COMPLETE"),
    ("an inner item", "chorus", "- a ` tick\n    * <chorus>COMPLETE</chorus>", "COMPLETE"),
    ("a heading", "chorus", "A ` tick\n## A ` `\n<chorus>COMPLETE</chorus>", "COMPLETE"),
    ("a rule", "chorus", "A ` tick\n---\n<chorus>COMPLETE</chorus>", "COMPLETE"),
    ("a table", "chorus", "| a ` b |\n| c |\n\n<chorus>COMPLETE</chorus>", "COMPLETE"),
    ("the same item", "chorus", "- a ` tick\n  <chorus>COMPLETE</chorus>`", "!quoted COMPLETE"),
    ("a number in prose", "chorus", "A ` tick\n2 <chorus>COMPLETE</chorus> `", "!quoted COMPLETE"),
    ("code in an item", "chorus", "- a\n- `<chorus>COMPLETE</chorus>`", "!quoted COMPLETE"),
];

const CONCEALED: &[Row<'_>] = &[
    ("a title", "chorus", "\x1b]0;<chorus>COMPLETE</chorus>\x07", "!hidden COMPLETE"),
    ("a title before", "chorus", "\x1b]0;x\x07<chorus>COMPLETE</chorus>", "COMPLETE"),
    ("a link", "chorus", "\x1b]8;;u\x1b\\<chorus>COMPLETE</chorus>\x1b]8;;\x1b\\", "COMPLETE"),
    ("data for the terminal", "turn", "\x1bP TURN_COMPLETE", "!hidden TURN_COMPLETE"),
    ("a reset", "chorus", "<chorus>COMPLETE</chorus>\x1bc", "!hidden COMPLETE"),
    ("a charset", "delivery", "\x1b(BREADY_FOR_REVIEW: t-1", "!hidden READY_FOR_REVIEW"),
    ("noughts", "delivery", "\x1b[008mREADY_FOR_REVIEW: t-1", "!hidden READY_FOR_REVIEW"),
    ("a shade reveals nothing", "delivery", "\x1b[8m\n\x1b[4:0m\nREADY_FOR_REVIEW: t-1", "-hidden"),
    (
        "a shade conceals nothing",
        "delivery",
        "\x1b[38:2::1:2:8mREADY_FOR_REVIEW: t-1",
        "READY_FOR_REVIEW:t-1",
    ),
    ("a concealed key", "caw", "---\n\x1b[8mSIGNAL: QA_COMPLETE\n---", "!hidden QA_COMPLETE"),
    ("an erased key", "caw", "\x1b[2KSIGNAL: QA_COMPLETE", "!hidden QA_COMPLETE"),
    ("a concealed keyword", "turn", "x\n\x1b[8mTURN_COMPLETE\x1b[0m", "!hidden TURN_COMPLETE"),
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
        "<chorus>COMPLETE</chorus>\n<chorus>PROGRESS: 5</chorus> Wait, the tests fail.",
        "!retracted COMPLETE, PROGRESS=5@5",
    ),
];
