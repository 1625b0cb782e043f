//! The machine against its specification, rule by rule.

mod checks;
mod eligibility;
mod people;
mod prompts;
mod properties;
mod rules;
mod sentences;
mod stored;

use super::*;
use crate::proof::Proof;
use aldis_signal::message::{Origin, Role};
use aldis_signal::scan::Rules;
use aldis_signal::time::Timestamp;

/// Minutes after ten o'clock.
fn at(minutes: i64) -> Timestamp {
    let ten: Timestamp = "2026-03-02T10:00:00Z".parse().unwrap();
    Timestamp::from_millis(ten.as_millis() + minutes * 60_000)
}

/// The block that says this.
fn block(name: &str) -> String {
    format!(
        "Done.\n\n---\nSIGNAL: {name}\nSTATUS: complete\nTIMESTAMP: 2026-03-02T10:00:00Z\n---\n"
    )
}

fn error_block(phase: &str, recoverable: bool) -> String {
    format!(
        "---\nSIGNAL: PHASE_ERROR\nPHASE: {phase}\nSTATUS: error\nTIMESTAMP: 2026-03-02T10:00:00Z\n\
         ERROR: no disk\nRECOVERABLE: {recoverable}\n---\n"
    )
}

/// A run in the middle of its work, bound to session S1.
fn run_in(phase: &str) -> State {
    let start = Start {
        task: "Add CSV export".to_owned(),
        pipeline: Pipeline::caw(),
        config: Config::default(),
        phase: phase.to_owned(),
        max_iterations: 20,
        session: Some("S1".to_owned()),
        token: None,
        proof: Proof::default(),
    };
    let mut state = State::start(at(0), start);
    state.handover.prompt_pending = false;
    state
}

fn found(state: &State, text: &str, origin: Origin) -> Vec<PhaseFinding> {
    let dialect = super::prompts::builtin(&state.setup.pipeline.dialect).unwrap();
    let rules = Rules::new([dialect]);
    scan_messages(
        &rules,
        &state.expected_token(),
        &[AgentMessage { text, origin, at: None, new_by_position: false, is_final: true }],
    )
}

/// A stop of session S1 with this final message.
fn stop(state: &State, text: &str) -> Stop {
    Stop {
        session: Some("S1".to_owned()),
        findings: found(state, text, Origin::assistant()),
        closing_text: text.to_owned(),
        ..Stop::default()
    }
}

fn says(state: &mut State, minutes: i64, text: &str) -> Outcome {
    let stop = stop(state, text);
    state.on_event(at(minutes), &Event::Stop(stop))
}

fn subagent_says(state: &mut State, minutes: i64, agent: &str, text: &str) -> Outcome {
    let origin = Origin::new(Role::Subagent).with_agent(agent);
    let findings = found(state, text, origin);
    let (session, agent) = (Some("S1".to_owned()), Some(agent.to_owned()));
    let event = Event::SubagentStop { session, agent, findings, fresh_token: None };
    state.on_event(at(minutes), &event)
}

/// The answer in one word, with the rule.
fn answer(outcome: &Outcome) -> String {
    let rule = outcome.decision().map_or("-", |decision| &decision.rule);
    let word = match outcome.effects.first() {
        Some(Effect::Block { .. }) => "block",
        Some(Effect::Context { .. }) => "context",
        Some(Effect::Allow) => "allow",
        Some(Effect::WriteView | Effect::Check { .. }) | None => "nothing",
    };
    format!("{word} {rule}")
}

fn prompt_of(outcome: &Outcome) -> &str {
    match &outcome.effects[0] {
        Effect::Block { reason: text } | Effect::Context { text } => text,
        Effect::Allow | Effect::WriteView | Effect::Check { .. } => "",
    }
}
