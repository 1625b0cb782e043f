//! How an event reaches a run: as the hook does it, with everything that can go wrong on the way.

use std::rc::Rc;

use aldis::engine::driver::Origin;
use aldis::hosts::state_file::StateFileCheck;
use aldis_machine::phases::{Config, Effect, Event, Outcome, Said, State, Stop, View};
use aldis_signal::scan::scan;
use aldis_signal::{Origin as From, Rules};
use aldis_store::{Fault, FaultKind, When};

use super::super::engine::{Delivery, Entry, Failure, Happened, Held, Taken};
use super::super::file::shows;
use super::super::oracle::{Books, Broken, Check, Seen, hold, state as state_holds};
use super::{SCANNED_EVERY, WRITTEN_EVERY, World, lost};

/// What the host hears. A hook that died or failed says nothing, and the agent may stop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Reply {
    Silence,
    Allow,
    /// The stop was refused, with or without a phase having ended.
    Block {
        advanced: bool,
    },
    Context,
}

impl World {
    /// Delivers an event of a session.
    pub(super) fn deliver(&mut self, session: usize, delivery: &Delivery) -> Result<Reply, Broken> {
        self.tally.events += 1;
        let id = Rc::clone(&self.sessions[session].id);
        let project = self.sessions[session].project;
        let is_stop = matches!(&*delivery.event, Event::Stop(_));
        let Some(mut held) = self.engine.live(project, Some(&id)) else {
            self.mix(1);
            return if is_stop { self.adopt(session, delivery) } else { Ok(Reply::Silence) };
        };
        let foreign = held.state.session.as_deref().is_some_and(|bound| *bound != *id);
        if foreign {
            // The hook looks first; that the machine does too is seen by leaving that out.
            if self.rng.chance(50) {
                return Ok(Reply::Silence);
            }
        } else if is_stop {
            match self.inspect(&held)? {
                StateFileCheck::Unchanged => {}
                StateFileCheck::Corrupt(_) => return Ok(Reply::Silence),
                StateFileCheck::Changed(event) => {
                    let delivery = Delivery { event: Rc::new(*event), source: None };
                    let run = held.run;
                    let Some(taken) = self.step(held, &delivery)? else {
                        return Ok(Reply::Silence);
                    };
                    if !taken.state.active {
                        return self.perform(project, &taken, false);
                    }
                    held = self.engine.held(run).ok_or_else(|| lost(run))?;
                }
            }
        }
        if self.strikes(15) {
            // Another process takes a step between our reading and our writing.
            self.interlope(project, &held)?;
        }
        match self.step(held, delivery)? {
            Some(taken) => self.perform(project, &taken, false),
            None => Ok(Reply::Silence),
        }
    }

    /// What a human's command does: no glance at the file, and the view is recorded as written.
    pub(super) fn command(&mut self, project: usize, held: Held, event: Event) -> Check {
        self.tally.events += 1;
        let delivery = Delivery { event: Rc::new(event), source: None };
        if let Some(taken) = self.step(held, &delivery)? {
            self.perform(project, &taken, true)?;
        }
        Ok(())
    }

    /// Looks at the view file, and at whether what it says has a cause.
    fn inspect(&mut self, held: &Held) -> Result<StateFileCheck, Broken> {
        let project = self.project_of(held.run);
        let matters = held.state.adopted || self.engine.was_written(held.run);
        let file = &mut self.files[project];
        let mut check = file.inspect(&held.state, matters);
        if matches!(check, StateFileCheck::Changed(_))
            && let Some(text) = file.text()
            && self.engine.is_outdated(project, &text)
        {
            check = StateFileCheck::Unchanged;
        }
        if let StateFileCheck::Changed(event) = &check {
            if let Event::Cancel { by } = &**event {
                hold(file.cancelled, "a_cancel_has_a_cause", || {
                    format!("run {} is cancelled by {by}, and nobody did that", held.run)
                })?;
            } else {
                hold(file.meddled, "an_edit_has_a_cause", || {
                    format!("run {}: {event:?}, and nobody edited anything", held.run)
                })?;
            }
        }
        Ok(check)
    }

    fn project_of(&self, run: usize) -> usize {
        self.books.get(run).and_then(Option::as_ref).map_or(0, |books| books.project)
    }

