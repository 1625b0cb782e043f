//! Who works next: filling slots, starting agents, and ending when nothing is left to do.

use std::collections::BTreeMap;

use super::config::Config;
use super::event::{Dispatch, Effect};
use super::human::NewQuestion;
use super::prompts;
use super::rule::Rule;
use super::run::{Ending, Stage, Work, WorkingAgent};
use super::signal::Role;
use super::state::State;
use super::task::{Status, Task, Wait};
use crate::stagnation::Monitor;
use crate::words::counted;

impl State {
    /// The work may begin.
    pub(super) fn begin(&mut self) {
        if self.run.stage != Stage::Ready {
            return;
        }
        let tasks = counted(self.tasks.len(), "task");
        self.decide(None, Rule::Started, format!("Started the delivery of {tasks}"))
            .because("the coordinator began it")
            .next("free slots go to critics first, then to auditors, then to developers");
        if self.run.config.planner {
            self.run.stage = Stage::Planning;
            self.dispatch(Role::Planner, Work::Plan);
        } else {
            self.run.stage = Stage::Working;
        }
    }

    /// The plan has been looked at, and its experts are known.
    pub(super) fn plan_is_over(&mut self) {
        self.run.stage = Stage::Working;
        self.run.experts.checking_since = None;
    }

    /// Continues after a crash of ours: the agents that were at work are started again, each once. What a
    /// lost agent did not report, it never reported.
    pub(super) fn recovered(&mut self) {
        if self.run.stage == Stage::Ready {
            return self.begin();
        }
        // Workers went on meanwhile.
        let lost = match self.run.config.workers {
            true => BTreeMap::new(),
            false => std::mem::take(&mut self.run.agents),
        };
        let rule = (Rule::Recovered, "Continued after an interruption");
        self.start_again(rule, "the coordinator was gone and is back", lost);
    }

    /// Continues because a human wants it, with other limits.
    pub(super) fn reopened(&mut self, config: &Config) {
        if self.run.ending.is_some_and(|ending| !ending.can_be_continued()) {
            return;
        }
        let ended = self.run.ending.take();
        // Where it had not ended, agents at workers go on.
        let goes_on = self.run.config.workers && ended.is_none();
        let mut lost = std::mem::take(&mut self.run.interrupted);
        if !goes_on {
            lost.append(&mut self.run.agents);
        }
        self.run.config = config.clone();
        (self.run.paused, self.run.spending.budget_warned) = (false, false);
        if self.run.stage == Stage::Ready {
            return self.begin();
        }
        let because = match ended {
            Some(ending) => {
                let how = ending.as_str().replace('_', " ");
                format!("a human continued it; it had ended ({how})")
            }
            None => "a human continued it with other limits".to_owned(),
        };
        self.start_again((Rule::Continued, "Continued the delivery"), &because, lost);
    }

    /// Starts the agents again that are gone, and asks the open questions again.
    fn start_again(
        &mut self,
        (rule, summary): (Rule, &str),
        because: &str,
        lost: BTreeMap<u64, WorkingAgent>,
    ) {
        // Whoever kept the old wake-up may be gone too.
        self.run.wake = None;
        let mut next = match lost.len() {
            0 => "free slots are filled".to_owned(),
            1 => "1 agent is started again".to_owned(),
            count => format!("{count} agents are started again"),
        };
        if let Some(questions) = self.open_questions() {
            next = format!("{next}; {questions}");
        }
        self.decide(None, rule, summary).because(because).next(next);
        // What was being done for tasks and experts was lost too; doing it twice does no harm.
        self.merge_again();
        self.check_again();
        let checks = self.run.experts.candidates.iter();
        self.out.effects.extend(checks.map(|(name, candidate)| Effect::CheckExpert {
            name: name.clone(),
            file: candidate.file.clone(),
        }));
        self.run.experts.checking_since = self.run.experts.checking_since.map(|_| self.out.now);
        // Nobody may be left who saw them.
        for id in self.run.questions.keys().cloned().collect::<Vec<_>>() {
            self.show_question(&id);
        }
        for (no, agent) in lost {
            self.out.effects.push(Effect::End { agent: no });
            match &agent.work {
                Work::Task { task } if agent.role == Role::Developer => {
                    let left = "The agent before you was interrupted. Continue from what it left \
                                behind and do not start over.";
                    self.at_mut(*task).note(left, "");
                }
                Work::Request { request } => {
                    if let Some(asked) = self.run.experts.consultations.get_mut(request) {
                        // The attempt that was lost is not the expert's.
                        asked.tries = asked.tries.saturating_sub(1);
                    }
                }
                Work::Task { .. } | Work::Infrastructure | Work::Plan => {}
            }
            self.dispatch(agent.role, agent.work);
        }
    }

