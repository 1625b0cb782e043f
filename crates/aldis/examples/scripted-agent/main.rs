//! An agent that follows a script: it says what it is told to say, in the form of any host, and
//! misbehaves on command. Tests run it as `scripted-agent SCRIPT`; nothing of it is in the product.
//!
//! A script is a TOML file. `voice` names the form in which it writes: `text` (the default) or a
//! host's live output, by the names of `--input`. Each `[[round]]` is one start of the agent; the
//! last is repeated for ever. A round is a list of steps:
//!
//! ```toml
//! voice = "claude-stream"
//!
//! [[round]]
//! do = [
//!     { tool = { name = "Bash", output = "2 of 118 tests failed" } },
//!     { say = "Two tests fail. <chorus>PROGRESS: 60</chorus>" },
//!     { spend = { tokens = 1200, dollars = 0.03 } },
//! ]
//!
//! [[round]]
//! do = [{ limit = { what = "Rate limit reached", seconds = 2 } }]
//!
//! [[round]]
//! do = [{ run = "touch done" }, { pause = 0.5 }, { say = "<chorus>COMPLETE</chorus>" }]
//! ```
//!
//! | step | does |
//! |---|---|
//! | `say = TEXT` | says it, as the agent |
//! | `tool = { name, output }` | uses a tool that prints `output` |
//! | `spend = { tokens, dollars }` | adds to what the host reports when it ends |
//! | `retry = TEXT` | the host tries again by itself |
//! | `limit = { what, seconds }` | the service refuses for so long: the host says so and ends |
//! | `fail = TEXT` | the host gives up for good and ends |
//! | `write = TEXT`, `complain = TEXT` | bytes on standard output or error, as they are |
//! | `flood = { bytes, line }` | so many bytes, in lines of this length |
//! | `pause = SECONDS` | nothing, for a while |
//! | `hang = true` | nothing, for ever |
//! | `run = COMMAND` | runs a shell command and waits for it |
//! | `leave = COMMAND` | starts one and does not wait for it |
//! | `keep = FILE` | writes the prompt of this round to a file |
//! | `stubborn = true` | takes no notice of being asked to stop, from here on |
//! | `exit = CODE` | ends at once, without the host's last word |
//! | `crash = SIGNAL` | ends by a signal |
//!
//! Where a script does not end a round itself, the host says its last word, with what was spent, and
//! ends with 0. Starts are counted in a file beside the script, so that rounds follow one another.

#![cfg(target_os = "linux")]

mod play;
mod script;
mod voice;

use std::env;
use std::error::Error;
use std::fs;
use std::io;
use std::path::PathBuf;
use std::process::ExitCode;

use self::play::{Player, round_of};
use self::script::Script;

/// Plays one round of the script that the first argument names. The prompt is the last argument, else
/// what is on standard input.
fn main() -> Result<ExitCode, Box<dyn Error>> {
    let mut args = env::args_os().skip(1);
    let path = PathBuf::from(args.next().ok_or("which script?")?);
    let script = Script::parse(&fs::read_to_string(&path)?)?;
    let round = round_of(&path.with_added_extension("count"))?;
    let prompt = match args.last() {
        Some(prompt) => prompt.to_string_lossy().into_owned(),
        // A prompt that cannot be read is none.
        None => io::read_to_string(io::stdin()).unwrap_or_default(),
    };
    let mut out = io::stdout().lock();
    let code = Player::new(&script, &prompt, &mut out).play(script.steps(round))?;
    Ok(ExitCode::from(code))
}
