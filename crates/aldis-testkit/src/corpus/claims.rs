//! Well-formed signals of every built-in dialect, written the way agents write them.

use super::Expected;
use super::rng::Rng;

/// Every built-in dialect.
pub(super) const ALL: &[&str] = &[
    "caw",
    "delivery",
    "chorus",
    "turn",
    "pilot",
    "promise",
    "ralph-status",
    "ralphex",
    "event",
    "axiom",
];

/// Dialects whose signals may stand anywhere in a line.
pub(super) const TAGS: &[&str] = &["chorus", "promise", "ralphex", "event", "axiom"];

/// A signal as it must be written.
#[derive(Clone, Debug)]
pub(super) struct WrittenSignal {
    /// The words.
    pub(super) text: String,
    /// The part by which it is recognised; it occurs in `text` first in its own role.
    pub(super) key: &'static str,
    /// What must be found.
    pub(super) expected: Expected,
}

impl WrittenSignal {
    /// Returns the text with the key replaced.
    pub(super) fn with_key(&self, key: &str) -> String {
        self.text.replacen(self.key, key, 1)
    }
}

/// Phases of caw with their completion and what comes next.
pub(super) const PHASES: &[(&str, &str, &str)] = &[
    ("EXPANSION_COMPLETE", "expansion", "init"),
    ("INIT_COMPLETE", "init", "planning"),
    ("PLANNING_COMPLETE", "planning", "execution"),
    ("EXECUTION_COMPLETE", "execution", "qa"),
    ("QA_COMPLETE", "qa", "review"),
    ("REVIEW_COMPLETE", "review", "fix"),
    ("FIX_COMPLETE", "fix", "check"),
    ("CHECK_COMPLETE", "check", "reflect"),
    ("REFLECT_COMPLETE", "reflect", "none"),
    ("AUTO_COMPLETE", "reflect", "none"),
];

pub(super) fn time(rng: &mut Rng) -> String {
    format!(
        "2026-{:02}-{:02}T{:02}:{:02}:{:02}Z",
        rng.between(1, 13),
        rng.between(1, 29),
        rng.below(24),
        rng.below(60),
        rng.below(60)
    )
}

/// A task id that is one.
pub(super) fn id(rng: &mut Rng) -> String {
    let number = rng.between(1, 400);
    match rng.below(5) {
        0 => format!("task-{number}"),
        1 => format!("TASK-{number}"),
        2 => format!("{number}"),
        3 => format!("auth.login_{number}"),
        _ => format!("{}-{number}", rng.pick(&["api", "ui", "db", "infra"])),
    }
}

/// A claim that work is done, approved or handed over; an event for the dialect that has no claims.
pub(super) fn done(rng: &mut Rng, dialect: &str) -> WrittenSignal {
    match dialect {
        "caw" => caw(rng),
        "delivery" => {
            let names = ["READY_FOR_REVIEW", "REVIEW_PASSED", "AUDIT_PASSED"];
            delivery(rng, &names)
        }
        "chorus" | "axiom" => {
            let name = rng.pick(&["COMPLETE", "COMPLETE", "RESOLVED"]);
            let text = format!("<{dialect}>{name}</{dialect}>");
            WrittenSignal { text, key: name, expected: Expected::new(name) }
        }
        "turn" => {
            let name = "TURN_COMPLETE";
            WrittenSignal { text: name.to_owned(), key: name, expected: Expected::new(name) }
        }
        "pilot" => pilot(rng, true),
        "promise" => WrittenSignal {
            text: "<promise>COMPLETE</promise>".to_owned(),
            key: "COMPLETE",
            expected: Expected::new("PROMISE"),
        },
        "ralph-status" => ralph_status(rng),
        "ralphex" => {
            let names = ["ALL_TASKS_DONE", "REVIEW_DONE", "CODEX_REVIEW_DONE", "PLAN_READY"];
            let name = rng.pick(&names);
            let text = format!("<<<RALPHEX:{name}>>>");
            WrittenSignal { text, key: name, expected: Expected::new(name) }
        }
        _ => event(rng),
    }
}

