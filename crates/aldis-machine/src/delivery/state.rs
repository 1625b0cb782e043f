//! A delivery: everything that decides what happens next.
//!
//! The state is kept in parts, so that a step costs the same with ten tasks as with ten thousand:
//! the [`DeliveryRun`], which is small, and one [`Task`] each. [`State::take_changed`] returns the tasks
//! that a step changed.
//!
//! Nothing in it grows without bound. A task has at most one agent, one question and one consultation,
//! and so has the infrastructure; slots bound the agents; notes, findings, files, criteria and experts
//! have a limit where they are added, and so has every text.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use super::budget;
use super::budget::BudgetLimit;
use super::config::Config;
use super::event::{Effect, Event, Notice, Severity};
use super::index::Index;
use super::plan::Plan;
use super::rule::Rule;
use super::run::{DeliveryRun, Ending, Experts, QuestionSubject, Work, WorkingAgent};
use super::signal::Role;
use super::task::{Status, Task, Wait};
use crate::Decision;
use crate::phases::TokenPolicy;
use crate::words::{counted, fnv};
use aldis_signal::scan::Token;
use aldis_signal::time::Timestamp;

/// How a delivery begins.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Start {
    /// What is to be delivered; checked.
    pub plan: Plan,
    /// The limits; checked.
    #[serde(default)]
    pub config: Config,
    /// What agents' run tokens are made from, where they are used.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub token: Option<String>,
}

/// A delivery.
#[derive(Clone, Debug)]
pub struct State {
    pub(super) run: DeliveryRun,
    pub(super) tasks: Vec<Task>,
    pub(super) index: Index,
    pub(super) out: StepOutput,
}

impl PartialEq for State {
    fn eq(&self, other: &Self) -> bool {
        self.run == other.run && self.tasks == other.tasks
    }
}

/// What one event led to.
pub type Outcome = crate::Outcome<Effect>;

/// What the step being taken has led to. It is empty between steps, and never stored.
#[derive(Clone, Debug, Default)]
pub(super) struct StepOutput {
    pub(super) now: Timestamp,
    /// Milliseconds that agents have worked by now.
    pub(super) worked: u64,
    pub(super) effects: Vec<Effect>,
    decisions: Vec<Decision>,
}

/// Returns what people call a delivery: the plan's title, or else what its first task is called.
fn title_of(title: &str, tasks: &[Task]) -> String {
    let title = title.trim();
    let Some(first) = tasks.first().filter(|_| title.is_empty()) else {
        return title.to_owned();
    };
    let first = first.title().unwrap_or_else(|| first.spec.id.clone());
    match tasks.len() - 1 {
        0 => first,
        more => format!("{first} and {}", counted(more, "more task")),
    }
}

impl State {
    /// Begins a delivery. Agents are started with [`Event::Begin`].
    pub fn start(now: Timestamp, start: Start) -> Self {
        let Start { plan, config, token } = start;
        let Plan { title, tasks } = plan;
        let analyst = config.business_analyst;
        let mut tasks: Vec<Task> = tasks.into_iter().map(|spec| Task::new(spec, analyst)).collect();
        let index = Index::new(&tasks);
        // Tasks whose needs are complete already wait for nothing but a slot.
        let met = |no: usize| index.needs_nothing(no);
        for (no, task) in tasks.iter_mut().enumerate() {
            if task.wait == Wait::Needs && met(no) {
                task.wait = Wait::Slot;
            }
        }
        let run = DeliveryRun {
            title: title_of(&title, &tasks),
            experts: Experts { known: config.experts.clone(), ..Experts::default() },
            config,
            token,
            started_at: now,
            ..DeliveryRun::default()
        };
        let mut index = Index::new(&tasks);
        index.changed = (0..tasks.len()).collect();
        Self { run, index, tasks, out: StepOutput::default() }
    }

    /// Puts stored parts together again; the tasks in the plan's order. Says what does not fit.
    pub(super) fn from_parts(mut run: DeliveryRun, tasks: Vec<Task>) -> Result<Self, String> {
        let agents = run.agents.values().chain(run.interrupted.values());
        let of_agents = agents.filter_map(|agent| agent.work.task());
        let of_questions = run.questions.values().filter_map(|question| question.about.task());
        let of_consultations = run.experts.consultations.values().filter_map(|asked| asked.task);
        let of_remediation = run.remediation.iter().flat_map(|it| it.tasks.iter().copied());
        let mut named = of_agents.chain(of_questions).chain(of_consultations).chain(of_remediation);
        if let Some(no) = named.find(|no| *no >= tasks.len()) {
            return Err(format!(
                "the stored parts do not fit together: there is no task number {no}"
            ));
        }
        // 0.1.0 stored an empty title where the plan had none.
        run.title = title_of(&run.title, &tasks);
        Ok(Self { run, index: Index::new(&tasks), tasks, out: StepOutput::default() })
    }

