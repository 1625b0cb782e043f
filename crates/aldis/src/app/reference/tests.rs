//! What the reference patterns do, mistakes included. The proof that they are the seeds' own is in
//! the goldens of `aldis-testkit`; here are the cases people ask about, and linearity.

use super::*;
use aldis_signal::dialect::builtins;

/// One line per match: dialect, name, subject or payload, position.
fn render(text: &str) -> String {
    let signals = scan(builtins(), text, &Origin::assistant());
    let lines = signals.iter().map(|signal| {
        let Signal { dialect, name, subject, payload, place, .. } = signal;
        let words = subject.as_ref().or(payload.as_ref()).map_or("-", String::as_str);
        format!("{dialect} {name} {words} {}:{};", place.line, place.column)
    });
    lines.collect::<Vec<_>>().join(" ")
}

#[test]
fn finds_what_the_seeds_find() {
    for (text, want) in [
        ("SIGNAL:\n\tqa_completed", "caw QA_COMPLETE - 1:1;"),
        ("\u{17f}\u{130}gnal:QA_COMPLETE", "caw QA_COMPLETE - 1:1;"),
        ("x\nREADY_FOR_REVIEW:\n\nFiles Modified:", "delivery READY_FOR_REVIEW Files 2:1;"),
        ("CHECKPOINT:\u{1c}t1", "delivery CHECKPOINT t1 1:1;"),
        ("HEALTH_AUDIT: HEALTHY\r\n", ""),
        ("HEALTH_AUDIT: HEALTHY\nx", "delivery HEALTH_AUDIT HEALTHY 1:1;"),
        ("é <chorus>FOO:\n a </chorus>", "chorus FOO a 1:4;"),
        ("<chorus>A: x\ny</chorus>", ""),
        ("NOT_TURN_COMPLETE \u{feff}", "turn TURN_COMPLETE - 1:5;"),
        ("TURN_COMPLETE\u{85}", ""),
        ("```pilot-signal\n{\"v\":2,\"type\":\"exit\"}\n```", "pilot EXIT - 1:1;"),
        ("```pilot-signal\n{\"v\":2,\n``` says LOOP COMPLETE", "pilot EXIT - 3:10;"),
        ("> <promise> COMPLETE</promise>", "promise PROMISE COMPLETE 1:3;"),
        ("`EXIT_SIGNAL:true`", "ralph-status RALPH_STATUS - 1:2;"),
        ("<<<RALPHEX:REVIEW_DONE>>>", "ralphex REVIEW_DONE - 1:1;"),
        ("<<<RALPHEX:QUESTION>>>\nwhy?\n<<<RALPHEX:END>>>", "ralphex QUESTION why? 1:1;"),
        ("<event topic=\"a.b\">\nx</event>", "event EVENT a.b 1:1;"),
        ("<axiom>PENDING</axiom>", "axiom PENDING - 1:1;"),
    ] {
        assert_eq!(render(text), want, "text {text:?}");
    }
}

#[test]
fn meanings_follow_the_dialect() {
    for (text, want) in [
        ("HEALTH_AUDIT: HEALTHY", Meaning::Approved),
        ("HEALTH_AUDIT: UNHEALTHY", Meaning::Rejected),
        ("```pilot-signal\n{\"type\":\"exit\",\"success\":false}```", Meaning::Failed),
        ("<chorus>COMPLETE</chorus>", Meaning::Done),
    ] {
        let signals = scan(builtins(), text, &Origin::assistant());
        assert_eq!(signals.first().map(|signal| signal.meaning), Some(want), "text {text:?}");
    }
}

#[test]
fn strips_like_seed_003() {
    for (text, want) in [
        ("Here's my analysis.\n\nTURN_COMPLETE", "Here's my analysis."),
        ("  code\nTURN_COMPLETE TURN_COMPLETE\n", "code\nTURN_COMPLETE"),
        ("nothing here ", "nothing here"),
        ("xTURN_COMPLETE", "x"),
    ] {
        assert_eq!(strip_turn(text), want, "text {text:?}");
    }
}

#[test]
fn every_pattern_compiles() {
    assert_eq!(python::CAW_PATTERNS.len(), 10);
    assert_eq!(python::DELIVERY_PATTERNS.len(), 19);
    for (name, compiled) in [
        ("axiom", &tags::AXIOM),
        ("chorus", &tags::CHORUS),
        ("event", &tags::EVENT),
        ("pilot", &tags::PILOT),
        ("promise", &tags::PROMISE),
        ("ralph-status", &tags::RALPH_STATUS),
        ("ralphex", &tags::RALPHEX),
        ("ralphex text", &tags::RALPHEX_TEXT),
    ] {
        assert!(compiled.is_some(), "pattern `{name}`");
    }
}

/// Megabytes that take the JavaScript originals hours. A test that backtracks does not end.
#[test]
fn stays_linear_where_the_originals_do_not() {
    let blanks = " ".repeat(1 << 20);
    for text in [
        "<chorus>A: ".repeat(1 << 17),
        format!("<chorus>A:{blanks}"),
        format!("TURN_COMPLETE{blanks}x"),
    ] {
        assert_eq!(render(&text), "");
        assert_eq!(strip_turn(&text).len(), text.trim_matches(' ').len());
    }
}
