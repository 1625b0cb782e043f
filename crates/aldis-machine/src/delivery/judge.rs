//! What an agent's words come to: who said it, whether that counts, and what goes first.

use super::event::{AgentReply, Effect, Notice, ReportedSignal, Request, Severity, preview};
use super::run::{CheckpointRequest, Work, WorkingAgent};
use super::signal::{SignalKind, Subject};
use super::state::{State, StepOutput, decision};
use super::task::{field, render_fields};
use super::{expert, liveness, prompts, remediation, schedule, workflow};
use crate::run::Exit;
use crate::{Evidence, Refusal};

/// Why an agent's end brought nothing.
#[derive(Clone, Debug)]
pub(super) enum AgentFailure {
    /// Its process crashed.
    Crashed(Exit),
    /// It took too long.
    TimedOut,
    /// It showed no sign of life.
    Stalled,
    /// Its work did not move; why that is thought.
    Stagnated(String),
    /// It said nothing that can be understood.
    Unknown(AgentReply),
    /// It said only what it may not say, or nothing that counts.
    Refused(Vec<RefusedSignal>),
}

/// A well-formed signal that does not count.
#[derive(Clone, Debug)]
pub(super) struct RefusedSignal {
    pub(super) name: String,
    /// A stable code.
    pub(super) code: &'static str,
    /// What the agent is told about it.
    pub(super) why: String,
    pub(super) evidence: Evidence,
}

/// A signal that counts, and what else was said with it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Accepted<'s> {
    pub(super) agent: u64,
    pub(super) kind: SignalKind,
    pub(super) signal: &'s ReportedSignal,
}

impl Accepted<'_> {
    /// Whether it accepts or refuses something; `None` if it is no verdict.
    pub(super) fn approves(&self) -> Option<bool> {
        match self.kind {
            SignalKind::ReviewPassed | SignalKind::AuditPassed => Some(true),
            SignalKind::ReviewFailed | SignalKind::AuditFailed => Some(false),
            // Any other verdict counts as unhealthy.
            SignalKind::HealthAudit => Some(self.signal.subject.as_deref() == Some("HEALTHY")),
            _ => None,
        }
    }
}

/// An agent is done.
pub(super) fn finished(
    state: &mut State,
    out: &mut StepOutput,
    no: u64,
    exit: Option<Exit>,
    reply: &AgentReply,
) {
    let Some(agent) = state.run.agents.get(&no).cloned() else {
        return late(state, out, no, reply);
    };
    if let Some(exit) = exit.filter(|exit| !exit.is_clean()) {
        state.retire(no);
        return failed(state, out, (no, &agent), AgentFailure::Crashed(exit));
    }
    let Sorted { counting, mut refused } = sorted(state, &agent, no, reply);
    let checkpoints = || counting.iter().filter(|accepted| accepted.kind == SignalKind::Checkpoint);
    checkpoints().for_each(|accepted| workflow::checkpoint(state, out, &agent, *accepted));
    let verdicts = counting.iter().filter(|accepted| accepted.kind != SignalKind::Checkpoint);
    let first = verdicts.clone().map(|accepted| accepted.kind.priority()).min();
    // Among equals the last word counts.
    let mut chosen = verdicts.clone().rfind(|accepted| Some(accepted.kind.priority()) == first);
    if let Some(both) = chosen.and_then(|accepted| contradiction(&counting, *accepted)) {
        refused.push(both);
        chosen = None;
    }
    if !matches!(agent.work, Work::Task { .. }) {
        refused.iter().for_each(|refused| record(state, out, &agent, refused));
    }
    if agent.work == Work::Plan {
        state.retire(no);
        return expert::planned(state, out, verdicts.copied());
    }
    let Some(accepted) = chosen.copied() else {
        let failure = match (refused.is_empty(), checkpoints().next().is_some()) {
            (false, _) => AgentFailure::Refused(refused),
            (true, true) => AgentFailure::Refused(vec![only_a_checkpoint(no)]),
            (true, false) => AgentFailure::Unknown(reply.clone()),
        };
        if state.run.config.requests && matches!(failure, AgentFailure::Unknown(_)) {
            return ask_again(state, out, no, &agent, reply);
        }
        state.retire(no);
        return failed(state, out, (no, &agent), failure);
    };
    state.retire(no);
    let also: Vec<Accepted<'_>> =
        verdicts.copied().filter(|other| other.kind != accepted.kind).collect();
    match agent.work {
        Work::Task { task } => {
            refused.iter().for_each(|refused| record(state, out, &agent, refused));
            workflow::apply(state, out, task, accepted);
            workflow::also(state, out, task, &agent, (accepted, &also));
        }
        Work::Infrastructure => remediation::apply(state, out, &agent, accepted),
        Work::Request { request } => expert::apply(state, out, &request, accepted),
        Work::Plan => {}
    }
}

