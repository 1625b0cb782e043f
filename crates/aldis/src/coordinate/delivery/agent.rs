//! One agent of a delivery, from its start to its last message.

use std::path::{Path, PathBuf};
use std::time::Duration;

use aldis_machine::delivery::{AgentReply, Dispatch, Event};
use aldis_machine::run::{Exit, Usage};
use aldis_signal::time::Timestamp;
use aldis_signal::{Finding, Role as SaidBy, Rules, Token};
use aldis_transcript::events::{HostEvent, ToolAnswer};

use super::spent;
use crate::agents::listener::Report;
use crate::agents::session::Session;
use crate::coordinate::world::OutputStream;
use crate::hosts::headless::{counted_before, less};
use crate::view::live::delivery::DeliveryReporter;
use crate::view::live::tools::ToolCall;

/// How much of plain text is kept: a signal stands at the end, with its body.
const TEXT_MAX: usize = 1 << 20;
/// The signal that counts before the end.
const CHECKPOINT: &str = "CHECKPOINT";

/// An agent at work.
pub(in crate::coordinate) struct AgentAtWork<'r> {
    pub(in crate::coordinate) dispatch: Dispatch,
    pub(in crate::coordinate) reported: AgentFacts,
    /// When the machine was last told that it lives.
    pub(in crate::coordinate) told_at: Timestamp,
    /// Where it works.
    pub(in crate::coordinate) directory: PathBuf,
    /// Whether the machine has given it up: then only its cost counts.
    pub(in crate::coordinate) given_up: bool,
    /// What of its cost the machine was told.
    spent_told: Usage,
    /// What the session that it continues had cost before.
    spent_before: Usage,
    session: Session<'r>,
}

/// What is known of an agent so far.
#[derive(Debug, Default)]
pub(in crate::coordinate) struct AgentFacts {
    /// Its last message, or all it wrote where messages cannot be told apart.
    text: String,
    /// What it has cost so far, by its host's figures.
    spent: Usage,
    /// The name of its session, where its host has one.
    session: Option<String>,
    /// Why its service refuses to work, and until when.
    limited: Option<(String, Option<Timestamp>)>,
    /// Why its host gave up.
    host_failed: Option<String>,
    /// The answers to its calls.
    answers: Vec<ToolAnswer>,
    /// How many of them were looked at.
    answers_seen: usize,
    /// Whether it gave a checkpoint that nobody was told of.
    checkpoint: bool,
    /// Whether it wrote anything that nobody was told of.
    pub(in crate::coordinate) active: bool,
    /// Whether its work progressed and nobody was told of it.
    pub(in crate::coordinate) worked: bool,
    /// Whether its host reported its end: the process is about to exit.
    over: bool,
    /// Whether its host waits for its service and nobody was told of it.
    pub(in crate::coordinate) waiting: bool,
}

/// The last of an agent.
pub(in crate::coordinate) struct Last {
    /// How it ended.
    pub(in crate::coordinate) ended: Ended,
    /// What it has cost that nobody was told of.
    pub(in crate::coordinate) unreported: Usage,
    /// What it has cost in all, by its host's figures.
    pub(in crate::coordinate) spent: Usage,
    /// The name of its session, where its host has one.
    pub(in crate::coordinate) session: Option<String>,
    /// The answers to its calls.
    pub(in crate::coordinate) answers: Vec<ToolAnswer>,
    /// Where it worked.
    pub(in crate::coordinate) directory: PathBuf,
}

/// How an agent ended. Exhaustive: the two are told differently.
pub(in crate::coordinate) enum Ended {
    /// It has finished.
    Finished {
        /// How its process ended.
        exit: Exit,
        /// Its last message.
        text: String,
        /// Why its host gave up, if it did.
        host_failed: Option<String>,
    },
    /// Its service refuses to work for now.
    Limited {
        /// The host's message.
        what: String,
        /// When it will work again, where the message says so.
        until: Option<Timestamp>,
    },
}

impl<'r> AgentAtWork<'r> {
    /// `spent_before` is what the session that it continues had cost.
    pub(in crate::coordinate) fn new(
        dispatch: Dispatch,
        directory: PathBuf,
        session: Session<'r>,
        spent_before: Usage,
    ) -> Self {
        Self {
            dispatch,
            reported: AgentFacts::default(),
            told_at: Timestamp::from_millis(0),
            directory,
            given_up: false,
            spent_told: Usage::default(),
            spent_before,
            session,
        }
    }

    /// Reads what it wrote.
    pub(in crate::coordinate) fn read(
        &mut self,
        stream: OutputStream,
        bytes: &[u8],
        now: Timestamp,
        board: &mut DeliveryReporter,
    ) {
        self.reported.active = true;
        let (dispatch, directory) = (&self.dispatch, &self.directory);
        match stream {
            OutputStream::Stdout => {
                let reported = &mut self.reported;
                self.session.stdout(bytes, now, &mut |report| {
                    show(board, now, (dispatch, directory), &report);
                    reported.take(report);
                });
            }
            OutputStream::Stderr => self.session.stderr(bytes),
        }
    }

    /// Writes what its log holds back.
    pub(in crate::coordinate) fn flush(&mut self) {
        self.session.flush();
    }

