//! A check at work, for runs and deliveries.

use std::path::PathBuf;
use std::time::Duration;

use aldis_machine::proof::{Check, CheckResult};
use aldis_machine::run::Exit;
use aldis_signal::time::Timestamp;
use aldis_store::RunId;

use super::world::{JobId, OutputStream, World};
use crate::agents::command::{JobLaunch, Program};
use crate::proof::checks;
use crate::proof::record::Recorder;

/// A check at work.
pub(super) struct RunningCheck {
    recorder: Recorder,
    began: Timestamp,
    place: PathBuf,
    /// When it must have ended.
    pub(super) deadline: Timestamp,
    /// Whether it was ended because it took too long.
    pub(super) timed_out: bool,
}

impl RunningCheck {
    /// Starts a check.
    ///
    /// # Errors
    ///
    /// Returns what came of it if it cannot be started.
    pub(super) fn start(
        world: &mut dyn World,
        (job, run, variables): (JobId, &RunId, Vec<(&'static str, String)>),
        check: &Check,
        place: PathBuf,
        most: Duration,
    ) -> Result<Self, Box<CheckResult>> {
        let recorder = Recorder::new(check.clone());
        checks::forget_report(&recorder, &place);
        let launch = JobLaunch {
            what: Program::Check(check.command.clone()),
            directory: place.clone(),
            variables,
            run: run.clone(),
            worker: None,
        };
        match world.start(job, &launch) {
            Ok(_) => {
                let began = world.now();
                Ok(Self { recorder, began, place, deadline: began.after(most), timed_out: false })
            }
            Err(failed) => Err(Box::new(recorder.not_started(&failed.what))),
        }
    }

    /// Takes what it wrote.
    pub(super) fn read(&mut self, stream: OutputStream, bytes: &[u8]) {
        match stream {
            OutputStream::Stdout => self.recorder.stdout(bytes),
            OutputStream::Stderr => self.recorder.stderr(bytes),
        }
    }

    /// It has ended with everything it started.
    pub(super) fn finish(self, now: Timestamp, exit: Exit) -> CheckResult {
        let Self { recorder, began, place, timed_out, .. } = self;
        let took = u64::try_from(now.since(began).as_millis()).unwrap_or(u64::MAX);
        let report = checks::read_report(&recorder, &place);
        recorder.finish(exit, timed_out, took, report.as_deref())
    }
}
