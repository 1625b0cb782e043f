//! How hosts write down how a call ended, where no member says it: a line of their own before or
//! behind what the command printed.

use std::time::Duration;

use crate::content::text_of;
use crate::item::CallResult;
use crate::members::Members;

/// A form of results.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Form {
    /// `Exit code 1` is the first line of an error, or all of it is an object. Claude Code and those
    /// that copied it.
    First,
    /// Lines with labels come before `Output:`, or all of it is an object. Codex.
    Header,
    /// `Exit Code: 1` is a line behind the output. Gemini and those that copied it.
    Labelled,
    /// `<exited with exit code 1>` is the last line. Copilot.
    Last,
    /// `Command failed with exit code: 1.` is the last line. Kimi.
    Sentence,
    /// `Command exited with code 1` is the last line. Pi.
    Exited,
}

/// How a call ended.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Ending {
    pub(crate) exit: Option<i64>,
    pub(crate) took: Option<Duration>,
    /// What the tool printed.
    pub(crate) output: String,
    /// It was not run: a person or the host refused.
    pub(crate) is_refused: bool,
}

impl CallResult<'_> {
    /// Returns how the call ended, by its members or its text.
    pub(crate) fn ending(&self) -> Ending {
        let text = self.content.map(text_of).unwrap_or_default();
        let read = self.form.map(|form| form.read(&text, self.is_error)).unwrap_or_default();
        Ending {
            exit: self.exit_code.or(read.exit),
            took: read.took,
            is_refused: self.is_refused || REFUSALS.iter().any(|start| text.starts_with(start)),
            output: read.output.unwrap_or(text),
        }
    }
}

/// What a text says.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Read {
    exit: Option<i64>,
    took: Option<Duration>,
    /// What the command printed, if that is only a part of the text.
    output: Option<String>,
}

impl Form {
    fn read(self, text: &str, is_error: bool) -> Read {
        let exit = match self {
            Self::First | Self::Header if text.starts_with('{') => return object(text),
            Self::Header => return header(text),
            Self::First => text.strip_prefix("Exit code ").filter(|_| is_error),
            Self::Labelled => text.lines().rev().find_map(|line| line.strip_prefix("Exit Code: ")),
            Self::Sentence => behind(text, "Command failed with exit code: "),
            Self::Exited => behind(text, "Command exited with code "),
            Self::Last => behind(text, "<exited with exit code "),
        };
        Read { exit: exit.and_then(number), ..Read::default() }
    }
}

/// What stands behind a label at the start of the last line.
fn behind<'t>(text: &'t str, label: &str) -> Option<&'t str> {
    text.trim_end().lines().next_back()?.strip_prefix(label)
}

/// An object with what the command printed and how it ended.
fn object(text: &str) -> Read {
    let Ok(all) = Members::of_bytes(text.as_bytes()) else { return Read::default() };
    let meta = all.object("metadata");
    let exit = all.integer("exitCode").or_else(|| meta.integer("exit_code"));
    let took = meta.number("duration_seconds").and_then(seconds);
    let output = all.text("output").map(|output| output.into_owned());
    Read { exit, took, output }
}

/// Labelled lines, then `Output:`. Without that line it is no header.
fn header(text: &str) -> Read {
    let mut read = Read::default();
    let mut rest = text;
    for _ in 0..HEADER_MAX {
        let (line, after) = rest.split_once('\n').unwrap_or((rest, ""));
        let labelled = |labels: &[&str]| labels.iter().find_map(|label| line.strip_prefix(label));
        if line == "Output:" {
            read.output = Some(after.to_owned());
            return read;
        }
        if let Some(value) = labelled(&["Exit code: ", "Process exited with code "]) {
            read.exit = number(value);
        } else if let Some(value) = labelled(&["Wall time: "]) {
            let value = value.split(' ').next().and_then(|value| value.parse().ok());
            read.took = value.and_then(seconds);
        }
        rest = after;
    }
    Read::default()
}

fn seconds(seconds: f64) -> Option<Duration> {
    Duration::try_from_secs_f64(seconds).ok()
}

/// The number at the beginning of a text.
fn number(text: &str) -> Option<i64> {
    let end = text.find(|c: char| !c.is_ascii_digit() && c != '-').unwrap_or(text.len());
    text[..end].parse().ok()
}

/// How results begin that hosts write in the place of a tool that did not run.
const REFUSALS: [&str; 12] = [
    "The user doesn't want to proceed with this tool use",
    "The user doesn't want to take this action",
    "Claude requested permissions to",
    "Permission to use",
    "Permission for this tool use was denied",
    "This command requires approval",
    "This Bash command contains multiple operations",
    "sed command requires approval",
    "MCP tool call requires approval",
    "exec command rejected by user",
    "patch rejected by user",
    "rejected by user",
];

/// A header is a few lines.
const HEADER_MAX: usize = 8;

#[cfg(test)]
mod tests {
    //! The forms of all hosts.

    use super::*;

    #[test]
    fn exit_codes_are_read_where_each_host_writes_them() {
        use Form::{First, Header, Labelled, Last};
        for (form, text, is_error, exit) in [
            (First, "Exit code 1\nFAIL", true, Some(1)),
            (First, "Exit code 1\nFAIL", false, None),
            (First, r#"{"output":"FAIL","exitCode":2}"#, false, Some(2)),
            (Header, "Chunk ID: 1\nProcess exited with code 101\nOutput:\nx", false, Some(101)),
            (Header, "Exit code: 0\nWall time: 1 s\nOutput:\nExit code: 9", false, Some(0)),
            (Header, "Exit code: 7", false, None),
            (Header, r#"{"output":"x","metadata":{"exit_code":-1}}"#, false, Some(-1)),
            (Labelled, "Output: Exit Code: 3\nExit Code: 1\nSignal: (none)", false, Some(1)),
            (Last, "<exited with exit code 0>\nx\n<exited with exit code 4>\n", false, Some(4)),
            (Last, "<exited with exit code 0>\nx", false, None),
        ] {
            assert_eq!(form.read(text, is_error).exit, exit, "{form:?} {text:?}");
        }
        let read = Header.read("Wall time: 1.5 seconds\nOutput:\na\nb", false);
        assert_eq!(read.took, Some(Duration::from_millis(1500)));
        assert_eq!(read.output.as_deref(), Some("a\nb"));
    }
}
