//! The reaper as a program of its own, for programs that embed this crate and have no hidden command
//! for it (see `Launch::reaper`), and for the tests.

use std::env;
use std::io::{self, Write as _};
use std::process::ExitCode;

use aldis_process::{REAPER_COMMAND, ReaperArgs, run_reaper};

fn main() -> ExitCode {
    let mut args = env::args_os().skip(1);
    let command = args.next().filter(|command| command == REAPER_COMMAND);
    let result = match command.and_then(|_| ReaperArgs::parse(args)) {
        Some(args) => run_reaper(&args),
        None => Err(io::Error::other("started by a supervisor, not by people")),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            // There is nobody else to tell.
            let _written = writeln!(io::stderr(), "aldis-agent-reaper: {error}");
            ExitCode::from(2)
        }
    }
}
