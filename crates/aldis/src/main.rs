//! The binary: arguments and streams into [`aldis::run`].

use std::process::ExitCode;

fn main() -> ExitCode {
    aldis::run(std::env::args_os(), aldis::Io::standard())
}
