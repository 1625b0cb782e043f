//! Calls of tools as a row: short ones share a line, and one that failed ends it.

use std::fmt;
use std::path::Path;
use std::time::Duration;

use aldis_signal::redact::redact;
use aldis_signal::time::Timestamp;

use crate::view::display;
use crate::view::paint::Paint;
use crate::view::wrap::width;

/// How much of what a call is about is shown.
const ABOUT_MAX: usize = 60;
/// What stands between two calls.
const BETWEEN: &str = " · ";
/// How long a row waits for more, and for calls that are not over yet.
const PATIENCE: Duration = Duration::from_secs(5);
/// How many calls are remembered that were shown before they were over.
const OPEN_MAX: usize = 64;

/// A call of a tool as its host reports it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ToolCall<'a> {
    pub(crate) call: &'a str,
    pub(crate) name: &'a str,
    pub(crate) about: &'a str,
    pub(crate) is_command: bool,
    pub(crate) lines: Option<(u64, u64)>,
}

/// A call that is shown.
#[derive(Debug)]
struct Shown {
    call: String,
    text: String,
    is_command: bool,
    end: Option<End>,
}

/// How a call ended.
#[derive(Clone, Copy, Debug)]
struct End {
    failed: bool,
    exit_code: Option<i64>,
}

/// Calls that wait for a line of their own.
#[derive(Debug, Default)]
pub(super) struct ToolRow {
    calls: Vec<Shown>,
    /// When the last one came.
    changed: Option<Timestamp>,
    /// Calls that were shown before they were over.
    open: Vec<Shown>,
}

impl ToolRow {
    /// Takes in a call. Returns the row before it, if there is no room for both.
    pub(super) fn push(
        &mut self,
        now: Timestamp,
        call: &ToolCall<'_>,
        (paint, columns): (Paint, usize),
    ) -> Option<String> {
        let shown = Shown {
            call: call.call.to_owned(),
            text: call.to_string(),
            is_command: call.is_command,
            end: None,
        };
        let own = Paint { on: false };
        let before: usize =
            self.calls.iter().map(|call| width(&text(own, call)) + BETWEEN.len()).sum();
        let full = before > 0 && before + width(&shown.text) > columns;
        let row = if full { self.take(paint) } else { None };
        self.calls.push(shown);
        self.changed = Some(now);
        row
    }

    /// A call is over. Returns what is to be shown now: a row that ends with a failure, or a failure of
    /// a call that was shown before.
    pub(super) fn ended(
        &mut self,
        now: Timestamp,
        (call, failed, exit_code): (&str, bool, Option<i64>),
        paint: Paint,
    ) -> Option<String> {
        let end = Some(End { failed, exit_code });
        if let Some(shown) = self.calls.iter_mut().find(|shown| shown.call == call) {
            (shown.end, self.changed) = (end, Some(now));
            return if failed { self.take(paint) } else { None };
        }
        let at = self.open.iter().position(|shown| shown.call == call)?;
        let shown = Shown { end, ..self.open.remove(at) };
        failed.then(|| text(paint, &shown))
    }

    /// Returns the row, which is over.
    pub(super) fn take(&mut self, paint: Paint) -> Option<String> {
        let row = self.row(paint)?;
        for shown in self.calls.drain(..).filter(|shown| shown.end.is_none()) {
            if self.open.len() == OPEN_MAX {
                self.open.remove(0);
            }
            self.open.push(shown);
        }
        self.changed = None;
        Some(row)
    }

    /// Returns the calls that are over: what is said now comes after them, and before those that are not.
    pub(super) fn take_over(&mut self, paint: Paint) -> Option<String> {
        let calls = std::mem::take(&mut self.calls);
        let (over, left): (Vec<Shown>, Vec<Shown>) =
            calls.into_iter().partition(|call| call.end.is_some());
        self.calls = left;
        joined(paint, &over)
    }

    /// Returns the row if nothing was added for a while. Where it is drawn at the bottom meanwhile, it
    /// waits until all of its calls are over.
    pub(super) fn take_ripe(
        &mut self,
        now: Timestamp,
        paint: Paint,
        drawn: bool,
    ) -> Option<String> {
        let waited = now.since(self.changed?) >= PATIENCE;
        let over = !drawn || self.calls.iter().all(|call| call.end.is_some());
        if waited && over { self.take(paint) } else { None }
    }

    /// Returns the row as it is.
    pub(super) fn row(&self, paint: Paint) -> Option<String> {
        joined(paint, &self.calls)
    }
}

fn joined(paint: Paint, calls: &[Shown]) -> Option<String> {
    let calls: Vec<String> = calls.iter().map(|call| text(paint, call)).collect();
    (!calls.is_empty()).then(|| calls.join(BETWEEN))
}

/// A call and how it ended. Only of commands it is worth a word that they did not fail.
fn text(paint: Paint, shown: &Shown) -> String {
    let end = match shown.end {
        Some(End { failed: true, exit_code }) => {
            let code = exit_code.map(|code| format!(" {code}")).unwrap_or_default();
            format!("  {}", paint.bad(format!("✗{code}")))
        }
        Some(End { failed: false, .. }) if shown.is_command => format!("  {}", paint.good("✓")),
        _ => String::new(),
    };
    format!("{}{end}", shown.text)
}

