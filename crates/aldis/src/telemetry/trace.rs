//! Folds the journal of one run into spans: step by step, so that a run can be followed while it goes on.

use std::collections::BTreeMap;

use aldis_engine::EngineError;
use aldis_machine::{Decision, Evidence};
use aldis_signal::time::Timestamp;
use aldis_store::{Decision as StoredDecision, Event, RunId, RunSummary};

use super::context::{SpanId, SpanIds};
use super::machines::{Observe, observer};
use super::names;
use super::span::{SpanEvent, SpanOutcome, TraceSpan, Value, title};

/// The spans of a run so far.
pub(super) struct RunTrace {
    machine: Box<dyn Observe>,
    spans: Spans,
    /// The number of the last event that was taken.
    pub(super) last_event: u64,
}

/// How a run ended.
pub(super) struct RunEnd {
    pub(super) ending: String,
    pub(super) success: bool,
}

/// The spans that are open, and those that are over.
pub(super) struct Spans {
    ids: SpanIds,
    machine: String,
    title: String,
    /// Whether texts of agents, people and checks are exported.
    pub(super) bodies: bool,
    root: Option<TraceSpan>,
    /// How often the run was begun or reopened.
    stints: u64,
    open: BTreeMap<String, OpenSpan>,
    finished: Vec<TraceSpan>,
}

struct OpenSpan {
    span: TraceSpan,
    task: Option<String>,
    /// Whether it ended in the step that is being taken: what was decided then still belongs to it.
    over: bool,
}

impl RunTrace {
    /// A run of which nothing was read yet. `note` is the caller's context.
    ///
    /// # Errors
    ///
    /// Fails if the machine is not known.
    pub(super) fn new(
        run: &RunSummary,
        note: Option<&str>,
        bodies: bool,
    ) -> Result<Self, EngineError> {
        let spans = Spans {
            ids: SpanIds::new(&run.id, run.created, note),
            machine: run.machine.clone(),
            title: title(&run.title),
            bodies,
            root: None,
            stints: 0,
            open: BTreeMap::new(),
            finished: Vec::new(),
        };
        Ok(Self { machine: observer(&run.machine, &run.id)?, spans, last_event: 0 })
    }

    pub(super) fn run(&self) -> &RunId {
        &self.spans.ids.run
    }

    /// Whether whoever called us records its own spans.
    pub(super) fn is_sampled(&self) -> bool {
        self.spans.ids.sampled
    }

    /// Takes one step: its events, and what was decided in it.
    ///
    /// # Errors
    ///
    /// Fails if an event cannot be understood.
    pub(super) fn take(
        &mut self,
        events: &[Event],
        decisions: &[StoredDecision],
    ) -> Result<(), EngineError> {
        let (Some(first), Some(last)) = (events.first(), events.last()) else { return Ok(()) };
        if self.spans.root.is_none() && self.machine.end().is_none() {
            self.spans.begin(first.at);
        }
        for event in events {
            self.machine.take(event, &mut self.spans)?;
            self.last_event = event.seq;
            // A human continues it.
            if self.spans.root.is_none() && self.machine.end().is_none() {
                self.spans.begin(event.at);
            }
        }
        decisions.iter().for_each(|decision| self.spans.decided(decision));
        self.spans.settle();
        if let Some(end) = self.machine.end() {
            self.spans.finish(last.at, end, self.machine.session());
        }
        Ok(())
    }

    /// Takes what is over.
    pub(super) fn finished(&mut self) -> Vec<TraceSpan> {
        std::mem::take(&mut self.spans.finished)
    }
}

impl Spans {
    /// Opens the span of an agent. One that is known stays as it is: an agent that was started again
    /// after a limit is the same agent.
    pub(super) fn open(&mut self, key: &str, (name, task): (&str, Option<&str>), at: Timestamp) {
        if self.open.contains_key(key) {
            return;
        }
        let named = format!("{} {}", names::INVOKE_AGENT, title(name));
        let mut span = self.span(self.ids.agent(key), named, at);
        span.set(names::OPERATION, names::INVOKE_AGENT);
        span.set(names::AGENT_NAME, name);
        task.into_iter().for_each(|task| span.set(names::TASK, task));
        let task = task.map(str::to_owned);
        self.open.insert(key.to_owned(), OpenSpan { span, task, over: false });
    }

    /// Says more about an open span.
    pub(super) fn set(&mut self, key: &str, name: &'static str, value: impl Into<Value>) {
        if let Some(open) = self.open.get_mut(key) {
            open.span.set(name, value);
        }
    }

    /// Adds to a number of an open span.
    pub(super) fn add_number(&mut self, key: &str, name: &'static str, more: u64) {
        let Some(open) = self.open.get_mut(key) else { return };
        let more = i64::try_from(more).unwrap_or(i64::MAX);
        let before = match open.span.get(name) {
            Some(Value::Number(before)) => *before,
            _ => 0,
        };
        open.span.set(name, Value::Number(before.saturating_add(more)));
    }

    pub(super) fn add_decimal(&mut self, key: &str, name: &'static str, more: f64) {
        let Some(open) = self.open.get_mut(key) else { return };
        let before = match open.span.get(name) {
            Some(Value::Decimal(before)) => *before,
            _ => 0.0,
        };
        open.span.set(name, Value::Decimal(before + more));
    }

    /// The keys of the agents at work.
    pub(super) fn at_work(&self) -> Vec<String> {
        self.open.iter().filter(|(_, open)| !open.over).map(|(key, _)| key.clone()).collect()
    }

