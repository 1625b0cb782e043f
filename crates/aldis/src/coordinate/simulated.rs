//! The coordinators of `aldis run` and `aldis deliver` in a world that is not real.
//!
//! Public for the simulator alone: it brings the world, the store and the faults, and plays what
//! people use. Nothing is shown, and what agents write is kept nowhere.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use aldis_engine::{Engine, Handle};
use aldis_machine::{delivery, run};
use aldis_signal::time::Timestamp;
use aldis_signal::{Dialect, Rules};
use aldis_store::{Claim, Store, StoreError};
use aldis_transcript::Input;
use aldis_transcript::events::Zone;

pub use super::delivery::Delivered;
use super::delivery::{DeliveryPlan, deliver_in};
pub use super::plan_box::PlanBox;
use super::run::{RunPlan, supervise_in};
pub use super::worker::admission::SlotEnd;
use super::worker::admission::{Admission, admit, settle};
use super::worker::slot::run_agent;
use super::worker::work;
pub use super::worker::{Offer, SlotEvent, SlotId, Slots};
pub use super::world::{
    Control, Happening, JobId, Leftover, OutputStream, RepositoryAnswer, RepositoryRequest, Ticket,
    World,
};
pub use crate::agents::command::{AgentCommand, JobLaunch, Program, StartFailure};
pub use crate::agents::git::Since;
pub use crate::notify::TerminalNotice;
pub use crate::proof::inspect::{InspectRequest, Inspected};
pub use crate::proof::pins::Pins;
use crate::settings::prompt_by::PromptBy;
use crate::view::live::delivery::DeliveryReporter;
use crate::view::live::run::RunReporter;
use crate::view::live::{Detail, OutputOptions};

/// Where the project is; nobody looks there.
pub const PROJECT: &str = "/simulated/project";
/// A directory in which no file can be made, so that no log is written.
const NOWHERE: &str = "/dev/null";
const MANNER: OutputOptions =
    OutputOptions { color: false, detail: Detail::Quiet, json: false, terminal: false };

fn command(resume: bool) -> AgentCommand {
    let words = |words: &[&str]| words.iter().map(OsString::from).collect();
    AgentCommand {
        command: words(&["agent"]),
        prompt: PromptBy::Stdin,
        pty: false,
        input: Input::Auto,
        resume: resume.then(|| words(&["agent", "--resume", "{session}"])),
    }
}

/// How simulated runs are supervised.
#[derive(Debug)]
pub struct RunStage {
    plan: RunPlan,
    dialect: Arc<Dialect>,
}

impl RunStage {
    /// Agents report in this dialect; `verify` is the check.
    pub fn new(dialect: &Arc<Dialect>, verify: Option<&str>) -> Self {
        let plan = RunPlan {
            host: None,
            command: command(false),
            verify: verify.map(str::to_owned),
            directory: PathBuf::from(PROJECT),
            state: PathBuf::from(NOWHERE),
            rules: Rules::new([Arc::clone(dialect)]),
            zone: Zone::utc(),
            ask_here: true,
        };
        Self { plan, dialect: Arc::clone(dialect) }
    }

    /// Supervises a run until it ends.
    ///
    /// # Errors
    ///
    /// Says why this supervisor left it. The run can be continued.
    pub fn play(
        &self,
        world: &mut dyn World,
        engine: Engine,
        run: Handle<run::State>,
        first: run::Event,
    ) -> Result<run::Ending, String> {
        let live = RunReporter::new(Box::new(io::sink()), MANNER, &self.dialect);
        let supervised = supervise_in(world, engine, run, (&self.plan, live), first);
        supervised.map(|supervised| supervised.ending).map_err(|error| error.to_string())
    }
}

/// How simulated deliveries are coordinated.
#[derive(Debug)]
pub struct DeliveryStage {
    plan: DeliveryPlan,
}

impl DeliveryStage {
    /// `no_wait` coordinators leave instead of waiting for a human; with `resume`, agents go on with
    /// sessions of their hosts.
    pub fn new(no_wait: bool, resume: bool) -> Self {
        let dialect = Dialect::builtin(delivery::DIALECT);
        let plan = DeliveryPlan {
            roles: BTreeMap::new(),
            command: command(resume),
            project: PathBuf::from(PROJECT),
            state: PathBuf::from(NOWHERE),
            rules: Rules::new(dialect.map(Arc::clone)),
            zone: Zone::utc(),
            ask_here: true,
            no_wait,
            limit_wait: Duration::from_secs(60),
            boxes: None,
            shared: None,
            answer: None,
        };
        Self { plan }
    }

    /// Coordinates a delivery until it is over, or waits for a human and may not.
    ///
    /// # Errors
    ///
    /// Says why this coordinator left it. The delivery can be continued.
    pub fn play(
        &self,
        world: &mut dyn World,
        engine: Engine,
        run: Handle<delivery::State>,
        first: delivery::Event,
    ) -> Result<Delivered, String> {
        let board = DeliveryReporter::new(Box::new(io::sink()), MANNER);
        let coordinated = deliver_in(world, engine, run, (&self.plan, board), first);
        coordinated.map(|coordinated| coordinated.delivered).map_err(|error| error.to_string())
    }

    /// Runs an agent that a worker of this name claimed, until its slot is free again, and settles the
    /// claim. `asked` is when it was asked for.
    ///
    /// # Errors
    ///
    /// Says why the agent could not be run to its end. Whatever ran of it has to be ended then.
    pub fn run_claim(
        &self,
        world: &mut dyn World,
        engine: Engine,
        worker: &str,
        (claim, asked): (&Claim, Timestamp),
    ) -> Result<SlotEnd, String> {
        let admitted = admit(&engine, worker, claim, world.now());
        let (dispatch, run) = match admitted.map_err(|error| error.to_string())? {
            Admission::Start(dispatch, run) => (dispatch, *run),
            Admission::End(end) => return Ok(end),
        };
        let board = DeliveryReporter::new(Box::new(io::sink()), MANNER);
        let claim = (engine, claim.clone(), asked);
        let ended = run_agent(world, claim, (dispatch, run), (&self.plan, worker), board);
        ended.map_err(|error| error.to_string())
    }
}

/// Settles a claim as its slot left it.
///
/// # Errors
///
/// Fails if the store does.
pub fn settle_claim(store: &dyn Store, claim: &Claim, end: &SlotEnd) -> Result<(), StoreError> {
    settle(store, claim, end)
}

/// Runs agents in these slots until somebody wants the worker to leave.
///
/// # Errors
///
/// Says why it left before.
pub fn run_worker(store: &dyn Store, slots: &mut dyn Slots, offer: &Offer) -> Result<(), String> {
    work(store, slots, offer).map_err(|error| error.to_string())
}
