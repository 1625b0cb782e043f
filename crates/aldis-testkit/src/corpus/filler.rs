//! What agents say around their signals: prose, code, diffs, logs, lists.
//!
//! Filler must not decide anything. It holds no signal, leaves no fence, quote or comment open, and
//! has none of the words by which a claim is mentioned or taken back; a test looks for them.

use super::rng::Rng;

/// Finished sentences that may stand directly before a claim.
const LEADS: &[&str] = &[
    "The retry budget is now shared between both clients.",
    "The parser keeps the original offsets.",
    "All 42 unit tests pass on my machine.",
    "I went through the acceptance list and every item holds.",
    "The new index makes the slow query about nine times faster.",
    "Both migrations ran against a copy of the production schema.",
    "The cache is keyed by tenant and region.",
    "Documentation and changelog are up to date.",
    "I renamed the module so that the imports read well.",
    "The handler rejects oversized uploads with 413.",
    "Coverage of the scheduler went from 71 to 93 percent.",
    "The flag defaults to off, so existing installations keep their behaviour.",
    "Everything on the list is in place.",
    "The work tree is clean and the branch is rebased.",
];

const SUBJECTS: &[&str] = &[
    "The scheduler",
    "The HTTP client",
    "This module",
    "The new helper",
    "The importer",
    "The session cache",
    "Our retry policy",
    "The config loader",
    "The rate limiter",
    "The fixture",
];

const VERBS: &[&str] = &[
    "reads the settings from",
    "now shares its state with",
    "hands its result to",
    "takes its defaults from",
    "keeps a reference to",
    "measures the latency of",
    "replaces the old path through",
    "is covered by the cases in",
];

const OBJECTS: &[&str] = &[
    "the worker pool",
    "`src/retry.rs`",
    "the staging cluster",
    "the shared arena",
    "`config/default.toml`",
    "the tenant table",
    "the upload handler",
    "`tests/limits.rs`",
    "the metrics exporter",
];

const CLOSINGS: &[&str] = &[
    "Let me know if you would like a different name for the module.",
    "Happy to split the change into smaller commits.",
    "The diff is small and easy to read.",
    "Thanks for the quick feedback on the design.",
    "I left the public interface as it was.",
    "Have a look at the second commit for the details.",
    "The numbers above are medians of five runs.",
];

const CODE: &[(&str, &str)] = &[
    (
        "rust",
        "pub fn backoff(attempt: u32) -> Duration {\n    let base = 50 * 2u64.pow(attempt);\n    Duration::from_millis(base)\n}",
    ),
    (
        "python",
        "def chunks(items, size):\n    for start in range(0, len(items), size):\n        yield items[start:start + size]",
    ),
    (
        "ts",
        "export async function load(id: string): Promise<User> {\n  const row = await db.users.find({ id });\n  return toUser(row);\n}",
    ),
    ("sh", "cargo nextest run --workspace\ngit switch -c feat/limits"),
    ("json", "{\n  \"name\": \"widget\",\n  \"retries\": 3\n}"),
    ("toml", "[limits]\nper_minute = 600\nburst = 40"),
    ("sql", "SELECT tenant, count(*) FROM uploads GROUP BY tenant ORDER BY 2 DESC;"),
    ("", "src/\n  limits.rs\n  retry.rs\ntests/\n  limits.rs"),
];

const DIFFS: &[&str] = &[
    "--- a/src/retry.rs\n+++ b/src/retry.rs\n@@ -10,3 +10,3 @@\n fn wait() {\n-    sleep(50);\n+    clock.sleep(50);\n }",
    "diff --git a/app.py b/app.py\n@@ -1,2 +1,3 @@\n import os\n+import json\n import sys",
];

const LOGS: &[&str] = &[
    "running 42 tests\ntest limits::burst ... ok\ntest limits::refill ... ok\ntest result: ok. 42 passed",
    "2026-03-02T09:14:51Z INFO  server listening on :8080\n2026-03-02T09:14:52Z INFO  3 workers ready",
    "   Compiling widget v0.3.1\n    Finished dev profile in 4.12s",
];

/// Returns a finished sentence that may stand directly before a claim.
pub(super) fn lead(rng: &mut Rng) -> String {
    rng.pick(LEADS).to_owned()
}

/// Returns a polite sentence for after a claim.
pub(super) fn closing(rng: &mut Rng) -> String {
    rng.pick(CLOSINGS).to_owned()
}

pub(super) fn sentence(rng: &mut Rng) -> String {
    if rng.chance(20) {
        return lead(rng);
    }
    format!("{} {} {}.", rng.pick(SUBJECTS), rng.pick(VERBS), rng.pick(OBJECTS))
}

pub(super) fn paragraph(rng: &mut Rng) -> String {
    let count = rng.between(1, 5);
    (0..count).map(|_| sentence(rng)).collect::<Vec<_>>().join(" ")
}

fn list(rng: &mut Rng) -> String {
    let numbered = rng.chance(30);
    let item = |number: usize, rng: &mut Rng| match numbered {
        true => format!("{number}. {}", sentence(rng)),
        false => format!("- {}", sentence(rng)),
    };
    (1..rng.between(3, 6)).map(|number| item(number, rng)).collect::<Vec<_>>().join("\n")
}