/// Any signal of the dialect.
pub(super) fn any(rng: &mut Rng, dialect: &str) -> WrittenSignal {
    if rng.chance(60) {
        return done(rng, dialect);
    }
    match dialect {
        "delivery" => {
            let names = [
                "TASK_INCOMPLETE",
                "INFRA_BLOCKED",
                "REVIEW_FAILED",
                "AUDIT_FAILED",
                "AUDIT_BLOCKED",
                "EXPANDED_TASK_SPECIFICATION",
                "CHECKPOINT",
            ];
            delivery(rng, &names)
        }
        "chorus" | "axiom" => with_payload(rng, dialect),
        "pilot" => pilot(rng, false),
        _ => done(rng, dialect),
    }
}

/// A block with all members.
pub(super) fn caw(rng: &mut Rng) -> WrittenSignal {
    let (name, phase, next) = rng.pick(PHASES);
    let time = time(rng);
    let text = format!(
        "---\nSIGNAL: {name}\nPHASE: {phase}\nSTATUS: complete\nTIMESTAMP: {time}\nNEXT: {next}\n---"
    );
    WrittenSignal { text, key: name, expected: Expected::new(name) }
}

pub(super) fn delivery(rng: &mut Rng, names: &[&'static str]) -> WrittenSignal {
    let (name, id) = (rng.pick(names), id(rng));
    let body = rng.pick(&[
        "",
        "",
        "\n\nSummary: limiter in place and covered",
        "\n\nFiles Modified:\n- src/retry.rs: backoff\n- src/limits.rs: burst\n\nSummary: two modules",
        "\nSummary: the adapter is in place\nPriority: LOW",
    ]);
    let expected = Expected::about(name, &id);
    WrittenSignal { text: format!("{name}: {id}{body}"), key: name, expected }
}

/// A tag with words.
pub(super) fn with_payload(rng: &mut Rng, dialect: &str) -> WrittenSignal {
    let name = rng.pick(&["BLOCKED", "NEEDS_HELP", "NEEDS_HUMAN", "PROGRESS"]);
    let payload = match name {
        "PROGRESS" => rng.below(101).to_string(),
        _ => rng
            .pick(&["no access to the registry", "which region is meant?", "quota used up"])
            .to_owned(),
    };
    let blank = if rng.chance(80) { " " } else { "" };
    let text = format!("<{dialect}>{name}:{blank}{payload}</{dialect}>");
    WrittenSignal { text, key: name, expected: Expected::new(name) }
}

/// The JSON of a pilot signal and its name.
pub(super) fn pilot_json(rng: &mut Rng, exit: bool) -> (String, &'static str) {
    if exit {
        let reason = rng.pick(&["", ",\"reason\":\"all criteria met\""]);
        let json =
            format!("{{\"v\":2,\"type\":\"exit\",\"success\":true,\"exit_signal\":true{reason}}}");
        return (json, "EXIT");
    }
    let phase = rng.pick(&["INIT", "RESEARCH", "IMPL", "VERIFY"]);
    let (progress, iteration) = (rng.below(100), rng.between(1, 9));
    let json = format!(
        "{{\"v\":2,\"type\":\"status\",\"phase\":\"{phase}\",\"progress\":{progress},\"iteration\":{iteration}}}"
    );
    (json, "STATUS")
}

fn pilot(rng: &mut Rng, exit: bool) -> WrittenSignal {
    let (json, name) = pilot_json(rng, exit);
    let text = format!("```pilot-signal\n{json}\n```");
    WrittenSignal { text, key: "pilot-signal", expected: Expected::new(name) }
}

fn ralph_status(rng: &mut Rng) -> WrittenSignal {
    let (tasks, files) = (rng.between(1, 5), rng.between(1, 12));
    let text = format!(
        "---RALPH_STATUS---\nSTATUS: COMPLETE\nTASKS_COMPLETED_THIS_LOOP: {tasks}\nFILES_MODIFIED: \
         {files}\nTESTS_STATUS: PASSING\nWORK_TYPE: IMPLEMENTATION\nEXIT_SIGNAL: true\n\
         RECOMMENDATION: none\n---END_RALPH_STATUS---"
    );
    WrittenSignal { text, key: "RALPH_STATUS", expected: Expected::new("RALPH_STATUS") }
}

fn event(rng: &mut Rng) -> WrittenSignal {
    let topic = rng.pick(&["build.done", "tests.passed", "plan.ready", "deploy.staged"]);
    let words = rng.pick(&["42 cases", "see the log above", "release 1.4"]);
    let text = format!("<event topic=\"{topic}\">{words}</event>");
    WrittenSignal { text, key: "event", expected: Expected::about("EVENT", topic) }
}
