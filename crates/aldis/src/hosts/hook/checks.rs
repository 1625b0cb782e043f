//! The checks of a claim under a Stop hook: they run in a process of their own, because they take longer
//! than a hook may.

use std::env;
use std::ffi::OsString;
use std::io;
use std::path::Path;
use std::time::Duration;

use aldis_engine::EngineError;
use aldis_machine::phases::Effect;
use aldis_process::{Background, LeaseHolder, Liveness};
use aldis_signal::time::Timestamp;
use aldis_store::RunId;
use serde::{Deserialize, Serialize};

use super::live::PhasesRun;
use crate::agents::output_log;

/// The command of the process, which is for nobody else.
pub(crate) const COMMAND: &str = "phase-check";
/// The note that says which process runs the checks.
pub(crate) const CHECKER: &str = "checker";
/// How long it may take until that process has said so.
const START_MAX: Duration = Duration::from_secs(20);

/// The process that runs the checks of a claim.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Checker {
    /// Which start of checks it works on.
    pub(crate) check: u32,
    /// Who it is.
    pub(crate) holder: String,
}

/// Returns why nothing is to be expected any more of the checks that run, as a clause.
pub(crate) fn lost(
    run: &PhasesRun,
    now: Timestamp,
) -> Result<Option<(u32, &'static str)>, EngineError> {
    let Some(claim) = &run.state().checks().claim else { return Ok(None) };
    let known: Option<Checker> = run.note(CHECKER)?;
    let what = match known.filter(|known| known.check == claim.check) {
        Some(known) => {
            let holder = known.holder.parse::<LeaseHolder>();
            let is_gone = holder.is_ok_and(|holder| holder.liveness() == Liveness::Gone);
            is_gone.then_some("the process that ran them is gone")
        }
        None => {
            let is_late = now.since(claim.since) > START_MAX;
            is_late.then_some("the process that runs them did not start")
        }
    };
    Ok(what.map(|what| (claim.check, what)))
}

/// Starts the process that runs the checks, where a step demands it. It outlives the hook.
pub(crate) fn start(
    state_dir: &Path,
    run: &RunId,
    effects: &[Effect],
    transcript: Option<&Path>,
) -> io::Result<()> {
    for effect in effects {
        let Effect::Check { check } = effect else { continue };
        let log = output_log::of_supervisor(state_dir, run)?;
        let mut args: Vec<OsString> =
            ["--color", "never", "--state-dir"].map(OsString::from).into();
        args.push(state_dir.into());
        args.extend([COMMAND, run.as_str(), &check.to_string()].map(OsString::from));
        if let Some(transcript) = transcript {
            args.extend(["--transcript".into(), transcript.into()]);
        }
        let _goes_on = Background::start(&env::current_exe()?, &args, &log)?;
    }
    Ok(())
}
