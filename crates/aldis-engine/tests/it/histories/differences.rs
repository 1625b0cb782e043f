//! Where today's machines decide otherwise than 0.1.0 did, and which defect of it demanded that.

/// An iteration ends with a look at the work tree and a decision of its own; the next one starts, or
/// the run is judged, only then. (Missing in 0.1.0's journals: the looks. So a run that 0.1.0 called
/// stagnated waits for one.)
const B4: &str = "mission B4 and attack D18";
/// A checkpoint is accepted from whoever was asked for one.
const B5: &str = "mission B5";
/// A checkpoint no longer resets the count of replies without a signal: the third is reached earlier.
const B6: &str = "mission B6";
/// The first agents start after the experts that the planner created were looked for.
const B11: &str = "mission B11";
/// A signal about another task beside the one that counts is refused in a decision.
const B17C: &str = "mission B17c";
/// Progress that only moves a number is decided about once in ten seconds.
const D6: &str = "attack D6";
/// Decisions that end, refuse, ask or try again name what they rest on, and a refused claim is decided
/// about before the next iteration starts.
const S2_6: &str = "first-use S2-6";
/// A crashed agent is started again after a pause.
const S2_11: &str = "first-use S2-11";
/// The program decided that it took a channel over; today the machine does, with its counters.
const MACHINE: &str = "none";

/// A journal, what differs in it, and the defect. `5: evidence` is a member of the fifth decision that
/// was stored, `5: missing RULE` a decision that is not made today, `today's 5: RULE` one that is made
/// today and was not.
pub(super) const DIFFERENCES: &[(&str, &[&str], &str)] = &[
    ("run-budget", &["today's 3: run/iteration-ended", "today's 7: run/iteration-ended"], B4),
    ("run-cost", &["today's 3: run/iteration-ended"], B4),
    ("run-dead", &["today's 3: run/iteration-ended"], B4),
    ("run-gave-up", &["today's 4: run/iteration-ended"], B4),
    ("run-host", &["today's 4: run/iteration-ended"], B4),
    ("run-iteration-timeout", &["today's 4: run/iteration-ended"], B4),
    ("run-killed", &["today's 3: run/iteration-ended"], B4),
    (
        "run-stagnated",
        &[
            "today's 3: run/iteration-ended",
            "today's 6: run/iteration-ended",
            "today's 9: run/iteration-ended",
            "9: missing run/stagnated",
            "today's 12: run/iteration-ended",
        ],
        B4,
    ),
    ("run-used-up", &["today's 3: run/iteration-ended", "today's 6: run/iteration-ended"], B4),
    ("run-verified", &["today's 3: run/iteration-ended"], B4),
    (
        "delivery-served-repair",
        &[
            "10: missing delivery/signal-refused",
            "today's 10: delivery/unknown-reply",
            "today's 11: delivery/checkpoint-received",
        ],
        B5,
    ),
    (
        "delivery-served-unknown",
        &["4: counters", "5: counters", "6: missing delivery/unknown-reply", "7: evidence"],
        B6,
    ),
    (
        "delivery-planned",
        &["4: missing delivery/agent-started", "today's 6: delivery/agent-started"],
        B11,
    ),
    (
        "delivery-served-experts",
        &["5: missing delivery/agent-started", "today's 7: delivery/agent-started"],
        B11,
    ),
    ("delivery-served-refusals", &["today's 11: delivery/signal-refused"], B17C),
    (
        "run-served-all",
        &[
            "28: missing run/signal-reported",
            "31: missing run/signal-reported",
            "33: missing run/signal-reported",
        ],
        D6,
    ),
    ("delivery-served-exhausted", &["5: evidence", "8: evidence", "14: evidence"], S2_6),
    ("delivery-served-experts", &["15: evidence"], S2_6),
    ("delivery-served-matrix", &["17: evidence"], S2_6),
    ("delivery-served-refusals", &["8: evidence"], S2_6),
    ("delivery-served-refused-work", &["25: evidence"], S2_6),
    ("delivery-served-repair", &["13: evidence", "16: evidence", "18: evidence"], S2_6),
    ("delivery-served-rework", &["28: evidence"], S2_6),
    ("delivery-served-stalled", &["12: evidence"], S2_6),
    ("delivery-served-unheard", &["15: evidence"], S2_6),
    ("delivery-served-unknown", &["12: evidence"], S2_6),
    ("run-gave-up", &["today's 9: run/contradiction"], S2_6),
    ("run-killed-ending", &["today's 5: run/aborted"], S2_6),
    ("run-no-op", &["today's 5: run/claim-refused", "5: evidence"], S2_6),
    ("run-required", &["today's 5: run/claim-refused", "5: evidence"], S2_6),
    (
        "run-resolved",
        &[
            "today's 5: run/claim-refused",
            "5: evidence",
            "today's 10: run/claim-refused",
            "9: evidence",
        ],
        S2_6,
    ),
    (
        "run-served-all",
        &[
            "today's 17: run/check-failed",
            "17: evidence",
            "34: evidence",
            "37: evidence",
            "40: evidence",
        ],
        S2_6,
    ),
    (
        "run-verified",
        &[
            "today's 9: run/check-failed",
            "8: evidence",
            "today's 15: run/check-failed",
            "13: evidence",
        ],
        S2_6,
    ),
    (
        "run-crashed",
        &[
            "4: missing run/crashed",
            "today's 4: run/crash-wait",
            "8: missing run/crashed",
            "today's 8: run/crash-wait",
        ],
        S2_11,
    ),
    ("run-missing", &["2: missing run/crashed", "today's 2: run/crash-wait"], S2_11),
    ("turns-posted", &["1: counters"], MACHINE),
];
