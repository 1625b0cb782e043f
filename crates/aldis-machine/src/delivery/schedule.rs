//! Who works next: filling slots, starting agents, and ending when nothing is left to do.

use std::collections::BTreeMap;

use super::config::Config;
use super::event::{Dispatch, Effect};
use super::human::{self, NewQuestion};
use super::rule::Rule;
use super::run::{Ending, Stage, Work, WorkingAgent};
use super::sentences::counted;
use super::signal::Role;
use super::state::{State, StepOutput, decision};
use super::task::{Status, Task, Wait};
use super::{locks, prompts};
use crate::Decision;
use crate::stagnation::Monitor;

/// The work may begin.
pub(super) fn begin(state: &mut State, out: &mut StepOutput) {
    if state.run.stage != Stage::Ready {
        return;
    }
    let tasks = counted(state.tasks.len(), "task");
    let decision = decision(Rule::Started, format!("Started the delivery of {tasks}"))
        .because("the coordinator began it")
        .next("free slots go to critics first, then to auditors, then to developers");
    out.decided(None, decision);
    if state.run.config.planner {
        state.run.stage = Stage::Planning;
        dispatch_planner(state, out);
    } else {
        state.run.stage = Stage::Working;
    }
}

/// The plan has been looked at, and its experts are known.
pub(super) fn plan_is_over(state: &mut State) {
    state.run.stage = Stage::Working;
    state.run.checking_since = None;
}

/// Continues after a crash of ours: the agents that were at work are started again, each once. What a
/// lost agent did not report, it never reported.
pub(super) fn recovered(state: &mut State, out: &mut StepOutput) {
    if state.run.stage == Stage::Ready {
        return begin(state, out);
    }
    let decision = decision(Rule::Recovered, "Continued after an interruption")
        .because("the coordinator was gone and is back");
    start_again(state, out, decision);
}

/// Continues because a human wants it, with other limits.
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
        Some(ending) => {
            let how = ending.as_str().replace('_', " ");
            format!("a human continued it; it had ended ({how})")
        }
        None => "a human continued it with other limits".to_owned(),
    };
    let decision = decision(Rule::Continued, "Continued the delivery").because(because);
    start_again(state, out, decision);
}

