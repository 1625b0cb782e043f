//! One agent of a delivery, from its start to its last word.

use std::path::PathBuf;
use std::time::Duration;

use aldis_machine::delivery::{AgentReply as Reply, Dispatch};
use aldis_machine::run::{Exit, Usage};
use aldis_signal::time::Timestamp;
use aldis_signal::{Finding, Rules, Token};
use aldis_transcript::facts::{Fact, Facts, Zone};
use aldis_transcript::{Format, Input};

use crate::agents::ear::{Ear, Said};
use crate::agents::logbook::Logbook;
use crate::agents::recipe::Started;
use aldis_process::{Identity, Output};

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
    /// Where it works.
    pub(super) directory: PathBuf,
    /// What of its cost the machine was told.
    spent_told: Usage,
    /// What the session that it goes on with had cost before.
    spent_before: Usage,
    started: Started,
    ear: Ear<'r>,
    /// What its host reports on standard error.
    errors: Facts,
    log: Logbook,
    exit: Option<Exit>,
    closed: bool,
}

/// What is known of an agent's words so far.
#[derive(Debug, Default)]
pub(super) struct Heard {
    /// What it said last, or all it said where messages cannot be told apart.
    words: String,
    /// What it has cost so far, in its host's words.
    spent: Usage,
    /// The name of its session, where its host has one.
    session: Option<String>,
    /// Why its service refuses to work, and until when.
    limited: Option<(String, Option<Timestamp>)>,
    /// Why its host gave up.
    refused: Option<String>,
    /// Whether it gave a checkpoint that nobody was told of.
    checkpoint: bool,
    /// Whether it did anything that nobody was told of.
    pub(super) stirred: bool,
    /// Whether its work moved and nobody was told of it.
    pub(super) worked: bool,
    /// Whether its host said its last word: the process is about to end.
    over: bool,
    /// Whether its host waits for its service and nobody was told of it.
    pub(super) waiting: bool,
}

/// The last of an agent.
pub(super) struct Last {
    /// How it ended.
    pub(super) ended: Ended,
    /// What it has cost that nobody was told of.
    pub(super) unspoken: Usage,
    /// What it has cost in all, in its host's words.
    pub(super) spent: Usage,
    /// The name of its session, where its host has one.
    pub(super) session: Option<String>,
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
    /// `spent_before` is what the session that it goes on with had cost.
    pub(super) fn new(
        dispatch: Dispatch,
        (started, directory): (Started, PathBuf),
        (ear, zone): (Ear<'r>, Zone),
        log: Logbook,
        spent_before: Usage,
    ) -> Self {
        let (heard, told, spent_told) = (Heard::default(), Duration::ZERO, Usage::default());
        let (exit, closed) = (None, false);
        let errors = Facts::new(Input::Format(Format::Text), zone);
        Self {
            dispatch,
            heard,
            told,
            directory,
            spent_told,
            spent_before,
            started,
            ear,
            errors,
            log,
            exit,
            closed,
        }
    }

    pub(super) fn identity(&self) -> &Identity {
        self.started.agent.identity()
    }

    /// Takes what it wrote meanwhile. Returns whether there was anything.
    pub(super) fn listen(&mut self, now: Timestamp) -> bool {
        let Some(output) = self.started.agent.next(Duration::ZERO) else {
            self.log.flush();
            return false;
        };
        self.heard.stirred = true;
        match output {
            Output::Stdout(bytes) => {
                self.log.write(&bytes);
                let heard = &mut self.heard;
                self.ear.push(&bytes, now, &mut |said| heard.take(said));
                self.started.agent.recycle(bytes);
            }
            Output::Stderr(bytes) => {
                self.log.write(&bytes);
                self.errors.push(&bytes, now, &mut drop);
                self.started.agent.recycle(bytes);
            }
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
    pub(super) fn end(self, grace: Duration, now: Timestamp) -> Last {
        let Self { mut heard, started, mut ear, mut errors, mut log, exit, .. } = self;
        let Started { agent, prompt: _prompt } = started;
        let ended = agent.end_with(grace, |output| match output {
            Output::Stdout(bytes) => {
                log.write(&bytes);
                ear.push(&bytes, now, &mut |said| heard.take(said));
            }
            Output::Stderr(bytes) => {
                log.write(&bytes);
                errors.push(&bytes, now, &mut drop);
            }
            _ => {}
        });
        let before = self.spent_before;
        let before = if counts_sessions(ear.format()) { before } else { Usage::default() };
        ear.finish(now, &mut |said| heard.take(said));
        let last = ended.exit.map(|exit| Exit { code: exit.code, signal: exit.signal });
        let exit = exit.or(last).unwrap_or(Exit { code: None, signal: None });
        // A host that ended well has overcome what it complained of.
        if !exit.is_clean() {
            errors.finish(now, &mut |fact| heard.take(Said::Fact(fact)));
        }
        let unspoken = less(less(heard.spent, before), self.spent_told);
        let Heard { spent, session, .. } = heard;
        let ended = match heard.limited {
            Some((what, until)) => Ended::Limited { what, until },
            None => Ended::Finished { exit, words: heard.words, refused: heard.refused },
        };
        Last { ended, unspoken, spent, session }
    }

    /// Returns what it has cost since this was last asked. Of one that is about to end nothing more is
    /// said before its verdict: that counts before its price.
    pub(super) fn take_spent(&mut self) -> Usage {
        if self.heard.over {
            return Usage::default();
        }
        let counts = counts_sessions(self.ear.format());
        let before = if counts { self.spent_before } else { Usage::default() };
        let own = less(self.heard.spent, before);
        let more = less(own, self.spent_told);
        self.spent_told = own;
        more
    }
}

/// Whether a host's figures are those of its whole session, also of what went before.
fn counts_sessions(format: Option<Format>) -> bool {
    format == Some(Format::CodexExec)
}

fn less(all: Usage, part: Usage) -> Usage {
    Usage {
        tokens: all.tokens.saturating_sub(part.tokens),
        micro_dollars: all.micro_dollars.saturating_sub(part.micro_dollars),
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
            Said::Fact(Fact::Session(session)) => self.session = Some(session),
            Said::Fact(Fact::Tool { .. }) => (self.worked, self.waiting) = (true, false),
            Said::Fact(Fact::Retrying { .. }) => self.waiting = true,
            Said::Fact(Fact::Ended { .. }) => self.over = true,
            Said::Text { .. } => {}
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

    /// Returns the last checkpoint, if nobody was told of it yet. Where messages cannot be told apart,
    /// the words hold the earlier ones too.
    pub(super) fn take_checkpoint(&mut self, rules: &Rules, token: &Token) -> Option<Reply> {
        if !std::mem::take(&mut self.checkpoint) {
            return None;
        }
        let mut said = Reply::read(rules, token, &self.words);
        let last = said.signals.iter().rposition(|signal| signal.name == CHECKPOINT)?;
        said.signals.drain(..last);
        said.signals.truncate(1);
        Some(said)
    }
}
