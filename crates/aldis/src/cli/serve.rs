//! `aldis serve`: the HTTP API, the event stream, the dashboard and the turn manager.

use std::fs;
use std::io::Write as _;
use std::net::SocketAddr;
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};

use clap::{Args, ValueHint};
use serde::Deserialize;

use super::Outcome;
use crate::error::CommandError;
use crate::io::Io;
use crate::notify::configured::{SinkConfig, Sinks};
use crate::server::connections::Limits;
use crate::server::state_files::{self, Imported};
use crate::server::{self, Options};
use crate::settings::home;
use crate::view::display;

/// Where people find us unless they say otherwise.
const LISTEN: &str = "127.0.0.1:7373";
const CONFIG: &str = "serve.toml";

/// Serve the HTTP API, the event stream and the dashboard
///
/// Listens on loopback only. Requests need the token in `serve.token` of the state directory; a
/// browser is logged in by the link that is printed, once. Ends on SIGINT or SIGTERM.
#[derive(Debug, Args)]
#[command(after_help = "Example:
  aldis serve --listen 127.0.0.1:0")]
pub(super) struct ServeArgs {
    /// The address to listen on; port 0 takes any
    #[arg(long, value_name = "ADDRESS", default_value = LISTEN)]
    listen: SocketAddr,

    /// Where sinks are configured
    ///
    /// By default `serve.toml` in the state directory, if it is there.
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    config: Option<PathBuf>,

    /// Personas for channels that bring none: a JSON file, or a directory of them
    #[arg(long, value_name = "PATH", value_hint = ValueHint::AnyPath)]
    personas: Option<PathBuf>,

    /// Take over the channels of another turn manager's state file
    ///
    /// Channels that exist are left alone. A file that is damaged is set aside as
    /// `FILE.corrupted.MILLISECONDS`, and the server starts without it; nor need there be a file.
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    import: Option<PathBuf>,
}

/// The file as people write it.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct Config {
    #[serde(default)]
    sinks: Vec<SinkConfig>,
    connections: Option<NonZeroUsize>,
    connections_per_peer: Option<NonZeroUsize>,
}

impl Config {
    fn limits(&self) -> Limits {
        let usual = Limits::default();
        Limits {
            all: self.connections.map_or(usual.all, NonZeroUsize::get),
            per_peer: self.connections_per_peer.map_or(usual.per_peer, NonZeroUsize::get),
        }
    }
}

pub(super) fn run(io: &mut Io, args: &ServeArgs) -> Result<Outcome, CommandError> {
    if !args.listen.ip().is_loopback() {
        return Err(CommandError::new(format!("{} is not a loopback address", args.listen))
            .with_help("the server speaks plain HTTP: reach it through a tunnel"));
    }
    let state_dir = home::state_directory(io.state_dir.as_deref())?;
    let path = args.config.clone().unwrap_or_else(|| state_dir.join(CONFIG));
    let config = match fs::read_to_string(&path) {
        Ok(text) => config(&text, &path)?,
        Err(error) if args.config.is_none() && error.kind() == std::io::ErrorKind::NotFound => {
            Config::default()
        }
        Err(error) => return Err(CommandError::file(&path, &error)),
    };
    let limits = config.limits();
    let sinks = Sinks::new(config.sinks, path.parent().unwrap_or(&path))?;
    let personas = args.personas.as_deref().map(state_files::personas).transpose()?;
    let personas = personas.unwrap_or_default();
    let imported = args.import.as_deref().map(|file| state_files::board(file, &personas));
    let Imported { board, problem } = imported.transpose()?.unwrap_or_default();
    if let Some(problem) = problem {
        writeln!(io.stderr, "warning: {}", display::line(&problem))?;
    }
    let options = Options { state_dir, listen: args.listen, limits, sinks, personas, board };
    server::serve(options, |address, link| {
        writeln!(io.stdout, "listening on http://{address}")?;
        writeln!(io.stdout, "dashboard: {link} (works once, for 15 minutes)")?;
        io.stdout.flush()?;
        Ok(())
    })?;
    Ok(Outcome::Yes)
}

fn config(text: &str, path: &Path) -> Result<Config, CommandError> {
    toml::from_str(text)
        .map_err(|error| CommandError::new(format!("`{}`: {error}", path.display())))
}
