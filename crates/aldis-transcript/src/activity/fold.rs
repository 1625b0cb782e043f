//! Activities: items folded, with calls paired with their results.

use std::collections::VecDeque;

use super::{Activity, EntryPlace, Fact, ToolEnd, ToolKind, ToolUse};
use crate::about::{ToolInput, tool_input};
use crate::events::trouble::{Kind, is_outage};
use crate::events::{Ledger, Recent, Zone, clip, resets_at};
use crate::item::{Call, CallResult, Cost, Entry, Item, Trouble, Until, Usage, Verdict};
use crate::members::{Members, Raw, string, strings};
use aldis_signal::message::Role;
use aldis_signal::time::Timestamp;

/// The activities of one input.
#[derive(Debug)]
pub(crate) struct Activities {
    zone: Zone,
    session: String,
    directory: String,
    open: VecDeque<OpenCall>,
    /// Calls that were answered: some hosts write them again.
    answered: Recent<()>,
    costs: Ledger,
    /// The last line in which somebody said something: who called a tool before it went on.
    spoken: u64,
}

/// A call without an answer.
#[derive(Debug)]
struct OpenCall {
    id: String,
    sidechain: bool,
    tool: ToolUse,
}

/// One step of the fold.
struct Fold<'a> {
    known: &'a mut Activities,
    place: EntryPlace,
    sidechain: bool,
    sink: &'a mut dyn FnMut(Activity),
}

impl Activities {
    pub(crate) fn new(zone: Zone) -> Self {
        Self {
            zone,
            session: String::new(),
            directory: String::new(),
            open: VecDeque::new(),
            answered: Recent::default(),
            costs: Ledger::default(),
            spoken: 0,
        }
    }

    /// Takes in what a line says.
    pub(crate) fn entry(&mut self, entry: &Entry<'_>, line: u64, sink: &mut dyn FnMut(Activity)) {
        let place = EntryPlace { line, at: entry.at };
        let mut fold = Fold { known: self, place, sidechain: entry.is_side, sink };
        if let Some(session) = entry.link.as_ref().and_then(|link| link.session.as_deref()) {
            fold.session(session);
        }
        if !entry.cwd.is_empty() && entry.cwd != fold.known.directory {
            fold.known.directory = entry.cwd.clone().into_owned();
            fold.give(Fact::Directory(clip(&entry.cwd, WHAT_MAX)));
        }
        entry.items.iter().for_each(|item| fold.item(item));
    }

    /// Nothing follows: calls that nobody answered stay so, unless the agent went on all the same.
    pub(crate) fn finish(mut self, sink: &mut dyn FnMut(Activity)) {
        for mut open in std::mem::take(&mut self.open) {
            if open.tool.called.line > self.spoken {
                open.tool.end = ToolEnd::Unanswered;
            }
            let place = open.tool.called;
            open.give(place, sink);
        }
    }
}

impl OpenCall {
    fn give(self, place: EntryPlace, sink: &mut dyn FnMut(Activity)) {
        let fact = Fact::Tool(Box::new(self.tool));
        sink(Activity { place, sidechain: self.sidechain, fact });
    }
}

