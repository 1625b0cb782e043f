//! Agents of a task that achieve nothing: crashes, timeouts, refused signals, replies without a signal.

use super::event::{Effect, Notice, Severity};
use super::human::NewQuestion;
use super::judge::{AgentFailure, RefusedSignal, describe};
use super::prompts;
use super::reply::AgentReply;
use super::rule::Rule;
use super::signal::SignalKind;
use super::state::State;
use super::task::Wait;
use crate::words::counted;
use crate::{Evidence, Miss, words};

/// How many near misses of a reply are shown.
const NEAR_MISSES_SHOWN: usize = 3;
/// How much of a near miss stands in a sentence.
const QUOTE_MAX: usize = 80;

impl State {
    /// Notifies programs of a reply that held no signal.
    fn notice_unknown(&mut self, level: Severity, no: usize, count: u32, preview: &str) {
        let (name, role) = (self.at(no).name(), self.at(no).role.label());
        let text = format!("{name}: no signal in the {role}'s reply, attempt {count}");
        self.notice((Notice::UnknownSignalRecovery, level), Some(no), text);
        let notice = self.out.effects.last_mut();
        if let Some(Effect::Notice { attempt, output_preview, .. }) = notice {
            (*attempt, *output_preview) = (Some(count), Some(preview.to_owned()));
        }
    }

    /// The agent of a task achieved nothing.
    pub(super) fn task_agent_failed(&mut self, no: usize, agent: u64, it: AgentFailure) {
        match it {
            AgentFailure::Refused(refused) => self.reply_refused(no, agent, refused),
            AgentFailure::Unknown(reply) => {
                if self.count_unknown(no, agent, &reply) {
                    self.at_mut(no).hands.resume = Some(agent);
                    self.set_wait(no, Wait::Slot);
                }
            }
            AgentFailure::Lost(rule, what) => {
                self.at_mut(no).hands.resume = None;
                let because = format!("the {} {what}", self.at(no).role.label());
                self.replace_agent(no, rule, &because);
            }
        }
    }

    /// Nothing that the agent reported counts: it starts again with the reason.
    pub(super) fn reply_refused(&mut self, no: usize, agent: u64, refused: Vec<RefusedSignal>) {
        let limit = self.run.config.refusal_limit;
        let seen: Vec<Evidence> = refused.iter().map(|it| it.evidence.clone()).collect();
        let reason = describe(&AgentFailure::Refused(refused));
        let task = self.at_mut(no);
        task.counters.refusals += 1;
        task.hands.resume = Some(agent);
        let times = task.counters.refusals;
        let role = task.role.label();
        let because = format!("the {role} {reason}");
        task.note(format!("Your last reply changed nothing: you {reason}."), "");
        (task.last_failure, task.last_refused) = (Some(because.clone()), seen.last().cloned());
        if times >= limit {
            let why = format!("{} did not count. Last: {because}", counted(times, "report"));
            let new = NewQuestion::new(Rule::RefusalLimit, why).seen(seen);
            return self.ask_about(no, new);
        }
        self.set_wait(no, Wait::Slot);
        self.decide(Some(no), Rule::ReplyRefused, format!("Refused the {role}'s reply"))
            .because(because)
            .seen(seen)
            .next(format!("the {role} starts again and is told why"));
    }

