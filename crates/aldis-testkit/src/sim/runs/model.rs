//! The commit protocol over plain values, for speed, and for planting bugs.

use aldis_machine::Decision;
use aldis_machine::run::{Effect, Ending, Event, Outcome, Start, State, Status, Usage};
use aldis_signal::time::Timestamp;
use aldis_store::{Fault, When};

use super::engine::{Due, Engine, Failure, Journal};

/// Events that wait for the next step; as the journal has it.
const PENDING_MAX: usize = 256;

/// Mistakes that somebody could make in the machine, the journal or the supervisor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RunBug {
    /// A limit of the service uses up an iteration.
    CountsLimits,
    /// Waiting counts as work.
    CountsWaits,
    /// Time in which nobody supervised counts as work.
    CountsAbsence,
    /// A run that was out of time and then claims to be done is done.
    ForgivesTimeouts,
    /// Success on the last allowed iteration is none.
    LosesTheLastIteration,
    /// What a lost agent spent is forgotten.
    LosesCosts,
    /// A claim is believed without the check.
    SkipsTheCheck,
    /// What a dead supervisor was about to do is done by the next one, too.
    StartsTwice,
    /// What events mean after somebody else's step is not performed.
    LosesEffects,
    /// Events that decide nothing are not written.
    LosesEvents,
    /// An iteration has no time limit.
    WaitsForEver,
}

impl RunBug {
    /// All of them.
    pub const ALL: [Self; 11] = [
        Self::CountsLimits,
        Self::CountsWaits,
        Self::CountsAbsence,
        Self::ForgivesTimeouts,
        Self::LosesTheLastIteration,
        Self::LosesCosts,
        Self::SkipsTheCheck,
        Self::StartsTwice,
        Self::LosesEffects,
        Self::LosesEvents,
        Self::WaitsForEver,
    ];
}

/// What one process knows.
#[derive(Clone, Debug)]
struct Open {
    revision: u64,
    state: State,
    pending: Vec<(Timestamp, Event)>,
}

/// What is stored.
#[derive(Debug)]
struct Kept {
    revision: u64,
    state: State,
    journal: Journal,
    outbox: Vec<(Due, bool)>,
}

/// The model.
pub(super) struct Model {
    bug: Option<RunBug>,
    kept: Option<Kept>,
    supervisor: Option<Open>,
    fault: Option<Fault>,
}

impl Model {
    pub(super) fn new(bug: Option<RunBug>) -> Self {
        Self { bug, kept: None, supervisor: None, fault: None }
    }

    fn kept(&self) -> &Kept {
        match &self.kept {
            Some(kept) => kept,
            None => unreachable!("no run was begun"),
        }
    }

    fn open(&self) -> Open {
        let kept = self.kept();
        Open { revision: kept.revision, state: kept.state.clone(), pending: Vec::new() }
    }

    /// Lets a process take an event, as `journal::Open::advance` does.
    fn take(&mut self, open: &mut Open, now: Timestamp, event: Event) -> Result<bool, Failure> {
        let outcome = take(self.bug, &mut open.state, now, &event);
        remember(&mut open.pending, now, event);
        let nothing = outcome.decision.is_none() && outcome.effects.is_empty();
        if nothing && open.pending.len() < PENDING_MAX {
            return Ok(false);
        }
        self.write(open, outcome.effects, outcome.decision.into_iter().collect())
    }

    fn write(
        &mut self,
        open: &mut Open,
        mut effects: Vec<Effect>,
        mut decisions: Vec<Decision>,
    ) -> Result<bool, Failure> {
        let mut fault = self.fault.take();
        if fault.is_some_and(|fault| fault.when == When::Before) {
            return Err(Failure::Store);
        }
        if open.revision != self.kept().revision {
            // The step that is refused is the one that would have failed.
            fault = None;
            (effects, decisions) = self.catch_up(open);
        }
        let loses = self.bug == Some(RunBug::LosesEvents);
        let Some(kept) = &mut self.kept else { unreachable!("no run was begun") };
        kept.revision += 1;
        kept.state.clone_from(&open.state);
        let last = open.pending.len().saturating_sub(1);
        let events = open.pending.drain(..).enumerate();
        let events = events.filter(|(place, _)| !loses || *place == last);
        kept.journal.events.extend(events.map(|(_, event)| event));
        kept.journal.decisions.extend(decisions);
        for (number, effect) in effects.into_iter().enumerate() {
            let key = format!("{}/{number}", kept.revision);
            kept.outbox.push((Due { key, effect }, false));
        }
        open.revision = kept.revision;
        if fault.is_some() { Err(Failure::Store) } else { Ok(true) }
    }

    fn catch_up(&self, open: &mut Open) -> (Vec<Effect>, Vec<Decision>) {
        let pending = std::mem::take(&mut open.pending);
        *open = Open { pending, ..self.open() };
        let (mut effects, mut decisions) = (Vec::new(), Vec::new());
        for (at, event) in &open.pending {
            let outcome = take(self.bug, &mut open.state, *at, event);
            effects.extend(outcome.effects);
            decisions.extend(outcome.decision);
        }
        (effects, decisions)
    }

    fn supervised(
        &mut self,
        act: impl FnOnce(&mut Self, &mut Open) -> Result<(), Failure>,
    ) -> Result<(), Failure> {
        let Some(mut open) = self.supervisor.take() else {
            return Err(Failure::Broken("nobody supervises".to_owned()));
        };
        let result = act(self, &mut open);
        self.supervisor = Some(open);
        result
    }
}

