//! What a delivery shows while it goes on: each decision as a line, and on a terminal the tasks that
//! matter now at the bottom.

use std::collections::BTreeMap;
use std::io::Write;

use aldis_machine::Decision;
use aldis_machine::delivery::{Ending, Rule, State, Status, Task, Work, WorkingAgent as Agent};
use aldis_signal::time::Timestamp;
use aldis_store::RunId;

use super::{Manner, Output};
use crate::view::display;
use crate::view::paint::Paint;
use crate::view::show::{elapsed, spent};

/// How many tasks are shown at the bottom.
const TASKS_MAX: usize = 12;
/// How much of a title, and of a question, is shown.
const TITLE_MAX: usize = 28;
const QUESTION_MAX: usize = 60;
/// Decisions of these rules are shown only to programs.
const QUIET: [Rule; 2] = [Rule::Started, Rule::AgentStarted];

/// Where things are shown.
pub(crate) struct Board {
    output: Output,
}

impl Board {
    pub(crate) fn new(out: Box<dyn Write>, manner: Manner) -> Self {
        Self { output: Output::new(out, manner) }
    }

    /// Says what begins.
    pub(crate) fn begin(&mut self, run: &RunId, state: &State) {
        self.output.begin(run, state.run().started_at);
        let title = display::line(&state.run().title);
        let count = state.tasks().len();
        if self.output.manner.json {
            self.output.event("begin", self.output.began, &title);
        } else {
            let head = format!(
                "{} {}  {}   {}",
                self.output.paint.good("●"),
                self.output.paint.strong(run),
                self.output.paint.strong(title),
                self.output.paint.dim(if count == 1 {
                    "1 task".to_owned()
                } else {
                    format!("{count} tasks")
                })
            );
            self.output.print(&head);
        }
    }

    /// Shows what was decided.
    pub(crate) fn decided(&mut self, now: Timestamp, decision: &Decision) {
        let task = decision.task.as_deref().unwrap_or_default();
        if self.output.manner.json {
            let text = format!("{task} {}: {}", decision.summary, decision.because);
            self.output.event("decision", now, text.trim());
            return;
        }
        if self.output.manner.quiet || QUIET.iter().any(|rule| rule.as_str() == decision.rule) {
            return;
        }
        let because = display::excerpt(&decision.because, QUESTION_MAX);
        let text = format!("{:<10} {}", display::line(task), display::line(&decision.summary));
        let line = if because.is_empty() {
            text
        } else {
            format!("{text}  {}", self.output.paint.dim(because))
        };
        self.output.print_at(now, &line);
    }

    pub(crate) fn question(&mut self, now: Timestamp, id: &str, task: Option<&str>, text: &str) {
        if self.output.manner.json {
            return self.output.event("question", now, text);
        }
        let text = display::lines(text).replace('\n', "\n         ");
        let line = format!(
            "{:<10} {}\n         aldis answer {id} TEXT",
            task.unwrap_or_default(),
            self.output.paint.warn(text)
        );
        self.output.print_at(now, &line);
    }

    pub(crate) fn problem(&mut self, now: Timestamp, text: &str) {
        if self.output.manner.json {
            return self.output.event("problem", now, text);
        }
        let line = self.output.paint.bad(display::lines(text)).to_string();
        self.output.print_at(now, &line);
    }

    /// Says to programs what others are told; people see the decision it comes from.
    pub(crate) fn notice(&mut self, now: Timestamp, kind: &str, text: &str) {
        if self.output.manner.json {
            self.output.event(kind, now, text);
        }
    }

    /// Draws the tasks that matter now. Where a person is asked, the line they type on is the last
    /// one.
    pub(crate) fn draw(&self, now: Timestamp, state: &State, asked: bool) {
        let paint = self.output.paint;
        self.output.draw(|| if asked { String::new() } else { bottom(paint, now, state) });
    }

