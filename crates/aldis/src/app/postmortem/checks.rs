//! Which commands test, build or lint, and whether they passed.
//!
//! The exit code decides where it is the check's own. Where a pipe or a list hides it, the summary
//! that test runners print at their end does, and where there is none, nothing is known.

use std::sync::LazyLock;

use aldis_transcript::activity::{ToolEnd, ToolUse};
use regex::RegexSet;

use crate::proof::shell::{Joint, Simple, split};

/// What a command says about the work.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct CheckRun {
    /// What kind of check it is: `npm test`. A later run of the same kind takes its place.
    pub(super) kind: String,
    pub(super) passed: bool,
    /// Its exit code, unless something hides it.
    pub(super) exit: Option<i64>,
}

/// Returns the checks that a command ran and of which it is known how they ended.
pub(super) fn checks(tool: &ToolUse) -> Vec<CheckRun> {
    if !matches!(tool.end, ToolEnd::Done | ToolEnd::Failed) {
        return Vec::new();
    }
    let commands = flat(&tool.what, 0);
    let has_pipefail = tool.what.contains("pipefail");
    let mut found = Vec::new();
    for (at, simple) in commands.iter().enumerate() {
        let Some(kind) = kind(&simple.words) else { continue };
        let rest = commands.get(at..).unwrap_or_default();
        let before = at.checked_sub(1).and_then(|before| commands.get(before));
        let is_skipped = before.is_some_and(|before| before.next == Joint::Or);
        let known = if is_skipped { None } else { own_end(rest, tool.end, has_pipefail) };
        let Some(passed) = known.or_else(|| summary(&tool.output)) else { continue };
        // Without a code a host that reports no error means 0.
        let exit = known.and(tool.exit);
        found.push(CheckRun { kind, passed, exit });
    }
    found
}

/// Returns whether the first of these commands passed, if the end of the last one says so.
fn own_end(commands: &[Simple], end: ToolEnd, has_pipefail: bool) -> Option<bool> {
    let passed = end == ToolEnd::Done;
    let mut is_own = true;
    for simple in commands {
        match simple.next {
            Joint::End => return (passed || is_own).then_some(passed),
            Joint::Pipe if has_pipefail => {}
            Joint::And => is_own = false,
            Joint::Or | Joint::Pipe | Joint::Then => return None,
        }
    }
    None
}

/// Returns the simple commands of a line, those that are given to another shell too.
fn flat(line: &str, depth: usize) -> Vec<Simple> {
    let mut all = Vec::new();
    for simple in split(line) {
        let words = bare(&simple.words);
        let inner = match words {
            [shell, flags, line, ..] if base(shell).ends_with("sh") && is_command_flag(flags) => {
                flat(line, depth + 1)
            }
            _ => Vec::new(),
        };
        if inner.is_empty() || depth > DEPTH_MAX {
            all.push(Simple { words: words.to_vec(), next: simple.next });
            continue;
        }
        all.extend(inner);
        if let Some(last) = all.last_mut() {
            last.next = simple.next;
        }
    }
    all
}

fn is_command_flag(flags: &str) -> bool {
    flags.starts_with('-') && !flags.starts_with("--") && flags.contains('c')
}

/// Leaves out what only says how a command is run: variables, time limits, package runners.
fn bare(words: &[String]) -> &[String] {
    let mut words = words;
    loop {
        let [first, rest @ ..] = words else { return words };
        let name = first.split_once('=').map(|(name, _)| name);
        let is_variable = name.is_some_and(|name| {
            !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
        });
        let runner = RUNNERS.iter().find(|(runner, _)| {
            let mut parts = runner.split(' ');
            parts.next() == Some(base(first))
                && parts.next().is_none_or(|second| rest.first().is_some_and(|it| it == second))
        });
        let arguments = runner.map(|(runner, skipped)| (runner.contains(' '), *skipped));
        words = match arguments {
            _ if is_variable => rest,
            Some((has_second, count)) => {
                let rest = rest.get(usize::from(has_second)..).unwrap_or_default();
                let options = rest.iter().take_while(|word| word.starts_with('-')).count();
                rest.get(options + count..).unwrap_or_default()
            }
            None => return words,
        };
    }
}

/// Returns what kind of check a command is, if it is one.
fn kind(words: &[String]) -> Option<String> {
    let [program, rest @ ..] = words else { return None };
    let program = base(program);
    let known = TABLE.iter().find(|(name, _)| *name == program);
    let Some((_, verbs)) = known else {
        let stem = program.split('.').find(|part| !part.is_empty()).unwrap_or(program);
        // A project's own script is called by its path.
        let is_script = words.first().is_some_and(|word| word.contains('/'));
        return (is_script && is_verb(SCRIPTS, stem)).then(|| program.to_owned());
    };
    if verbs.is_empty() {
        return Some(program.to_owned());
    }
    let mut arguments = rest.iter().filter(|word| !word.starts_with(['-', '+']));
    let Some(first) = arguments.next() else {
        return (program == "make").then(|| program.to_owned());
    };
    if matches!(&**first, "run" | "run-script") && PACKAGE_MANAGERS.contains(&program) {
        let script = arguments.next()?;
        return is_verb(SCRIPTS, script).then(|| format!("{program} run {script}"));
    }
    is_verb(verbs, first).then(|| format!("{program} {first}"))
}

