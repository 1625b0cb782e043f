//! The binary: arguments and streams into [`aldis::run`].

use std::process::ExitCode;

fn main() -> ExitCode {
    // A file size limit must not kill a hook or a server: what cannot be written is an error.
    aldis_process::ignore_file_size_signal();
    aldis::run(std::env::args_os(), aldis::Io::standard())
}
