//! Experts: asked by another agent, answered to it, and registered by the planner.

use super::event::{Effect, Notice, Severity};
use super::judge::{Accepted, evidence, first_field};
use super::run::{Consultation, ExpertCandidate, QuestionSubject};
use super::signal::{Role, SignalKind};
use super::state::{State, StepOutput, decision};
use super::task::{PromptNote, Wait, field, remember, render_fields};
use super::{human, locks, remediation, schedule, workflow};

/// How many experts there may be.
const EXPERTS_MAX: usize = 100;

/// An agent needs an expert.
pub(super) fn requested(
    state: &mut State,
    out: &mut StepOutput,
    (task, role): (Option<usize>, Role),
    accepted: Accepted<'_>,
) {
    let fields = &accepted.signal.fields;
    let wanted = field(fields, "target_agent");
    let known = state.run.experts.keys().find(|name| name.eq_ignore_ascii_case(wanted.trim()));
    let Some(expert) = known.cloned() else {
        let names: Vec<&str> = state.run.experts.keys().map(String::as_str).collect();
        let names = if names.is_empty() { "none".to_owned() } else { names.join(", ") };
        let why = format!("there is no such expert; there are: {names}");
        return match task {
            Some(no) => workflow::refuse(state, out, no, accepted, "unknown_expert", why),
            None => {
                remediation::note(state, "Your request for an expert was refused:", &why);
                remediation::next_attempt(state, out, "it asked for an expert that does not exist");
            }
        };
    };
    state.run.consultations_started += 1;
    let id = format!("req-{}", state.run.consultations_started);
    let consultation = Consultation {
        expert: expert.clone(),
        task,
        role,
        kind: field(fields, "request_type"),
        snapshot: field(fields, "context_snapshot"),
        prompt: field(fields, "delegation_prompt"),
        tries: 0,
        notes: Vec::new(),
    };
    state.run.consultations.insert(id.clone(), consultation);
    if let Some(no) = task {
        state.at_mut(no).resume = Some(accepted.agent);
        state.set_wait(no, Wait::Expert { request: id.clone() });
    }
    let decision = decision("expert", format!("Asks the expert {expert}"))
        .because(format!("the {} needs its advice", role.label()))
        .seen([evidence(accepted.signal, accepted.agent, None)])
        .next(format!("the answer to {id} goes to the agent that asked"));
    out.decided(task.map(|no| state.at(no)), decision);
    schedule::dispatch_expert(state, out, &id);
}

/// A signal of an expert counts.
pub(super) fn apply(state: &mut State, out: &mut StepOutput, id: &str, accepted: Accepted<'_>) {
    match accepted.kind {
        SignalKind::ExpertAdvice => advised(state, out, id, accepted),
        SignalKind::ExpertUnsuccessful => {
            let why = first_field(accepted.signal, &["reason"]);
            escalate(state, out, id, &why);
        }
        SignalKind::FileConflict => failed(state, out, id, "an expert changes no files"),
        // Written by no expert.
        _ => {}
    }
}

fn advised(state: &mut State, out: &mut StepOutput, id: &str, accepted: Accepted<'_>) {
    let Some(asked) = state.run.consultations.remove(id) else { return };
    let about = format!("You asked the expert {}. Its advice:", asked.expert);
    let advice = render_fields(&accepted.signal.fields);
    let decision = decision("expert", format!("Passed on the advice of {}", asked.expert))
        .because(format!("it answered {id}"))
        .seen([evidence(accepted.signal, accepted.agent, None)])
        .next("the agent that asked goes on with it");
    out.decided(asked.task.map(|no| state.at(no)), decision);
    match asked.task {
        Some(no) => {
            state.at_mut(no).note(about, &advice);
            state.set_wait(no, Wait::Slot);
        }
        None => {
            remediation::note(state, &about, &advice);
            schedule::dispatch_repair(state, out, asked.role);
        }
    }
}

/// An expert brought nothing: it tries again, or a human is asked.
pub(super) fn failed(state: &mut State, out: &mut StepOutput, id: &str, why: &str) {
    let most = state.run.config.expert_tries;
    let Some(asked) = state.run.consultations.get_mut(id) else { return };
    if asked.tries >= most {
        let why = format!("{} tries brought nothing, the last one because {why}", asked.tries);
        return escalate(state, out, id, &why);
    }
    remember(
        &mut asked.notes,
        PromptNote::new(format!("Your last try brought nothing: {why}."), ""),
    );
    let (tries, task) = (asked.tries, asked.task);
    let decision = decision("expert", format!("Asks the expert again after {tries} tries"))
        .because(why)
        .next("at the limit a human is asked");
    out.decided(task.map(|no| state.at(no)), decision);
    schedule::dispatch_expert(state, out, id);
}

/// No advice is to be had: a human must give it.
fn escalate(state: &mut State, out: &mut StepOutput, id: &str, why: &str) {
    let Some(asked) = state.run.consultations.remove(id) else { return };
    let text = format!(
        "The expert {} has no answer ({why}). The question was:\n{}",
        asked.expert, asked.prompt
    );
    let why = format!("the expert {} could not help", asked.expert);
    match asked.task {
        Some(no) => human::ask_about(state, out, no, &why, &text, None),
        None => {
            let about = QuestionSubject::Infrastructure { role: asked.role };
            human::ask(state, out, about, &why, &text, &[], None);
        }
    }
}

/// The planner is done: the experts it made are registered once their files are there.
pub(super) fn planned<'s>(
    state: &mut State,
    out: &mut StepOutput,
    words: impl Iterator<Item = Accepted<'s>>,
) {
    schedule::plan_is_over(state);
    for accepted in words.filter(|accepted| accepted.kind == SignalKind::ExpertCreated) {
        let name = accepted.signal.subject.clone().unwrap_or_default();
        let seen = evidence(accepted.signal, accepted.agent, None);
        let full = state.run.experts.len() + state.run.candidates.len() >= EXPERTS_MAX;
        let file = locks::normal(&field(&accepted.signal.fields, "file")).filter(|_| !full);
        let Some(file) = file else {
            let because = "it names no file inside the project, or there are too many experts";
            let decision = decision("expert", format!("Left out the expert {name}"));
            out.decided(None, decision.because(because).seen([seen]));
            out.notice((Notice::ExpertLeftOut, Severity::Warning), None, name);
            continue;
        };
        let expertise = first_field(accepted.signal, &["gap_filled", "expertise_encoded"]);
        let candidate = ExpertCandidate { file: file.clone(), expertise };
        state.run.candidates.insert(name.clone(), candidate);
        let decision = decision("expert", format!("Looks for the file of the expert {name}"))
            .because("the planner made it")
            .seen([seen])
            .next("it can be asked once its file is there");
        out.decided(None, decision);
        out.effects.push(Effect::CheckExpert { name, file });
    }
}

/// Whether an expert's file is there is known.
pub(super) fn checked(state: &mut State, out: &mut StepOutput, name: &str, present: bool) {
    let Some(ExpertCandidate { expertise, .. }) = state.run.candidates.remove(name) else { return };
    if present {
        state.run.experts.insert(name.to_owned(), expertise);
        let decision = decision("expert", format!("Registered the expert {name}"));
        out.decided(None, decision.because("its file is there").next("agents can ask it"));
    } else {
        let decision = decision("expert", format!("Left out the expert {name}"));
        out.decided(None, decision.because("its file is missing"));
        let text = format!("The file of the expert {name} is missing.");
        out.notice((Notice::ExpertLeftOut, Severity::Warning), None, text);
    }
}