    pub(super) fn close(&mut self, key: &str, at: Timestamp, outcome: SpanOutcome) {
        if let Some(open) = self.open.get_mut(key).filter(|open| !open.over) {
            open.span.ended(at, outcome);
            open.over = true;
        }
    }

    /// Adds the span of a check that is over.
    pub(super) fn check(&mut self, (task, number): (&str, u64), check: &CheckSpan<'_>) {
        let named = format!("{} {}", names::EXECUTE_TOOL, title(check.name));
        let mut span = self.span(self.ids.check(task, number), named, check.start);
        span.set(names::OPERATION, names::EXECUTE_TOOL);
        span.set(names::TOOL_NAME, check.name);
        span.set(names::TOOL_TYPE, "extension");
        if !task.is_empty() {
            span.set(names::TASK, task);
        }
        if let Some(output) = check.output.filter(|_| self.bodies) {
            span.set(names::OUTPUT, output);
        }
        let passed = check.status == PASSED;
        let attributes = vec![
            (names::EVALUATION_NAME, check.name.into()),
            (names::EVALUATION_LABEL, check.status.into()),
            (names::EVALUATION_SCORE, Value::Decimal(f64::from(u8::from(passed)))),
        ];
        span.add(SpanEvent { name: names::EVALUATION, at: check.end, attributes });
        let failed = || SpanOutcome::Failed(check.status.to_owned());
        span.ended(check.end, if passed { SpanOutcome::Ok } else { failed() });
        self.finished.push(span);
    }

    fn begin(&mut self, at: Timestamp) {
        self.stints += 1;
        let named = format!("{} {}", names::INVOKE_WORKFLOW, self.title);
        let mut span = self.span(self.ids.workflow(self.stints), named, at);
        span.parent = self.ids.parent;
        span.set(names::OPERATION, names::INVOKE_WORKFLOW);
        span.set(names::WORKFLOW_NAME, &*self.title);
        self.root = Some(span);
    }

    fn finish(&mut self, at: Timestamp, end: RunEnd, session: Option<String>) {
        for key in self.at_work() {
            self.close(&key, at, SpanOutcome::Unset);
        }
        self.settle();
        let Some(mut root) = self.root.take() else { return };
        root.set(names::ENDING, &*end.ending);
        session.into_iter().for_each(|session| root.set(names::CONVERSATION, session));
        let failed = || SpanOutcome::Failed(end.ending.clone());
        root.ended(at, if end.success { SpanOutcome::Ok } else { failed() });
        self.finished.push(root);
    }

    /// A decision belongs to the agent that it is about, else to the run.
    fn decided(&mut self, stored: &StoredDecision) {
        let Ok(decision) = serde_json::from_str::<Decision>(&stored.body) else { return };
        let event = self.event(&decision, stored.at);
        let same = |open: &&mut OpenSpan| open.task == decision.task;
        // The latest was opened last; numbers are longer the later they are.
        let agents = self.open.iter_mut().filter(|(_, open)| same(open));
        let agent = agents.max_by_key(|(key, _)| (key.len(), (*key).clone()));
        match (agent, &mut self.root) {
            (Some((_, open)), _) => open.span.add(event),
            (None, Some(root)) => root.add(event),
            // It was made after the end.
            (None, None) => {}
        }
    }

    fn event(&self, decision: &Decision, at: Timestamp) -> SpanEvent {
        let evidence: Vec<String> = decision.evidence.iter().map(in_codes).collect();
        let mut attributes = vec![
            (names::RULE, Value::from(&*decision.rule)),
            (names::EVIDENCE, evidence.into()),
            (names::REMEDY, (&*decision.remedy).into()),
        ];
        attributes.extend(decision.task.as_deref().map(|task| (names::TASK, task.into())));
        if self.bodies {
            let quotes = decision.evidence.iter().map(|it| it.quote.clone());
            attributes.push((names::SUMMARY, (&*decision.summary).into()));
            attributes.push((names::BECAUSE, (&*decision.because).into()));
            attributes.push((names::QUOTES, quotes.collect::<Vec<_>>().into()));
        }
        SpanEvent { name: names::DECISION, at, attributes }
    }

    /// Hands over what ended in this step.
    fn settle(&mut self) {
        let over: Vec<String> =
            self.open.iter().filter(|(_, open)| open.over).map(|(key, _)| key.clone()).collect();
        for key in over {
            self.finished.extend(self.open.remove(&key).map(|open| open.span));
        }
    }

    fn span(&self, id: SpanId, name: String, at: Timestamp) -> TraceSpan {
        let attributes = vec![
            (names::RUN, Value::from(self.ids.run.as_str())),
            (names::MACHINE, (&*self.machine).into()),
        ];
        TraceSpan {
            trace: self.ids.trace,
            id,
            parent: Some(self.ids.workflow(self.stints)),
            name,
            start: at,
            end: at,
            attributes,
            events: Vec::new(),
            dropped: 0,
            outcome: SpanOutcome::Unset,
        }
    }
}

/// The status of a check that passed.
pub(super) const PASSED: &str = "passed";

/// A check that is over.
pub(super) struct CheckSpan<'c> {
    pub(super) name: &'c str,
    pub(super) status: &'c str,
    pub(super) start: Timestamp,
    pub(super) end: Timestamp,
    pub(super) output: Option<&'c str>,
}

/// What something rests on, by its codes: no words of agents or people.
fn in_codes(evidence: &Evidence) -> String {
    let parts = [evidence.name.as_deref(), evidence.reason.as_deref()];
    parts.into_iter().flatten().fold(evidence.what.clone(), |text, part| format!("{text}:{part}"))
}
