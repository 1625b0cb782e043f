//! Plays one round of a script.

use std::fs::{self, OpenOptions};
use std::io::{self, Write};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::thread;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use serde_json::{Value, json};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::low_level::emulate_default_handler;

use super::script::{Flood, Script, Spend, Step};
use super::voice::{Moment, Voice};

/// The shell that runs a script's commands.
const SHELL: &str = "/bin/sh";
/// How much is written at once in a flood.
const CHUNK: usize = 64 * 1024;

/// Counts this start in a file, and returns its number from 1. Two starts never get the same: each
/// adds one byte at the end.
pub(crate) fn round_of(counter: &Path) -> io::Result<u64> {
    let mut file = OpenOptions::new().create(true).append(true).open(counter)?;
    file.write_all(b".")?;
    io::Seek::stream_position(&mut file)
}

/// An agent at work.
pub(crate) struct Player<'a> {
    voice: &'a Voice,
    prompt: &'a str,
    out: &'a mut dyn Write,
    spent: Spend,
    id: u64,
}

impl<'a> Player<'a> {
    pub(crate) fn new(script: &'a Script, prompt: &'a str, out: &'a mut dyn Write) -> Self {
        Self { voice: &script.voice, prompt, out, spent: Spend::default(), id: 0 }
    }

    /// Does everything, and returns the exit code.
    ///
    /// # Errors
    ///
    /// Fails if nobody listens any more, or a step cannot be taken.
    pub(crate) fn play(mut self, steps: &[Step]) -> io::Result<u8> {
        self.tell(Moment::Open, &[])?;
        for step in steps {
            if let Some(code) = self.step(step)? {
                return Ok(code);
            }
        }
        self.tell(Moment::Close, &[])?;
        Ok(0)
    }

    /// Takes a step. Returns the exit code if it is the last.
    fn step(&mut self, step: &Step) -> io::Result<Option<u8>> {
        match step {
            Step::Say(text) => self.tell(Moment::Say, &[("text", json!(text))])?,
            Step::Tool(tool) => {
                let values = [("tool", json!(tool.name)), ("output", json!(tool.output))];
                self.tell(Moment::Tool, &values)?;
            }
            Step::Spend(more) => {
                self.spent.tokens = self.spent.tokens.saturating_add(more.tokens);
                self.spent.dollars += more.dollars;
            }
            Step::Retry(what) => self.tell(Moment::Retry, &[("what", json!(what))])?,
            Step::Limit(limit) => {
                let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
                // Hosts tell whole seconds; a wait that is too short would be met by the same limit.
                let until = now.as_secs() + u64::from(limit.seconds) + 1;
                let values = [
                    ("what", json!(limit.what)),
                    ("seconds", json!(limit.seconds)),
                    ("until", json!(until)),
                ];
                self.tell(Moment::Limit, &values)?;
                return Ok(Some(1));
            }
            Step::Fail(what) => {
                self.tell(Moment::Fail, &[("what", json!(what))])?;
                return Ok(Some(1));
            }
            Step::Write(text) => self.write(text.as_bytes())?,
            Step::Complain(text) => io::stderr().write_all(text.as_bytes())?,
            Step::Flood(flood) => self.flood(flood)?,
            Step::Pause(seconds) => {
                thread::sleep(Duration::try_from_secs_f64(*seconds).unwrap_or_default());
            }
            Step::Hang(hang) => {
                if *hang {
                    loop {
                        thread::park();
                    }
                }
            }
            Step::Run(command) => drop(shell(command).status()?),
            Step::Leave(command) => drop(shell(command).spawn()?),
            Step::Keep(file) => fs::write(file, self.prompt)?,
            Step::Stubborn(stubborn) => {
                let asked = if *stubborn { &[SIGTERM, SIGINT, SIGHUP][..] } else { &[] };
                for signal in asked {
                    signal_hook::flag::register(*signal, Arc::new(AtomicBool::new(false)))?;
                }
            }
            Step::Exit(code) => return Ok(Some(*code)),
            Step::Crash(signal) => emulate_default_handler(*signal)?,
        }
        Ok(None)
    }

    fn tell(&mut self, moment: Moment, values: &[(&str, Value)]) -> io::Result<()> {
        self.id += 1;
        let own = [
            ("id", json!(self.id)),
            ("tokens", json!(self.spent.tokens)),
            ("dollars", json!(self.spent.dollars)),
        ];
        let line = self.voice.render(moment, &[values, &own].concat());
        self.write(line.as_bytes())
    }

    fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.out.write_all(bytes)?;
        self.out.flush()
    }

    fn flood(&mut self, flood: &Flood) -> io::Result<()> {
        let line = [&vec![b'x'; flood.line.max(1) - 1][..], b"\n"].concat();
        let chunk = line.repeat((CHUNK / line.len()).max(1));
        let mut left = flood.bytes;
        while left > 0 {
            let part = chunk.len().min(usize::try_from(left).unwrap_or(usize::MAX));
            self.out.write_all(chunk.get(..part).unwrap_or_default())?;
            left -= part as u64;
        }
        self.out.flush()
    }
}

/// A command whose output is nobody's: what the agent says is all it says.
fn shell(command: &str) -> Command {
    let mut shell = Command::new(SHELL);
    shell.args(["-c", command]).stdin(Stdio::null()).stdout(Stdio::null());
    shell
}
