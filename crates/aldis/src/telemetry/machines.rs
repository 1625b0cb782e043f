//! What the events of each machine mean for a trace: who began to work, who is done, what was checked.
//!
//! A machine says it best itself, so the journal is taken through it: its effects tell who is started, its
//! state who is still at work.

use aldis_engine::{EngineError, Retrace};
use aldis_machine::proof::CheckResult;
use aldis_machine::run::Usage;
use aldis_machine::{Machine, delivery, phases, run, turns};
use aldis_signal::time::Timestamp;
use aldis_store::{Event, RunId};
use serde_json::{Value as Json, json};

use super::context::Ordinals;
use super::names;
use super::span::{SpanOutcome, Value};
use super::trace::{CheckSpan, PASSED, RunEnd, Spans};

/// What a check is called that has no name.
const VERIFY: &str = "verify";
/// What the agent of a supervised run is called: it has no role.
const AGENT: &str = "agent";

/// A machine that is watched.
pub(super) trait Observe: Send {
    /// Takes an event.
    ///
    /// # Errors
    ///
    /// Fails if it cannot be understood.
    fn take(&mut self, event: &Event, spans: &mut Spans) -> Result<(), EngineError>;

    /// How the run ended, if it has.
    fn end(&self) -> Option<RunEnd>;

    /// The host's session that it is bound to.
    fn session(&self) -> Option<String>;
}

/// Returns what watches a run of this machine.
///
/// # Errors
///
/// Fails if the machine is not known.
pub(super) fn observer(machine: &str, run: &RunId) -> Result<Box<dyn Observe>, EngineError> {
    Ok(match machine {
        run::State::NAME => Box::new(RunObserver::<run::State>::new(run)),
        delivery::State::NAME => Box::new(RunObserver::<delivery::State>::new(run)),
        phases::State::NAME => Box::new(RunObserver::<phases::State>::new(run)),
        turns::State::NAME => Box::new(RunObserver::<turns::State>::new(run)),
        other => return Err(EngineError::NoSuchMachine(other.to_owned())),
    })
}

struct RunObserver<M> {
    retrace: Retrace<M>,
    ordinals: Ordinals,
    /// The key of the agent at work, where there is one at a time.
    current: Option<String>,
    /// How many phases there were, each visit counted.
    visits: u64,
    /// The iteration that was started last, and its prompt.
    next: Option<(u32, String)>,
}

impl<M: Machine> RunObserver<M> {
    fn new(run: &RunId) -> Self {
        let (current, visits, next) = (None, 0, None);
        let (retrace, ordinals) = (Retrace::new(run.clone()), Ordinals::default());
        Self { retrace, ordinals, current, visits, next }
    }

    fn session_of(&self) -> Option<String> {
        self.retrace.state().and_then(|state| state.summary().session.map(str::to_owned))
    }

    /// Goes from the agent at work to the next one.
    fn switch(&mut self, to: Option<(String, String)>, at: Timestamp, spans: &mut Spans) {
        let key = to.as_ref().map(|(key, _)| key.clone());
        if key == self.current {
            return;
        }
        if let Some(last) = std::mem::replace(&mut self.current, key) {
            spans.close(&last, at, SpanOutcome::Unset);
        }
        if let Some((key, name)) = to {
            spans.open(&key, (&name, None), at);
        }
    }
}

