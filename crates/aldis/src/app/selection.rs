//! What to scan, for which dialects, and how: the options that `scan` and `explain` share.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use aldis_signal::dialect::Syntax;
use aldis_signal::{Dialect, Rules, Token};
use aldis_transcript::{Format, HOSTS, Input};
use clap::{Args, ValueEnum, ValueHint};

use crate::error::CommandError;
use crate::settings::catalog::{Catalog, choose, load_file};
use crate::settings::project;

/// The shared options as people write them.
#[derive(Debug, Args)]
pub(crate) struct SelectionArgs {
    /// Files to read; `-` or none for standard input
    #[arg(value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) files: Vec<PathBuf>,

    /// Look for this dialect (repeatable; default: all)
    ///
    /// A built-in name, the name of one of your own dialects, or the path of a `.toml` file.
    /// `promise=TEXT` and `turn=KEYWORD` set the text that these two look for.
    #[arg(long, short, value_name = "DIALECT")]
    pub(crate) dialect: Vec<String>,

    /// What the input is: auto, text, or a host such as claude-code or codex
    #[arg(long, value_name = "FORMAT", default_value = "auto", value_parser = parse_input)]
    pub(crate) input: Input,

    /// Read the conversation of this sub-agent instead of the main one
    ///
    /// For a sub-agent's own file, or for what it says in the file of the agent that called it.
    #[arg(long, value_name = "ID")]
    pub(crate) agent: Option<String>,

    /// How strictly to match
    #[arg(long, value_enum, default_value_t = Matching::Careful, value_name = "HOW")]
    pub(crate) matching: Matching,

    /// The run token that the agent was told to repeat
    ///
    /// A signal with another token is refused; one without a token counts unless --require-token is given.
    #[arg(long, value_name = "CODE")]
    pub(crate) token: Option<String>,

    /// Refuse signals without the run token
    #[arg(long, requires = "token")]
    pub(crate) require_token: bool,
}

/// How strictly to match.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Matching {
    /// Refuse what is quoted, echoed, planned or retracted
    Careful,
    /// The plain regexes that people use today, for comparison
    Reference,
}

/// The shared options, made meaningful.
#[derive(Debug)]
pub(crate) struct Selection {
    pub(crate) files: Vec<PathBuf>,
    pub(crate) rules: Rules,
    pub(crate) input: Input,
    /// The sub-agent whose conversation is read.
    pub(crate) agent: Option<String>,
    pub(crate) matching: Matching,
    pub(crate) token: Token,
}

impl Selection {
    /// Checks the options and loads the dialects they name.
    ///
    /// # Errors
    ///
    /// Fails if a dialect does not exist or cannot be used.
    pub(crate) fn new(args: SelectionArgs) -> Result<Self, CommandError> {
        let token = match args.token {
            None => Token::Off,
            Some(code) if code.is_empty() => {
                return Err(CommandError::new("an empty run token protects nothing")
                    .with_help("give --token the code that the agent was told"));
            }
            Some(_) if args.matching == Matching::Reference => {
                return Err(CommandError::new("--token does not work with --matching reference")
                    .with_help("the plain regexes know no tokens"));
            }
            Some(code) if args.require_token => Token::Require(code),
            Some(code) => Token::Accept(code),
        };
        let files = if args.files.is_empty() { vec![PathBuf::from("-")] } else { args.files };
        let rules = Rules::new(chosen(&args.dialect)?);
        let keyword = |dialect: &Arc<Dialect>| matches!(dialect.syntax, Syntax::Trailer(_));
        if token != Token::Off && rules.dialects().iter().all(keyword) {
            return Err(CommandError::new(
                "--token does not work with keywords that end a message",
            )
            .with_help("they have no place for a token; leave it out or add another dialect"));
        }
        let SelectionArgs { input, agent, matching, .. } = args;
        Ok(Self { files, rules, input, agent, matching, token })
    }
}

impl Selection {
    /// Selects a text that a program sends: built-in dialects by name, all of them where none is named.
    ///
    /// # Errors
    ///
    /// Fails if there is no such dialect or format.
    pub(crate) fn of_text(dialects: &[String], input: Option<&str>) -> Result<Self, CommandError> {
        let catalog = Catalog::builtin();
        let mut chosen = Vec::new();
        for name in dialects {
            chosen.push(Arc::clone(&catalog.get(name)?.dialect));
        }
        if chosen.is_empty() {
            chosen = catalog.entries().iter().map(|entry| Arc::clone(&entry.dialect)).collect();
        }
        let input = parse_input(input.unwrap_or("auto")).map_err(CommandError::new)?;
        let (files, rules) = (vec![PathBuf::from("-")], Rules::new(chosen));
        let (agent, matching, token) = (None, Matching::Careful, Token::Off);
        Ok(Self { files, rules, input, agent, matching, token })
    }
}

/// Loads the catalog of the current directory.
///
/// # Errors
///
/// Fails if a user's dialect cannot be used.
pub(crate) fn catalog() -> Result<Catalog, CommandError> {
    Catalog::load(&project::current()?)
}

/// Finds one dialect by name or path, with its word changed if it says so.
///
/// # Errors
///
/// Fails if there is none, or if it has no word to change.
pub(crate) fn find(choice: &str) -> Result<Arc<Dialect>, CommandError> {
    let name = choice.split_once('=').map_or(choice, |(name, _)| name);
    match is_name(name) {
        true => choose(choice, |name| Ok(Arc::clone(&catalog()?.get(name)?.dialect))),
        false => Ok(load_file(Path::new(choice))?.dialect),
    }
}

/// Finds the dialects that are named; without a name, all of them.
///
/// # Errors
///
/// Fails if there is no such dialect, or if a user's one cannot be used.
pub(crate) fn chosen(choices: &[String]) -> Result<Vec<Arc<Dialect>>, CommandError> {
    if choices.is_empty() {
        let catalog = catalog()?;
        return Ok(catalog.entries().iter().map(|entry| Arc::clone(&entry.dialect)).collect());
    }
    let mut dialects = Vec::new();
    for (at, choice) in choices.iter().enumerate() {
        if !choices.iter().take(at).any(|earlier| earlier == choice) {
            dialects.push(find(choice)?);
        }
    }
    Ok(dialects)
}

/// Anything that is not shaped like the name of a dialect is the path of a file.
fn is_name(choice: &str) -> bool {
    !choice.is_empty()
        && choice.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-')
}

fn parse_input(name: &str) -> Result<Input, String> {
    Input::from_name(name).ok_or_else(|| {
        let mut names: Vec<&str> = Format::ALL.iter().map(|format| format.as_str()).collect();
        names.extend(HOSTS);
        names.sort_unstable();
        names.dedup();
        format!("the formats are auto, {}", names.join(", "))
    })
}
