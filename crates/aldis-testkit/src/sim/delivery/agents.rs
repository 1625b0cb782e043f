//! What simulated agents say: mostly what they should, and sometimes anything else.

use aldis_machine::delivery::{Dispatch, Heard, Kind, Role, Said};
use aldis_signal::scan::Rules;
use aldis_signal::signal::Fields;
use aldis_signal::{Origin, Token, scan};
use serde_json::{Value, json};

use crate::corpus::rng::Rng;

/// How an agent ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum End {
    /// As it should.
    Clean,
    /// With an error.
    Crash,
    /// Not by itself.
    Never,
}

/// What a reply was made of.
pub(super) struct Reply {
    pub(super) end: End,
    pub(super) said: Said,
}

/// What the agent of this dispatch says in the end. `calm` agents do their duty.
pub(super) fn reply(rng: &mut Rng, dispatch: &Dispatch, calm: bool, request: &str) -> Reply {
    let own = dispatch.task.clone().unwrap_or_default();
    let subject = if dispatch.role == Role::Expert { request } else { &own };
    let choice = if calm { 0 } else { rng.below(100) };
    let (end, signals) = match choice {
        0..55 => (End::Clean, vec![duty(dispatch.role, subject)]),
        55..69 => (End::Clean, vec![refusal(rng, dispatch.role, subject)]),
        69..77 => (End::Clean, vec![trouble(rng, dispatch.role, subject)]),
        77..84 => (End::Clean, vec![lie(rng, subject)]),
        84..88 => {
            let both = vec![duty(dispatch.role, subject), trouble(rng, dispatch.role, subject)];
            (End::Clean, both)
        }
        88..91 => (End::Clean, vec![duty(dispatch.role, "task-0"), duty(dispatch.role, subject)]),
        91..95 => (End::Clean, Vec::new()),
        95..98 => (End::Crash, vec![duty(dispatch.role, subject)]),
        _ => (End::Never, Vec::new()),
    };
    let mut said = Said { signals, misses: Vec::new(), preview: "Some words.".to_owned() };
    if rng.below(64) == 0 {
        said = spoken(&said);
    }
    Reply { end, said }
}

/// A sign of life in the midst of the work.
pub(super) fn checkpoint(dispatch: &Dispatch) -> Said {
    let task = dispatch.task.clone().unwrap_or_default();
    let heard = signal(Kind::Checkpoint, Some(&task), &json!({ "progress": "40%" }));
    Said { signals: vec![heard], ..Said::default() }
}

/// The same words, as the real scanner reads them.
fn spoken(said: &Said) -> Said {
    let mut text = String::from("Some words.\n\n");
    for heard in &said.signals {
        text.push_str(&heard.name);
        if let Some(subject) = heard.subject.as_ref().filter(|_| takes_subject(&heard.name)) {
            text.push_str(": ");
            text.push_str(subject);
        }
        text.push('\n');
        for (key, value) in &heard.fields {
            let written = match value {
                Value::Array(items) => {
                    items.iter().map(|item| format!("\n- {}", plain(item))).collect()
                }
                value => format!(" {}", plain(value)),
            };
            match key.as_str() {
                "delegation_prompt" => {
                    text.push_str("\n---DELEGATION PROMPT START---\nWhich?\n");
                    text.push_str("---DELEGATION PROMPT END---\n");
                }
                key => {
                    let mut letters = key.chars();
                    text.extend(letters.next().map(|first| first.to_ascii_uppercase()));
                    text.push_str(&letters.as_str().replace('_', " "));
                    text.push(':');
                    text.push_str(&written);
                    text.push('\n');
                }
            }
        }
        text.push('\n');
    }
    Said::read(Rules::builtin(), &Token::Off, &text)
}

fn takes_subject(name: &str) -> bool {
    let bare = [Kind::SeekingClarification, Kind::ExpertRequest, Kind::RemediationComplete];
    !bare.iter().any(|kind| kind.name() == name)
}

fn plain(value: &Value) -> String {
    match (value.as_str(), value.get("file")) {
        (Some(text), _) => text.to_owned(),
        (None, Some(file)) => {
            let text = value["text"].as_str().unwrap_or_default();
            format!("{}:{}: {text}", file.as_str().unwrap_or_default(), value["line"])
        }
        (None, None) => value.to_string(),
    }
}

