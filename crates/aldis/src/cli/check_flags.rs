//! Options that say what is checked before a claim counts.

use std::path::Path;

use aldis_machine::proof::{Check, Config, OnChange, RedFirst};
use clap::Args;
use clap::builder::{PossibleValuesParser, TypedValueParser};

use crate::agents::git::Git;
use crate::error::CommandError;
use crate::proof::pins;
use crate::settings::config::{Node, NodeKind, Origin};

/// Refuses what no check could go by here.
///
/// # Errors
///
/// Says which setting cannot be.
pub(super) fn check_proof(config: &Config, project: &Path) -> Result<(), CommandError> {
    let wrong = |what: String| CommandError::new(format!("`proof`: {what}"));
    config.validate().map_err(wrong)?;
    pins::check_patterns(config).map_err(wrong)?;
    if config.clean && Git::around(project).is_none_or(|git| !git.has_commit()) {
        return Err(CommandError::new("--clean: there is no git repository with a commit here")
            .with_help("git init && git add -A && git commit -m Start, or leave the option out"));
    }
    Ok(())
}

/// What `run` and `deliver` have in common.
#[derive(Clone, Debug, Default, Args)]
#[command(next_help_heading = "Proof of done (see [proof] of aldis.toml)")]
pub(super) struct CheckFlags {
    /// The check: a claim of done counts only if this command exits with 0
    #[arg(long, value_name = "COMMAND")]
    verify: Option<String>,

    /// Files that the agent must not change, such as 'tests/**' (repeatable)
    ///
    /// The check's own files are always protected: scripts, make files, package scripts.
    #[arg(long, value_name = "PATTERN")]
    protect: Vec<String>,

    /// What to do about a claim after a protected file changed: allow, refuse or ask
    #[arg(long, value_name = "WHAT", value_parser = on_change(), hide_possible_values = true)]
    on_change: Option<OnChange>,

    /// Run checks in a clean checkout of the claimed commit
    #[arg(long, value_name = "BOOL", num_args = 0..=1, require_equals = true)]
    #[arg(default_missing_value = "true", hide_possible_values = true)]
    clean: Option<bool>,

    /// Run the checks before the work starts, and warn if all of them pass
    ///
    /// A check that passes before the work proves nothing. With `strict` the run does not start then.
    #[arg(long, value_name = "HOW", num_args = 0..=1, require_equals = true)]
    #[arg(default_missing_value = "true", hide_possible_values = true)]
    #[arg(value_parser = ["true", "false", "strict"])]
    red_first: Option<String>,
}

fn on_change() -> impl TypedValueParser<Value = OnChange> {
    let names = PossibleValuesParser::new(OnChange::ALL.iter().map(|what| what.as_str()));
    names.try_map(|name| OnChange::named(&name).ok_or("no such policy"))
}

impl CheckFlags {
    /// Returns what was said, to be laid over everything else.
    pub(super) fn layer(&self) -> Node {
        let mut tree = Node::empty(Origin::Default);
        self.put(&mut tree);
        tree
    }

    /// Changes what a delivery that is continued goes by.
    pub(super) fn change(&self, config: &mut Config) {
        if let Some(command) = &self.verify {
            // Beside checks with names, it has one too.
            let named = config.checks.iter().any(|check| !check.name.is_empty());
            let name = if named { "verify" } else { "" }.to_owned();
            config.checks.retain(|check| check.name != name);
            config.checks.push(Check { name, ..Check::unnamed(command) });
        }
        if !self.protect.is_empty() {
            config.protect.clone_from(&self.protect);
        }
        config.on_change = self.on_change.or(config.on_change);
        config.clean = self.clean.unwrap_or(config.clean);
        config.red_first = match self.red_first.as_deref() {
            Some("true") => RedFirst::Warn,
            Some("strict") => RedFirst::Strict,
            Some(_) => RedFirst::Off,
            None => config.red_first,
        };
    }

    /// Lays what was said over everything else.
    pub(super) fn put(&self, tree: &mut Node) {
        let word = |text: &str| NodeKind::Word(text.to_owned());
        let said = [
            ("run.verify", "--verify", self.verify.as_deref().map(word)),
            ("proof.on_change", "--on-change", self.on_change.map(|it| word(it.as_str()))),
            ("proof.clean", "--clean", self.clean.map(NodeKind::Bool)),
            ("proof.red_first", "--red-first", self.red_first.as_deref().map(word)),
        ];
        for (path, flag, kind) in said {
            if let Some(kind) = kind {
                tree.put(path, Node { origin: Origin::Flag(flag), kind });
            }
        }
        if !self.protect.is_empty() {
            let origin = || Origin::Flag("--protect");
            let item = |pattern: &String| Node { origin: origin(), kind: word(pattern) };
            let kind = NodeKind::List(self.protect.iter().map(item).collect());
            tree.put("proof.protect", Node { origin: origin(), kind });
        }
    }
}