impl Observe for RunObserver<run::State> {
    fn take(&mut self, event: &Event, spans: &mut Spans) -> Result<(), EngineError> {
        let outcome = self.retrace.take(event)?;
        let number = self.ordinals.take(run::State::NAME, event);
        for effect in outcome.effects {
            if let run::Effect::Start { iteration, prompt } = effect {
                self.next = Some((iteration, prompt));
            }
        }
        let Ok(taken) = serde_json::from_str::<run::Event>(&event.body) else { return Ok(()) };
        let at = event.at;
        match (taken, number, self.current.clone()) {
            (run::Event::Launched { .. }, Some((number, _)), _) => {
                self.launched(number, at, spans);
            }
            (run::Event::LaunchFailed { .. }, Some((number, _)), _) => {
                self.launched(number, at, spans);
                let failed = SpanOutcome::Failed("not_started".to_owned());
                self.current
                    .take()
                    .into_iter()
                    .for_each(|key| spans.close(&key, at, failed.clone()));
            }
            (run::Event::Spent(usage), _, Some(key)) => set_usage(spans, &key, usage),
            (run::Event::Exited(exit), _, Some(key)) => {
                self.current = None;
                let clean = exit.is_clean();
                close_exited(spans, &key, at, (exit.code, exit.signal, clean));
            }
            (run::Event::Recovered, _, Some(key)) => {
                self.current = None;
                spans.close(&key, at, SpanOutcome::Failed("supervisor_lost".to_owned()));
            }
            (run::Event::CheckEnded(result), Some((number, task)), _) => {
                add_check(spans, (&task, number), at, &result);
            }
            (run::Event::Checked { passed, output }, Some((number, task)), _) => {
                let status = if passed { PASSED } else { "failed" };
                let check =
                    CheckSpan { name: VERIFY, status, start: at, end: at, output: Some(&output) };
                spans.check((&task, number), &check);
            }
            _ => {}
        }
        Ok(())
    }

    fn end(&self) -> Option<RunEnd> {
        let ending = self.retrace.state()?.ending()?;
        let success = ending == run::Ending::Done;
        Some(RunEnd { ending: ending.as_str().to_owned(), success })
    }

    fn session(&self) -> Option<String> {
        self.session_of()
    }
}

impl RunObserver<run::State> {
    fn launched(&mut self, number: u64, at: Timestamp, spans: &mut Spans) {
        self.switch(Some((number.to_string(), AGENT.to_owned())), at, spans);
        let key = number.to_string();
        if let Some((iteration, prompt)) = self.next.take() {
            spans.set(&key, names::ITERATION, u64::from(iteration));
            if spans.bodies {
                spans.set(&key, names::INPUT, message(&prompt));
            }
        }
        self.session().into_iter().for_each(|it| spans.set(&key, names::CONVERSATION, it));
    }
}

impl Observe for RunObserver<delivery::State> {
    fn take(&mut self, event: &Event, spans: &mut Spans) -> Result<(), EngineError> {
        let outcome = self.retrace.take(event)?;
        let number = self.ordinals.take(delivery::State::NAME, event);
        let at = event.at;
        // An agent whose end starts the next one ended first.
        match (serde_json::from_str::<delivery::Event>(&event.body), number) {
            (Ok(delivery::Event::Finished { agent, exit, .. }), _) => {
                let exit =
                    exit.map_or((None, None, true), |it| (it.code, it.signal, it.is_clean()));
                close_exited(spans, &agent.to_string(), at, exit);
            }
            (Ok(delivery::Event::Spent { agent, usage }), _) => {
                add_usage(spans, &agent.to_string(), usage);
            }
            (Ok(delivery::Event::CheckEnded { result, .. }), Some((number, task))) => {
                add_check(spans, (&task, number), at, &result);
            }
            _ => {}
        }
        let state = self.retrace.state();
        let works = |key: &str| {
            let number = key.parse().ok();
            state.zip(number).is_some_and(|(state, number)| state.agent(number).is_some())
        };
        for key in spans.at_work().into_iter().filter(|key| !works(key)) {
            spans.close(&key, at, SpanOutcome::Failed("ended".to_owned()));
        }
        for effect in outcome.effects {
            if let delivery::Effect::Dispatch(dispatch) = effect {
                let key = dispatch.agent.to_string();
                let task = dispatch.task.as_deref();
                spans.open(&key, (dispatch.role.as_str(), task), at);
                if spans.bodies {
                    spans.set(&key, names::INPUT, message(&dispatch.prompt));
                }
            }
        }
        Ok(())
    }

    fn end(&self) -> Option<RunEnd> {
        let ending = self.retrace.state()?.ending()?;
        let success = ending == delivery::Ending::Complete;
        Some(RunEnd { ending: ending.as_str().to_owned(), success })
    }

    fn session(&self) -> Option<String> {
        self.session_of()
    }
}

