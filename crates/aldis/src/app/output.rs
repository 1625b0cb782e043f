//! What the agents of a run wrote, from the logs that are kept of it, while it grows.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};

use aldis_signal::redact::Redactor;
use aldis_signal::time::Timestamp;
use aldis_signal::{Role, Rules};
use aldis_store::RunId;
use aldis_transcript::Input;
use aldis_transcript::events::{HostEvent, Zone};

use crate::agents::listener::{Listener, Listening, Report};
use crate::agents::output_log::LoggedAgent;
use crate::app::source::is_same_file;
use crate::view::live::tools::ToolCall;

/// How much is read at once.
const PIECE: usize = 64 * 1024;

/// Something that an agent wrote. Exhaustive: whoever shows it shows either.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Written {
    /// Whole lines of text, without secrets. Not fit for a terminal yet.
    Text {
        /// What.
        text: String,
        /// Whether the agent said it itself, and not one of its sub-agents.
        own: bool,
    },
    /// It calls a tool.
    Tool(WrittenCall),
    /// A call ended: which, whether it failed, and its exit code.
    ToolEnded(String, bool, Option<i64>),
    /// Its host's own lines, as they are kept.
    Raw(Vec<u8>),
}

/// A call of a tool, as its host reports it. Not fit for a terminal yet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct WrittenCall {
    pub(crate) call: String,
    pub(crate) name: String,
    pub(crate) about: String,
    pub(crate) is_command: bool,
    pub(crate) lines: Option<(u64, u64)>,
}

impl WrittenCall {
    /// Returns it as it is shown.
    pub(crate) fn shown(&self) -> ToolCall<'_> {
        let Self { call, name, about, is_command, lines } = self;
        ToolCall { call, name, about, is_command: *is_command, lines: *lines }
    }
}

/// How logs are read.
#[derive(Clone, Copy, Debug)]
enum ReadAs<'r> {
    /// As they are kept.
    Raw,
    /// The words in them.
    Words(&'r Rules),
    /// Words and calls of tools.
    Work(&'r Rules),
}

/// Reads the logs of a run, all that is there and then what is added.
pub(crate) struct OutputReader<'r> {
    state: PathBuf,
    run: RunId,
    /// The task whose agents are wanted.
    task: Option<String>,
    read_as: ReadAs<'r>,
    logs: BTreeMap<LoggedAgent, LogReader<'r>>,
}

impl<'r> OutputReader<'r> {
    /// Text is taken out of the hosts' lines with `rules`; without, the lines are given as they are.
    pub(crate) fn new(
        state: &Path,
        run: &RunId,
        task: Option<&str>,
        rules: Option<&'r Rules>,
    ) -> Self {
        let (state, task) = (state.to_owned(), task.map(str::to_owned));
        let read_as = rules.map_or(ReadAs::Raw, ReadAs::Words);
        Self { state, run: run.clone(), task, read_as, logs: BTreeMap::new() }
    }

    /// As [`new`](Self::new), with the tools that agents call.
    pub(crate) fn with_tools(state: &Path, run: &RunId, rules: &'r Rules) -> Self {
        Self { read_as: ReadAs::Work(rules), ..Self::new(state, run, None, None) }
    }

    /// Returns what was written since the last call, at most a piece of each agent's: nothing means
    /// that there is no more for now.
    ///
    /// # Errors
    ///
    /// Fails if a log cannot be read.
    pub(crate) fn read(&mut self) -> io::Result<Vec<(LoggedAgent, Written)>> {
        for agent in LoggedAgent::all_of(&self.state, &self.run) {
            if self.task.is_none() || self.task == agent.task {
                let read_as = self.read_as;
                self.logs.entry(agent).or_insert_with(|| LogReader::new(read_as));
            }
        }
        let mut all = Vec::new();
        for (agent, log) in &mut self.logs {
            let files: Vec<PathBuf> = agent.files(&self.state, &self.run).collect();
            all.extend(log.read(&files)?.into_iter().map(|written| (agent.clone(), written)));
        }
        Ok(all)
    }

    /// Returns what was held back: nothing more is written.
    pub(crate) fn finish(self) -> Vec<(LoggedAgent, Written)> {
        let mut all = Vec::new();
        for (agent, LogReader { words, .. }) in self.logs {
            if let Some(Words { listener, mut redactor }) = words {
                listener.finish(NEVER, &mut |report| {
                    all.extend(told(&mut redactor, report).map(|told| (agent.clone(), told)));
                });
            }
        }
        all
    }
}

/// Reads the log of one agent: files that give way to newer ones.
struct LogReader<'r> {
    file: Option<File>,
    words: Option<Words<'r>>,
}

/// Takes the words of an agent out of what its host writes.
struct Words<'r> {
    listener: Listener<'r>,
    redactor: Redactor,
}

