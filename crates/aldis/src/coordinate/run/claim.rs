//! A claim by call is checked at once, while its agent waits for the answer.
//!
//! The claim stays provisional: the run ends by it when the agent has stopped. If the work tree is then
//! as it was when the check began, the result of the check counts; if not, the check runs again.

use std::time::Duration;

use aldis_engine::{CheckOutcome, ClaimCheck};
use aldis_machine::calls::Call;
use aldis_machine::proof::{Acceptance, Check, CheckResult, Inspection, Stage, Verdict};
use aldis_machine::run::{Exit, State, Status, WorkTree};
use aldis_signal::time::Timestamp;

use super::job::Work;
use super::{LAST_GRACE, RunConduct};
use crate::coordinate::checking::RunningCheck;
use crate::coordinate::coordinator::Core;
use crate::coordinate::world::{
    Control, JobId, OutputStream, RepositoryAnswer, RepositoryRequest, Ticket,
};
use crate::error::CommandError;
use crate::telemetry::Tracing;

/// How many lines of a check its caller is shown.
const LINES_MAX: usize = 20;

/// Claims of the agent at work, and their check.
#[derive(Default)]
pub(super) struct Claims {
    /// The calls that were looked at.
    seen: Vec<String>,
    /// How many calls of all kinds there were then: what is written down is not read again and again.
    kept: usize,
    stage: Option<CheckStage>,
    /// What the checks said that the end of the agent may rely on.
    known: Option<KnownChecks>,
    /// The check for which the end of the agent waits until those that run are over.
    wanted: Option<Check>,
    /// Comparisons of pinned files that were asked for here: their answers are for nobody else.
    compares: Vec<Ticket>,
}

/// How far the check of some calls is.
enum CheckStage {
    /// The work tree is inspected.
    Looking {
        calls: Vec<String>,
        ticket: Ticket,
    },
    /// The pinned files are compared.
    Comparing {
        claim: Box<CheckedClaim>,
        ticket: Ticket,
    },
    Running(Box<Running>),
}

struct Running {
    claim: CheckedClaim,
    job: JobId,
    check: RunningCheck,
}

/// Calls, the work tree that they are about, what is seen of its pinned files, and what ended so far.
struct CheckedClaim {
    calls: Vec<String>,
    tree: WorkTree,
    seen: Inspection,
    results: Vec<CheckResult>,
}

/// What checks said about a work tree.
struct KnownChecks {
    fingerprint: String,
    results: Vec<CheckResult>,
}