/// An agent said something and works on.
pub(super) fn heard(state: &mut State, out: &mut StepOutput, no: u64, reply: &AgentReply) {
    let Some(agent) = state.run.agents.get(&no).cloned() else {
        return late(state, out, no, reply);
    };
    let Sorted { counting, refused } = sorted(state, &agent, no, reply);
    for accepted in counting.into_iter().filter(|accepted| accepted.kind == SignalKind::Checkpoint)
    {
        workflow::checkpoint(state, out, &agent, accepted);
        let Some(live) = state.run.agents.get_mut(&no) else { continue };
        (live.last_seen, live.missed_checkpoints) = (out.now, 0);
        if live.checkpoint_request.take().is_some_and(|asked| asked.after_unknown_reply) {
            let text = prompts::resend();
            out.effects.push(Effect::Request { agent: no, request: Request::Resend, text });
        }
        liveness::reported(state, out, no, &render_fields(&accepted.signal.fields));
    }
    let checkpoint = |refused: &&RefusedSignal| refused.name == SignalKind::Checkpoint.name();
    refused.iter().filter(checkpoint).for_each(|refused| record(state, out, &agent, refused));
}

struct Sorted<'s> {
    counting: Vec<Accepted<'s>>,
    refused: Vec<RefusedSignal>,
}

/// Separates what this agent may say about its own work from the rest.
fn sorted<'s>(state: &State, agent: &WorkingAgent, no: u64, reply: &'s AgentReply) -> Sorted<'s> {
    let mut sorted = Sorted { counting: Vec::new(), refused: Vec::new() };
    for signal in &reply.signals {
        let Some(kind) = SignalKind::of(&signal.name) else { continue };
        let refusal = if !kind.may_be_said_by(agent.role) {
            let role = agent.role.label();
            Some((Refusal::RoleNotAllowed, format!("a {role} may not say it")))
        } else {
            let subject = signal.subject.as_deref();
            mismatch(state, agent, kind, subject).map(|why| (Refusal::SubjectMismatch, why))
        };
        match refusal {
            None => sorted.counting.push(Accepted { agent: no, kind, signal }),
            Some((refusal, why)) => sorted.refused.push(RefusedSignal {
                name: signal.name.clone(),
                code: refusal.as_str(),
                why,
                evidence: evidence(signal, no, Some(refusal.as_str())),
            }),
        }
    }
    // Two subjects from one agent: the one it was started for counts.
    if !sorted.counting.is_empty() {
        sorted.refused.retain(|refused| refused.code != Refusal::SubjectMismatch.as_str());
    }
    sorted
}

