//! Ids of traces and spans: derived from the run, so that whoever needs one before it is exported, or
//! after a crash, computes the same.
//!
//! `TRACEPARENT` is the W3C trace context as an environment variable: a caller's comes in when a run
//! begins, ours goes out to agents and checks.

use std::collections::BTreeMap;
use std::env;
use std::fmt::Write as _;

use aldis_engine::{EngineError, Handle, note};
use aldis_machine::{Machine, delivery, run};
use aldis_signal::time::Timestamp;
use aldis_store::{Event, PartChange, RunId, Store};
use serde::Deserialize;
use sha2::{Digest as _, Sha256};

pub(super) type TraceId = [u8; 16];
pub(super) type SpanId = [u8; 8];

/// The variable that carries the context.
const VARIABLE: &str = "TRACEPARENT";
/// The note of a run that was begun within a trace of somebody else's.
pub(super) const NOTE: &str = "trace";
/// How many events are read at once.
const PAGE: usize = 1_000;
/// The length of a context of version 00.
const LENGTH: usize = 55;

/// A span of whoever called us.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct TraceParent {
    trace: TraceId,
    span: SpanId,
    /// Whether the caller records its own spans.
    sampled: bool,
}

/// The ids of one run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct SpanIds {
    pub(super) run: RunId,
    pub(super) trace: TraceId,
    /// The caller's span.
    pub(super) parent: Option<SpanId>,
    /// Whether the caller records its own spans; true without a caller.
    pub(super) sampled: bool,
}

/// Numbers what has no number of its own in a journal: starts of agents, and checks of each task.
#[derive(Clone, Debug, Default)]
pub(super) struct Ordinals {
    launches: u64,
    checks: BTreeMap<String, u64>,
}

/// What a coordinator tells its agents and checks: below which span theirs hang.
#[derive(Clone, Debug)]
pub(crate) struct Tracing {
    ids: SpanIds,
    ordinals: Ordinals,
}

/// Returns the note that keeps the caller's trace, if there is one.
///
/// # Errors
///
/// Fails if it cannot be written as JSON.
pub(crate) fn note_of_caller() -> Result<Option<PartChange>, EngineError> {
    let said = env::var(VARIABLE).ok().filter(|said| TraceParent::parse(said).is_some());
    said.map(|said| note(NOTE, &said)).transpose()
}

impl TraceParent {
    /// Reads a context; `None` for what is none. Later versions may have more at the end.
    fn parse(text: &str) -> Option<Self> {
        let fields: Vec<&str> = text.split('-').collect();
        let [version, trace, span, flags, more @ ..] = &*fields else { return None };
        let [version, flags]: [[u8; 1]; 2] = [hex(version)?, hex(flags)?];
        let known = version == [0] && text.len() == LENGTH && more.is_empty();
        let (trace, span) = (hex::<16>(trace)?, hex::<8>(span)?);
        let fits =
            (known || ![0, 0xff].contains(&version[0])) && trace != [0; 16] && span != [0; 8];
        fits.then_some(Self { trace, span, sampled: flags[0] & 1 == 1 })
    }
}

impl SpanIds {
    /// Returns the ids of a run that was created then; `note` is the caller's context, if it kept one.
    pub(super) fn new(run: &RunId, created: Timestamp, note: Option<&str>) -> Self {
        let caller = note.and_then(TraceParent::parse);
        let own =
            || digest(&[b"trace", run.as_str().as_bytes(), &created.as_millis().to_be_bytes()]);
        Self {
            run: run.clone(),
            trace: caller.map_or_else(own, |caller| caller.trace),
            parent: caller.map(|caller| caller.span),
            sampled: caller.is_none_or(|caller| caller.sampled),
        }
    }

    /// The span of the run itself; one that was reopened has another one for each time.
    pub(super) fn workflow(&self, stint: u64) -> SpanId {
        self.span(b"workflow", &stint.to_string())
    }

    /// The span of an agent.
    pub(super) fn agent(&self, key: &str) -> SpanId {
        self.span(b"agent", key)
    }

    /// The span of a check of a task: the how manieth, from 1.
    pub(super) fn check(&self, task: &str, number: u64) -> SpanId {
        self.span(b"check", &format!("{number} {task}"))
    }

    fn span(&self, kind: &[u8], key: &str) -> SpanId {
        digest(&[b"span", &self.trace, self.run.as_str().as_bytes(), kind, key.as_bytes()])
    }

    /// The variable that makes a span the parent of what a program reports.
    fn variable(&self, span: SpanId) -> (&'static str, String) {
        let flags = if self.sampled { "01" } else { "00" };
        (VARIABLE, format!("00-{}-{}-{flags}", text(&self.trace), text(&span)))
    }
}

impl Ordinals {
    /// Takes note of an event. Returns the number of the start or check that it is about, and the task.
    pub(super) fn take(&mut self, machine: &str, event: &Event) -> Option<(u64, String)> {
        #[derive(Deserialize)]
        struct About {
            #[serde(default)]
            task: String,
        }
        match (machine, &*event.kind) {
            (run::State::NAME, "launched" | "launch_failed") => {
                self.launches += 1;
                Some((self.launches, String::new()))
            }
            (run::State::NAME, "checked" | "check_ended") => Some(self.checked("")),
            (delivery::State::NAME, "check_ended") => {
                let about: About = serde_json::from_str(&event.body).ok()?;
                Some(self.checked(&about.task))
            }
            _ => None,
        }
    }

    /// Counts a check of a task.
    pub(super) fn checked(&mut self, task: &str) -> (u64, String) {
        let count = self.checks.entry(task.to_owned()).or_default();
        *count += 1;
        (*count, task.to_owned())
    }
}

