//! `aldis hook`: what hosts call when an agent wants to stop.
//!
//! A hook must never trap a session. Whatever goes wrong here, the answer is to print nothing and
//! exit with 0, which lets the agent stop, and to record the failure.

mod forward;

use std::env;
use std::ffi::OsStr;
use std::io::{Read, Write as _};
use std::panic::{self, AssertUnwindSafe};
use std::path::{Path, PathBuf};
use std::process;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use aldis_signal::time::Timestamp;
use clap::{Args, ValueEnum as _};

use super::Outcome;
use crate::error::CommandError;
use crate::failures::{self, Failure};
use crate::hosts::hook::call_log::CallRecord;
use crate::hosts::hook::{Hook, HookError};
use crate::hosts::{Answer, Env, HookCall, Host, PAYLOAD_MAX, answer, parse, woken};
use crate::io::Io;
use crate::settings::clock::{self, Stopwatch};
use crate::settings::home;
use crate::settings::project::Place;
use crate::settings::remote::Remote;

/// How long a hook may take. Hosts wait longer, users do not.
const DEADLINE: Duration = Duration::from_secs(2);
/// Gives it more seconds, where machines are slow or very busy.
const DEADLINE_VARIABLE: &str = "ALDIS_HOOK_DEADLINE";
/// More would be longer than some hosts wait.
const DEADLINE_MAX: Duration = Duration::from_secs(30);
/// How long recording a missed deadline may take.
const RECORDING: Duration = Duration::from_millis(300);
/// How much is read at a time.
const PIECE: usize = 64 * 1024;

/// Answer a host's hook
///
/// Reads the event from standard input, as the host sends it, and answers as the host expects.
/// `aldis install` registers this command; there is no need to call it by hand.
#[derive(Debug, Args)]
pub(super) struct HookArgs {
    /// The host it is registered with
    #[arg(value_enum)]
    host: Host,

    /// Wait beside a session that stopped, and wake it when a human sends something
    ///
    /// Prints on standard error what the agent gets, and exits with 2, as hosts want it.
    #[arg(long)]
    wake: bool,
}

impl HookArgs {
    /// Reads the only argument that hooks are registered with.
    pub(super) fn plain(host: &OsStr) -> Option<Self> {
        Some(Self { host: Host::from_str(host.to_str()?, false).ok()?, wake: false })
    }
}

/// Set once the answer is given: from then on being late harms nobody.
static ANSWERED: AtomicBool = AtomicBool::new(false);

pub(super) fn run(io: &mut Io, args: &HookArgs) -> Outcome {
    panic::set_hook(Box::new(|_| {}));
    let state_dir = home::state_directory(io.state_dir.as_deref());
    if args.wake {
        return state_dir.map_or(Outcome::Yes, |state_dir| wait(io, args.host, &state_dir));
    }
    watch(args.host, state_dir.as_ref().ok().cloned());
    // Without one there is no place to say so, and no run to keep.
    let Ok(state_dir) = state_dir else { return Outcome::Yes };
    let mut log = CallRecord::begin(now(), args.host);
    let (began, noted) = (Stopwatch::start(), log.as_mut());
    let result = panic::catch_unwind(AssertUnwindSafe(|| handle(io, args.host, &state_dir, noted)));
    let failure = match result {
        Ok(Ok(())) => None,
        Ok(Err(error)) => Some(error.to_string()),
        Err(_) => Some("internal error: please report this as a bug".to_owned()),
    };
    if let Some(log) = log {
        log.write(&state_dir, began.elapsed(), failure.as_deref());
    }
    if let Some(what) = failure {
        record(&state_dir, &part(args.host), what);
    }
    Outcome::Yes
}

/// Waits beside a session. Whatever goes wrong, the session is left alone.
fn wait(io: &mut Io, registered: Host, state_dir: &Path) -> Outcome {
    let waited = panic::catch_unwind(AssertUnwindSafe(|| {
        let env = Env::of_process();
        if Remote::of_environment()?.is_some() {
            // Nothing is stored here that could be waited for.
            return Ok(None);
        }
        let (call, _) = read_call(io, registered, &env)?;
        hook(&call, &env, state_dir)?.wait()
    }));
    let what = match waited {
        Ok(Ok(Some(text))) => {
            // A host that does not read it any more needs nothing.
            let _written = io.stderr.write_all(&woken(&text)).and_then(|()| io.stderr.flush());
            return Outcome::Code(WAKES);
        }
        Ok(Ok(None)) => return Outcome::Yes,
        Ok(Err(error)) => error.to_string(),
        Err(_) => "internal error: please report this as a bug".to_owned(),
    };
    record(state_dir, &part(registered), format!("wake: {what}"));
    Outcome::Yes
}

/// The exit code that makes a host give the agent what is on standard error.
const WAKES: u8 = 2;

fn read_call(
    io: &mut Io,
    registered: Host,
    env: &Env,
) -> Result<(HookCall, Vec<u8>), CommandError> {
    let payload = read_payload(&mut io.stdin)?;
    let call = parse(registered, &payload, env)
        .map_err(|error| CommandError::new(format!("{}: {error}", error.code())))?;
    Ok((call, payload))
}

fn hook<'c>(call: &'c HookCall, env: &'c Env, state_dir: &Path) -> Result<Hook<'c>, CommandError> {
    let state_dir = state_dir.to_owned();
    let (began, place, now) = (Stopwatch::start(), place(call)?, clock::now()?);
    Ok(Hook { place, now, began, state_dir, call, env, elsewhere: None })
}

