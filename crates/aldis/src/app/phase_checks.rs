//! Has claims under a Stop hook checked: what `auto start` does before the work, and what a process of
//! its own does when an agent reports that it is done.

use std::path::{Path, PathBuf};
use std::process;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use aldis_engine::{Engine, EngineError, Handle, note};
use aldis_machine::phases::{CheckedClaim, Event, State};
use aldis_machine::proof::{Acceptance, Claim, Config, Proof, Step};
use aldis_process::LeaseHolder;
use aldis_store::{PartChange, RunId, Store};

use crate::agents::git::Git;
use crate::coordinate::judge::{self, JudgeSubject};
use crate::error::CommandError;
use crate::hosts::hook::checks::{CHECKER, Checker};
use crate::hosts::hook::{fresh_token, live};
use crate::hosts::state_file;
use crate::proof::checks;
use crate::proof::clean::CleanPlace;
use crate::proof::inspect::{InspectRequest, inspect};
use crate::proof::pins::{PINS, Pins};
use crate::receipts;
use crate::settings::clock;

/// How long a check may take that has no limit of its own.
const CHECK_MAX: Duration = Duration::from_secs(30 * 60);
/// How often is looked whether anybody still wants the verdict.
const LOOK: Duration = Duration::from_secs(1);
/// How long git may take for a receipt.
const RECEIPT_PATIENCE: Duration = Duration::from_secs(10);

/// Where checks run, and for which run.
pub(crate) struct CheckPlace {
    pub(crate) run: RunId,
    /// The project.
    pub(crate) project: PathBuf,
    /// The state directory.
    pub(crate) state: PathBuf,
}

/// What a judge is asked about.
#[derive(Default)]
struct ClaimUnderCheck<'a> {
    task: &'a str,
    /// What is claimed, as a clause.
    clause: String,
    transcript: Option<&'a Path>,
}

impl CheckPlace {
    /// Goes through a round of checks to its end. `pins` is what was pinned before, and what is pinned
    /// from now on.
    fn perform(
        &self,
        config: &Config,
        (proof, first): (&mut Proof, Step),
        pins: &mut Option<Pins>,
        claimed: &ClaimUnderCheck<'_>,
    ) -> Result<(), CommandError> {
        let clean = CleanPlace { directory: self.state.join("checks").join(self.run.as_str()) };
        let most = config.timeout.map_or(CHECK_MAX, Duration::from_secs);
        let mut place = self.project.clone();
        let mut step = Some(first);
        while let Some(next) = step.take() {
            step = match next {
                Step::Inspect { stage, commit, keep } => {
                    let request = InspectRequest {
                        directory: self.project.clone(),
                        config: config.clone(),
                        stage,
                        commit,
                        keep,
                        pins: pins.clone(),
                    };
                    let seen = inspect(&request, None, &clean);
                    place = seen.place;
                    *pins = seen.pins.or_else(|| pins.take());
                    proof.on_inspected(config, &seen.inspection)
                }
                Step::Run { check, .. } => {
                    let result = checks::run(&self.run, &check, &place, most);
                    proof.on_result(config, &result)
                }
                Step::Ask => {
                    let command = config.judge.clone().unwrap_or_default();
                    let ClaimUnderCheck { task, clause, transcript } = claimed;
                    let transcripts = transcript.iter().map(|it| it.to_path_buf()).collect();
                    let subject = JudgeSubject { task, claim: clause.clone(), proof, transcripts };
                    let opinion = judge::ask(&command, (&self.run, &place), &subject);
                    proof.on_opinion(config, &opinion)
                }
                Step::Judged(_) => None,
            };
        }
        clean.remove(&self.project);
        Ok(())
    }

    /// Pins the files of the checks before the work begins, and runs the checks where that is wanted.
    /// Returns what is known then, and the note that keeps the pins.
    ///
    /// # Errors
    ///
    /// Fails if the checks prove nothing and that is not wanted, or the files cannot be inspected.
    pub(crate) fn begin(&self, config: &Config) -> Result<(Proof, Vec<PartChange>), CommandError> {
        let (mut proof, mut pins) = (Proof::default(), None);
        let first = proof.begin_start(config, self.look().and_then(|claim| claim.commit));
        self.perform(config, (&mut proof, first), &mut pins, &ClaimUnderCheck::default())?;
        let verdict = proof.start().and_then(|round| round.verdict.as_ref());
        if let Some(verdict) = verdict.filter(|it| it.acceptance == Acceptance::Refused) {
            return Err(CommandError::new(verdict.because())
                .with_help("write a check that fails until the work is done, or leave out `--red-first=strict`"));
        }
        let notes = pins.map(|pins| note(PINS, &pins)).transpose()?;
        Ok((proof, notes.into_iter().collect()))
    }

