//! What becomes of an agent's reply: who reported what, whether it counts, and which signal goes first.

use super::event::{AgentRequest, Effect, Notice, Severity};
use super::human::NewQuestion;
use super::reply::{AgentReply, ReportedSignal, preview};
use super::rule::Rule;
use super::run::{CheckpointRequest, Work, WorkingAgent};
use super::signal::{SignalKind, Subject};
use super::state::State;
use super::{failures, prompts};
use crate::run::Exit;
use crate::trust::{self, Rank, RankedReport};
use crate::{Evidence, Refusal};
use aldis_signal::signal::Meaning;

/// Why an agent achieved nothing.
#[derive(Clone, Debug)]
pub(super) enum AgentFailure {
    /// It crashed or was ended: by which rule, and what happened as the rest of a sentence about it.
    Lost(Rule, String),
    /// Its reply holds no signal.
    Unknown(AgentReply),
    /// Its reply holds only signals that do not count.
    Refused(Vec<RefusedSignal>),
}

/// A well-formed signal that does not count.
#[derive(Clone, Debug)]
pub(super) struct RefusedSignal {
    pub(super) name: String,
    /// A stable code.
    pub(super) code: &'static str,
    /// Why, as a clause about the signal.
    pub(super) why: String,
    pub(super) evidence: Evidence,
}

/// A signal that counts.
#[derive(Clone, Copy, Debug)]
pub(super) struct Accepted<'s> {
    pub(super) agent: u64,
    pub(super) kind: SignalKind,
    pub(super) signal: &'s ReportedSignal,
}

impl RefusedSignal {
    pub(super) fn new(of: Accepted<'_>, code: &'static str, why: impl Into<String>) -> Self {
        let name = of.signal.name.clone();
        Self { name, code, why: why.into(), evidence: of.evidence().refused(code) }
    }
}

impl Accepted<'_> {
    /// Whether it approves or rejects something; `None` if it is no verdict.
    pub(super) fn approves(&self) -> Option<bool> {
        match self.kind {
            SignalKind::ReviewPassed | SignalKind::AuditPassed => Some(true),
            SignalKind::ReviewFailed | SignalKind::AuditFailed => Some(false),
            // Any other verdict counts as unhealthy.
            SignalKind::HealthAudit => Some(self.signal.subject.as_deref() == Some("HEALTHY")),
            _ => None,
        }
    }

    /// What it says about the agent's work.
    fn meaning(&self) -> Meaning {
        match self.approves() {
            Some(true) => Meaning::Approved,
            Some(false) => Meaning::Rejected,
            None => self.kind.meaning(),
        }
    }

    /// The signal as evidence.
    pub(super) fn evidence(&self) -> Evidence {
        let ReportedSignal { name, quote, line, via, .. } = self.signal;
        Evidence::signal(name, quote, *line, *via).by_agent(Some(self.agent.to_string()))
    }
}

impl State {
    /// An agent is done.
    pub(super) fn finished(&mut self, no: u64, exit: Option<Exit>, reply: &AgentReply) {
        let Some(agent) = self.run.agents.get(&no).cloned() else {
            return self.late(no, reply, format!("agent {no} is no longer at work"));
        };
        if let Some(exit) = exit.filter(|exit| !exit.is_clean()) {
            self.retire(no);
            let crash = AgentFailure::Lost(Rule::AgentCrashed, crashed(exit));
            return self.agent_failed((no, &agent), crash);
        }
        let SortedReply { counting, mut refused } = self.sorted(&agent, no, reply);
        let is_checkpoint = |accepted: &&Accepted<'_>| accepted.kind == SignalKind::Checkpoint;
        let mut checkpoints = counting.iter().filter(is_checkpoint);
        checkpoints.clone().for_each(|accepted| self.checkpoint(&agent, *accepted));
        let verdicts = counting.iter().filter(|accepted| !is_checkpoint(accepted));
        let first = verdicts.clone().map(|accepted| accepted.kind.priority()).min();
        // Among equals the last one counts.
        let mut chosen = verdicts.clone().rfind(|it| Some(it.kind.priority()) == first);
        if let Some(both) = chosen.and_then(|accepted| contradiction(&counting, *accepted)) {
            refused.push(both);
            chosen = None;
        }
        if !matches!(agent.work, Work::Task { .. }) || chosen.is_some() {
            refused.iter().for_each(|refused| self.record_refusal(&agent, refused));
        }
        if agent.work == Work::Plan {
            self.retire(no);
            return self.planned(verdicts.copied());
        }
        let Some(accepted) = chosen.copied() else {
            let checkpoint = checkpoints.next_back().copied();
            return self.nothing_counts((no, &agent), reply, (refused, checkpoint));
        };
        self.retire(no);
        let also: Vec<Accepted<'_>> =
            verdicts.copied().filter(|other| other.kind != accepted.kind).collect();
        match agent.work {
            Work::Task { task } => {
                self.apply_to_task(task, accepted);
                self.also_reported(task, &agent, (accepted, &also));
            }
            Work::Infrastructure => self.apply_repair(&agent, accepted),
            Work::Request { request } => self.apply_expert(&request, accepted),
            Work::Plan => {}
        }
    }

