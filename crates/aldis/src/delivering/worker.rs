//! One agent of a delivery, from its start to its last word.

use std::time::Duration;

use aldis_core::machine::delivery::{Dispatch, Said as Reply};
use aldis_core::machine::run::{Exit, Usage};
use aldis_core::time::Timestamp;
use aldis_core::transcript::facts::Fact;
use aldis_core::{Finding, Rules, Token};

use crate::ear::{Ear, Said};
use crate::logbook::Logbook;
use crate::recipe::Started;
use crate::supervise::{Identity, Output};

/// How much of plain text is kept: a signal stands at the end, with its body.
const TEXT_MAX: usize = 1 << 20;
/// The signal that counts before the end.
const CHECKPOINT: &str = "CHECKPOINT";

/// An agent at work.
pub(super) struct Worker<'r> {
    pub(super) dispatch: Dispatch,
    pub(super) heard: Heard,
    /// When the machine was last told that it lives.
    pub(super) told: Duration,
    started: Started,
    ear: Ear<'r>,
    log: Logbook,
    exit: Option<Exit>,
    closed: bool,
}

/// What is known of an agent's words so far.
#[derive(Debug, Default)]
pub(super) struct Heard {
    /// What it said last, or all it said where messages cannot be told apart.
    words: String,
    /// What it has cost so far.
    pub(super) spent: Usage,
    /// Why its service refuses to work, and until when.
    limited: Option<(String, Option<Timestamp>)>,
    /// Why its host gave up.
    refused: Option<String>,
    /// Whether it gave a checkpoint that nobody was told of.
    checkpoint: bool,
    /// Whether it did anything that nobody was told of.
    pub(super) stirred: bool,
}

/// How an agent ended. Exhaustive: the two are told differently.
pub(super) enum Ended {
    /// It said its last word.
    Finished {
        /// How its process ended.
        exit: Exit,
        /// All that counts.
        words: String,
        /// Why its host gave up, if it did.
        refused: Option<String>,
    },
    /// Its service refuses to work for now.
    Limited {
        /// What it said.
        what: String,
        /// When it will work again, where it said so.
        until: Option<Timestamp>,
    },
}

impl<'r> Worker<'r> {
    pub(super) fn new(dispatch: Dispatch, started: Started, ear: Ear<'r>, log: Logbook) -> Self {
        let (heard, told) = (Heard::default(), Duration::ZERO);
        Self { dispatch, heard, told, started, ear, log, exit: None, closed: false }
    }

    pub(super) fn identity(&self) -> &Identity {
        self.started.agent.identity()
    }

    /// Takes what it wrote meanwhile. Returns whether there was anything.
    pub(super) fn listen(&mut self, now: Timestamp) -> bool {
        let Some(output) = self.started.agent.next(Duration::ZERO) else { return false };
        self.heard.stirred = true;
        match output {
            Output::Stdout(bytes) => {
                self.log.write(&bytes);
                let heard = &mut self.heard;
                self.ear.push(&bytes, now, &mut |said| heard.take(said));
            }
            Output::Stderr(bytes) => self.log.write(&bytes),
            Output::Closed => self.closed = true,
            Output::Exited(exit) => {
                self.exit = Some(Exit { code: exit.code, signal: exit.signal });
            }
            Output::Stopped => self.started.agent.resume(),
        }
        true
    }

    /// Returns whether it has ended by itself.
    pub(super) fn is_over(&self) -> bool {
        self.closed && self.exit.is_some()
    }

    /// Asks it to stop, and ends it with everything it started after a time of grace.
    pub(super) fn end(self, grace: Duration, now: Timestamp) -> Ended {
        let Self { mut heard, started, mut ear, mut log, exit, .. } = self;
        let Started { agent, prompt: _prompt } = started;
        let ended = agent.end_hearing(grace, |output| match output {
            Output::Stdout(bytes) => {
                log.write(&bytes);
                ear.push(&bytes, now, &mut |said| heard.take(said));
            }
            Output::Stderr(bytes) => log.write(&bytes),
            _ => {}
        });
        ear.finish(now, &mut |said| heard.take(said));
        let last = ended.exit.map(|exit| Exit { code: exit.code, signal: exit.signal });
        let exit = exit.or(last).unwrap_or(Exit { code: None, signal: None });
        match heard.limited {
            Some((what, until)) => Ended::Limited { what, until },
            None => Ended::Finished { exit, words: heard.words, refused: heard.refused },
        }
    }
}

impl Heard {
    fn take(&mut self, said: Said) {
        match said {
            Said::Text { origin, text, whole } if origin.may_signal() && !origin.sidechain => {
                // What was said before the last message was not the last word.
                if whole {
                    self.words.clear();
                }
                self.words.push_str(&text);
                self.shorten();
            }
            Said::Finding { finding, .. } => {
                let signal = Finding::signal(&finding);
                self.checkpoint |= signal.is_some_and(|signal| &*signal.name == CHECKPOINT);
            }
            Said::Fact(Fact::Spent { tokens, micro_dollars }) => {
                self.spent = Usage { tokens, micro_dollars };
            }
            Said::Fact(Fact::Limited { what, until }) => self.limited = Some((what, until)),
            Said::Fact(Fact::Failed { what }) => self.refused = Some(what),
            Said::Text { .. } | Said::Fact(_) => {}
        }
    }

    fn shorten(&mut self) {
        if self.words.len() > 2 * TEXT_MAX {
            let mut cut = self.words.len() - TEXT_MAX;
            while !self.words.is_char_boundary(cut) {
                cut += 1;
            }
            self.words.drain(..cut);
        }
    }

    /// Returns what it said with a checkpoint that nobody was told of yet.
    pub(super) fn take_checkpoint(&mut self, rules: &Rules, token: &Token) -> Option<Reply> {
        std::mem::take(&mut self.checkpoint).then(|| Reply::read(rules, token, &self.words))
    }
}
