//! Who works next: filling slots, starting agents, and seeing that nothing is left to do.

use std::collections::BTreeMap;

use super::config::Config;
use super::event::{Dispatch, Effect};
use super::run::{Ending, Stage, Work, WorkingAgent};
use super::signal::Role;
use super::state::{State, StepOutput, decision};
use super::task::{Status, Wait};
use super::{human, locks, prompts};
use crate::Decision;
use crate::stagnation::Monitor;

/// The work may begin.
pub(super) fn begin(state: &mut State, out: &mut StepOutput) {
    if state.run.stage != Stage::Ready {
        return;
    }
    let tasks = state.tasks.len();
    let plural = if tasks == 1 { "" } else { "s" };
    let decision = decision("begin", format!("Began with {tasks} task{plural}"))
        .because("a human asked for it")
        .next("slots are filled in the order critics, auditors, developers");
    out.decided(None, decision);
    if state.run.config.planner {
        state.run.stage = Stage::Planning;
        dispatch_planner(state, out);
    } else {
        state.run.stage = Stage::Working;
    }
}

/// The look at the plan is over.
pub(super) fn plan_is_over(state: &mut State) {
    state.run.stage = Stage::Working;
}

/// Goes on after a crash of ours: the agents that were at work are started again, each once. What a
/// lost agent did not say, it never said.
pub(super) fn recovered(state: &mut State, out: &mut StepOutput) {
    if state.run.stage == Stage::Ready {
        return begin(state, out);
    }
    let decision = decision("recover", "Went on where it was")
        .because("nobody coordinated it any more, and now somebody does");
    start_again(state, out, decision);
}

/// Goes on because a human wants it, with other limits.
pub(super) fn reopened(state: &mut State, out: &mut StepOutput, config: &Config) {
    if state.run.ending.is_some_and(|ending| !ending.can_be_continued()) {
        return;
    }
    let ended = state.run.ending.take();
    state.run.agents.append(&mut state.run.interrupted);
    state.run.config = config.clone();
    (state.run.paused, state.run.budget_warned) = (false, false);
    if state.run.stage == Stage::Ready {
        return begin(state, out);
    }
    let because = match ended {
        Some(ending) => format!("a human asked for it; it had ended ({})", ending.as_str()),
        None => "a human asked for it, with other limits".to_owned(),
    };
    let decision = decision("reopen", "Went on with the delivery").because(because);
    start_again(state, out, decision);
}

/// Starts the agents again that are gone.
fn start_again(state: &mut State, out: &mut StepOutput, decision: Decision) {
    // Whoever kept the old wake-up may be gone too.
    state.run.wake = None;
    let lost: BTreeMap<u64, WorkingAgent> = std::mem::take(&mut state.run.agents);
    out.decided(None, decision.next(format!("{} agents are started again", lost.len())));
    // What was being done for tasks and experts was lost too; doing it twice does no harm.
    let merges = state.index.merging().map(|no| state.at(no).spec.id.clone());
    out.effects.extend(merges.map(|task| Effect::Merge { task }));
    let checks = state.run.candidates.iter();
    out.effects.extend(checks.map(|(name, candidate)| Effect::CheckExpert {
        name: name.clone(),
        file: candidate.file.clone(),
    }));
    for (no, agent) in lost {
        out.effects.push(Effect::End { agent: no });
        match agent.work {
            Work::Task { task } => dispatch_task(state, out, task),
            Work::Infrastructure => dispatch_repair(state, out, agent.role),
            Work::Request { request } => {
                if let Some(asked) = state.run.consultations.get_mut(&request) {
                    // The try that was lost is not the expert's.
                    asked.tries = asked.tries.saturating_sub(1);
                }
                dispatch_expert(state, out, &request);
            }
            Work::Plan => dispatch_planner(state, out),
        }
    }
}

/// Fills the slots that are free, and ends when nothing is left to do.
pub(super) fn fill(state: &mut State, out: &mut StepOutput) {
    if state.run.stage != Stage::Working {
        return;
    }
    while may_start(state) {
        let Some(no) = next(state) else {
            // Nothing else can run: what was set aside gets another try.
            if !state.run.agents.is_empty() {
                break;
            }
            let later = state.index.later();
            if later.is_empty() {
                break;
            }
            later.into_iter().for_each(|no| state.set_wait(no, Wait::Slot));
            continue;
        };
        let limit = state.run.config.dispatch_limit;
        let dispatches = state.at(no).counters.dispatches;
        if dispatches >= limit {
            let why = format!("{dispatches} agents were started for the task");
            human::ask_about(state, out, no, &why, &why, None);
            break;
        }
        start(state, out, no);
    }
    let waits = !state.run.agents.is_empty()
        || !state.run.questions.is_empty()
        || state.in_remediation()
        || !state.index.is_quiet();
    let all = state.index.complete() == state.tasks.len();
    if all || !waits {
        let ending = if all { Ending::Complete } else { Ending::Failed };
        let mut decision = decision("end", "The delivery is over").because(match ending {
            Ending::Complete => "every task is complete",
            _ => "the tasks that are left need one that was given up",
        });
        let counts = [("complete", state.index.complete()), ("failed", state.index.failed())];
        decision.counters.extend(
            counts.map(|(name, count)| (name.to_owned(), u64::try_from(count).unwrap_or(u64::MAX))),
        );
        out.decided(None, decision);
        state.end(out, ending);
    }
}

