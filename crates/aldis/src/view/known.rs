//! A stored run of whatever machine, as people and programs see it.

use std::io;

use aldis_engine::{EngineError, Snapshot, State};
use aldis_machine::stagnation::Level;
use aldis_machine::{delivery, phases, run, turns};
use aldis_process::{LeaseHolder, Liveness};
use aldis_signal::time::Timestamp;
use aldis_store::{Run, Store};
use serde_json::Value;

use crate::io::Io;
use crate::view::paint::Paint;
use crate::view::show;
use crate::view::wire::run::RunForm;
use crate::view::wire::turns::ChannelForm;

/// How a run stands whose coordinator has gone.
const ABANDONED: &str = "unsupervised";

/// A run and its state. Exhaustive: each machine is shown in its own way.
#[derive(Debug)]
pub(crate) enum Known {
    /// A channel in which agents take turns.
    Channel(Run, Box<turns::State>),
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
    /// Fails if this version does not know the form, and if the store does.
    pub(crate) fn of(store: &dyn Store, run: Run) -> Result<Self, EngineError> {
        let loaded = store.load(&run.id)?.ok_or(EngineError::NoSuchRun(run.id))?;
        Self::new(loaded.into())
    }

    /// What a snapshot shows.
    ///
    /// # Errors
    ///
    /// Fails if this version does not know the form.
    pub(crate) fn new(Snapshot { run, state }: Snapshot) -> Result<Self, EngineError> {
        Ok(match state {
            State::Delivery(state) => Self::Delivery(run, state),
            State::Phases(state) => Self::Phases(run, state),
            State::Run(state) => Self::Supervised(run, state),
            State::Turns(state) => Self::Channel(run, state),
            State::Unreadable(detail) => {
                return Err(EngineError::Unreadable { run: run.id, detail });
            }
        })
    }

    /// Returns the stored record.
    pub(crate) fn run(&self) -> &Run {
        match self {
            Self::Channel(run, _)
            | Self::Phases(run, _)
            | Self::Supervised(run, _)
            | Self::Delivery(run, _) => run,
        }
    }

    /// Says in one line how it stands.
    pub(crate) fn standing(&self, paint: Paint) -> String {
        if self.is_abandoned() {
            let command = if matches!(self, Self::Delivery(..)) { "deliver" } else { "run" };
            let text = format!("{ABANDONED}: its process is gone; aldis {command} --continue");
            return paint.warn(text).to_string();
        }
        match self {
            Self::Channel(_, state) => show::channel(state),
            Self::Phases(_, state) => show::standing(paint, state),
            Self::Supervised(_, state) => show::supervised(paint, state),
            Self::Delivery(_, state) => show::delivery(paint, state),
        }
    }

    /// Returns whether it goes on.
    pub(crate) fn is_live(&self) -> bool {
        match self {
            Self::Channel(_, state) => !state.closed,
            Self::Phases(_, state) => state.is_live(),
            Self::Supervised(_, state) => state.ending().is_none(),
            Self::Delivery(_, state) => state.ending().is_none(),
        }
    }

    /// Returns its form for programs.
    pub(crate) fn form(&self) -> Value {
        let Run { id, record, .. } = self.run();
        let form = match self {
            Self::Channel(_, state) => return to_value(&ChannelForm::new(state)),
            Self::Phases(_, state) => RunForm::new(id, &record.project, state),
            Self::Supervised(_, state) => RunForm::supervised(id, &record.project, state),
            Self::Delivery(_, state) => RunForm::delivery(id, &record.project, state),
        };
        let mut form = to_value(&form);
        if self.is_abandoned()
            && let Value::Object(members) = &mut form
        {
            members.insert("status".to_owned(), ABANDONED.into());
        }
        form
    }

    /// Whether the process that coordinates it has gone without ending it.
    pub(crate) fn is_abandoned(&self) -> bool {
        let holder = self.run().lease.as_ref().map(|lease| lease.holder.parse::<LeaseHolder>());
        let gone = matches!(holder, Some(Ok(holder)) if holder.liveness() == Liveness::Gone);
        gone && self.is_live()
    }

    /// Returns the questions that wait for a human: their names, words and times.
    pub(crate) fn questions(&self) -> Vec<(String, String, Timestamp)> {
        match self {
            Self::Channel(..) | Self::Phases(..) => Vec::new(),
            Self::Supervised(_, state) => {
                let asks = state.question().into_iter();
                asks.map(|asks| (asks.id.clone(), asks.text.clone(), asks.asked_at)).collect()
            }
            Self::Delivery(_, state) => {
                let asks = state.run().questions.iter();
                asks.map(|(id, asks)| (id.clone(), asks.text.clone(), asks.asked_at)).collect()
            }
        }
    }

    /// Returns the last sign that the work moves, where one is looked for.
    pub(crate) fn evidence(&self) -> Option<Timestamp> {
        match self {
            Self::Channel(..) => None,
            Self::Phases(_, state) => state.last_activity,
            Self::Supervised(_, state) => Some(state.monitor().last_progress()),
            Self::Delivery(run, _) => Some(run.updated),
        }
    }

    /// Returns how worrying it is that nothing moves, where somebody watches that.
    pub(crate) fn worry(&self) -> Option<Level> {
        match self {
            Self::Supervised(_, state) => Some(state.monitor().level()),
            Self::Channel(..) | Self::Phases(..) | Self::Delivery(..) => None,
        }
    }

    /// Returns how far it has come, in percent.
    pub(crate) fn progress(&self) -> Option<u8> {
        match self {
            Self::Channel(..) | Self::Phases(..) => None,
            Self::Supervised(_, state) => state.shown_progress(),
            Self::Delivery(_, state) => {
                let complete = state.tally().get(&delivery::Status::Complete).copied().unwrap_or(0);
                let percent = (complete * 100).checked_div(state.tasks().len())?;
                u8::try_from(percent).ok()
            }
        }
    }

    /// Shows it in a few lines.
    pub(crate) fn show(&self, io: &mut Io, now: Timestamp) -> io::Result<()> {
        match self {
            Self::Channel(run, state) => show::channel_run(io, now, run, state),
            Self::Phases(run, state) => show::run(io, now, run, state),
            Self::Supervised(run, state) => show::supervised_run(io, now, run, state),
            Self::Delivery(run, state) => show::delivery_run(io, now, run, state),
        }
    }
}

fn to_value<T: serde::Serialize>(form: &T) -> Value {
    serde_json::to_value(form).unwrap_or_default()
}
