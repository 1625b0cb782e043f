//! The forms of inputs, and which host writes which.

use super::detect;
use aldis_signal::codes;

codes! {
    /// The form of an input. The names are stable.
    #[non_exhaustive]
    pub enum Format {
        /// Agent Client Protocol messages, one per line.
        Acp = "acp",
        /// Antigravity's transcript of a conversation.
        Antigravity = "antigravity",
        /// `agy -p --output-format stream-json`.
        AntigravityStream = "antigravity-stream",
        /// Claude Code's transcript file; Qwen's has the same envelope.
        ClaudeCode = "claude-code",
        /// `claude -p --output-format stream-json` or `json`; Amp and Qwen write the same.
        ClaudeStream = "claude-stream",
        /// `cline --json`.
        Cline = "cline",
        /// `codex exec --json`.
        CodexExec = "codex-exec",
        /// Codex's rollout file.
        CodexRollout = "codex-rollout",
        /// Copilot's `events.jsonl` and `copilot -p --output-format json`.
        Copilot = "copilot",
        /// `cursor-agent -p --output-format stream-json`.
        CursorStream = "cursor-stream",
        /// Cursor's transcript file.
        CursorTranscript = "cursor-transcript",
        /// Droid's transcript file.
        Droid = "droid",
        /// `droid exec -o stream-json`.
        DroidStream = "droid-stream",
        /// Gemini's session file.
        GeminiSession = "gemini-session",
        /// `gemini -p --output-format stream-json`.
        GeminiStream = "gemini-stream",
        /// `goose run --output-format stream-json`.
        Goose = "goose",
        /// `kimi -p --output-format stream-json`.
        KimiStream = "kimi-stream",
        /// Kimi's journal of one agent.
        KimiWire = "kimi-wire",
        /// Kiro's session file.
        Kiro = "kiro",
        /// `opencode run --format json`, or its event bus; Kilo writes the same.
        OpenCode = "opencode",
        /// Pi's session file and `pi --mode json`; OpenClaw's files are the same.
        Pi = "pi",
        /// What an agent printed, as it is.
        Text = "text",
    }
}

impl Format {
    /// Returns whether a host writes this while it runs, for whoever reads its output.
    pub(crate) fn is_live(self) -> bool {
        !matches!(
            self,
            Self::Antigravity
                | Self::ClaudeCode
                | Self::CodexRollout
                | Self::CursorTranscript
                | Self::Droid
                | Self::GeminiSession
                | Self::KimiWire
                | Self::Kiro
        )
    }

    /// Returns the format of this name. The name of a host stands for the form of its files; use
    /// [`Input::from_name`] where its streams may come too.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::named(name).or_else(|| host_forms(name)?.first().copied())
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
pub const HOSTS: [&str; 17] = [
    "acp",
    "amp",
    "antigravity",
    "claude-code",
    "cline",
    "codex",
    "copilot",
    "cursor",
    "droid",
    "gemini",
    "goose",
    "kilo",
    "kimi",
    "kiro",
    "opencode",
    "pi",
    "qwen",
];

fn host_forms(host: &str) -> Option<&'static [Format]> {
    Some(match host {
        "acp" => &[Format::Acp],
        "amp" => &[Format::ClaudeStream],
        "agy" | "antigravity" => &[Format::Antigravity, Format::AntigravityStream],
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
        "kimi" => &[Format::KimiWire, Format::KimiStream],
        "kiro" => &[Format::Kiro],
        "kilo" | "opencode" => &[Format::OpenCode],
        "pi" => &[Format::Pi],
        "qwen" => &[Format::ClaudeStream, Format::ClaudeCode],
        _ => return None,
    })
}
