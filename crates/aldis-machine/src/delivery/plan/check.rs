//! What makes a plan unusable, and what its author should know.

use std::collections::HashMap;

use super::{Draft, PlanProblem};

/// More tasks than anybody writes down.
const TASKS_MAX: usize = 100_000;
/// How much of a cycle is printed.
const CYCLE_MAX: usize = 20;

pub(super) fn check(draft: &Draft) -> Vec<PlanProblem> {
    let tasks = &draft.plan.tasks;
    let mut problems = Vec::new();
    let mut report = |line: usize, fatal: bool, what: String, help: &str| {
        problems.push(PlanProblem { line, fatal, what, help: help.to_owned() });
    };
    if tasks.is_empty() {
        report(0, true, "the plan has no tasks".to_owned(), "write down at least one");
    }
    if tasks.len() > TASKS_MAX {
        let what = format!("the plan has {} tasks", tasks.len());
        report(0, true, what, "100000 are the most; split it");
    }
    let mut known: HashMap<String, usize> = HashMap::new();
    for (no, task) in tasks.iter().enumerate() {
        let (line, id) = (draft.line(no), &task.id);
        if !is_id(id) {
            let help = "use 1 to 64 letters, digits, `.`, `_` or `-`, a letter or digit first and \
                        no dot last";
            report(line, true, format!("`{id}` cannot name a task"), help);
        }
        if let Some(first) = known.insert(id.to_lowercase(), no) {
            let what = match draft.line(first) {
                0 => format!("there are two tasks `{id}`"),
                before => format!("there is a task `{id}` in line {before} already"),
            };
            report(line, true, what, "give each task an id of its own; case makes no difference");
        }
        if task.acceptance.is_empty() && !task.done {
            let help = "list what must hold when it is done; without a list the auditor has only \
                        the description, unless a business analyst is configured";
            report(line, false, format!("`{id}` has no acceptance criteria"), help);
        }
        for path in task.files.iter().filter(|path| !stays_inside(path)) {
            let help = "name files relative to the project, without `..`";
            report(line, true, format!("`{path}` of `{id}` is outside the project"), help);
        }
    }
    let numbers: HashMap<&str, usize> =
        tasks.iter().enumerate().map(|(no, task)| (&*task.id, no)).collect();
    for (no, task) in tasks.iter().enumerate() {
        for need in task.needs.iter().filter(|need| !numbers.contains_key(need.as_str())) {
            let close = tasks.iter().find(|other| other.id.eq_ignore_ascii_case(need));
            let help = match close {
                Some(other) => format!("did you mean `{}`?", other.id),
                None => "add the task, or remove the need".to_owned(),
            };
            let what = format!("`{}` needs `{need}`, which is no task of the plan", task.id);
            report(draft.line(no), true, what, &help);
        }
    }
    if let Some(cycle) = cycle(draft, &numbers) {
        let line = cycle.first().map_or(0, |first| draft.line(*first));
        let ids = |part: &[usize]| {
            let ids: Vec<&str> =
                part.iter().filter_map(|no| tasks.get(*no)).map(|task| &*task.id).collect();
            ids.join(" -> ")
        };
        let mut path = ids(cycle.get(..CYCLE_MAX).unwrap_or(&cycle));
        if cycle.len() > CYCLE_MAX {
            path.push_str(" -> ...");
        }
        path.push_str(" -> ");
        path.push_str(&ids(cycle.get(..1).unwrap_or_default()));
        let what = format!("the tasks need one another: {path}");
        report(line, true, what, "remove one of these needs");
    }
    problems
}

/// Returns the first cycle of needs, by number.
fn cycle(draft: &Draft, numbers: &HashMap<&str, usize>) -> Option<Vec<usize>> {
    let tasks = &draft.plan.tasks;
    // 0 unseen, 1 on the path, 2 done.
    let mut seen = vec![0_u8; tasks.len()];
    for start in 0..tasks.len() {
        // The path, and how many needs of each were followed.
        let mut path: Vec<(usize, usize)> = vec![(start, 0)];
        while let Some((no, next)) = path.last_mut() {
            let (at, task) = (*no, tasks.get(*no)?);
            let mark = seen.get_mut(at)?;
            if *mark == 2 {
                path.pop();
                continue;
            }
            *mark = 1;
            let Some(need) = task.needs.get(*next) else {
                *mark = 2;
                path.pop();
                continue;
            };
            *next += 1;
            let Some(need) = numbers.get(need.as_str()).copied() else { continue };
            match seen.get(need)? {
                0 => path.push((need, 0)),
                1 => {
                    let from = path.iter().position(|(no, _)| *no == need)?;
                    return Some(path.split_off(from).into_iter().map(|(no, _)| no).collect());
                }
                _ => {}
            }
        }
    }
    None
}

fn is_id(text: &str) -> bool {
    let word = |byte: u8| byte.is_ascii_alphanumeric() || b"._-".contains(&byte);
    (1..=64).contains(&text.len())
        && text.bytes().all(word)
        && text.starts_with(|first: char| first.is_ascii_alphanumeric())
        && !text.ends_with('.')
}

fn stays_inside(path: &str) -> bool {
    !path.is_empty()
        && !path.starts_with(['/', '\\', '~'])
        && !path.contains(':')
        && !path.chars().any(char::is_control)
        && !path.split(['/', '\\']).any(|part| part == "..")
}