    /// Another process, which is not disturbed by anybody.
    fn interlope(&mut self, project: usize, held: &Held) -> Check {
        let calm = std::mem::replace(&mut self.faulty, false);
        let session = held.state.session.clone();
        let event = match self.rng.below(8) {
            0 => Event::Cancel { by: "`aldis auto stop`".to_owned() },
            1 => Event::Resume { fresh_token: Some(self.code()) },
            2 => Event::SessionStart { session },
            3 => Event::Interrupted { session },
            4 => Event::StopFailed { session, error: "rate_limit".to_owned() },
            _ => Event::Prompt { session, turn: None, own: false },
        };
        if matches!(event, Event::Resume { .. } | Event::Prompt { .. }) {
            self.disturb(project);
        }
        let result = self.command(project, held.clone(), event);
        self.faulty = calm;
        result
    }

    /// Something happened that the hosts of this project do not know of.
    pub(super) fn disturb(&mut self, project: usize) {
        for session in &mut self.sessions {
            if session.project == project {
                session.disturb();
            }
        }
    }

    /// Takes one step: decide, commit; `None` when nobody is left to act on it.
    fn step(&mut self, held: Held, delivery: &Delivery) -> Result<Option<Taken>, Broken> {
        let run = held.run;
        let read = Rc::clone(&held.state);
        let before = self.engine.held(run).ok_or_else(|| lost(run))?;
        let crash = self.plan_fault();
        let result = self.engine.advance(self.now, held, delivery);
        self.engine.fail_next(None);
        let after = self.engine.held(run).ok_or_else(|| lost(run))?;
        let code = match &result {
            Ok(taken) => u64::from(code(&taken.outcome)),
            Err(Failure::Store) => 11,
            Err(Failure::Duplicate) => 12,
            Err(Failure::Broken(_)) => 13,
        };
        self.mix_step(&after, code);
        self.note(|_| describe(run, delivery, &result, &after));
        let books = self.books.get_mut(run).and_then(Option::as_mut).ok_or_else(|| lost(run))?;
        let mut seen = Seen {
            now: self.now,
            before: &before.state,
            after: &after.state,
            event: &delivery.event,
            outcome: None,
        };
        match result {
            Ok(taken) if taken.outcome.decision.is_none() => {
                // Whoever came second has read the run again.
                let base = if *taken.state == *read { &read } else { &before.state };
                books.untouched(base, &taken.state, &after)?;
                Ok(Some(taken))
            }
            Ok(taken) => {
                let there = after.revision == taken.revision
                    && (Rc::ptr_eq(&after.state, &taken.state) || after.state == taken.state);
                hold(there, "no_effect_before_commit", || {
                    format!("revision {} is answered, {} is stored", taken.revision, after.revision)
                })?;
                seen.outcome = Some(&taken.outcome);
                books.enter(&seen, delivery, &after)?;
                self.committed(&before.state, &after.state)?;
                Ok((!crash).then_some(taken))
            }
            Err(Failure::Store) => {
                if after.revision == before.revision {
                    hold(before.state == after.state, "all_or_nothing", String::new)?;
                } else {
                    books.enter(&seen, delivery, &after)?;
                    self.committed(&before.state, &after.state)?;
                }
                self.engine.restart();
                Ok(None)
            }
            Err(Failure::Duplicate) => {
                books.knows(delivery.source.as_ref())?;
                Ok(None)
            }
            Err(Failure::Broken(detail)) => Err(Broken { invariant: "steps_succeed", detail }),
        }
    }

    /// Decides whether this step goes wrong, and how. Returns whether the process dies after it.
    fn plan_fault(&mut self) -> bool {
        if !self.strikes(60) {
            return false;
        }
        let kinds = [FaultKind::Busy, FaultKind::Full, FaultKind::Io, FaultKind::ReadOnly];
        let kind = self.rng.pick(&kinds);
        match self.rng.below(3) {
            0 => self.engine.fail_next(Some(Fault { when: When::Before, kind })),
            1 => self.engine.fail_next(Some(Fault { when: When::After, kind })),
            _ => return true,
        }
        false
    }

