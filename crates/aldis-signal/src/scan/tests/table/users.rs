//! The texts A to P of the comparison of tools: no false stop and no miss, in every dialect.

use super::*;

/// A genuine signal of each dialect that has claims, and its name.
const GENUINE: &[(&str, &str, &str)] = &[
    ("caw", QA, "QA_COMPLETE"),
    ("delivery", "REVIEW_PASSED: t-1", "REVIEW_PASSED"),
    ("chorus", "<chorus>COMPLETE</chorus>", "COMPLETE"),
    ("turn", "TURN_COMPLETE", "TURN_COMPLETE"),
    ("pilot", EXIT, "EXIT"),
    ("promise", "<promise>COMPLETE</promise>", "PROMISE"),
    ("ralph-status", RALPH, "RALPH_STATUS"),
    ("ralphex", "<<<RALPHEX:ALL_TASKS_DONE>>>", "ALL_TASKS_DONE"),
    ("axiom", "<axiom>COMPLETE</axiom>", "COMPLETE"),
];

/// Each case, its text around `{s}`, and whether the claim is genuine.
const CASES: &[(&str, &str, bool)] = &[
    ("A genuine, last thing said", "All tests pass.\n\n{s}", true),
    ("A with a line end", "All tests pass.\n\n{s}\n", true),
    (
        "B and one closing sentence",
        "All tests pass.\n\n{s}\n\nLet me know if anything is unclear.",
        true,
    ),
    (
        "C prompt echoed at the top",
        "When everything is done, print:\n\n{s}\n\nI start with the parser.",
        false,
    ),
    (
        "D fenced example in the middle",
        "The format:\n\n```\n{s}\n```\n\nI go on with task 2.",
        false,
    ),
    (
        "E fenced example as last thing",
        "Two tasks left. For reference, the completion marker is:\n\n````\n{s}\n````",
        false,
    ),
    ("F markdown quote", "The prompt says:\n\n{q}\n\nI am at task 2.", false),
    ("H not yet", "Not done, so I must not yet print\n{s}", false),
    ("I correction", "{s}\n\nCorrection: NOT complete, two tests fail.", false),
    ("M CRLF", "All tests pass.\r\n\r\n{crlf}\r\n", true),
    ("L colour", "All tests pass.\n\n\x1b[32m{s}\x1b[0m\n", true),
    ("N diff", "The diff:\n\n{d}\n\nNot merged.", false),
    ("N grep", "Found it:\n\n{g}\n\nNot mine.", false),
    ("O no marker", "All tests pass. I go on with task 2.", false),
    ("P completion words", "Everything is complete. All tasks are done and finished.", false),
];

fn prefixed(signal: &str, prefix: impl Fn(usize) -> String) -> String {
    let lines: Vec<String> =
        signal.lines().enumerate().map(|(at, line)| format!("{}{line}", prefix(at))).collect();
    lines.join("\n")
}