/// Returns whether a word is one of the verbs, or one of them with more behind a colon or a dash.
fn is_verb(verbs: &[&str], word: &str) -> bool {
    verbs.iter().any(|verb| {
        word.strip_prefix(verb)
            .is_some_and(|rest| rest.is_empty() || rest.starts_with([':', '-', '_']))
    })
}

fn base(program: &str) -> &str {
    program.rsplit('/').next().unwrap_or(program)
}

/// Returns what the summary of a test runner says.
fn summary(output: &str) -> Option<bool> {
    let (failed, passed) = (FAILED.as_ref()?, PASSED.as_ref()?);
    if failed.is_match(output) {
        return Some(false);
    }
    passed.is_match(output).then_some(true)
}

/// How test runners and compilers end when something failed.
static FAILED: LazyLock<Option<RegexSet>> = LazyLock::new(|| {
    lines(&[
        r"test result: FAILED\.",
        r"error: could not compile",
        r" *Summary .* tests? run: .* [1-9]\d* failed",
        r" *(?:Tests|Test Files|Test Suites):? +[1-9]\d* failed",
        r"=+ .*\b[1-9]\d* (?:failed|errors?)\b.* in [\d.]+s.*=+",
        r"FAIL(?:ED)?(?:\t.*|: .*| \(.*\))?$",
        r" *[1-9]\d* failing$",
        r"Found [1-9]\d* errors?\b",
        r"✖ [1-9]\d* problems?",
        r"npm (?:ERR!|error) .*(?:Test failed|Lifecycle script .* failed)",
    ])
});

/// How they end when all is well.
static PASSED: LazyLock<Option<RegexSet>> = LazyLock::new(|| {
    lines(&[
        r"test result: ok\.",
        r" *Summary .* tests? run: .* passed",
        r" *Tests:? +[1-9]\d* passed",
        r"=+ [1-9]\d* passed.* in [\d.]+s.*=+",
        r"ok  \t",
        r"OK(?: \(.*\))?$",
        r" *[1-9]\d* passing\b",
    ])
});

/// A table that cannot be built knows nothing.
fn lines(forms: &[&str]) -> Option<RegexSet> {
    RegexSet::new(forms.iter().map(|form| format!("(?m)^{form}"))).ok()
}

/// What runs another command, and how many arguments of its own it takes beside options.
const RUNNERS: &[(&str, usize)] = &[
    ("bundle exec", 0),
    ("bunx", 0),
    ("command", 0),
    ("env", 0),
    ("exec", 0),
    ("nice", 0),
    ("npx", 0),
    ("pdm run", 0),
    ("pipenv run", 0),
    ("pnpm exec", 0),
    ("poetry run", 0),
    ("python -m", 0),
    ("python3 -m", 0),
    ("sudo", 0),
    ("time", 0),
    ("timeout", 1),
    ("uv run", 0),
    ("uvx", 0),
    ("yarn exec", 0),
];

/// Programs and what they are told to check; without verbs they do nothing else.
const TABLE: &[(&str, &[&str])] = &[
    ("bats", &[]),
    ("bazel", &["build", "test"]),
    ("biome", &["check", "ci", "lint"]),
    ("bun", &["test", "build"]),
    ("cargo", &["bench", "build", "check", "clippy", "nextest", "test", "t", "b", "c"]),
    ("composer", &["test"]),
    ("ctest", &[]),
    ("deno", &["check", "lint", "test"]),
    ("dotnet", &["build", "test"]),
    ("eslint", &[]),
    ("flake8", &[]),
    ("flutter", &["analyze", "build", "test"]),
    ("go", &["build", "test", "vet"]),
    ("golangci-lint", &["run"]),
    ("gradle", &["assemble", "build", "check", "test"]),
    ("gradlew", &["assemble", "build", "check", "test"]),
    ("jest", &[]),
    ("just", SCRIPTS),
    ("make", SCRIPTS),
    ("mix", &["compile", "test"]),
    ("mocha", &[]),
    ("mvn", &["compile", "package", "test", "verify"]),
    ("mvnw", &["compile", "package", "test", "verify"]),
    ("mypy", &[]),
    ("ninja", SCRIPTS),
    ("nox", &[]),
    ("npm", &["test", "t"]),
    ("phpunit", &[]),
    ("playwright", &["test"]),
    ("pnpm", SCRIPTS),
    ("pylint", &[]),
    ("pyright", &[]),
    ("pytest", &[]),
    ("rake", SCRIPTS),
    ("rspec", &[]),
    ("ruff", &["check"]),
    ("shellcheck", &[]),
    ("swift", &["build", "test"]),
    ("task", SCRIPTS),
    ("tox", &[]),
    ("tsc", &[]),
    ("unittest", &[]),
    ("vitest", &[]),
    ("yarn", SCRIPTS),
    ("zig", &["build", "test"]),
];

