//! A task's way: developer, critic, auditor, and back.

use super::event::{Level, Notice, Said};
use super::judge::{Failure, Word, evidence, gist, in_words};
use super::ledger::Raised;
use super::matrix::{self, Lack};
use super::run::{About, Agent, Work};
use super::signal::{Kind, Role};
use super::state::{Out, State, decision};
use super::task::{Expansion, Wait, field, list, told};
use super::{expert, human, locks, prompts, remedy};
use crate::{Evidence, Miss};

/// A signal of the agent at work counts.
pub(super) fn took(state: &mut State, out: &mut Out, no: usize, word: Word<'_>) {
    let task = state.at_mut(no);
    (task.counters.unknown, task.setback) = (0, None);
    match word.kind {
        Kind::ReadyForReview => handed_over(state, out, no, word),
        Kind::TaskIncomplete => incomplete(state, out, no, word),
        Kind::InfraBlocked | Kind::AuditBlocked => remedy::enter(state, out, no, word),
        Kind::ReviewPassed => reviewed(state, out, no, word),
        Kind::ReviewFailed => rework(state, out, no, word, Role::Critic),
        Kind::AuditPassed => audited(state, out, no, word),
        Kind::AuditFailed => rework(state, out, no, word, Role::Auditor),
        Kind::Expanded => expanded(state, out, no, word),
        Kind::SeekingClarification => {
            let text = gist(word.heard, &["question"]);
            state.at_mut(no).resume = Some(word.agent);
            let why = format!("the {} asks", state.at(no).role.spoken());
            let seen = evidence(word.heard, word.agent, None);
            human::ask_about(state, out, no, &why, &text, Some(seen));
        }
        Kind::ExpertRequest => {
            let asking = (Some(no), state.at(no).role);
            expert::requested(state, out, asking, word);
        }
        Kind::FileConflict => locks::conflict(state, out, no, word),
        // Said by no agent of a task, or handled before.
        Kind::RemediationComplete
        | Kind::HealthAudit
        | Kind::ExpertAdvice
        | Kind::ExpertUnsuccessful
        | Kind::ExpertCreated
        | Kind::Checkpoint => {}
    }
}

/// What was said beside a signal that went first is recorded, and told to the role when it is started
/// again.
pub(super) fn also(
    state: &mut State,
    out: &mut Out,
    no: usize,
    agent: &Agent,
    (first, others): (Word<'_>, &[Word<'_>]),
) {
    if others.is_empty() {
        return;
    }
    let names: Vec<&str> = others.iter().map(|word| word.kind.name()).collect();
    let names = names.join(", ");
    let again = state.at(no).role == agent.role && !matches!(state.at(no).wait, Wait::Complete);
    if again {
        let about = format!(
            "In the same reply the last {} also said {names}. That was recorded and not acted on: \
             say it again if it still holds.",
            agent.role.spoken(),
        );
        state.at_mut(no).note(about, "");
    }
    let decision = decision("also", format!("Recorded {names}"))
        .because(format!("{} was said in the same reply and goes first", first.kind.name()))
        .seen(others.iter().map(|word| evidence(word.heard, word.agent, None)))
        .next(if again { "the role is told when it is started again" } else { "nothing to do" });
    out.decided(Some(state.at(no)), decision);
}

/// How far the work has come. Never changes where a task is.
pub(super) fn checkpoint(state: &mut State, out: &mut Out, agent: &Agent, word: Word<'_>) {
    let Work::Task { task: no } = agent.work else { return };
    let said = gist(word.heard, &["progress", "current_activity"]);
    let task = state.at_mut(no);
    task.counters.unknown = 0;
    task.progress = Some(super::event::preview(&said));
    let decision = decision("checkpoint", "Heard how far the work has come")
        .because("the developer said it")
        .seen([evidence(word.heard, word.agent, None)]);
    out.decided(Some(state.at(no)), decision);
}

fn handed_over(state: &mut State, out: &mut Out, no: usize, word: Word<'_>) {
    let fields = &word.heard.fields;
    if let Some(lack) = matrix::lack(&state.run.config, fields) {
        return lacking(state, out, no, word, &lack);
    }
    let task = state.at_mut(no);
    task.ledger.answered(fields);
    task.report = told(fields);
    task.round += 1;
    task.notes.clear();
    (task.reviewed_by, task.audited_by, task.resume) = (None, None, None);
    task.developer = Some(word.agent);
    state.queue(no, Role::Critic);
    let decision = decision("ready", "Handed the work to the critic")
        .because("the developer says that it is ready")
        .seen([evidence(word.heard, word.agent, None)])
        .next("a critic looks at it as soon as there is a slot");
    out.decided(Some(state.at(no)), decision);
}

