//! Counts tests in what common runners print.
//!
//! Each runner has lines of its own: a summary that is taken as it is, or a line for each test. Where
//! a check has several summaries they are added up. Whoever can write the output can write such
//! lines, too: counts are evidence, not proof.

use std::sync::LazyLock;

use aldis_machine::proof::TestCounts;
use console::strip_ansi_codes;
use regex::{Captures, Regex};
use serde::Deserialize;

/// How much of a line is looked at.
const LINE_MAX: usize = 8 * 1024;

/// Takes output in chunks and counts the tests in it.
#[derive(Debug, Default)]
pub(super) struct Counter {
    line: Vec<u8>,
    found: CountsByRunner,
}

/// What was found, by runner.
#[derive(Debug, Default)]
struct CountsByRunner {
    /// Of summaries: cargo, nextest, pytest, jest, vitest, mocha, node, unittest.
    summaries: Option<TestCounts>,
    /// `go test -v` and `go test -json`, test by test.
    go_tests: Option<TestCounts>,
    /// `go test`, package by package.
    go_packages: Option<TestCounts>,
    /// How many tests unittest ran: its next line says what became of them.
    ran: Option<u64>,
}

impl Counter {
    pub(super) fn push(&mut self, bytes: &[u8]) {
        for piece in bytes.split_inclusive(|byte| *byte == b'\n') {
            let room = LINE_MAX.saturating_sub(self.line.len());
            self.line.extend_from_slice(&piece[..piece.len().min(room)]);
            if piece.ends_with(b"\n") {
                self.end_line();
            }
        }
    }

    pub(super) fn finish(mut self) -> Option<TestCounts> {
        self.end_line();
        let CountsByRunner { summaries, go_tests, go_packages, .. } = self.found;
        let go = go_tests.or(go_packages);
        match (summaries, go) {
            (Some(one), Some(other)) => Some(one.plus(other)),
            (one, other) => one.or(other),
        }
    }

    fn end_line(&mut self) {
        let line = std::mem::take(&mut self.line);
        // Every line of a runner has a digit or belongs to go.
        let line = String::from_utf8_lossy(&line);
        let line = strip_ansi_codes(&line);
        self.found.take(line.trim_end());
    }
}

impl CountsByRunner {
    fn take(&mut self, line: &str) {
        if line.is_empty() {
            return;
        }
        if let Some(counts) = self.summary(line) {
            self.summaries = Some(self.summaries.unwrap_or_default().plus(counts));
        } else if let Some(counts) = go_test(line) {
            self.go_tests = Some(self.go_tests.unwrap_or_default().plus(counts));
        } else if let Some(counts) = go_package(line) {
            self.go_packages = Some(self.go_packages.unwrap_or_default().plus(counts));
        }
    }

    fn summary(&mut self, line: &str) -> Option<TestCounts> {
        let bare = line.trim();
        cargo(bare)
            .or_else(|| nextest(bare))
            .or_else(|| javascript(bare))
            .or_else(|| pytest(bare))
            .or_else(|| one_by_one(bare))
            .or_else(|| self.unittest(bare))
    }

    /// `Ran 12 tests in 0.1s`, and below it `OK (skipped=1)` or `FAILED (failures=1, errors=1)`.
    fn unittest(&mut self, line: &str) -> Option<TestCounts> {
        if let Some(rest) = line.strip_prefix("Ran ")
            && rest.contains(" test")
        {
            self.ran = rest.split(' ').next()?.parse().ok();
            return None;
        }
        let rest = line.strip_prefix("OK").or_else(|| line.strip_prefix("FAILED"))?;
        let ran = self.ran.filter(|_| rest.is_empty() || rest.starts_with(" ("))?;
        self.ran = None;
        let of = |name: &str| -> u64 {
            let at = rest.find(name).map(|at| at + name.len());
            let digits = at.and_then(|at| rest.get(at..)).unwrap_or_default();
            let end = digits.find(|it: char| !it.is_ascii_digit()).unwrap_or(digits.len());
            digits[..end].parse().unwrap_or(0)
        };
        let failed = of("failures=").saturating_add(of("errors="));
        let skipped = of("skipped=").saturating_add(of("expected failures="));
        let passed = ran.saturating_sub(failed).saturating_sub(skipped);
        Some(TestCounts { passed, failed, skipped })
    }
}

/// Compiles a pattern of ours once.
macro_rules! pattern {
    ($name:ident = $pattern:literal) => {
        static $name: LazyLock<Option<Regex>> = LazyLock::new(|| Regex::new($pattern).ok());
    };
}

