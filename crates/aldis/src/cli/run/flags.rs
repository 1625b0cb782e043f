//! Options that override settings for one run.

use clap::Args;

use crate::cli::check_flags::CheckFlags;
use crate::settings::config::{Count, Dollars, Node, NodeKind, Origin, Seconds, Tokens};
use crate::settings::prompt_by::PromptBy;

/// What can be said on the command line instead of in a file.
#[derive(Clone, Debug, Default, Args)]
#[command(next_help_heading = "Settings (see aldis config show)")]
pub(crate) struct Flags {
    /// The dialect in which the agent reports
    #[arg(long, short, value_name = "DIALECT")]
    dialect: Option<String>,

    /// How your own command gets its prompt (--host knows)
    #[arg(long, value_enum, value_name = "HOW")]
    prompt_by: Option<PromptBy>,

    /// What your own command writes: auto, text, or a host such as claude-code or codex
    #[arg(long, value_name = "FORMAT")]
    input: Option<String>,

    /// A command to run for each notice; ALDIS_NOTICE and ALDIS_TEXT hold its kind and text
    #[arg(long, value_name = "COMMAND")]
    notify: Option<String>,

    /// Maximum number of iterations (default: 50)
    #[arg(long, value_name = "N")]
    max_iterations: Option<Count<1, 1000>>,

    /// Time limit of an iteration: seconds, or a span (default: 30m)
    #[arg(long, value_name = "TIME")]
    timeout: Option<Seconds<1>>,

    /// Time limit of the run, without waits for people and rate limits (default: 24h)
    #[arg(long, value_name = "TIME")]
    total_timeout: Option<Seconds<1>>,

    /// How long the agent may take to stop when asked to (default: 30s)
    #[arg(long, value_name = "TIME")]
    grace: Option<Seconds<1>>,

    /// Total token budget (needs a host that reports usage)
    #[arg(long, value_name = "N")]
    max_tokens: Option<Tokens>,

    /// Total budget in dollars (needs a host that reports costs)
    #[arg(long, value_name = "DOLLARS")]
    max_cost: Option<Dollars>,

    /// Maximum number of restarts after crashes in a row (default: 2)
    #[arg(long, value_name = "N")]
    max_crashes: Option<Count<0, 1000>>,

    /// Refuse a claim of done without a commit since the start
    #[arg(long, value_name = "BOOL", num_args = 0..=1, require_equals = true)]
    #[arg(default_missing_value = "true", hide_possible_values = true)]
    require_commit: Option<bool>,

    /// Refuse a claim of done while there are uncommitted changes
    #[arg(long, value_name = "BOOL", num_args = 0..=1, require_equals = true)]
    #[arg(default_missing_value = "true", hide_possible_values = true)]
    require_clean: Option<bool>,

    /// Exit with 3 instead of waiting for an answer
    #[arg(long, value_name = "BOOL", num_args = 0..=1, require_equals = true)]
    #[arg(default_missing_value = "true", hide_possible_values = true)]
    no_wait: Option<bool>,

    /// Run the agent on a terminal
    #[arg(long, value_name = "BOOL", num_args = 0..=1, require_equals = true)]
    #[arg(default_missing_value = "true", hide_possible_values = true)]
    pty: Option<bool>,

    #[command(flatten)]
    checks: CheckFlags,
}

impl Flags {
    /// Returns what was said, to be laid over everything else.
    pub(crate) fn layer(&self) -> Node {
        fn word(value: Option<impl ToString>) -> Option<NodeKind> {
            value.map(|value| NodeKind::Word(value.to_string()))
        }
        let prompt_by = self.prompt_by.map(|how| match how {
            PromptBy::Argument => "argument",
            PromptBy::File => "file",
            PromptBy::Stdin => "stdin",
        });
        let said = [
            ("run.dialect", "--dialect", word(self.dialect.as_ref())),
            ("run.prompt_by", "--prompt-by", word(prompt_by)),
            ("run.input", "--input", word(self.input.as_ref())),
            ("notify.command", "--notify", word(self.notify.as_ref())),
            ("run.max_iterations", "--max-iterations", word(self.max_iterations)),
            ("run.timeout", "--timeout", word(self.timeout)),
            ("run.total_timeout", "--total-timeout", word(self.total_timeout)),
            ("stagnation.grace_period", "--grace", word(self.grace)),
            ("run.max_tokens", "--max-tokens", word(self.max_tokens)),
            ("run.max_cost", "--max-cost", word(self.max_cost)),
            ("run.max_crashes", "--max-crashes", word(self.max_crashes)),
            ("run.require_commit", "--require-commit", self.require_commit.map(NodeKind::Bool)),
            ("run.require_clean", "--require-clean", self.require_clean.map(NodeKind::Bool)),
            ("run.no_wait", "--no-wait", self.no_wait.map(NodeKind::Bool)),
            ("run.pty", "--pty", self.pty.map(NodeKind::Bool)),
        ];
        let mut tree = Node::empty(Origin::Default);
        for (path, flag, kind) in said {
            if let Some(kind) = kind {
                tree.put(path, Node { origin: Origin::Flag(flag), kind });
            }
        }
        self.checks.put(&mut tree);
        tree
    }
}
