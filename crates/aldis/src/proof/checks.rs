//! Runs checks for those who have no coordinator: a process of its own for a hook, a command.

use std::fs;
use std::path::Path;
use std::time::Duration;

use aldis_machine::proof::{Check, CheckResult};
use aldis_machine::run::Exit;
use aldis_process::Output;
use aldis_store::RunId;

use super::record::Recorder;
use crate::agents::command::{JobLaunch, Program, StartFailure};
use crate::settings::clock::SteadyClock;

/// How long to wait for output before the time is looked at.
const PAUSE: Duration = Duration::from_millis(50);
/// How long a check that takes too long has to stop.
const GRACE: Duration = Duration::from_secs(1);
/// How much of a JUnit report is read.
const REPORT_MAX: u64 = 32 << 20;

/// Runs a check to its end, with everything it starts, for at most this long.
pub(crate) fn run(run: &RunId, check: &Check, place: &Path, most: Duration) -> CheckResult {
    let mut recorder = Recorder::new(check.clone());
    forget_report(&recorder, place);
    let launch = JobLaunch {
        what: Program::Check(check.command.clone()),
        directory: place.to_owned(),
        variables: Vec::new(),
        run: run.clone(),
        worker: None,
    };
    let AttendedProcess { exit, timed_out, took_ms } = match attend(&launch, &mut recorder, most) {
        Ok(ended) => ended,
        Err(failed) => return recorder.not_started(&failed.what),
    };
    let report = read_report(&recorder, place);
    recorder.finish(exit, timed_out, took_ms, report.as_deref())
}

/// How a process ended.
pub(crate) struct AttendedProcess {
    pub(crate) exit: Exit,
    pub(crate) timed_out: bool,
    pub(crate) took_ms: u64,
}

/// Runs a process to its end, with everything it starts, for at most this long, and records what it
/// prints.
///
/// # Errors
///
/// [`StartFailure`] if it cannot be started.
pub(crate) fn attend(
    launch: &JobLaunch,
    recorder: &mut Recorder,
    most: Duration,
) -> Result<AttendedProcess, StartFailure> {
    let started = launch.start()?;
    let clock = SteadyClock::start();
    let (began, mut exit, mut closed) = (clock.now(), None, false);
    while !(closed && exit.is_some()) && clock.now().since(began) < most {
        match started.agent.next(PAUSE) {
            Some(Output::Stdout(bytes)) => recorder.stdout(&bytes),
            Some(Output::Stderr(bytes)) => recorder.stderr(&bytes),
            Some(Output::Closed) => closed = true,
            Some(Output::Exited(how)) => exit = Some(how),
            Some(Output::Stopped) | None => {}
        }
    }
    let timed_out = exit.is_none();
    let ended = started.agent.end_with(GRACE, |last| match last {
        Output::Stdout(bytes) => recorder.stdout(&bytes),
        Output::Stderr(bytes) => recorder.stderr(&bytes),
        Output::Closed | Output::Exited(_) | Output::Stopped => {}
    });
    let exit = exit.or(ended.exit).map_or(Exit { code: None, signal: None }, |exit| Exit {
        code: exit.code,
        signal: exit.signal,
    });
    let took_ms = u64::try_from(clock.now().since(began).as_millis()).unwrap_or(u64::MAX);
    Ok(AttendedProcess { exit, timed_out, took_ms })
}

/// Removes the report of an earlier run: what a check does not write must not count.
pub(crate) fn forget_report(recorder: &Recorder, place: &Path) {
    if let Some(file) = recorder.report_file() {
        let _gone = fs::remove_file(place.join(file));
    }
}

/// Reads the JUnit report of a check, if it writes one.
pub(crate) fn read_report(recorder: &Recorder, place: &Path) -> Option<Vec<u8>> {
    let file = place.join(recorder.report_file()?);
    let small = fs::metadata(&file).is_ok_and(|it| it.is_file() && it.len() <= REPORT_MAX);
    small.then(|| fs::read(file).ok()).flatten()
}