pattern! { CARGO = r"^test result: \S+ (\d+) passed; (\d+) failed; (\d+) ignored;" }
pattern! { NEXTEST = r"^Summary \[.*\] +(?:\d+/)?\d+ tests? run: (.*)$" }
pattern! { JAVASCRIPT = r"^Tests:? +(\d+ \w+(?:[,| ]+\d+ \w+)*)[ ,|]*(?:\(\d+\))?$" }
pattern! { PYTEST = r"^=* ?((?:\d+ [a-z]+(?:, )?)+) in [0-9.]+s\b.*$" }
pattern! { PART = r"(\d+) ([a-z]+)" }
pattern! { ONE = r"^(?:# |ℹ )?(pass|fail|skipped|todo|cancelled) (\d+)$" }
pattern! { MOCHA = r"^(\d+) (passing|failing|pending)(?: \(.*\))?$" }
pattern! { GO_TEST = r"^\s*--- (PASS|FAIL|SKIP): \S+ \(" }

fn captured<'l>(pattern: &LazyLock<Option<Regex>>, line: &'l str) -> Option<Captures<'l>> {
    pattern.as_ref()?.captures(line)
}

fn number(captures: &Captures<'_>, group: usize) -> u64 {
    captures.get(group).and_then(|it| it.as_str().parse().ok()).unwrap_or(0)
}

/// `test result: ok. 3 passed; 0 failed; 1 ignored; 0 measured; 0 filtered out`
fn cargo(line: &str) -> Option<TestCounts> {
    let found = captured(&CARGO, line)?;
    let (passed, failed) = (number(&found, 1), number(&found, 2));
    Some(TestCounts { passed, failed, skipped: number(&found, 3) })
}

/// `Summary [   0.2s] 12 tests run: 10 passed (1 slow), 2 failed, 3 skipped`
fn nextest(line: &str) -> Option<TestCounts> {
    listed(captured(&NEXTEST, line)?.get(1)?.as_str())
}

/// `Tests:  1 failed, 12 passed, 13 total` of jest, `Tests  1 failed | 12 passed (13)` of vitest.
fn javascript(line: &str) -> Option<TestCounts> {
    listed(captured(&JAVASCRIPT, line)?.get(1)?.as_str())
}

/// `=== 2 failed, 10 passed, 1 skipped in 0.12s ===`
fn pytest(line: &str) -> Option<TestCounts> {
    listed(captured(&PYTEST, line)?.get(1)?.as_str())
}

/// Numbers with what they count. What is left out of a run on purpose counts as skipped.
fn listed(list: &str) -> Option<TestCounts> {
    let mut counts = TestCounts::default();
    let mut known = false;
    for part in PART.as_ref()?.captures_iter(list) {
        let count = number(&part, 1);
        known |= match part.get(2).map(|it| it.as_str())? {
            "passed" | "xpassed" | "leaky" => add(&mut counts.passed, count),
            "failed" | "error" | "errors" => add(&mut counts.failed, count),
            "skipped" | "pending" | "todo" | "deselected" | "xfailed" | "ignored" => {
                add(&mut counts.skipped, count)
            }
            _ => false,
        };
    }
    known.then_some(counts)
}

fn add(sum: &mut u64, count: u64) -> bool {
    *sum = sum.saturating_add(count);
    true
}

/// `# pass 3` of node, `12 passing (30ms)` of mocha.
fn one_by_one(line: &str) -> Option<TestCounts> {
    let (what, count) = match captured(&ONE, line) {
        Some(found) => (found.get(1)?.as_str().to_owned(), number(&found, 2)),
        None => {
            let found = captured(&MOCHA, line)?;
            (found.get(2)?.as_str().to_owned(), number(&found, 1))
        }
    };
    let mut counts = TestCounts::default();
    let sum = match &*what {
        "pass" | "passing" => &mut counts.passed,
        "fail" | "failing" | "cancelled" => &mut counts.failed,
        _ => &mut counts.skipped,
    };
    *sum = count;
    Some(counts)
}

/// One line of `go test -json`.
#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct GoLine {
    action: String,
    #[serde(default)]
    test: Option<String>,
}

/// `--- PASS: TestX (0.00s)`, or the same as JSON.
fn go_test(line: &str) -> Option<TestCounts> {
    let outcome = if line.starts_with('{') {
        let line: GoLine = serde_json::from_str(line).ok()?;
        line.test.map(|_| line.action)?
    } else {
        captured(&GO_TEST, line)?.get(1)?.as_str().to_ascii_lowercase()
    };
    one(&outcome)
}

