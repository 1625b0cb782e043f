//! What must hold after every step of a delivery, judged from the outside.
//!
//! The books know who was really started for what, who is still at work, and what each of them
//! really said. A task may move only because of that.

use std::collections::{BTreeMap, BTreeSet};

use aldis_machine::delivery::{
    Dispatch, Effect, Ending, Event, Outcome, Role, State, Status, Task, Wait,
};

use super::super::oracle::{Broken, Check, hold};

/// A task as the books know it.
#[derive(Clone, Debug)]
struct Page {
    role: Role,
    status: Status,
    /// Reviewed as it stands, by this agent.
    reviewed: Option<u64>,
    /// Audited as it stands, after that.
    audited: bool,
}

/// The oracle's books about one delivery.
#[derive(Debug, Default)]
pub(super) struct Books {
    pages: Vec<Page>,
    /// Who was started and not dismissed, by number.
    live: BTreeMap<u64, (Role, Option<String>)>,
    newest: u64,
    questions: BTreeSet<String>,
    remediation: bool,
    /// Files that two tasks may change because one of them could not wait.
    shared: BTreeSet<String>,
    slots: usize,
}

impl Books {
    pub(super) fn open(state: &State) -> Self {
        let page = |task: &Task| Page {
            role: task.role,
            status: task.status(),
            reviewed: None,
            audited: task.status() == Status::Complete,
        };
        Self {
            pages: state.tasks().iter().map(page).collect(),
            slots: usize::try_from(state.run().config.slots).unwrap_or(usize::MAX),
            ..Self::default()
        }
    }

    /// How many agents should be at work.
    pub(super) fn at_work(&self) -> usize {
        self.live.len()
    }

    /// Whether this agent should be at work.
    pub(super) fn expects(&self, agent: u64) -> bool {
        self.live.contains_key(&agent)
    }

    /// Judges a step that is in the store, and enters it.
    pub(super) fn enter(&mut self, event: &Event, outcome: &Outcome, state: &State) -> Check {
        let speaker = self.speaker(event);
        if let Event::Answer { id, .. } = event {
            self.questions.remove(id);
        }
        self.share(event);
        for no in &outcome.changed {
            let task = state.tasks().get(*no).ok_or_else(|| broken("no task", *no))?;
            self.moved(*no, task, event, speaker.as_ref())?;
        }
        self.effects(event, outcome, state)?;
        self.whole(state)?;
        explained(outcome)
    }

    /// The agent that speaks, if it is one that may; it is done then.
    fn speaker(&mut self, event: &Event) -> Option<(u64, Role, Option<String>)> {
        let Event::Finished { agent, exit, .. } = event else { return None };
        if exit.is_some_and(|exit| !exit.is_clean()) {
            self.live.remove(agent);
            return None;
        }
        let (role, task) = self.live.get(agent).cloned()?;
        Some((*agent, role, task))
    }

    /// A file that somebody must have at once may have two owners.
    fn share(&mut self, event: &Event) {
        let Event::Finished { said, .. } = event else { return };
        for heard in said.signals.iter().filter(|heard| heard.name == "FILE CONFLICT") {
            if heard.fields.get("can_wait").and_then(|word| word.as_str()) == Some("NO") {
                self.shared.extend(heard.subject.clone());
            }
        }
    }

    /// Judges that a task moved for a reason that was really there.
    fn moved(
        &mut self,
        no: usize,
        task: &Task,
        event: &Event,
        speaker: Option<&(u64, Role, Option<String>)>,
    ) -> Check {
        let Some(page) = self.pages.get_mut(no) else { return Err(broken("no page", no)) };
        let id = &task.spec.id;
        let own = speaker.filter(|(_, _, its)| its.as_ref() == Some(id));
        let said = |role: Role, name: &str| {
            let by = own.is_some_and(|(_, speaks, _)| *speaks == role);
            by && matches!(event, Event::Finished { said, .. } if said.signals.iter().any(
                |heard| heard.name == name && heard.subject.as_ref().is_none_or(|it| it == id)))
        };
        let merged = |wanted: bool| matches!(event, Event::Merged { task, ok, .. } if task == id && *ok == wanted);
        let was = page.clone();
        let detail = || format!("{id} went from {was:?} to {task:?} by {event:?}");
        if was.status == Status::Complete || was.status == Status::Failed {
            return hold(was.status == task.status(), "an_end_is_an_end", detail);
        }
        match (was.role, task.role) {
            (Role::Developer, Role::Critic) => {
                let holds = said(Role::Developer, "READY_FOR_REVIEW");
                hold(holds, "handed_over_by_its_developer", detail)?;
                (page.reviewed, page.audited) = (None, false);
            }
            (Role::Critic, Role::Auditor) => {
                hold(said(Role::Critic, "REVIEW_PASSED"), "reviewed_by_its_critic", detail)?;
                page.reviewed = own.map(|(agent, ..)| *agent);
            }
            (Role::Critic | Role::Auditor, Role::Developer) => {
                let holds = said(Role::Critic, "REVIEW_FAILED")
                    || said(Role::Auditor, "AUDIT_FAILED")
                    || merged(false);
                hold(holds, "sent_back_by_its_reviewer", detail)?;
                (page.reviewed, page.audited) = (None, false);
            }
            (Role::BusinessAnalyst, Role::Developer) => {
                let holds = said(Role::BusinessAnalyst, "EXPANDED_TASK_SPECIFICATION")
                    || matches!(event, Event::Answer { .. });
                hold(holds, "expanded_by_its_analyst", detail)?;
            }
            (before, after) => hold(before == after, "roles_in_order", detail)?,
        }
        if said(Role::Auditor, "AUDIT_PASSED") {
            page.audited = true;
        }
        if task.status() == Status::Complete {
            let holds = page.reviewed.is_some()
                && page.audited
                && (said(Role::Auditor, "AUDIT_PASSED") || merged(true));
            hold(holds, "complete_means_reviewed_and_audited", detail)?;
        }
        if task.status() == Status::Failed {
            let given_up = matches!(event, Event::Answer { text, .. } if text == "fail");
            hold(given_up, "given_up_by_a_human", detail)?;
        }
        (page.role, page.status) = (task.role, task.status());
        Ok(())
    }

