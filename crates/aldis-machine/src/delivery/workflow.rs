//! A task's way: developer, critic, auditor, and back.

use super::event::{AgentReply, Notice, Severity};
use super::judge::{Accepted, AgentFailure, describe, evidence, first_field};
use super::ledger::Raised;
use super::matrix::{self, MatrixProblem};
use super::run::{QuestionSubject, Work, WorkingAgent};
use super::signal::{Role, SignalKind};
use super::state::{State, StepOutput, decision};
use super::task::{Expansion, Wait, field, list, render_fields};
use super::{expert, human, locks, prompts, remediation};
use crate::{Evidence, Miss};

/// A signal of the agent at work counts.
pub(super) fn apply(state: &mut State, out: &mut StepOutput, no: usize, accepted: Accepted<'_>) {
    let task = state.at_mut(no);
    (task.counters.unknown, task.last_failure) = (0, None);
    match accepted.kind {
        SignalKind::ReadyForReview => handed_over(state, out, no, accepted),
        SignalKind::TaskIncomplete => incomplete(state, out, no, accepted),
        SignalKind::InfraBlocked | SignalKind::AuditBlocked => {
            remediation::enter(state, out, no, accepted)
        }
        SignalKind::ReviewPassed => reviewed(state, out, no, accepted),
        SignalKind::ReviewFailed => rework(state, out, no, accepted, Role::Critic),
        SignalKind::AuditPassed => audited(state, out, no, accepted),
        SignalKind::AuditFailed => rework(state, out, no, accepted, Role::Auditor),
        SignalKind::Expanded => expanded(state, out, no, accepted),
        SignalKind::SeekingClarification => {
            let text = first_field(accepted.signal, &["question"]);
            state.at_mut(no).resume = Some(accepted.agent);
            let why = format!("the {} asks", state.at(no).role.label());
            let seen = evidence(accepted.signal, accepted.agent, None);
            human::ask_about(state, out, no, &why, &text, Some(seen));
        }
        SignalKind::ExpertRequest => {
            let asking = (Some(no), state.at(no).role);
            expert::requested(state, out, asking, accepted);
        }
        SignalKind::FileConflict => locks::conflict(state, out, no, accepted),
        // Written by no agent of a task, or handled before.
        SignalKind::RemediationComplete
        | SignalKind::HealthAudit
        | SignalKind::ExpertAdvice
        | SignalKind::ExpertUnsuccessful
        | SignalKind::ExpertCreated
        | SignalKind::Checkpoint => {}
    }
}

/// What was said beside a signal that went first is recorded, and told to the role when it is started
/// again.
pub(super) fn also(
    state: &mut State,
    out: &mut StepOutput,
    no: usize,
    agent: &WorkingAgent,
    (first, others): (Accepted<'_>, &[Accepted<'_>]),
) {
    if others.is_empty() {
        return;
    }
    let names: Vec<&str> = others.iter().map(|accepted| accepted.kind.name()).collect();
    let names = names.join(", ");
    let again = state.at(no).role == agent.role && !matches!(state.at(no).wait, Wait::Complete);
    if again {
        let about = format!(
            "In the same reply the last {} also said {names}. That was recorded and not acted on: \
             say it again if it still holds.",
            agent.role.label(),
        );
        state.at_mut(no).note(about, "");
    }
    let decision = decision("also", format!("Recorded {names}"))
        .because(format!("{} was said in the same reply and goes first", first.kind.name()))
        .seen(others.iter().map(|accepted| evidence(accepted.signal, accepted.agent, None)))
        .next(if again { "the role is told when it is started again" } else { "nothing to do" });
    out.decided(Some(state.at(no)), decision);
}

