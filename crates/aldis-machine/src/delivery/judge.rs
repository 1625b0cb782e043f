//! What an agent's words come to: who said it, whether that counts, and what goes first.

use super::event::{Effect, Heard, Level, Notice, Request, Said, preview};
use super::run::{Agent, Asked, Work};
use super::signal::{Kind, Subject};
use super::state::{Out, State, decision};
use super::task::{field, told};
use super::{expert, fill, prompts, remedy, watch, work};
use crate::run::Exit;
use crate::{Evidence, Refusal};

/// Why an agent's end brought nothing.
#[derive(Clone, Debug)]
pub(super) enum Failure {
    /// Its process crashed.
    Crashed(Exit),
    /// It took too long.
    TimedOut,
    /// It showed no sign of life.
    Stalled,
    /// Its work did not move; why that is thought.
    Stagnated(String),
    /// It said nothing that can be understood.
    Unknown(Said),
    /// It said only what it may not say, or nothing that counts.
    Refused(Vec<Refused>),
}

/// A well-formed signal that does not count.
#[derive(Clone, Debug)]
pub(super) struct Refused {
    pub(super) name: String,
    /// A stable code.
    pub(super) code: &'static str,
    /// What the agent is told about it.
    pub(super) why: String,
    pub(super) evidence: Evidence,
}

/// A signal that counts, and what else was said with it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Word<'s> {
    pub(super) agent: u64,
    pub(super) kind: Kind,
    pub(super) heard: &'s Heard,
}

impl Word<'_> {
    /// Whether it accepts or refuses something; `None` if it is no verdict.
    pub(super) fn approves(&self) -> Option<bool> {
        match self.kind {
            Kind::ReviewPassed | Kind::AuditPassed => Some(true),
            Kind::ReviewFailed | Kind::AuditFailed => Some(false),
            // Any other verdict counts as unhealthy.
            Kind::HealthAudit => Some(self.heard.subject.as_deref() == Some("HEALTHY")),
            _ => None,
        }
    }
}

/// An agent is done.
pub(super) fn finished(state: &mut State, out: &mut Out, no: u64, exit: Option<Exit>, said: &Said) {
    let Some(agent) = state.run.agents.get(&no).cloned() else {
        return late(state, out, no, said);
    };
    if let Some(exit) = exit.filter(|exit| !exit.is_clean()) {
        state.retire(no);
        return failed(state, out, (no, &agent), Failure::Crashed(exit));
    }
    let Sorted { counting, mut refused } = sorted(state, &agent, no, said);
    let checkpoints = || counting.iter().filter(|word| word.kind == Kind::Checkpoint);
    checkpoints().for_each(|word| work::checkpoint(state, out, &agent, *word));
    let verdicts = counting.iter().filter(|word| word.kind != Kind::Checkpoint);
    let first = verdicts.clone().map(|word| word.kind.priority()).min();
    // Among equals the last word counts.
    let mut chosen = verdicts.clone().rfind(|word| Some(word.kind.priority()) == first);
    if let Some(both) = chosen.and_then(|word| contradiction(&counting, *word)) {
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
    let Some(word) = chosen.copied() else {
        let failure = match (refused.is_empty(), checkpoints().next().is_some()) {
            (false, _) => Failure::Refused(refused),
            (true, true) => Failure::Refused(vec![only_a_checkpoint(no)]),
            (true, false) => Failure::Unknown(said.clone()),
        };
        if state.run.config.requests && matches!(failure, Failure::Unknown(_)) {
            return ask_again(state, out, no, &agent, said);
        }
        state.retire(no);
        return failed(state, out, (no, &agent), failure);
    };
    state.retire(no);
    let also: Vec<Word<'_>> = verdicts.copied().filter(|other| other.kind != word.kind).collect();
    match agent.work {
        Work::Task { task } => {
            refused.iter().for_each(|refused| record(state, out, &agent, refused));
            work::took(state, out, task, word);
            work::also(state, out, task, &agent, (word, &also));
        }
        Work::Infrastructure => remedy::took(state, out, &agent, word),
        Work::Request { request } => expert::took(state, out, &request, word),
        Work::Plan => {}
    }
}

/// An agent said something and works on.
pub(super) fn heard(state: &mut State, out: &mut Out, no: u64, said: &Said) {
    let Some(agent) = state.run.agents.get(&no).cloned() else {
        return late(state, out, no, said);
    };
    let Sorted { counting, refused } = sorted(state, &agent, no, said);
    for word in counting.into_iter().filter(|word| word.kind == Kind::Checkpoint) {
        work::checkpoint(state, out, &agent, word);
        let Some(live) = state.run.agents.get_mut(&no) else { continue };
        (live.seen, live.misses) = (out.now, 0);
        if live.asked.take().is_some_and(|asked| asked.unknown) {
            let text = prompts::resend();
            out.effects.push(Effect::Request { agent: no, request: Request::Resend, text });
        }
        watch::reported(state, out, no, &told(&word.heard.fields));
    }
    let checkpoint = |refused: &&Refused| refused.name == Kind::Checkpoint.name();
    refused.iter().filter(checkpoint).for_each(|refused| record(state, out, &agent, refused));
}

struct Sorted<'s> {
    counting: Vec<Word<'s>>,
    refused: Vec<Refused>,
}