/// As the journal does: of a run of the same kind the first and the last stay.
fn remember(pending: &mut Vec<(Timestamp, Event)>, now: Timestamp, event: Event) {
    let kind = std::mem::discriminant(&event);
    let same =
        pending.iter().rev().take(2).filter(|(_, last)| std::mem::discriminant(last) == kind);
    if same.count() == 2 && matches!(event, Event::Tick | Event::Worked | Event::Spent(_)) {
        pending.pop();
    }
    pending.push((now, event));
}

/// The machine, with the bug in it.
fn take(bug: Option<RunBug>, state: &mut State, now: Timestamp, event: &Event) -> Outcome {
    let before = bug.map(|_| state.clone());
    let mut outcome = state.on_event(now, event);
    let Some((bug, before)) = bug.zip(before) else { return outcome };
    match bug {
        RunBug::CountsLimits => {
            let waits = |state: &State| matches!(state.status, Status::Limited { .. });
            if !waits(&before) && waits(state) {
                state.iteration += 1;
            }
        }
        RunBug::CountsWaits => state.waited = 0,
        RunBug::CountsAbsence if *event == Event::Recovered => state.waited = before.waited,
        RunBug::ForgivesTimeouts => {
            let late = Status::Ending { with: Some(Ending::TimedOut) };
            if before.status == late && state.claimed_at.is_some() && state.ending().is_some() {
                state.status = Status::Ended { ending: Ending::Done };
            }
        }
        RunBug::LosesTheLastIteration
            if state.ending() == Some(Ending::Done)
                && state.iteration >= state.config.max_iterations =>
        {
            state.status = Status::Ended { ending: Ending::IterationsUsedUp };
        }
        RunBug::LosesCosts if *event == Event::Recovered => {
            (state.spent, state.spending) = (before.spent, Usage::default());
        }
        RunBug::SkipsTheCheck if state.status == Status::Checking => {
            state.status = Status::Ended { ending: Ending::Done };
            outcome.effects = vec![Effect::Finish { ending: Ending::Done }];
        }
        RunBug::WaitsForEver => {
            let late = matches!(state.status, Status::Ending { .. });
            if *event == Event::Tick && before.status == Status::Working && late {
                *state = before;
                outcome = Outcome { effects: Vec::new(), decision: None };
            }
        }
        _ => {}
    }
    outcome
}

impl Engine for Model {
    fn create(&mut self, now: Timestamp, start: Start) -> Result<(), Failure> {
        let state = State::start(now, start.clone());
        let began = (now, start);
        let journal = Journal { began, events: Vec::new(), decisions: Vec::new() };
        self.kept = Some(Kept { revision: 1, state, journal, outbox: Vec::new() });
        self.supervisor = None;
        Ok(())
    }

    fn take_over(&mut self) -> Result<(), Failure> {
        let twice = self.bug == Some(RunBug::StartsTwice);
        if let Some(kept) = &mut self.kept {
            for (due, done) in &mut kept.outbox {
                let for_people = matches!(
                    due.effect,
                    Effect::Ask { .. }
                        | Effect::KeepWork
                        | Effect::Notice { .. }
                        | Effect::Finish { .. }
                );
                *done |= !for_people && !twice;
            }
        }
        self.supervisor = Some(self.open());
        Ok(())
    }

    fn lose(&mut self) {
        self.supervisor = None;
    }

    fn known(&self) -> &State {
        match &self.supervisor {
            Some(open) => &open.state,
            None => unreachable!("nobody supervises"),
        }
    }

    fn stored(&self) -> State {
        self.kept().state.clone()
    }

    fn advance(&mut self, now: Timestamp, event: Event) -> Result<(), Failure> {
        self.supervised(|model, open| model.take(open, now, event).map(drop))
    }

    fn refresh(&mut self, _: Timestamp) -> Result<(), Failure> {
        self.supervised(|model, open| {
            if open.revision == model.kept().revision {
                return Ok(());
            }
            let (effects, decisions) = model.catch_up(open);
            let nothing = effects.is_empty() && decisions.is_empty();
            if nothing || model.bug == Some(RunBug::LosesEffects) {
                return Ok(());
            }
            model.write(open, effects, decisions).map(drop)
        })
    }

    fn intrude(&mut self, now: Timestamp, event: Event) -> Result<bool, Failure> {
        let mut open = self.open();
        self.take(&mut open, now, event)
    }

    fn due(&self) -> Option<Due> {
        let outbox = self.kept().outbox.iter();
        outbox.filter(|(_, done)| !done).map(|(due, _)| due.clone()).next()
    }

    fn performed(&mut self, key: &str) {
        let outbox = self.kept.as_mut().map(|kept| &mut kept.outbox);
        if let Some((_, done)) =
            outbox.and_then(|all| all.iter_mut().find(|(due, _)| due.key == key))
        {
            *done = true;
        }
    }

    fn fail_next(&mut self, fault: Option<Fault>) {
        self.fault = fault;
    }

    fn journal(&self) -> Option<Journal> {
        let Journal { began, events, decisions } = &self.kept.as_ref()?.journal;
        let (began, events, decisions) = (began.clone(), events.clone(), decisions.clone());
        Some(Journal { began, events, decisions })
    }
}