impl<'r> LogReader<'r> {
    fn new(read_as: ReadAs<'r>) -> Self {
        let (rules, zone) = match read_as {
            ReadAs::Raw => return Self { file: None, words: None },
            ReadAs::Words(rules) => (rules, None),
            ReadAs::Work(rules) => (rules, Some(Zone::utc())),
        };
        let listening = Listening::live(rules, Input::Auto, true);
        let listener = Listener::new(listening, zone.as_ref());
        Self { file: None, words: Some(Words { listener, redactor: Redactor::default() }) }
    }

    /// Reads until there is something to tell, or no more. `files` are newest first.
    fn read(&mut self, files: &[PathBuf]) -> io::Result<Vec<Written>> {
        let mut all = Vec::new();
        let mut piece = vec![0; PIECE];
        while all.is_empty() {
            // Looked for first: what is written until then is still read from the file at hand.
            let next = self.next(files)?;
            let length = self.file.as_mut().map_or(Ok(0), |file| file.read(&mut piece))?;
            match (&mut self.words, next) {
                (_, None) if length == 0 => break,
                (_, Some(next)) if length == 0 => {
                    self.file = match File::open(next) {
                        // It gave way just now, and is found under its new name.
                        Err(error) if error.kind() == io::ErrorKind::NotFound => None,
                        opened => Some(opened?),
                    };
                }
                (None, _) => all.push(Written::Raw(piece[..length].to_vec())),
                (Some(Words { listener, redactor }), _) => {
                    listener.push(&piece[..length], NEVER, &mut |report| {
                        all.extend(told(redactor, report));
                    });
                }
            }
        }
        Ok(all)
    }

    /// Returns the file that comes after the one at hand, or the oldest.
    fn next<'f>(&self, files: &'f [PathBuf]) -> io::Result<Option<&'f PathBuf>> {
        let oldest = || files.iter().rfind(|file| file.exists());
        let Some(file) = &self.file else { return Ok(oldest()) };
        let own = file.metadata()?;
        let is_own = |path: &PathBuf| fs::metadata(path).is_ok_and(|it| is_same_file(&it, &own));
        Ok(match files.iter().position(is_own) {
            Some(at) => at.checked_sub(1).and_then(|at| files.get(at)),
            None => oldest(),
        })
    }
}

/// The time matters only to what hosts report about themselves.
const NEVER: Timestamp = Timestamp::from_millis(0);

/// Returns what an agent said, and the tools that it called where its host's reports are read. Prompts
/// and what a host says about itself are only in its own lines.
fn told(redactor: &mut Redactor, report: Report) -> Option<Written> {
    let (origin, text) = match report {
        Report::Text { origin, text, .. } => (origin, text),
        Report::Host(HostEvent::Tool { call, name, about, is_command, lines }) => {
            return Some(Written::Tool(WrittenCall { call, name, about, is_command, lines }));
        }
        Report::Host(HostEvent::ToolEnded { call, failed, exit_code }) => {
            return Some(Written::ToolEnded(call, failed, exit_code));
        }
        _ => return None,
    };
    if text.is_empty() || !matches!(origin.role, Role::Assistant | Role::Subagent) {
        return None;
    }
    let own = origin.role == Role::Assistant && !origin.sidechain;
    let text = text.lines().map(|line| format!("{}\n", redactor.line(line))).collect();
    Some(Written::Text { text, own })
}

#[cfg(test)]
mod tests {
    //! Logs that give way to newer ones while they are read.

    use super::*;

    #[test]
    fn files_are_read_in_order_also_while_they_give_way() {
        let state = tempfile::tempdir().unwrap();
        let run = RunId::new("r1").unwrap();
        let files: Vec<PathBuf> = LoggedAgent::default().files(state.path(), &run).collect();
        fs::create_dir_all(files[0].parent().unwrap()).unwrap();
        fs::write(&files[1], "one\n").unwrap();
        fs::write(&files[0], "two\n").unwrap();
        let mut reader = OutputReader::new(state.path(), &run, None, None);
        let mut more = || {
            let mut all = Vec::new();
            loop {
                let told = reader.read().unwrap();
                if told.is_empty() {
                    break;
                }
                all.extend(told.into_iter().flat_map(|(_, written)| match written {
                    Written::Raw(bytes) => bytes,
                    other => panic!("{other:?}"),
                }));
            }
            String::from_utf8(all).unwrap()
        };
        assert_eq!(more(), "one\ntwo\n");
        assert_eq!(more(), "");
        // Two files further before it looks again.
        fs::rename(&files[0], &files[2]).unwrap();
        fs::write(&files[1], "three\n").unwrap();
        fs::write(&files[0], "four\n").unwrap();
        assert_eq!(more(), "three\nfour\n");
        // What is gone is left out.
        files.iter().for_each(|file| drop(fs::remove_file(file)));
        fs::write(&files[1], "six\n").unwrap();
        fs::write(&files[0], "seven\n").unwrap();
        assert_eq!(more(), "six\nseven\n");
    }
}