    /// A reply moves nothing: its question in the wrong form is passed on, or the agent has failed.
    fn nothing_counts(
        &mut self,
        (no, agent): (u64, &WorkingAgent),
        reply: &AgentReply,
        (refused, checkpoint): (Vec<RefusedSignal>, Option<Accepted<'_>>),
    ) {
        if refused.is_empty() && self.pass_question_on((no, agent), reply) {
            return;
        }
        let failure = match (refused.is_empty(), checkpoint) {
            (false, _) => AgentFailure::Refused(refused),
            (true, Some(checkpoint)) => {
                let why = "it says how far the work is, not how it ended";
                AgentFailure::Refused(vec![RefusedSignal::new(checkpoint, "no_verdict", why)])
            }
            (true, None) => AgentFailure::Unknown(reply.clone()),
        };
        if self.run.config.requests && matches!(failure, AgentFailure::Unknown(_)) {
            return self.ask_for_result(no, agent, reply);
        }
        self.retire(no);
        self.agent_failed((no, agent), failure);
    }

    /// Asks the human what an agent asks in a form that is no signal: an agent that needs an answer gains
    /// nothing by being asked for the right form.
    fn pass_question_on(&mut self, (no, agent): (u64, &WorkingAgent), reply: &AgentReply) -> bool {
        let kind = SignalKind::SeekingClarification;
        let Some(text) = &reply.misread_question else { return false };
        if !kind.may_be_reported_by(agent.role) {
            return false;
        }
        // The line with the question is shown first, and not again.
        let is_keyed = |line: &&str| line.trim_start().starts_with("Question:");
        let is_empty = |line: &str| line.trim_start_matches("Question:").trim().is_empty();
        let keyed = text.lines().filter(is_keyed).find(|line| !is_empty(line.trim_start()));
        let line = keyed.or_else(|| text.lines().find(|line| !line.trim().is_empty()));
        let line = line.unwrap_or_default();
        let question = line.trim_start().trim_start_matches("Question:").trim();
        let others: Vec<&str> = text.lines().filter(|other| *other != line).collect();
        let near_miss = reply.near_misses.iter().rfind(|miss| miss.name == kind.as_str());
        let because =
            format!("the {} needs an answer and wrote its request wrongly", agent.role.label());
        let new = NewQuestion::new(Rule::QuestionRecovered, because)
            .asking(question)
            .knowing(others.join("\n"))
            .seen(near_miss.map(|miss| failures::near_miss(miss, no)));
        self.retire(no);
        let task = agent.work.task();
        if let Some(task) = task {
            self.at_mut(task).hands.resume = Some(no);
        }
        self.ask_for(task, agent.role, new);
        true
    }

    /// An agent wrote something and works on.
    pub(super) fn reported(&mut self, no: u64, reply: &AgentReply) {
        let Some(agent) = self.run.agents.get(&no).cloned() else {
            return self.late(no, reply, format!("agent {no} is no longer at work"));
        };
        let SortedReply { counting, refused } = self.sorted(&agent, no, reply);
        for accepted in counting.into_iter().filter(|it| it.kind == SignalKind::Checkpoint) {
            self.checkpoint(&agent, accepted);
            let Some(live) = self.run.agents.get_mut(&no) else { continue };
            (live.last_seen, live.missed_checkpoints) = (self.out.now, 0);
            if live.checkpoint_request.take().is_some_and(|asked| asked.after_unknown_reply) {
                let text = prompts::resend(self, no);
                let request = AgentRequest::Resend;
                self.out.effects.push(Effect::Request { agent: no, request, text });
            }
            self.observe_report(no, &accepted.signal.body());
        }
        let checkpoint = |refused: &&RefusedSignal| refused.name == SignalKind::Checkpoint.as_str();
        refused.iter().filter(checkpoint).for_each(|refused| self.record_refusal(&agent, refused));
    }
}

struct SortedReply<'s> {
    counting: Vec<Accepted<'s>>,
    refused: Vec<RefusedSignal>,
}