    /// Counts a committed step, and looks at its written forms now and then.
    fn committed(&mut self, before: &State, after: &State) -> Check {
        self.tally.steps += 1;
        if before.active && !after.active {
            self.tally.ends += 1;
            self.tally.successes += u64::from(after.exit_reason.is_some_and(|r| r.is_success()));
        }
        if (self.tally.steps + self.seed).is_multiple_of(WRITTEN_EVERY) {
            self.tally.written += 1;
            let broken = |detail| Broken { invariant: "view_shows_the_state", detail };
            shows(&after.render_view(None), after).map_err(broken)?;
            let stored = serde_json::to_string(after).unwrap_or_default();
            let read = serde_json::from_str::<State>(&stored);
            hold(read.is_ok_and(|read| read == *after), "stored_form_is_whole", || stored)?;
        }
        Ok(())
    }

    /// Performs the effects of a step that is durable.
    pub(super) fn perform(
        &mut self,
        project: usize,
        taken: &Taken,
        recorded: bool,
    ) -> Result<Reply, Broken> {
        let stored = self.engine.held(taken.run).ok_or_else(|| lost(taken.run))?;
        hold(stored.revision >= taken.revision, "no_effect_before_commit", || {
            format!("revision {} is performed, {} is stored", taken.revision, stored.revision)
        })?;
        let writes = taken.outcome.effects.contains(&Effect::WriteView);
        if writes && !self.strikes(15) {
            let broken = |detail| Broken { invariant: "view_shows_the_state", detail };
            self.files[project].write(&taken.state).map_err(broken)?;
            if recorded || !taken.state.active {
                self.engine.view_done(taken.run, taken.revision);
            } else if !taken.state.adopted && !self.engine.was_written(taken.run) {
                // Of a run that goes on, only whether there ever was a view is recorded.
                self.engine.view_done(taken.run, 1);
            }
        }
        let books = self.books.get(taken.run).and_then(Option::as_ref);
        let advanced = books.is_some() && taken.state.iteration == 0;
        let reply = reply(&taken.outcome, advanced);
        self.told(&taken.outcome)?;
        Ok(reply)
    }

    /// Scans what an agent is told, now and then: no prompt is a signal.
    fn told(&mut self, outcome: &Outcome) -> Check {
        for effect in &outcome.effects {
            let (Effect::Block { reason: text } | Effect::Context { text }) = effect else {
                continue;
            };
            self.tally.refusals += u64::from(matches!(effect, Effect::Block { .. }));
            self.texts += 1;
            if self.texts.is_multiple_of(SCANNED_EVERY) {
                self.tally.scanned += 1;
                let found = scan(Rules::builtin(), text.as_bytes(), &From::assistant());
                let signals = found.iter().filter(|finding| finding.signal().is_some()).count();
                hold(signals == 0, "prompts_are_no_signals", || text.clone())?;
            }
        }
        Ok(())
    }

    /// Takes over the run that a state file tells of.
    fn adopt(&mut self, session: usize, delivery: &Delivery) -> Result<Reply, Broken> {
        let project = self.sessions[session].project;
        let Some(text) = self.files[project].news() else { return Ok(Reply::Silence) };
        let Ok(view) = View::parse(&text) else { return Ok(Reply::Silence) };
        let id = &*self.sessions[session].id;
        let ours = view.session().is_none_or(|bound| bound == id);
        if !view.is_active() || !ours {
            return Ok(Reply::Silence);
        }
        if let Some(latest) = self.engine.latest(project)
            && self.engine.is_outdated(project, &text)
        {
            // The view of a run that ended, whose later versions were never written, is no new run.
            let broken = |detail| Broken { invariant: "view_shows_the_state", detail };
            self.files[project].write(&latest.state).map_err(broken)?;
            return Ok(Reply::Allow);
        }
        hold(self.files[project].meddled, "an_adoption_has_a_cause", || {
            format!("project {project}: nobody wrote {text}")
        })?;
        let Ok(state) = view.adopt(&Config::default()) else { return Ok(Reply::Silence) };
        if state.clone().on_event(self.now, &delivery.event).decision.is_none() {
            return Ok(Reply::Silence);
        }
        // Refusals by an earlier run of this turn are not its own.
        self.disturb(project);
        let origin = Rc::new(Origin::Adopt { state: Box::new(state) });
        match self.create(project, &origin, Some(delivery))? {
            Some(taken) => self.perform(project, &taken, false),
            None => Ok(Reply::Silence),
        }
    }

