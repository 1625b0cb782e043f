//! Experts: asked by another agent, answered to it, and registered by the planner.

use super::event::{Effect, Level, Notice};
use super::judge::{Word, evidence, gist};
use super::run::{About, Candidate, Consultation};
use super::signal::{Kind, Role};
use super::state::{Out, State, decision};
use super::task::{Note, Wait, field, remember, told};
use super::{fill, human, locks, remedy, work};

/// How many experts there may be.
const EXPERTS_MAX: usize = 100;

/// An agent needs an expert.
pub(super) fn requested(
    state: &mut State,
    out: &mut Out,
    (task, role): (Option<usize>, Role),
    word: Word<'_>,
) {
    let fields = &word.heard.fields;
    let wanted = field(fields, "target_agent");
    let known = state.run.experts.keys().find(|name| name.eq_ignore_ascii_case(wanted.trim()));
    let Some(expert) = known.cloned() else {
        let names: Vec<&str> = state.run.experts.keys().map(String::as_str).collect();
        let names = if names.is_empty() { "none".to_owned() } else { names.join(", ") };
        let why = format!("there is no such expert; there are: {names}");
        return match task {
            Some(no) => work::refuse(state, out, no, word, "unknown_expert", why),
            None => {
                remedy::note(state, "Your request for an expert was refused:", &why);
                remedy::next_attempt(state, out, "it asked for an expert that does not exist");
            }
        };
    };
    state.run.consultations_ever += 1;
    let id = format!("req-{}", state.run.consultations_ever);
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
        state.at_mut(no).resume = Some(word.agent);
        state.set_wait(no, Wait::Expert { request: id.clone() });
    }
    let decision = decision("expert", format!("Asks the expert {expert}"))
        .because(format!("the {} needs its advice", role.spoken()))
        .seen([evidence(word.heard, word.agent, None)])
        .next(format!("the answer to {id} goes to the agent that asked"));
    out.decided(task.map(|no| state.at(no)), decision);
    fill::dispatch_expert(state, out, &id);
}

/// A signal of an expert counts.
pub(super) fn took(state: &mut State, out: &mut Out, id: &str, word: Word<'_>) {
    match word.kind {
        Kind::ExpertAdvice => advised(state, out, id, word),
        Kind::ExpertUnsuccessful => {
            let why = gist(word.heard, &["reason"]);
            escalate(state, out, id, &why);
        }
        Kind::FileConflict => failed(state, out, id, "an expert changes no files"),
        // Said by no expert.
        _ => {}
    }
}

fn advised(state: &mut State, out: &mut Out, id: &str, word: Word<'_>) {
    let Some(asked) = state.run.consultations.remove(id) else { return };
    let about = format!("You asked the expert {}. Its advice:", asked.expert);
    let advice = told(&word.heard.fields);
    let decision = decision("expert", format!("Passed on the advice of {}", asked.expert))
        .because(format!("it answered {id}"))
        .seen([evidence(word.heard, word.agent, None)])
        .next("the agent that asked goes on with it");
    out.decided(asked.task.map(|no| state.at(no)), decision);
    match asked.task {
        Some(no) => {
            state.at_mut(no).note(about, &advice);
            state.set_wait(no, Wait::Slot);
        }
        None => {
            remedy::note(state, &about, &advice);
            fill::dispatch_repair(state, out, asked.role);
        }
    }
}

/// An expert brought nothing: it tries again, or a human is asked.
pub(super) fn failed(state: &mut State, out: &mut Out, id: &str, why: &str) {
    let most = state.run.config.expert_tries;
    let Some(asked) = state.run.consultations.get_mut(id) else { return };
    if asked.tries >= most {
        let why = format!("{} tries brought nothing, the last one because {why}", asked.tries);
        return escalate(state, out, id, &why);
    }
    remember(&mut asked.notes, Note::new(format!("Your last try brought nothing: {why}."), ""));
    let (tries, task) = (asked.tries, asked.task);
    let decision = decision("expert", format!("Asks the expert again after {tries} tries"))
        .because(why)
        .next("at the limit a human is asked");
    out.decided(task.map(|no| state.at(no)), decision);
    fill::dispatch_expert(state, out, id);
}

/// No advice is to be had: a human must give it.
fn escalate(state: &mut State, out: &mut Out, id: &str, why: &str) {
    let Some(asked) = state.run.consultations.remove(id) else { return };
    let text = format!(
        "The expert {} has no answer ({why}). The question was:\n{}",
        asked.expert, asked.prompt
    );
    let why = format!("the expert {} could not help", asked.expert);
    match asked.task {
        Some(no) => human::ask_about(state, out, no, &why, &text, None),
        None => {
            let about = About::Infrastructure { role: asked.role };
            human::ask(state, out, about, &why, &text, &[], None);
        }
    }
}

/// The planner is done: the experts it made are registered once their files are there.
pub(super) fn planned<'s>(state: &mut State, out: &mut Out, words: impl Iterator<Item = Word<'s>>) {
    fill::plan_is_over(state);
    for word in words.filter(|word| word.kind == Kind::ExpertCreated) {
        let name = word.heard.subject.clone().unwrap_or_default();
        let seen = evidence(word.heard, word.agent, None);
        let full = state.run.experts.len() + state.run.candidates.len() >= EXPERTS_MAX;
        let file = locks::normal(&field(&word.heard.fields, "file")).filter(|_| !full);
        let Some(file) = file else {
            let because = "it names no file inside the project, or there are too many experts";
            let decision = decision("expert", format!("Left out the expert {name}"));
            out.decided(None, decision.because(because).seen([seen]));
            out.notice((Notice::ExpertLeftOut, Level::Warning), None, name);
            continue;
        };
        let knows = gist(word.heard, &["gap_filled", "expertise_encoded"]);
        let candidate = Candidate { file: file.clone(), knows };
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
pub(super) fn checked(state: &mut State, out: &mut Out, name: &str, present: bool) {
    let Some(Candidate { knows, .. }) = state.run.candidates.remove(name) else { return };
    if present {
        state.run.experts.insert(name.to_owned(), knows);
        let decision = decision("expert", format!("Registered the expert {name}"));
        out.decided(None, decision.because("its file is there").next("agents can ask it"));
    } else {
        let decision = decision("expert", format!("Left out the expert {name}"));
        out.decided(None, decision.because("its file is missing"));
        let text = format!("The file of the expert {name} is missing.");
        out.notice((Notice::ExpertLeftOut, Level::Warning), None, text);
    }
}