/// A claim without the table that it needs.
fn lacking(state: &mut State, out: &mut Out, no: usize, word: Word<'_>, lack: &Lack) {
    let why = match lack {
        Lack::Failed(row) => format!("its own table reports a failure: {row}"),
        Lack::Missing(what) => format!(
            "its table of checks has no passed row for {what}; write one row per check, with the \
             environment in parentheses"
        ),
    };
    refuse(state, out, no, word, "missing_environment_matrix", why);
}

/// Refuses a well-formed signal for what it says.
pub(super) fn refuse(
    state: &mut State,
    out: &mut Out,
    no: usize,
    word: Word<'_>,
    code: &'static str,
    why: String,
) {
    let refused = super::judge::Refused {
        name: word.kind.name().to_owned(),
        code,
        why,
        evidence: evidence(word.heard, word.agent, Some(code)),
    };
    failed(state, out, no, word.agent, Failure::Refused(vec![refused]));
}

fn reviewed(state: &mut State, out: &mut Out, no: usize, word: Word<'_>) {
    let task = state.at_mut(no);
    task.ledger.passed(Role::Critic);
    task.reviewed_by = Some(word.agent);
    task.notes.clear();
    task.resume = None;
    state.queue(no, Role::Auditor);
    let decision = decision("review-passed", "Handed the work to the auditor")
        .because("the critic accepts it")
        .seen([evidence(word.heard, word.agent, None)])
        .next("an auditor looks at it as soon as there is a slot");
    out.decided(Some(state.at(no)), decision);
}

fn audited(state: &mut State, out: &mut Out, no: usize, word: Word<'_>) {
    match matrix::lack(&state.run.config, &word.heard.fields) {
        // What was measured beats what is claimed.
        Some(Lack::Failed(_)) => return rework(state, out, no, word, Role::Auditor),
        Some(lack) => return lacking(state, out, no, word, &lack),
        None => {}
    }
    let task = state.at_mut(no);
    task.ledger.passed(Role::Auditor);
    task.audited_by = Some(word.agent);
    task.notes.clear();
    task.resume = None;
    let seen = evidence(word.heard, word.agent, None);
    if state.run.config.worktrees {
        return locks::merge(state, out, no, seen);
    }
    complete(state, out, no, "the auditor accepts it", vec![seen]);
}

/// The only way to completion: reviewed and audited as it stands.
pub(super) fn complete(
    state: &mut State,
    out: &mut Out,
    no: usize,
    because: &str,
    seen: Vec<Evidence>,
) {
    state.set_wait(no, Wait::Complete);
    locks::release(state, out, no);
    let freed = state.index.completed(no);
    for dependent in &freed {
        if state.at(*dependent).wait == Wait::Needs {
            state.set_wait(*dependent, Wait::Slot);
        }
    }
    for waiting in state.index.later() {
        state.set_wait(waiting, Wait::Slot);
    }
    let unblocked: Vec<&str> = freed.iter().map(|no| &*state.at(*no).spec.id).collect();
    let next = match unblocked.len() {
        0 => "nothing to do".to_owned(),
        1..=5 => format!("this unblocks {}", unblocked.join(", ")),
        more => format!("this unblocks {more} tasks"),
    };
    let decision =
        decision("complete", "Completed the task").because(because).seen(seen).next(next);
    let task = state.at(no);
    let text = format!("{} is complete.", task.spec.id);
    out.notice((Notice::TaskComplete, Level::Info), Some(task), text);
    out.decided(Some(task), decision);
}

/// A reviewer refuses the work: back to the developer, or to a human.
fn rework(state: &mut State, out: &mut Out, no: usize, word: Word<'_>, by: Role) {
    let fields = &word.heard.fields;
    if state.at_mut(no).ledger.failed(by, fields) == Raised::OnlySettled {
        let why =
            "every finding in it was settled before; accept the work, or bring evidence that \
                   was not there then, under the key Evidence"
                .to_owned();
        return refuse(state, out, no, word, "settled_finding", why);
    }
    let limit = state.run.config.failure_limit;
    let rounds = state.run.config.plateau_rounds;
    let task = state.at_mut(no);
    let (failures, which) = match by {
        Role::Critic => (&mut task.counters.review_failures, "review"),
        _ => (&mut task.counters.audit_failures, "audit"),
    };
    *failures += 1;
    let failures = *failures;
    (task.reviewed_by, task.audited_by) = (None, None);
    // Whoever did the work knows it best. Reviewers always look with fresh eyes.
    task.resume = task.developer;
    task.notes.clear();
    let about = format!("The {} refused the work and says:", by.spoken());
    task.note(about, &told(fields));
    let plateau = task.ledger.is_plateau(rounds);
    state.set(no, Role::Developer, Wait::Slot);
    let seen = evidence(word.heard, word.agent, None);
    let rule = format!("{which}-failed");
    if failures >= limit || plateau {
        let why = if failures >= limit {
            format!("{failures} failed {which}s")
        } else {
            format!("after {rounds} verdicts in a row no fewer findings are open")
        };
        let text = format!("{why}. The {} says:\n{}", by.spoken(), told(fields));
        return human::ask_about(state, out, no, &why, &text, Some(seen));
    }
    let decision = decision(&rule, "Sent the work back to the developer")
        .because(format!("the {} refuses it", by.spoken()))
        .seen([seen])
        .next("the developer gets the list; the critic looks again after that");
    out.decided(Some(state.at(no)), decision);
}