fn signal(kind: Kind, subject: Option<&str>, fields: &Value) -> Heard {
    let fields: Fields = fields.as_object().cloned().unwrap_or_default();
    let subject = subject.filter(|subject| !subject.is_empty()).map(str::to_owned);
    Heard { name: kind.name().to_owned(), subject, fields, line: 3, quote: String::new() }
}

/// What a good agent of the role says.
fn duty(role: Role, subject: &str) -> Heard {
    let of = |kind: Kind| signal(kind, Some(subject), &json!({ "summary": "done" }));
    match role {
        Role::BusinessAnalyst => {
            let fields = json!({
                "confidence": "HIGH",
                "expanded_specification": "More words.",
                "acceptance_criteria": ["it works"],
            });
            signal(Kind::Expanded, Some(subject), &fields)
        }
        Role::Developer => of(Kind::ReadyForReview),
        Role::Critic => of(Kind::ReviewPassed),
        Role::Auditor => of(Kind::AuditPassed),
        Role::Remediation => signal(Kind::RemediationComplete, None, &json!({})),
        Role::HealthAuditor => signal(Kind::HealthAudit, Some("HEALTHY"), &json!({})),
        Role::Expert => of(Kind::ExpertAdvice),
        Role::Planner => {
            let fields = json!({ "file": "agents/crypto.md", "gap_filled": "keys" });
            signal(Kind::ExpertCreated, Some("crypto"), &fields)
        }
    }
}

/// What one says that is not content.
fn refusal(rng: &mut Rng, role: Role, subject: &str) -> Heard {
    let words = ["no test", "no error handling", "wrong name", "too long", "unclear"];
    let mut issues = vec![json!({ "file": "src/a.rs", "line": 3, "text": rng.pick(&words) })];
    if rng.chance(40) {
        issues.push(json!({ "file": "src/b.rs", "line": 9, "text": rng.pick(&words) }));
    }
    let mut fields = json!({ "issues_found": issues });
    if rng.chance(20) {
        fields["evidence"] = json!(rng.pick(&["the linter", "a failing test"]));
    }
    let of = |kind: Kind| signal(kind, Some(subject), &fields);
    match role {
        Role::BusinessAnalyst => {
            let fields = json!({ "confidence": "LOW", "acceptance_criteria": ["it may work"] });
            signal(Kind::Expanded, Some(subject), &fields)
        }
        Role::Developer => of(Kind::TaskIncomplete),
        Role::Critic => of(Kind::ReviewFailed),
        Role::Auditor => of(Kind::AuditFailed),
        Role::HealthAuditor => signal(Kind::HealthAudit, Some("UNHEALTHY"), &json!({})),
        Role::Expert => of(Kind::ExpertUnsuccessful),
        Role::Remediation | Role::Planner => duty(role, subject),
    }
}

/// What goes before everything else.
fn trouble(rng: &mut Rng, role: Role, subject: &str) -> Heard {
    let request = json!({
        "target_agent": "crypto", "context_snapshot": "notes.md", "delegation_prompt": "Which?",
    });
    let file = rng.pick(&["src/a.rs", "src/b.rs", "src/c.rs"]);
    let can_wait = json!({ "can_wait": rng.pick(&["YES", "NO"]) });
    let task = if role == Role::Expert { None } else { Some(subject) };
    match rng.below(5) {
        0 if role == Role::Auditor => signal(Kind::AuditBlocked, Some(subject), &json!({})),
        0 | 1 if role == Role::Developer => signal(Kind::InfraBlocked, Some(subject), &json!({})),
        2 => signal(Kind::SeekingClarification, task, &json!({ "question": "how?" })),
        3 => signal(Kind::ExpertRequest, task, &request),
        _ => signal(Kind::FileConflict, Some(file), &can_wait),
    }
}

/// What is not for this agent to say, or not about its task.
fn lie(rng: &mut Rng, subject: &str) -> Heard {
    let kind = rng.pick(Kind::ALL);
    let about = if rng.chance(50) { subject } else { "task-0" };
    signal(kind, Some(about), &json!({ "file": "../x", "can_wait": "NO" }))
}

/// Whether a text, said by an agent, would be a signal.
pub(super) fn is_signal(text: &str) -> bool {
    scan(Rules::builtin(), text.as_bytes(), &Origin::assistant())
        .iter()
        .any(|finding| finding.signal().is_some())
}
