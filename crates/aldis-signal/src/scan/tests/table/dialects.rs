//! `spec/1` to `spec/4` and other tools: what each system says about how its signals are written.

use super::*;

pub(super) const ROWS: &[&[Row<'_>]] = &[CAW, DELIVERY, CHORUS, TURN, OTHERS];

#[test]
fn spec_1_caw() {
    check(CAW);
}

#[test]
fn spec_2_delivery() {
    check(DELIVERY);
}

#[test]
fn spec_3_chorus() {
    check(CHORUS);
}

#[test]
fn spec_4_turns() {
    check(TURN);
}

#[test]
fn the_formats_of_other_tools() {
    check(OTHERS);
}

const CAW: &[Row<'_>] = &[
    ("whole", "caw", "{qa}", "QA_COMPLETE"),
    ("only SIGNAL", "caw", "---\nSIGNAL: AUTO_COMPLETE\n---", "AUTO_COMPLETE~*"),
    ("missing fields warn", "caw", "---\nSIGNAL: QA_COMPLETE\nPHASE: qa\n---", "QA_COMPLETE~*"),
    (
        "any case",
        "caw",
        "---\nsignal: qa_complete\nPhase: qa\nstatus: complete\ntimestamp: 2026-03-02T10:00:00Z\nnext: review\n---",
        "QA_COMPLETE",
    ),
    (
        "no space after the colon",
        "caw",
        "---\nSIGNAL:FIX_COMPLETE\nPHASE:fix\nSTATUS:complete\nTIMESTAMP:2026-03-02T10:00:00Z\nNEXT:check\n---",
        "FIX_COMPLETE",
    ),
    (
        "the end closes it",
        "caw",
        "---\nSIGNAL: QA_COMPLETE\nPHASE: qa",
        "QA_COMPLETE~missing_closing_delimiter",
    ),
    (
        "a wrong phase",
        "caw",
        "---\nSIGNAL: QA_COMPLETE\nPHASE: fix\n---",
        "QA_COMPLETE~phase_mismatch",
    ),
    ("a wrong next", "caw", "---\nSIGNAL: QA_COMPLETE\nNEXT: deploy\n---", "QA_COMPLETE~*"),
    (
        "an error",
        "caw",
        "---\nSIGNAL: PHASE_ERROR\nPHASE: qa\nSTATUS: error\nTIMESTAMP: 2026-03-02T10:00:00Z\nERROR: a: b, c\nRECOVERABLE: true\n---",
        "PHASE_ERROR",
    ),
    ("SIGNAL is not first", "caw", "---\nPHASE: qa\nSIGNAL: QA_COMPLETE\n---", "-*"),
    ("a blank line inside", "caw", "---\nSIGNAL: QA_COMPLETE\n\nPHASE: qa\n---", "-*"),
    ("a sentence inside", "caw", "---\nSIGNAL: QA_COMPLETE\nAll is well\n---", "-*"),
    (
        "one delimiter cannot do both",
        "caw",
        "---\nSIGNAL: QA_COMPLETE\n---\nSIGNAL: FIX_COMPLETE\n---\n",
        "QA_COMPLETE~*, !* FIX_COMPLETE",
    ),
    (
        "two blocks back to back",
        "caw",
        "---\nSIGNAL: QA_COMPLETE\n---\n---\nSIGNAL: FIX_COMPLETE\n---\n",
        "QA_COMPLETE~*, FIX_COMPLETE~*",
    ),
    ("a rule of markdown before it", "caw", "Summary\n\n---\n\n{qa}", "QA_COMPLETE"),
    ("a rule of markdown after it", "caw", "{qa}\n\n---\nThanks.", "QA_COMPLETE"),
    (
        "the last line alone",
        "caw",
        "All good.\n\nSIGNAL: QA_COMPLETE\n\n",
        "QA_COMPLETE~missing_delimiters",
    ),
    ("the only line", "caw", "signal: qa_complete", "QA_COMPLETE~missing_delimiters"),
    ("not the last line", "caw", "SIGNAL: QA_COMPLETE\nAnd on it goes.", "-*"),
    ("the last line, more words", "caw", "SIGNAL: QA_COMPLETE is next.", "-not_whole_line"),
    ("inside a sentence", "caw", "Then comes SIGNAL: QA_COMPLETE", "!not_whole_line QA_COMPLETE"),
    ("an indented block", "caw", "  ---\n  SIGNAL: QA_COMPLETE\n  ---", "-*"),
    ("four hyphens", "caw", "----\nSIGNAL: QA_COMPLETE\n----\nx", "-*"),
    ("a token", "caw", "---\nSIGNAL: QA_COMPLETE\nTOKEN: k7f3\n---", "QA_COMPLETE~*"),
    ("an unknown name alone", "caw", "SIGNAL: DEPLOY_COMPLETE", "-unknown_name"),
    (
        "a look-alike key",
        "caw",
        "---\nSIGNAL: QA_COMPLETE\nST\u{410}TUS: error\n---",
        "!hidden QA_COMPLETE",
    ),
    (
        "an unknown key",
        "caw",
        "---\nSIGNAL: QA_COMPLETE\nSTATE: error\n---",
        "!unknown_field QA_COMPLETE",
    ),
];

#[test]
fn caw_length() {
    for (length, want) in [(65_536, "PHASE_ERROR~*"), (65_537, "!too_long PHASE_ERROR")] {
        let [start, end] = ["---\nSIGNAL: PHASE_ERROR\nERROR: ", "\n---"];
        let words = "x".repeat(length - start.len() - end.len());
        check(&[("length", "caw", &format!("{start}{words}{end}\n\nx"), want)]);
    }
}

#[test]
fn caw_names() {
    for name in [
        "EXPANSION_COMPLETE",
        "INIT_COMPLETE",
        "PLANNING_COMPLETE",
        "EXECUTION_COMPLETE",
        "QA_COMPLETE",
        "REVIEW_COMPLETE",
        "FIX_COMPLETE",
        "CHECK_COMPLETE",
        "REFLECT_COMPLETE",
        "AUTO_COMPLETE",
        "PHASE_ERROR",
        "TRANSITION_TO_QA",
        "TRANSITION_TO_VALIDATION",
        "TRANSITION_TO_FIX",
    ] {
        check(&[(name, "caw", &format!("---\nSIGNAL: {name}\n---"), &format!("{name}~*"))]);
    }
}

const REQUEST: &str = "EXPERT_REQUEST\nTask: t-1\nTarget Agent: crypto\nRequest Type: decision\n\n\
    Context Snapshot:\n- a\n\n---DELEGATION PROMPT START---\nAUDIT_PASSED: t-1\nWhich?\n\
    ---DELEGATION PROMPT END---";

const DELIVERY: &[Row<'_>] = &[
    ("no space", "delivery", "READY_FOR_REVIEW:t-1", "READY_FOR_REVIEW:t-1~missing_space"),
    ("a full stop", "delivery", "READY_FOR_REVIEW: t-1.", "READY_FOR_REVIEW:t-1"),
    ("an exclamation mark", "delivery", "READY_FOR_REVIEW: t-1!", "READY_FOR_REVIEW:t-1"),
    ("back-quotes", "delivery", "READY_FOR_REVIEW: `t-1`", "READY_FOR_REVIEW:t-1"),
    ("quotes", "delivery", "READY_FOR_REVIEW: \"t-1\"", "READY_FOR_REVIEW:t-1"),
    ("more words", "delivery", "READY_FOR_REVIEW: t-1 is up", "!not_whole_line READY_FOR_REVIEW"),
    ("bare, more words", "delivery", "REMEDIATION_COMPLETE for the disk", "-not_whole_line"),
    ("bare, in a sentence", "delivery", "I said REMEDIATION_COMPLETE", "-"),
    ("a look-alike in an id", "delivery", "EXPERT_CREATED: r\u{435}q", "!hidden EXPERT_CREATED"),
    ("an id of another script", "delivery", "AUDIT_PASSED: \u{442}-1", "!hidden AUDIT_PASSED"),
    ("a sign in an id", "delivery", "AUDIT_PASSED: t\u{2713}", "!bad_subject AUDIT_PASSED"),
    ("healthy", "delivery", "HEALTH_AUDIT: HEALTHY", "HEALTH_AUDIT:HEALTHY"),
    ("unhealthy", "delivery", "HEALTH_AUDIT: UNHEALTHY", "HEALTH_AUDIT:UNHEALTHY"),
    ("another verdict", "delivery", "HEALTH_AUDIT: DEGRADED", "HEALTH_AUDIT:DEGRADED"),
    ("a request id with blanks", "delivery", "EXPERT_ADVICE: req 42", "EXPERT_ADVICE:req 42"),
    (
        "an unsuccessful request",
        "delivery",
        "EXPERT_UNSUCCESSFUL: KDF choice",
        "EXPERT_UNSUCCESSFUL:KDF choice",
    ),
    (
        "the task of a question",
        "delivery",
        "SEEKING_DIVINE_CLARIFICATION\n\nTask: t-1\n\nQuestion: which?",
        "SEEKING_DIVINE_CLARIFICATION:t-1",
    ),
    (
        "no markers",
        "delivery",
        "EXPERT_REQUEST\nTarget Agent: x\nContext Snapshot: y\n\nAUDIT_PASSED: t-1",
        "-",
    ),
    (
        "no end marker",
        "delivery",
        "EXPERT_REQUEST\nTarget Agent: x\nContext Snapshot: y\n---DELEGATION PROMPT START---\nAUDIT_PASSED: t-1",
        "-unclosed",
    ),
    (
        "no target",
        "delivery",
        "EXPERT_REQUEST\nContext Snapshot: y\n---DELEGATION PROMPT START---\nx\n---DELEGATION PROMPT END---\nAUDIT_PASSED: t-1",
        "-missing_field",
    ),
    (
        "no snapshot",
        "delivery",
        "EXPERT_REQUEST\nTarget Agent: y\n---DELEGATION PROMPT START---\nx\n---DELEGATION PROMPT END---\nAUDIT_PASSED: t-1",
        "-missing_field",
    ),
    (
        "no real target",
        "delivery",
        "EXPERT_REQUEST\nTarget Agent: [agent name]\nContext Snapshot: y\n---DELEGATION PROMPT START---\nx\n---DELEGATION PROMPT END---\nAUDIT_PASSED: t-1",
        "-placeholder",
    ),
    (
        "no real task",
        "delivery",
        "SEEKING_DIVINE_CLARIFICATION\nTask: [task_id]\nQuestion: which?\n\nCHECKPOINT: t-1",
        "!placeholder SEEKING_DIVINE_CLARIFICATION, CHECKPOINT:t-1",
    ),
    (
        "a value off its list",
        "delivery",
        "REVIEW_FAILED: t-1\n\nPriority: URGENT",
        "REVIEW_FAILED:t-1~bad_value",
    ),
    (
        "a name in a body's prose",
        "delivery",
        "REVIEW_FAILED: t-1\n\nPlease signal READY_FOR_REVIEW when complete.",
        "=REVIEW_FAILED:t-1",
    ),
];

#[test]
fn delivery_handlers_and_meanings() {
    use Meaning::{
        Approved, Blocked, Done, Handoff, Info, NeedsHelp, NeedsHuman, Progress, Rejected,
    };
    for (text, handler, meaning) in [
        ("READY_FOR_REVIEW: t-1", "DISPATCH_CRITIC", Handoff),
        ("TASK_INCOMPLETE: t-1", "LOG_AND_FILL_SLOTS", Blocked),
        ("INFRA_BLOCKED: t-1", "ENTER_REMEDIATION", Blocked),
        ("REVIEW_PASSED: t-1", "DISPATCH_AUDITOR", Approved),
        ("REVIEW_FAILED: t-1", "DISPATCH_DEVELOPER_REWORK", Rejected),
        ("AUDIT_PASSED: t-1", "MARK_COMPLETE", Approved),
        ("AUDIT_FAILED: t-1", "DISPATCH_DEVELOPER_REWORK", Rejected),
        ("AUDIT_BLOCKED: t-1", "ENTER_REMEDIATION", Blocked),
        ("EXPANDED_TASK_SPECIFICATION: t-1", "PROCESS_EXPANSION", Info),
        ("REMEDIATION_COMPLETE", "DISPATCH_HEALTH_AUDITOR", Done),
        ("HEALTH_AUDIT: HEALTHY", "EXIT_REMEDIATION", Approved),
        ("HEALTH_AUDIT: UNHEALTHY", "RETRY_REMEDIATION", Rejected),
        ("HEALTH_AUDIT: healthy", "RETRY_REMEDIATION", Rejected),
        ("HEALTH_AUDIT: DEGRADED", "RETRY_REMEDIATION", Rejected),
        ("SEEKING_DIVINE_CLARIFICATION", "AWAIT_DIVINE_RESPONSE", NeedsHuman),
        (REQUEST, "DISPATCH_EXPERT", NeedsHelp),
        ("EXPERT_ADVICE: r-1", "DELIVER_TO_REQUESTING_AGENT", Info),
        ("EXPERT_UNSUCCESSFUL: r-1", "ESCALATE_TO_DIVINE", NeedsHuman),
        ("EXPERT_CREATED: crypto", "REGISTER_EXPERT", Info),
        ("FILE CONFLICT: src/a.rs", "QUEUE_OR_COORDINATE", Blocked),
        ("CHECKPOINT: t-1", "PROCESS_CHECKPOINT", Progress),
    ] {
        let found = findings(&rules_for("delivery"), text.as_bytes(), 1);
        let heard = signals(&found);
        assert_eq!(heard.len(), 1, "{text:?}: {}", show(&found));
        assert_eq!(heard[0].handler.as_deref(), Some(handler), "{text:?}");
        assert_eq!(heard[0].meaning, meaning, "{text:?}");
    }
}

/// Several of the seed's own forms end with a sentence below their last list.
#[test]
fn a_paragraph_behind_a_list_is_not_part_of_it() {
    let lists = [
        ("- unit: PASS\n\nAll infrastructure issues resolved.", "[\"unit: PASS\"]"),
        (
            "- unit: PASS\n- lint:\nPASS\n\nAll checks pass.\n- no item",
            "[\"unit: PASS\",\"lint:\\nPASS\"]",
        ),
        ("- one\n\n- two\n\n  more of two\n", "[\"one\",\"two\\nmore of two\"]"),
        ("as before:\n- unit: PASS", "\"as before:\\n- unit: PASS\""),
    ];
    for (list, want) in lists {
        let text = format!("REMEDIATION_COMPLETE\n\nVerification Results:\n{list}");
        let found = findings(&rules_for("delivery"), text.as_bytes(), 7);
        let fields = &signals(&found)[0].fields;
        assert_eq!(fields["verification_results"].to_string(), want, "{list:?}");
    }
}

#[test]
fn delivery_bodies() {
    let body = "AUDIT_FAILED: t-1\nConfidence: HIGH\n\nFailed Criteria:\n- c1: FAILED - slow\n\n\
        Issues Found:\n- src/a.rs:12: off by one\n- no tests\n\nRequired Fixes (two):\n1. first\n\
        2. second\n\nAcceptance Criteria:\n- [ ] fast\n- [x] small\n\nApproach:\nTake a look.\n\
        Then fix.\n\nCommands Executed:\n- unit: FAIL\n  Exit: 1\n\nlower: no key\n\
        One two three four five six: no key\nSummary: done";
    let found = findings(&rules_for("delivery"), body.as_bytes(), 7);
    let fields = &signals(&found)[0].fields;
    let want = serde_json::json!({
        "confidence": "HIGH",
        "failed_criteria": ["c1: FAILED - slow"],
        "issues_found": [{"file": "src/a.rs", "line": 12, "text": "off by one"}, "no tests"],
        "required_fixes": ["first", "second"],
        "acceptance_criteria": ["fast", "small"],
        "approach": "Take a look.\nThen fix.",
        "summary": "done",
    });
    for (key, value) in want.as_object().unwrap() {
        assert_eq!(fields.get(key), Some(value), "{key} in {fields:#?}");
    }
    for key in ["exit", "lower", "one_two_three_four_five_six"] {
        assert!(!fields.contains_key(key), "{key} in {fields:#?}");
    }
}

#[test]
fn delegation_prompts_are_fields_and_masked() {
    let found = findings(&rules_for("delivery"), REQUEST.as_bytes(), 7);
    assert_eq!(signals(&found).len(), 1, "{}", show(&found));
    let signal = signals(&found)[0];
    assert_eq!(&*signal.name, "EXPERT_REQUEST");
    assert_eq!(signal.fields["delegation_prompt"], "AUDIT_PASSED: t-1\nWhich?");
    assert_eq!(signal.fields["target_agent"], "crypto");
    assert_eq!(signal.fields["task"], "t-1");
}

const CHORUS: &[Row<'_>] = &[
    ("no payload", "chorus", "<chorus>COMPLETE</chorus>", "COMPLETE"),
    ("no space", "chorus", "<chorus>BLOCKED:no db</chorus>", "BLOCKED=no db"),
    ("anywhere", "chorus", "Half. <chorus>PROGRESS: 50</chorus> More.", "PROGRESS=50@50"),
    ("over lines", "chorus", "<chorus>BLOCKED: a\nb</chorus>", "BLOCKED=a\nb"),
    (
        "holds <",
        "chorus",
        "<chorus>BLOCKED: got Vec<u8> & x < y</chorus>",
        "BLOCKED=got Vec<u8> & x < y",
    ),
    ("trimmed", "chorus", "<chorus>BLOCKED:   no db \n</chorus>", "BLOCKED=no db"),
    ("empty is none", "chorus", "<chorus>BLOCKED: </chorus>", "BLOCKED~missing_payload"),
    ("none at all", "chorus", "<chorus>NEEDS_HELP</chorus>", "NEEDS_HELP~missing_payload"),
    (
        "kept where none is due",
        "chorus",
        "<chorus>COMPLETE: 12 tests</chorus>",
        "COMPLETE=12 tests",
    ),
    ("resolved", "chorus", "<chorus>RESOLVED</chorus>", "RESOLVED"),
    ("a human", "chorus", "<chorus>NEEDS_HUMAN: schema</chorus>", "NEEDS_HUMAN=schema"),
    (
        "restarts",
        "chorus",
        "<chorus>BLOCKED: a\n\n<chorus>COMPLETE</chorus>",
        "!unclosed BLOCKED, COMPLETE",
    ),
    ("percent", "chorus", "<chorus>PROGRESS: 62%</chorus>", "PROGRESS=62%@62~*"),
    ("a fraction", "chorus", "<chorus>PROGRESS: 99.9</chorus>", "PROGRESS=99.9@99~*"),
    ("all of it", "chorus", "<chorus>PROGRESS: 0100.5%</chorus>", "PROGRESS=0100.5%@100"),
    ("below", "chorus", "<chorus>PROGRESS: -7</chorus>", "PROGRESS=-7@0~clamped"),
    ("above", "chorus", "<chorus>PROGRESS: 150</chorus>", "PROGRESS=150@100~clamped"),
    (
        "far above",
        "chorus",
        "<chorus>PROGRESS: 99999999999999999999999</chorus>",
        "PROGRESS=99999999999999999999999@100~clamped",
    ),
    ("no number", "chorus", "<chorus>PROGRESS: halfway</chorus>", "PROGRESS=halfway~*"),
    ("a range", "chorus", "<chorus>PROGRESS: [0-100]</chorus>", "!placeholder PROGRESS"),
    ("an ellipsis", "chorus", "<chorus>BLOCKED: [...]</chorus>", "!placeholder BLOCKED"),
    ("double braces", "chorus", "<chorus>BLOCKED: {{reason}}</chorus>", "!placeholder BLOCKED"),
    ("a bracketed number", "chorus", "<chorus>BLOCKED: [12]</chorus>", "BLOCKED=[12]"),
    ("padded before", "chorus", "<chorus> COMPLETE</chorus>", "!padded COMPLETE"),
    ("padded after", "chorus", "<chorus>COMPLETE </chorus>", "!padded COMPLETE"),
    (
        "two on a line",
        "chorus",
        "<chorus>BLOCKED: a</chorus><chorus>COMPLETE</chorus>",
        "BLOCKED=a, COMPLETE",
    ),
];

#[test]
fn a_signal_with_its_tags_is_at_most_64_kib() {
    let tags = "<chorus>BLOCKED: </chorus>".len();
    for (length, want) in [(64 * 1024, true), (64 * 1024 + 1, false), (64 * 1024 + 9, false)] {
        let words = "x".repeat(length - tags);
        let text = format!("<chorus>BLOCKED: {words}</chorus>");
        let whole = findings(&rules_for("chorus"), text.as_bytes(), usize::MAX);
        assert_eq!(signals(&whole).len(), usize::from(want), "{length}");
        let reasons: Vec<_> = misses(&whole).iter().map(|miss| miss.reason).collect();
        assert_eq!(reasons.contains(&Reason::TooLong), !want, "{length}: {reasons:?}");
        assert_eq!(findings(&rules_for("chorus"), text.as_bytes(), 4099), whole, "{length}");
    }
}

const TURN: &[Row<'_>] = &[
    ("alone", "turn", "TURN_COMPLETE", "TURN_COMPLETE"),
    ("after a sentence", "turn", "Over to you. TURN_COMPLETE", "TURN_COMPLETE"),
    ("after a line", "turn", "Over to you.\n\nTURN_COMPLETE\n\n", "TURN_COMPLETE"),
    ("after a hyphen", "turn", "Over to you -TURN_COMPLETE", "TURN_COMPLETE"),
    ("after a parenthesis", "turn", "Over to you (thanks)TURN_COMPLETE", "TURN_COMPLETE"),
    ("a full stop", "turn", "Over. TURN_COMPLETE.", "-*"),
    ("bold", "turn", "Over. **TURN_COMPLETE**", "-*"),
    ("a fence", "turn", "Over.\n```\nTURN_COMPLETE\n```", "-quoted"),
    ("goes on", "turn", "TURN_COMPLETED", "-"),
    ("goes on with words", "turn", "TURN_COMPLETE and one more", "!not_at_end TURN_COMPLETE"),
    ("lower case", "turn", "turn_complete", "!wrong_case TURN_COMPLETE"),
    ("nothing", "turn", "  \n ", ""),
];

const OTHERS: &[Row<'_>] = &[
    ("a promise", "promise", "<promise>COMPLETE</promise>", "PROMISE=COMPLETE"),
    ("a status block", "ralph-status", "{ralph}", "RALPH_STATUS"),
    (
        "blocked",
        "ralph-status",
        "---RALPH_STATUS---\nSTATUS: BLOCKED\nEXIT_SIGNAL: false\n---END_RALPH_STATUS---",
        "RALPH_STATUS",
    ),
    (
        "a look-alike key in a status block",
        "ralph-status",
        "---RALPH_STATUS---\nEXIT_S\u{406}GNAL: false\nEXIT_SIGNAL: true\n---END_RALPH_STATUS---",
        "!hidden RALPH_STATUS",
    ),
    (
        "a sentence in a status block",
        "ralph-status",
        "---RALPH_STATUS---\nSTATUS: COMPLETE\nEXIT_SIGNAL: true\nSchritt f\u{fc}r Schritt: fertig\n---END_RALPH_STATUS---",
        "RALPH_STATUS",
    ),
    (
        "a status block left open",
        "ralph-status",
        "---RALPH_STATUS---\nSTATUS: COMPLETE\n",
        "-unclosed",
    ),
    ("a marker", "ralphex", "<<<RALPHEX:ALL_TASKS_DONE>>>", "ALL_TASKS_DONE"),
    (
        "a question",
        "ralphex",
        "<<<RALPHEX:QUESTION>>>\nWhich one?\n<<<RALPHEX:END>>>",
        "QUESTION=Which one?",
    ),
    (
        "a question that was not filled in",
        "ralphex",
        "<<<RALPHEX:QUESTION>>>\n[your question]\n<<<RALPHEX:END>>>",
        "!placeholder QUESTION",
    ),
    ("a question left open", "ralphex", "<<<RALPHEX:QUESTION>>>\nWhich one?", "-unclosed"),
    ("a number sign", "chorus", "<chorus>BLOCKED: #42 is open</chorus>", "BLOCKED=#42 is open"),
    ("a number alone", "chorus", "<chorus>BLOCKED: #42</chorus>", "BLOCKED=#42"),
    ("another promise", "promise", "<promise>#42 COMPLETE</promise>", "!unknown_name PROMISE"),
    ("an unknown marker", "ralphex", "<<<RALPHEX:SHIPPED>>>", "!unknown_name SHIPPED"),
    ("an event", "event", "<event topic=\"build.done\">ok</event>", "EVENT:build.done=ok"),
    (
        "an event that was not filled in",
        "event",
        "<event topic=\"a.b\">[details]</event>",
        "!placeholder EVENT",
    ),
    (
        "an event with JSON",
        "event",
        "<event topic=\"a.b\">{\"tests\": \"pass\"}</event>",
        "EVENT:a.b={\"tests\": \"pass\"}",
    ),
    ("a look-alike topic", "event", "<event topic=\"\u{430}.b\">x</event>", "!hidden EVENT"),
    ("an event without topic", "event", "<event>ok</event>", "-*"),
    ("a discovery", "axiom", "<axiom>DISCOVERY_LOCAL: ports</axiom>", "DISCOVERY_LOCAL=ports"),
    ("pending", "axiom", "<axiom>PENDING: CI</axiom>", "PENDING=CI"),
];

#[test]
fn an_explicit_exit_signal_beats_the_status() {
    for (status, exit, meaning) in [
        ("COMPLETE", "true", Meaning::Done),
        ("COMPLETE", "false", Meaning::Progress),
        ("IN_PROGRESS", "true", Meaning::Done),
        ("BLOCKED", "false", Meaning::Blocked),
        ("IN_PROGRESS", "false", Meaning::Progress),
    ] {
        let text = format!(
            "---RALPH_STATUS---\nSTATUS: {status}\nEXIT_SIGNAL: {exit}\n---END_RALPH_STATUS---"
        );
        let found = findings(&rules_for("ralph-status"), text.as_bytes(), 7);
        assert_eq!(signals(&found)[0].meaning, meaning, "{text:?}");
    }
}
