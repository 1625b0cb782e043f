//! A stored run of whatever machine, as people and programs see it.

use std::io;

use aldis_core::machine::{delivery, phases, run};
use aldis_core::time::Timestamp;
use aldis_store::{Run, Store};

use crate::delivering::book::{self, Book};
use crate::driver::{self, DriverError, Loaded};
use crate::io::Io;
use crate::journal::Open;
use crate::paint::Paint;
use crate::show;
use crate::stored::Machine as _;
use crate::wire::run::RunForm;

/// A run and its state. Exhaustive: each machine is shown in its own way.
#[derive(Debug)]
pub(crate) enum Known {
    /// Phases under a Stop hook.
    Phases(Run, Box<phases::State>),
    /// A supervised agent.
    Supervised(Run, Box<run::State>),
    /// A plan that is delivered.
    Delivery(Run, Box<delivery::State>),
}

impl Known {
    /// Reads what is stored about a run.
    ///
    /// # Errors
    ///
    /// Fails if this version does not know the form.
    pub(crate) fn of(store: &dyn Store, run: Run) -> Result<Self, DriverError> {
        if run.record.machine == book::NAME {
            let book = Book::load(store, &run.id)?;
            return Ok(Self::Delivery(run, Box::new(book.state)));
        }
        if run.record.machine == run::State::NAME {
            let open = Open::<run::State>::load(run.clone())?;
            return Ok(Self::Supervised(run, Box::new(open.state)));
        }
        let Loaded { run, state } = driver::load(run)?;
        Ok(Self::Phases(run, Box::new(state)))
    }

    /// Returns the stored record.
    pub(crate) fn run(&self) -> &Run {
        match self {
            Self::Phases(run, _) | Self::Supervised(run, _) | Self::Delivery(run, _) => run,
        }
    }

    /// Says in one line how it stands.
    pub(crate) fn standing(&self, paint: Paint) -> String {
        match self {
            Self::Phases(_, state) => show::standing(paint, state),
            Self::Supervised(_, state) => show::supervised(paint, state),
            Self::Delivery(_, state) => show::delivery(paint, state),
        }
    }

    /// Returns whether it goes on.
    pub(crate) fn is_live(&self) -> bool {
        match self {
            Self::Phases(_, state) => state.is_live(),
            Self::Supervised(_, state) => state.is_active(),
            Self::Delivery(_, state) => state.ending().is_none(),
        }
    }

    /// Returns its form for programs.
    pub(crate) fn form(&self) -> RunForm {
        let Run { id, record, .. } = self.run();
        match self {
            Self::Phases(_, state) => RunForm::new(id, &record.project, state),
            Self::Supervised(_, state) => RunForm::supervised(id, &record.project, state),
            Self::Delivery(_, state) => RunForm::delivery(id, &record.project, state),
        }
    }

    /// Shows it in a few lines.
    pub(crate) fn show(&self, io: &mut Io, now: Timestamp) -> io::Result<()> {
        match self {
            Self::Phases(run, state) => show::run(io, now, run, state),
            Self::Supervised(run, state) => show::supervised_run(io, now, run, state),
            Self::Delivery(run, state) => show::delivery_run(io, now, run, state),
        }
    }
}
