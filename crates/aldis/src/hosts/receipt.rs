//! Receipts of `aldis signal`: reports that could be written nowhere, printed as a line for the
//! transcript.
//!
//! The reader of a transcript hands the line over only from the result of a call that is `aldis signal`
//! and nothing else. What binds it to the run is its code: a MAC by a key that the agent's environment
//! holds, which a supervisor derives from a secret of the state directory. Without a key, as where a
//! person started the agent, a receipt is worth as much as words of the agent.

use std::fs::{self, OpenOptions};
use std::io::{self, Write as _};
use std::path::Path;

use aldis_engine::CallRecord;
use aldis_machine::calls::Call;
use aldis_signal::signal::{CALL_ID, Via};
use aldis_signal::time::Timestamp;
use aldis_store::RunId;
use aldis_transcript::RECEIPT;
use aldis_transcript::events::ToolAnswer;
use hmac::{Hmac, KeyInit as _, Mac as _};
use serde::{Deserialize, Serialize};
use serde_json::json;
use sha2::Sha256;

use super::ALL;
use crate::settings::secret;

/// The variable that holds the key. Hosts keep variables from their shells that are called keys or
/// tokens.
pub(crate) const VARIABLE: &str = "ALDIS_RECEIPT";
/// The secret of a state directory.
const FILE: &str = "signal.key";
/// What stands in the place of a code where there is no key.
const NO_CODE: &str = "-";

/// What a receipt says.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Receipt {
    /// The id of the report.
    id: String,
    /// The run that the agent was started for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    run: Option<String>,
    /// Its number there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    agent: Option<u64>,
    /// The host's session.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    session: Option<String>,
    /// The host's id of the call that the command ran in.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    call: Option<String>,
    /// What it reports.
    report: Call,
}

/// Whose receipts are looked for.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Owner<'o> {
    pub(crate) run: &'o RunId,
    pub(crate) agent: Option<u64>,
    pub(crate) session: Option<&'o str>,
}

impl Receipt {
    /// A receipt for a report.
    pub(crate) fn new(record: &CallRecord, run: Option<String>, call: Option<String>) -> Self {
        let CallRecord { id, agent, session, call: report, .. } = record.clone();
        Self { id, run, agent, session, call, report }
    }

    /// Returns the line to print.
    pub(crate) fn line(&self, key: Option<&str>) -> Option<String> {
        let body = json!(self).to_string();
        let code = key.map_or_else(|| Some(NO_CODE.to_owned()), |key| code(key, &body))?;
        Some(format!("{RECEIPT}mac={code} {body}"))
    }
}

/// Returns the line that this process prints for a report: with the key and the call that its
/// environment names.
pub(crate) fn of_this_process(record: &CallRecord, run: Option<String>) -> Option<String> {
    let variable = |name: &str| std::env::var(name).ok().filter(|value| !value.is_empty());
    let names = ALL.iter().map(|host| host.spec().calls.variable).filter(|name| !name.is_empty());
    let call = names.into_iter().find_map(variable);
    Receipt::new(record, run, call).line(variable(VARIABLE).as_deref())
}

/// Reads a receipt from the answer to a call, and returns the report of it.
///
/// # Errors
///
/// Why it does not count, as a clause.
pub(crate) fn read(
    answer: &ToolAnswer,
    line: &str,
    now: Timestamp,
    owner: Owner<'_>,
    state_dir: &Path,
) -> Result<CallRecord, &'static str> {
    let unreadable = "it cannot be read";
    let rest = line.strip_prefix(RECEIPT).and_then(|rest| rest.strip_prefix("mac="));
    let (code, body) = rest.and_then(|rest| rest.split_once(' ')).ok_or(unreadable)?;
    let receipt: Receipt = serde_json::from_str(body).map_err(|_| unreadable)?;
    let Receipt { id, run, agent, session, call, report } = receipt;
    if !id.starts_with(CALL_ID) || id.len() > 64 || answer.sidechain {
        return Err("it is not the main agent's");
    }
    let is_ours = match &run {
        Some(run) => run == owner.run.as_str() && agent == owner.agent,
        None => session.is_some() && session.as_deref() == owner.session && agent == owner.agent,
    };
    if !is_ours {
        return Err("it is of another run or session");
    }
    if call.as_deref().is_some_and(|call| !answer.call_id.is_empty() && call != answer.call_id) {
        return Err("it is of another call");
    }
    let via = match code {
        NO_CODE => Via::Said,
        code => {
            let key = key_of(state_dir, owner.run, owner.agent).ok();
            let is_right = key.is_some_and(|key| is_code_of(code, &key, body));
            if is_right { Via::Receipt } else { return Err("its code is wrong") }
        }
    };
    // The host's id is not kept: one command may report twice.
    Ok(CallRecord { id, session, agent, ..record(now, via, report) })
}

fn record(at: Timestamp, via: Via, call: Call) -> CallRecord {
    let (id, session, call_id, agent) = (String::new(), None, None, None);
    CallRecord { id, at, via, session, call_id, agent, subagent: false, call, taken: false }
}

