//! Plans as Markdown lists with check boxes.
//!
//! A check box at the left margin is a task: `- [ ] id: Title` or `1. [ ] id: Title`, or only a title,
//! and then the tasks are called `task-1`, `task-2`. What is indented below belongs to it, and so does
//! text right below it: check boxes are acceptance criteria, `Needs:`, `Priority:` and `Files:` lines
//! say so, anything else describes it. A ticked task is complete. Headings and text before the first
//! task are for people; whatever else agents will not be told is warned of.

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
    /// Whether the line above belongs to a task, so that text below it does, too.
    attached: bool,
    /// Whether the line above was warned of: the rest of the paragraph is not.
    warned: bool,
}

impl Reading {
    fn line(&mut self, number: usize, line: &str) {
        let text = line.trim();
        let indented = line.starts_with([' ', '\t']);
        let fence = text.starts_with("```") || text.starts_with("~~~");
        let code = self.fenced || fence;
        self.fenced ^= fence;
        let (attached, warned) = (self.attached, self.warned);
        (self.attached, self.warned) = (false, false);
        match (checkbox(text).filter(|_| !code), self.draft.plan.tasks.last_mut()) {
            (Some((done, words)), _) if !indented => {
                self.task(number, done, words);
                self.attached = true;
            }
            (Some((_, words)), Some(task)) => {
                task.acceptance.push(words.to_owned());
                self.attached = true;
            }
            (Some(_), None) => self.problem(number, true, "a criterion without a task above it"),
            (None, _) if !indented && !code && text.starts_with('#') => {
                if self.draft.plan.title.is_empty() {
                    text.trim_start_matches('#').trim().clone_into(&mut self.draft.plan.title);
                }
            }
            (None, _) if !code && is_nearly_a_task(text) => {
                self.problem(number, false, "this is no task: its check box is not `[ ]` or `[x]`");
            }
            (None, _) if !indented && !code && item(text).is_some() => {
                self.problem(number, false, "this is no task: it has no check box");
            }
            (None, Some(task)) if indented || code || (attached && !text.is_empty()) => {
                let bullet = text.strip_prefix("- ").filter(|_| !code);
                let wrong = detail(task, bullet.unwrap_or(text));
                self.attached = !text.is_empty();
                if let Some(wrong) = wrong {
                    self.problem(number, true, &wrong);
                }
            }
            (None, Some(_)) if !text.is_empty() => {
                if !warned {
                    let what = "this text belongs to no task, so agents are not told";
                    self.problem(number, false, what);
                }
                self.warned = true;
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

    fn problem(&mut self, line: usize, fatal: bool, what: &str) {
        let help =
            "write tasks as `- [ ] id: title` at the margin, and indent what belongs to them";
        let (what, help) = (what.to_owned(), help.to_owned());
        self.draft.problems.push(PlanProblem { line, fatal, what, help });
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

/// Returns what follows the mark of a list item: a bullet, or a number with a dot or a parenthesis.
fn item(text: &str) -> Option<&str> {
    let bullet = || text.strip_prefix(['-', '*', '+']);
    let numbered = text.trim_start_matches(|letter: char| letter.is_ascii_digit());
    let number = || numbered.strip_prefix(['.', ')']).filter(|_| numbered.len() < text.len());
    bullet().or_else(number)?.strip_prefix([' ', '\t']).map(str::trim_start)
}

/// Returns whether a check box is ticked, and what follows it.
fn checkbox(text: &str) -> Option<(bool, &str)> {
    let mut letters = item(text)?.strip_prefix('[')?.chars();
    let done = match letters.next()? {
        ' ' => false,
        'x' | 'X' => true,
        _ => return None,
    };
    Some((done, letters.as_str().strip_prefix(']')?.trim()))
}

/// Whether a line was probably meant to have a check box: `- [] x`, `-[ ] x`, `[ ] x`, `- [~] x`.
fn is_nearly_a_task(text: &str) -> bool {
    let bare = item(text).unwrap_or_else(|| text.trim_start_matches(['-', '*', '+']));
    let Some((inside, rest)) = bare.strip_prefix('[').and_then(|rest| rest.split_once(']')) else {
        return false;
    };
    // A link, a reference and a footnote go on otherwise.
    inside.chars().count() <= 1 && rest.starts_with([' ', '\t'])
}

/// A word without emphasis and code marks.
fn bare(text: &str) -> &str {
    text.trim().trim_matches(['*', '`', '_']).trim()
}