    /// How the repository stands, if there is one.
    fn look(&self) -> Option<Claim> {
        let tree = Git::around(&self.project)?.look(None).ok()?;
        Some(Claim { commit: tree.head, dirty: tree.dirty, ..Claim::default() })
    }
}

/// Runs the checks of a claim, and lets the run take what they said. Nothing happens if nobody wants to
/// know any more. A second opinion reads the transcript, too.
///
/// # Errors
///
/// Fails if the store does.
pub(crate) fn check(
    engine: &Engine,
    state: &Path,
    id: &RunId,
    (check, transcript): (u32, Option<&Path>),
) -> Result<(), CommandError> {
    let mut run: Handle<State> = engine.open(id)?;
    if !is_wanted(&run, check) {
        return Ok(());
    }
    let holder = LeaseHolder::me().to_string();
    run.set_notes(engine, clock::now()?, vec![note(CHECKER, &Checker { check, holder })?])?;
    let reported = Arc::new(AtomicBool::new(false));
    watch(engine.shared_store(), id.clone(), check, Arc::clone(&reported));
    let place = CheckPlace {
        run: id.clone(),
        project: PathBuf::from(run.project()),
        state: state.to_owned(),
    };
    let config = run.state().config().proof.clone();
    let mut proof = run.state().checks().proof.clone();
    let mut pins: Option<Pins> = run.note(PINS)?;
    let base = proof.start().and_then(|round| round.claim.commit.clone());
    let claim = Claim { base, ..place.look().unwrap_or_default() };
    let first = proof.begin_claim(&config, claim);
    let clause = run.state().checks().claim.as_ref().map(CheckedClaim::clause).unwrap_or_default();
    let claimed = ClaimUnderCheck { task: run.state().task(), clause, transcript };
    place.perform(&config, (&mut proof, first), &mut pins, &claimed)?;
    let notes = pins.map(|pins| note(PINS, &pins)).transpose()?;
    reported.store(true, Ordering::SeqCst);
    report(engine, (state, id, check), proof, notes.as_slice())
}

/// Lets the run take what the checks said.
fn report(
    engine: &Engine,
    (state, id, check): (&Path, &RunId, u32),
    proof: Proof,
    notes: &[PartChange],
) -> Result<(), CommandError> {
    let mut run: Handle<State> = engine.open(id)?;
    let turn = live::turn(engine.store(), run.project())?;
    let now = clock::now()?;
    run.refresh(engine, now)?;
    let fresh_token = fresh_token(run.state().config().token)?;
    let event = Event::Checked { check, proof: Box::new(proof), fresh_token };
    run.advance_together(engine, now, vec![event], notes)?;
    drop(turn);
    receipts::settle_or_record(engine.store(), state, id, (now, RECEIPT_PATIENCE));
    if let Err(why) = state_file::refresh(engine, now, &mut run) {
        tracing::warn!(run = %id, why, "the state file was not written");
    }
    Ok(())
}

fn is_wanted(run: &Handle<State>, check: u32) -> bool {
    run.state().checks().claim.as_ref().is_some_and(|claim| claim.check == check)
}

/// Ends this process, and with it the check, once nobody wants the verdict any more.
fn watch(store: Arc<dyn Store>, id: RunId, check: u32, reported: Arc<AtomicBool>) {
    let _thread = thread::spawn(move || {
        let engine = Engine::new(store);
        while !reported.load(Ordering::SeqCst) {
            thread::sleep(LOOK);
            let wanted = match engine.open::<State>(&id) {
                Ok(run) => is_wanted(&run, check),
                Err(EngineError::NoSuchRun(_)) => false,
                // Whatever is wrong with the store shows when the verdict is written.
                Err(_) => true,
            };
            // A verdict that was taken is not wanted any more either.
            if !wanted && !reported.load(Ordering::SeqCst) {
                leave();
            }
        }
    });
}

#[expect(clippy::exit, reason = "the main thread waits for a check that nobody wants any more")]
fn leave() -> ! {
    process::exit(0)
}
