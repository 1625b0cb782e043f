//! `aldis token`: tokens by which agents elsewhere report to `aldis serve`.

use std::io::Write as _;
use std::time::Duration;

use aldis_signal::time::Timestamp;
use clap::{Args, Subcommand};

use super::Outcome;
use crate::error::CommandError;
use crate::io::Io;
use crate::settings::config::Seconds;
use crate::settings::project::{self, Place};
use crate::settings::tokens::{self, NewToken, Scope, Token};
use crate::settings::{clock, home};
use crate::view::wire::call::TokenLine;
use crate::view::{display, json};

/// Make and revoke tokens for agents that report over HTTP
///
/// `/mcp` of `aldis serve` takes them. They can report, and do nothing else.
#[derive(Debug, Subcommand)]
pub(super) enum TokenCommand {
    New(NewArgs),
    List(ListArgs),
    Revoke(RevokeArgs),
}

/// Make a token, and print it once
#[derive(Debug, Args)]
#[command(after_help = "Example:
  aldis token new --scope signal --agent reviewer --expires 7d")]
pub(super) struct NewArgs {
    /// What it may do
    #[arg(long, value_enum)]
    scope: Scope,

    /// The agent that uses it
    #[arg(long, value_name = "NAME")]
    agent: String,

    /// The run that it reports for (default: the active run of this project)
    #[arg(long, value_name = "RUN")]
    run: Option<String>,

    /// How long it is valid
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
#[derive(Debug, Args)]
pub(super) struct RevokeArgs {
    /// Its id, as `aldis token list` shows it
    id: String,
}

pub(super) fn run(io: &mut Io, command: &TokenCommand) -> Result<Outcome, CommandError> {
    let state = home::state_directory(io.state_dir.as_deref())?;
    let now = clock::now()?;
    match command {
        TokenCommand::New(args) => {
            let place = Place::of(&project::current()?, None);
            let new = NewToken {
                scope: args.scope,
                agent: args.agent.clone(),
                run: args.run.clone(),
                project: place.root().to_owned(),
                created: now,
                expires: now.after(Duration::from_secs(args.expires.0)),
            };
            let (secret, token) = tokens::create(&state, new)?;
            if args.json {
                let line = TokenLine { token: Some(secret), ..line_of(&token, now) };
                json::write_line(&mut io.stdout, &line)?;
            } else {
                writeln!(io.stdout, "{secret}")?;
                let until = token.expires;
                writeln!(
                    io.stderr,
                    "token {} is valid until {until}; it is shown once",
                    token.id()
                )?;
            }
        }
        TokenCommand::List(args) => {
            for token in tokens::list(&state)? {
                let line = line_of(&token, now);
                if args.json {
                    json::write_line(&mut io.stdout, &line)?;
                    continue;
                }
                let until = if line.valid { "valid until" } else { "expired at" };
                let agent = display::line(&line.agent);
                writeln!(io.stdout, "{}  {agent}  {until} {}", line.id, line.expires)?;
            }
        }
        TokenCommand::Revoke(args) => {
            if !tokens::revoke(&state, &args.id)? {
                writeln!(io.stderr, "there is no token `{}`; see aldis token list", args.id)?;
                return Ok(Outcome::No);
            }
            writeln!(io.stdout, "Revoked token {}", args.id)?;
        }
    }
    Ok(Outcome::Yes)
}

/// A token as programs read it, without its secret.
fn line_of(token: &Token, now: Timestamp) -> TokenLine {
    let Scope::Signal = token.scope;
    TokenLine {
        v: 1,
        id: token.id().to_owned(),
        scope: "signal".to_owned(),
        agent: token.agent.clone(),
        run: token.run.clone(),
        expires: token.expires.to_string(),
        valid: token.expires > now,
        token: None,
    }
}
