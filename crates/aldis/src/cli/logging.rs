//! Log lines: how much, in which form, and how they get past a live view.
//!
//! This is the one place that sets up a subscriber. Library code says what happens with the macros
//! of `tracing`, which cost one comparison where nobody listens, as in a hook.

use std::env;
use std::io::{self, IsTerminal as _, Write};
use std::panic;

use aldis_signal::redact::redact;
use clap::{ArgAction, Args};
use tracing::level_filters::LevelFilter;
use tracing_subscriber::filter::Targets;
use tracing_subscriber::fmt::MakeWriter;
use tracing_subscriber::layer::SubscriberExt as _;
use tracing_subscriber::util::SubscriberInitExt as _;

use crate::error::CommandError;
use crate::view::live::above_bottom;

/// What is logged: a level, or levels by module. Overrules `-v`.
const FILTER_VARIABLE: &str = "ALDIS_LOG";
/// What our crates log without `-v`, with it, and with more of it.
const LEVELS: [LevelFilter; 4] =
    [LevelFilter::WARN, LevelFilter::INFO, LevelFilter::DEBUG, LevelFilter::TRACE];

/// How much is logged.
#[derive(Clone, Copy, Debug, Args)]
pub(super) struct Logging {
    /// Log what happens to standard error; -vv logs more
    ///
    /// `ALDIS_LOG` says it more exactly, such as `ALDIS_LOG=info,aldis_store=debug`.
    #[arg(short = 'v', global = true, action = ArgAction::Count, display_order = 902)]
    verbosity: u8,
}

/// How a command logs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Manner {
    /// Lines for people, on standard error.
    Lines,
    /// As a service: what happens is logged without `-v`, for programs unless a person looks.
    Service,
    /// It draws on the whole terminal, where lines would be in the way.
    FullScreen,
}

impl Logging {
    /// Begins to log. Only the first call in a process counts.
    ///
    /// # Errors
    ///
    /// Fails if `ALDIS_LOG` cannot be understood.
    pub(super) fn start(self, manner: Manner, color: bool) -> Result<(), CommandError> {
        let is_terminal = io::stderr().is_terminal();
        if manner == Manner::FullScreen && is_terminal {
            return Ok(());
        }
        let filter = self.filter(manner)?;
        let all = tracing_subscriber::fmt().with_max_level(LevelFilter::TRACE).with_writer(Stderr);
        if manner == Manner::Service {
            panic::set_hook(Box::new(|panic| tracing::error!(%panic, "internal error")));
        }
        // A second command in the same process, as in tests, logs like the first.
        let _started = if manner == Manner::Service && !is_terminal {
            all.json().flatten_event(true).finish().with(filter).try_init()
        } else if self.verbosity == 0 && manner == Manner::Lines {
            let plain = all.with_ansi(color).without_time().with_target(false).compact();
            plain.finish().with(filter).try_init()
        } else {
            all.with_ansi(color).compact().finish().with(filter).try_init()
        };
        Ok(())
    }

    /// Returns whether more is wanted than usual.
    pub(super) fn is_verbose(self) -> bool {
        self.verbosity > 0
    }

    fn filter(self, manner: Manner) -> Result<Targets, CommandError> {
        if let Some(text) = env::var_os(FILTER_VARIABLE).filter(|text| !text.is_empty()) {
            return text.to_string_lossy().parse().map_err(|error| {
                CommandError::new(format!("{FILTER_VARIABLE}: {error}"))
                    .with_help("a level, or levels by module: info,aldis_store=debug")
            });
        }
        let usual = usize::from(manner == Manner::Service);
        let level = (usual + usize::from(self.verbosity)).min(LEVELS.len() - 1);
        Ok(Targets::new().with_default(LEVELS[level]))
    }
}

/// Standard error, above whatever is drawn at the bottom of the terminal, without secrets.
#[derive(Clone, Copy, Debug)]
struct Stderr;

impl<'w> MakeWriter<'w> for Stderr {
    type Writer = Self;

    fn make_writer(&'w self) -> Self {
        *self
    }
}

impl Write for Stderr {
    /// Writes one event, which comes whole.
    fn write(&mut self, event: &[u8]) -> io::Result<usize> {
        let text = String::from_utf8_lossy(event);
        above_bottom(|| io::stderr().write_all(redact(&text).as_bytes()))?;
        Ok(event.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        io::stderr().flush()
    }
}
