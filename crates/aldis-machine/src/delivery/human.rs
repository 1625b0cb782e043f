//! Questions to humans, and what humans want.

use super::event::{Effect, Notice, Severity};
use super::reply::{ReportedSignal, preview};
use super::rule::Rule;
use super::run::{Ending, Question, QuestionSubject, Work};
use super::signal::Role;
use super::state::State;
use super::task::{Counters, Task, Wait};
use crate::Evidence;
use crate::words::{cause, counted, cut, listed};

/// How much of a question is kept, and how much of it in one line.
const TEXT_MAX: usize = 4_000;
const LINE_MAX: usize = 300;
/// How many names a sentence holds.
const NAMES_MAX: usize = 3;
/// The answer that gives a task up.
const FAIL: &str = "fail";

/// A question that is to be asked.
#[derive(Debug)]
pub(super) struct NewQuestion {
    /// Why it is asked.
    pub(super) rule: Rule,
    pub(super) because: String,
    /// The question in one line.
    pub(super) question: String,
    /// What the human should know besides.
    pub(super) details: String,
    /// Answers with a meaning of their own; those about a task may always give it up.
    pub(super) options: &'static [&'static str],
    pub(super) seen: Vec<Evidence>,
}

impl NewQuestion {
    /// A question that the machine asks because a limit is reached.
    pub(super) fn new(rule: Rule, because: impl Into<String>) -> Self {
        let (question, details) = (String::new(), String::new());
        let because = because.into();
        Self { rule, because, question, details, options: &[FAIL], seen: Vec::new() }
    }

    /// A question that an agent asks.
    pub(super) fn of_agent(rule: Rule, role: Role, signal: &ReportedSignal) -> Self {
        let keyed = signal.field("question");
        let (question, details) = if keyed.is_empty() {
            // Without a key, the first line below the signal is the question.
            let prose = signal.prose.trim();
            let (first, rest) = prose.split_once('\n').unwrap_or((prose, ""));
            let others = ReportedSignal { prose: rest.to_owned(), ..signal.clone() };
            (first.to_owned(), others.body_without(&NOT_DETAILS))
        } else {
            (keyed, signal.body_without(&NOT_DETAILS))
        };
        let question = match question.trim() {
            "" => format!("The {} asks for guidance without a question.", role.label()),
            question => question.to_owned(),
        };
        let because = format!("the {} needs an answer", role.label());
        Self { question, details, ..Self::new(rule, because) }
    }

    /// Says what is asked.
    pub(super) fn asking(mut self, question: impl Into<String>) -> Self {
        self.question = question.into();
        self
    }

    /// Says what the human should know besides.
    pub(super) fn knowing(mut self, details: impl Into<String>) -> Self {
        self.details = details.into();
        self
    }

    /// Says what it rests on.
    pub(super) fn seen(mut self, evidence: impl IntoIterator<Item = Evidence>) -> Self {
        self.seen = evidence.into_iter().collect();
        self
    }
}

/// The keys of a request that are shown elsewhere.
const NOT_DETAILS: [&str; 3] = ["agent", "question", "task"];

impl State {
    /// Asks how a task continues.
    pub(super) fn ask_about(&mut self, no: usize, new: NewQuestion) {
        self.ask(QuestionSubject::Task { task: no }, new);
    }

    /// Asks what an agent of a task, or of the repair, needs an answer to.
    pub(super) fn ask_for(&mut self, task: Option<usize>, role: Role, new: NewQuestion) {
        match task {
            Some(no) => self.ask_about(no, new),
            None => {
                let about = QuestionSubject::Infrastructure { role };
                self.ask(about, NewQuestion { options: &[], ..new });
            }
        }
    }

    /// Asks a human. No slot is filled before the answer.
    pub(super) fn ask(&mut self, about: QuestionSubject, new: NewQuestion) {
        self.run.questions_asked += 1;
        let id = format!("q{}", self.run.questions_asked);
        let no = about.task();
        if let Some(no) = no {
            self.set_wait(no, Wait::Human { question: id.clone() });
        }
        let NewQuestion { rule, because, question, details, options, seen } = new;
        let line = |text: &str| -> String {
            let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
            cut(&line, LINE_MAX).to_owned()
        };
        let name = no.map(|no| self.at(no).name());
        let short = match (line(&question), &name) {
            (short, _) if !short.is_empty() => short,
            (_, Some(name)) => {
                format!("{name} needs your help: {because}. How should it continue?")
            }
            (_, None) => {
                format!("The delivery needs your help: {because}. How should it continue?")
            }
        };
        let whole = if question.trim().is_empty() { &short } else { question.trim() };
        let text = format!("{whole}\n\n{}", details.trim());
        let text = cut(text.trim(), TEXT_MAX).to_owned();
        let options: Vec<String> = options.iter().map(|&word| word.to_owned()).collect();
        self.run.questions.insert(
            id.clone(),
            Question {
                about,
                question: short.clone(),
                text: text.clone(),
                options: options.clone(),
                asked_at: self.out.now,
            },
        );
        self.decide(no, rule, format!("Asked a human: {short}"))
            .because(because)
            .seen(seen)
            .next(how_to_answer(&id, &options));
        let notice = match name {
            Some(name) if !text.contains(&name) => format!("{name}: {text}"),
            _ => text,
        };
        self.notice((Notice::Question, Severity::Warning), no, notice);
        self.show_question(&id);
    }

