//! What happened in a run, told from what was decided: claims and their fates, questions, waits, and
//! the rows of its timeline. Works for every machine, since what a rule means for that is a table.

mod outline;
mod rules;

pub(crate) use self::outline::outline;

use std::collections::BTreeMap;

use aldis_signal::redact::redact;
use aldis_signal::time::Timestamp;

use self::rules::{RuleFacts, SpanChange};
use super::timeline::{Lane, MarkKind, Span, SpanKind, Timeline, TimelineMark};
use super::wire::report::{ClaimFate, ReportClaim, ReportForm, ReportQuestion, ReportWait};
use super::wire::run::DecisionForm;
use super::wire::task::TaskLine;

/// How much of a check's output is shown.
const OUTPUT_LINES: usize = 12;
/// What the row of a whole run is called, by its machine.
const WHOLE: [(&str, &str); 4] = [
    ("run", "the agent"),
    ("delivery", "the delivery"),
    ("phases", "the session"),
    ("turns", "the channel"),
];
/// How many decisions are told.
const DECISIONS_MAX: usize = 200;

/// What was decided, told.
#[derive(Clone, Debug, Default)]
pub(crate) struct History {
    pub(crate) claims: Vec<ReportClaim>,
    pub(crate) questions: Vec<ReportQuestion>,
    pub(crate) waits: Vec<ReportWait>,
    pub(crate) decisions: Vec<DecisionForm>,
    pub(crate) worked_seconds: u64,
    lanes: Lanes,
}

/// The rows of the timeline, by task; the run itself has none.
type Lanes = BTreeMap<Option<String>, LaneRow>;

#[derive(Clone, Debug, Default)]
struct LaneRow {
    lane: Lane,
    /// What goes on now, from its beginning.
    open: Option<Span>,
}

impl History {
    /// Tells the next decision.
    pub(crate) fn add(&mut self, form: DecisionForm) {
        let RuleFacts { change, mark, claim, question, matters } = rules::facts(&form.rule);
        let decision = Some(form.seq);
        match change {
            Some(SpanChange::To(kind)) => {
                self.close(&form.task, form.at);
                let (from, title) = (form.at, form.summary.clone());
                self.row(&form.task).open = Some(Span { from, to: from, kind, title, decision });
            }
            Some(SpanChange::End) => self.close(&form.task, form.at),
            None => {}
        }
        if let Some(kind) = mark {
            let title = format!("{} ({})", form.summary, redact(&form.because));
            self.row(&form.task).lane.marks.push(TimelineMark {
                at: form.at,
                kind,
                title,
                decision,
            });
        }
        if let Some(fate) = claim {
            self.claim(&form, fate);
        }
        match question {
            Some(rules::QuestionChange::Asked) => self.questions.push(ReportQuestion {
                id: None,
                task: form.task.clone(),
                at: form.at,
                text: redact(asked(&form)).into_owned(),
                answered: None,
                answer: None,
            }),
            Some(rules::QuestionChange::Answered) => self.answered(&form),
            None => {}
        }
        if matters && self.decisions.len() < DECISIONS_MAX {
            self.decisions.push(form);
        }
    }

    /// Ends what still goes on, of a run that was last active at this time. `answers` are what humans
    /// answered, and when.
    pub(crate) fn finish(
        mut self,
        ended: Timestamp,
        answers: &BTreeMap<Timestamp, String>,
    ) -> Self {
        let lanes: Vec<Option<String>> = self.lanes.keys().cloned().collect();
        lanes.iter().for_each(|task| self.close(task, ended));
        for question in self.questions.iter_mut().filter(|question| question.answer.is_none()) {
            let answer = question.answered.and_then(|at| answers.get(&at));
            question.answer = answer.map(|answer| redact(answer).into_owned());
        }
        self
    }

