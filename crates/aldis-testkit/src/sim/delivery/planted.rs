//! The machine under test, and the bugs that can be planted in it.
//!
//! As with the phases machine, a bug changes what the machine or its driver does, never what the
//! simulator checks.

use aldis_machine::delivery::{Event, Outcome, Role, State, Task, Wait, Work};
use aldis_signal::time::Timestamp;

/// A mistake that somebody could make.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Bug {
    /// The effects are performed although the write failed.
    ActBeforeCommit,
    /// A task that changed is not written.
    LostPart,
    /// The words of an agent that was replaced count as those of its successor.
    LateCounts,
    /// The critic is skipped.
    ReviewSkipped,
    /// A developer's verdict on its own work moves its task.
    SelfAudit,
    /// One agent too many is at work.
    SlotTooMany,
    /// Agents that were dismissed are started all the same.
    StaleDispatch,
    /// After a crash nobody is started again.
    RecoveryForgotten,
    /// A question does not stop the filling of slots.
    QuestionIgnored,
    /// A reviewer's refusals are not counted.
    RefusalsUncounted,
    /// A task begins although one that it needs is not complete.
    NeedIgnored,
    /// Two tasks change one file.
    LockForgotten,
}

impl Bug {
    /// Every bug there is.
    pub const ALL: [Self; 12] = [
        Self::ActBeforeCommit,
        Self::LostPart,
        Self::LateCounts,
        Self::ReviewSkipped,
        Self::SelfAudit,
        Self::SlotTooMany,
        Self::StaleDispatch,
        Self::RecoveryForgotten,
        Self::QuestionIgnored,
        Self::RefusalsUncounted,
        Self::NeedIgnored,
        Self::LockForgotten,
    ];
}

/// Takes one event, as the real machine does or with a bug.
pub(super) fn take(bug: Option<Bug>, state: &mut State, now: Timestamp, event: &Event) -> Outcome {
    let Some(bug) = bug else { return state.on_event(now, event) };
    let event = misread(bug, state, event.clone());
    let mut outcome = state.on_event(now, &event);
    misjudge(bug, state, &mut outcome);
    outcome
}

/// Bugs in understanding what happened.
fn misread(bug: Bug, state: &State, event: Event) -> Event {
    let Event::Finished { agent, exit, mut said } = event else { return event };
    let mut speaker = agent;
    match bug {
        Bug::LateCounts if state.agent(agent).is_none() => {
            let named = said.signals.iter().find_map(|heard| heard.subject.as_deref());
            let task = named.and_then(|id| state.task(id));
            speaker = task.and_then(Task::agent).unwrap_or(agent);
        }
        Bug::SelfAudit => {
            let develops = state.agent(agent).is_some_and(|live| live.role == Role::Developer);
            let verdicts = said.signals.iter_mut().filter(|heard| heard.name == "AUDIT_PASSED");
            for heard in verdicts.filter(|_| develops) {
                "READY_FOR_REVIEW".clone_into(&mut heard.name);
            }
        }
        _ => {}
    }
    Event::Finished { agent: speaker, exit, said }
}

/// Bugs in what comes of it: a state with other parts.
fn misjudge(bug: Bug, state: &mut State, outcome: &mut Outcome) {
    let (mut run, mut tasks) = (state.run().clone(), state.tasks().to_vec());
    let changed: Vec<usize> = outcome.changed.clone();
    match bug {
        Bug::ReviewSkipped => {
            for no in &changed {
                let task = &mut tasks[*no];
                if task.role == Role::Critic && task.wait == Wait::Slot {
                    task.role = Role::Auditor;
                }
            }
        }
        Bug::SlotTooMany => {
            if run.config.slots < 90 {
                run.config.slots += 90;
            }
        }
        Bug::QuestionIgnored => {
            // The question is still there for humans, but not for the machine.
            if run.questions.len() == 1 && run.remediation.is_none() {
                run.questions.clear();
            }
        }
        Bug::RefusalsUncounted => {
            for no in &changed {
                tasks[*no].counters.review_failures = 0;
                tasks[*no].counters.audit_failures = 0;
            }
        }
        Bug::NeedIgnored => {
            if let Some(no) = tasks.iter().position(|task| task.wait == Wait::Needs) {
                tasks[no].wait = Wait::Slot;
                outcome.changed.push(no);
            }
        }
        Bug::LockForgotten => {
            for no in &changed {
                if tasks[*no].role != Role::Developer {
                    tasks[*no].holds.clear();
                }
            }
        }
        _ => return,
    }
    let busy = |no: usize| run.agents.values().any(|it| it.work == Work::Task { task: no });
    // An agent at work stays with its task.
    let fits = tasks.iter().enumerate().all(|(no, task)| task.agent().is_some() == busy(no));
    if let (true, Ok(other)) = (fits, State::from_parts(run, tasks)) {
        *state = other;
    }
}
