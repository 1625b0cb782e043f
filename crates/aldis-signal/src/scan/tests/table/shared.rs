//! `spec/0`: the rules that all dialects share, except the eighth.

use super::*;

pub(super) const ROWS: &[&[Row<'_>]] =
    &[QUOTED, FENCED_TERMINAL, LETTERS, IDS, FILLED_IN, BYTES, REASONS];

#[test]
fn rule_3_where_in_the_message() {
    check(QUOTED);
}

#[test]
fn rule_3_fences_that_end_the_message() {
    check(FENCED_TERMINAL);
}

#[test]
fn rule_4_plain_letters() {
    check(LETTERS);
}

#[test]
fn rule_4_ids_and_paths() {
    check(IDS);
}

#[test]
fn rule_5_filled_in() {
    check(FILLED_IN);
}

#[test]
fn rule_6_and_9_all_in_order_tolerant_of_bytes() {
    check(BYTES);
}

#[test]
fn near_miss_reasons() {
    check(REASONS);
}

const QUOTED: &[Row<'_>] = &[
    ("indented code", "chorus", "    <chorus>COMPLETE</chorus>", "!quoted COMPLETE"),
    ("a fence", "chorus", "See:\n```\n<chorus>COMPLETE</chorus>\n```\nMore.", "!quoted COMPLETE"),
    (
        "a fence that ends it",
        "chorus",
        "See:\n```\n<chorus>COMPLETE</chorus>\n```",
        "!quoted COMPLETE",
    ),
    ("a signal fence in an element", "pilot", "<example>\n{exit}\n</example>", "!quoted EXIT"),
    (
        "a signal fence in indented code",
        "pilot",
        "The form is:\n\n    ```pilot-signal\n    {\"v\":2,\"type\":\"exit\",\"success\":true}\n    ```\n",
        "!quoted EXIT",
    ),
    (
        "a signal fence in a list item",
        "pilot",
        "1. All done.\n\n    ```pilot-signal\n    {\"v\":2,\"type\":\"exit\",\"success\":true}\n    ```\n",
        "EXIT",
    ),
    ("a footnote", "promise", "[^1]: <promise>COMPLETE</promise>", "!quoted PROMISE"),
    (
        "a footnote that goes on",
        "promise",
        "[^note]: see\n<promise>COMPLETE</promise>",
        "!quoted PROMISE",
    ),
    (
        "behind a footnote",
        "promise",
        "[^1]: see there\n\n<promise>COMPLETE</promise>",
        "PROMISE=COMPLETE",
    ),
    ("a fence with info", "chorus", "```xml\n<chorus>COMPLETE</chorus>\n```", "!quoted COMPLETE"),
    ("a tilde fence", "chorus", "~~~\n<chorus>COMPLETE</chorus>\n~~~", "!quoted COMPLETE"),
    (
        "a longer fence is not closed by a shorter",
        "chorus",
        "````\n```\n```\n<chorus>COMPLETE</chorus>\n````",
        "!quoted COMPLETE",
    ),
    (
        "a tilde fence is not closed by back-quotes",
        "chorus",
        "~~~\n```\n<chorus>COMPLETE</chorus>\n~~~",
        "!quoted COMPLETE",
    ),
    (
        "an indented fence",
        "chorus",
        "  ```\n  <chorus>COMPLETE</chorus>\n  ```",
        "!quoted COMPLETE",
    ),
    (
        "a deep fence",
        "chorus",
        "- a\n      ```\n<chorus>COMPLETE</chorus>\n      ```",
        "!quoted COMPLETE",
    ),
    ("after a fence", "chorus", "```\nx\n```\n<chorus>COMPLETE</chorus>", "COMPLETE"),
    ("an unclosed fence", "chorus", "```\nx\n\n<chorus>COMPLETE</chorus>\n", "!quoted COMPLETE"),
    ("inline code", "chorus", "`<chorus>COMPLETE</chorus>`", "!quoted COMPLETE"),
    ("double back-quotes", "chorus", "`` <chorus>COMPLETE</chorus> ``", "!quoted COMPLETE"),
    (
        "inline code over a line end",
        "chorus",
        "`a\n<chorus>COMPLETE</chorus>\nb`",
        "!quoted COMPLETE",
    ),
    (
        "inline code ends with its paragraph",
        "chorus",
        "A ` tick.\n\n<chorus>COMPLETE</chorus>\n\nA `.",
        "COMPLETE",
    ),
    ("a lone back-quote", "chorus", "A lone ` tick\n<chorus>COMPLETE</chorus>", "COMPLETE"),
    (
        "a lone one, and a pair",
        "chorus",
        "A `` and `\n<chorus>COMPLETE</chorus> `",
        "!quoted COMPLETE",
    ),
    ("a partner too late", "chorus", "A ` tick\n<chorus>COMPLETE</chorus>\n\nand `", "COMPLETE"),
    ("a lazy quotation", "chorus", "> he said\n<chorus>COMPLETE</chorus>", "!quoted COMPLETE"),
    ("behind a lazy one", "chorus", "> he said\nthat\n\n<chorus>COMPLETE</chorus>", "COMPLETE"),
    ("a list ends a quotation", "chorus", "> said\n- <chorus>COMPLETE</chorus>", "COMPLETE"),
    ("a quoted heading", "chorus", "> # said\n<chorus>COMPLETE</chorus>", "COMPLETE"),
    ("a row", "chorus", "a | b\n--|--\nx | <chorus>COMPLETE</chorus>", "!quoted COMPLETE"),
    ("the head", "chorus", "a | <chorus>COMPLETE</chorus>\n--|--\n", "!quoted COMPLETE"),
    ("behind a table", "chorus", "a | b\n--|--\n1 | 2\n<chorus>COMPLETE</chorus>", "COMPLETE"),
    ("indented code", "chorus", "So:\n\n    <chorus>COMPLETE</chorus>", "!quoted COMPLETE"),
    ("a paragraph goes on", "chorus", "So it is.\n    <chorus>COMPLETE</chorus>", "COMPLETE"),
    ("a paragraph of an item", "chorus", "- So.\n\n    <chorus>COMPLETE</chorus>", "COMPLETE"),
    ("code in an item", "chorus", "- So.\n\n      <chorus>COMPLETE</chorus>", "!quoted COMPLETE"),
    ("struck out", "chorus", "~~<chorus>COMPLETE</chorus>~~", "!quoted COMPLETE"),
    ("link text", "chorus", "[<chorus>COMPLETE</chorus>](x.md)", "!quoted COMPLETE"),
    ("guillemets", "chorus", "« <chorus>COMPLETE</chorus> »", "!quoted COMPLETE"),
    ("low and high", "chorus", "„<chorus>COMPLETE</chorus>“", "!quoted COMPLETE"),
    ("corner brackets", "chorus", "「<chorus>COMPLETE</chorus>」", "!quoted COMPLETE"),
    ("an element", "chorus", "<pre>\n<chorus>COMPLETE</chorus>\n</pre>", "!quoted COMPLETE"),
    (
        "an element of a line",
        "chorus",
        "So <code><chorus>COMPLETE</chorus></code>",
        "!quoted COMPLETE",
    ),
    ("it ends", "chorus", "<details>\nx\n</details>\n<chorus>COMPLETE</chorus>", "COMPLETE"),
    ("it never does", "chorus", "<details>\n<chorus>COMPLETE</chorus>\n", "COMPLETE"),
    (
        "it starts no line",
        "chorus",
        "Use <pre> here.\n<chorus>COMPLETE</chorus>\n</pre>",
        "COMPLETE",
    ),
    (
        "with attributes",
        "chorus",
        "<details open>\n<chorus>COMPLETE</chorus>\n</Details>",
        "!quoted COMPLETE",
    ),
    ("a block in one", "caw", "<example>\n{qa}\n</example>\n", "!quoted QA_COMPLETE"),
    ("a hit in a list", "chorus", "CLAUDE.md:95:- <chorus>COMPLETE</chorus>", "!quoted COMPLETE"),
    ("a line in a list", "chorus", "   12→  - <chorus>COMPLETE</chorus>", "!quoted COMPLETE"),
    ("a diff of a list", "chorus", "+- <chorus>COMPLETE</chorus>", "!quoted COMPLETE"),
    ("after inline code", "chorus", "Ran `make`.\n<chorus>COMPLETE</chorus>", "COMPLETE"),
    ("a block quote", "chorus", "> <chorus>COMPLETE</chorus>", "!quoted COMPLETE"),
    ("a nested block quote", "chorus", "> > <chorus>COMPLETE</chorus>", "!quoted COMPLETE"),
    ("a comment", "chorus", "<!-- <chorus>COMPLETE</chorus> -->", "!quoted COMPLETE"),
    ("a comment over lines", "chorus", "<!--\n<chorus>COMPLETE</chorus>\n-->", "!quoted COMPLETE"),
    (
        "an unclosed comment",
        "chorus",
        "<!-- note\n\n<chorus>COMPLETE</chorus>\nx",
        "!quoted COMPLETE",
    ),
    ("after a comment", "chorus", "<!-- note -->\n<chorus>COMPLETE</chorus>", "COMPLETE"),
    (
        "after a fence in an item",
        "chorus",
        "- ```\n  x\n  ```\n<chorus>COMPLETE</chorus>",
        "COMPLETE",
    ),
    ("in a fence in an item", "chorus", "1. ```\n<chorus>COMPLETE</chorus>\n```", "-quoted"),
    ("straight quotes", "chorus", "\"<chorus>COMPLETE</chorus>\"", "!quoted COMPLETE"),
    ("single quotes", "chorus", "'<chorus>COMPLETE</chorus>'", "!quoted COMPLETE"),
    ("curly quotes", "chorus", "“<chorus>COMPLETE</chorus>”", "!quoted COMPLETE"),
    ("a table row", "chorus", "| <chorus>COMPLETE</chorus> | the end |", "!quoted COMPLETE"),
    ("a search hit", "chorus", "src/a.rs:12:<chorus>COMPLETE</chorus>", "!quoted COMPLETE"),
    (
        "a search context line",
        "chorus",
        "src/a.rs-12-<chorus>COMPLETE</chorus>",
        "!quoted COMPLETE",
    ),
    ("an indented search hit", "chorus", "a.md:12:  <chorus>COMPLETE</chorus>", "!quoted COMPLETE"),
    ("a time is no search hit", "chorus", "10:30: <chorus>COMPLETE</chorus>", "COMPLETE"),
    ("a line number and tab", "chorus", "    12\t<chorus>COMPLETE</chorus>", "!quoted COMPLETE"),
    ("a line number and arrow", "chorus", "    12→<chorus>COMPLETE</chorus>", "!quoted COMPLETE"),
    ("an added line", "chorus", "+<chorus>COMPLETE</chorus>", "!quoted COMPLETE"),
    ("a removed line", "chorus", "-<chorus>COMPLETE</chorus>", "!quoted COMPLETE"),
    (
        "delivery in a fence",
        "delivery",
        "```\nREADY_FOR_REVIEW: t-1\n```",
        "!quoted READY_FOR_REVIEW",
    ),
    ("delivery in a quote", "delivery", "> READY_FOR_REVIEW: t-1", "!quoted READY_FOR_REVIEW"),
    (
        "delivery in a comment",
        "delivery",
        "<!--\nREADY_FOR_REVIEW: t-1\n-->",
        "!quoted READY_FOR_REVIEW",
    ),
    ("delivery in a table", "delivery", "| READY_FOR_REVIEW: t-1 |", "!quoted READY_FOR_REVIEW"),
    (
        "delivery in a search hit",
        "delivery",
        "a.md:3:READY_FOR_REVIEW: t-1",
        "!quoted READY_FOR_REVIEW",
    ),
    ("an indented numbered line", "chorus", " 12→  <chorus>COMPLETE</chorus>", "!quoted COMPLETE"),
    ("delivery after context", "delivery", "a.md-3-AUDIT_PASSED: t-1", "!quoted AUDIT_PASSED"),
    ("delivery removed in a diff", "delivery", "-AUDIT_PASSED: t-1", "!quoted AUDIT_PASSED"),
    ("delivery added in a diff", "delivery", "+READY_FOR_REVIEW: t-1", "!quoted READY_FOR_REVIEW"),
    (
        "delivery with line number",
        "delivery",
        "12\tREADY_FOR_REVIEW: t-1",
        "!quoted READY_FOR_REVIEW",
    ),
    ("caw in a quote", "caw", "> ---\n> SIGNAL: QA_COMPLETE\n> ---", "-quoted"),
    ("caw in a diff", "caw", "+---\n+SIGNAL: QA_COMPLETE\n+---", "-quoted"),
    ("turn in a quote", "turn", "> TURN_COMPLETE", "!quoted TURN_COMPLETE"),
    ("turn in inline code", "turn", "Over. `TURN_COMPLETE`", "-quoted"),
    ("turn in quotation marks", "turn", "He wrote \"TURN_COMPLETE\"", "-*"),
    ("pilot in a longer fence", "pilot", "````\n{exit}\n````", "!quoted EXIT"),
    ("pilot in a tilde fence", "pilot", "~~~\n{exit}\n~~~", "!quoted EXIT"),
    ("pilot in a quote", "pilot", "> ```pilot-signal\n> {\"v\":2,\"type\":\"exit\"}\n> ```", "-"),
    ("pilot in a comment", "pilot", "<!--\n{exit}\n-->", "-quoted"),
    ("ralph-status in a fence", "ralph-status", "```\n{ralph}\n```", "!quoted RALPH_STATUS"),
    ("ralphex in inline code", "ralphex", "`<<<RALPHEX:REVIEW_DONE>>>`", "!quoted REVIEW_DONE"),
    ("promise in a fence", "promise", "```\n<promise>COMPLETE</promise>\n```", "!quoted PROMISE"),
    ("event in a quote", "event", "> <event topic=\"a.b\">x</event>", "!quoted EVENT"),
];

const FENCED_TERMINAL: &[Row<'_>] = &[
    ("blank lines around it", "caw", "Done.\n```\n\n{qa}\n \n```\n", "QA_COMPLETE"),
    ("taken", "caw", "All steps are done.\n\n```\n{qa}\n```", "QA_COMPLETE"),
    ("blank lines after it", "caw", "```\n{qa}\n```\n\n \n", "QA_COMPLETE"),
    ("text after it", "caw", "```\n{qa}\n```\nNow the next step.", "!quoted QA_COMPLETE"),
    ("an info string", "caw", "```text\n{qa}\n```", "!quoted QA_COMPLETE"),
    ("two signals in it", "caw", "```\n{qa}\n\n{qa}\n```", "-quoted"),
    ("other text in it", "caw", "```\nNote\n{qa}\n```", "!quoted QA_COMPLETE"),
    ("not closed", "caw", "```\n{qa}\n", "!quoted QA_COMPLETE"),
    ("inside a longer fence", "caw", "````\n```\n{qa}\n```\n````", "!quoted QA_COMPLETE"),
    ("not for other dialects", "turn", "Over.\n```\nTURN_COMPLETE\n```", "-quoted"),
];

const LETTERS: &[Row<'_>] = &[
    (
        "an unseen letter in the opening tag",
        "promise",
        "Done.\n<prom\u{200b}ise>COMPLETE</promise>",
        "!hidden PROMISE",
    ),
    ("a longer name", "caw", "---\nSIGNAL: QA_COMPLETED\n---", "!misspelled QA_COMPLETE"),
    ("a longer keyword", "turn", "NOT_TURN_COMPLETE", "-"),
    ("a keyword within a word", "turn", "xTURN_COMPLETE", "-"),
    ("a longer type", "chorus", "<chorus>COMPLETED</chorus>", "-*"),
    ("a look-alike letter", "caw", "---\nSIGNAL: Q\u{410}_COMPLETE\n---", "-hidden"),
    ("a look-alike letter at column 0", "delivery", "RE\u{410}DY_FOR_REVIEW: t-1", "-hidden"),
    ("a look-alike in a type", "chorus", "<chorus>\u{421}OMPLETE</chorus>", "-hidden"),
    ("a zero-width letter inside", "delivery", "READY_FOR\u{200b}_REVIEW: t-1", "-hidden"),
    ("a bidirectional control inside", "delivery", "READY_FOR_REVIEW: t\u{202e}-1", "-hidden"),
    ("a bare CR", "delivery", "READY_FOR_REVIEW: t-1\rREVIEW_FAILED: t-1", "-hidden"),
    ("a NUL", "delivery", "READY_FOR_REVIEW: t\0-1", "-hidden"),
    ("conceal", "delivery", "\x1b[8mREADY_FOR_REVIEW: t-1\x1b[0m", "-hidden"),
    ("conceal among others", "delivery", "\x1b[1;8mREADY_FOR_REVIEW: t-1\x1b[0m", "-hidden"),
    ("conceal in a tag dialect", "chorus", "\x1b[8m<chorus>COMPLETE</chorus>\x1b[0m", "-hidden"),
    (
        "conceal that was ended",
        "delivery",
        "\x1b[8mx\x1b[28m\nREADY_FOR_REVIEW: t-1",
        "READY_FOR_REVIEW:t-1",
    ),
    ("cursor movement", "delivery", "READY_FOR_REVIEW: t-1\x1b[2A", "-hidden"),
    ("erase", "delivery", "READY_FOR_REVIEW: t-1\x1b[2K", "-hidden"),
    ("a colour", "delivery", "\x1b[1;32mREADY_FOR_REVIEW: t-1\x1b[0m", "READY_FOR_REVIEW:t-1"),
    (
        "a colour inside the name",
        "delivery",
        "READY_\x1b[31mFOR_REVIEW: t-1",
        "READY_FOR_REVIEW:t-1",
    ),
    (
        "colour 8 of 256 conceals nothing",
        "delivery",
        "\x1b[38;5;8mREADY_FOR_REVIEW: t-1\x1b[0m",
        "READY_FOR_REVIEW:t-1",
    ),
    (
        "a true colour with eights",
        "delivery",
        "\x1b[38;2;8;8;8mREADY_FOR_REVIEW: t-1\x1b[m",
        "READY_FOR_REVIEW:t-1",
    ),
    ("a coloured tag", "chorus", "\x1b[32m<chorus>COMPLETE</chorus>\x1b[0m", "COMPLETE"),
    ("a coloured block", "caw", "\x1b[32m{qa}\x1b[0m", "QA_COMPLETE"),
    ("a coloured keyword", "turn", "Over. \x1b[32mTURN_COMPLETE\x1b[0m", "TURN_COMPLETE"),
    ("a coloured fence", "pilot", "\x1b[32m{exit}\x1b[0m", "EXIT"),
    (
        "a bell in a payload is kept",
        "chorus",
        "<chorus>BLOCKED: no\u{7} db</chorus>",
        "BLOCKED=no\u{7} db",
    ),
    (
        "a bell in ERROR is kept",
        "caw",
        "---\nSIGNAL: PHASE_ERROR\nERROR: no\u{7} db\n---",
        "PHASE_ERROR~*",
    ),
    ("hidden text in a payload", "chorus", "<chorus>BLOCKED: a\x1b[8mb</chorus>", "-hidden"),
    ("VT ends no line", "delivery", "x\u{b}READY_FOR_REVIEW: t-1", "-"),
    ("FF ends no line", "delivery", "x\u{c}READY_FOR_REVIEW: t-1", "-"),
    ("CR ends no line", "delivery", "x\rREADY_FOR_REVIEW: t-1", "-"),
    ("U+2028 ends no line", "delivery", "x\u{2028}READY_FOR_REVIEW: t-1", "-"),
    ("NBSP separates nothing", "delivery", "READY_FOR_REVIEW:\u{a0}t-1", "-*"),
    ("a tab separates", "delivery", "READY_FOR_REVIEW:\tt-1", "READY_FOR_REVIEW:t-1"),
];

const IDS: &[Row<'_>] = &[
    ("an id", "delivery", "READY_FOR_REVIEW: Task_1.a-b", "READY_FOR_REVIEW:Task_1.a-b"),
    ("a number", "delivery", "READY_FOR_REVIEW: 7", "READY_FOR_REVIEW:7"),
    ("a hyphen first", "delivery", "READY_FOR_REVIEW: -task", "!bad_subject READY_FOR_REVIEW"),
    ("a slash", "delivery", "READY_FOR_REVIEW: a/b", "!bad_subject READY_FOR_REVIEW"),
    ("an accent", "delivery", "READY_FOR_REVIEW: t\u{e2}che", "-*"),
    (
        "64 letters",
        "delivery",
        "READY_FOR_REVIEW: a123456789012345678901234567890123456789012345678901234567890123",
        "READY_FOR_REVIEW:a123456789012345678901234567890123456789012345678901234567890123",
    ),
    (
        "65 letters",
        "delivery",
        "READY_FOR_REVIEW: a1234567890123456789012345678901234567890123456789012345678901234",
        "!bad_subject READY_FOR_REVIEW",
    ),
    ("a path from here", "delivery", "FILE CONFLICT: ./src/a.rs", "FILE CONFLICT:src/a.rs"),
    ("a path", "delivery", "FILE CONFLICT: src/my module/a.rs", "FILE CONFLICT:src/my module/a.rs"),
    ("an absolute path", "delivery", "FILE CONFLICT: /etc/passwd", "!bad_subject FILE CONFLICT"),
    ("a path out", "delivery", "FILE CONFLICT: ../other/a.rs", "!bad_subject FILE CONFLICT"),
    ("a path out, later", "delivery", "FILE CONFLICT: a/../../b.rs", "!bad_subject FILE CONFLICT"),
    ("a drive", "delivery", "FILE CONFLICT: C:\\a.rs", "!bad_subject FILE CONFLICT"),
    ("an expert is an id", "delivery", "EXPERT_CREATED: ../x", "!bad_subject EXPERT_CREATED"),
];

const FILLED_IN: &[Row<'_>] = &[
    (
        "[ISO8601]",
        "caw",
        "---\nSIGNAL: QA_COMPLETE\nTIMESTAMP: [ISO8601]\n---",
        "!placeholder QA_COMPLETE",
    ),
    (
        "[current time ISO8601]",
        "caw",
        "---\nSIGNAL: QA_COMPLETE\nTIMESTAMP: [current time ISO8601]\n---",
        "!placeholder QA_COMPLETE",
    ),
    ("{expected_signal}", "caw", "---\nSIGNAL: {expected_signal}\n---", "!placeholder *"),
    ("[SIGNAL_NAME]", "caw", "---\nSIGNAL: [SIGNAL_NAME]\n---", "!placeholder *"),
    ("[task_id]", "delivery", "READY_FOR_REVIEW: [task_id]", "!placeholder READY_FOR_REVIEW"),
    ("{task_id}", "delivery", "READY_FOR_REVIEW: {task_id}", "!placeholder READY_FOR_REVIEW"),
    ("reason", "chorus", "<chorus>BLOCKED: reason</chorus>", "!placeholder BLOCKED"),
    ("question", "chorus", "<chorus>NEEDS_HELP: question</chorus>", "!placeholder NEEDS_HELP"),
    (
        "reason of a human",
        "chorus",
        "<chorus>NEEDS_HUMAN: reason</chorus>",
        "!placeholder NEEDS_HUMAN",
    ),
    ("[reason]", "chorus", "<chorus>BLOCKED: [reason]</chorus>", "!placeholder BLOCKED"),
    ("{reason}", "chorus", "<chorus>BLOCKED: {reason}</chorus>", "!placeholder BLOCKED"),
    (
        "not the whole payload",
        "chorus",
        "<chorus>BLOCKED: reason unknown</chorus>",
        "BLOCKED=reason unknown",
    ),
    (
        "brackets in a payload",
        "chorus",
        "<chorus>BLOCKED: a[0] is None</chorus>",
        "BLOCKED=a[0] is None",
    ),
    ("a sample in axiom", "axiom", "<axiom>BLOCKED: reason</axiom>", "!placeholder BLOCKED"),
];

const BYTES: &[Row<'_>] = &[
    (
        "all, in order",
        "chorus",
        "<chorus>PROGRESS: 10</chorus>\n`<chorus>COMPLETE</chorus>`\n<chorus>BLOCKED: a</chorus>",
        "PROGRESS=10@10, !quoted COMPLETE, BLOCKED=a",
    ),
    (
        "both verdicts are listed",
        "delivery",
        "REVIEW_FAILED: t-1\n\nREVIEW_PASSED: t-1",
        "REVIEW_FAILED:t-1, REVIEW_PASSED:t-1",
    ),
    ("CRLF", "caw", "---\r\nSIGNAL: TRANSITION_TO_QA\r\n---\r\n", "TRANSITION_TO_QA~*"),
    (
        "CRLF at column 0",
        "delivery",
        "Done.\r\nREADY_FOR_REVIEW: t-1\r\n\r\nSummary: x\r\n",
        "READY_FOR_REVIEW:t-1",
    ),
    ("CRLF in turns", "turn", "Over.\r\nTURN_COMPLETE\r\n", "TURN_COMPLETE"),
    (
        "CRLF in a status block",
        "ralph-status",
        "---RALPH_STATUS---\r\nSTATUS: COMPLETE\r\nEXIT_SIGNAL: true\r\n---END_RALPH_STATUS---\r\n",
        "RALPH_STATUS",
    ),
    ("a BOM, column 0", "delivery", "\u{feff}READY_FOR_REVIEW: t-1", "READY_FOR_REVIEW:t-1"),
    ("a BOM, block", "caw", "\u{feff}{qa}", "QA_COMPLETE"),
    ("a BOM, tag", "chorus", "\u{feff}<chorus>COMPLETE</chorus>", "COMPLETE"),
    ("a BOM, keyword", "turn", "\u{feff}TURN_COMPLETE", "TURN_COMPLETE"),
    ("a BOM, fence", "pilot", "\u{feff}{exit}", "EXIT"),
    ("a BOM, status", "ralph-status", "\u{feff}{ralph}", "RALPH_STATUS"),
    ("trailing blanks", "delivery", "READY_FOR_REVIEW: t-1 \t ", "READY_FOR_REVIEW:t-1"),
    (
        "trailing blanks of a bare name",
        "delivery",
        "REMEDIATION_COMPLETE \t",
        "REMEDIATION_COMPLETE",
    ),
    (
        "trailing blanks in a block",
        "caw",
        "--- \nSIGNAL: TRANSITION_TO_QA \t\n---  ",
        "TRANSITION_TO_QA~*",
    ),
    ("a trailing zero-width", "delivery", "READY_FOR_REVIEW: t-1\u{200b}", "READY_FOR_REVIEW:t-1"),
    (
        "a trailing zero-width of a bare name",
        "delivery",
        "REMEDIATION_COMPLETE\u{200b}",
        "REMEDIATION_COMPLETE",
    ),
    (
        "a trailing zero-width in a block",
        "caw",
        "---\nSIGNAL: TRANSITION_TO_QA\u{200b}\n---\u{200b}",
        "TRANSITION_TO_QA~*",
    ),
    (
        "trailing zero-widths and blanks",
        "turn",
        "TURN_COMPLETE \u{200b}\u{feff}\n",
        "TURN_COMPLETE",
    ),
    ("a trailing zero-width on a fence", "pilot", "{exit}\u{200b}", "EXIT"),
];

const REASONS: &[Row<'_>] = &[
    ("indented by a blank", "delivery", " READY_FOR_REVIEW: t-1", "!indented READY_FOR_REVIEW"),
    ("indented by a tab", "delivery", "So.\n\tREADY_FOR_REVIEW: t-1", "!indented READY_FOR_REVIEW"),
    ("bold", "delivery", "**READY_FOR_REVIEW: t-1**", "!decorated READY_FOR_REVIEW"),
    ("a bold name", "delivery", "**READY_FOR_REVIEW**: t-1", "!decorated READY_FOR_REVIEW"),
    ("a heading", "delivery", "## READY_FOR_REVIEW: t-1", "!decorated READY_FOR_REVIEW"),
    ("a bullet", "delivery", "* READY_FOR_REVIEW: t-1", "!decorated READY_FOR_REVIEW"),
    ("a hyphen bullet", "delivery", "- READY_FOR_REVIEW: t-1", "-*"),
    ("wrong case", "delivery", "ready_for_review: t-1", "!wrong_case READY_FOR_REVIEW"),
    ("wrong case at the end", "turn", "Over. turn_complete", "!wrong_case TURN_COMPLETE"),
    ("wrong case of a type", "chorus", "<chorus>Complete</chorus>", "!wrong_case COMPLETE"),
    ("wrong case of a tag", "chorus", "<CHORUS>COMPLETE</CHORUS>", "-*"),
    ("blanks for underscores", "delivery", "READY FOR REVIEW: t-1", "!misspelled READY_FOR_REVIEW"),
    (
        "hyphens for underscores",
        "delivery",
        "READY-FOR-REVIEW: t-1",
        "!misspelled READY_FOR_REVIEW",
    ),
    ("case and blanks", "delivery", "Audit Passed: t-1", "!misspelled AUDIT_PASSED"),
    ("one letter less", "delivery", "REDY_FOR_REVIEW: t-1", "!misspelled READY_FOR_REVIEW"),
    ("one letter more", "caw", "---\nSIGNAL: REVIEWS_COMPLETE\n---", "!misspelled REVIEW_COMPLETE"),
    ("one letter of a type", "chorus", "<chorus>COMPLEET</chorus>", "-*"),
    ("no colon", "delivery", "READY_FOR_REVIEW t-1", "!missing_separator READY_FOR_REVIEW"),
    ("no subject", "delivery", "READY_FOR_REVIEW:", "!missing_subject READY_FOR_REVIEW"),
    (
        "no subject, blanks",
        "delivery",
        "READY_FOR_REVIEW:  \nFiles: a",
        "!missing_subject READY_FOR_REVIEW",
    ),
    ("no colon, no subject", "delivery", "READY_FOR_REVIEW", "-*"),
    ("not at the end", "turn", "TURN_COMPLETE\nOne more thing.", "!not_at_end TURN_COMPLETE"),
    (
        "not the whole line",
        "caw",
        "I wrote SIGNAL: QA_COMPLETE there.",
        "!not_whole_line QA_COMPLETE",
    ),
    (
        "not the whole line, column 0",
        "delivery",
        "READY_FOR_REVIEW: t-1 and more",
        "!not_whole_line READY_FOR_REVIEW",
    ),
    (
        "an unknown name",
        "caw",
        "---\nSIGNAL: DEPLOY_COMPLETE\n---",
        "!unknown_name DEPLOY_COMPLETE",
    ),
    ("an unknown type", "chorus", "<chorus>SHIPPED</chorus>", "!unknown_name SHIPPED"),
    ("another promise", "promise", "<promise>SHIPPED</promise>", "!unknown_name *"),
    ("unclosed", "chorus", "<chorus>COMPLETE", "!unclosed COMPLETE"),
    ("padded", "chorus", "<chorus> COMPLETE </chorus>", "!padded COMPLETE"),
    ("padded by lines", "chorus", "<chorus>\nCOMPLETE\n</chorus>", "!padded COMPLETE"),
    ("not JSON", "pilot", "```pilot-signal\n{\"v\":2,\n```", "-invalid_json"),
    (
        "a status",
        "caw",
        "---\nSIGNAL: QA_COMPLETE\nSTATUS: error\n---",
        "!status_not_complete QA_COMPLETE",
    ),
    (
        "an unknown field",
        "caw",
        "---\nSIGNAL: QA_COMPLETE\nMOOD: fine\n---",
        "!unknown_field QA_COMPLETE",
    ),
    (
        "a field twice",
        "caw",
        "---\nSIGNAL: QA_COMPLETE\nNEXT: a\nNEXT: b\n---",
        "!duplicate_field QA_COMPLETE",
    ),
    (
        "a signal twice",
        "caw",
        "---\nSIGNAL: QA_COMPLETE\nSIGNAL: FIX_COMPLETE\n---",
        "-duplicate_field",
    ),
    ("a value", "pilot", "```pilot-signal\n{\"v\":2,\"exit_signal\":\"true\"}\n```", "-bad_value"),
    ("nested", "chorus", "<chorus>BLOCKED: a\n<chorus>COMPLETE</chorus>\nb</chorus>", "-nested"),
    ("too long, tag", "chorus", "<chorus>BLOCKED: {70k}</chorus>", "!too_long BLOCKED"),
    (
        "too long, block",
        "caw",
        "---\nSIGNAL: PHASE_ERROR\nERROR: {70k}\n---",
        "!too_long PHASE_ERROR",
    ),
    (
        "too long, fence",
        "pilot",
        "```pilot-signal\n{\"v\":2,\"reason\":\"{70k}\"}\n```",
        "-too_long",
    ),
    (
        "too long, then a genuine one",
        "chorus",
        "<chorus>BLOCKED: {70k}</chorus>\n<chorus>COMPLETE</chorus>",
        "!too_long BLOCKED, COMPLETE",
    ),
    ("a required field", "delivery", "EXPERT_REQUEST\nRequest Type: decision", "-missing_field"),
];