    /// Shows an open question.
    pub(super) fn show_question(&mut self, id: &str) {
        let Some(question) = self.run.questions.get(id) else { return };
        let task = question.about.task().map(|no| self.at(no));
        self.out.effects.push(Effect::Ask {
            id: id.to_owned(),
            task: task.map(|task| task.spec.id.clone()),
            title: task.and_then(Task::title),
            question: question.in_one_line().to_owned(),
            text: question.text.clone(),
            options: question.options.clone(),
        });
    }
}

fn how_to_answer(id: &str, options: &[String]) -> String {
    let meaning = |option: &str| match option {
        "accept" => "`accept` takes it as it is",
        "fail" => "`fail` gives the task up",
        "halt" => "`halt` ends the delivery",
        "override" => "`override` continues as if it were repaired",
        _ => "`retry` starts new attempts",
    };
    let meanings: Vec<&str> = options.iter().map(|option| meaning(option)).collect();
    match &*meanings {
        [] => format!("answer with: aldis answer {id} TEXT"),
        meanings => format!("answer with: aldis answer {id} TEXT ({})", meanings.join(", ")),
    }
}

impl State {
    /// Returns what to do about the questions that are open, if there are any.
    pub(super) fn open_questions(&self) -> Option<String> {
        let ids: Vec<String> = self.run.questions.keys().cloned().collect();
        let first = ids.first()?;
        let verb = if ids.len() == 1 { "waits" } else { "wait" };
        let (count, shown) = (counted(ids.len(), "question"), listed(&ids, NAMES_MAX));
        Some(format!("{count} {verb} for you ({shown}): aldis answer {first} TEXT"))
    }

    /// A human answers.
    pub(super) fn answered(&mut self, id: &str, text: &str, by: &str) {
        let Some(question) = self.run.questions.remove(id) else { return };
        let word = text.trim().to_ascii_lowercase();
        let task = question.about.task();
        let because = match by.trim() {
            "" => "it was answered".to_owned(),
            by => format!("answered by {by}"),
        };
        let next = self.after_answer(question.about, &word);
        self.decide(task, Rule::QuestionAnswered, format!("Took the answer to {id}"))
            .because(because)
            .seen([Evidence::new("said", preview(text))])
            .next(next);
        match question.about {
            QuestionSubject::Task { task }
            | QuestionSubject::Expansion { task }
            | QuestionSubject::Acceptance { task }
                if word == FAIL =>
            {
                self.give_task_up(task);
            }
            QuestionSubject::Acceptance { task } if word == "accept" => {
                self.accept_checks(task, cause(by));
            }
            QuestionSubject::Acceptance { task } => {
                self.decline_checks(task);
                self.continue_with(task, &question.text, text);
            }
            QuestionSubject::Task { task } => self.continue_with(task, &question.text, text),
            QuestionSubject::Expansion { task } => match self.at_mut(task).proposal.take() {
                Some(proposal) if word == "accept" => {
                    self.reset_counters(task);
                    self.apply_expansion(task, proposal);
                }
                _ => self.continue_with(task, &question.text, text),
            },
            QuestionSubject::RemediationExhausted if word == "halt" => self.end(Ending::Halted),
            QuestionSubject::RemediationExhausted if word == "override" => {
                self.end_remediation("a human answered `override`");
            }
            QuestionSubject::RemediationExhausted => self.retry_repair(text),
            QuestionSubject::Infrastructure { role } => {
                self.note_repair("A human was asked:", &question.text);
                self.note_repair("The human answered:", text);
                self.dispatch(role, Work::Infrastructure);
            }
        }
    }

