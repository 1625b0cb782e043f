//! One session: its activities folded into what somebody should know the morning after.

use std::cmp::Reverse;
use std::collections::HashSet;
use std::hash::{BuildHasher as _, RandomState};
use std::time::Duration;

use aldis_signal::redact::redact;
use aldis_signal::time::Timestamp;
use aldis_transcript::activity::{Activity, EntryPlace, Fact, ToolEnd, ToolKind, ToolUse};

use super::claims::Claims;
use super::waits::Waits;
use crate::view::wire::postmortem::{Incident, IncidentKind, PostmortemLine, Waited};

/// The fold over one file.
#[derive(Debug, Default)]
pub(super) struct SessionFold {
    line: PostmortemLine,
    /// Before this, activities only tell how things stood.
    since: Option<Timestamp>,
    pub(super) claims: Claims,
    waits: Waits,
    hasher: RandomState,
    written: HashSet<u64>,
    incidents: Vec<Incident>,
    /// What is over as soon as the agent goes on.
    stopped: Option<Incident>,
    /// What was spent before the window: tokens and millionths of a dollar.
    before: (u64, u64),
    spent: (u64, u64),
    /// Whether anything of the main conversation is in the window.
    has_main: bool,
    has_any: bool,
}

impl SessionFold {
    pub(super) fn new(since: Option<Timestamp>) -> Self {
        Self { since, claims: Claims::new(since), ..Self::default() }
    }

    /// Takes in the next activity.
    pub(super) fn take(&mut self, activity: Activity) {
        let Activity { place, sidechain, fact, .. } = activity;
        match &fact {
            Fact::Session(id) => self.line.session = Some(redact(id).into_owned()),
            Fact::Directory(path) if self.line.directory.is_none() => {
                self.line.directory = Some(redact(path).into_owned());
            }
            Fact::Spent { tokens, micro_dollars } => self.spent = (*tokens, *micro_dollars),
            Fact::Tool(tool) if !sidechain => self.claims.tool(tool, place),
            _ => {}
        }
        let is_early = self.since.zip(place.at).is_some_and(|(since, at)| at < since);
        if is_early {
            self.before = self.spent;
            return;
        }
        self.has_any |= !matches!(fact, Fact::Session(_) | Fact::Directory(_) | Fact::Spent { .. });
        if let Fact::Tool(tool) = &fact {
            self.line.tools += 1;
            if tool.kind == ToolKind::Write && tool.end == ToolEnd::Done {
                self.written.insert(self.hasher.hash_one(&tool.what));
            }
        }
        if matches!(fact, Fact::Retried { .. }) {
            self.line.retries += 1;
        }
        if !sidechain {
            self.main(place, fact);
        }
    }

    /// Takes in what happened in the main conversation.
    fn main(&mut self, place: EntryPlace, fact: Fact) {
        if let Some(at) = place.at {
            self.line.began = Some(self.line.began.map_or(at, |began| began.min(at)));
            self.line.ended = Some(self.line.ended.map_or(at, |ended| ended.max(at)));
        }
        match fact {
            Fact::Prompted { words } => {
                self.has_main = true;
                self.line.prompts += 1;
                self.waits.until_prompt(place.at);
                self.line.asked.get_or_insert_with(|| redact(task_of(&words)).into_owned());
            }
            Fact::Said { words } => {
                self.has_main = true;
                self.line.said = Some(redact(&words).into_owned());
                self.went_on(place.at);
            }
            Fact::Tool(tool) => self.tool(&tool, place),
            Fact::Denied { tool, what } => self.denied(place, &format!("{tool} {what}"), None),
            Fact::Failed { limit, what, until } if self.stopped.is_none() => {
                let kind = if limit { IncidentKind::Limit } else { IncidentKind::Error };
                let until = until.filter(|until| place.at.is_none_or(|at| *until > at));
                self.stopped =
                    Some(Incident { failure: true, until, ..incident(kind, place, &what) });
            }
            Fact::Interrupted => {
                self.stopped = Some(incident(IncidentKind::Interrupted, place, ""));
            }
            Fact::Compacted => self.line.compactions += 1,
            Fact::Ended { ok: false, what } if self.stopped.is_none() => {
                let what = what.unwrap_or_default();
                let error = incident(IncidentKind::Error, place, &what);
                self.stopped = Some(Incident { failure: true, ..error });
            }
            _ => {}
        }
        self.waits.seen(place.at);
    }

    fn tool(&mut self, tool: &ToolUse, place: EntryPlace) {
        self.has_main = true;
        if tool.end == ToolEnd::Unanswered {
            let what = format!("{} {}", tool.name, tool.what);
            self.stopped.get_or_insert_with(|| incident(IncidentKind::Unanswered, place, &what));
            return;
        }
        self.went_on(tool.called.at);
        let Some((called, answered)) = tool.called.at.zip(place.at) else { return };
        let gap = answered.since(called);
        let what = format!("{} {}", tool.name, tool.what);
        let idle = tool.took.map(|took| gap.saturating_sub(took));
        let (kind, idle) = match tool.kind {
            _ if tool.end == ToolEnd::Refused => {
                self.waits.add(called, answered);
                return self.denied(tool.called, &what, Some(gap));
            }
            ToolKind::Ask => (IncidentKind::QuestionWait, gap),
            // Writing a file takes no time, and a host that tells how long it took leaves the rest.
            ToolKind::Write => (IncidentKind::PermissionWait, gap),
            _ => match idle {
                Some(idle) => (IncidentKind::PermissionWait, idle),
                None => (IncidentKind::LongCall, gap),
            },
        };
        let shortest = if kind == IncidentKind::LongCall { LONG_CALL } else { WAIT };
        if idle < shortest {
            return;
        }
        if kind != IncidentKind::LongCall {
            self.waits.add(answered.before(idle), answered);
        }
        let found = incident(kind, tool.called, &what);
        self.found(Incident { seconds: Some(idle.as_secs()), ..found });
    }