fn incomplete(state: &mut State, out: &mut Out, no: usize, word: Word<'_>) {
    let limit = state.run.config.incomplete_limit;
    let task = state.at_mut(no);
    task.counters.incomplete += 1;
    let times = task.counters.incomplete;
    task.notes.clear();
    task.resume = None;
    task.note("The last developer gave the task back and said:", &told(&word.heard.fields));
    let seen = evidence(word.heard, word.agent, None);
    if times >= limit {
        let why = format!("the task was given back {times} times");
        let text = gist(word.heard, &["needed", "blocker"]);
        return human::ask_about(state, out, no, &why, &text, Some(seen));
    }
    state.set_wait(no, Wait::Change);
    let lacks = gist(word.heard, &["needed", "blocker"]);
    out.notice((Notice::TaskBlocked, Level::Warning), Some(state.at(no)), lacks);
    let decision = decision("incomplete", "Set the task aside")
        .because("the developer lacks something")
        .seen([seen])
        .next("it is tried again after another task is complete, or when nothing else can run");
    out.decided(Some(state.at(no)), decision);
}

fn expanded(state: &mut State, out: &mut Out, no: usize, word: Word<'_>) {
    let fields = &word.heard.fields;
    let acceptance = list(fields, "acceptance_criteria");
    if acceptance.is_empty() {
        let why = "it has no acceptance criteria; list them under the key Acceptance Criteria";
        return refuse(state, out, no, word, "missing_criteria", why.to_owned());
    }
    let approach = field(fields, "technical_approach");
    let mut description = field(fields, "expanded_specification");
    if !approach.is_empty() {
        description = format!("{description}\n\nApproach: {approach}");
    }
    let files = list(fields, "target_files");
    let files = files.into_iter().filter_map(|file| locks::normal(&file)).collect();
    let expansion = Expansion { description, acceptance, files };
    let seen = evidence(word.heard, word.agent, None);
    let confidence = field(fields, "confidence").to_ascii_uppercase();
    if confidence == "HIGH" || confidence == "MEDIUM" {
        apply(state, no, expansion);
        let decision = decision("expanded", "Gave the task its acceptance criteria")
            .because(format!("the business analyst is sure ({confidence})"))
            .seen([seen])
            .next("a developer begins as soon as there is a slot");
        return out.decided(Some(state.at(no)), decision);
    }
    let text = format!(
        "The business analyst is not sure about this:\n{}\n{}\nAccept it, or say what is wanted.",
        expansion.description,
        expansion.acceptance.iter().map(|line| format!("- {line}\n")).collect::<String>(),
    );
    state.at_mut(no).proposal = Some(expansion);
    state.at_mut(no).resume = Some(word.agent);
    let about = About::Expansion { task: no };
    human::ask(
        state,
        out,
        about,
        "the expansion is a guess",
        &text,
        &["accept", "fail"],
        Some(seen),
    );
}

/// Replaces description and criteria by what the business analyst made of them.
pub(super) fn apply(state: &mut State, no: usize, expansion: Expansion) {
    let Expansion { description, acceptance, files } = expansion;
    let task = state.at_mut(no);
    if !description.trim().is_empty() {
        task.spec.description = description;
    }
    task.spec.acceptance = acceptance;
    task.proposal = None;
    task.notes.clear();
    task.resume = None;
    if task.spec.files.is_empty() {
        task.spec.files = files;
    }
    state.queue(no, Role::Developer);
}