/// Programs that run the scripts of a package.
const PACKAGE_MANAGERS: &[&str] = &["bun", "npm", "pnpm", "yarn"];

/// How projects call their own checks.
const SCRIPTS: &[&str] = &[
    "build",
    "check",
    "ci",
    "clippy",
    "e2e",
    "lint",
    "test",
    "tests",
    "tsc",
    "typecheck",
    "verify",
];

const DEPTH_MAX: usize = 4;

#[cfg(test)]
mod tests {
    //! Commands as agents write them.

    use aldis_transcript::activity::Fact;
    use aldis_transcript::events::Zone;
    use aldis_transcript::{Format, Output, Reader};
    use serde_json::json;

    use super::*;

    /// What is known of a command that ended so and printed this.
    fn known(command: &str, exit: i64, output: &str) -> String {
        let text =
            if exit == 0 { output.to_owned() } else { format!("Exit code {exit}\n{output}") };
        let call =
            json!({"type": "tool_use", "id": "1", "name": "Bash", "input": {"command": command}});
        let result = json!({"type": "tool_result", "tool_use_id": "1", "content": text, "is_error": exit != 0});
        let lines = [("assistant", call), ("user", result)].map(|(kind, block)| {
            json!({"type": kind, "uuid": kind, "message": {"content": [block]}}).to_string()
        });
        let mut found = Vec::new();
        let mut sink = |output| {
            if let Output::Activity(activity) = output
                && let Fact::Tool(tool) = &activity.fact
            {
                let code =
                    |exit: Option<i64>| exit.map(|exit| format!(" {exit}")).unwrap_or_default();
                found.extend(checks(tool).into_iter().map(|check| {
                    let end = if check.passed { "passed" } else { "failed" };
                    format!("{} {end}{}", check.kind, code(check.exit))
                }));
            }
        };
        let now = crate::agents::listener::NO_TIME;
        let mut reader = Reader::new(Format::ClaudeCode).with_activities(Zone::utc());
        reader.push_live(lines.join("\n").as_bytes(), now, &mut sink);
        reader.finish_live(now, &mut sink);
        found.join(", ")
    }

    #[test]
    fn a_check_is_known_by_its_command() {
        for (command, want) in [
            ("npm test", "npm test failed 1"),
            ("CI=1 timeout 60 npm run test:unit -- --watch=false", "npm run test:unit failed 1"),
            ("cd web && pnpm lint", "pnpm lint failed 1"),
            ("bash -lc 'cargo nextest run -p x'", "cargo nextest failed 1"),
            ("cargo +nightly test", "cargo test failed 1"),
            ("python3 -m pytest -q tests/a.py", "pytest failed 1"),
            ("npx tsc --noEmit", "tsc failed 1"),
            ("./scripts/test", "test failed 1"),
            ("make", "make failed 1"),
            ("make -j4 check", "make check failed 1"),
            ("./node_modules/.bin/vitest run", "vitest failed 1"),
            ("golangci-lint run", "golangci-lint run failed 1"),
            ("cargo run test", ""),
            ("make clean", ""),
            ("git commit -m 'npm test'", ""),
            ("echo npm test", ""),
            ("grep -rn 'cargo test' .", ""),
            ("test -f x", ""),
            ("npm install", ""),
        ] {
            assert_eq!(known(command, 1, "nothing of interest"), want, "{command}");
        }
    }

    #[test]
    fn an_exit_code_counts_where_it_is_the_checks_own() {
        for (command, exit, output, want) in [
            ("npm test", 0, "", "npm test passed"),
            ("npm test 2>&1 | tail -5", 0, "ok", ""),
            (
                "npm test 2>&1 | tail -5",
                0,
                "Tests: 2 failed, 116 passed, 118 total",
                "npm test failed",
            ),
            ("set -o pipefail; npm test | tail -5", 2, "", "npm test failed 2"),
            (
                "cargo test || true",
                0,
                "test result: FAILED. 1 passed; 1 failed",
                "cargo test failed",
            ),
            ("cargo test; echo done", 0, "test result: ok. 8 passed\ndone", "cargo test passed"),
            ("npm run lint && npm test", 0, "", "npm run lint passed, npm test passed"),
            ("npm run lint && npm test", 1, "", "npm test failed 1"),
            ("npm test && git push", 1, "rejected", ""),
            ("npm test && git push", 0, "", "npm test passed"),
            ("true || npm test", 0, "", ""),
            ("pytest | cat", 0, "==== 2 failed, 3 passed in 0.12s ====", "pytest failed"),
            ("pytest | cat", 0, "==== 5 passed in 0.12s ====", "pytest passed"),
            ("go test ./... | cat", 0, "ok  \tx\t0.1s\nFAIL\ty\t0.2s", "go test failed"),
        ] {
            assert_eq!(known(command, exit, output), want, "{command} {exit} {output}");
        }
    }
}