    /// What happens because of an answer.
    fn after_answer(&self, about: QuestionSubject, word: &str) -> String {
        let next = match (about, word) {
            (
                QuestionSubject::Task { .. }
                | QuestionSubject::Expansion { .. }
                | QuestionSubject::Acceptance { .. },
                FAIL,
            ) => "the task is given up".to_owned(),
            (QuestionSubject::Acceptance { .. }, "accept") => "a critic gets the work".to_owned(),
            (QuestionSubject::Acceptance { .. }, _) => {
                "the developer starts again with the answer".to_owned()
            }
            (QuestionSubject::Expansion { .. }, "accept") => {
                "a developer starts with the proposed criteria".to_owned()
            }
            (QuestionSubject::Task { task } | QuestionSubject::Expansion { task }, _) => {
                format!("the {} starts again with the answer", self.at(task).role.label())
            }
            (QuestionSubject::RemediationExhausted, "halt") => "the delivery ends".to_owned(),
            (QuestionSubject::RemediationExhausted, "override") => "the work continues".to_owned(),
            (QuestionSubject::RemediationExhausted, _) => "a remediation agent starts".to_owned(),
            (QuestionSubject::Infrastructure { role }, _) => {
                format!("the {} starts again with the answer", role.label())
            }
        };
        match self.run.ending {
            None => next,
            Some(_) => format!("{next} when the delivery is continued: aldis deliver --continue"),
        }
    }

    /// Lets a task continue with an answer.
    fn continue_with(&mut self, no: usize, question: &str, answer: &str) {
        self.reset_counters(no);
        let task = self.at_mut(no);
        task.note("A human was asked:", question);
        task.note("The human answered. The answer goes before everything else:", answer);
        self.set_wait(no, Wait::Slot);
    }

    /// A human looked at the task: what led to the question is counted from 0 again.
    pub(super) fn reset_counters(&mut self, no: usize) {
        let task = self.at_mut(no);
        task.counters = Counters::default();
        task.ledger.forget_history();
    }

    /// A human gives a task up.
    fn give_task_up(&mut self, no: usize) {
        self.set_wait(no, Wait::Failed);
        self.release_files(no);
        let needing = self.index.dependents(no).iter().map(|no| self.at(*no).name());
        let next = match &*needing.collect::<Vec<_>>() {
            [] => "nothing to do".to_owned(),
            names => {
                format!("{} cannot start, because it needs this task", listed(names, NAMES_MAX))
            }
        };
        self.decide(Some(no), Rule::TaskGivenUp, "Gave the task up")
            .because("a human answered `fail`")
            .next(next);
        let task = self.at(no);
        let text = format!("{} was given up by a human.", task.name());
        self.notice((Notice::TaskFailed, Severity::Error), Some(no), text);
    }

    /// A human wants no further agents, or wants them again.
    pub(super) fn set_paused(&mut self, pause: bool, by: &str) {
        if std::mem::replace(&mut self.run.paused, pause) == pause {
            return;
        }
        let cause = cause(by);
        if pause {
            self.decide(None, Rule::Paused, "Paused the delivery")
                .because(format!("paused by {cause}"))
                .next("agents at work finish; `aldis resume` starts new ones again");
        } else {
            self.decide(None, Rule::Resumed, "Resumed the delivery")
                .because(format!("resumed by {cause}"))
                .next("free slots are filled again");
        }
    }

    /// A human has a message for agents: those of a task, of a role, or of all tasks that are not over.
    pub(super) fn tell(&mut self, text: &str, to: Option<&str>, by: &str) {
        let role = to.and_then(Role::named);
        let only = to.filter(|_| role.is_none());
        let meant = |task: &Task| {
            only.is_none_or(|id| task.spec.id == id) && role.is_none_or(|role| task.role == role)
        };
        let over = |task: &Task| matches!(task.wait, Wait::Complete | Wait::Failed);
        let tasks: Vec<usize> =
            (0..self.tasks.len()).filter(|no| meant(self.at(*no)) && !over(self.at(*no))).collect();
        for no in &tasks {
            self.at_mut(*no).note("A message from the human you work for:", text);
        }
        let (summary, next) = match tasks.len() {
            0 => ("Found nobody for the message".to_owned(), "every task that is meant is over"),
            count => (
                format!("Queued a message for {}", counted(count, "task")),
                "the next agent of each of these tasks reads it",
            ),
        };
        let only = only.and_then(|id| self.index.number(id));
        self.decide(only, Rule::MessageQueued, summary)
            .because(format!("sent by {}", cause(by)))
            .seen([Evidence::new("said", preview(text))])
            .next(next);
    }

    /// A human wants the delivery to end.
    pub(super) fn aborted(&mut self, by: &str) {
        let mut next = "`aldis deliver --continue` continues where it was".to_owned();
        if let Some(questions) = self.open_questions() {
            next = format!("{next}; {questions}");
        }
        let (unfinished, evidence) = self.unfinished();
        self.decide(None, Rule::Aborted, "Aborted the delivery")
            .because(format!("ended by {}; {unfinished}", cause(by)))
            .seen(evidence)
            .next(next);
        self.end(Ending::Aborted);
    }
}