/// The agent of a task brought nothing.
pub(super) fn failed(state: &mut State, out: &mut Out, no: usize, agent: u64, it: Failure) {
    match it {
        Failure::Crashed(_) | Failure::TimedOut | Failure::Stalled | Failure::Stagnated(_) => {
            let rule = if matches!(it, Failure::Stagnated(_)) { "stagnation" } else { "timeout" };
            state.at_mut(no).resume = None;
            let words = in_words(&it);
            let because = format!("the {} {words}", state.at(no).role.spoken());
            timed_out(state, out, no, rule, &because);
        }
        Failure::Refused(refused) => {
            let words = in_words(&Failure::Refused(refused.clone()));
            let limit = state.run.config.refusal_limit;
            let task = state.at_mut(no);
            task.counters.refusals += 1;
            task.resume = Some(agent);
            let times = task.counters.refusals;
            task.note(format!("Your last reply changed nothing: it {words}."), "");
            let because = format!("the {} {words}", task.role.spoken());
            let seen: Vec<Evidence> = refused.into_iter().map(|it| it.evidence).collect();
            if times >= limit {
                let why = format!("{times} refused signals");
                let text = format!("{why}; the last time {because}");
                let last = seen.last().cloned();
                return human::ask_about(state, out, no, &why, &text, last);
            }
            state.set_wait(no, Wait::Slot);
            let decision = decision("refused", "Refused what the agent said")
                .because(because)
                .seen(seen)
                .next("the agent is started again and told why");
            out.decided(Some(state.at(no)), decision);
        }
        Failure::Unknown(said) => {
            if unknown(state, out, no, agent, &said) {
                state.at_mut(no).resume = Some(agent);
                state.set_wait(no, Wait::Slot);
            }
        }
    }
}

/// Counts a reply that cannot be understood. Returns whether the same agent may try again; if not,
/// it is replaced.
pub(super) fn unknown(
    state: &mut State,
    out: &mut Out,
    no: usize,
    agent: u64,
    said: &Said,
) -> bool {
    let limit = state.run.config.unknown_limit;
    let task = state.at_mut(no);
    task.counters.unknown += 1;
    let attempt = task.counters.unknown;
    let role = task.role;
    let shown = Evidence {
        what: "said".to_owned(),
        quote: said.preview.clone(),
        agent: Some(agent.to_string()),
        ..Evidence::default()
    };
    let misses = said.misses.iter().rev().take(3).map(|miss| Evidence {
        what: "near_miss".to_owned(),
        name: Some(miss.name.clone()),
        reason: Some(miss.reason.clone()),
        quote: miss.quote.clone(),
        line: Some(miss.line),
        agent: Some(agent.to_string()),
        ..Evidence::default()
    });
    let delegation = said.misses.iter().rfind(|miss| is_malformed_delegation(miss));
    let delegation = delegation.map(|miss| Evidence {
        what: "refused".to_owned(),
        name: Some(miss.name.clone()),
        reason: Some("malformed_delegation".to_owned()),
        quote: miss.quote.clone(),
        line: Some(miss.line),
        agent: Some(agent.to_string()),
        ..Evidence::default()
    });
    let seen: Vec<Evidence> = std::iter::once(shown).chain(misses).chain(delegation).collect();
    if attempt < limit {
        task.note(prompts::not_understood(said), "");
        let level = if attempt == 1 { Level::Warning } else { Level::Error };
        out.unknown(level, state.at(no), attempt, &said.preview);
        let decision = decision("unknown", "Asked for a signal")
            .because(format!("the reply of the {} holds none", role.spoken()))
            .seen(seen)
            .next("the agent is asked again, in the same session where that is possible");
        out.decided(Some(state.at(no)), decision);
        return true;
    }
    task.counters.unknown = 0;
    task.resume = None;
    task.notes.retain(|note| !note.about.starts_with(prompts::NOT_UNDERSTOOD));
    task.note(prompts::format(role), "");
    let text = format!("{attempt} replies in a row without a signal");
    out.notice((Notice::AgentSignalFailure, Level::Error), Some(state.at(no)), text);
    let decision = decision("unknown", "Gave up the agent")
        .because(format!("{attempt} replies in a row hold no signal"))
        .seen(seen)
        .next("another one is started and told the format; this counts as a timeout");
    out.decided(Some(state.at(no)), decision);
    state.retire(agent);
    if state.run.config.requests {
        out.effects.push(super::event::Effect::End { agent });
    }
    timed_out(state, out, no, "unknown", "nothing that it said could be understood");
    false
}

/// Whether somebody wanted an expert and left out what a request needs.
fn is_malformed_delegation(miss: &Miss) -> bool {
    miss.name == Kind::ExpertRequest.name()
        && matches!(&*miss.reason, "missing_field" | "unclosed" | "bad_value" | "placeholder")
}

/// Counts a timeout: the task gets another agent, or a human is asked.
fn timed_out(state: &mut State, out: &mut Out, no: usize, rule: &str, because: &str) {
    let limit = state.run.config.timeout_limit;
    let task = state.at_mut(no);
    task.counters.timeouts += 1;
    let times = task.counters.timeouts;
    task.setback = Some(because.to_owned());
    task.note(
        format!("The agent before you brought nothing: {because}. Look at what it left behind."),
        "",
    );
    if times >= limit {
        let why = format!("{times} agents in vain");
        let text = format!("{why}; the last time {because}");
        return human::ask_about(state, out, no, &why, &text, None);
    }
    state.set_wait(no, Wait::Slot);
    let decision = decision(rule, "Starts another agent")
        .because(because)
        .next("it begins as soon as there is a slot");
    out.decided(Some(state.at(no)), decision);
}