    /// Takes one event.
    pub fn on_event(&mut self, now: Timestamp, event: &Event) -> Outcome {
        // Time without a coordinator does not count as work.
        let away = matches!(event, Event::Recovered | Event::Reopen { .. });
        let earliest = self.run.earliest_activity();
        let worked = if away { self.run.spending.worked_millis } else { self.run.worked_by(now) };
        self.out = StepOutput { now, worked, ..StepOutput::default() };
        if self.run.ending.is_none_or(|ending| counts_after(event, ending)) {
            self.take(event);
        }
        if self.run.ending.is_none() {
            self.end_if_used_up();
        }
        if self.run.ending.is_none() {
            self.fill_slots();
            self.arm_wake();
        }
        if self.run.earliest_activity() != earliest {
            (self.run.spending.worked_millis, self.run.spending.worked_counted_at) =
                (worked, Some(now));
        }
        let StepOutput { effects, decisions, .. } = std::mem::take(&mut self.out);
        Outcome { effects, decisions }
    }

    pub(super) fn take(&mut self, event: &Event) {
        match event {
            Event::Begin => self.begin(),
            Event::Recovered => self.recovered(),
            Event::Finished { agent, exit, reply } => self.finished(*agent, *exit, reply),
            Event::Reported { agent, reply } => self.reported(*agent, reply),
            Event::Active { agent } => self.active(*agent),
            Event::RateLimited { agent, until } => self.rate_limited(*agent, *until),
            Event::Worked { agent } => self.worked(*agent),
            Event::Waiting { agent } => self.waiting(*agent),
            Event::Spent { usage, .. } => self.add_spending(*usage),
            Event::Claimed { agent, worker, fence } => self.claimed(*agent, worker, *fence),
            Event::Worker { agent, fence, report } => self.worker_reports(*agent, *fence, report),
            Event::Tick => self.tick(),
            Event::Answer { id, text, by } => self.answered(id, text, by),
            Event::Merged { task, ok, detail } => self.merged(task, *ok, detail),
            Event::Inspected { task, head, dirty, seen } => {
                self.inspected(task, (head.as_deref(), *dirty), seen);
            }
            Event::CheckEnded { task, result } => self.check_ended(task, result),
            Event::OpinionGiven { task, opinion } => self.opinion_given(task, opinion),
            Event::ExpertChecked { name, present } => self.expert_checked(name, *present),
            Event::Pause { by } => self.set_paused(true, by),
            Event::Resume { by } => self.set_paused(false, by),
            Event::Tell { text, to, by } => self.tell(text, to.as_deref(), by),
            Event::Abort { by } => self.aborted(by),
            Event::Reopen { config } => self.reopened(config),
        }
    }

    /// Decides something by a rule, about a task or about all of them. The reasons follow.
    pub(super) fn decide(
        &mut self,
        task: Option<usize>,
        rule: Rule,
        summary: impl Into<String>,
    ) -> &mut Decision {
        let task = task.map(|no| self.at(no));
        let counters = task.map(|task| task.counters.named()).unwrap_or_default();
        let mut decision = Decision::new(rule, summary, counters);
        decision.task = task.map(|task| task.spec.id.clone());
        self.out.decisions.push_mut(decision)
    }

    /// Notifies people. The text names the task.
    pub(super) fn notice(
        &mut self,
        (notice, level): (Notice, Severity),
        task: Option<usize>,
        text: impl Into<String>,
    ) {
        let (task, text) = (task.map(|no| self.at(no).spec.id.clone()), text.into());
        let (attempt, output_preview) = (None, None);
        let notice = Effect::Notice { notice, level, task, text, attempt, output_preview };
        self.out.effects.push(notice);
    }

    /// Returns what an agent at work reports about: its task, or the request that it answers.
    pub fn subject_of(&self, agent: u64) -> Option<String> {
        match &self.run.agents.get(&agent)?.work {
            Work::Task { task } => Some(self.at(*task).spec.id.clone()),
            Work::Request { request } => Some(request.clone()),
            Work::Infrastructure | Work::Plan => None,
        }
    }

    /// Returns everything but the tasks.
    pub fn run(&self) -> &DeliveryRun {
        &self.run
    }

    /// Returns the tasks in the plan's order.
    pub fn tasks(&self) -> &[Task] {
        &self.tasks
    }

    /// Returns the tasks that changed since this was last asked, by their place in the plan.
    pub fn take_changed(&mut self) -> BTreeSet<usize> {
        std::mem::take(&mut self.index.changed)
    }

    /// Returns the task with this id.
    pub fn task(&self, id: &str) -> Option<&Task> {
        self.index.number(id).and_then(|no| self.tasks.get(no))
    }

    /// Returns the place of a task in the plan, from 0.
    pub fn number(&self, id: &str) -> Option<usize> {
        self.index.number(id)
    }

