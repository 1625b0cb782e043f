//! Plans as Markdown lists with check boxes.
//!
//! A check box at the left margin is a task: `- [ ] id: Title`, or only a title, and then the tasks
//! are called `task-1`, `task-2`. What is indented below belongs to it: check boxes are acceptance
//! criteria, `Needs:`, `Priority:` and `Files:` lines say so, anything else describes it. A ticked
//! task is complete.

use aldis_machine::delivery::{PlanProblem, TaskSpec};

use super::Draft;

pub(super) fn read(text: &str) -> Draft {
    let mut reading = Reading::default();
    for (number, line) in (1..).zip(text.lines()) {
        reading.line(number, line);
    }
    reading.draft
}

#[derive(Debug, Default)]
struct Reading {
    draft: Draft,
    fenced: bool,
}

impl Reading {
    fn line(&mut self, number: usize, line: &str) {
        let text = line.trim();
        let indented = line.starts_with([' ', '\t']);
        if text.starts_with("```") || text.starts_with("~~~") {
            self.fenced = !self.fenced;
        }
        let item = checkbox(text).filter(|_| !self.fenced);
        match (item, self.draft.plan.tasks.last_mut()) {
            (Some((done, words)), _) if !indented => self.task(number, done, words),
            (Some((_, words)), Some(task)) => task.acceptance.push(words.to_owned()),
            (Some(_), None) => self.problem(number, "a criterion without a task above it"),
            (None, _) if !indented && text.starts_with('#') && !self.fenced => {
                if self.draft.plan.title.is_empty() {
                    text.trim_start_matches('#').trim().clone_into(&mut self.draft.plan.title);
                }
            }
            (None, Some(task)) if indented || self.fenced => {
                let wrong = detail(task, text.strip_prefix("- ").unwrap_or(text));
                if let Some(wrong) = wrong {
                    self.problem(number, &wrong);
                }
            }
            (None, _) => {}
        }
    }

    fn task(&mut self, number: usize, done: bool, words: &str) {
        let named = words.split_once(':').map(|(id, title)| (bare(id), title.trim()));
        let named = named.filter(|(id, _)| !id.is_empty() && !id.contains(char::is_whitespace));
        let (id, title) = match named {
            Some((id, title)) => (id.to_owned(), title),
            None => (format!("task-{}", self.draft.plan.tasks.len() + 1), words),
        };
        let title = title.trim_start_matches("**").trim().to_owned();
        self.draft.plan.tasks.push(TaskSpec { id, title, done, ..TaskSpec::default() });
        self.draft.lines.push(number);
    }

    fn problem(&mut self, line: usize, what: &str) {
        let help =
            "write tasks as `- [ ] id: title` at the margin, and indent what belongs to them";
        let (what, help) = (what.to_owned(), help.to_owned());
        self.draft.problems.push(PlanProblem { line, fatal: true, what, help });
    }
}

/// Takes a line that belongs to a task; returns what is wrong with it.
fn detail(task: &mut TaskSpec, text: &str) -> Option<String> {
    let list = |value: &str| {
        let items = value.split(',').map(|item| bare(item).to_owned());
        items.filter(|item| !item.is_empty()).collect::<Vec<_>>()
    };
    let (key, value) = text.split_once(':').unwrap_or((text, ""));
    match &*bare(key).to_ascii_lowercase() {
        "needs" | "depends on" => task.needs.extend(list(value)),
        "files" => task.files.extend(list(value)),
        "priority" => match bare(value).parse() {
            Ok(priority) => task.priority = priority,
            Err(wrong) => return Some(wrong),
        },
        _ => {
            if !task.description.is_empty() {
                task.description.push('\n');
            }
            task.description.push_str(text);
        }
    }
    None
}

/// Returns whether a check box is ticked, and what follows it.
fn checkbox(text: &str) -> Option<(bool, &str)> {
    let rest = ["- ", "* ", "+ "].iter().find_map(|mark| text.strip_prefix(mark))?.trim_start();
    let mut letters = rest.strip_prefix('[')?.chars();
    let done = match letters.next()? {
        ' ' => false,
        'x' | 'X' => true,
        _ => return None,
    };
    Some((done, letters.as_str().strip_prefix(']')?.trim()))
}

/// A word without emphasis and code marks.
fn bare(text: &str) -> &str {
    text.trim().trim_matches(['*', '`', '_']).trim()
}
