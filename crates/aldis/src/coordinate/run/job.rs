//! The process of a supervised run: the agent, or the check of its claim.

use std::time::Duration;

use aldis_machine::run::{AgentExit, Event, State};
use aldis_signal::redact::redact;
use aldis_store::RunId;

use super::{RunConduct, RunPlan};
use crate::agents::command::{JobLaunch, Program, StartFailure};
use crate::agents::output_log::OutputLog;
use crate::agents::session::Session;
use crate::coordinate::checking::RunningCheck;
use crate::coordinate::conduct::Conduct as _;
use crate::coordinate::coordinator::{Core, heed_others};
use crate::coordinate::world::{Control, JobId};
use crate::error::CommandError;
use crate::hosts::{calls, receipt};
use crate::telemetry::Tracing;

/// How much of a check's or a crashed agent's output is kept.
const OUTPUT_MAX: usize = 64 * 1024;

/// The process at work.
pub(super) struct Job<'p> {
    pub(super) id: JobId,
    pub(super) work: Work<'p>,
    /// The end of what it wrote to standard output, and to standard error.
    pub(super) output: Vec<u8>,
    pub(super) errors: Vec<u8>,
}

impl<'p> Job<'p> {
    pub(super) fn new(id: JobId, work: Work<'p>) -> Self {
        Self { id, work, output: Vec::new(), errors: Vec::new() }
    }
}

pub(super) enum Work<'p> {
    Agent(Box<Session<'p>>),
    Check(Box<RunningCheck>),
}

impl<'p> RunConduct<'p> {
    pub(super) fn start_agent(
        &mut self,
        core: &mut Core<'_, State>,
        prompt: String,
    ) -> Result<(), CommandError> {
        // Somebody may have ended the run since this was decided.
        heed_others(core, self)?;
        // While a run was taken over somebody answered, and both decided to start its agent.
        let is_running = self.job.is_some();
        if is_running || self.is_ending(core) {
            return Ok(());
        }
        let plan = self.plan;
        let log = OutputLog::open(&plan.state, core.id());
        let shown = self.live.shows_words();
        let session = Session::new(&plan.rules, plan.command.input, &plan.zone, shown, log);
        self.hints.clear();
        self.forget_claims(core);
        let command = self.next_command(core)?;
        let program = Program::Agent { command, prompt };
        match self.start(core, program, Work::Agent(Box::new(session))) {
            Ok(agent) => self.advance(core, Event::Launched { agent }),
            Err(StartFailure { what }) => {
                self.live.problem(core.now(), &what);
                self.advance(core, Event::LaunchFailed { what })
            }
        }
    }

    /// Starts a process. Returns its identity.
    fn start(
        &mut self,
        core: &mut Core<'_, State>,
        what: Program,
        work: Work<'p>,
    ) -> Result<String, StartFailure> {
        let (id, directory) = (core.new_job(), self.plan.directory.clone());
        let run = core.id().clone();
        let mut variables = match what {
            Program::Agent { .. } => self.plan.variables(&run),
            Program::Check(_) | Program::Judge { .. } => Vec::new(),
        };
        variables.extend(core.tracing.as_mut().map(Tracing::launch));
        let launch = JobLaunch { what, directory, variables, run, worker: None };
        let identity = core.world().start(id, &launch)?;
        self.job = Some(Job::new(id, work));
        self.deadline = None;
        Ok(identity)
    }

    /// Asks the process to stop.
    pub(super) fn end_agent(
        &mut self,
        core: &mut Core<'_, State>,
        grace: u64,
    ) -> Result<(), CommandError> {
        let Some(job) = &self.job else {
            // It has ended before, and nobody will report that again.
            return self.advance(core, Event::Exited(AgentExit::default()));
        };
        core.world().control(job.id, Control::Interrupt);
        self.deadline = Some(core.now().after(Duration::from_secs(grace)));
        Ok(())
    }

    pub(super) fn control(&self, core: &mut Core<'_, State>, control: Control) {
        if let Some(job) = &self.job {
            core.world().control(job.id, control);
        }
    }
}

impl RunPlan {
    /// What tells the agent which run it works for.
    fn variables(&self, run: &RunId) -> Vec<(&'static str, String)> {
        // Without a key its receipts are worth less, and it works all the same.
        let key = receipt::key_of(&self.state, run, None).ok();
        let run = [(calls::RUN, run.to_string())];
        run.into_iter().chain(key.map(|key| (receipt::VARIABLE, key))).collect()
    }
}

/// Keeps the end of what a process writes.
pub(super) fn keep_end(kept: &mut Vec<u8>, bytes: &[u8]) {
    kept.extend_from_slice(bytes);
    let surplus = kept.len().saturating_sub(OUTPUT_MAX);
    if surplus > OUTPUT_MAX {
        kept.drain(..surplus);
    }
}

/// The end of an output as text, without secrets.
pub(super) fn text_of(bytes: &[u8]) -> String {
    let end = bytes.get(bytes.len().saturating_sub(OUTPUT_MAX)..).unwrap_or_default();
    redact(&String::from_utf8_lossy(end)).into_owned()
}
