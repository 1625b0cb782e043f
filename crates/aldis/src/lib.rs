//! Everything of Aldis that touches the world: files, streams, the terminal.
//!
//! The binary `aldis` is [`run`] over the process's own arguments and streams. Deciding what is a
//! signal is the business of [`aldis_signal`]; this crate reads input, chooses dialects and shows
//! findings to people and, in the forms of [`view::wire`], to programs.

mod agents;
pub mod app;
mod cli;
#[doc(hidden)] // For the simulator, which plays the loop of runs and deliveries in its own world.
pub mod coordinate;
mod error;
mod failures;
pub mod hosts;
mod io;
mod mcp;
mod notify;
mod proof;
mod receipts;
mod server;
mod settings;
mod telemetry;
mod tui;
pub mod view;

use std::ffi::OsString;
use std::process::ExitCode;

pub use crate::io::{Color, Io};

/// Runs one command and returns its exit code: 0 for yes, 1 for no, 2 for an error.
pub fn run(args: impl IntoIterator<Item = OsString>, mut io: Io) -> ExitCode {
    let code = cli::run(args, &mut io);
    // Nobody is left to tell when this fails.
    let _flushed = io.stdout.flush();
    ExitCode::from(code)
}

/// Compiles and runs the examples of the document.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/embedding.md")]
struct Embedding;
