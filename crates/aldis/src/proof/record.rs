//! What a check prints, as it comes: hashed, counted, and its end kept.

use aldis_machine::proof::{Check, CheckOutput, CheckResult, CheckStatus};
use aldis_machine::run::Exit;
use aldis_signal::redact::redact;
use sha2::{Digest as _, Sha256};

use super::counts::Counter;
use super::{hex, junit};

/// How much of the end of each stream is kept.
const TAIL_MAX: usize = 64 * 1024;
/// How much of it is told.
const TOLD_MAX: usize = 16 * 1024;

/// Takes what one check prints.
#[derive(Debug)]
pub(crate) struct Recorder {
    check: Check,
    out: StreamRecorder,
    err: StreamRecorder,
}

#[derive(Debug, Default)]
struct StreamRecorder {
    hash: Sha256,
    bytes: u64,
    tail: Vec<u8>,
    counter: Counter,
}

impl StreamRecorder {
    fn push(&mut self, bytes: &[u8]) {
        self.hash.update(bytes);
        self.bytes = self.bytes.saturating_add(u64::try_from(bytes.len()).unwrap_or(u64::MAX));
        self.counter.push(bytes);
        self.tail.extend_from_slice(bytes);
        let surplus = self.tail.len().saturating_sub(TAIL_MAX);
        if surplus > TAIL_MAX {
            self.tail.drain(..surplus);
        }
    }
}

impl Recorder {
    /// Records this check.
    pub(crate) fn new(check: Check) -> Self {
        Self { check, out: StreamRecorder::default(), err: StreamRecorder::default() }
    }

    /// Takes what the check wrote to standard output.
    pub(crate) fn stdout(&mut self, bytes: &[u8]) {
        self.out.push(bytes);
    }

    /// Takes what the check wrote to standard error.
    pub(crate) fn stderr(&mut self, bytes: &[u8]) {
        self.err.push(bytes);
    }

    /// What it wrote to standard output, or the end of that.
    pub(crate) fn answer(&self) -> &[u8] {
        &self.out.tail
    }

    /// The check has ended. `report` is its JUnit report, if it writes one.
    pub(crate) fn finish(
        self,
        exit: Exit,
        timed_out: bool,
        took_ms: u64,
        report: Option<&[u8]>,
    ) -> CheckResult {
        let Self { check, out, err } = self;
        let status = match (timed_out, exit.is_clean()) {
            (true, _) => CheckStatus::TimedOut,
            (false, true) => CheckStatus::Passed,
            (false, false) => CheckStatus::Failed,
        };
        let reported = report.and_then(junit::count);
        let tests = reported.or_else(|| match (out.counter.finish(), err.counter.finish()) {
            (Some(one), Some(other)) => Some(one.plus(other)),
            (one, other) => one.or(other),
        });
        let both: Vec<u8> =
            [hex(&out.hash.finalize()), hex(&err.hash.finalize())].concat().into_bytes();
        let tail = [out.tail, err.tail].concat();
        let output = CheckOutput {
            sha256: super::sha256(&both),
            bytes: out.bytes.saturating_add(err.bytes),
            tail: told(&tail),
        };
        let (exit_code, signal) = (exit.code, exit.signal);
        let result = CheckResult::new(&check.name, &check.command, status);
        CheckResult { exit_code, signal, tests, output, took_ms, ..result }
    }

    /// The check could not be started.
    pub(crate) fn not_started(self, what: &str) -> CheckResult {
        let output = CheckOutput { tail: what.to_owned(), ..CheckOutput::default() };
        let Check { name, command, .. } = self.check;
        CheckResult { output, ..CheckResult::new(&name, &command, CheckStatus::NotStarted) }
    }

    /// The file in which the check reports, if it does.
    pub(crate) fn report_file(&self) -> Option<&str> {
        self.check.junit.as_deref()
    }
}

/// The end of what was written, as text without secrets.
fn told(bytes: &[u8]) -> String {
    let end = bytes.get(bytes.len().saturating_sub(TOLD_MAX)..).unwrap_or_default();
    redact(&String::from_utf8_lossy(end)).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_chunks_give_the_same_result() {
        let text = "test a ... ok\ntest result: ok. 3 passed; 0 failed; 1 ignored; 0 measured\n";
        let exit = Exit { code: Some(0), signal: None };
        let of = |size: usize| {
            let mut recorder = Recorder::new(Check::unnamed("cargo test"));
            text.as_bytes().chunks(size).for_each(|chunk| recorder.stdout(chunk));
            recorder.stderr(b"warning: unused\n");
            recorder.finish(exit, false, 5, None)
        };
        let whole = of(text.len());
        assert_eq!(of(1), whole);
        assert_eq!(of(7), whole);
        assert_eq!(whole.tests.unwrap().sentence(), "3 passed, 1 skipped");
        assert_eq!(whole.output.bytes, 89);
        assert!(whole.output.tail.ends_with("warning: unused\n"));
        assert_eq!(whole.output.sha256.len(), 64);
    }

    #[test]
    fn a_flood_stays_small() {
        let mut recorder = Recorder::new(Check::unnamed("yes"));
        let flood = vec![b'y'; 1 << 20];
        (0..8).for_each(|_| recorder.stdout(&flood));
        let exit = Exit { code: None, signal: Some(9) };
        let result = recorder.finish(exit, true, 5, None);
        assert_eq!((result.status, result.output.bytes), (CheckStatus::TimedOut, 8 << 20));
        assert_eq!(result.output.tail.len(), TOLD_MAX);
    }
}