/// `ok  example.com/x 0.1s`, `FAIL example.com/x 0.1s`, `?  example.com/x [no test files]`
fn go_package(line: &str) -> Option<TestCounts> {
    let (outcome, package) = line.split_once('\t')?;
    let package = package.trim();
    let is_package = !package.is_empty() && !package.starts_with(' ');
    match outcome.trim_end() {
        "ok" if is_package => one("pass"),
        "FAIL" if is_package => one("fail"),
        "?" if package.ends_with("[no test files]") => one("skip"),
        _ => None,
    }
}

fn one(outcome: &str) -> Option<TestCounts> {
    let (passed, failed, skipped) = match outcome {
        "pass" => (1, 0, 0),
        "fail" => (0, 1, 0),
        "skip" => (0, 0, 1),
        _ => return None,
    };
    Some(TestCounts { passed, failed, skipped })
}

#[cfg(test)]
mod tests {
    //! What the runners print.

    use super::*;

    fn count(output: &str) -> Option<(u64, u64, u64)> {
        let mut counter = Counter::default();
        counter.push(output.as_bytes());
        counter.finish().map(|it| (it.passed, it.failed, it.skipped))
    }

    #[test]
    fn common_runners_are_understood() {
        for (output, want) in [
            (
                "test result: ok. 3 passed; 0 failed; 1 ignored; 0 measured; 0 filtered out\n\
                 test result: FAILED. 2 passed; 1 failed; 0 ignored; 0 measured; 2 filtered out\n",
                (5, 1, 1),
            ),
            (
                "     Summary [   0.167s] 12 tests run: 12 passed (1 slow), 361 skipped\n",
                (12, 0, 361),
            ),
            ("     Summary [   1.2s] 5/9 tests run: 4 passed, 1 failed, 0 skipped", (4, 1, 0)),
            ("==== 2 failed, 10 passed, 1 skipped, 1 error in 0.12s ====", (10, 3, 1)),
            ("10 passed in 0.05s", (10, 0, 0)),
            ("= 1 passed, 2 xfailed, 3 deselected, 1 warning in 61.20s (0:01:01) =", (1, 0, 5)),
            ("Tests:       1 failed, 1 skipped, 12 passed, 14 total", (12, 1, 1)),
            ("Test Suites: 2 passed, 2 total\nTests:       4 passed, 4 total", (4, 0, 0)),
            ("      Tests  1 failed | 12 passed | 1 skipped (14)", (12, 1, 1)),
            (" Test Files  2 passed (2)\n      Tests  4 passed (4)", (4, 0, 0)),
            ("\x1b[1mTests:\x1b[22m       \x1b[32m4 passed\x1b[39m, 4 total", (4, 0, 0)),
            ("  12 passing (30ms)\n  1 pending\n  2 failing", (12, 2, 1)),
            ("# tests 3\n# pass 2\n# fail 1\n# skipped 0", (2, 1, 0)),
            ("Ran 12 tests in 0.001s\n\nOK (skipped=1)", (11, 0, 1)),
            ("Ran 1 test in 0.001s\n\nOK", (1, 0, 0)),
            ("Ran 9 tests in 0.1s\n\nFAILED (failures=1, errors=2, skipped=1)", (5, 3, 1)),
            (
                "=== RUN   TestA\n--- PASS: TestA (0.00s)\n    --- SKIP: TestA/b (0.00s)\nPASS\nok  \tx.org/a\t0.1s",
                (1, 0, 1),
            ),
            (
                "ok  \tx.org/a\t0.1s\nFAIL\tx.org/b\t0.1s\n?   \tx.org/c\t[no test files]\nFAIL",
                (1, 1, 1),
            ),
            (
                "{\"Action\":\"run\",\"Test\":\"A\"}\n{\"Action\":\"pass\",\"Test\":\"A\"}\n\
                 {\"Action\":\"fail\",\"Test\":\"B\"}\n{\"Action\":\"fail\",\"Package\":\"p\"}\n",
                (1, 1, 0),
            ),
        ] {
            assert_eq!(count(output), Some(want), "{output}");
        }
    }

    #[test]
    fn other_output_has_no_tests() {
        for output in [
            "",
            "all good\n",
            "OK\n",
            "FAILED (failures=1)",
            "3 files passed review in 2 days",
            "test result: unknown",
            "{\"Action\":\"pass\"}",
            "ok then",
            "Tests are run elsewhere",
        ] {
            assert_eq!(count(output), None, "{output}");
        }
    }
}