impl State {
    /// Separates what this agent may report about its own work from the rest.
    fn sorted<'s>(&self, agent: &WorkingAgent, no: u64, reply: &'s AgentReply) -> SortedReply<'s> {
        let mut sorted = SortedReply { counting: Vec::new(), refused: Vec::new() };
        // Whoever was asked how far it is may answer.
        let asked = self.run.config.requests && agent.checkpoint_request.is_some();
        for signal in &reply.signals {
            let Some(kind) = SignalKind::named(&signal.name) else { continue };
            let answers = asked && kind == SignalKind::Checkpoint;
            let refusal = if !answers && !kind.may_be_reported_by(agent.role) {
                let role = agent.role.with_article();
                Some((Refusal::RoleNotAllowed, format!("{role} may not report it")))
            } else {
                let subject = signal.subject.as_deref();
                self.mismatch(agent, kind, subject).map(|why| (Refusal::SubjectMismatch, why))
            };
            let accepted = Accepted { agent: no, kind, signal };
            match refusal {
                None => sorted.counting.push(accepted),
                Some((refusal, why)) => {
                    sorted.refused.push(RefusedSignal::new(accepted, refusal.as_str(), why));
                }
            }
        }
        sorted.without_outranked()
    }
}

impl SortedReply<'_> {
    /// Of what may count, takes out what came in a weaker way than something else about the same work:
    /// what says the same counts once, the rest is refused.
    fn without_outranked(mut self) -> Self {
        // Each agent has one piece of work, and reports about that.
        let claims: Vec<RankedReport<'_>> = self
            .counting
            .iter()
            .map(|it| RankedReport {
                subject: ("", ""),
                name: &it.signal.name,
                meaning: it.meaning(),
                via: it.signal.via,
            })
            .collect();
        let ranks = trust::ranks(&claims);
        let counting = std::mem::take(&mut self.counting);
        for (accepted, rank) in counting.into_iter().zip(ranks) {
            match rank {
                Rank::Counts => self.counting.push(accepted),
                Rank::Repeats => {}
                Rank::Outranked(by) => {
                    let code = Refusal::Outranked.as_str();
                    self.refused.push(RefusedSignal::new(accepted, code, trust::outranked(by)));
                }
            }
        }
        self
    }
}

