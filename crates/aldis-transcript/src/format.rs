//! The forms of inputs, and which host writes which.

use std::fmt;

use super::detect;

/// The form of an input.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[non_exhaustive]
pub enum Format {
    /// Agent Client Protocol messages, one per line.
    Acp,
    /// Claude Code's transcript file; Qwen's has the same envelope.
    ClaudeCode,
    /// `claude -p --output-format stream-json` or `json`; Amp and Qwen write the same.
    ClaudeStream,
    /// `cline --json`.
    Cline,
    /// `codex exec --json`.
    CodexExec,
    /// Codex's rollout file.
    CodexRollout,
    /// Copilot's `events.jsonl` and `copilot -p --output-format json`.
    Copilot,
    /// `cursor-agent -p --output-format stream-json`.
    CursorStream,
    /// Cursor's transcript file.
    CursorTranscript,
    /// Droid's transcript file.
    Droid,
    /// `droid exec -o stream-json`.
    DroidStream,
    /// Gemini's session file.
    GeminiSession,
    /// `gemini -p --output-format stream-json`.
    GeminiStream,
    /// `goose run --output-format stream-json`.
    Goose,
    /// `opencode run --format json`, or its event bus.
    OpenCode,
    /// What an agent printed, as it is.
    Text,
}

impl Format {
    /// All formats.
    pub const ALL: [Self; 16] = [
        Self::Acp,
        Self::ClaudeCode,
        Self::ClaudeStream,
        Self::Cline,
        Self::CodexExec,
        Self::CodexRollout,
        Self::Copilot,
        Self::CursorStream,
        Self::CursorTranscript,
        Self::Droid,
        Self::DroidStream,
        Self::GeminiSession,
        Self::GeminiStream,
        Self::Goose,
        Self::OpenCode,
        Self::Text,
    ];

    /// Returns the stable name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Acp => "acp",
            Self::ClaudeCode => "claude-code",
            Self::ClaudeStream => "claude-stream",
            Self::Cline => "cline",
            Self::CodexExec => "codex-exec",
            Self::CodexRollout => "codex-rollout",
            Self::Copilot => "copilot",
            Self::CursorStream => "cursor-stream",
            Self::CursorTranscript => "cursor-transcript",
            Self::Droid => "droid",
            Self::DroidStream => "droid-stream",
            Self::GeminiSession => "gemini-session",
            Self::GeminiStream => "gemini-stream",
            Self::Goose => "goose",
            Self::OpenCode => "opencode",
            Self::Text => "text",
        }
    }

    /// Returns whether a host writes this while it runs, for whoever reads its output.
    pub(crate) fn is_live(self) -> bool {
        !matches!(
            self,
            Self::ClaudeCode
                | Self::CodexRollout
                | Self::CursorTranscript
                | Self::Droid
                | Self::GeminiSession
        )
    }

    /// Returns the format of this name. The name of a host stands for the form of its files; use
    /// [`Input::from_name`] where its streams may come too.
    pub fn from_name(name: &str) -> Option<Self> {
        let exact = Self::ALL.into_iter().find(|format| format.name() == name);
        exact.or_else(|| host_forms(name)?.first().copied())
    }
}

impl fmt::Display for Format {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// What is known about an input before its first bytes are seen. Exhaustive: there is no fourth
/// way to know.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Input {
    /// Nothing: its first lines tell.
    #[default]
    Auto,
    /// Its form.
    Format(Format),
    /// The host, by the forms it writes, the usual one first.
    Host(&'static [Format]),
}

impl Input {
    /// Returns what a name on the command line stands for: `auto`, a host or a format.
    pub fn from_name(name: &str) -> Option<Self> {
        if name == "auto" {
            return Some(Self::Auto);
        }
        host_forms(name).map(Self::Host).or_else(|| Format::from_name(name).map(Self::Format))
    }

    /// Chooses the format, given the first bytes of the input.
    ///
    /// ```
    /// use aldis_transcript::{Format, Input};
    ///
    /// let codex = Input::from_name("codex");
    /// let head = b"{\"type\":\"thread.started\",\"thread_id\":\"t1\"}\n";
    /// assert_eq!(codex.map(|input| input.resolve(head)), Some(Format::CodexExec));
    /// ```
    pub fn resolve(self, head: &[u8]) -> Format {
        match self {
            Self::Auto => detect(head),
            Self::Format(format) => format,
            Self::Host(forms) => detect::of_host(head, forms).unwrap_or_else(|| {
                let found = detect(head);
                let usual = forms.first().copied().unwrap_or(found);
                if forms.contains(&found) { found } else { usual }
            }),
        }
    }

    /// As [`resolve`](Self::resolve) for an input that still comes: returns the format once `head`,
    /// all that came so far, tells it, and how many bytes of that are text whatever follows. A
    /// transcript begins right behind them. `silent` says that nothing more is expected soon.
    ///
    /// A beginning that is only noise so far tells nothing: a transcript may follow. Whoever has
    /// waited long enough calls [`resolve`](Self::resolve).
    pub fn resolve_so_far(self, head: &[u8], silent: bool) -> (Option<Format>, usize) {
        match self {
            Self::Auto => detect::so_far(head, silent),
            Self::Format(format) => (Some(format), 0),
            // What a host writes is never text, and its first line in one of its forms is its own.
            Self::Host(forms) => {
                let found = detect::of_host(head, forms);
                let found = found.or_else(|| detect::so_far(head, silent).0);
                (found.map(|_| self.resolve(head)), 0)
            }
        }
    }
}

/// The names of hosts, for messages and completion.
pub const HOSTS: [&str; 12] = [
    "acp",
    "amp",
    "claude-code",
    "cline",
    "codex",
    "copilot",
    "cursor",
    "droid",
    "gemini",
    "goose",
    "opencode",
    "qwen",
];

fn host_forms(host: &str) -> Option<&'static [Format]> {
    Some(match host {
        "acp" => &[Format::Acp],
        "amp" => &[Format::ClaudeStream],
        "claude" | "claude-code" => &[Format::ClaudeCode, Format::ClaudeStream],
        "cline" => &[Format::Cline],
        "codex" => &[Format::CodexRollout, Format::CodexExec],
        // With some models its stream is said to be flat, as Gemini's is.
        "copilot" => &[Format::Copilot, Format::GeminiStream],
        "cursor" => &[Format::CursorStream, Format::CursorTranscript],
        // `droid exec -o json` prints one result like Claude's.
        "droid" => &[Format::Droid, Format::DroidStream, Format::ClaudeStream],
        "gemini" => &[Format::GeminiSession, Format::GeminiStream],
        "goose" => &[Format::Goose],
        "opencode" => &[Format::OpenCode],
        "qwen" => &[Format::ClaudeStream, Format::ClaudeCode],
        _ => return None,
    })
}