/// How far the work has come. Never changes where a task is.
pub(super) fn checkpoint(
    state: &mut State,
    out: &mut StepOutput,
    agent: &WorkingAgent,
    accepted: Accepted<'_>,
) {
    let Work::Task { task: no } = agent.work else { return };
    let reply = first_field(accepted.signal, &["progress", "current_activity"]);
    let task = state.at_mut(no);
    task.counters.unknown = 0;
    task.progress = Some(super::event::preview(&reply));
    let decision = decision("checkpoint", "Heard how far the work has come")
        .because("the developer said it")
        .seen([evidence(accepted.signal, accepted.agent, None)]);
    out.decided(Some(state.at(no)), decision);
}

fn handed_over(state: &mut State, out: &mut StepOutput, no: usize, accepted: Accepted<'_>) {
    let fields = &accepted.signal.fields;
    if let Some(lack) = matrix::lack(&state.run.config, fields) {
        return lacking(state, out, no, accepted, &lack);
    }
    let task = state.at_mut(no);
    task.ledger.answered(fields);
    task.report = render_fields(fields);
    task.round += 1;
    task.notes.clear();
    (task.reviewed_by, task.audited_by, task.resume) = (None, None, None);
    task.developer = Some(accepted.agent);
    state.queue(no, Role::Critic);
    let decision = decision("ready", "Handed the work to the critic")
        .because("the developer says that it is ready")
        .seen([evidence(accepted.signal, accepted.agent, None)])
        .next("a critic looks at it as soon as there is a slot");
    out.decided(Some(state.at(no)), decision);
}

/// A claim without the table that it needs.
fn lacking(
    state: &mut State,
    out: &mut StepOutput,
    no: usize,
    accepted: Accepted<'_>,
    lack: &MatrixProblem,
) {
    let why = match lack {
        MatrixProblem::Failed(row) => format!("its own table reports a failure: {row}"),
        MatrixProblem::Missing(what) => format!(
            "its table of checks has no passed row for {what}; write one row per check, with the \
             environment in parentheses"
        ),
    };
    refuse(state, out, no, accepted, "missing_environment_matrix", why);
}

/// Refuses a well-formed signal for what it says.
pub(super) fn refuse(
    state: &mut State,
    out: &mut StepOutput,
    no: usize,
    accepted: Accepted<'_>,
    code: &'static str,
    why: String,
) {
    let refused = super::judge::RefusedSignal {
        name: accepted.kind.name().to_owned(),
        code,
        why,
        evidence: evidence(accepted.signal, accepted.agent, Some(code)),
    };
    failed(state, out, no, accepted.agent, AgentFailure::Refused(vec![refused]));
}

fn reviewed(state: &mut State, out: &mut StepOutput, no: usize, accepted: Accepted<'_>) {
    let task = state.at_mut(no);
    task.ledger.passed(Role::Critic);
    task.reviewed_by = Some(accepted.agent);
    task.notes.clear();
    task.resume = None;
    state.queue(no, Role::Auditor);
    let decision = decision("review-passed", "Handed the work to the auditor")
        .because("the critic accepts it")
        .seen([evidence(accepted.signal, accepted.agent, None)])
        .next("an auditor looks at it as soon as there is a slot");
    out.decided(Some(state.at(no)), decision);
}

fn audited(state: &mut State, out: &mut StepOutput, no: usize, accepted: Accepted<'_>) {
    match matrix::lack(&state.run.config, &accepted.signal.fields) {
        // What was measured beats what is claimed.
        Some(MatrixProblem::Failed(_)) => return rework(state, out, no, accepted, Role::Auditor),
        Some(lack) => return lacking(state, out, no, accepted, &lack),
        None => {}
    }
    let task = state.at_mut(no);
    task.ledger.passed(Role::Auditor);
    task.audited_by = Some(accepted.agent);
    task.notes.clear();
    task.resume = None;
    let seen = evidence(accepted.signal, accepted.agent, None);
    if state.run.config.worktrees {
        return locks::merge(state, out, no, seen);
    }
    complete(state, out, no, "the auditor accepts it", vec![seen]);
}

/// The only way to completion: reviewed and audited as it stands.
pub(super) fn complete(
    state: &mut State,
    out: &mut StepOutput,
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
    out.notice((Notice::TaskComplete, Severity::Info), Some(task), text);
    out.decided(Some(task), decision);
}

