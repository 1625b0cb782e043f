//! `spec/0`, rule 8: taken back is not said.

use super::mentions::check_each;
use super::*;

pub(super) const ROWS: &[&[Row<'_>]] = &[RETRACTED];

#[test]
fn claims_that_are_taken_back() {
    check(RETRACTED);
}

const OPENERS: &[&str] = &[
    "Correction",
    "Wait",
    "Actually",
    "Sorry",
    "Oops",
    "Scratch that",
    "On second thought",
    "Hold on",
];

#[test]
fn openers_on_the_claims_own_line() {
    let text = "<chorus>COMPLETE</chorus> {w}, one file is missing.";
    check_each("chorus", text, OPENERS, "!retracted COMPLETE");
}

#[test]
fn openers_take_back() {
    for template in [
        "<chorus>COMPLETE</chorus>\n\n{w}, one file is missing.",
        "<chorus>COMPLETE</chorus>\n\n{w}: one file is missing.",
        "<chorus>COMPLETE</chorus>\n\n{w}\nOne file is missing.",
        "<chorus>COMPLETE</chorus>\nLooks good. {w}, one file is missing.",
    ] {
        check_each("chorus", template, OPENERS, "!retracted COMPLETE");
    }
}

#[test]
fn openers_that_take_nothing_back() {
    for template in [
        "<chorus>COMPLETE</chorus>\n\n{w} times are bounded.",
        "<chorus>COMPLETE</chorus>\n\n> {w}, one file is missing.",
        "<chorus>COMPLETE</chorus>\n\n```\n{w}, one file is missing.\n```",
        "<chorus>COMPLETE</chorus>\n\n`{w}, one file is missing.`",
        "{w}, one file is missing.\n\n<chorus>COMPLETE</chorus>",
    ] {
        check_each("chorus", template, OPENERS, "COMPLETE");
    }
}

#[test]
fn openers_in_small_letters_begin_a_paragraph() {
    let lower: Vec<String> = OPENERS.iter().map(|opener| opener.to_lowercase()).collect();
    let lower: Vec<&str> = lower.iter().map(String::as_str).collect();
    for template in [
        "<chorus>COMPLETE</chorus>\n\n{w}, one file is missing.",
        "<chorus>COMPLETE</chorus>\r\n{w}, one file is missing.",
        "<chorus>COMPLETE</chorus>\n\nLooks good.\n\n{w}: one file is missing.",
    ] {
        check_each("chorus", template, &lower, "!retracted COMPLETE");
    }
    let own_line = ["wait, one", "(wait, one)", "no, wait, one", "No, wait. One"];
    for template in ["<chorus>COMPLETE</chorus> {w}", "<chorus>COMPLETE</chorus> — {w}"] {
        check_each("chorus", template, &own_line, "!retracted COMPLETE");
    }
    let wrapped = "<chorus>COMPLETE</chorus>\n\nThe client will first\n{w}, then retry.";
    check_each("chorus", wrapped, &lower, "COMPLETE");
    check_each("caw", "{qa}\n{w}, one file is missing.", &lower, "!retracted QA_COMPLETE");
    let shouted: Vec<String> = OPENERS.iter().map(|opener| opener.to_uppercase()).collect();
    let shouted: Vec<&str> = shouted.iter().map(String::as_str).collect();
    let template = "<chorus>COMPLETE</chorus>\n\nHm. {w}, one file is missing.";
    check_each("chorus", template, &shouted, "!retracted COMPLETE");
}

#[test]
fn openers_behind_marks() {
    for template in [
        "<chorus>COMPLETE</chorus>\n\n## {w}\n\nOne file is missing.",
        "<chorus>COMPLETE</chorus>\n\n### {w}: one file is missing.",
        "<chorus>COMPLETE</chorus>\n\n⚠️ {w}, one file is missing.",
        "<chorus>COMPLETE</chorus>\n\n**🛑 {w}:** one file is missing.",
        "<chorus>COMPLETE</chorus>\n\n({w}, one file is missing.)",
        "<chorus>COMPLETE</chorus>\n\n[{w}: one file is missing.]",
        "<chorus>COMPLETE</chorus>\n\n• {w}, one file is missing.",
        "<chorus>COMPLETE</chorus>\n\n**All is fine.** {w}, one file is missing.",
        "<chorus>COMPLETE</chorus>\n\n(All is fine.) {w}, one file is missing.",
        "<chorus>COMPLETE</chorus>\n\nAll is fine… {w}, one file is missing.",
        "<chorus>COMPLETE</chorus>\n\nAll is fine. 😀 {w}, one file is missing.",
        "<chorus>COMPLETE</chorus> — {w}, one file is missing.",
        "<chorus>COMPLETE</chorus>\n\n{w}—one file is missing.",
        "<chorus>COMPLETE</chorus>\n\n{w}–one file is missing.",
        "<chorus>COMPLETE</chorus>\n\n{w} - one file is missing.",
        "<chorus>COMPLETE</chorus>\n\n{w} : one file is missing.",
        "<chorus>COMPLETE</chorus>\n\nOh {w}, one file is missing.",
        "<chorus>COMPLETE</chorus>\n\nHmm, {w}… one file is missing.",
        "REVIEW_PASSED: t-1\n\n## {w}: one file is missing.",
        "REVIEW_PASSED: t-1\n\nSummary: fine\n\n**{w}**—one file is missing.",
    ] {
        let (dialect, name) = match template.starts_with('<') {
            true => ("chorus", "COMPLETE"),
            false => ("delivery", "REVIEW_PASSED"),
        };
        check_each(dialect, template, OPENERS, &format!("!retracted {name}"));
    }
    for template in [
        "<chorus>COMPLETE</chorus>\n\n\"{w}, one file is missing\" is what the old code printed.",
        "<chorus>COMPLETE</chorus>\n\n{w}-free code is faster.",
    ] {
        check_each("chorus", template, OPENERS, "COMPLETE");
    }
}

#[test]
fn openers_in_bodies() {
    let body = "REVIEW_PASSED: t-1\n\n{w}, one file is missing.";
    check_each("delivery", body, OPENERS, "!retracted REVIEW_PASSED");
    for template in [
        "REVIEW_PASSED: t-1\n\nNotes:\n- {w}, one file is missing.",
        "REVIEW_PASSED: t-1\n\nNotes:\n* limits\n* {w}, one file is missing.",
        "REVIEW_PASSED: t-1\n\nNotes:\nRetries use jitter.\n{w}, staging needed it too.",
        "REVIEW_PASSED: t-1\n\nSummary: {w}, one file is missing.",
        "REVIEW_PASSED: t-1\n\nIt works. {w}, retry and abort are covered.",
        "REVIEW_PASSED: t-1\n\nNotes:\n{w}, retry and abort are covered.",
    ] {
        check_each("delivery", template, OPENERS, "REVIEW_PASSED:t-1");
    }
}

#[test]
fn phrases_of_retractions() {
    let phrases = [
        "The work is not complete.",
        "It is not yet done.",
        "This is not really finished.",
        "The API is incomplete.",
        "Some parts are incomplete.",
        "It remains incomplete.",
        "The run still fails.",
        "It is still failing.",
        "I spoke too soon.",
        "This is premature.",
        "One test fails.",
        "A test is failing.",
        "The build fails.",
        "The build is broken.",
        "The check is red.",
        "The check is failing.",
        "Lint fails.",
        "Lint is red.",
        "CI is red.",
        "CI fails.",
        "CI is failing.",
        "CI is broken.",
        "The type-check is red.",
        "CI is **red**.",
        "Two tests are consistently failing.",
        "There are two failing tests.",
        "Build broken on Windows.",
        "I did not touch the API, but CI is red.",
        "Not all of the acceptance criteria are done.",
        "That was premature.",
        "I spoke too soon, a case was missing.",
        "I SPOKE TOO SOON.",
        "I have spoken too soon.",
        "CI IS RED.",
        "This Is Premature.",
        "All is merged; it is not done.",
        "The tests fail without network.",
        "The task is not\ncomplete.",
        "The feature remains\r\nincomplete.",
        "The two API tests still\n  fail.",
        "I have run everything, and two of the integration tests\nare failing.",
        "- The build for Windows\n  is broken",
        "CI is failing on main.yml.",
        "CI is failing on `main.rs`",
        "The build has been broken since noon.",
        "The tests have been failing.",
        "2 failing tests remain.",
        "Failing tests: 3",
        "Tests: 40 passed, 2 failing.",
        "The integration tests do not pass yet.",
        "CI isn't passing.",
        "I have not completed story 5.",
        "It is not Done.",
        "CI Fails.",
        "CI is Red.",
        "I Spoke Too Soon.",
        "The work hasn't been completed.",
    ];
    check_each("chorus", "<chorus>COMPLETE</chorus>\n\n{w}", &phrases, "!retracted COMPLETE");
    let lines = phrases.iter().filter(|phrase| !phrase.contains('\n'));
    let shouted: Vec<String> = lines.map(|phrase| phrase.to_uppercase()).collect();
    let shouted: Vec<&str> = shouted.iter().map(String::as_str).collect();
    check_each("chorus", "<chorus>COMPLETE</chorus>\n\n{w}", &shouted, "!retracted COMPLETE");
    check_each("turn", "{w} TURN_COMPLETE", &phrases, "TURN_COMPLETE");
    check_each("delivery", "REVIEW_PASSED: t-1\n\n{w}", &phrases, "REVIEW_PASSED:t-1");
}

#[test]
fn phrases_that_take_nothing_back() {
    let exempt = [
        "One unrelated test fails.",
        "A pre-existing test fails.",
        "An upstream test fails.",
        "A test of the previous release fails.",
        "The test was failing.",
        "Tests were red.",
        "CI is red on main.",
        "The build is not broken.",
        "The work is complete.",
        "The previous one was incomplete.",
        "None of the unit tests fails any more.",
        "I added a test for the broken link.",
        "I fixed the failing test and the red CI job.",
        "Without the change this test would fail.",
        "The tests cover what happens when the upload fails.",
        "If CI fails, tell me.",
        "If something is not complete, tell me.",
        "This is not only complete but documented.",
        "I did not change the API, so the task is complete.",
        "The build used to fail here.",
        "I added a regression test that fails without the fix.",
        "I verified that the new test fails before the change.",
        "Should the build fail, run make clean.",
        "In case CI fails, run it again.",
        "The build will fail if Node is too old.",
        "Neither the build nor the tests fail.",
        "Tests failing: 0",
        "CI is red on master, too.",
        "I did not skip anything; all stories are done.",
        "Do not merge until the review is done.",
        "No stories are incomplete.",
        "If the upload is incomplete, it is removed.",
        "The `test_tls` check fails,\nbut this is unrelated.",
        "The lint job is red,\nas it is on main.",
        "- Not in scope\n- Complete rewrite",
        "What the plan does not cover:\ndone elsewhere",
        "The cache is not warm.\ndone in 3 s",
        "Not touched\n\ncomplete list below",
        "| not run |\ncomplete",
        "The tests had been failing for weeks.",
        "Fixed 2 failing tests.",
        "Failing tests: 0",
        "The tests went from 2 failing to none.",
        "The check does not pass the flag on.",
        "Nothing that does not pass the tests is merged.",
        "I did not touch any of the completed stories.",
    ];
    check_each("chorus", "<chorus>COMPLETE</chorus>\n\n{w}", &exempt, "COMPLETE");
}

const RETRACTED: &[Row<'_>] = &[
    (
        "said again after it",
        "chorus",
        "<chorus>COMPLETE</chorus>\nWait, no.\n<chorus>COMPLETE</chorus>",
        "!retracted COMPLETE, COMPLETE",
    ),
    ("no claim", "chorus", "<chorus>BLOCKED: no db</chorus>\n\nWait, no.", "BLOCKED=no db"),
    ("caw", "caw", "{qa}\n\nOops, one file is missing.", "!retracted QA_COMPLETE"),
    (
        "a back-quote further on in the line",
        "caw",
        "{qa}\n\nThe SIGNAL: I spoke too soon, as `x SIGNAL: QA_COMPLETE shows",
        "!retracted QA_COMPLETE, !quoted QA_COMPLETE",
    ),
    ("pilot", "pilot", "{exit}\n\nOops, one file is missing.", "!retracted EXIT"),
    (
        "ralph-status",
        "ralph-status",
        "{ralph}\n\nOops, one file is missing.",
        "!retracted RALPH_STATUS",
    ),
    (
        "ralphex",
        "ralphex",
        "<<<RALPHEX:PLAN_READY>>>\n\nOops, one file is missing.",
        "!retracted PLAN_READY",
    ),
    (
        "promise",
        "promise",
        "<promise>COMPLETE</promise>\n\nOops, one file is missing.",
        "!retracted PROMISE",
    ),
];
