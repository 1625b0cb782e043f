//! Every name of every dialect, and random compositions of the contexts that quote.

use super::structure;
use crate::corpus::claims::{self, ALL, WrittenSignal};
use crate::corpus::filler;
use crate::corpus::{Expected, Phenomenon, Rng, SampleDraft};

pub(super) const PHENOMENA: &[Phenomenon] = &[
    structure("every_name", &["caw", "delivery", "axiom", "ralphex", "ralph-status"], every_name),
    structure("bare_name", &["delivery"], bare_name),
    structure("composed", ALL, composed),
];

fn claim(text: impl Into<String>, name: &str, subject: Option<&str>) -> WrittenSignal {
    let subject = subject.map(str::to_owned);
    WrittenSignal {
        text: text.into(),
        key: "",
        expected: Expected { name: name.to_owned(), subject },
    }
}

fn rare(rng: &mut Rng, dialect: &str) -> WrittenSignal {
    match dialect {
        "caw" => {
            let name =
                rng.pick(&["TRANSITION_TO_QA", "TRANSITION_TO_VALIDATION", "TRANSITION_TO_FIX"]);
            claim(format!("---\nSIGNAL: {name}\n---"), name, None)
        }
        "delivery" => rare_delivery(rng),
        "axiom" => {
            let name = rng.pick(&["PENDING", "DISCOVERY_LOCAL", "DISCOVERY_GLOBAL"]);
            claim(format!("<axiom>{name}: the cache is shared</axiom>"), name, None)
        }
        "ralphex" => match rng.below(3) {
            0 => claim("<<<RALPHEX:TASK_FAILED>>>", "TASK_FAILED", None),
            1 => {
                let text = "<<<RALPHEX:QUESTION>>>\nWhich region?\n<<<RALPHEX:END>>>";
                claim(text, "QUESTION", None)
            }
            _ => {
                let text = "<<<RALPHEX:PLAN_DRAFT>>>\n1. Read\n2. Write\n<<<RALPHEX:END>>>";
                claim(text, "PLAN_DRAFT", None)
            }
        },
        _ => {
            let status = rng.pick(&["IN_PROGRESS", "BLOCKED", "COMPLETE"]);
            let text = format!(
                "---RALPH_STATUS---\nSTATUS: {status}\nEXIT_SIGNAL: false\nRECOMMENDATION: go on\n\
                 ---END_RALPH_STATUS---"
            );
            claim(text, "RALPH_STATUS", None)
        }
    }
}

fn rare_delivery(rng: &mut Rng) -> WrittenSignal {
    let (text, name, subject) = rng.pick(&[
        ("HEALTH_AUDIT: HEALTHY", "HEALTH_AUDIT", Some("HEALTHY")),
        ("HEALTH_AUDIT: UNHEALTHY\nDetails: disk", "HEALTH_AUDIT", Some("UNHEALTHY")),
        ("REMEDIATION_COMPLETE\n\nSummary: disk freed", "REMEDIATION_COMPLETE", None),
        (
            "SEEKING_DIVINE_CLARIFICATION\nTask: task-1\nQuestion: which region?",
            "SEEKING_DIVINE_CLARIFICATION",
            Some("task-1"),
        ),
        ("EXPERT_ADVICE: index question 4\nUse a hash.", "EXPERT_ADVICE", Some("index question 4")),
        ("EXPERT_UNSUCCESSFUL: req-4", "EXPERT_UNSUCCESSFUL", Some("req-4")),
        ("EXPERT_CREATED: dba\nFile: experts/dba.md", "EXPERT_CREATED", Some("dba")),
        ("FILE CONFLICT: src/lib.rs\nCan Wait: NO", "FILE CONFLICT", Some("src/lib.rs")),
    ]);
    claim(text, name, subject)
}

/// The names that other phenomena do not use.
fn every_name(rng: &mut Rng, dialect: &'static str, genuine: bool) -> SampleDraft {
    let WrittenSignal { text, expected, .. } = rare(rng, dialect);
    if genuine {
        return SampleDraft::heard(filler::around(rng, dialect, &text), vec![expected]);
    }
    let core = match rng.chance(50) {
        true => format!("~~~yaml\n{text}\n~~~"),
        false => text.lines().map(|line| format!("> {line}\n")).collect(),
    };
    SampleDraft::unheard(filler::around(rng, dialect, &core))
}

/// A name without a subject stands alone on its line.
fn bare_name(rng: &mut Rng, dialect: &'static str, genuine: bool) -> SampleDraft {
    let name = rng.pick(&["REMEDIATION_COMPLETE", "SEEKING_DIVINE_CLARIFICATION"]);
    let rest = match genuine {
        true => rng.pick(&["", " ", "\t", "\n\nSummary: disk freed"]),
        false => rng.pick(&[" is next", " - see above", ", I think", " task-1", "_"]),
    };
    let text = filler::around(rng, dialect, &format!("{name}{rest}"));
    let expected = genuine.then(|| Expected::new(name));
    SampleDraft::heard(text, expected.into_iter().collect())
}

/// One context that quotes what is in it, closed.
fn wrap(rng: &mut Rng, inner: &str) -> String {
    // Longer than any run of marks inside.
    let longest = |mark: char| {
        let runs = inner.split(|c| c != mark).map(str::len);
        mark.to_string().repeat(runs.max().unwrap_or(0).max(2) + 1)
    };
    match rng.below(4) {
        0 => format!("{0}text\n{inner}\n{0}", longest('`')),
        1 => format!("{0}\n{inner}\n{0}\n\n{1}", longest('~'), filler::sentence(rng)),
        2 if !inner.contains("--") => format!("<!--\n{inner}\n-->"),
        _ => inner.lines().map(|line| format!("> {line}")).collect::<Vec<_>>().join("\n"),
    }
}

/// Quotations inside quotations, and the claim in the innermost or behind them all.
fn composed(rng: &mut Rng, dialect: &'static str, genuine: bool) -> SampleDraft {
    let claim = claims::any(rng, dialect);
    let mut text = String::new();
    for _ in 0..rng.between(1, 5) {
        let mut inner = if genuine { filler::sentence(rng) } else { claim.text.clone() };
        for _ in 0..rng.between(1, 4) {
            inner = wrap(rng, &inner);
        }
        text.push_str(&inner);
        text.push_str("\n\n");
        if rng.chance(60) {
            text.push_str(&filler::piece(rng));
            text.push_str("\n\n");
        }
    }
    text.push_str(&filler::lead(rng));
    if !genuine {
        return SampleDraft::unheard(text);
    }
    SampleDraft::heard(format!("{text}\n\n{}", claim.text), vec![claim.expected])
}
