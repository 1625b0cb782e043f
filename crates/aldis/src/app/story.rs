//! The story of a run as it goes on: its decisions and events, folded once, and then only what is new.

use std::collections::BTreeMap;

use aldis_engine::{Snapshot, State};
use aldis_signal::time::Timestamp;
use aldis_store::{Cursor, RunId, Store, StoreError};
use schemars::JsonSchema;
use serde::Serialize;

use crate::view::claim_proof::{ClaimProof, proofs};
use crate::view::plan::{PlanTask, plan};
use crate::view::report::History;
use crate::view::run_view::RunView;
use crate::view::series::{ChannelMessage, Point, Series};
use crate::view::timeline::Timeline;
use crate::view::wire::card::{Fact, clean_lines};
use crate::view::wire::report::{ReportClaim, ReportQuestion, ReportWait};
use crate::view::wire::run::DecisionForm;

/// How many decisions and events are read at once.
const PAGE: usize = 1_000;
/// How much of each row of the timeline, and of each list, is told.
const PARTS_MAX: usize = 300;
const LIST_MAX: usize = 200;

/// What happened in a run, up to what was read.
#[derive(Debug)]
pub(crate) struct Story {
    run: RunId,
    history: History,
    series: Series,
    answers: BTreeMap<Timestamp, String>,
    decision: Cursor,
    event: u64,
    decisions: u64,
}

/// What is told of it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub(crate) struct StoryForm {
    /// What was asked for, in full.
    asked: String,
    /// Labels and values.
    facts: Vec<Fact>,
    /// How many decisions there are.
    decisions: u64,
    /// What happened when, in rows.
    pub(crate) timeline: Timeline,
    /// How much of the timeline is left out, because there is too much of it.
    left_out: usize,
    /// The percentage that was reported, over time.
    progress: Vec<Point>,
    /// Millionths of a dollar, over time.
    cost: Vec<Point>,
    /// Tokens, over time.
    tokens: Vec<Point>,
    /// The latest claims, and what became of each.
    pub(crate) claims: Vec<ReportClaim>,
    /// What was checked for the last claim, or for that of each task.
    proof: Vec<ClaimProof>,
    /// The latest questions, and their answers.
    questions: Vec<ReportQuestion>,
    /// The latest waits.
    waits: Vec<ReportWait>,
    /// The tasks of a delivery.
    plan: Vec<PlanTask>,
    /// The latest messages of a channel.
    messages: Vec<ChannelMessage>,
}

impl Story {
    /// A story of which nothing was read yet.
    pub(crate) fn new(run: RunId) -> Self {
        Self {
            run,
            history: History::default(),
            series: Series::default(),
            answers: BTreeMap::new(),
            decision: Cursor::START,
            event: 0,
            decisions: 0,
        }
    }

    /// Reads what is new.
    ///
    /// # Errors
    ///
    /// Fails if the store does. What was read until then is kept.
    pub(crate) fn read(&mut self, store: &dyn Store, machine: &str) -> Result<(), StoreError> {
        loop {
            let events = store.events(&self.run, self.event, PAGE)?;
            for event in &events {
                self.event = event.seq;
                self.series.add(machine, &event.kind, event.at, &event.body);
                if event.kind == "answer" {
                    let body: Option<serde_json::Value> = serde_json::from_str(&event.body).ok();
                    let text = body.and_then(|body| Some(body.get("text")?.as_str()?.to_owned()));
                    self.answers.extend(text.map(|text| (event.at, text)));
                }
            }
            if events.len() < PAGE {
                break;
            }
        }
        loop {
            let page = store.decisions_after(Some(&self.run), &self.decision, PAGE)?;
            for decision in &page {
                self.decision = decision.cursor;
                self.decisions += 1;
                DecisionForm::new(decision).into_iter().for_each(|form| self.history.add(form));
            }
            if page.len() < PAGE {
                return Ok(());
            }
        }
    }

    /// Tells it, up to now if the run goes on and somebody supervises it.
    pub(crate) fn tell(&self, snapshot: &Snapshot, view: &RunView, now: Timestamp) -> StoryForm {
        let goes_on = view.live && !view.unsupervised;
        let ended = if goes_on { now } else { snapshot.run.updated };
        let mut history = self.history.clone().finish(ended, &self.answers);
        let claims = latest(std::mem::take(&mut history.claims));
        let mut questions = latest(std::mem::take(&mut history.questions));
        for question in questions.iter_mut().filter(|question| question.answered.is_none()) {
            let open = view.questions.iter().find(|open| open.asked_at == question.at);
            question.id = open.map(|open| open.id.clone());
        }
        let waits = latest(std::mem::take(&mut history.waits));
        let lanes = history.rows(&view.machine, &view.tasks);
        let mut timeline = Timeline { from: snapshot.run.created, to: ended, lanes };
        let left_out = timeline.thin(PARTS_MAX);
        let (asked, plan) = match &snapshot.state {
            State::Run(state) => (state.setup().task.clone(), Vec::new()),
            State::Phases(state) => (state.task().to_owned(), Vec::new()),
            State::Delivery(state) => (state.run().title.clone(), plan(state, &view.tasks)),
            State::Turns(_) | State::Unreadable(_) => (String::new(), Vec::new()),
        };
        let facts = view.all_facts(now).into_iter();
        StoryForm {
            asked: clean_lines(&asked),
            facts: facts
                .map(|(label, text)| Fact { label: label.to_owned(), text: clean_lines(&text) })
                .collect(),
            decisions: self.decisions,
            timeline,
            left_out,
            progress: self.series.progress.clone(),
            cost: self.series.cost.clone(),
            tokens: self.series.tokens.clone(),
            claims,
            proof: proofs(&snapshot.state, &view.tasks),
            questions,
            waits,
            plan,
            messages: self.series.messages.iter().cloned().collect(),
        }
    }
}

fn latest<T>(mut all: Vec<T>) -> Vec<T> {
    all.drain(..all.len().saturating_sub(LIST_MAX));
    all
}