impl Tracing {
    /// Goes on where the journal of a run ends, if traces are exported: then there is a store.
    ///
    /// # Errors
    ///
    /// Fails if the store does.
    pub(crate) fn resume<M: Machine>(
        store: Option<&dyn Store>,
        run: &Handle<M>,
    ) -> Result<Option<Self>, EngineError> {
        let Some(store) = store else { return Ok(None) };
        let note: Option<String> = run.note(NOTE)?;
        let ids = SpanIds::new(run.id(), run.created(), note.as_deref());
        let (mut ordinals, mut after) = (Ordinals::default(), 0);
        loop {
            let events = store.events(run.id(), after, PAGE)?;
            for event in &events {
                after = event.seq;
                let _number = ordinals.take(M::NAME, event);
            }
            if events.len() < PAGE {
                return Ok(Some(Self { ids, ordinals }));
            }
        }
    }

    /// Returns what the next start of a run's agent is told.
    pub(crate) fn launch(&mut self) -> (&'static str, String) {
        self.ordinals.launches += 1;
        self.ids.variable(self.ids.agent(&self.ordinals.launches.to_string()))
    }

    /// Returns what an agent of a delivery is told.
    pub(crate) fn agent(&self, agent: u64) -> (&'static str, String) {
        self.ids.variable(self.ids.agent(&agent.to_string()))
    }

    /// Returns what the next check of a task is told, where traces are exported; a run has no task.
    pub(crate) fn of_check(tracing: &Option<Self>, task: &str) -> Vec<(&'static str, String)> {
        let variable = |Self { ids, ordinals }: &Self| {
            let count = ordinals.checks.get(task).copied().unwrap_or_default();
            ids.variable(ids.check(task, count + 1))
        };
        tracing.iter().map(variable).collect()
    }

    /// A check of a task has ended.
    pub(crate) fn check_ended(&mut self, task: &str) {
        self.ordinals.checked(task);
    }
}

/// The first bytes of a digest, each part behind its length; never all zeros, which is no id.
fn digest<const N: usize>(parts: &[&[u8]]) -> [u8; N] {
    let mut hasher = Sha256::new();
    for part in parts {
        hasher.update((part.len() as u64).to_be_bytes());
        hasher.update(part);
    }
    let mut id = [0; N];
    id.iter_mut().zip(hasher.finalize()).for_each(|(to, from)| *to = from);
    if id == [0; N] { [1; N] } else { id }
}

/// Reads lower-case hexadecimal digits, and only these.
fn hex<const N: usize>(text: &str) -> Option<[u8; N]> {
    let digit = |byte: u8| matches!(byte, b'0'..=b'9' | b'a'..=b'f');
    if text.len() != 2 * N || !text.bytes().all(digit) {
        return None;
    }
    let mut bytes = [0; N];
    for (at, byte) in bytes.iter_mut().enumerate() {
        *byte = u8::from_str_radix(text.get(2 * at..2 * at + 2)?, 16).ok()?;
    }
    Some(bytes)
}

fn text(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut text, byte| {
        let _written = write!(text, "{byte:02x}");
        text
    })
}

#[cfg(test)]
mod tests {
    //! What is a context, and what is none; ids that are derived.

    use super::*;

    const CALLER: &str = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";

    #[test]
    fn only_valid_contexts_are_taken() {
        let caller = TraceParent::parse(CALLER).unwrap();
        assert!(caller.sampled);
        assert_eq!((text(&caller.trace), text(&caller.span)), {
            let fields: Vec<&str> = CALLER.split('-').collect();
            (fields[1].to_owned(), fields[2].to_owned())
        });
        let more = CALLER.replacen("00", "cc", 1) + "-what-the-future-will-be-like";
        assert!(TraceParent::parse(&more).is_some(), "later versions may say more");
        let unsampled = CALLER.replace("-01", "-00");
        assert!(!TraceParent::parse(&unsampled).unwrap().sampled);
        for wrong in [
            "",
            "00",
            &CALLER.to_uppercase(),
            &CALLER.replacen("00", "ff", 1),
            &CALLER.replacen("00", "0x", 1),
            &format!("{CALLER}-more"),
            &format!("{CALLER} "),
            &CALLER.replace("0af7651916cd43dd8448eb211c80319c", &"0".repeat(32)),
            &CALLER.replace("b7ad6b7169203331", &"0".repeat(16)),
            &CALLER.replace("b7ad6b71", "é7ad6b"),
        ] {
            assert_eq!(TraceParent::parse(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn ids_are_derived_and_differ() {
        let (run, at) = (RunId::new("r1").unwrap(), Timestamp::from_millis(7));
        let ids = SpanIds::new(&run, at, None);
        assert_eq!(ids, SpanIds::new(&run, at, None));
        assert_ne!(ids.trace, SpanIds::new(&run, Timestamp::from_millis(8), None).trace);
        assert_ne!(ids.trace, SpanIds::new(&RunId::new("r2").unwrap(), at, None).trace);
        let all =
            [ids.workflow(1), ids.workflow(2), ids.agent("1"), ids.agent("12"), ids.check("", 1)];
        let more = [ids.check("2", 1), ids.check("1", 2)];
        let unique: std::collections::BTreeSet<_> = all.iter().chain(&more).collect();
        assert_eq!(unique.len(), 7);
        let below = SpanIds::new(&run, at, Some(CALLER));
        assert_eq!(below.variable(below.agent("1")).1.split('-').nth(1), CALLER.split('-').nth(1));
        let other = SpanIds::new(&RunId::new("r2").unwrap(), at, Some(CALLER));
        assert_ne!(below.agent("1"), other.agent("1"), "two runs of one caller");
    }
}
