//! An agent that follows a script, for tests: `scripted-agent SCRIPT [PROMPT]`. An example, and not a
//! command of the program, so that users neither build nor install it.

use std::io::{self, Read as _};
use std::process::ExitCode;

fn main() -> io::Result<ExitCode> {
    let mut args = std::env::args_os().skip(1);
    let script = args.next().ok_or_else(|| io::Error::other("no script"))?;
    let mut prompt = String::new();
    match args.last() {
        Some(last) => prompt.push_str(&last.to_string_lossy()),
        // A prompt that cannot be read is none.
        None => drop(io::stdin().read_to_string(&mut prompt)),
    }
    let code = aldis_testkit::scripted::play(script.as_ref(), &prompt, &mut io::stdout())?;
    Ok(code.into())
}
