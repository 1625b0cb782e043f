//! The repair of what all tasks need: nobody's failure, and nobody starts anything meanwhile.

use super::event::{Level, Notice};
use super::judge::{Word, evidence, gist};
use super::run::{About, Agent, Remediation};
use super::signal::{Kind, Role};
use super::state::{Out, State, decision};
use super::task::{Note, Wait, remember, told};
use super::{expert, fill, human};

/// A task cannot go on because something that all tasks need is broken.
pub(super) fn enter(state: &mut State, out: &mut Out, no: usize, word: Word<'_>) {
    state.set_wait(no, Wait::Infrastructure);
    let task = state.at_mut(no);
    task.resume = None;
    let about = format!("The {} of {} reported:", task.role.spoken(), task.spec.id);
    let report = Note::new(about, &told(&word.heard.fields));
    let seen = evidence(word.heard, word.agent, None);
    let began = state.run.remediation.is_none();
    let remediation = state.run.remediation.get_or_insert_with(|| Remediation {
        attempts: 1,
        tasks: Vec::new(),
        notes: Vec::new(),
    });
    remediation.tasks.push(no);
    remember(&mut remediation.notes, report);
    let (summary, next) = if began {
        ("Stopped new work to repair what all tasks need", "a remediation agent was started")
    } else {
        ("Joined the repair that is under way", "the task goes on when it is over")
    };
    let because = match gist(word.heard, &["issue", "pre-existing_failures"]) {
        silent if silent.is_empty() => "the agent does not say what is broken".to_owned(),
        because => because,
    };
    let decision =
        decision("remediation", summary).because(because.clone()).seen([seen]).next(next);
    out.decided(Some(state.at(no)), decision);
    if began {
        let notice = (Notice::RemediationStarted, Level::Warning);
        out.notice(notice, Some(state.at(no)), because);
        fill::dispatch_repair(state, out, Role::Remediation);
    }
}

/// A signal of the agent that repairs or judges counts.
pub(super) fn took(state: &mut State, out: &mut Out, agent: &Agent, word: Word<'_>) {
    let seen = evidence(word.heard, word.agent, None);
    match word.kind {
        Kind::RemediationComplete => {
            note(state, "The remediation agent says:", &told(&word.heard.fields));
            let decision = decision("remediation", "Lets the repair be judged")
                .because("the remediation agent says that it is done")
                .seen([seen])
                .next("a health auditor was started; nothing else begins before its verdict");
            out.decided(None, decision);
            fill::dispatch_repair(state, out, Role::HealthAuditor);
        }
        Kind::HealthAudit if word.approves() == Some(true) => {
            let attempts = state.run.remediation.as_ref().map_or(0, |it| it.attempts);
            let attempts = match attempts {
                1 => "1 attempt".to_owned(),
                more => format!("{more} attempts"),
            };
            healed(state, out, &format!("the health auditor says so, after {attempts}"));
        }
        Kind::HealthAudit => {
            note(state, "The health auditor says:", &told(&word.heard.fields));
            next_attempt(state, out, "the health auditor says that it is not repaired");
        }
        Kind::SeekingClarification => {
            let text = gist(word.heard, &["question"]);
            let why = format!("the {} asks", agent.role.spoken());
            let about = About::Infrastructure { role: agent.role };
            human::ask(state, out, about, &why, &text, &[], Some(seen));
        }
        Kind::ExpertRequest => expert::requested(state, out, (None, agent.role), word),
        Kind::FileConflict => {
            let path = word.heard.subject.clone().unwrap_or_default();
            let text = format!("The {} changes {path}.", agent.role.spoken());
            out.notice((Notice::FileConflict, Level::Warning), None, text);
            note(state, "The repair goes first: you may change", &path);
            next_attempt(state, out, "a file of somebody else is needed");
        }
        // Said by no agent that repairs or judges.
        _ => {}
    }
}

/// Tries again, or asks a human at the limit.
pub(super) fn next_attempt(state: &mut State, out: &mut Out, why: &str) {
    let limit = state.run.config.remediation_attempts;
    let Some(remediation) = &mut state.run.remediation else { return };
    if remediation.attempts >= limit {
        let attempts = remediation.attempts;
        let text = format!(
            "What all tasks need is still broken after {attempts} attempts: {why}. Say retry to go \
             on with new attempts, override to go on as if it were repaired, or halt to end."
        );
        out.notice((Notice::RemediationExhausted, Level::Error), None, text.clone());
        let options = ["retry", "override", "halt"];
        return human::ask(state, out, About::Exhausted, why, &text, &options, None);
    }
    remediation.attempts += 1;
    let attempts = remediation.attempts;
    let mut decision = decision("remediation", format!("Tries to repair it, attempt {attempts}"))
        .because(why)
        .next("a remediation agent was started");
    decision.counters.insert("attempts".to_owned(), u64::from(attempts));
    out.decided(None, decision);
    fill::dispatch_repair(state, out, Role::Remediation);
}

/// A human wants new attempts.
pub(super) fn retry(state: &mut State, out: &mut Out, words: &str) {
    if let Some(remediation) = &mut state.run.remediation {
        remediation.attempts = 1;
    }
    note(state, "A human says:", words);
    fill::dispatch_repair(state, out, Role::Remediation);
}

/// What all tasks need works again: those that reported it get a fresh agent of the same role.
pub(super) fn healed(state: &mut State, out: &mut Out, because: &str) {
    let Some(remediation) = state.run.remediation.take() else { return };
    for no in &remediation.tasks {
        let about = "What stopped the agent before you has been repaired. Go on where it was.";
        state.at_mut(*no).note(about, "");
        state.set_wait(*no, Wait::Slot);
    }
    let mut decision = decision("remediation", "Went back to work")
        .because(because)
        .next("the tasks that were blocked get a new agent of the same role");
    decision.counters.insert("attempts".to_owned(), u64::from(remediation.attempts));
    out.decided(None, decision);
    out.notice((Notice::RemediationEnded, Level::Info), None, because);
}

/// Tells the next agent of the repair something.
pub(super) fn note(state: &mut State, about: &str, words: &str) {
    if let Some(remediation) = &mut state.run.remediation {
        remember(&mut remediation.notes, Note::new(about, words));
    }
}