fn may_start(state: &State) -> bool {
    let slots = usize::try_from(state.run.config.slots).unwrap_or(usize::MAX);
    !state.run.paused
        && state.run.questions.is_empty()
        && !state.in_remediation()
        && state.run.agents.len() < slots
}

/// The first task in line whose files are free.
fn next(state: &mut State) -> Option<usize> {
    loop {
        let no = state.index.first_ready()?;
        let wanted = locks::wanted(state, no);
        let taken = wanted.iter().find(|path| !state.index.holders(path, no).is_empty());
        match taken {
            None => return Some(no),
            Some(path) => state.index.defer(no, &state.tasks[no], path),
        }
    }
}

/// Starts the agent whose turn it is.
fn start(state: &mut State, out: &mut StepOutput, no: usize) {
    for path in locks::wanted(state, no) {
        locks::take(state, no, &path);
    }
    state.at_mut(no).counters.dispatches += 1;
    dispatch_task(state, out, no);
    let task = state.at(no);
    let because = match task.status() {
        Status::Implementing if task.round == 0 && task.dispatched == 1 => {
            "everything it needs is complete"
        }
        _ => "it is its turn, and a slot is free",
    };
    let decision = decision("dispatch", format!("Started the {}", task.role.label()))
        .because(because)
        .next("its reply decides");
    out.decided(Some(task), decision);
}

fn dispatch_task(state: &mut State, out: &mut StepOutput, no: usize) {
    let role = state.at(no).role;
    let agent = register_agent(state, out, role, Work::Task { task: no });
    state.at_mut(no).dispatched += 1;
    let prompt = prompts::task(state, no, agent);
    let resume = state.at_mut(no).resume.take();
    state.set_wait(no, Wait::Agent { agent });
    let task = Some(state.at(no).spec.id.clone());
    out.effects.push(Effect::Dispatch(Dispatch {
        agent,
        role,
        task,
        expert: None,
        resume,
        prompt,
    }));
}

/// Starts the agent that repairs what all tasks need, or the one that judges it.
pub(super) fn dispatch_repair(state: &mut State, out: &mut StepOutput, role: Role) {
    let agent = register_agent(state, out, role, Work::Infrastructure);
    let prompt = prompts::repair(state, role, agent);
    let (task, expert, resume) = (None, None, None);
    out.effects.push(Effect::Dispatch(Dispatch { agent, role, task, expert, resume, prompt }));
}

/// Starts the expert that is asked.
pub(super) fn dispatch_expert(state: &mut State, out: &mut StepOutput, request: &str) {
    let work = Work::Request { request: request.to_owned() };
    let agent = register_agent(state, out, Role::Expert, work);
    let Some(asked) = state.run.consultations.get_mut(request) else { return };
    asked.tries += 1;
    let (task, expert) = (asked.task, Some(asked.expert.clone()));
    let prompt = prompts::expert(state, request, agent);
    let task = task.map(|no| state.at(no).spec.id.clone());
    let (role, resume) = (Role::Expert, None);
    out.effects.push(Effect::Dispatch(Dispatch { agent, role, task, expert, resume, prompt }));
}

fn dispatch_planner(state: &mut State, out: &mut StepOutput) {
    let role = Role::Planner;
    let agent = register_agent(state, out, role, Work::Plan);
    let prompt = prompts::planner(state, agent);
    let (task, expert, resume) = (None, None, None);
    out.effects.push(Effect::Dispatch(Dispatch { agent, role, task, expert, resume, prompt }));
}

/// Gives an agent its number.
fn register_agent(state: &mut State, out: &StepOutput, role: Role, work: Work) -> u64 {
    state.run.agents_started += 1;
    let (started_at, last_seen) = (out.now, out.now);
    let watched = &state.run.config.stagnation;
    let monitor = watched.enabled.then(|| Monitor::new(out.now, watched.clone()));
    let agent = WorkingAgent {
        role,
        work,
        started_at,
        last_seen,
        missed_checkpoints: 0,
        checkpoint_request: None,
        monitor,
    };
    state.run.agents.insert(state.run.agents_started, agent);
    state.run.agents_started
}
