//! What happened in a run, told from what was decided: claims and their fates, questions, waits, and
//! the rows of its timeline. Works for every machine, since what a rule means for that is a table.

mod html;
mod markdown;
mod outline;
mod rules;

pub(crate) use self::html::html;
pub(crate) use self::markdown::markdown;

use std::collections::BTreeMap;

use aldis_signal::redact::redact;
use aldis_signal::time::Timestamp;

use self::rules::{Change, RuleFacts};
use super::timeline::{Lane, Mark, MarkKind, Span, SpanKind, Timeline};
use super::wire::report::{ClaimFate, ReportClaim, ReportForm, ReportQuestion, ReportWait};
use super::wire::run::DecisionForm;

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
#[derive(Debug, Default)]
pub(crate) struct History {
    pub(crate) claims: Vec<ReportClaim>,
    pub(crate) questions: Vec<ReportQuestion>,
    pub(crate) waits: Vec<ReportWait>,
    pub(crate) decisions: Vec<DecisionForm>,
    pub(crate) worked_seconds: u64,
    lanes: Lanes,
}

/// The rows of the timeline, by task; the run itself has none.
type Lanes = BTreeMap<Option<String>, Row>;

#[derive(Debug, Default)]
struct Row {
    lane: Lane,
    /// What goes on now: since when, what, and its title.
    open: Option<(Timestamp, SpanKind, String)>,
}

impl History {
    /// Tells decisions, oldest first, of a run that was last active at a time. `answers` are what humans
    /// answered, and when.
    pub(crate) fn new(
        decisions: Vec<DecisionForm>,
        ended: Timestamp,
        answers: &BTreeMap<Timestamp, String>,
    ) -> Self {
        let mut history = Self::default();
        for decision in decisions {
            history.decision(&decision, answers);
            if rules::facts(&decision.rule).matters && history.decisions.len() < DECISIONS_MAX {
                history.decisions.push(decision);
            }
        }
        let lanes: Vec<Option<String>> = history.lanes.keys().cloned().collect();
        lanes.iter().for_each(|task| history.close(task, ended));
        history
    }

    fn decision(&mut self, form: &DecisionForm, answers: &BTreeMap<Timestamp, String>) {
        let RuleFacts { change, mark, claim, question, .. } = rules::facts(&form.rule);
        match change {
            Some(Change::To(kind)) => {
                self.close(&form.task, form.at);
                self.row(&form.task).open = Some((form.at, kind, form.summary.clone()));
            }
            Some(Change::End) => self.close(&form.task, form.at),
            None => {}
        }
        if let Some(kind) = mark {
            let title = format!("{} ({})", form.summary, redact(&form.because));
            self.row(&form.task).lane.marks.push(Mark { at: form.at, kind, title });
        }
        if let Some(fate) = claim {
            self.claim(form, fate);
        }
        match question {
            Some(rules::Question::Asked) => self.questions.push(ReportQuestion {
                id: None,
                task: form.task.clone(),
                at: form.at,
                text: redact(asked(form)).into_owned(),
                answered: None,
                answer: None,
            }),
            Some(rules::Question::Answered) => self.answered(form, answers),
            None => {}
        }
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
        });
    }

    fn answered(&mut self, form: &DecisionForm, answers: &BTreeMap<Timestamp, String>) {
        let open = |it: &&mut ReportQuestion| it.answered.is_none() && it.task == form.task;
        if let Some(question) = self.questions.iter_mut().find(open) {
            let said = form.evidence.iter().find(|seen| seen.what == "said");
            let answer =
                said.map(|said| said.quote.clone()).or_else(|| answers.get(&form.at).cloned());
            question.answered = Some(form.at);
            question.answer = answer.map(|answer| redact(&answer).into_owned());
        }
    }

    fn row(&mut self, task: &Option<String>) -> &mut Row {
        self.lanes.entry(task.clone()).or_default()
    }

    /// Ends what goes on in a row.
    fn close(&mut self, task: &Option<String>, now: Timestamp) {
        let Some((from, kind, title)) = self.row(task).open.take() else { return };
        match kind {
            SpanKind::Work => self.worked_seconds += now.since(from).as_secs(),
            SpanKind::Check => {}
            SpanKind::Wait => self.waits.push(ReportWait {
                from,
                until: now,
                task: task.clone(),
                what: redact(&title).into_owned(),
            }),
        }
        self.row(task).lane.spans.push(Span { from, to: now, kind, title });
    }

    /// Returns the timeline of a run. Rows have the titles of their tasks.
    pub(crate) fn timeline(self, form: &ReportForm) -> Timeline {
        let title = |task: &Option<String>| match task {
            None => WHOLE.iter().find(|it| it.0 == form.machine).map_or("", |it| it.1).to_owned(),
            Some(id) => {
                let task = form.tasks.iter().find(|task| task.task == *id);
                task.map(|task| &task.title).filter(|it| !it.is_empty()).unwrap_or(id).clone()
            }
        };
        let mut lanes: Vec<Lane> = self
            .lanes
            .into_iter()
            .map(|(task, row)| Lane { label: title(&task), ..row.lane })
            .collect();
        let commits = form.commits.iter().rev().map(|commit| Mark {
            at: commit.at,
            kind: MarkKind::Note,
            title: format!("{} {}", commit.id, commit.subject),
        });
        let marks: Vec<Mark> = commits.collect();
        if !marks.is_empty() {
            lanes.push(Lane { label: "commits".to_owned(), spans: Vec::new(), marks });
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