/// An approval after a rejection in one reply is neither: the agent is asked which it is. A rejection
/// after an approval is a correction, and the last one counts.
fn contradiction(counting: &[Accepted<'_>], chosen: Accepted<'_>) -> Option<RefusedSignal> {
    let earlier = counting.iter().take_while(|it| !std::ptr::eq(it.signal, chosen.signal));
    let rejects = earlier.filter(|accepted| accepted.approves() == Some(false)).last();
    rejects.filter(|_| chosen.approves() == Some(true)).map(|rejects| {
        let why = format!(
            "line {} says the opposite about the same work; report only the one that holds",
            rejects.signal.line
        );
        RefusedSignal::new(chosen, Refusal::Contradictory.as_str(), why)
    })
}

impl State {
    /// Says what a signal should have been about, if it is about something else.
    fn mismatch(
        &self,
        agent: &WorkingAgent,
        kind: SignalKind,
        subject: Option<&str>,
    ) -> Option<String> {
        let (what, expected) = match (kind.subject(), &agent.work) {
            (Subject::Task, Work::Task { task }) => ("task", &self.at(*task).spec.id),
            (Subject::Request, Work::Request { request }) => ("request", request),
            // Agents without a task name none, or one that is not theirs to judge.
            (Subject::Task | Subject::Request | Subject::Other, _) => return None,
        };
        let named = subject?;
        (named != expected)
            .then(|| format!("it names {}, but the {what} is {expected}", preview(named)))
    }
}

impl State {
    /// Something was reported that comes too late to count.
    pub(super) fn late(&mut self, no: u64, reply: &AgentReply, because: String) {
        // An agent that was never started has nothing to report, and one without a signal changes nothing.
        let known = reply.signals.iter().rev().find_map(|signal| {
            let kind = SignalKind::named(&signal.name)?;
            Some(Accepted { agent: no, kind, signal })
        });
        let started = 1..=self.run.agents_started;
        let Some(late) = known.filter(|_| started.contains(&no)) else { return };
        let (signal, code) = (late.signal, Refusal::LateSignal.as_str());
        let task = signal.subject.as_deref().and_then(|id| self.index.number(id));
        self.decide(task, Rule::LateSignal, format!("Ignored a late {}", signal.name))
            .because(&because)
            .seen([late.evidence().refused(code)])
            .next("nothing to do: only the agent at work moves its task");
        let name = task.map(|no| format!("{}: ", self.at(no).name())).unwrap_or_default();
        let text = format!("{name}{} ignored, because {because}", signal.name);
        self.notice((Notice::LateSignalIgnored, Severity::Info), task, text);
    }

    /// Records a refusal that changes nothing.
    fn record_refusal(&mut self, agent: &WorkingAgent, refused: &RefusedSignal) {
        self.decide(agent.work.task(), Rule::SignalRefused, format!("Refused {}", refused.name))
            .because(format!("{}: {}", refused.code, refused.why))
            .seen([refused.evidence.clone()]);
    }
}

impl State {
    /// An agent at work whose reply holds no signal is asked how far it is, then for its result again.
    fn ask_for_result(&mut self, no: u64, agent: &WorkingAgent, reply: &AgentReply) {
        match agent.work {
            Work::Task { task } => {
                if !self.count_unknown(task, no, reply) {
                    return;
                }
            }
            Work::Infrastructure | Work::Request { .. } | Work::Plan => {
                let role = agent.role.label();
                let summary = format!("No signal in the {role}'s reply; asked again");
                self.decide(None, Rule::UnknownReply, summary)
                    .because(failures::no_signal(reply))
                    .seen(failures::unknown_evidence(reply, no))
                    .next(format!("the {role} is ended when its time is over"));
            }
        }
        let Some(live) = self.run.agents.get_mut(&no) else { return };
        live.checkpoint_request =
            Some(CheckpointRequest { at: self.out.now, after_unknown_reply: true });
        let (request, text) = (AgentRequest::Checkpoint, prompts::checkpoint(self, no));
        self.out.effects.push(Effect::Request { agent: no, request, text });
    }

    /// An agent achieved nothing.
    pub(super) fn agent_failed(&mut self, (no, agent): (u64, &WorkingAgent), it: AgentFailure) {
        match &agent.work {
            Work::Task { task } => self.task_agent_failed(*task, no, it),
            Work::Infrastructure => {
                let why = format!("the {} {}", agent.role.label(), describe(&it));
                self.next_repair(&why, unusable(&it, no));
            }
            Work::Request { request } => {
                let why = format!("it {}", describe(&it));
                self.expert_failed(request, &why);
            }
            Work::Plan => {
                self.decide(None, Rule::PlannerFailed, "Continued without the planner")
                    .because(format!("the planner {}", describe(&it)))
                    .next("the work starts; no experts were added");
                self.plan_is_over();
            }
        }
    }
}

/// What an agent wrote that achieved nothing.
fn unusable(failure: &AgentFailure, agent: u64) -> Vec<Evidence> {
    match failure {
        AgentFailure::Unknown(reply) => failures::unknown_evidence(reply, agent),
        AgentFailure::Refused(refused) => refused.iter().map(|it| it.evidence.clone()).collect(),
        AgentFailure::Lost(..) => Vec::new(),
    }
}

fn crashed(exit: Exit) -> String {
    match exit {
        Exit { code: Some(code), .. } => format!("crashed with exit code {code}"),
        Exit { signal: Some(signal), .. } => format!("was killed by signal {signal}"),
        Exit { .. } => "crashed".to_owned(),
    }
}

/// What happened, as the rest of a sentence about the agent.
pub(super) fn describe(failure: &AgentFailure) -> String {
    match failure {
        AgentFailure::Lost(_, what) => what.clone(),
        AgentFailure::Unknown(reply) => {
            format!("reported nothing: {}", failures::no_signal(reply))
        }
        AgentFailure::Refused(refused) => {
            let each = refused.iter().map(|it| format!("{} ({}: {})", it.name, it.code, it.why));
            format!("reported nothing that counts: {}", each.collect::<Vec<_>>().join("; "))
        }
    }
}
