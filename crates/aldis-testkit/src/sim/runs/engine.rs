//! What keeps a run: its journal, its outbox, and what each process knows of it.

use aldis_machine::Decision;
use aldis_machine::run::{Effect, Event, Start, State};
use aldis_signal::time::Timestamp;
use aldis_store::Fault;

/// Why a step was not taken, or is not known to be.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Failure {
    /// The store failed: whether the step is there is unknown.
    Store,
    /// Anything else, which never happens.
    Broken(String),
}

/// One effect that waits to be performed.
#[derive(Clone, Debug)]
pub(super) struct Due {
    pub(super) key: String,
    pub(super) effect: Effect,
}

/// A journal: how the run began, what happened, what was decided.
#[derive(Debug)]
pub(super) struct Journal {
    pub(super) began: (Timestamp, Start),
    pub(super) events: Vec<(Timestamp, Event)>,
    pub(super) decisions: Vec<Decision>,
}

/// The latest run of a world.
pub(super) trait Engine {
    /// Begins another run.
    fn create(&mut self, now: Timestamp, start: Start) -> Result<(), Failure>;

    /// A supervisor starts: it reads the run and forgets what another was about to do.
    fn take_over(&mut self) -> Result<(), Failure>;

    /// The supervisor has died, and what it knew with it.
    fn lose(&mut self);

    /// What the supervisor knows. Only while there is one.
    fn known(&self) -> &State;

    /// What is stored.
    fn stored(&self) -> State;

    /// The supervisor takes an event.
    fn advance(&mut self, now: Timestamp, event: Event) -> Result<(), Failure>;

    /// The supervisor looks what others have decided.
    fn refresh(&mut self, now: Timestamp) -> Result<(), Failure>;

    /// Another process takes an event. Returns whether that changed anything.
    fn intrude(&mut self, now: Timestamp, event: Event) -> Result<bool, Failure>;

    /// The first effect that was not performed yet.
    fn due(&self) -> Option<Due>;

    /// It was performed.
    fn performed(&mut self, key: &str);

    /// Plans how the next commit fails; `None` takes the plan back.
    fn fail_next(&mut self, fault: Option<Fault>);

    /// The journal of the run.
    fn journal(&self) -> Option<Journal>;
}