    /// Fills the slots that are free, and ends when nothing is left to do.
    pub(super) fn fill_slots(&mut self) {
        if self.run.stage != Stage::Working {
            return;
        }
        while self.may_start() {
            let Some(no) = self.next_task() else {
                // Nothing else can run: tasks on hold are tried again.
                if !self.run.agents.is_empty() {
                    break;
                }
                let later = self.index.later();
                if later.is_empty() {
                    break;
                }
                later.into_iter().for_each(|no| self.set_wait(no, Wait::Slot));
                continue;
            };
            let limit = self.run.config.dispatch_limit;
            let Task { counters, last_failure, last_refused, .. } = self.at(no);
            if counters.dispatches >= limit {
                let mut why =
                    format!("{} were started for it", counted(counters.dispatches, "agent"));
                if let Some(failure) = last_failure {
                    why = format!("{why}. Last: {failure}");
                }
                let new = NewQuestion::new(Rule::DispatchLimit, why).seen(last_refused.clone());
                self.ask_about(no, new);
                break;
            }
            self.start_agent(no);
        }
        let waits = !self.run.agents.is_empty()
            || !self.run.questions.is_empty()
            || self.in_remediation()
            || !self.index.is_quiet();
        let all = self.index.complete() == self.tasks.len();
        if all || !waits {
            self.end_idle(all);
        }
    }

    /// Ends because nothing is left to do.
    fn end_idle(&mut self, all: bool) {
        let (unfinished, evidence) = self.unfinished();
        let (complete, failed) = (self.index.complete(), self.index.failed());
        let decision = if all {
            self.decide(None, Rule::AllTasksComplete, "Completed the delivery").because(unfinished)
        } else {
            let because =
                format!("the tasks that are left need one that was given up; {unfinished}");
            self.decide(None, Rule::NoTaskCanRun, "Ended the delivery: no task can run any more")
                .because(because)
                .seen(evidence)
                .next("start another delivery with what is left: aldis deliver PLAN")
        };
        decision.count("complete", complete).count("failed", failed);
        self.end(if all { Ending::Complete } else { Ending::Failed });
    }

    fn may_start(&self) -> bool {
        let slots = usize::try_from(self.run.config.slots).unwrap_or(usize::MAX);
        !self.run.paused
            && self.run.questions.is_empty()
            && !self.in_remediation()
            && self.run.agents.len() < slots
    }

    /// The first task in line whose files are free.
    fn next_task(&mut self) -> Option<usize> {
        loop {
            let no = self.index.first_ready()?;
            let wanted = self.files_wanted(no);
            let taken = wanted.iter().find(|path| !self.index.holders(path, no).is_empty());
            match taken {
                None => return Some(no),
                Some(path) => self.index.defer(no, &self.tasks[no], path),
            }
        }
    }

    /// Starts the agent whose turn it is.
    fn start_agent(&mut self, no: usize) {
        if self.must_pin(no) {
            return self.pin(no);
        }
        for path in self.files_wanted(no) {
            self.hold_file(no, &path);
        }
        self.at_mut(no).counters.dispatches += 1;
        self.dispatch(self.at(no).role, Work::Task { task: no });
        let task = self.at(no);
        let role = task.role.label();
        let because = match task.status() {
            Status::Implementing if task.round == 0 && task.dispatched == 1 => {
                "every task that it needs is complete, and a slot is free".to_owned()
            }
            _ => format!("it is the {role}'s turn, and a slot is free"),
        };
        self.decide(Some(no), Rule::AgentStarted, format!("Started the {role}"))
            .because(because)
            .next(format!("the {role}'s reply decides"));
    }

    /// Starts an agent for some work. Where the delivery has ended, the agent is started when the
    /// delivery is continued.
    pub(super) fn dispatch(&mut self, role: Role, work: Work) {
        let agent = self.register_agent(role, work.clone());
        if self.run.ending.is_some() {
            let agent = self.run.agents.remove_entry(&agent);
            return self.run.interrupted.extend(agent);
        }
        let (mut expert, mut resume) = (None, None);
        let (task, prompt) = match work {
            Work::Task { task } => {
                self.at_mut(task).dispatched += 1;
                let prompt = prompts::task(self, task, agent);
                resume = self.at_mut(task).hands.resume.take();
                self.set_wait(task, Wait::Agent { agent });
                (Some(task), prompt)
            }
            Work::Infrastructure => (None, prompts::repair(self, role, agent)),
            Work::Request { request } => {
                let Some(asked) = self.run.experts.consultations.get_mut(&request) else { return };
                asked.tries += 1;
                expert = Some(asked.expert.clone());
                (asked.task, prompts::expert(self, &request, agent))
            }
            Work::Plan => (None, prompts::planner(self, agent)),
        };
        let timeout = self.run.config.timeout(role).as_secs();
        let task = task.map(|no| self.at(no));
        let (task, title) = (task.map(|it| it.spec.id.clone()), task.and_then(Task::title));
        let dispatch = Dispatch { agent, role, task, title, expert, resume, timeout, prompt };
        self.out.effects.push(Effect::Dispatch(dispatch));
    }

    /// Gives an agent its number.
    fn register_agent(&mut self, role: Role, work: Work) -> u64 {
        self.run.agents_started += 1;
        let (started_at, last_seen) = (self.out.now, self.out.now);
        let watched = &self.run.config.stagnation;
        let monitor = watched.enabled.then(|| Monitor::new(self.out.now, watched.clone()));
        let agent = WorkingAgent {
            role,
            work,
            started_at,
            last_seen,
            missed_checkpoints: 0,
            checkpoint_request: None,
            monitor,
            queued: self.run.config.workers,
            worker: None,
        };
        self.run.agents.insert(self.run.agents_started, agent);
        self.run.agents_started
    }
}