impl RunConduct<'_> {
    /// Begins to check claims that came by calls.
    pub(super) fn check_claims(&mut self, core: &mut Core<'_, State>) -> Result<(), CommandError> {
        let works = matches!(self.job.as_ref().map(|job| &job.work), Some(Work::Agent(_)));
        let is_working = core.state().status() == &Status::Working;
        if self.claims.stage.is_some() || !works || !is_working {
            return Ok(());
        }
        if std::mem::replace(&mut self.claims.kept, core.run().calls_kept())
            == core.run().calls_kept()
        {
            return Ok(());
        }
        if self.checks(core).is_empty() {
            return Ok(());
        }
        let session = self.session.name();
        let is_claim = |call: &aldis_engine::CallRecord| {
            let foreign = call.session.as_deref().zip(session).is_some_and(|(it, own)| it != own);
            matches!(call.call, Call::Complete { .. }) && !call.subagent && !foreign
        };
        let waiting = core.run().waiting_calls().into_iter().filter(is_claim).map(|call| call.id);
        let new: Vec<String> = waiting.filter(|id| !self.claims.seen.contains(id)).collect();
        if new.is_empty() {
            return Ok(());
        }
        self.claims.seen.extend(new.iter().cloned());
        self.tell(core, &new, CheckOutcome::Running, Default::default())?;
        let directory = self.plan.directory.clone();
        let ticket = core.ask(RepositoryRequest::Look { directory, markers: None });
        self.claims.stage = Some(CheckStage::Looking { calls: new, ticket });
        Ok(())
    }

    /// Takes the answer of the repository, if it is for a claim.
    pub(super) fn claim_answered(
        &mut self,
        core: &mut Core<'_, State>,
        answered: Ticket,
        answer: &RepositoryAnswer,
    ) -> Result<bool, CommandError> {
        match answer {
            RepositoryAnswer::Looked(tree) => self.claim_looked(core, answered, tree),
            RepositoryAnswer::Inspected(seen) => {
                self.claim_compared(core, answered, &seen.inspection)
            }
            _ => Ok(false),
        }
    }

    /// The work tree is known: has the pinned files compared, or says what the work tree lacks.
    fn claim_looked(
        &mut self,
        core: &mut Core<'_, State>,
        answered: Ticket,
        tree: &WorkTree,
    ) -> Result<bool, CommandError> {
        let is_it = |stage: &mut CheckStage| matches!(stage, CheckStage::Looking { ticket, .. } if *ticket == answered);
        let Some(CheckStage::Looking { calls, .. }) = self.claims.stage.take_if(is_it) else {
            return Ok(false);
        };
        let lacking = core.state().lacking_in(tree).join("; ");
        if !lacking.is_empty() {
            let told = (lacking, String::new());
            return self.tell(core, &calls, CheckOutcome::Refused, told).map(|()| true);
        }
        let seen = Inspection::default();
        let claim = CheckedClaim { calls, tree: tree.clone(), seen, results: Vec::new() };
        let config = &core.state().setup().config.proof;
        // A clean checkout has its own files, and is made when the agent has stopped.
        if !config.is_active() || config.clean {
            return self.compared(core, claim).map(|()| true);
        }
        let ticket = self.inspect(core, (Stage::Claim, None, false))?;
        self.claims.compares.push(ticket);
        self.claims.stage = Some(CheckStage::Comparing { claim: Box::new(claim), ticket });
        Ok(true)
    }

    /// The pinned files are compared.
    fn claim_compared(
        &mut self,
        core: &mut Core<'_, State>,
        answered: Ticket,
        seen: &Inspection,
    ) -> Result<bool, CommandError> {
        let Some(at) = self.claims.compares.iter().position(|ticket| *ticket == answered) else {
            return Ok(false);
        };
        self.claims.compares.swap_remove(at);
        let is_it = |stage: &mut CheckStage| matches!(stage, CheckStage::Comparing { ticket, .. } if *ticket == answered);
        if let Some(CheckStage::Comparing { claim, .. }) = self.claims.stage.take_if(is_it) {
            self.compared(core, CheckedClaim { seen: seen.clone(), ..*claim })?;
        }
        Ok(true)
    }

    /// Refuses a claim that its files contradict. The checks decide about any other one.
    fn compared(
        &mut self,
        core: &mut Core<'_, State>,
        claim: CheckedClaim,
    ) -> Result<(), CommandError> {
        match core.state().preview_claim(&claim.tree, &claim.seen, &[]) {
            Some(verdict) if verdict.acceptance == Acceptance::Refused => {
                self.tell(core, &claim.calls, CheckOutcome::Refused, refused(&verdict))
            }
            _ => self.check_next(core, claim),
        }
    }

    /// The checks that decide about a claim, in order.
    fn checks(&self, core: &Core<'_, State>) -> Vec<Check> {
        match &*core.state().setup().config.proof.checks {
            // The run began before checks had names.
            [] => self.plan.verify.iter().map(Check::unnamed).collect(),
            checks => checks.to_vec(),
        }
    }

    /// Starts the next check of a claim, or tells its callers what all of them said.
    fn check_next(
        &mut self,
        core: &mut Core<'_, State>,
        mut claim: CheckedClaim,
    ) -> Result<(), CommandError> {
        let ended = |name: &String| claim.results.iter().any(|result| result.name == *name);
        let left = self.checks(core).into_iter().filter(|check| !ended(&check.name));
        let mut left: Vec<Check> = left.collect();
        let ready = left.iter().position(|check| check.needs.iter().all(ended)).unwrap_or(0);
        if left.is_empty() || claim.results.iter().any(|result| !result.passed()) {
            return self.claim_checked(core, claim);
        }
        let check = left.swap_remove(ready);
        let config = &core.state().setup().config;
        let most = Duration::from_secs(config.proof.timeout.unwrap_or(config.iteration_timeout));
        let (job, run) = (core.new_job(), core.id().clone());
        let (place, variables) =
            (self.plan.directory.clone(), Tracing::of_check(&core.tracing, ""));
        match RunningCheck::start(core.world(), (job, &run, variables), &check, place, most) {
            Ok(check) => {
                let running = Running { claim, job, check };
                self.claims.stage = Some(CheckStage::Running(Box::new(running)));
                Ok(())
            }
            Err(result) => {
                claim.results.push(*result);
                self.claim_checked(core, claim)
            }
        }
    }

    /// Every check of a claim has ended, or one has failed.
    fn claim_checked(
        &mut self,
        core: &mut Core<'_, State>,
        CheckedClaim { calls, tree, seen, results }: CheckedClaim,
    ) -> Result<(), CommandError> {
        let failed = results.iter().find(|result| !result.passed());
        let printed =
            failed.or_else(|| results.last()).map(|result| last_lines(&result.output.tail));
        let printed = printed.unwrap_or_default();
        let verdict = core.state().preview_claim(&tree, &seen, &results);
        let clean = core.state().setup().config.proof.clean;
        let (outcome, told) = match (failed, verdict) {
            (Some(_), _) => (CheckOutcome::Failed, (printed, String::new())),
            (None, Some(verdict)) if verdict.acceptance == Acceptance::Refused => {
                (CheckOutcome::Refused, refused(&verdict))
            }
            (None, Some(verdict)) if verdict.acceptance == Acceptance::Asks => {
                let because = verdict.because();
                let next = format!(
                    "The check passed. End your turn now: a human is then asked, because {because}."
                );
                (CheckOutcome::Passed, (printed, next))
            }
            (None, _) if clean => {
                let next = "The check passed here. End your turn now: the checks then decide about \
                            your last commit.";
                (CheckOutcome::Passed, (printed, next.to_owned()))
            }
            (None, _) => (CheckOutcome::Passed, (printed, String::new())),
        };
        self.tell(core, &calls, outcome, told)?;
        self.claims.known =
            tree.fingerprint.map(|fingerprint| KnownChecks { fingerprint, results });
        match self.claims.wanted.take() {
            Some(check) => self.start_check(core, &check),
            None => Ok(()),
        }
    }

    /// Keeps what the check of a claim writes. Returns whether it was that.
    pub(super) fn claim_output(&mut self, job: JobId, stream: OutputStream, bytes: &[u8]) -> bool {
        let Some(CheckStage::Running(running)) = &mut self.claims.stage else { return false };
        if running.job != job {
            return false;
        }
        running.check.read(stream, bytes);
        true
    }

    /// The check of a claim has ended. Returns whether it was that.
    pub(super) fn claim_over(
        &mut self,
        core: &mut Core<'_, State>,
        job: JobId,
        exit: Exit,
    ) -> Result<bool, CommandError> {
        let is_it =
            |stage: &mut CheckStage| matches!(stage, CheckStage::Running(it) if it.job == job);
        let Some(CheckStage::Running(running)) = self.claims.stage.take_if(is_it) else {
            return Ok(false);
        };
        let Running { mut claim, check, .. } = *running;
        claim.results.push(check.finish(core.now(), exit));
        self.check_next(core, claim).map(|()| true)
    }

    /// Whether what a check says about the agent's last claim is known already, or will be: then it is
    /// not started. What is known counts once, so that a check that is repeated runs.
    pub(super) fn reuse_check(
        &mut self,
        core: &mut Core<'_, State>,
        check: &Check,
    ) -> Result<bool, CommandError> {
        let now = core.state().tree().fingerprint.clone();
        // Not in a clean checkout.
        let here = self.check_place.as_ref().is_none_or(|place| *place == self.plan.directory);
        if let Some(CheckStage::Running(running)) = &self.claims.stage
            && here
            && now.is_some()
            && running.claim.tree.fingerprint == now
        {
            self.claims.wanted = Some(check.clone());
            return Ok(true);
        }
        self.drop_claim_check(core);
        let same = |known: &&mut KnownChecks| here && now.as_ref() == Some(&known.fingerprint);
        let Some(known) = self.claims.known.as_mut().filter(same) else { return Ok(false) };
        let found = known
            .results
            .iter()
            .position(|it| it.name == check.name && it.command == check.command);
        let Some(found) = found else { return Ok(false) };
        let result = known.results.swap_remove(found);
        self.checked(core, result).map(|()| true)
    }

    /// Forgets what is known of claims: another agent begins.
    pub(super) fn forget_claims(&mut self, core: &mut Core<'_, State>) {
        self.drop_claim_check(core);
        let compares = std::mem::take(&mut self.claims.compares);
        self.claims = Claims { compares, ..Claims::default() };
    }

    /// Ends a check that nobody waits for any more.
    fn drop_claim_check(&mut self, core: &mut Core<'_, State>) {
        if let Some(CheckStage::Running(running)) = self.claims.stage.take() {
            core.world().control(running.job, Control::End(Duration::ZERO));
        }
    }

    /// Ends the check of a claim that takes too long.
    pub(super) fn claim_on_time(&mut self, core: &mut Core<'_, State>) -> Result<(), CommandError> {
        let now = core.now();
        if let Some(CheckStage::Running(running)) = &mut self.claims.stage
            && now >= running.check.deadline
        {
            running.check.deadline = now.after(LAST_GRACE);
            running.check.timed_out = true;
            let job = running.job;
            core.world().control(job, Control::End(LAST_GRACE));
        }
        self.check_claims(core)
    }

    /// Until when the check of a claim may take.
    pub(super) fn claim_deadline(&self) -> Option<Timestamp> {
        match &self.claims.stage {
            Some(CheckStage::Running(running)) => Some(running.check.deadline),
            Some(CheckStage::Looking { .. } | CheckStage::Comparing { .. }) | None => None,
        }
    }

    /// Tells the callers how far the check is: with what it printed, and what they do next.
    fn tell(
        &self,
        core: &mut Core<'_, State>,
        calls: &[String],
        outcome: CheckOutcome,
        (output, next): (String, String),
    ) -> Result<(), CommandError> {
        let check = ClaimCheck { calls: calls.to_vec(), outcome, output, next };
        core.set_notes(&[check.note()?])
    }
}

/// Why a claim does not hold, and what its callers do next.
fn refused(verdict: &Verdict) -> (String, String) {
    let next = match verdict.remedies() {
        remedies if remedies.is_empty() => String::new(),
        remedies => format!("{remedies} Then call `complete` again."),
    };
    (verdict.because(), next)
}

/// The end of an output, as its caller is shown it.
fn last_lines(output: &str) -> String {
    let lines: Vec<&str> = output.trim_end().lines().collect();
    lines[lines.len().saturating_sub(LINES_MAX)..].join("\n")
}
