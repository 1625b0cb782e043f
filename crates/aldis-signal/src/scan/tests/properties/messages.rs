//! Messages made of whole signals, fragments of them, everything that quotes or hides text, and
//! prose, so that the interesting boundaries are met often.

use std::fmt;
use std::ops::Deref;

use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::{Index, select};

use super::super::table::{EXIT, QA, RALPH};

/// A message that is printed in a form one can read and paste.
#[derive(Clone)]
pub(super) struct Text(pub(super) Vec<u8>);

impl fmt::Debug for Text {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "b\"{}\"", self.0.escape_ascii())
    }
}

impl Deref for Text {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.0
    }
}

/// Genuine signals and well-known mistakes, of all dialects.
pub(super) const SIGNALS: &[&str] = &[
    QA,
    EXIT,
    RALPH,
    "---\nSIGNAL: AUTO_COMPLETE\n---",
    "---\nsignal:init_complete\nstatus: complete\n---",
    "---\nSIGNAL: PHASE_ERROR\nERROR: no disk\nRECOVERABLE: true\n---",
    "---\nSIGNAL: QA_COMPLETE\nSTATUS: error\n---",
    "---\nSIGNAL: QA_COMPLETE\nCOLOUR: red\n---",
    "---\nSIGNAL: QA_COMPLETE\n\n---",
    "---\nSIGNAL: QA_COMPLET\n---",
    "---\nSIGNAL: QA_COMPLETE\nTIMESTAMP: [ISO8601]\n---",
    "SIGNAL: QA_COMPLETE",
    "READY_FOR_REVIEW: task-1",
    "READY_FOR_REVIEW:task-2\nFiles Modified:\n- a.rs\n- b.rs\nSummary: fine",
    "REVIEW_FAILED: t1\nIssues Found:\n- src/a.rs:12: off by one\nPriority: HIGH",
    "REVIEW_PASSED: [task_id]",
    "READY FOR REVIEW: t1",
    "AUDIT_PASSED task-9",
    "HEALTH_AUDIT: HEALTHY",
    "REMEDIATION_COMPLETE",
    "SEEKING_DIVINE_CLARIFICATION\nTask: t1\nQuestion: which?",
    "FILE CONFLICT: src/main.rs\nCan Wait: YES",
    "FILE CONFLICT: ../../etc/passwd",
    "EXPERT_REQUEST\nTarget Agent: dba\nRequest Type: decision\nContext Snapshot: here\n\
     ---DELEGATION PROMPT START---\nREVIEW_PASSED: t9\n---DELEGATION PROMPT END---",
    "EXPERT_REQUEST\nTarget Agent: dba\n---DELEGATION PROMPT START---\n",
    "<chorus>COMPLETE</chorus>",
    "<chorus>BLOCKED: no key</chorus>",
    "<chorus>PROGRESS: 45</chorus>",
    "<chorus>NEEDS_HELP: which\nof the two?</chorus>",
    "<chorus> COMPLETE </chorus>",
    "<chorus>complete</chorus>",
    "<chorus>BLOCKED: <chorus>COMPLETE</chorus></chorus>",
    "<chorus>BLOCKED: reason</chorus>",
    "TURN_COMPLETE",
    "NOT_TURN_COMPLETE",
    "**TURN_COMPLETE**",
    "```pilot-signal\n{\"v\":2,\"type\":\"status\",\"phase\":\"impl\",\"progress\":40}\n```",
    "```pilot-signal {\"v\":2,\"type\":\"exit\",\"success\":false}\n```",
    "```pilot-signal\n{\"v\":2,\"exit_signal\":\"yes\"}\n```",
    "```pilot-signal\n{\"v\":2,}\n```",
    "{\"v\":2,\"type\":\"status\",\"progress\":5}",
    "====\nNAVIGATOR_STATUS\n====\nPhase: IMPL\nIteration: 2/5\nProgress: 50%\nEXIT_SIGNAL: true\n====",
    "PHASE: IMPL → VERIFY",
    "EXIT_SIGNAL: true",
    "LOOP COMPLETE",
    "STAGNATION DETECTED: same state",
    "<promise>COMPLETE</promise>",
    "<promise>complete</promise>",
    "<<<RALPHEX:ALL_TASKS_DONE>>>",
    "<<<RALPHEX:QUESTION>>>\nwhich?\n<<<RALPHEX:END>>>",
    "<event topic=\"build.done\">all green</event>",
    "<axiom>DISCOVERY_LOCAL: the cache is warm</axiom>",
    "QA_COMPLETED",
    "Q\u{410}_COMPLETE",
    "READY_FOR_\u{200b}REVIEW: t1",
];