/// Separates what this agent may say about its own work from the rest.
fn sorted<'s>(state: &State, agent: &Agent, no: u64, said: &'s Said) -> Sorted<'s> {
    let mut sorted = Sorted { counting: Vec::new(), refused: Vec::new() };
    for heard in &said.signals {
        let Some(kind) = Kind::of(&heard.name) else { continue };
        let refusal = if !kind.may_be_said_by(agent.role) {
            let role = agent.role.spoken();
            Some((Refusal::RoleNotAllowed, format!("a {role} may not say it")))
        } else {
            let subject = heard.subject.as_deref();
            mismatch(state, agent, kind, subject).map(|why| (Refusal::SubjectMismatch, why))
        };
        match refusal {
            None => sorted.counting.push(Word { agent: no, kind, heard }),
            Some((refusal, why)) => sorted.refused.push(Refused {
                name: heard.name.clone(),
                code: refusal.as_str(),
                why,
                evidence: evidence(heard, no, Some(refusal.as_str())),
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
fn contradiction(counting: &[Word<'_>], chosen: Word<'_>) -> Option<Refused> {
    let refusal = Refusal::Contradictory.as_str();
    let earlier = counting.iter().take_while(|word| !std::ptr::eq(word.heard, chosen.heard));
    let rejects = earlier.filter(|word| word.approves() == Some(false)).last();
    rejects.filter(|_| chosen.approves() == Some(true)).map(|rejects| Refused {
        name: chosen.heard.name.clone(),
        code: refusal,
        why: format!(
            "line {} says the opposite, about the same; say which of the two it is, once",
            rejects.heard.line
        ),
        evidence: evidence(chosen.heard, chosen.agent, Some(refusal)),
    })
}

/// Says what a signal should have been about, if it is about something else.
fn mismatch(state: &State, agent: &Agent, kind: Kind, subject: Option<&str>) -> Option<String> {
    let expected = match (kind.subject(), &agent.work) {
        (Subject::Task, Work::Task { task }) => &state.at(*task).spec.id,
        (Subject::Request, Work::Request { request }) => request,
        // Agents without a task speak of none, or of one that is not theirs to judge.
        (Subject::Task | Subject::Request | Subject::Other, _) => return None,
    };
    let said = subject?;
    (said != expected).then(|| format!("it is about {expected}, not about {}", preview(said)))
}

pub(super) fn evidence(heard: &Heard, agent: u64, reason: Option<&str>) -> Evidence {
    Evidence {
        what: if reason.is_some() { "refused" } else { "signal" }.to_owned(),
        name: Some(heard.name.clone()),
        reason: reason.map(str::to_owned),
        quote: heard.quote.clone(),
        line: Some(heard.line),
        agent: Some(agent.to_string()),
        via: heard.via,
    }
}

/// An agent that is no longer at work said something.
fn late(state: &State, out: &mut Out, no: u64, said: &Said) {
    // An agent that was never started has no words, and one without a signal changes nothing.
    let known = said.signals.iter().rfind(|heard| Kind::of(&heard.name).is_some());
    let Some(heard) = known.filter(|_| (1..=state.run.agents_ever).contains(&no)) else { return };
    let task = heard.subject.as_deref().and_then(|id| state.task(id));
    let code = Refusal::LateSignal.as_str();
    let because = format!("agent {no} is no longer at work");
    let decision = decision("late", format!("Ignored {}", heard.name))
        .because(because.clone())
        .seen([evidence(heard, no, Some(code))])
        .next("only the agent at work moves its task");
    out.notice((Notice::LateSignalIgnored, Level::Info), task, because);
    out.decided(task, decision);
}

/// Keeps a refusal that changes nothing.
fn record(state: &State, out: &mut Out, agent: &Agent, refused: &Refused) {
    let task = match agent.work {
        Work::Task { task } => Some(state.at(task)),
        Work::Infrastructure | Work::Request { .. } | Work::Plan => None,
    };
    let decision = decision("refused", format!("Refused {}", refused.name))
        .because(format!("{}: {}", refused.code, refused.why))
        .seen([refused.evidence.clone()]);
    out.decided(task, decision);
}

fn only_a_checkpoint(agent: u64) -> Refused {
    Refused {
        name: Kind::Checkpoint.name().to_owned(),
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
fn ask_again(state: &mut State, out: &mut Out, no: u64, agent: &Agent, said: &Said) {
    if let Work::Task { task } = agent.work
        && !work::unknown(state, out, task, no, said)
    {
        return;
    }
    let now = out.now;
    if let Some(live) = state.run.agents.get_mut(&no) {
        live.asked = Some(Asked { at: now, unknown: true });
        let text = prompts::checkpoint();
        out.effects.push(Effect::Request { agent: no, request: Request::Checkpoint, text });
    }
}

/// An agent's end brought nothing.
pub(super) fn failed(state: &mut State, out: &mut Out, (no, agent): (u64, &Agent), it: Failure) {
    match &agent.work {
        Work::Task { task } => work::failed(state, out, *task, no, it),
        Work::Infrastructure => {
            let why = format!("the {} {}", agent.role.spoken(), in_words(&it));
            remedy::next_attempt(state, out, &why);
        }
        Work::Request { request } => {
            let why = format!("it {}", in_words(&it));
            expert::failed(state, out, request, &why);
        }
        Work::Plan => {
            let because = format!("the planner {}", in_words(&it));
            let decision = decision("plan", "Went on without the planner").because(because);
            out.decided(None, decision);
            fill::plan_is_over(state);
        }
    }
}

/// What happened, as the end of a sentence.
pub(super) fn in_words(failure: &Failure) -> String {
    match failure {
        Failure::Crashed(Exit { code: Some(code), .. }) => {
            format!("crashed with exit code {code}")
        }
        Failure::Crashed(Exit { signal: Some(signal), .. }) => {
            format!("was ended by signal {signal}")
        }
        Failure::Crashed(_) => "crashed".to_owned(),
        Failure::TimedOut => "took too long".to_owned(),
        Failure::Stalled => "showed no sign of life".to_owned(),
        Failure::Stagnated(why) => format!("was ended because its work did not move: {why}"),
        Failure::Unknown(_) => "said nothing that can be understood".to_owned(),
        Failure::Refused(refused) => {
            let words = refused.iter().map(|it| format!("{} ({}: {})", it.name, it.code, it.why));
            format!("said only what does not count: {}", words.collect::<Vec<_>>().join("; "))
        }
    }
}

/// The most telling words of a signal's body, else all of it.
pub(super) fn gist(heard: &Heard, keys: &[&str]) -> String {
    let found = keys.iter().map(|key| field(&heard.fields, key)).find(|text| !text.is_empty());
    found.unwrap_or_else(|| told(&heard.fields))
}