/// Starts the agents again that are gone, and asks the open questions again.
fn start_again(state: &mut State, out: &mut StepOutput, decision: Decision) {
    // Whoever kept the old wake-up may be gone too.
    state.run.wake = None;
    let lost: BTreeMap<u64, WorkingAgent> = std::mem::take(&mut state.run.agents);
    let mut next = match lost.len() {
        0 => "free slots are filled".to_owned(),
        1 => "1 agent is started again".to_owned(),
        count => format!("{count} agents are started again"),
    };
    if let Some(questions) = human::open_questions(state) {
        next = format!("{next}; {questions}");
    }
    out.decided(None, decision.next(next));
    // What was being done for tasks and experts was lost too; doing it twice does no harm.
    locks::merge_again(state, out);
    let checks = state.run.candidates.iter();
    out.effects.extend(checks.map(|(name, candidate)| Effect::CheckExpert {
        name: name.clone(),
        file: candidate.file.clone(),
    }));
    state.run.checking_since = state.run.checking_since.map(|_| out.now);
    // Nobody may be left who saw them.
    for id in state.run.questions.keys().cloned().collect::<Vec<_>>() {
        human::ask_again(state, out, &id);
    }
    for (no, agent) in lost {
        out.effects.push(Effect::End { agent: no });
        match agent.work {
            Work::Task { task } => dispatch_task(state, out, task),
            Work::Infrastructure => dispatch_repair(state, out, agent.role),
            Work::Request { request } => {
                if let Some(asked) = state.run.consultations.get_mut(&request) {
                    // The attempt that was lost is not the expert's.
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
            // Nothing else can run: tasks on hold are tried again.
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
        let Task { counters, last_failure, last_refused, .. } = state.at(no);
        if counters.dispatches >= limit {
            let mut why = format!("{} were started for it", counted(counters.dispatches, "agent"));
            if let Some(failure) = last_failure {
                why = format!("{why}. Last: {failure}");
            }
            let new = NewQuestion::new(Rule::DispatchLimit, why).seen(last_refused.clone());
            human::ask_about(state, out, no, new);
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
        end(state, out, all);
    }
}

/// Ends because nothing is left to do.
fn end(state: &mut State, out: &mut StepOutput, all: bool) {
    let (unfinished, evidence) = state.unfinished();
    let mut decision = if all {
        decision(Rule::AllTasksComplete, "Completed the delivery").because(unfinished)
    } else {
        decision(Rule::NoTaskCanRun, "Ended the delivery: no task can run any more")
            .because(format!("the tasks that are left need one that was given up; {unfinished}"))
            .seen(evidence)
            .next("start another delivery with what is left: aldis deliver PLAN")
    };
    let counts = [("complete", state.index.complete()), ("failed", state.index.failed())];
    decision.counters.extend(
        counts.map(|(name, count)| (name.to_owned(), u64::try_from(count).unwrap_or(u64::MAX))),
    );
    out.decided(None, decision);
    state.end(out, if all { Ending::Complete } else { Ending::Failed });
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
    let role = task.role.label();
    let because = match task.status() {
        Status::Implementing if task.round == 0 && task.dispatched == 1 => {
            "every task that it needs is complete, and a slot is free".to_owned()
        }
        _ => format!("it is the {role}'s turn, and a slot is free"),
    };
    let decision = decision(Rule::AgentStarted, format!("Started the {role}"))
        .because(because)
        .next(format!("the {role}'s reply decides"));
    out.decided(Some(task), decision);
}

fn dispatch_task(state: &mut State, out: &mut StepOutput, no: usize) {
    let role = state.at(no).role;
    let agent = register_agent(state, out, role, Work::Task { task: no });
    state.at_mut(no).dispatched += 1;
    let prompt = prompts::task(state, no, agent);
    let resume = state.at_mut(no).resume.take();
    state.set_wait(no, Wait::Agent { agent });
    let mut dispatch = dispatch(state, agent, role, Some(no), prompt);
    dispatch.resume = resume;
    out.effects.push(Effect::Dispatch(dispatch));
}

/// Starts the agent that repairs the infrastructure, or the one that judges the repair. Where the
/// delivery has ended, it is started when the delivery is continued.
pub(super) fn dispatch_repair(state: &mut State, out: &mut StepOutput, role: Role) {
    let agent = register_agent(state, out, role, Work::Infrastructure);
    if state.run.ending.is_some() {
        let agent = state.run.agents.remove_entry(&agent);
        return state.run.interrupted.extend(agent);
    }
    let prompt = prompts::repair(state, role, agent);
    out.effects.push(Effect::Dispatch(dispatch(state, agent, role, None, prompt)));
}

/// Starts the expert that is asked.
pub(super) fn dispatch_expert(state: &mut State, out: &mut StepOutput, request: &str) {
    let work = Work::Request { request: request.to_owned() };
    let agent = register_agent(state, out, Role::Expert, work);
    let Some(asked) = state.run.consultations.get_mut(request) else { return };
    asked.tries += 1;
    let (task, expert) = (asked.task, Some(asked.expert.clone()));
    let prompt = prompts::expert(state, request, agent);
    let dispatch = dispatch(state, agent, Role::Expert, task, prompt);
    out.effects.push(Effect::Dispatch(Dispatch { expert, ..dispatch }));
}

fn dispatch_planner(state: &mut State, out: &mut StepOutput) {
    let agent = register_agent(state, out, Role::Planner, Work::Plan);
    let prompt = prompts::planner(state, agent);
    out.effects.push(Effect::Dispatch(dispatch(state, agent, Role::Planner, None, prompt)));
}

/// An agent to be started for a task, or for none.
fn dispatch(
    state: &State,
    agent: u64,
    role: Role,
    task: Option<usize>,
    prompt: String,
) -> Dispatch {
    let task = task.map(|no| state.at(no));
    Dispatch {
        agent,
        role,
        task: task.map(|task| task.spec.id.clone()),
        title: task.and_then(Task::title),
        expert: None,
        resume: None,
        timeout: state.run.config.timeout(role).as_secs(),
        prompt,
    }
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
