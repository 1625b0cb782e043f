//! What the check of a claim says to its caller: whoever supervises the run checks a claim by call at
//! once, and the call waits for that, but not for ever.

use std::time::Duration;

use aldis_engine::{CheckOutcome, ClaimCheck, Engine, EngineError};
use aldis_store::RunId;

use super::answer::{CallReply, RefusalRule};
use crate::settings::clock::Stopwatch;
use crate::view::wire::call::CheckForm;

/// How long a call waits for the check.
const PATIENCE: Duration = Duration::from_secs(90);
/// How long it waits until somebody begins to check: nobody may supervise the run.
const BEGIN: Duration = Duration::from_secs(3);
/// How long it waits for the next change of the store.
const STEP: Duration = Duration::from_millis(500);

/// Waits for the check of a claim, and answers with what it said.
pub(super) fn with_check(
    engine: &Engine,
    run: &RunId,
    reply: CallReply,
) -> Result<CallReply, EngineError> {
    let Some(id) = reply.id.clone() else { return Ok(reply) };
    let watch = Stopwatch::start();
    let mut begun = false;
    loop {
        let stamp = engine.store().change()?;
        let check = engine.claim_check(run)?.filter(|check| check.calls.contains(&id));
        match check {
            Some(check) if check.outcome != CheckOutcome::Running => {
                return Ok(told(reply, &check));
            }
            Some(_) => begun = true,
            None => {}
        }
        let most = if begun { PATIENCE } else { BEGIN };
        if watch.elapsed() >= most {
            return Ok(if begun { still_running(reply) } else { reply });
        }
        engine.store().wait_for_change(&stamp, STEP)?;
    }
}

/// Returns the check of the latest claim, as callers see it.
pub(crate) fn form(check: &ClaimCheck) -> CheckForm {
    let status = match check.outcome {
        CheckOutcome::Passed => "passed",
        CheckOutcome::Failed => "failed",
        CheckOutcome::Refused => "refused",
        CheckOutcome::Running => "running",
    };
    CheckForm { status: status.to_owned(), output: check.output.clone() }
}

fn told(reply: CallReply, check: &ClaimCheck) -> CallReply {
    let refused = |rule: RefusalRule, reason: String, next: &str| CallReply {
        accepted: false,
        rule: Some(rule.as_str().to_owned()),
        reason: Some(reason),
        next: next.to_owned(),
        ..reply.clone()
    };
    let next = |usual: &str| match &*check.next {
        "" => usual.to_owned(),
        next => next.to_owned(),
    };
    let told = match check.outcome {
        CheckOutcome::Passed => CallReply {
            next: next("The check passed. End your turn now: the run then ends."),
            ..reply.clone()
        },
        CheckOutcome::Failed => refused(
            RefusalRule::CheckFailed,
            "the check failed".to_owned(),
            "fix what the check shows, then call `complete` again",
        ),
        CheckOutcome::Refused => refused(
            RefusalRule::ClaimRefused,
            check.output.clone(),
            &next("put that right, then call `complete` again"),
        ),
        CheckOutcome::Running => return still_running(reply),
    };
    CallReply { check: Some(form(check)), ..told }
}

fn still_running(reply: CallReply) -> CallReply {
    let running = CheckForm { status: "running".to_owned(), output: String::new() };
    let next = "Checking, ask status: the check still runs. End your turn, and its result decides; \
                or call `status` later.";
    CallReply { check: Some(running), next: next.to_owned(), ..reply }
}
