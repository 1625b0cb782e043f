//! `aldis token`: what machines, programs and agents elsewhere may do at `aldis serve`.

use std::io::Write as _;
use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Subcommand, ValueHint};

use super::Outcome;
use crate::error::CommandError;
use crate::io::Io;
use crate::settings::config::Seconds;
use crate::settings::project::{self, Place};
use crate::settings::store::StorePlace;
use crate::settings::tokens::{self, Grant, Scope};
use crate::settings::{clock, home};
use crate::view::wire::call::TokenLine;
use crate::view::{display, json};

/// Make, list and revoke tokens for `aldis serve`
///
/// A token says what its owner may do, and in which project. Every server of the store takes it.
#[derive(Debug, Subcommand)]
pub(super) enum TokenCommand {
    New(NewArgs),
    List(ListArgs),
    Revoke(RevokeArgs),
}

/// Make a token, and print it once
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  aldis token new --scope signal --agent reviewer --expires 7d
  aldis token new --scope work --project /srv/shop
  aldis token new --scope observe --all-projects")]
pub(super) struct NewArgs {
    /// What it allows
    #[arg(long, value_enum)]
    scope: Scope,

    /// The agent that uses it, for `signal`
    #[arg(long, value_name = "NAME", required_if_eq("scope", "signal"))]
    agent: Option<String>,

    /// The only run that it is for (default: every run of the project)
    #[arg(long, value_name = "RUN")]
    run: Option<String>,

    /// The project that it is for (default: the one around this directory)
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath, conflicts_with = "all_projects")]
    project: Option<PathBuf>,

    /// Make it for every project
    #[arg(long)]
    all_projects: bool,

    /// How long the token is valid
    #[arg(long, value_name = "TIME", default_value = "30d")]
    expires: Seconds<1>,

    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

/// List the tokens
#[derive(Debug, Args)]
pub(super) struct ListArgs {
    /// Print one JSON object per line
    #[arg(long)]
    json: bool,
}

/// Revoke a token
///
/// It is refused from then on, and browsers that logged in by it are signed out.
#[derive(Debug, Args)]
pub(super) struct RevokeArgs {
    /// Its id, as `aldis token list` shows it
    id: String,

    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

impl NewArgs {
    fn grant(&self) -> Result<Grant, CommandError> {
        let project = match (&self.project, self.all_projects) {
            (_, true) => None,
            // One of another machine need not be here: then it is named as it is.
            (Some(named), false) => Some(Place::of(named, Some(named)).root().to_owned()),
            (None, false) => Some(project::here()?.root().to_owned()),
        };
        let project = project.as_deref().map(project::name);
        let (agent, run) = (self.agent.clone(), self.run.clone());
        Ok(Grant { scope: self.scope, agent, run, project })
    }
}

pub(super) fn run(io: &mut Io, command: &TokenCommand) -> Result<Outcome, CommandError> {
    let state = home::state_directory(io.state_dir.as_deref())?;
    let store = StorePlace::of(&state)?.open()?.shared();
    tokens::take_over(&state, &*store)?;
    let now = clock::now()?;
    match command {
        TokenCommand::New(args) => {
            let expires = now.after(Duration::from_secs(args.expires.0));
            let (secret, token) = tokens::create(&*store, args.grant()?, now, expires)?;
            if args.json {
                let line = TokenLine { token: Some(secret), ..token.line(now) };
                json::write_line(&mut io.stdout, &line)?;
            } else {
                writeln!(io.stdout, "{secret}")?;
                let id = token.id();
                writeln!(io.stderr, "token {id} is valid until {expires}; it is shown once")?;
            }
        }
        TokenCommand::List(args) => {
            for token in tokens::list(&*store)? {
                let line = token.line(now);
                match args.json {
                    true => json::write_line(&mut io.stdout, &line)?,
                    false => writeln!(io.stdout, "{}", shown(&line))?,
                }
            }
        }
        TokenCommand::Revoke(args) => {
            let Some(token) = tokens::revoke(&*store, &args.id)? else {
                let id = display::line(&args.id);
                writeln!(io.stderr, "there is no token `{id}`; see aldis token list")?;
                return Ok(Outcome::No);
            };
            match args.json {
                true => {
                    let line = TokenLine { valid: false, ..token.line(now) };
                    json::write_line(&mut io.stdout, &line)?;
                }
                false => writeln!(io.stdout, "Revoked token {}", token.id())?,
            }
        }
    }
    Ok(Outcome::Yes)
}

/// A token as people read it.
fn shown(line: &TokenLine) -> String {
    let agent = line.agent.as_deref().map(|agent| format!(" as {}", display::line(agent)));
    let place = match (&line.run, &line.project) {
        (Some(run), _) => format!("run {}", display::line(run)),
        (None, Some(project)) => display::line(project),
        (None, None) => "all projects".to_owned(),
    };
    let until = if line.valid { "valid until" } else { "expired at" };
    let (scope, agent) = (&line.scope, agent.unwrap_or_default());
    format!("{}  {scope}{agent}  {place}  {until} {}", line.id, line.expires)
}