/// Notes that the hook was called in a way this version does not understand.
pub(super) fn misused(error: &clap::Error) {
    if let Ok(state_dir) = home::state_directory(None) {
        let text = error.render().to_string();
        record(&state_dir, "hook", format!("usage: {}", text.lines().next().unwrap_or_default()));
    }
}

fn handle(
    io: &mut Io,
    registered: Host,
    state_dir: &Path,
    log: Option<&mut CallRecord>,
) -> Result<(), HookError> {
    let env = Env::of_process();
    let (call, payload) = read_call(io, registered, &env)?;
    let hook = hook(&call, &env, state_dir)?;
    if let Some(remote) = Remote::of_environment()? {
        return forward::forward(io, &remote, (&hook, &payload), log);
    }
    let mut said = None;
    let result = hook.handle(&mut |reply| {
        said = Some(reply.name());
        write(io, &answer(call.answer_host(), &call.event, reply));
    });
    if said.is_none() {
        // Some hosts want an answer even when there is nothing to say.
        write(io, &answer(call.answer_host(), &call.event, &Answer::Allow));
    }
    if let Some(log) = log {
        log.event = Some(call.event.name());
        log.answer = Some(said.unwrap_or_else(|| Answer::Allow.name()));
        log.run = result.as_ref().ok().and_then(|run| Some(run.as_ref()?.as_str().to_owned()));
    }
    result.map(drop)
}

fn write(io: &mut Io, bytes: &[u8]) {
    // A host that does not listen any more has let go already.
    let _written = io.stdout.write_all(bytes).and_then(|()| io.stdout.flush());
    ANSWERED.store(true, Ordering::SeqCst);
}

fn place(call: &HookCall) -> Result<Place, CommandError> {
    let directory = match &call.cwd {
        Some(directory) => directory.clone(),
        None => env::current_dir()
            .map_err(|error| CommandError::new(format!("the current directory: {error}")))?,
    };
    Ok(Place::of(&directory, call.project_dir.as_deref()))
}

/// Reads the payload until its end, or until it is a whole JSON object: some hosts never close
/// their end.
fn read_payload(input: &mut dyn Read) -> Result<Vec<u8>, CommandError> {
    let mut payload = Vec::new();
    let mut piece = vec![0; PIECE];
    loop {
        let count = match input.read(&mut piece) {
            Ok(count) => count,
            Err(error) if error.kind() == std::io::ErrorKind::Interrupted => continue,
            Err(error) => return Err(CommandError::new(format!("standard input: {error}"))),
        };
        payload.extend_from_slice(&piece[..count]);
        if count == 0 || payload.len() > PAYLOAD_MAX || is_whole(&payload) {
            return Ok(payload);
        }
    }
}

fn is_whole(payload: &[u8]) -> bool {
    payload.trim_ascii_end().ends_with(b"}")
        && serde_json::from_slice::<&serde_json::value::RawValue>(
            payload.strip_prefix(b"\xef\xbb\xbf").unwrap_or(payload),
        )
        .is_ok()
}

/// Ends the process when it takes too long: letting the agent stop late is better than never.
fn watch(host: Host, state_dir: Option<PathBuf>) {
    let deadline = deadline(env::var_os(DEADLINE_VARIABLE).as_deref());
    let watching = thread::Builder::new().name("deadline".to_owned()).spawn(move || {
        thread::sleep(deadline);
        if let (Some(directory), false) = (state_dir, ANSWERED.load(Ordering::SeqCst)) {
            let what = format!("deadline: no decision within {} seconds", deadline.as_secs());
            // A disk that does not answer may be why there is no decision: it is not waited for.
            let (sender, receiver) = mpsc::channel();
            let recording = thread::Builder::new().spawn(move || {
                if let Some(log) = CallRecord::begin(now(), host) {
                    log.write(&directory, deadline, Some(&what));
                }
                record(&directory, &part(host), what);
                let _sent = sender.send(());
            });
            let _recorded = recording.map(|_| receiver.recv_timeout(RECORDING));
        }
        leave();
    });
    drop(watching);
}

/// Returns how long this hook may take. What makes no sense changes nothing.
fn deadline(wanted: Option<&OsStr>) -> Duration {
    let seconds = wanted.and_then(OsStr::to_str).and_then(|text| text.parse().ok());
    seconds.map_or(DEADLINE, |seconds| Duration::from_secs(seconds).clamp(DEADLINE, DEADLINE_MAX))
}

#[expect(clippy::exit, reason = "whatever the main thread waits for may never come")]
fn leave() -> ! {
    process::exit(0)
}

fn part(host: Host) -> String {
    format!("hook {host}")
}

fn record(state_dir: &Path, part: &str, what: String) {
    failures::record(state_dir, &Failure { at: now(), part: part.to_owned(), what });
}

fn now() -> Timestamp {
    clock::now().unwrap_or_else(|_| clock::wall())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_deadline_can_be_extended_within_reason() {
        for (wanted, seconds) in
            [(None, 2), (Some("20"), 20), (Some("0"), 2), (Some("3600"), 30), (Some("soon"), 2)]
        {
            let deadline = deadline(wanted.map(OsStr::new));
            assert_eq!(deadline, Duration::from_secs(seconds), "{wanted:?}");
        }
    }
}
