//! Who said it (`spec/0`, rule 1), and run tokens.

use super::*;

/// One genuine signal of each built-in dialect, with what is heard.
const GENUINE: &[(&str, &str, &str)] = &[
    ("caw", "{qa}", "QA_COMPLETE"),
    ("delivery", "READY_FOR_REVIEW: t-1", "READY_FOR_REVIEW:t-1"),
    ("chorus", "<chorus>COMPLETE</chorus>", "COMPLETE"),
    ("turn", "Over. TURN_COMPLETE", "TURN_COMPLETE"),
    ("pilot", "{exit}", "EXIT"),
    ("promise", "<promise>COMPLETE</promise>", "PROMISE=COMPLETE"),
    ("ralph-status", "{ralph}", "RALPH_STATUS"),
    ("ralphex", "<<<RALPHEX:REVIEW_DONE>>>", "REVIEW_DONE"),
    ("event", "<event topic=\"build.done\">ok</event>", "EVENT:build.done=ok"),
    ("axiom", "<axiom>COMPLETE</axiom>", "COMPLETE"),
];

#[test]
fn only_the_agent_signals() {
    assert_eq!(GENUINE.len(), builtins().len());
    for (dialect, text, want) in GENUINE {
        let (rules, text) = (rules_for(dialect), fill(text));
        for origin in [Origin::assistant(), Origin::new(Role::Subagent)] {
            let found = scan(&rules, text.as_bytes(), &origin);
            assert!(matches(&found, want), "{dialect} {origin:?}: {}", show(&found));
        }
        for origin in [
            Origin::new(Role::User),
            Origin::new(Role::Tool),
            Origin::new(Role::System),
            Origin::new(Role::Host),
            Origin::assistant().in_sidechain(),
            Origin::assistant().dead("rewound"),
            Origin::new(Role::Subagent).dead("aborted"),
        ] {
            let found = scan(&rules, text.as_bytes(), &origin);
            let name = want.split([':', '=']).next().unwrap();
            let want = format!("!untrusted_origin {name}");
            assert!(matches(&found, &want), "{dialect} {origin:?}: {}", show(&found));
        }
    }
}

/// Texts without a token, with the right one and with a wrong one.
const TOKENS: &[(&str, &str, &str, &str)] = &[
    (
        "caw",
        "---\nSIGNAL: QA_COMPLETE\n---",
        "---\nSIGNAL: QA_COMPLETE\nTOKEN: k7f3\n---",
        "---\nSIGNAL: QA_COMPLETE\nTOKEN: zzzz\n---",
    ),
    (
        "delivery",
        "READY_FOR_REVIEW: t-1\n\nSummary: x",
        "READY_FOR_REVIEW: t-1\n\nTOKEN: k7f3\nSummary: x",
        "READY_FOR_REVIEW: t-1\n\nTOKEN: zzzz\nSummary: x",
    ),
    (
        "chorus",
        "<chorus>BLOCKED: no db</chorus>",
        "<chorus>BLOCKED: #k7f3 no db</chorus>",
        "<chorus>BLOCKED: #zzzz no db</chorus>",
    ),
    (
        "chorus",
        "<chorus>COMPLETE</chorus>",
        "<chorus>COMPLETE: #k7f3</chorus>",
        "<chorus>COMPLETE: #zzzz</chorus>",
    ),
    (
        "axiom",
        "<axiom>COMPLETE</axiom>",
        "<axiom>COMPLETE: #k7f3</axiom>",
        "<axiom>COMPLETE: #zzzz</axiom>",
    ),
    (
        "pilot",
        "```pilot-signal\n{\"v\":2,\"type\":\"exit\"}\n```",
        "```pilot-signal\n{\"v\":2,\"type\":\"exit\",\"token\":\"k7f3\"}\n```",
        "```pilot-signal\n{\"v\":2,\"type\":\"exit\",\"token\":\"zzzz\"}\n```",
    ),
];

#[test]
fn run_tokens() {
    for (dialect, without, right, wrong) in TOKENS {
        let rules = rules_for(dialect);
        // Says how the signal came, if it counts.
        let hear = |text: &str, token: Token| {
            let mut found = Vec::new();
            let mut scanner = Scan::new(&rules).token(token).stream();
            scanner.push(text.as_bytes(), &mut |finding| found.push(finding));
            scanner.finish(&mut |finding| found.push(finding));
            let refused = misses(&found).iter().any(|miss| miss.reason == Reason::WrongToken);
            assert_eq!(found.len(), 1, "{text:?}: {}", show(&found));
            (signals(&found).first().map(|signal| signal.via), refused)
        };
        let accept = || Token::Accept("k7f3".to_owned());
        let require = || Token::Require("k7f3".to_owned());
        assert_eq!(hear(without, Token::Off), (Some(Via::Said), false), "{without:?}, off");
        assert_eq!(hear(without, accept()), (Some(Via::Said), false), "{without:?}, accepted");
        assert_eq!(hear(right, accept()), (Some(Via::Token), false), "{right:?}, accepted");
        assert_eq!(hear(wrong, accept()), (None, true), "{wrong:?}, accepted");
        assert_eq!(hear(without, require()), (None, true), "{without:?}, required");
        assert_eq!(hear(right, require()), (Some(Via::Token), false), "{right:?}, required");
        assert_eq!(hear(wrong, require()), (None, true), "{wrong:?}, required");
    }
}

#[test]
fn a_token_is_no_part_of_the_payload() {
    let rules = rules_for("chorus");
    let text = b"<chorus>BLOCKED: #k7f3 no db</chorus>";
    let mut found = Vec::new();
    let token = Token::Accept("k7f3".to_owned());
    let mut scanner = Scan::new(&rules).token(token).stream();
    scanner.push(text, &mut |finding| found.push(finding));
    scanner.finish(&mut |finding| found.push(finding));
    assert_eq!(show(&found), "BLOCKED=no db");
}