/// Returns the key for the receipts of one agent.
///
/// # Errors
///
/// Fails if the state directory cannot be read, or written the first time.
pub(crate) fn key_of(state_dir: &Path, run: &RunId, agent: Option<u64>) -> io::Result<String> {
    let secret = secret_of(state_dir)?;
    let whose = format!("receipts of {run}/{}", agent.unwrap_or_default());
    code(&secret, &whose).ok_or_else(|| io::Error::other("no code"))
}

/// Reads the secret of a state directory, which is made on the first call.
fn secret_of(state_dir: &Path) -> io::Result<String> {
    let path = state_dir.join(FILE);
    if let Ok(secret) = fs::read_to_string(&path)
        && !secret.trim().is_empty()
    {
        return Ok(secret.trim().to_owned());
    }
    let secret = secret::key().map_err(|error| io::Error::other(error.to_string()))?;
    // Whole or not at all: two processes may come here at once.
    let part = state_dir.join(format!("{FILE}.{}", std::process::id()));
    let mut options = OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    let mut file = options.open(&part)?;
    let written = writeln!(file, "{secret}").and_then(|()| file.sync_all());
    let linked = written.and_then(|()| fs::hard_link(&part, &path));
    fs::remove_file(&part)?;
    match linked {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => Err(error),
        _ => Ok(fs::read_to_string(&path)?.trim().to_owned()),
    }
}

fn mac(key: &str, text: &str) -> Option<Hmac<Sha256>> {
    // A key of any length is taken.
    let mut mac = Hmac::<Sha256>::new_from_slice(key.as_bytes()).ok()?;
    mac.update(text.as_bytes());
    Some(mac)
}

fn code(key: &str, text: &str) -> Option<String> {
    let bytes = mac(key, text)?.finalize().into_bytes();
    Some(bytes.iter().map(|byte| format!("{byte:02x}")).collect())
}

fn is_code_of(code: &str, key: &str, text: &str) -> bool {
    let pairs: Option<Vec<u8>> = (0..code.len())
        .step_by(2)
        .map(|at| u8::from_str_radix(code.get(at..at + 2)?, 16).ok())
        .collect();
    let verified = pairs.zip(mac(key, text)).map(|(bytes, mac)| mac.verify_slice(&bytes).is_ok());
    verified == Some(true)
}

#[cfg(test)]
mod tests {
    //! What binds a receipt to its run.

    use super::*;

    fn answer(call_id: &str) -> ToolAnswer {
        ToolAnswer { call_id: call_id.to_owned(), ..ToolAnswer::default() }
    }

    #[test]
    fn a_receipt_counts_for_its_run_agent_and_call_alone() {
        let state = tempfile::tempdir().unwrap();
        let now = Timestamp::from_millis(1_800_000_000_000);
        let (ours, other) = (RunId::new("run1").unwrap(), RunId::new("run2").unwrap());
        let owner = |run, agent, session| Owner { run, agent, session };
        let key = key_of(state.path(), &ours, None).unwrap();
        assert_eq!(key, key_of(state.path(), &ours, None).unwrap(), "the secret is kept");
        assert_ne!(key, key_of(state.path(), &ours, Some(1)).unwrap());
        let report = Call::EndTurn { channel: "c".to_owned(), turn: None };
        let record = CallRecord {
            session: Some("S1".to_owned()),
            ..CallRecord::new(now, Via::Receipt, report).unwrap()
        };
        let of = |run: Option<&str>| {
            Receipt::new(&record, run.map(str::to_owned), Some("call_1".to_owned()))
        };
        let read = |line: &str, call_id: &str, owner: Owner<'_>| {
            read(&answer(call_id), line, now, owner, state.path()).map(|record| record.via)
        };
        let line = of(Some("run1")).line(Some(&key)).unwrap();
        let mine = owner(&ours, None, Some("S1"));
        assert_eq!(read(&line, "call_1", mine), Ok(Via::Receipt));
        // Where the stream has names of its own for calls, the code must do.
        assert_eq!(read(&line, "", mine), Ok(Via::Receipt));
        for (name, line, call_id, owner) in [
            ("another call", line.clone(), "call_2", mine),
            ("another run", line.clone(), "call_1", owner(&other, None, Some("S1"))),
            ("another agent", line.clone(), "call_1", owner(&ours, Some(1), Some("S1"))),
            ("edited", line.replace("\"c\"", "\"d\""), "call_1", mine),
            ("another key", of(Some("run1")).line(Some("x")).unwrap(), "call_1", mine),
            ("cut", line[..line.len() - 1].to_owned(), "call_1", mine),
        ] {
            assert!(read(&line, call_id, owner).is_err(), "{name}: {line}");
        }
        // Without a key it is words of the agent, of this session.
        let plain = of(None).line(None).unwrap();
        assert_eq!(read(&plain, "call_1", mine), Ok(Via::Said));
        assert!(read(&plain, "call_1", owner(&ours, None, Some("S2"))).is_err());
        assert!(read(&plain, "call_1", owner(&ours, None, None)).is_err());
        let sidechain = ToolAnswer { sidechain: true, ..answer("call_1") };
        assert!(super::read(&sidechain, &plain, now, mine, state.path()).is_err());
    }
}