/// Says in a line what a tool does: `Edit src/a.rs (+6 -2)`, `Bash npm test`.
impl fmt::Display for ToolCall<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = tool_name(self.name, self.is_command);
        let about = display::excerpt(&redact(self.about), ABOUT_MAX);
        let about = if about.is_empty() { about } else { format!(" {about}") };
        write!(f, "{name}{about}")?;
        match self.lines {
            Some((0, 0)) | None => Ok(()),
            Some((more, 0)) => write!(f, " (+{more})"),
            Some((0, less)) => write!(f, " (-{less})"),
            Some((more, less)) => write!(f, " (+{more} -{less})"),
        }
    }
}

/// What people call a tool: hosts have names of their own for a shell.
pub(crate) fn tool_name(name: &str, is_command: bool) -> String {
    if is_command {
        return "Bash".to_owned();
    }
    // A tool of an MCP server is named after both: `mcp__aldis__complete`.
    let name = name.strip_prefix("mcp__").unwrap_or(name).replace("__", " ");
    super::capital(&display::line(&name.replace('_', " ")))
}

/// What a call is about as people see it: paths within the directory of the agent without it.
pub(crate) fn within<'a>(about: &'a str, directory: &Path) -> &'a str {
    let inside = directory.to_str().and_then(|directory| about.strip_prefix(directory));
    inside.and_then(|path| path.strip_prefix('/')).unwrap_or(about)
}

#[cfg(test)]
mod tests {
    use super::*;

    const PLAIN: Paint = Paint { on: false };

    fn at(seconds: i64) -> Timestamp {
        Timestamp::from_millis(seconds * 1_000)
    }

    fn call<'a>(call: &'a str, name: &'a str, about: &'a str) -> ToolCall<'a> {
        let is_command = about.contains(' ');
        ToolCall { call, name, about, is_command, lines: None }
    }

    #[test]
    fn short_calls_share_a_line_and_a_failure_ends_it() {
        let mut row = ToolRow::default();
        let push = |row: &mut ToolRow, it: ToolCall<'_>| row.push(at(0), &it, (PLAIN, 40));
        assert_eq!(push(&mut row, call("1", "Read", "src/a.rs")), None);
        assert_eq!(
            push(&mut row, ToolCall { lines: Some((6, 2)), ..call("2", "edit", "b") }),
            None
        );
        assert_eq!(row.ended(at(1), ("1", false, None), PLAIN), None);
        let full = push(&mut row, call("3", "command_execution", "npm test"));
        assert_eq!(full.unwrap(), "Read src/a.rs · Edit b (+6 -2)");
        let failed = row.ended(at(2), ("3", true, Some(1)), PLAIN);
        assert_eq!(failed.unwrap(), "Bash npm test  ✗ 1");
        assert_eq!(row.ended(at(2), ("2", false, None), PLAIN), None);
        assert_eq!(row.row(PLAIN), None);
    }

    /// Hosts complete a message when the first of its calls is answered.
    #[test]
    fn words_come_before_the_calls_that_they_announce() {
        let mut row = ToolRow::default();
        row.push(at(0), &call("1", "Read", "a"), (PLAIN, 80));
        row.ended(at(0), ("1", false, None), PLAIN);
        row.push(at(0), &call("2", "Read", "b"), (PLAIN, 80));
        assert_eq!(row.take_over(PLAIN).unwrap(), "Read a");
        assert_eq!(row.take_over(PLAIN), None);
        assert_eq!(row.take(PLAIN).unwrap(), "Read b");
    }

    #[test]
    fn a_long_call_is_shown_before_it_is_over_and_its_failure_after() {
        let mut row = ToolRow::default();
        row.push(at(0), &call("1", "Bash", "npm test"), (PLAIN, 80));
        assert_eq!(row.take_ripe(at(1), PLAIN, false), None);
        assert_eq!(row.take_ripe(at(9), PLAIN, true), None, "it is seen at the bottom");
        assert_eq!(row.take_ripe(at(9), PLAIN, false).unwrap(), "Bash npm test");
        assert_eq!(row.ended(at(90), ("1", true, None), PLAIN).unwrap(), "Bash npm test  ✗");
        assert_eq!(row.ended(at(90), ("1", true, None), PLAIN), None, "once");
    }

    #[test]
    fn what_agents_write_is_harmless_and_without_secrets() {
        let secret = format!("curl -H ghp_{}", "x".repeat(36));
        let shown = call("1", "a\x1b[2J", &secret).to_string();
        assert!(shown.contains("[redacted]") && !shown.contains('\x1b'), "{shown}");
        assert_eq!(within("/p/src/a.rs", Path::new("/p")), "src/a.rs");
        assert_eq!(within("/pp/a.rs", Path::new("/p")), "/pp/a.rs");
    }
}