    fn effects(&mut self, event: &Event, outcome: &Outcome, state: &State) -> Check {
        if let Event::Finished { agent, .. } = event {
            // An agent that can be asked may speak more than once.
            if state.agent(*agent).is_none() {
                self.live.remove(agent);
            }
        }
        let held =
            !self.questions.is_empty() || (self.remediation && state.run().remediation.is_some());
        for effect in &outcome.effects {
            match effect {
                Effect::Dispatch(dispatch) => self.dispatched(event, dispatch, held)?,
                Effect::End { agent } => drop(self.live.remove(agent)),
                Effect::Ask { id, .. } => {
                    hold(self.questions.insert(id.clone()), "questions_have_names", || id.clone())?;
                }
                Effect::Finish { ending } => {
                    let all = self.pages.iter().all(|page| page.status == Status::Complete);
                    hold(all == (*ending == Ending::Complete), "success_is_complete", || {
                        format!("{ending:?} with {:?}", self.pages)
                    })?;
                    self.live.clear();
                }
                _ => {}
            }
        }
        self.remediation = state.run().remediation.is_some();
        Ok(())
    }

    fn dispatched(&mut self, event: &Event, dispatch: &Dispatch, held: bool) -> Check {
        let Dispatch { agent, role, task, .. } = dispatch;
        let detail = || format!("agent {agent}, a {role:?} of {task:?}, by {event:?}");
        hold(*agent > self.newest, "agents_have_new_numbers", detail)?;
        self.newest = *agent;
        let works =
            matches!(role, Role::BusinessAnalyst | Role::Developer | Role::Critic | Role::Auditor);
        let again = *event == Event::Recovered;
        hold(!works || !held || again, "nobody_is_started_while_held", detail)?;
        if works {
            let twice = self.live.values().any(|(role, its)| its == task && *role != Role::Expert);
            hold(!twice, "one_agent_per_task", detail)?;
        }
        self.live.insert(*agent, (*role, task.clone()));
        Ok(())
    }

    /// What every state must be.
    fn whole(&self, state: &State) -> Check {
        let run = state.run();
        hold(self.live.len() <= self.slots, "no_more_agents_than_slots", || {
            format!("{} for {}", self.live.len(), self.slots)
        })?;
        let known: Vec<u64> = run.agents.keys().copied().collect();
        let live: Vec<u64> = self.live.keys().copied().collect();
        hold(known == live, "agents_are_those_started", || format!("{known:?} for {live:?}"))?;
        let asked: BTreeSet<String> = run.questions.keys().cloned().collect();
        let ended = run.ending.is_some();
        hold(ended || asked == self.questions, "questions_wait_for_answers", || {
            format!("{asked:?} for {:?}", self.questions)
        })?;
        for task in state.tasks() {
            let (counters, limits) = (&task.counters, &run.config);
            let within = counters.review_failures <= limits.failure_limit
                && counters.audit_failures <= limits.failure_limit
                && counters.timeouts <= limits.timeout_limit
                && counters.refusals <= limits.refusal_limit
                && counters.dispatches <= limits.dispatch_limit;
            hold(within, "limits_hold", || format!("{task:?}"))?;
            if task.dispatched > 0 {
                let met = |need: &String| {
                    state.task(need).is_some_and(|need| need.status() == Status::Complete)
                };
                let all = task.spec.needs.iter().all(met);
                hold(all, "needs_are_complete_first", || format!("{task:?}"))?;
            }
            let alone = task.wait != Wait::Complete || task.holds.is_empty();
            hold(alone, "completion_releases_files", || format!("{task:?}"))?;
        }
        self.files(state)
    }

    /// A file that a task works on belongs to it alone, unless two were told to share it.
    fn files(&self, state: &State) -> Check {
        let mut owners: BTreeMap<&str, &str> = BTreeMap::new();
        for task in state.tasks() {
            let ended = matches!(task.status(), Status::Complete | Status::Failed);
            let develops = task.role == Role::Developer && task.agent().is_some();
            let held = task.spec.files.iter().all(|file| task.holds.contains(file));
            let worked_on = !ended && (task.round > 0 || develops);
            hold(held || !worked_on, "files_are_held_to_the_end", || format!("{task:?}"))?;
            for file in task.holds.iter().filter(|file| !self.shared.contains(*file)) {
                if let Some(other) = owners.insert(file, &task.spec.id) {
                    let detail = format!("{file} belongs to {other} and {}", task.spec.id);
                    return Err(Broken { invariant: "files_have_one_owner", detail });
                }
            }
        }
        Ok(())
    }
}

/// Every decision says why.
fn explained(outcome: &Outcome) -> Check {
    let moved = !outcome.changed.is_empty();
    hold(!moved || !outcome.decisions.is_empty(), "changes_are_explained", || {
        format!("{outcome:?}")
    })?;
    for noted in &outcome.decisions {
        let it = &noted.decision;
        let full = ![&it.rule, &it.summary, &it.because, &it.remedy].iter().any(|s| s.is_empty());
        hold(full, "changes_are_explained", || format!("{it:?}"))?;
    }
    Ok(())
}

fn broken(what: &str, no: usize) -> Broken {
    Broken { invariant: "tasks_stay", detail: format!("{what} number {no}") }
}