    /// Counts a reply without a signal. Returns whether the same agent may try again; if not, it is
    /// replaced.
    pub(super) fn count_unknown(&mut self, no: usize, agent: u64, reply: &AgentReply) -> bool {
        let limit = self.run.config.unknown_limit;
        let seen = unknown_evidence(reply, agent);
        let id = self.at(no).spec.id.clone();
        let task = self.at_mut(no);
        task.counters.unknown += 1;
        let (attempt, role) = (task.counters.unknown, task.role);
        let because = no_signal(reply);
        task.last_failure = Some(format!("the {}'s reply holds no signal", role.label()));
        task.last_refused = seen.last().cloned();
        if attempt < limit {
            task.note(prompts::no_signal(reply), "");
            let level = if attempt == 1 { Severity::Warning } else { Severity::Error };
            self.notice_unknown(level, no, attempt, &reply.preview);
            let summary = format!("No signal in the {}'s reply; asked again", role.label());
            self.decide(Some(no), Rule::UnknownReply, summary).because(because).seen(seen).next(
                format!("the {} tries again, in its session if the host has one", role.label()),
            );
            return true;
        }
        task.counters.unknown = 0;
        task.hands.resume = None;
        task.notes.retain(|note| !note.heading.starts_with(prompts::NO_SIGNAL));
        task.note(prompts::exact_forms(role, &id, attempt), "");
        let why = format!("{attempt} replies in a row hold no signal");
        let text = format!("{}: {why}; another {} starts.", self.at(no).name(), role.label());
        self.notice((Notice::AgentSignalFailure, Severity::Error), Some(no), text);
        self.decide(Some(no), Rule::UnknownLimit, format!("Gave up on the {}", role.label()))
            .because(match reply.near_misses.is_empty() {
                true => why,
                false => format!("{why}. Last: {because}"),
            })
            .seen(seen)
            .next("another one starts with the exact forms; this counts as a timeout");
        self.retire(agent);
        if self.run.config.requests {
            self.out.effects.push(Effect::End { agent });
        }
        let because = format!("the {}'s reply holds no signal", role.label());
        self.replace_agent(no, Rule::AgentReplaced, &because);
        false
    }
}

/// What is wrong with a reply without a signal.
pub(super) fn no_signal(reply: &AgentReply) -> String {
    match reply.near_misses.last() {
        None if reply.preview.trim().is_empty() => "the reply is empty".to_owned(),
        None => "the reply holds no signal".to_owned(),
        Some(miss) => format!(
            "the reply holds no signal; line {}, {}, almost is one ({})",
            miss.line,
            words::inline(&miss.quote, QUOTE_MAX),
            miss.reason,
        ),
    }
}

/// The reply and its near misses as evidence.
pub(super) fn unknown_evidence(reply: &AgentReply, agent: u64) -> Vec<Evidence> {
    let shown = Evidence::new("said", &*reply.preview).by_agent(Some(agent.to_string()));
    let misses = reply.near_misses.iter().rev().take(NEAR_MISSES_SHOWN);
    let misses = misses.map(|miss| near_miss(miss, agent));
    let delegation = reply.near_misses.iter().rfind(|miss| is_malformed_delegation(miss));
    let delegation = delegation.map(|it| near_miss(it, agent).refused("malformed_delegation"));
    std::iter::once(shown).chain(misses).chain(delegation).collect()
}

pub(super) fn near_miss(miss: &Miss, agent: u64) -> Evidence {
    Evidence::near_miss(miss).by_agent(Some(agent.to_string()))
}

/// Whether an agent wanted an expert and left out what a request needs.
fn is_malformed_delegation(miss: &Miss) -> bool {
    miss.name == SignalKind::ExpertRequest.as_str()
        && matches!(&*miss.reason, "missing_field" | "unclosed" | "bad_value" | "placeholder")
}

impl State {
    /// Counts a timeout: the task gets another agent, or a human is asked.
    fn replace_agent(&mut self, no: usize, rule: Rule, because: &str) {
        let limit = self.run.config.timeout_limit;
        let task = self.at_mut(no);
        task.counters.timeouts += 1;
        let (times, role) = (task.counters.timeouts, task.role.label());
        task.last_failure = Some(because.to_owned());
        task.note(
            format!("The agent before you did not finish: {because}. Look at what it left behind."),
            "",
        );
        if times >= limit {
            let seen = task.last_refused.clone();
            let why = format!("{} failed. Last: {because}", counted(times, "attempt"));
            let new = NewQuestion::new(Rule::TimeoutLimit, why).seen(seen);
            return self.ask_about(no, new);
        }
        self.set_wait(no, Wait::Slot);
        self.decide(Some(no), rule, format!("Replaced the {role}"))
            .because(because)
            .next(format!("another {role} starts as soon as a slot is free"));
    }
}