    /// Says how it ended, and where to read more.
    pub(crate) fn ended(&mut self, now: Timestamp, state: &State, ending: Ending) {
        self.output.clear();
        if self.output.manner.json {
            return self.output.event("ended", now, ending.as_str());
        }
        let mark = match ending {
            Ending::Complete => self.output.paint.good("✔"),
            _ => self.output.paint.bad("✘"),
        };
        let what = self.output.paint.strong(ending.as_str().replace('_', " "));
        let line = format!(
            "{mark} {what}: {} after {}{}\n  aldis tasks {run} · aldis why TASK · aldis log {run}",
            tally(state),
            elapsed(now.since(self.output.began)),
            spent(state.run().spent).map(|spent| format!(", {spent}")).unwrap_or_default(),
            run = self.output.run
        );
        self.output.print(&line);
        if ending.can_be_continued() {
            let line =
                format!("  aldis deliver --continue {} goes on where it was", self.output.run);
            self.output.print(&line);
        }
    }

    /// Says that it waits for a human, and ends here.
    pub(crate) fn waits(&mut self, now: Timestamp, state: &State) {
        self.output.clear();
        let ids: Vec<&str> = state.run().questions.keys().map(String::as_str).collect();
        let text = format!(
            "waits for a human: {}; aldis answer ID TEXT, then aldis deliver --continue",
            ids.join(", ")
        );
        if self.output.manner.json {
            return self.output.event("waits", now, &text);
        }
        let line = self.output.paint.warn(text).to_string();
        self.output.print(&line);
    }
}

/// How many tasks are where, in words.
pub(crate) fn tally(state: &State) -> String {
    let counts = state.tally();
    let count = |status: Status| counts.get(&status).copied().unwrap_or(0);
    let total = state.tasks().len();
    let mut parts = vec![format!("{} of {total} tasks complete", count(Status::Complete))];
    for (status, name) in
        [(Status::Failed, "failed"), (Status::AwaitingGuidance, "waiting for you")]
    {
        if count(status) > 0 {
            parts.push(format!("{} {name}", count(status)));
        }
    }
    parts.join(", ")
}

fn bottom(paint: Paint, now: Timestamp, state: &State) -> String {
    let working = state.run().agents.len();
    let mut lines = vec![format!("  {}   {working} working", tally(state))];
    let agents: BTreeMap<usize, &Agent> = state
        .run()
        .agents
        .values()
        .filter_map(|agent| match agent.work {
            Work::Task { task } => Some((task, agent)),
            _ => None,
        })
        .collect();
    let shown =
        state.tasks().iter().enumerate().filter(|(no, task)| {
            agents.contains_key(no) || task.status() == Status::AwaitingGuidance
        });
    for (no, task) in shown.take(TASKS_MAX) {
        lines.push(format!("  {}", row(paint, now, task, agents.get(&no).copied())));
    }
    lines.join("\n")
}

/// One task in a line: its state, round, agent and time.
pub(crate) fn row(paint: Paint, now: Timestamp, task: &Task, agent: Option<&Agent>) -> String {
    let status = task.status();
    let status = match status {
        Status::Complete => paint.good(status.as_str()),
        Status::Failed | Status::AwaitingGuidance => paint.warn(status.as_str()),
        _ => paint.strong(status.as_str()),
    };
    let agent = agent
        .map(|agent| format!("{}  {}", agent.role.as_str(), elapsed(now.since(agent.started_at))));
    let setback = task.last_failure.as_deref().map(|why| {
        let why = format!("before: {}", display::excerpt(why, QUESTION_MAX));
        format!("  {}", paint.dim(why))
    });
    format!(
        "{:<12} {:<TITLE_MAX$}  {status:<18} round {}  {}{}",
        display::line(&task.spec.id),
        display::excerpt(&task.spec.title, TITLE_MAX - 1),
        task.round,
        agent.unwrap_or_default(),
        setback.unwrap_or_default()
    )
}