impl Fold<'_> {
    fn give(&mut self, fact: Fact) {
        (self.sink)(Activity { place: self.place, sidechain: self.sidechain, fact });
    }

    fn item(&mut self, item: &Item<'_>) {
        match item {
            Item::Session(id) => self.session(id),
            Item::Text(text) if text.by.role == Role::Assistant && !text.is_copy() => {
                let words = clip(&text.text, WORDS_MAX);
                if !words.is_empty() {
                    self.known.spoken = self.place.line;
                    self.give(Fact::Said { words });
                }
            }
            Item::Prompt { by, text } if by.role == Role::User => {
                self.known.spoken = self.place.line;
                self.give(Fact::Prompted { words: clip(text, WORDS_MAX) });
            }
            Item::Call(call) => self.call(call),
            Item::Result(result) if !result.is_partial => self.result(result),
            Item::Usage(usage) => self.spent(usage),
            Item::Denied { tool, what } => {
                let (tool, what) = (clip(tool, WORDS_MAX), clip(what, WORDS_MAX));
                self.give(Fact::Denied { tool, what });
            }
            Item::Retry { what, .. } => self.give(Fact::Retried { what: clip(what, WORDS_MAX) }),
            Item::Trouble(trouble) if !trouble.is_doubtful => {
                let limit = trouble.kind == Kind::Limit && !is_outage(&trouble.what);
                let until = self.until(trouble);
                self.give(Fact::Failed { limit, what: clip(&trouble.what, WORDS_MAX), until });
            }
            Item::End { verdict, what } => {
                let what = what.as_deref().map(|what| clip(what, WORDS_MAX));
                self.give(Fact::Ended { ok: *verdict != Verdict::Failure, what });
            }
            Item::Interrupted => self.give(Fact::Interrupted),
            Item::Compacted => self.give(Fact::Compacted),
            _ => {}
        }
    }

    fn session(&mut self, id: &str) {
        let id = clip(id, WORDS_MAX);
        if !id.is_empty() && id != self.known.session {
            self.known.session.clone_from(&id);
            self.give(Fact::Session(id));
        }
    }

    fn call(&mut self, call: &Call<'_>) {
        let input = call.about.or(call.input);
        let told = tool_input(input);
        let what = match (told.about.is_empty(), input) {
            (true, Some(input)) => clip(&texts(input), WORDS_MAX),
            _ => clip(&told.about, WHAT_MAX),
        };
        let kind = kind(&call.name, &told, &what);
        if let Some(open) = self.known.open.iter_mut().find(|open| open.id == call.id) {
            if open.tool.what.is_empty() {
                (open.tool.kind, open.tool.what) = (kind, what);
            }
            return;
        }
        if self.known.answered.get_mut(&call.id).is_some() {
            return;
        }
        let tool = ToolUse {
            name: clip(if call.name.is_empty() { "tool" } else { &call.name }, WORDS_MAX),
            kind,
            what,
            called: self.place,
            end: ToolEnd::Unknown,
            exit: None,
            took: None,
            output: String::new(),
        };
        let open = OpenCall { id: call.id.clone().into_owned(), sidechain: self.sidechain, tool };
        if open.id.is_empty() {
            return open.give(self.place, self.sink);
        }
        if self.known.open.len() >= OPEN_MAX
            && let Some(oldest) = self.known.open.pop_front()
        {
            oldest.give(self.place, self.sink);
        }
        self.known.open.push_back(open);
    }

    fn result(&mut self, result: &CallResult<'_>) {
        let found = self.known.open.iter().position(|open| open.id == result.id);
        let Some(mut open) = found.and_then(|found| self.known.open.remove(found)) else { return };
        self.known.answered.insert(&open.id, ());
        open.tool.conclude(result);
        open.give(self.place, self.sink);
    }

    fn spent(&mut self, usage: &Usage<'_>) {
        if let Some(Cost { tokens, micro_dollars }) = self.known.costs.note(usage) {
            self.give(Fact::Spent { tokens, micro_dollars });
        }
    }

    fn until(&self, trouble: &Trouble<'_>) -> Option<Timestamp> {
        match trouble.until {
            Some(Until::At(until)) => Some(until),
            _ => resets_at(&trouble.what, self.place.at?, &self.known.zone),
        }
    }
}

impl ToolUse {
    /// Notes how the call ended.
    fn conclude(&mut self, result: &CallResult<'_>) {
        if self.kind == ToolKind::Command || result.is_error {
            let ending = result.ending();
            (self.exit, self.took) = (ending.exit, ending.took);
            self.output = last(&ending.output, OUTPUT_MAX).to_owned();
            if ending.is_refused {
                self.end = ToolEnd::Refused;
                return;
            }
        }
        self.end = match self.exit {
            _ if result.is_refused => ToolEnd::Refused,
            _ if result.is_left_running => ToolEnd::Unknown,
            Some(0) | None if !result.is_error => ToolEnd::Done,
            _ => ToolEnd::Failed,
        };
    }
}

/// Returns what a tool does: by what it was told, and by its name where that says nothing.
fn kind(name: &str, told: &ToolInput, what: &str) -> ToolKind {
    let last = name.rsplit(['/', '.']).next().unwrap_or(name);
    match last.rsplit("__").next().unwrap_or(last) {
        _ if told.is_command => ToolKind::Command,
        _ if told.is_write => ToolKind::Write,
        "AskUserQuestion"
        | "ExitPlanMode"
        | "ask_followup_question"
        | "ask_user"
        | "exit_plan_mode"
        | "question"
        | "request_user_input" => ToolKind::Ask,
        "attempt_completion" | "task_complete" => ToolKind::Claim,
        _ if is_report_of_done(name) => ToolKind::Claim,
        "update_goal" if what.starts_with("complete") => ToolKind::Claim,
        _ => ToolKind::Other,
    }
}

/// Whether it is the tool by which agents report to Aldis that they are done, whatever a host puts
/// between the names of a server and of its tool.
fn is_report_of_done(name: &str) -> bool {
    let server = name.strip_suffix("complete").unwrap_or_default();
    server.trim_end_matches(|it: char| !it.is_alphanumeric()).ends_with("aldis")
}

/// All texts that a tool was told. Some hosts write the object as a string.
fn texts(input: Raw<'_>) -> String {
    let text = string(input).unwrap_or_default();
    match Members::of_bytes(text.as_bytes()) {
        Ok(members) => {
            members.iter().map(|(_, value)| strings(value)).collect::<Vec<_>>().join("\n")
        }
        Err(_) => strings(input),
    }
}

/// The last bytes of a text, from the start of a character on.
fn last(text: &str, most: usize) -> &str {
    let start = text.len().saturating_sub(most);
    let start = (start..=text.len()).find(|at| text.is_char_boundary(*at));
    &text[start.unwrap_or(text.len())..]
}

/// How much of what somebody says is passed on, in characters.
const WORDS_MAX: usize = 300;
/// How much of a command is: what it checks may stand at its end.
const WHAT_MAX: usize = 2_000;
/// How much of what a command printed is, in bytes: test runners end with a summary.
const OUTPUT_MAX: usize = 4_096;
/// How many calls may be open at once.
const OPEN_MAX: usize = 1_024;
