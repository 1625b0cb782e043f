//! A check at work, or a judge, for runs and deliveries.

use std::path::{Path, PathBuf};
use std::time::Duration;

use aldis_machine::proof::{Check, CheckResult, Opinion};
use aldis_machine::run::Exit;
use aldis_signal::time::Timestamp;
use aldis_store::RunId;

use super::judge::{self, JudgeSubject};
use super::world::{JobId, OutputStream, World};
use crate::agents::command::{JobLaunch, Program, StartFailure};
use crate::proof::checks;
use crate::proof::record::Recorder;

/// A check at work, or a judge.
pub(super) struct RunningCheck {
    recorder: Recorder,
    /// Whether it is a judge.
    pub(super) judges: bool,
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
            directory: place,
            variables,
            run: run.clone(),
            worker: None,
        };
        Self::begin(world, (job, &launch, most), recorder)
            .map_err(|begun| Box::new(begun.0.not_started(&begun.1.what)))
    }

    /// Asks for a second opinion.
    ///
    /// # Errors
    ///
    /// Returns what counts instead if nobody can be asked.
    pub(super) fn ask(
        world: &mut dyn World,
        (job, run): (JobId, &RunId),
        (command, place): (&str, &Path),
        subject: &JudgeSubject<'_>,
    ) -> Result<Self, Opinion> {
        let recorder = Recorder::new(Check::unnamed(command));
        let begun = match judge::launch(command, (run, place), subject) {
            Ok(launch) => Self::begin(world, (job, &launch, judge::JUDGE_MAX), recorder),
            Err(failed) => Err(Box::new((recorder, failed))),
        };
        begun.map_err(|failed| {
            let (recorder, failed) = *failed;
            judge::opinion(recorder, |it| it.not_started(&failed.what))
        })
    }

    fn begin(
        world: &mut dyn World,
        (job, launch, most): (JobId, &JobLaunch, Duration),
        recorder: Recorder,
    ) -> Result<Self, Box<(Recorder, StartFailure)>> {
        match world.start(job, launch) {
            Ok(_) => {
                let (began, place) = (world.now(), launch.directory.clone());
                let deadline = began.after(most);
                let judges = matches!(launch.what, Program::Judge { .. });
                Ok(Self { recorder, judges, began, place, deadline, timed_out: false })
            }
            Err(failed) => Err(Box::new((recorder, failed))),
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
        let took = self.took(now);
        let report = checks::read_report(&self.recorder, &self.place);
        self.recorder.finish(exit, self.timed_out, took, report.as_deref())
    }

    /// The judge has ended with everything it started.
    pub(super) fn opinion(self, now: Timestamp, exit: Exit) -> Opinion {
        let took = self.took(now);
        judge::opinion(self.recorder, |it| it.finish(exit, self.timed_out, took, None))
    }

    fn took(&self, now: Timestamp) -> u64 {
        u64::try_from(now.since(self.began).as_millis()).unwrap_or(u64::MAX)
    }
}
