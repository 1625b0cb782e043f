//! What takes steps and keeps them: a fast model of the commit protocol, or the real driver.

use std::rc::Rc;

use aldis::engine::driver::Origin;
use aldis_machine::phases::{Event, Outcome, State};
use aldis_signal::time::Timestamp;
use aldis_store::Fault;

/// A run as one process has read it.
#[derive(Clone, Debug)]
pub(super) struct Held {
    pub(super) run: usize,
    pub(super) revision: u64,
    pub(super) state: Rc<State>,
}

/// A step that was taken.
#[derive(Debug)]
pub(super) struct Taken {
    pub(super) run: usize,
    pub(super) revision: u64,
    pub(super) state: Rc<State>,
    pub(super) outcome: Outcome,
}

/// Why a step was not taken, or is not known to be.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Failure {
    /// The store failed: whether the step is there is unknown.
    Store,
    /// The event was delivered before.
    Duplicate,
    /// Anything else, which never happens.
    Broken(String),
}

/// What happened, as the journal has it.
#[derive(Clone, Debug)]
pub(super) enum Happened {
    /// The run began.
    Began(Rc<Origin>),
    /// It took an event.
    Took(Rc<Event>),
}

/// One line of a journal.
#[derive(Clone, Debug)]
pub(super) struct Entry {
    pub(super) at: Timestamp,
    pub(super) happened: Happened,
    pub(super) source: Option<Rc<str>>,
}

/// One event on its way to a run.
#[derive(Clone, Debug)]
pub(super) struct Delivery {
    pub(super) event: Rc<Event>,
    pub(super) source: Option<Rc<str>>,
}

/// The driver's part, as the simulator needs it. Runs and projects go by number.
pub(super) trait Engine {
    /// Returns the live run of this session, else of this project.
    fn live(&self, project: usize, session: Option<&str>) -> Option<Held>;

    /// Returns the latest run of the project, ended or not.
    fn latest(&self, project: usize) -> Option<Held>;

    /// Returns the run as it is stored.
    fn held(&self, run: usize) -> Option<Held>;

    /// Begins the run of this number.
    fn create(
        &mut self,
        now: Timestamp,
        names: (usize, usize),
        origin: &Rc<Origin>,
        event: Option<&Rc<Event>>,
    ) -> Result<Taken, Failure>;

    /// Lets a run take an event, starting from what a process had read.
    fn advance(
        &mut self,
        now: Timestamp,
        held: Held,
        delivery: &Delivery,
    ) -> Result<Taken, Failure>;

    /// Plans how the next commit fails; `None` takes the plan back.
    fn fail_next(&mut self, fault: Option<Fault>);

    /// The process died: whatever it had open is gone.
    fn restart(&mut self);

    /// Records that the view of a step was written.
    fn view_done(&mut self, run: usize, revision: u64);

    /// Returns whether the first view of a run is known to have been written.
    fn was_written(&self, run: usize) -> bool;

    /// Returns whether a text is an earlier view of a run of the project.
    fn is_outdated(&self, project: usize, text: &str) -> bool;

    /// Returns the whole journal of a run.
    fn journal(&self, run: usize) -> Vec<Entry>;
}