/// A closed fence with code, a diff or a log.
pub(super) fn fence(rng: &mut Rng) -> String {
    let (info, body) = match rng.below(4) {
        0 => ("diff", rng.pick(DIFFS)),
        1 => ("text", rng.pick(LOGS)),
        _ => rng.pick(CODE),
    };
    format!("```{info}\n{body}\n```")
}

/// A closed fence as long as agents write them: a screen or two of code, diff or log.
fn listing(rng: &mut Rng) -> String {
    let kind = rng.below(4);
    let lines = (0..rng.between(20, 90)).map(|_| {
        let body = match kind {
            0 => DIFF_LINES,
            1 => LOG_LINES,
            _ => CODE_LINES,
        };
        rng.pick(body)
    });
    let lines = lines.collect::<Vec<_>>().join("\n");
    match kind {
        0 => format!(
            "```diff\n--- a/src/retry.rs\n+++ b/src/retry.rs\n@@ -1,80 +1,90 @@\n{lines}\n```"
        ),
        1 => format!("```text\n{lines}\n```"),
        _ => format!("```rust\n{lines}\n```"),
    }
}

const DIFF_LINES: &[&str] = &[
    " fn wait(&self, attempt: u32) {",
    "-    thread::sleep(Duration::from_millis(50));",
    "+    self.clock.sleep(self.policy.delay(attempt));",
    "     let entry = self.entries.get(&key)?;",
    " }",
    " ",
];
const LOG_LINES: &[&str] = &[
    "2026-03-02T09:14:51.204Z INFO  server::http request id=8f31 path=/v1/uploads status=200 ms=12",
    "2026-03-02T09:14:51.377Z DEBUG pool::worker picked up job 4411 after 3 ms in the queue",
    "test limits::refill_is_lazy ... ok",
    "   Compiling widget-core v0.3.1 (crates/widget-core)",
    "  at async handle (src/server/router.ts:118:9)",
];
const CODE_LINES: &[&str] = &[
    "    let mut buckets = HashMap::with_capacity(limits.len());",
    "    for (tenant, limit) in &self.limits {",
    "        buckets.entry(tenant.clone()).or_insert_with(|| Bucket::full(*limit, now));",
    "    }",
    "    // The refill happens on the next request, not by a timer.",
    "    Ok(buckets.values().map(Bucket::remaining).min().unwrap_or(0))",
    "}",
    "",
    "impl<C: Clock> Limiter<C> {",
    "    pub fn try_acquire(&mut self, key: &str, cost: u32) -> Result<Permit, Denied> {",
];

/// One closed piece of a long text, with listings instead of snippets.
pub(super) fn long_piece(rng: &mut Rng) -> String {
    if rng.chance(10) { listing(rng) } else { prose(rng) }
}

pub(super) fn table(rng: &mut Rng) -> String {
    let rows = (0..rng.between(1, 4)).map(|row| {
        format!("| case {row} | {} ms | {} ms |", rng.between(1, 90), rng.between(1, 90))
    });
    let rows = rows.collect::<Vec<_>>().join("\n");
    format!("| case | before | after |\n|---|---|---|\n{rows}")
}

/// One closed piece of a message.
pub(super) fn piece(rng: &mut Rng) -> String {
    if rng.chance(10) { fence(rng) } else { prose(rng) }
}

/// One piece without a fence.
fn prose(rng: &mut Rng) -> String {
    match rng.below(9) {
        0 | 1 => list(rng),
        3 => format!("## {}\n\n{}", rng.pick(&["Summary", "Changes", "Notes"]), paragraph(rng)),
        4 => table(rng),
        5 => format!("> {}", sentence(rng)),
        _ => paragraph(rng),
    }
}

/// Some pieces, ending in a neutral finished sentence and a blank line; sometimes nothing.
pub(super) fn before(rng: &mut Rng) -> String {
    if rng.chance(15) {
        return String::new();
    }
    let mut text = String::new();
    for _ in 0..rng.below(4) {
        text.push_str(&piece(rng));
        text.push_str("\n\n");
    }
    text.push_str(&lead(rng));
    text.push_str("\n\n");
    text
}

/// A blank line and some pieces, ending in a closing sentence; sometimes only a line end.
pub(super) fn after(rng: &mut Rng) -> String {
    if rng.chance(40) {
        return rng.pick(&["", "\n", "\n\n"]).to_owned();
    }
    let mut text = "\n\n".to_owned();
    for _ in 0..rng.below(3) {
        text.push_str(&piece(rng));
        text.push_str("\n\n");
    }
    text.push_str(&closing(rng));
    text
}

/// Puts something into a message. Only a trailer needs the end for itself.
pub(super) fn around(rng: &mut Rng, dialect: &str, core: &str) -> String {
    let before = before(rng);
    let after = if dialect == "turn" { String::new() } else { after(rng) };
    format!("{before}{core}{after}")
}