    /// Returns the task that a question is about, if it is about one.
    pub fn task_of(&self, about: QuestionSubject) -> Option<&Task> {
        about.task().and_then(|task| self.tasks.get(task))
    }

    /// Returns an agent that is at work.
    pub fn agent(&self, number: u64) -> Option<&WorkingAgent> {
        self.run.agents.get(&number)
    }

    /// Returns whether a question can still be answered: an answer is kept for when the delivery is
    /// continued.
    pub fn takes_answers(&self) -> bool {
        self.ending().is_none_or(Ending::can_be_continued)
    }

    /// Returns how the delivery ended, if it has.
    pub fn ending(&self) -> Option<Ending> {
        self.run.ending
    }

    /// Returns the limit of these that would end the delivery at once if it went on with them.
    pub fn reached(&self, config: &Config) -> Option<BudgetLimit> {
        budget::reached(&self.run, config, self.run.spending.worked_millis)
    }

    /// Returns how many tasks there are in each status.
    pub fn tally(&self) -> BTreeMap<Status, usize> {
        let mut counts = BTreeMap::new();
        self.tasks.iter().for_each(|task| *counts.entry(task.status()).or_default() += 1);
        counts
    }

    /// Returns whether nothing can happen before a human answers.
    pub fn waits_for_human(&self) -> bool {
        !self.run.questions.is_empty() && self.run.agents.is_empty()
    }

    /// Returns what is known about the run token of an agent, for reading its reply.
    pub fn expected_token(&self, agent: u64) -> Token {
        self.run.config.token.expects(self.token_of(agent))
    }

    /// A code that no other agent of the run gets. It keeps echoes and mix-ups out; an agent that is
    /// after the others' codes is kept out by its process being known.
    pub(super) fn token_of(&self, agent: u64) -> Option<String> {
        let secret =
            self.run.token.as_ref().filter(|_| self.run.config.token != TokenPolicy::Off)?;
        let hash = fnv(secret.bytes().chain(agent.to_le_bytes()).chain(secret.bytes()));
        Some(format!("{:08x}", (hash >> 32) ^ (hash & 0xffff_ffff)))
    }

    pub(super) fn at(&self, no: usize) -> &Task {
        &self.tasks[no]
    }

    /// A task to be changed in anything but its role, its wait and its files.
    pub(super) fn at_mut(&mut self, no: usize) -> &mut Task {
        self.index.changed.insert(no);
        &mut self.tasks[no]
    }

    /// Lets a task wait for something else.
    pub(super) fn set_wait(&mut self, no: usize, wait: Wait) {
        self.set(no, self.at(no).role, wait);
    }

    /// Gives a task to a role, as soon as a slot is free.
    pub(super) fn queue(&mut self, no: usize, role: Role) {
        self.set(no, role, Wait::Slot);
    }

    pub(super) fn set(&mut self, no: usize, role: Role, wait: Wait) {
        self.index.leave(no, &self.tasks[no]);
        let task = &mut self.tasks[no];
        (task.role, task.wait) = (role, wait);
        self.index.enter(no, &self.tasks[no]);
        self.index.changed.insert(no);
    }

    /// Ends the delivery, and every agent with it.
    pub(super) fn end(&mut self, ending: Ending) {
        let agents = std::mem::take(&mut self.run.agents);
        self.out.effects.extend(agents.keys().map(|agent| Effect::End { agent: *agent }));
        if ending.can_be_continued() {
            self.run.interrupted = agents;
        }
        self.run.ending = Some(ending);
        self.run.wake = None;
        let level = if ending == Ending::Complete { Severity::Info } else { Severity::Warning };
        let tasks = counted(self.tasks.len(), "task");
        let text = match ending {
            Ending::Complete => format!("{} is complete: {tasks}.", self.run.title),
            _ => format!(
                "{} ended ({}): {} of {tasks} complete.",
                self.run.title,
                ending.as_str().replace('_', " "),
                self.index.complete(),
            ),
        };
        self.notice((Notice::RunEnded, level), None, text);
        self.out.effects.push(Effect::Finish { ending });
    }

    /// Lets an agent go; what it writes no longer counts.
    pub(super) fn retire(&mut self, agent: u64) {
        self.run.agents.remove(&agent);
    }

    pub(super) fn in_remediation(&self) -> bool {
        self.run.remediation.is_some()
    }
}

/// Returns whether an event means anything when the delivery has ended. An answer does where the
/// delivery can be continued: whoever answers after an abort is not to answer again.
fn counts_after(event: &Event, ending: Ending) -> bool {
    match event {
        Event::Spent { .. } | Event::Reopen { .. } => true,
        Event::Worker { report, .. } => matches!(**report, Event::Spent { .. }),
        Event::Answer { .. } => ending.can_be_continued(),
        _ => false,
    }
}