#[test]
fn no_false_stop_and_no_miss() {
    let mut wrong = Vec::new();
    for (dialect, signal, name) in GENUINE {
        let rules = rules_for(dialect);
        for (case, text, genuine) in CASES {
            if *dialect == "turn" && case.starts_with('B') {
                continue;
            }
            let text = text
                .replace("{s}", signal)
                .replace("{crlf}", &signal.replace('\n', "\r\n"))
                .replace("{q}", &prefixed(signal, |_| "> ".to_owned()))
                .replace("{d}", &prefixed(signal, |_| "+".to_owned()))
                .replace("{g}", &prefixed(signal, |at| format!("docs/a.md:{}:", at + 3)));
            for chunk in [usize::MAX, 1] {
                let found = findings(&rules, text.as_bytes(), chunk);
                let heard = signals(&found);
                let said = heard.iter().any(|signal| *signal.name == **name);
                if said != *genuine || (!genuine && !heard.is_empty()) {
                    wrong.push(format!(
                        "{case} ({dialect}, {chunk})\n  {text:?}\n  {}",
                        show(&found)
                    ));
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{} wrong\n{}", wrong.len(), wrong.join("\n"));
}

#[test]
fn inline_mentions_and_truncated_markers() {
    for (dialect, signal, name) in GENUINE {
        let rules = rules_for(dialect);
        let half = signal.find(name).map_or(signal.len() / 2, |at| at + name.len() / 2);
        let line = signal.lines().nth(usize::from(*dialect == "caw")).unwrap();
        let mention = format!("Later the agent will answer {line} when it is through.");
        let cut = format!("All tests pass.\n\n{}", &signal[..half]);
        for text in [mention, cut] {
            let found = findings(&rules, text.as_bytes(), usize::MAX);
            assert!(signals(&found).is_empty(), "{dialect}: {text:?}: {}", show(&found));
        }
    }
}

#[test]
fn defects_of_the_detection_review() {
    check(DEFECTS);
}

/// Found by the detection review.
const DEFECTS: &[Row<'_>] = &[
    ("a bracket too few", "ralphex", "<<RALPHEX:ALL_TASKS_DONE>>", "!misspelled ALL_TASKS_DONE"),
    ("other brackets", "chorus", "[chorus]COMPLETE[/chorus]", "!misspelled COMPLETE"),
    ("words of a tag in prose", "promise", "I promise COMPLETE coverage", "-"),
    (
        "a task id to fill in",
        "delivery",
        "READY_FOR_REVIEW: TASK_ID",
        "!placeholder READY_FOR_REVIEW",
    ),
    (
        "a date to fill in",
        "caw",
        "---\nSIGNAL: QA_COMPLETE\nTIMESTAMP: YYYY-MM-DDTHH:MM:SSZ\n---",
        "!placeholder QA_COMPLETE",
    ),
    (
        "a verdict with a reason",
        "delivery",
        "HEALTH_AUDIT: UNHEALTHY - db down",
        "HEALTH_AUDIT:UNHEALTHY - db down",
    ),
    ("a padded promise", "promise", "<promise>\nCOMPLETE\n</promise>", "PROMISE=COMPLETE"),
    (
        "axiom's other names",
        "axiom",
        "<axiom>AVA_COMPLETE</axiom>\n<axiom>CONFIG_WRITE</axiom>",
        "AVA_COMPLETE, CONFIG_WRITE",
    ),
    (
        "an element in a question",
        "chorus",
        "<chorus>NEEDS_HELP: <img src=x></chorus>",
        "NEEDS_HELP=<img src=x>",
    ),
    (
        "a question without one",
        "ralphex",
        "<<<RALPHEX:QUESTION>>>\n{\"options\": [1]}\n<<<RALPHEX:END>>>",
        "!missing_field QUESTION",
    ),
    (
        "a question that is no JSON",
        "ralphex",
        "<<<RALPHEX:QUESTION>>>\n{\"question\": }\n<<<RALPHEX:END>>>",
        "!invalid_json QUESTION",
    ),
    (
        "true and a full stop",
        "ralph-status",
        "---RALPH_STATUS---\nSTATUS: COMPLETE\nEXIT_SIGNAL: true.\n---END_RALPH_STATUS---",
        "RALPH_STATUS~coerced",
    ),
    (
        "bold, in a list",
        "ralph-status",
        "---RALPH_STATUS---\n- **STATUS:** COMPLETE\n- **EXIT_SIGNAL:** **true**\n---END_RALPH_STATUS---",
        "RALPH_STATUS~coerced",
    ),
    (
        "yes",
        "ralph-status",
        "---RALPH_STATUS---\nSTATUS: COMPLETE\nEXIT_SIGNAL: yes\n---END_RALPH_STATUS---",
        "!bad_value RALPH_STATUS",
    ),
    (
        "true and a remark",
        "ralph-status",
        "---RALPH_STATUS---\nSTATUS: COMPLETE\nEXIT_SIGNAL: true (all done)\n---END_RALPH_STATUS---",
        "!bad_value RALPH_STATUS",
    ),
    (
        "keys in a list, without emphasis",
        "ralph-status",
        "---RALPH_STATUS---\n- STATUS: COMPLETE\n- EXIT_SIGNAL: true\n---END_RALPH_STATUS---",
        "RALPH_STATUS",
    ),
    (
        "blanks in the opening",
        "ralph-status",
        "--- RALPH_STATUS ---\nSTATUS: COMPLETE\n",
        "!misspelled RALPH_STATUS",
    ),
    (
        "a key instead of it",
        "ralph-status",
        "RALPH_STATUS:\n  STATUS: COMPLETE\n",
        "!misspelled RALPH_STATUS",
    ),
    ("a no-break space behind", "pilot", "{\"v\":2,\"type\":\"status\"}\u{a0}", "!hidden STATUS"),
    (
        "rules on the line of the heading",
        "pilot",
        "=== NAVIGATOR_STATUS ===\nPhase: IMPL\n",
        "!decorated STATUS",
    ),
    (
        "a lone back-quote",
        "delivery",
        "use ` to quote\nREADY_FOR_REVIEW: task-1",
        "READY_FOR_REVIEW:task-1",
    ),
];