/// An approval after a rejection in one reply is neither: the agent is asked which it is. A rejection
/// after an approval is a correction, and the last word.
fn contradiction(counting: &[Accepted<'_>], chosen: Accepted<'_>) -> Option<RefusedSignal> {
    let refusal = Refusal::Contradictory.as_str();
    let earlier =
        counting.iter().take_while(|accepted| !std::ptr::eq(accepted.signal, chosen.signal));
    let rejects = earlier.filter(|accepted| accepted.approves() == Some(false)).last();
    rejects.filter(|_| chosen.approves() == Some(true)).map(|rejects| RefusedSignal {
        name: chosen.signal.name.clone(),
        code: refusal,
        why: format!(
            "line {} says the opposite, about the same; say which of the two it is, once",
            rejects.signal.line
        ),
        evidence: evidence(chosen.signal, chosen.agent, Some(refusal)),
    })
}

/// Says what a signal should have been about, if it is about something else.
fn mismatch(
    state: &State,
    agent: &WorkingAgent,
    kind: SignalKind,
    subject: Option<&str>,
) -> Option<String> {
    let expected = match (kind.subject(), &agent.work) {
        (Subject::Task, Work::Task { task }) => &state.at(*task).spec.id,
        (Subject::Request, Work::Request { request }) => request,
        // Agents without a task speak of none, or of one that is not theirs to judge.
        (Subject::Task | Subject::Request | Subject::Other, _) => return None,
    };
    let reply = subject?;
    (reply != expected).then(|| format!("it is about {expected}, not about {}", preview(reply)))
}

pub(super) fn evidence(signal: &ReportedSignal, agent: u64, reason: Option<&str>) -> Evidence {
    Evidence {
        what: if reason.is_some() { "refused" } else { "signal" }.to_owned(),
        name: Some(signal.name.clone()),
        reason: reason.map(str::to_owned),
        quote: signal.quote.clone(),
        line: Some(signal.line),
        agent: Some(agent.to_string()),
    }
}

/// An agent that is no longer at work said something.
fn late(state: &State, out: &mut StepOutput, no: u64, reply: &AgentReply) {
    // An agent that was never started has no words, and one without a signal changes nothing.
    let known = reply.signals.iter().rfind(|signal| SignalKind::of(&signal.name).is_some());
    let Some(signal) = known.filter(|_| (1..=state.run.agents_started).contains(&no)) else {
        return;
    };
    let task = signal.subject.as_deref().and_then(|id| state.task(id));
    let code = Refusal::LateSignal.as_str();
    let because = format!("agent {no} is no longer at work");
    let decision = decision("late", format!("Ignored {}", signal.name))
        .because(because.clone())
        .seen([evidence(signal, no, Some(code))])
        .next("only the agent at work moves its task");
    out.notice((Notice::LateSignalIgnored, Severity::Info), task, because);
    out.decided(task, decision);
}

/// Keeps a refusal that changes nothing.
fn record(state: &State, out: &mut StepOutput, agent: &WorkingAgent, refused: &RefusedSignal) {
    let task = match agent.work {
        Work::Task { task } => Some(state.at(task)),
        Work::Infrastructure | Work::Request { .. } | Work::Plan => None,
    };
    let decision = decision("refused", format!("Refused {}", refused.name))
        .because(format!("{}: {}", refused.code, refused.why))
        .seen([refused.evidence.clone()]);
    out.decided(task, decision);
}

fn only_a_checkpoint(agent: u64) -> RefusedSignal {
    RefusedSignal {
        name: SignalKind::Checkpoint.name().to_owned(),
        code: "no_verdict",
        why: "it says how far the work is, not how it ended".to_owned(),
        evidence: Evidence {
            what: "said".to_owned(),
            agent: Some(agent.to_string()),
            ..Evidence::default()
        },
    }
}

/// A living agent whose reply cannot be understood shows a sign of life first, then says it again.
fn ask_again(
    state: &mut State,
    out: &mut StepOutput,
    no: u64,
    agent: &WorkingAgent,
    reply: &AgentReply,
) {
    if let Work::Task { task } = agent.work
        && !workflow::unknown(state, out, task, no, reply)
    {
        return;
    }
    let now = out.now;
    if let Some(live) = state.run.agents.get_mut(&no) {
        live.checkpoint_request = Some(CheckpointRequest { at: now, after_unknown_reply: true });
        let text = prompts::checkpoint();
        out.effects.push(Effect::Request { agent: no, request: Request::Checkpoint, text });
    }
}

/// An agent's end brought nothing.
pub(super) fn failed(
    state: &mut State,
    out: &mut StepOutput,
    (no, agent): (u64, &WorkingAgent),
    it: AgentFailure,
) {
    match &agent.work {
        Work::Task { task } => workflow::failed(state, out, *task, no, it),
        Work::Infrastructure => {
            let why = format!("the {} {}", agent.role.label(), describe(&it));
            remediation::next_attempt(state, out, &why);
        }
        Work::Request { request } => {
            let why = format!("it {}", describe(&it));
            expert::failed(state, out, request, &why);
        }
        Work::Plan => {
            let because = format!("the planner {}", describe(&it));
            let decision = decision("plan", "Went on without the planner").because(because);
            out.decided(None, decision);
            schedule::plan_is_over(state);
        }
    }
}

/// What happened, as the end of a sentence.
pub(super) fn describe(failure: &AgentFailure) -> String {
    match failure {
        AgentFailure::Crashed(Exit { code: Some(code), .. }) => {
            format!("crashed with exit code {code}")
        }
        AgentFailure::Crashed(Exit { signal: Some(signal), .. }) => {
            format!("was ended by signal {signal}")
        }
        AgentFailure::Crashed(_) => "crashed".to_owned(),
        AgentFailure::TimedOut => "took too long".to_owned(),
        AgentFailure::Stalled => "showed no sign of life".to_owned(),
        AgentFailure::Stagnated(why) => format!("was ended because its work did not move: {why}"),
        AgentFailure::Unknown(_) => "said nothing that can be understood".to_owned(),
        AgentFailure::Refused(refused) => {
            let words = refused.iter().map(|it| format!("{} ({}: {})", it.name, it.code, it.why));
            format!("said only what does not count: {}", words.collect::<Vec<_>>().join("; "))
        }
    }
}

/// The most telling words of a signal's body, else all of it.
pub(super) fn first_field(signal: &ReportedSignal, keys: &[&str]) -> String {
    let found = keys.iter().map(|key| field(&signal.fields, key)).find(|text| !text.is_empty());
    found.unwrap_or_else(|| render_fields(&signal.fields))
}