/// What stands around signals: delimiters, quotation, blanks, things that hide, words that matter.
const AROUND: &[&[u8]] = &[
    b"\n",
    b"\n",
    b"\n",
    b"\n\n",
    b"\r\n",
    b"\r",
    b" ",
    b"  ",
    b"    ",
    b"\t",
    b"\0",
    b"---",
    b"---\n",
    b"\n---\n",
    b"====\n",
    "━━━━\n".as_bytes(),
    b"SIGNAL:",
    b"TOKEN: k7Qd\n",
    b"```",
    b"\n```\n",
    b"\n````\n",
    b"```rust\n",
    b"  ```\n",
    b"~~~",
    b"\n~~~\n",
    b"~~~~\n",
    b"`",
    b"``",
    b"<!--",
    b"-->",
    b"<!-",
    b"->",
    b"\n> ",
    b"> ",
    b"| ",
    b"\n| a | ",
    b"+",
    b"- ",
    b"1. ",
    b"# ",
    b"**",
    b"\"",
    b"'",
    "\u{201c}".as_bytes(),
    "\u{201d}".as_bytes(),
    b"(",
    b")",
    b".",
    b". ",
    b", ",
    b":",
    b": ",
    b"! ",
    b"? ",
    b"src/a.rs:12:",
    b"a.md-3-",
    b"  12\t",
    "12\u{2192}".as_bytes(),
    b"\x1b[31m",
    b"\x1b[0m",
    b"\x1b[1;32m",
    b"\x1b[8m",
    b"\x1b[28m",
    b"\x1b[2K",
    b"\x1b[1A",
    b"\x1b[",
    b"\x1b",
    b"\x1b]8;;http://x\x1b\\",
    b"\x1b]0;t\x07",
    b"\x9b",
    b"\x08",
    b"\xEF\xBB\xBF",
    b"\xFF",
    b"\xC3",
    b"\xE2\x80",
    b"\xF0\x9F\x98",
    b"\x80",
    "\u{200b}".as_bytes(),
    "\u{202e}".as_bytes(),
    "\u{feff}".as_bytes(),
    "é".as_bytes(),
    "😀".as_bytes(),
    b"</chorus>",
    b"<chorus>",
    b"<chorus",
    b"</promise>",
    b"<promise>",
    b"<<<RALPHEX:",
    b">>>",
    b"<event topic=\"",
    b"\">",
    b"</event>",
    b"---END_RALPH_STATUS---",
    b"---DELEGATION PROMPT START---\n",
    b"---DELEGATION PROMPT END---\n",
    b"```pilot-signal\n",
    b"{\"v\":",
    b"{",
    b"}",
    b"Summary: fine\n",
    b"Files Modified:\n- a.rs\n",
];

/// Prose, with the words that make a claim a mention or take it back.
const PROSE: &[&str] = &[
    "I changed the parser and all tests pass",
    "I will print",
    "The agent must emit the marker ",
    "Do not output ",
    "For example: ",
    "Here is the signal: ",
    "Once the build is green, reply with ",
    "Now I am done. ",
    "Wait, ",
    "\nWait: one test still fails.\n",
    "\nCorrection: ",
    "Actually, that was premature.",
    "\nThe build is red.\n",
    "The task is not complete.",
    "The lint failure is unrelated.",
    "Scratch that.",
    "the expected format looks like",
    "Größe und Maß",
    "The end",
];

fn fragment() -> impl Strategy<Value = Vec<u8>> {
    (select(SIGNALS), any::<Index>(), any::<Index>()).prop_map(|(signal, one, other)| {
        let (one, other) = (one.index(signal.len() + 1), other.index(signal.len() + 1));
        signal.as_bytes()[one.min(other)..one.max(other)].to_vec()
    })
}

/// One piece of a message. Long lines are rare because they are slow.
pub(super) fn piece() -> impl Strategy<Value = Vec<u8>> {
    let own_line = select(SIGNALS).prop_map(|signal| format!("\n{signal}\n").into_bytes());
    let crlf = select(SIGNALS).prop_map(|signal| signal.replace('\n', "\r\n").into_bytes());
    let long = (prop_oneof![Just(b'x'), Just(b' '), Just(b'-'), Just(b'`')], 1_000..70_000_usize)
        .prop_map(|(byte, length)| std::iter::repeat_n(byte, length).collect::<Vec<u8>>());
    prop_oneof![
        60 => own_line,
        20 => select(SIGNALS).prop_map(|signal| signal.as_bytes().to_vec()),
        15 => crlf,
        40 => fragment(),
        150 => select(AROUND).prop_map(<[u8]>::to_vec),
        40 => select(PROSE).prop_map(|prose| prose.as_bytes().to_vec()),
        8 => vec(any::<u8>(), 1..8),
        1 => long,
    ]
}

pub(super) fn message() -> impl Strategy<Value = Text> {
    vec(piece(), 0..=40).prop_map(|pieces| Text(pieces.concat()))
}