/// A reviewer refuses the work: back to the developer, or to a human.
fn rework(state: &mut State, out: &mut StepOutput, no: usize, accepted: Accepted<'_>, by: Role) {
    let fields = &accepted.signal.fields;
    if state.at_mut(no).ledger.failed(by, fields) == Raised::OnlySettled {
        let why =
            "every finding in it was settled before; accept the work, or bring evidence that \
                   was not there then, under the key Evidence"
                .to_owned();
        return refuse(state, out, no, accepted, "settled_finding", why);
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
    let about = format!("The {} refused the work and says:", by.label());
    task.note(about, &render_fields(fields));
    let plateau = task.ledger.is_plateau(rounds);
    state.set(no, Role::Developer, Wait::Slot);
    let seen = evidence(accepted.signal, accepted.agent, None);
    let rule = format!("{which}-failed");
    if failures >= limit || plateau {
        let why = if failures >= limit {
            format!("{failures} failed {which}s")
        } else {
            format!("after {rounds} verdicts in a row no fewer findings are open")
        };
        let text = format!("{why}. The {} says:\n{}", by.label(), render_fields(fields));
        return human::ask_about(state, out, no, &why, &text, Some(seen));
    }
    let decision = decision(&rule, "Sent the work back to the developer")
        .because(format!("the {} refuses it", by.label()))
        .seen([seen])
        .next("the developer gets the list; the critic looks again after that");
    out.decided(Some(state.at(no)), decision);
}

fn incomplete(state: &mut State, out: &mut StepOutput, no: usize, accepted: Accepted<'_>) {
    let limit = state.run.config.incomplete_limit;
    let task = state.at_mut(no);
    task.counters.incomplete += 1;
    let times = task.counters.incomplete;
    task.notes.clear();
    task.resume = None;
    task.note(
        "The last developer gave the task back and said:",
        &render_fields(&accepted.signal.fields),
    );
    let seen = evidence(accepted.signal, accepted.agent, None);
    if times >= limit {
        let why = format!("the task was given back {times} times");
        let text = first_field(accepted.signal, &["needed", "blocker"]);
        return human::ask_about(state, out, no, &why, &text, Some(seen));
    }
    state.set_wait(no, Wait::Change);
    let lacks = first_field(accepted.signal, &["needed", "blocker"]);
    out.notice((Notice::TaskBlocked, Severity::Warning), Some(state.at(no)), lacks);
    let decision = decision("incomplete", "Set the task aside")
        .because("the developer lacks something")
        .seen([seen])
        .next("it is tried again after another task is complete, or when nothing else can run");
    out.decided(Some(state.at(no)), decision);
}

fn expanded(state: &mut State, out: &mut StepOutput, no: usize, accepted: Accepted<'_>) {
    let fields = &accepted.signal.fields;
    let acceptance = list(fields, "acceptance_criteria");
    if acceptance.is_empty() {
        let why = "it has no acceptance criteria; list them under the key Acceptance Criteria";
        return refuse(state, out, no, accepted, "missing_criteria", why.to_owned());
    }
    let approach = field(fields, "technical_approach");
    let mut description = field(fields, "expanded_specification");
    if !approach.is_empty() {
        description = format!("{description}\n\nApproach: {approach}");
    }
    let files = list(fields, "target_files");
    let files = files.into_iter().filter_map(|file| locks::normal(&file)).collect();
    let expansion = Expansion { description, acceptance, files };
    let seen = evidence(accepted.signal, accepted.agent, None);
    let confidence = field(fields, "confidence").to_ascii_uppercase();
    if confidence == "HIGH" || confidence == "MEDIUM" {
        apply_expansion(state, no, expansion);
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
    state.at_mut(no).resume = Some(accepted.agent);
    let about = QuestionSubject::Expansion { task: no };
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
pub(super) fn apply_expansion(state: &mut State, no: usize, expansion: Expansion) {
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
pub(super) fn failed(
    state: &mut State,
    out: &mut StepOutput,
    no: usize,
    agent: u64,
    it: AgentFailure,
) {
    match it {
        AgentFailure::Crashed(_)
        | AgentFailure::TimedOut
        | AgentFailure::Stalled
        | AgentFailure::Stagnated(_) => {
            let rule =
                if matches!(it, AgentFailure::Stagnated(_)) { "stagnation" } else { "timeout" };
            state.at_mut(no).resume = None;
            let words = describe(&it);
            let because = format!("the {} {words}", state.at(no).role.label());
            timed_out(state, out, no, rule, &because);
        }
        AgentFailure::Refused(refused) => {
            let words = describe(&AgentFailure::Refused(refused.clone()));
            let limit = state.run.config.refusal_limit;
            let task = state.at_mut(no);
            task.counters.refusals += 1;
            task.resume = Some(agent);
            let times = task.counters.refusals;
            task.note(format!("Your last reply changed nothing: it {words}."), "");
            let because = format!("the {} {words}", task.role.label());
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
        AgentFailure::Unknown(reply) => {
            if unknown(state, out, no, agent, &reply) {
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
    out: &mut StepOutput,
    no: usize,
    agent: u64,
    reply: &AgentReply,
) -> bool {
    let limit = state.run.config.unknown_limit;
    let task = state.at_mut(no);
    task.counters.unknown += 1;
    let attempt = task.counters.unknown;
    let role = task.role;
    let shown = Evidence {
        what: "said".to_owned(),
        quote: reply.preview.clone(),
        agent: Some(agent.to_string()),
        ..Evidence::default()
    };
    let misses = reply.near_misses.iter().rev().take(3).map(|miss| Evidence {
        what: "near_miss".to_owned(),
        name: Some(miss.name.clone()),
        reason: Some(miss.reason.clone()),
        quote: miss.quote.clone(),
        line: Some(miss.line),
        agent: Some(agent.to_string()),
    });
    let delegation = reply.near_misses.iter().rfind(|miss| is_malformed_delegation(miss));
    let delegation = delegation.map(|miss| Evidence {
        what: "refused".to_owned(),
        name: Some(miss.name.clone()),
        reason: Some("malformed_delegation".to_owned()),
        quote: miss.quote.clone(),
        line: Some(miss.line),
        agent: Some(agent.to_string()),
    });
    let seen: Vec<Evidence> = std::iter::once(shown).chain(misses).chain(delegation).collect();
    if attempt < limit {
        task.note(prompts::not_understood(reply), "");
        let level = if attempt == 1 { Severity::Warning } else { Severity::Error };
        out.unknown(level, state.at(no), attempt, &reply.preview);
        let decision = decision("unknown", "Asked for a signal")
            .because(format!("the reply of the {} holds none", role.label()))
            .seen(seen)
            .next("the agent is asked again, in the same session where that is possible");
        out.decided(Some(state.at(no)), decision);
        return true;
    }
    task.counters.unknown = 0;
    task.resume = None;
    task.notes.retain(|note| !note.heading.starts_with(prompts::NOT_UNDERSTOOD));
    task.note(prompts::format(role), "");
    let text = format!("{attempt} replies in a row without a signal");
    out.notice((Notice::AgentSignalFailure, Severity::Error), Some(state.at(no)), text);
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
    miss.name == SignalKind::ExpertRequest.name()
        && matches!(&*miss.reason, "missing_field" | "unclosed" | "bad_value" | "placeholder")
}

/// Counts a timeout: the task gets another agent, or a human is asked.
fn timed_out(state: &mut State, out: &mut StepOutput, no: usize, rule: &str, because: &str) {
    let limit = state.run.config.timeout_limit;
    let task = state.at_mut(no);
    task.counters.timeouts += 1;
    let times = task.counters.timeouts;
    task.last_failure = Some(because.to_owned());
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
