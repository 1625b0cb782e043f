//! What must hold, judged from the outside: the oracle keeps its own books.

use aldis_machine::Decision;
use aldis_machine::run::{Ending, Event, State, Status, Usage};
use aldis_signal::Meaning;
use aldis_signal::time::Timestamp;

use super::super::oracle::{Check, hold};
use super::engine::Journal;

/// The books about one run.
#[derive(Debug)]
pub(super) struct Books {
    /// How it must end, once that is decided; a human's word can still change it.
    doomed: Option<Ending>,
    /// Whether the agent has claimed to be done since it was started.
    claimed: bool,
    /// Whether the check has passed since.
    checked: bool,
    iteration: u32,
    cost: Usage,
    questions: u32,
    /// How often a human opened it again.
    reopened: u32,
    /// Milliseconds in which somebody worked, at most.
    active: u64,
    /// Whether a clock was set: then times say nothing.
    pub(super) stepped: bool,
    limited_in: Option<u32>,
}

impl Books {
    pub(super) fn new() -> Self {
        Self {
            doomed: None,
            claimed: false,
            checked: false,
            iteration: 0,
            cost: Usage::default(),
            questions: 0,
            reopened: 0,
            active: 0,
            stepped: false,
            limited_in: None,
        }
    }

    /// Time passes; `works` unless somebody is waited for or nobody supervises.
    pub(super) fn pass(&mut self, millis: u64, works: bool) {
        if works {
            self.active += millis;
        }
    }

    /// An agent was started.
    pub(super) fn started(&mut self) {
        (self.claimed, self.checked) = (false, false);
    }

    /// An event is about to be delivered to a machine in this state.
    pub(super) fn delivers(&mut self, state: &State, event: &Event) {
        match event {
            Event::Heard { said } if has_agent(state) => {
                self.claimed |= said.iter().any(|heard| heard.meaning == Meaning::Done);
            }
            Event::Checked { passed, .. } if state.status == Status::Checking => {
                self.checked = *passed;
            }
            Event::Reopen { .. } if state.ending().is_some_and(|end| end != Ending::Done) => {
                self.doomed = None;
                self.reopened += 1;
                self.active = 0;
                self.stepped = false;
            }
            _ => {}
        }
    }

    /// What is stored after a step. `now` is the supervisor's time, while there is one.
    pub(super) fn judge(&mut self, now: Option<Timestamp>, state: &State) -> Check {
        hold(state.iteration >= self.iteration, "iterations_never_fall", || {
            format!("{} after {}", state.iteration, self.iteration)
        })?;
        hold(state.iteration <= self.iteration + 1, "iterations_are_counted_one_by_one", || {
            format!("{} after {}", state.iteration, self.iteration)
        })?;
        let most = state.config.max_iterations + self.reopened;
        hold(state.iteration <= most, "iterations_are_limited", || {
            format!("{} of {most}", state.iteration)
        })?;
        let cost = state.cost();
        let fell = cost.tokens < self.cost.tokens || cost.micro_dollars < self.cost.micro_dollars;
        hold(!fell, "costs_never_fall", || format!("{cost:?} after {:?}", self.cost))?;
        hold(state.questions >= self.questions, "questions_never_fall", String::new)?;
        (self.iteration, self.cost, self.questions) = (state.iteration, cost, state.questions);
        self.judge_limits(state)?;
        if let Some(now) = now.filter(|_| state.ending().is_none()) {
            self.judge_time(now, state)?;
        }
        self.judge_end(state)?;
        hold(state.said.len() <= 64 && state.feedback.len() <= 64, "memory_is_limited", || {
            format!("{} said, {} to say", state.said.len(), state.feedback.len())
        })
    }

    /// An iteration in which the service refused is repeated, not counted.
    fn judge_limits(&mut self, state: &State) -> Check {
        if let Status::Limited { .. } = state.status {
            let at = *self.limited_in.get_or_insert(state.iteration);
            return hold(at == state.iteration, "limits_use_up_no_iteration", || {
                format!("{} after {at}", state.iteration)
            });
        }
        let limited = self.limited_in.take();
        hold(limited.is_none_or(|at| at == state.iteration), "limits_use_up_no_iteration", || {
            format!("{} after {limited:?}", state.iteration)
        })
    }

    /// Waiting, and time in which nobody supervised, are no work.
    fn judge_time(&self, now: Timestamp, state: &State) -> Check {
        let worked = state.worked(now);
        hold(self.stepped || worked <= self.active + SLACK, "waiting_is_no_work", || {
            format!("{worked} ms, but only {} were worked in {:?}", self.active, state.status)
        })
    }

    fn judge_end(&mut self, state: &State) -> Check {
        let ending = match state.status {
            Status::Ending { with } => with,
            Status::Ended { ending } => Some(ending),
            _ => None,
        };
        let Some(ending) = ending else {
            return hold(self.doomed.is_none(), "what_ends_has_ended", || {
                format!("{:?} after {:?}", state.status, self.doomed)
            });
        };
        if ending == Ending::Done {
            hold(
                self.doomed.is_none_or(|end| end == Ending::Done),
                "no_success_after_an_end",
                || format!("done after {:?}", self.doomed),
            )?;
            hold(self.claimed, "success_is_claimed", || "nobody said so".to_owned())?;
            hold(self.checked || !state.config.verify, "success_is_checked", || {
                "the check has not passed".to_owned()
            })?;
        }
        self.doomed = Some(ending);
        Ok(())
    }

    /// A claim that was checked, or needs no check, is success, even on the last iteration.
    pub(super) fn judge_claim(before: &State, after: &State, event: &Event) -> Check {
        let earned = match event {
            Event::Checked { passed: true, .. } => before.status == Status::Checking,
            Event::Looked(tree) => {
                let asks = before.config.require_clean && tree.dirty;
                before.status == Status::Looking && !before.config.verify && !asks
            }
            _ => false,
        };
        hold(!earned || after.ending() == Some(Ending::Done), "success_is_success", || {
            format!("{:?} in iteration {}", after.status, after.iteration)
        })
    }
}

fn has_agent(state: &State) -> bool {
    matches!(state.status, Status::Working | Status::Ending { .. } | Status::Paused { .. })
}

/// Replays a journal through the machine.
pub(super) fn judge_journal(journal: Journal, stored: &State) -> Check {
    let Journal { began: (at, start), events, decisions } = journal;
    let mut state = State::start(at, start);
    let mut made: Vec<Decision> = Vec::new();
    for (at, event) in &events {
        made.extend(state.on_event(*at, event).decision);
    }
    hold(state == *stored, "replay_equals", || format!("stored: {stored:?}\nreplayed: {state:?}"))?;
    hold(made == decisions, "replay_decides_the_same", || {
        format!("{} decisions, {} when replayed", decisions.len(), made.len())
    })?;
    let explained = |decision: &Decision| !decision.rule.is_empty() && !decision.summary.is_empty();
    hold(made.iter().all(explained), "decisions_explain_themselves", || format!("{made:?}"))
}

/// A step takes a moment.
const SLACK: u64 = 2_000;