impl Observe for RunObserver<phases::State> {
    fn take(&mut self, event: &Event, spans: &mut Spans) -> Result<(), EngineError> {
        let before =
            self.retrace.state().map(|state| (state.phase().to_owned(), state.phase_started_at()));
        self.retrace.take(event)?;
        let Some(state) = self.retrace.state() else { return Ok(()) };
        let now = (state.phase().to_owned(), state.phase_started_at());
        let works = state.is_active().then(|| now.0.clone());
        let session = state.session().map(str::to_owned);
        if before.as_ref() != Some(&now) {
            self.visits += 1;
        }
        let visit = self.visits.to_string();
        self.switch(works.map(|phase| (visit.clone(), phase)), event.at, spans);
        session.into_iter().for_each(|it| spans.set(&visit, names::CONVERSATION, it));
        let Ok(phases::Event::Checked { proof, .. }) = serde_json::from_str(&event.body) else {
            return Ok(());
        };
        let results = proof.round().map(|round| round.results.as_slice()).unwrap_or_default();
        for result in results {
            let (number, _) = self.ordinals.checked("");
            add_check(spans, ("", number), event.at, result);
        }
        Ok(())
    }

    fn end(&self) -> Option<RunEnd> {
        let state = self.retrace.state().filter(|state| !state.is_active())?;
        let reason = state.exit_reason().map_or("ended", phases::ExitReason::as_str);
        let success = state.exit_reason().is_some_and(phases::ExitReason::is_success);
        Some(RunEnd { ending: reason.to_owned(), success })
    }

    fn session(&self) -> Option<String> {
        self.session_of()
    }
}

impl Observe for RunObserver<turns::State> {
    fn take(&mut self, event: &Event, spans: &mut Spans) -> Result<(), EngineError> {
        self.retrace.take(event)?;
        let holder = self.retrace.state().and_then(|state| {
            let turn = state.holder().turn()?;
            Some((state.turn().to_string(), turn.agent.clone()))
        });
        self.switch(holder, event.at, spans);
        Ok(())
    }

    fn end(&self) -> Option<RunEnd> {
        let closed = self.retrace.state().is_some_and(|state| state.is_closed());
        closed.then(|| RunEnd { ending: "closed".to_owned(), success: true })
    }

    fn session(&self) -> Option<String> {
        None
    }
}

fn close_exited(
    spans: &mut Spans,
    key: &str,
    at: Timestamp,
    (code, signal, clean): (Option<i32>, Option<i32>, bool),
) {
    if let Some(code) = code {
        spans.set(key, names::EXIT_CODE, Value::Number(code.into()));
    }
    let why = match (code, signal) {
        _ if clean => SpanOutcome::Ok,
        (_, Some(signal)) => SpanOutcome::Failed(format!("signal_{signal}")),
        (Some(code), None) => SpanOutcome::Failed(format!("exit_{code}")),
        (None, None) => SpanOutcome::Failed("lost".to_owned()),
    };
    spans.close(key, at, why);
}

fn add_check(spans: &mut Spans, id: (&str, u64), at: Timestamp, result: &CheckResult) {
    let took = i64::try_from(result.took_ms).unwrap_or_default();
    let start = Timestamp::from_millis(at.as_millis().saturating_sub(took));
    let name = if result.name.is_empty() { VERIFY } else { &result.name };
    let (status, output) = (result.status.as_str(), Some(&*result.output.tail));
    spans.check(id, &CheckSpan { name, status, start, end: at, output });
}

/// The cost of the iteration so far.
fn set_usage(spans: &mut Spans, key: &str, usage: Usage) {
    spans.set(key, names::TOKENS, usage.tokens);
    spans.set(key, names::COST, Value::Decimal(dollars(usage)));
}

/// What came on top.
fn add_usage(spans: &mut Spans, key: &str, usage: Usage) {
    spans.add_number(key, names::TOKENS, usage.tokens);
    spans.add_decimal(key, names::COST, dollars(usage));
}

fn dollars(usage: Usage) -> f64 {
    usage.micro_dollars as f64 / 1e6
}

/// A prompt in the form of the conventions.
fn message(prompt: &str) -> String {
    let part = json!({ "type": "text", "content": prompt });
    Json::from(vec![json!({ "role": "user", "parts": [part] })]).to_string()
}