    /// Notes a claim, or what became of the last one about the same task.
    fn claim(&mut self, form: &DecisionForm, fate: ClaimFate) {
        let about = |claim: &&mut ReportClaim| claim.task == form.task;
        let open = self.claims.iter_mut().rfind(about).filter(|it| it.fate == ClaimFate::Open);
        let output = form.evidence.iter().find(|seen| seen.what == "output");
        let output = output.map(|seen| last_lines(&redact(&seen.quote)));
        let because = match fate {
            ClaimFate::Open => String::new(),
            _ => redact(&format!("{} ({})", form.summary, form.because)).into_owned(),
        };
        if let (Some(claim), false) = (open, fate == ClaimFate::Open) {
            (claim.fate, claim.because, claim.output) = (fate, because, output);
            claim.decision = Some(form.seq);
            return;
        }
        // A verdict about nothing that was claimed tells of no claim.
        let mut signals = form.evidence.iter().filter(|seen| seen.what == "signal");
        let Some(seen) = signals.next_back() else { return };
        self.claims.push(ReportClaim {
            at: form.at,
            task: form.task.clone(),
            quote: redact(seen.quote.trim()).into_owned(),
            via: seen.via.clone(),
            fate,
            because,
            output,
            decision: Some(form.seq),
        });
    }

    fn answered(&mut self, form: &DecisionForm) {
        let open = |it: &&mut ReportQuestion| it.answered.is_none() && it.task == form.task;
        if let Some(question) = self.questions.iter_mut().find(open) {
            let said = form.evidence.iter().find(|seen| seen.what == "said");
            question.answered = Some(form.at);
            question.answer = said.map(|said| redact(&said.quote).into_owned());
        }
    }

    fn row(&mut self, task: &Option<String>) -> &mut LaneRow {
        self.lanes.entry(task.clone()).or_default()
    }

    /// Ends what goes on in a row.
    fn close(&mut self, task: &Option<String>, now: Timestamp) {
        let Some(span) = self.row(task).open.take() else { return };
        match span.kind {
            SpanKind::Work => self.worked_seconds += now.since(span.from).as_secs(),
            SpanKind::Check => {}
            SpanKind::Wait => self.waits.push(ReportWait {
                from: span.from,
                until: now,
                task: task.clone(),
                what: redact(&span.title).into_owned(),
            }),
        }
        self.row(task).lane.spans.push(Span { to: now, ..span });
    }

    /// Returns the rows of the timeline, in the order in which something happened in them first. They have
    /// the titles of their tasks.
    pub(crate) fn rows(self, machine: &str, tasks: &[TaskLine]) -> Vec<Lane> {
        let title = |task: &Option<String>| match task {
            None => WHOLE.iter().find(|it| it.0 == machine).map_or("", |it| it.1).to_owned(),
            Some(id) => {
                let task = tasks.iter().find(|task| task.task == *id);
                task.map(|task| &task.title).filter(|it| !it.is_empty()).unwrap_or(id).clone()
            }
        };
        let lanes = self.lanes.into_iter();
        let lanes = lanes.map(|(task, row)| Lane { label: title(&task), task, ..row.lane });
        let mut lanes: Vec<Lane> = lanes.collect();
        lanes.sort_by_key(|lane| {
            let spans = lane.spans.first().map(|span| span.from);
            spans.into_iter().chain(lane.marks.first().map(|mark| mark.at)).min()
        });
        lanes
    }

    /// Returns the timeline of a run. Rows have the titles of their tasks.
    pub(crate) fn timeline(self, form: &ReportForm) -> Timeline {
        let mut lanes = self.rows(&form.machine, &form.tasks);
        let commits = form.commits.iter().rev().map(|commit| TimelineMark {
            at: commit.at,
            kind: MarkKind::Note,
            title: format!("{} {}", commit.id, commit.subject),
            decision: None,
        });
        let marks: Vec<TimelineMark> = commits.collect();
        if !marks.is_empty() {
            lanes.push(Lane { label: "commits".to_owned(), marks, ..Lane::default() });
        }
        Timeline { from: form.began, to: form.ended, lanes }
    }
}

/// The question that a decision asks a human. A delivery has it in what it decided.
fn asked(form: &DecisionForm) -> &str {
    form.summary.strip_prefix("Asked a human: ").unwrap_or(&form.because)
}

fn last_lines(text: &str) -> String {
    let lines: Vec<&str> = text.trim_end().lines().collect();
    lines[lines.len().saturating_sub(OUTPUT_LINES)..].join("\n")
}