    /// Its process has ended.
    pub(in crate::coordinate) fn finish(
        self,
        exit: Exit,
        now: Timestamp,
        board: &mut DeliveryReporter,
    ) -> Last {
        let before = counted_before(self.session.format(), self.spent_before);
        let Self { mut reported, session, spent_told, dispatch, directory, .. } = self;
        session.finish(exit, now, &mut |report| {
            show(board, now, (&dispatch, &directory), &report);
            reported.take(report);
        });
        let unreported = less(less(reported.spent, before), spent_told);
        let AgentFacts { text, spent, session, answers, limited, host_failed, .. } = reported;
        let ended = match limited {
            Some((what, until)) => Ended::Limited { what, until },
            None => Ended::Finished { exit, text, host_failed },
        };
        Last { ended, unreported, spent, session, answers, directory }
    }

    /// Returns what the machine must be told of it: checkpoints, signs of life and work no more often
    /// than `every`, costs if they are `counted` now.
    pub(in crate::coordinate) fn news(
        &mut self,
        now: Timestamp,
        (every, counted): (Duration, bool),
        (rules, token): (&Rules, &Token),
    ) -> Vec<Event> {
        self.flush();
        let (agent, mut events) = (self.dispatch.agent, Vec::new());
        if let Some(reply) = self.reported.take_checkpoint(rules, token) {
            events.push(Event::Reported { agent, reply });
        }
        if counted {
            events.extend(spent(agent, self.take_spent()));
        }
        let reported = &mut self.reported;
        if std::mem::take(&mut reported.waiting) {
            events.push(Event::Waiting { agent });
        }
        if (reported.active || reported.worked) && now.since(self.told_at) >= every {
            self.told_at = now;
            reported.active = false;
            let worked = std::mem::take(&mut reported.worked);
            events.push(if worked { Event::Worked { agent } } else { Event::Active { agent } });
        }
        events
    }

    /// Returns what it has cost since this was last asked. Of one that is about to end nothing more is
    /// said before its verdict: that counts before its price.
    pub(in crate::coordinate) fn take_spent(&mut self) -> Usage {
        if self.reported.over {
            return Usage::default();
        }
        let before = counted_before(self.session.format(), self.spent_before);
        let own = less(self.reported.spent, before);
        let more = less(own, self.spent_told);
        self.spent_told = own;
        more
    }
}

/// Shows what an agent says and does.
fn show(
    board: &mut DeliveryReporter,
    now: Timestamp,
    (dispatch, directory): (&Dispatch, &Path),
    report: &Report,
) {
    match report {
        Report::Text { origin, text, .. }
            if matches!(origin.role, SaidBy::Assistant | SaidBy::Subagent) =>
        {
            let own = origin.role == SaidBy::Assistant && !origin.sidechain;
            board.said(now, dispatch, (own, text));
        }
        Report::Host(HostEvent::Tool { call, name, about, is_command, lines }) => {
            let (is_command, lines) = (*is_command, *lines);
            let call = ToolCall { call, name, about, is_command, lines };
            board.tool(now, dispatch, &call, directory);
        }
        Report::Host(HostEvent::ToolEnded { call, failed, exit_code }) => {
            board.tool_ended(now, dispatch, (call, *failed, *exit_code));
        }
        Report::Host(HostEvent::Denied { tool, what }) => {
            board.denied(now, dispatch, (tool, what), directory);
        }
        _ => {}
    }
}

impl AgentFacts {
    fn take(&mut self, report: Report) {
        match report {
            Report::Text { origin, text, whole } if origin.may_signal() && !origin.sidechain => {
                // Only the last message counts.
                if whole {
                    self.text.clear();
                }
                self.text.push_str(&text);
                self.shorten();
            }
            Report::Found(found) => {
                let mut signals = found.findings.iter().filter_map(Finding::signal);
                self.checkpoint |= signals.any(|signal| &*signal.name == CHECKPOINT);
            }
            Report::Host(HostEvent::Spent { tokens, micro_dollars }) => {
                self.spent = Usage { tokens, micro_dollars };
            }
            Report::Host(HostEvent::Limited { what, until }) => self.limited = Some((what, until)),
            Report::Host(HostEvent::Failed { what }) => self.host_failed = Some(what),
            Report::Host(HostEvent::Session(session)) => self.session = Some(session),
            Report::Host(HostEvent::Tool { .. }) => (self.worked, self.waiting) = (true, false),
            Report::Host(HostEvent::Retrying { .. }) => self.waiting = true,
            Report::Host(HostEvent::Ended { .. }) => self.over = true,
            Report::Host(HostEvent::Answered(answer)) => self.answers.push(answer),
            Report::Host(HostEvent::ToolEnded { .. } | HostEvent::Denied { .. })
            | Report::Text { .. } => {}
        }
    }

    /// Returns the answers to its calls since this was last asked.
    pub(in crate::coordinate) fn new_answers(&mut self) -> &[ToolAnswer] {
        let seen = std::mem::replace(&mut self.answers_seen, self.answers.len());
        self.answers.get(seen..).unwrap_or_default()
    }

    fn shorten(&mut self) {
        if self.text.len() > 2 * TEXT_MAX {
            let mut cut = self.text.len() - TEXT_MAX;
            while !self.text.is_char_boundary(cut) {
                cut += 1;
            }
            self.text.drain(..cut);
        }
    }

    /// Returns the last checkpoint, if nobody was told of it yet. Where messages cannot be told apart,
    /// the text holds the earlier ones too.
    pub(in crate::coordinate) fn take_checkpoint(
        &mut self,
        rules: &Rules,
        token: &Token,
    ) -> Option<AgentReply> {
        if !std::mem::take(&mut self.checkpoint) {
            return None;
        }
        let mut reply = AgentReply::read(rules, token, &self.text);
        let last = reply.signals.iter().rposition(|signal| signal.name == CHECKPOINT)?;
        reply.signals.drain(..last);
        reply.signals.truncate(1);
        Some(reply)
    }
}