    /// Begins a run; `None` when nobody is left to act on it.
    pub(super) fn create(
        &mut self,
        project: usize,
        origin: &Rc<Origin>,
        delivery: Option<&Delivery>,
    ) -> Result<Option<Taken>, Broken> {
        let run = self.books.len();
        self.books.push(None);
        let crash = self.plan_fault();
        let event = delivery.map(|delivery| &delivery.event);
        let result = self.engine.create(self.now, (run, project), origin, event);
        self.engine.fail_next(None);
        self.note(|_| {
            let went = result.as_ref().map(|taken| taken.state.phase.clone());
            format!("run {run} begins in project {project}: {went:?}")
        });
        let after = match (&result, self.engine.held(run)) {
            (_, Some(after)) => after,
            (Err(Failure::Store), None) => return Ok(None),
            (other, None) => {
                let detail = format!("{other:?}, and nothing is stored");
                return Err(Broken { invariant: "no_effect_before_commit", detail });
            }
        };
        self.mix_step(&after, 20);
        self.tally.runs += 1;
        self.tally.steps += 1;
        let begun = Origin::clone(origin).state(self.now);
        state_holds(&begun)?;
        let entry = |happened| Entry { at: self.now, happened, source: None };
        let mut entries = vec![entry(Happened::Began(Rc::clone(origin)))];
        entries.extend(event.map(|event| entry(Happened::Took(Rc::clone(event)))));
        let mut books = Books::open(project, entries, &begun);
        if let Some(event) = event {
            let outcome = result.as_ref().ok().map(|taken| &taken.outcome);
            let (before, after) = (&begun, &*after.state);
            books.judge(&Seen { now: self.now, before, after, event, outcome })?;
        }
        self.books[run] = Some(books);
        Ok(result.ok().filter(|_| !crash))
    }
}

fn reply(outcome: &Outcome, advanced: bool) -> Reply {
    let said = outcome.effects.iter().find_map(|effect| match effect {
        Effect::Block { .. } => Some(Reply::Block { advanced }),
        Effect::Context { .. } => Some(Reply::Context),
        Effect::Allow | Effect::WriteView => None,
    });
    said.unwrap_or(Reply::Allow)
}

fn describe(
    run: usize,
    delivery: &Delivery,
    result: &Result<Taken, Failure>,
    after: &Held,
) -> String {
    let rule = match result {
        Ok(taken) => match &taken.outcome.decision {
            Some(decision) => format!("{}: {}", decision.rule, decision.summary),
            None => "none of its business".to_owned(),
        },
        Err(failure) => format!("{failure:?}"),
    };
    let State { phase, iteration, session, .. } = &*after.state;
    let (event, revision) = (brief(&delivery.event), after.revision);
    let session = session.as_deref().unwrap_or("nobody");
    format!("run {run} @{revision} of {session} <- {event} => {rule} [{phase} {iteration}]")
}

/// An answer as a number, for the hash.
fn code(outcome: &Outcome) -> u8 {
    match reply(outcome, false) {
        Reply::Silence => 0,
        Reply::Allow => 1 + u8::from(outcome.decision.is_none()),
        Reply::Block { .. } => 3,
        Reply::Context => 4,
    }
}

/// An event in one short line.
fn brief(event: &Event) -> String {
    let signals = |said: &[Said]| {
        let one = |said: &Said| match said {
            Said::Signal(signal) => {
                let when = signal.at.map(|at| format!(" at {at}")).unwrap_or_default();
                let by = signal.agent.as_deref().map(|by| format!(" by {by}")).unwrap_or_default();
                format!("{}{by}{when}", signal.name)
            }
            Said::NearMiss(miss) => format!("almost {}", miss.name),
        };
        said.iter().map(one).collect::<Vec<_>>().join(", ")
    };
    match event {
        Event::Stop(Stop { session, turn, continued, said, hold, tools_ran, .. }) => format!(
            "stop of {session:?} in {turn:?} (continued {continued:?}, tools {tools_ran}, hold \
             {hold:?}) saying [{}]",
            signals(said)
        ),
        Event::SubagentStop { session, agent, said, .. } => {
            format!("sub-agent {agent:?} of {session:?} saying [{}]", signals(said))
        }
        other => format!("{other:?}"),
    }
}
