//! `spec/5`: how pilot signals and their older forms are written.

use super::*;

pub(super) const ROWS: &[&[Row<'_>]] = &[PILOT, LETTERS, LEGACY];

#[test]
fn spec_5_pilot() {
    check(PILOT);
}

#[test]
fn spec_0_letters_and_samples_of_pilot() {
    check(LETTERS);
}

#[test]
fn spec_5_pilot_legacy() {
    check(LEGACY);
}

const PILOT: &[Row<'_>] = &[
    (
        "whole",
        "pilot",
        "x\n```pilot-signal\n{\"v\":2,\"type\":\"status\",\"progress\":40}\n```\ny",
        "STATUS@40",
    ),
    (
        "a member that is null is absent",
        "pilot",
        "```pilot-signal\n{\"v\":2,\"type\":\"exit\",\"exit_signal\":true,\"success\":true,\"reason\":null}\n```",
        "EXIT",
    ),
    (
        "whatever member is null",
        "pilot",
        "```pilot-signal\n{\"v\":null,\"type\":null,\"phase\":null,\"progress\":null,\"indicators\":null,\"x\":null}\n```",
        "STATUS",
    ),
    ("JSON on the info line", "pilot", "```pilot-signal {\"v\":2,\"progress\":1}\n```", "STATUS@1"),
    (
        "closed on the JSON line",
        "pilot",
        "```pilot-signal\n{\"v\":2,\"progress\":2}```",
        "STATUS@2~*",
    ),
    ("all on one line", "pilot", "```pilot-signal {\"v\":2,\"progress\":2}```", "STATUS@2~*"),
    ("indented", "pilot", "- a\n  ```pilot-signal\n  {\"v\":2,\"progress\":3}\n  ```", "STATUS@3"),
    (
        "behind a list mark",
        "pilot",
        "- ```pilot-signal\n  {\"v\":2,\"progress\":3}\n  ```",
        "STATUS@3",
    ),
    ("pretty", "pilot", "```pilot-signal\n{\n  \"v\": 2,\n  \"progress\": 4\n}\n```", "STATUS@4"),
    ("CRLF", "pilot", "```pilot-signal\r\n{\"v\":2,\"progress\":5}\r\n```\r\n", "STATUS@5"),
    ("a bare line", "pilot", "x\n{\"v\":2,\"progress\":6}\ny", "STATUS@6"),
    ("a bare line, prose after", "pilot", "{\"v\":2,\"progress\":6} is it", "-"),
    ("a bare line in a fence", "pilot", "```json\n{\"v\":2,\"progress\":6}\n```", "-"),
    (
        "opened again",
        "pilot",
        "```pilot-signal\n{\"v\":2,\"progress\":7}\n\n```pilot-signal\n{\"v\":2,\"progress\":8}\n```",
        "STATUS@7~*, STATUS@8",
    ),
    ("never closed", "pilot", "```pilot-signal\n{\"v\":2,\"progress\":7}\n", "!unclosed STATUS"),
    ("no v, no type", "pilot", "```pilot-signal\n{\"progress\":9}\n```", "STATUS@9"),
    (
        "a phase",
        "pilot",
        "```pilot-signal\n{\"v\":2,\"type\":\"phase\",\"phase\":\"impl\"}\n```",
        "PHASE",
    ),
    (
        "stagnation",
        "pilot",
        "```pilot-signal\n{\"v\":2,\"type\":\"stagnation\"}\n```",
        "STAGNATION",
    ),
    (
        "another type",
        "pilot",
        "```pilot-signal\n{\"v\":2,\"type\":\"party\"}\n```",
        "PARTY~unknown_type",
    ),
    (
        "another version",
        "pilot",
        "```pilot-signal\n{\"v\":3,\"progress\":1}\n```",
        "STATUS@1~unknown_version",
    ),
    ("clamped", "pilot", "```pilot-signal\n{\"v\":2,\"progress\":140}\n```", "STATUS@100~clamped"),
    (
        "a numeric string",
        "pilot",
        "```pilot-signal\n{\"v\":2,\"progress\":\"45\"}\n```",
        "STATUS@45~coerced",
    ),
    ("a fraction", "pilot", "```pilot-signal\n{\"v\":2,\"progress\":45.0}\n```", "STATUS@45~*"),
    (
        "a true fraction",
        "pilot",
        "```pilot-signal\n{\"v\":2,\"progress\":45.4}\n```",
        "STATUS@45~coerced",
    ),
    ("zero", "pilot", "```pilot-signal\n{\"v\":2,\"progress\":0}\n```", "STATUS@0"),
    (
        "an indicator",
        "pilot",
        "```pilot-signal\n{\"v\":2,\"indicators\":{\"a\":1,\"b\":true}}\n```",
        "STATUS~indicator_not_bool",
    ),
    (
        "exit is no number",
        "pilot",
        "```pilot-signal\n{\"v\":2,\"exit_signal\":1}\n```",
        "-bad_value",
    ),
    (
        "success is no string",
        "pilot",
        "```pilot-signal\n{\"v\":2,\"type\":\"exit\",\"success\":\"yes\"}\n```",
        "-bad_value",
    ),
    ("a key twice", "pilot", "```pilot-signal\n{\"v\":2,\"v\":2}\n```", "-invalid_json"),
    (
        "a nested key twice",
        "pilot",
        "```pilot-signal\n{\"v\":2,\"x\":{\"a\":1,\"a\":2}}\n```",
        "-invalid_json",
    ),
    ("two values", "pilot", "```pilot-signal\n{\"v\":2}\n{\"v\":2}\n```", "-invalid_json"),
    ("an array", "pilot", "```pilot-signal\n[1]\n```", "-invalid_json"),
    ("empty", "pilot", "```pilot-signal\n```", "-invalid_json"),
    ("beyond a double", "pilot", "```pilot-signal\n{\"v\":2,\"x\":1e999}\n```", "-invalid_json"),
    (
        "a lone surrogate",
        "pilot",
        "```pilot-signal\n{\"v\":2,\"reason\":\"\\ud800\"}\n```",
        "-invalid_json",
    ),
    ("another fence name", "pilot", "```pilot-signals\n{\"v\":2}\n```", "-"),
    ("the same version", "pilot", "{\"v\":2.0,\"progress\":1}", "STATUS@1"),
    ("nearly the same version", "pilot", "{\"v\":2.5,\"progress\":1}", "STATUS@1~unknown_version"),
];

/// `spec/0`, rules 4, 5 and 9: what cannot be seen as it is, and what was not filled in.
const LETTERS: &[Row<'_>] = &[
    (
        "zero-width behind the JSON",
        "pilot",
        "```pilot-signal\n{\"v\":2,\"progress\":1}\u{200b}\n```",
        "STATUS@1",
    ),
    (
        "zero-width behind the info string",
        "pilot",
        "```pilot-signal\u{200b}\n{\"v\":2,\"progress\":1}\n```",
        "STATUS@1",
    ),
    (
        "zero-width behind lines of JSON",
        "pilot",
        "```pilot-signal\u{feff}\n{ \u{200d}\r\n\"v\": 2,\u{200b}\u{2060} \r\n\"progress\": 4\n}\u{200b}\n```",
        "STATUS@4",
    ),
    ("zero-width behind a bare line", "pilot", "{\"v\":2,\"progress\":1}\u{200b}", "STATUS@1"),
    (
        "zero-width between members",
        "pilot",
        "```pilot-signal\n{\"v\":2,\u{200b}\"progress\":1}\n```",
        "!invalid_json STATUS",
    ),
    (
        "zero-width behind what is broken",
        "pilot",
        "```pilot-signal\n{\"v\":2,\"reason\":\"a\u{200b}\n\"}\n```",
        "!invalid_json STATUS",
    ),
    (
        "zero-width in a reason is kept",
        "pilot",
        "{\"v\":2,\"reason\":\"a\u{200b}b\",\"progress\":1}",
        "STATUS@1",
    ),
    ("a look-alike type", "pilot", "{\"v\":2,\"type\":\"\u{435}xit\"}", "!hidden STATUS"),
    ("a bidirectional type", "pilot", "{\"v\":2,\"type\":\"\u{202e}exit\"}", "!hidden STATUS"),
    (
        "an escaped control in a type",
        "pilot",
        "{\"v\":2,\"type\":\"ex\\u0000it\"}",
        "!hidden STATUS",
    ),
    ("a zero-width key", "pilot", "{\"v\":2,\"ty\u{200b}pe\":\"exit\"}", "!hidden STATUS"),
    ("an escaped zero-width key", "pilot", "{\"v\":2,\"ty\\u200bpe\":\"exit\"}", "!hidden STATUS"),
    (
        "a look-alike key",
        "pilot",
        "{\"v\":2,\"type\":\"exit\",\"suc\u{441}ess\":false}",
        "!hidden EXIT",
    ),
    ("an unknown key", "pilot", "{\"v\":2,\"sucess\":false,\"progress\":1}", "STATUS@1"),
    (
        "other letters deeper inside",
        "pilot",
        "{\"v\":2,\"indicators\":{\"gr\u{fc}n\":true},\"x\":{\"\u{435}\":1},\"progress\":1}",
        "STATUS@1",
    ),
    ("[reason]", "pilot", "{\"v\":2,\"reason\":\"[reason]\"}", "!placeholder STATUS"),
    ("reason", "pilot", "{\"v\":2,\"reason\":\"reason\"}", "!placeholder STATUS"),
    ("a reason", "pilot", "{\"v\":2,\"reason\":\"the reason\",\"progress\":1}", "STATUS@1"),
    ("{message}", "pilot", "{\"v\":2,\"message\":\"{message}\"}", "!placeholder STATUS"),
    ("[phase]", "pilot", "{\"v\":2,\"phase\":\"[phase]\"}", "!placeholder STATUS"),
    ("{type}", "pilot", "{\"v\":2,\"type\":\"{type}\"}", "!placeholder STATUS"),
    ("[token]", "pilot", "{\"v\":2,\"token\":\"[token]\"}", "!placeholder STATUS"),
    (
        "brackets in a message",
        "pilot",
        "{\"v\":2,\"message\":\"[a] b\",\"progress\":1}",
        "STATUS@1",
    ),
];

#[test]
fn pilot_depth() {
    for (depth, taken) in [(32, true), (33, false)] {
        let nested = format!("{}{}", "[".repeat(depth - 1), "]".repeat(depth - 1));
        let text = format!("```pilot-signal\n{{\"v\":2,\"x\":{nested}}}\n```");
        check(&[("depth", "pilot", &text, if taken { "STATUS" } else { "-invalid_json" })]);
    }
}

const LEGACY: &[Row<'_>] = &[
    (
        "a block",
        "pilot",
        "NAVIGATOR_STATUS\n====\nPhase: IMPL\nIteration: 2/5\nProgress: 30%\n====",
        "STATUS@30",
    ),
    (
        "a block with heavy rules",
        "pilot",
        "NAVIGATOR_STATUS\n━━━━\nPhase: IMPL\nProgress: 30%\n━━━━",
        "STATUS@30",
    ),
    (
        "clamped",
        "pilot",
        "NAVIGATOR_STATUS\n====\nPhase: IMPL\nProgress: 130%\n====",
        "STATUS@100~clamped",
    ),
    (
        "not a number",
        "pilot",
        "NAVIGATOR_STATUS\n====\nPhase: IMPL\nProgress: half\n====",
        "STATUS~legacy_invalid:progress",
    ),
    (
        "words behind the progress",
        "pilot",
        "NAVIGATOR_STATUS\n====\nProgress: 45% done\n====",
        "STATUS~legacy_invalid:progress",
    ),
    (
        "two percent signs",
        "pilot",
        "NAVIGATOR_STATUS\n====\nProgress: 45%%\n====",
        "STATUS~legacy_invalid:progress",
    ),
    (
        "not written as a percentage",
        "pilot",
        "NAVIGATOR_STATUS\n====\nProgress: 1e1\n====",
        "STATUS~legacy_invalid:progress",
    ),
    (
        "the heading between the rules",
        "pilot",
        "====\nNAVIGATOR_STATUS\nPhase: IMPL\nProgress: 30%\n====",
        "STATUS@30",
    ),
    (
        "a rule above and one below",
        "pilot",
        "====\nNAVIGATOR_STATUS\n====\nProgress: 30%\n====",
        "STATUS@30",
    ),
    ("no percent sign", "pilot", "NAVIGATOR_STATUS\n====\nProgress: 45\n====", "STATUS@45"),
    ("a fraction", "pilot", "NAVIGATOR_STATUS\n====\nProgress: 99.9 %\n====", "STATUS@99"),
    ("below zero", "pilot", "NAVIGATOR_STATUS\n====\nProgress: -7%\n====", "STATUS@0~clamped"),
    (
        "no phase",
        "pilot",
        "NAVIGATOR_STATUS\n====\nPhase: \nProgress: 5%\n====",
        "STATUS@5~legacy_invalid:phase",
    ),
    (
        "zero-width behind values of a block",
        "pilot",
        "NAVIGATOR_STATUS\n====\nIteration: 2/5\u{200b}\nProgress: 30%\u{200b}\nEXIT_SIGNAL: true\u{feff}\n====",
        "STATUS@30",
    ),
    (
        "a block not filled in",
        "pilot",
        "NAVIGATOR_STATUS\n====\nPhase: {phase}\nEXIT_SIGNAL: true\n====\nx",
        "!placeholder STATUS",
    ),
    ("a transition", "pilot", "PHASE: IMPL → VERIFY", "PHASE"),
    ("a transition not filled in", "pilot", "PHASE: [A] → [B]", "!placeholder PHASE"),
    ("a transition to nothing", "pilot", "PHASE: IMPL →", "!missing_field PHASE"),
    ("a transition from nothing", "pilot", "PHASE: -> IMPL", "!missing_field PHASE"),
    ("a transition in prose", "pilot", "PHASE: we go from A → B", ""),
    ("an exit", "pilot", "EXIT_SIGNAL: true", "EXIT"),
    ("an exit with another value", "pilot", "EXIT_SIGNAL: yes", "!bad_value EXIT"),
    ("an exit without a value", "pilot", "EXIT_SIGNAL:", "!missing_field EXIT"),
    ("an exit not filled in", "pilot", "EXIT_SIGNAL: [true or false]", "!placeholder EXIT"),
    ("what an exit is", "pilot", "EXIT_SIGNAL: says that all is done", ""),
    ("another value, quoted", "pilot", "> EXIT_SIGNAL: yes\n```\nEXIT_SIGNAL: yes\n```", ""),
    ("no exit", "pilot", "EXIT_SIGNAL: false", ""),
    ("a banner", "pilot", "LOOP COMPLETE", "EXIT"),
    ("another banner", "pilot", "TASK MODE COMPLETE", "EXIT"),
    ("a hint", "pilot", "STAGNATION DETECTED", "STAGNATION"),
    ("a hint with text", "pilot", "STAGNATION DETECTED - same state", "STAGNATION=same state"),
    ("a hint not filled in", "pilot", "STAGNATION DETECTED: [reason]", "!placeholder STAGNATION"),
    ("a hint with the sample", "pilot", "STAGNATION DETECTED - reason", "!placeholder STAGNATION"),
    ("a hint with a colon", "pilot", "STAGNATION DETECTED: same state", "STAGNATION=same state"),
    ("a banner with text", "pilot", "LOOP COMPLETE - all done", "-"),
    ("a banner in prose", "pilot", "The LOOP COMPLETE banner is old.", "-"),
    ("an exit in prose", "pilot", "I set EXIT_SIGNAL: true there.", "-"),
    ("a heading in prose", "pilot", "NAVIGATOR_STATUS is old.", "-"),
    ("a banner in a fence", "pilot", "```\nLOOP COMPLETE\n```\nx", "-"),
    (
        "beside v2",
        "pilot",
        "LOOP COMPLETE\n\n```pilot-signal\n{\"v\":2,\"progress\":5}\n```",
        "=STATUS@5",
    ),
    ("before v2", "pilot", "{\"v\":2,\"progress\":5}\n\nLOOP COMPLETE", "=STATUS@5"),
    ("beside broken v2", "pilot", "LOOP COMPLETE\n\n```pilot-signal\n{\"v\":2,\n```", "=EXIT"),
];
