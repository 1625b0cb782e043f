//! `aldis serve`: the HTTP API, the event stream, the dashboard and the turn manager.

use std::fs;
use std::io::Write as _;
use std::net::SocketAddr;
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};

use clap::{Args, ValueHint};
use qrcode::QrCode;
use qrcode::render::unicode;
use serde::Deserialize;

use super::Outcome;
use crate::error::CommandError;
use crate::io::Io;
use crate::notify::configured::{SinkConfig, Sinks};
use crate::server::access::login_code;
use crate::server::connections::Limits;
use crate::server::oidc::{IssuerConfig, Issuers};
use crate::server::state_files::{self, Imported};
use crate::server::{self, Options, login_link};
use crate::settings::config::Layered;
use crate::settings::item_link::ItemLinks;
use crate::settings::store::StorePlace;
use crate::settings::{clock, home};
use crate::view::display;

/// Where people find us unless they say otherwise.
const LISTEN: &str = "127.0.0.1:7373";
const CONFIG: &str = "serve.toml";

/// Serve the HTTP API, the event stream and the dashboard
///
/// Requests need a token: one of `aldis token new`, or the one in `serve.token` of the state directory. A
/// browser logs in by a token or by a link: one is printed, and `--link` makes more while the server runs.
/// Beyond this machine it listens only with TLS (`serve.tls_cert`), or behind a proxy (`--allow-host`).
/// Ends on SIGINT or SIGTERM.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  aldis serve
  aldis serve --link
  aldis serve --listen 127.0.0.1:0
  aldis serve --listen 0.0.0.0:7373 --allow-host aldis.example.org")]
pub(super) struct ServeArgs {
    /// The address to listen on; port 0 takes any
    #[arg(long, value_name = "ADDRESS", default_value = LISTEN)]
    listen: SocketAddr,

    /// A name under which clients reach it, besides its address; behind a proxy, the one that it passes on
    #[arg(long = "allow-host", value_name = "NAME")]
    allow_hosts: Vec<String>,

    /// Where sinks and issuers of identity tokens are configured
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

    /// Print a link that logs in one more browser at the server that runs, also as a QR code
    #[arg(long, conflicts_with_all = ["listen", "allow_hosts", "config", "personas", "import"])]
    link: bool,
}

/// The file as people write it.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct Config {
    #[serde(default)]
    sinks: Vec<SinkConfig>,
    #[serde(default)]
    issuers: Vec<IssuerConfig>,
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
    if args.link {
        return link(io);
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
    let directory = path.parent().unwrap_or(&path);
    let issuers = Issuers::new(config.issuers, directory)?;
    let sinks = Sinks::new(config.sinks, directory)?;
    let personas = args.personas.as_deref().map(state_files::personas).transpose()?;
    let personas = personas.unwrap_or_default();
    let imported = args.import.as_deref().map(|file| state_files::board(file, &personas));
    let Imported { board, problem } = imported.transpose()?.unwrap_or_default();
    if let Some(problem) = problem {
        writeln!(io.stderr, "warning: {}", display::line(&problem))?;
    }
    let serve = Layered::of_user()?.serve();
    let (listen, allow_hosts) = (args.listen, args.allow_hosts.clone());
    let options =
        Options { state_dir, listen, limits, sinks, personas, board, serve, issuers, allow_hosts };
    server::serve(options, |address, link| {
        writeln!(io.stdout, "listening on {address}")?;
        writeln!(io.stdout, "dashboard: {link} (works once, for 15 minutes)")?;
        io.stdout.flush()?;
        Ok(())
    })?;
    Ok(Outcome::Yes)
}

/// Prints a link to log in at the server that uses this state directory.
fn link(io: &mut Io) -> Result<Outcome, CommandError> {
    let state = home::state_directory(io.state_dir.as_deref())?;
    let none = || {
        CommandError::new(format!("no server uses `{}`", state.display()))
            .with_help("start one: aldis serve")
    };
    let here = server::running(&state).ok_or_else(none)?;
    let base = ItemLinks::read(&state).map_or_else(|| here.clone(), |links| links.base);
    let store = StorePlace::of(&state)?.open()?.shared();
    let link = login_link(&base, &login_code(&*store, clock::now()?)?);
    let code = QrCode::new(&link).map_err(|error| CommandError::new(error.to_string()))?;
    // Cameras want it dark on light, whatever the terminal's colours are.
    let picture = code
        .render::<unicode::Dense1x2>()
        .dark_color(unicode::Dense1x2::Dark)
        .light_color(unicode::Dense1x2::Light)
        .build();
    for row in picture.lines() {
        let row = if io.color_stdout { &format!("\x1b[30;47m{row}\x1b[0m") } else { row };
        writeln!(io.stdout, "{row}")?;
    }
    writeln!(io.stdout, "{link}")?;
    writeln!(io.stdout, "It works once, for 15 minutes.")?;
    if base == here {
        let help = "on this machine only; for a phone, set serve.public_url: docs/serve.md";
        writeln!(io.stderr, "{help}")?;
    }
    Ok(Outcome::Yes)
}

fn config(text: &str, path: &Path) -> Result<Config, CommandError> {
    toml::from_str(text)
        .map_err(|error| CommandError::new(format!("`{}`: {error}", path.display())))
}
