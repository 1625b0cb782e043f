//! A hook on a machine that keeps no runs: what happened is sent to the server that does, and its answer
//! is passed on. Nobody waits for it longer than for a hook of this machine.

use std::time::Duration;

use super::{Answer, CallRecord, DEADLINE, HookError, deadline, part, record, write};
use crate::error::CommandError;
use crate::hosts::answer;
use crate::hosts::hook::Hook;
use crate::hosts::hook::shipped::{HookForm, HookReply, PAYLOAD_SENT_MAX, concerns_runs};
use crate::io::Io;
use crate::settings::remote::{Remote, spool};

/// Where calls are sent.
const PATH: &str = "/v1/hooks";
/// How long the server may take, and how much of that what waits already may take first.
const BUDGET: Duration = Duration::from_millis(300);
const FIRST: Duration = Duration::from_millis(100);
/// How long what waits may take once the answer is given.
const AFTERWARDS: Duration = Duration::from_secs(5);

/// Has the server decide. Whatever goes wrong, the agent may stop, and the server hears of it later.
pub(super) fn forward(
    io: &mut Io,
    remote: &Remote,
    (hook, payload): (&Hook<'_>, &[u8]),
    log: Option<&mut CallRecord>,
) -> Result<(), HookError> {
    let call = hook.call;
    let allowed = answer(call.answer_host(), &call.event, &Answer::Allow);
    let mut said = Answer::Allow.name();
    let sent = match concerns_runs(call) {
        true => send(remote, hook, payload),
        false => Ok(None),
    };
    let result = match sent {
        Ok(Some(reply)) => {
            said = FORWARDED;
            write(io, reply.output.as_bytes());
            deliver(remote, hook, AFTERWARDS);
            Ok(reply.run)
        }
        Ok(None) => {
            write(io, &allowed);
            Ok(None)
        }
        Err(error) => {
            write(io, &allowed);
            Err(error)
        }
    };
    if let Some(log) = log {
        log.event = Some(call.event.name());
        log.answer = Some(said);
        log.run = result.as_ref().ok().cloned().flatten();
    }
    result.map(drop).map_err(HookError::from)
}

/// What is logged of an answer that the server gave.
const FORWARDED: &str = "forwarded";

/// Sends a call; what may be taken later waits.
fn send(
    remote: &Remote,
    hook: &Hook<'_>,
    payload: &[u8],
) -> Result<Option<HookReply>, CommandError> {
    let payload = String::from_utf8_lossy(payload);
    if payload.len() > PAYLOAD_SENT_MAX {
        return Err(CommandError::new(format!(
            "the payload is longer than {PAYLOAD_SENT_MAX} bytes, and was not sent to {remote}"
        )));
    }
    let name = spool::name(hook.now)?;
    let form = HookForm::of(hook, &payload, name.clone());
    let body = serde_json::to_value(&form)?;
    let budget = budget();
    if spool::count(&hook.state_dir) > 0 {
        deliver(remote, hook, budget.mul_f64(FIRST.as_secs_f64() / BUDGET.as_secs_f64()));
    }
    let error = match remote.post::<HookReply>(PATH, &body, budget) {
        Ok(reply) => return Ok(Some(reply)),
        Err(error) => error,
    };
    if !error.passes() {
        return Err(CommandError::new(error.to_string()));
    }
    match spool::put(&hook.state_dir, remote, (PATH, &body), &name) {
        Ok(0) => {}
        Ok(lost) => {
            let what = format!("{lost} older events for {remote} were given up: too many wait");
            record(&hook.state_dir, &part(hook.call.host), what);
        }
        Err(why) => {
            return Err(CommandError::new(format!("{error}; and it cannot wait here: {why}")));
        }
    }
    Err(CommandError::new(format!("{error}; it is delivered later")))
}

/// Delivers what waits, and says what the server does not want.
fn deliver(remote: &Remote, hook: &Hook<'_>, patience: Duration) {
    for what in spool::deliver(&hook.state_dir, remote, patience) {
        let what = format!("what waited was given up: {what}");
        record(&hook.state_dir, &part(hook.call.host), what);
    }
}

/// How long the server may take: more where the hook was given more.
fn budget() -> Duration {
    let deadline = deadline(std::env::var_os(super::DEADLINE_VARIABLE).as_deref());
    if deadline > DEADLINE { deadline / 2 } else { BUDGET }
}