    /// The agent works again: what had stopped it was overcome.
    fn went_on(&mut self, at: Option<Timestamp>) {
        let Some(stopped) = self.stopped.take() else { return };
        let Some((since, at)) = stopped.at.zip(at) else { return };
        let waited = at.since(since);
        if stopped.kind == IncidentKind::Limit && waited >= WAIT {
            self.waits.add(since, at);
            let seconds = Some(waited.as_secs());
            self.found(Incident { failure: false, seconds, ..stopped });
        }
    }

    fn denied(&mut self, place: EntryPlace, what: &str, waited: Option<Duration>) {
        let mut found = incident(IncidentKind::Denied, place, what);
        found.seconds = waited.filter(|waited| *waited >= WAIT).map(|waited| waited.as_secs());
        self.found(found);
    }

    /// Notes an incident; one that happened before is counted.
    fn found(&mut self, found: Incident) {
        let is_same = |known: &&mut Incident| {
            (known.kind, &known.what) == (found.kind, &found.what)
                && found.kind == IncidentKind::Denied
        };
        if let Some(known) = self.incidents.iter_mut().find(is_same) {
            known.count += 1;
            let seconds = known.seconds.unwrap_or(0) + found.seconds.unwrap_or(0);
            known.seconds = Some(seconds).filter(|seconds| *seconds > 0);
            return;
        }
        if self.incidents.iter().filter(|known| known.kind == found.kind).count() < LISTED_MAX {
            self.incidents.push(found);
        } else {
            self.line.findings_unlisted += 1;
        }
    }

    /// Nothing follows. Returns what there is to say, if anything happened in the window, and whether
    /// it is all of a sub-agent. A session in which something happened just now may go on.
    pub(super) fn finish(mut self, now: Timestamp) -> Option<(PostmortemLine, bool)> {
        if !self.has_any && !self.claims.has_any() {
            return None;
        }
        let mut line = self.line;
        line.v = 1;
        "postmortem".clone_into(&mut line.kind);
        let is_over = line.ended.is_none_or(|ended| now.since(ended) >= RECENT);
        let failing = self.claims.failing();
        (line.claims, line.claim_counts) = self.claims.judged();
        let last_claim = line.claims.iter().map(|claim| claim.line).max().unwrap_or(0);
        if is_over {
            self.incidents.extend(self.stopped);
            // A claim after the check says the same.
            let failing = failing.filter(|check| check.line > last_claim);
            self.incidents.extend(failing.map(|check| {
                let place = EntryPlace::default();
                let found = incident(IncidentKind::FailingCheck, place, &check.command);
                let (line, at, exit) = (check.line, check.at, check.exit);
                Incident { failure: true, line, at, exit, ..found }
            }));
        }
        self.incidents.sort_by_key(|incident| (!incident.failure, incident.kind, incident.line));
        line.findings = self.incidents;
        let waits = self.waits.merged();
        let waited: Duration = waits.iter().map(|(from, until)| until.since(*from)).sum();
        line.waited_seconds = waited.as_secs();
        line.waits = listed(waits);
        line.files_written = self.written.len() as u64;
        line.tokens = self.spent.0.saturating_sub(self.before.0);
        let micro_dollars = self.spent.1.saturating_sub(self.before.1);
        line.dollars = (self.spent.1 > 0).then_some(micro_dollars as f64 / 1e6);
        Some((line, !self.has_main))
    }
}

/// The waits that are listed: those that were not short, the longest where there are many.
fn listed(waits: Vec<(Timestamp, Timestamp)>) -> Vec<Waited> {
    let waits = waits.into_iter().map(|(from, until)| Waited { from, until });
    let mut waits: Vec<Waited> =
        waits.filter(|it| it.until.since(it.from) >= LISTED_WAIT).collect();
    waits.sort_by_key(|it| Reverse(it.until.since(it.from)));
    waits.truncate(LISTED_MAX);
    waits.sort_by_key(|it| it.from);
    waits
}

/// Something that happened once.
fn incident(kind: IncidentKind, place: EntryPlace, what: &str) -> Incident {
    let what = redact(what.trim()).into_owned();
    let EntryPlace { line, at, .. } = place;
    Incident {
        kind,
        failure: false,
        line,
        at,
        what,
        exit: None,
        seconds: None,
        until: None,
        count: 1,
    }
}

/// Shorter waits are nobody's fault.
const WAIT: Duration = Duration::from_secs(5 * 60);
/// Shorter ones are not listed.
const LISTED_WAIT: Duration = Duration::from_secs(60);
/// A build may take a while.
const LONG_CALL: Duration = Duration::from_secs(15 * 60);
/// Whoever did something so shortly before may still be at it.
const RECENT: Duration = Duration::from_secs(5 * 60);
/// How many incidents of a kind, and how many waits, are kept.
const LISTED_MAX: usize = 100;

/// The task in a prompt of a supervised run, without what every such prompt says after it. Its words
/// come in one line.
fn task_of(prompt: &str) -> &str {
    let sections = [" ## Where you are This is", " ## Feedback ", " ## How to report "];
    let end = sections.iter().filter_map(|heading| prompt.find(heading)).min();
    end.and_then(|end| prompt.get(..end)).unwrap_or(prompt).trim_end()
}
