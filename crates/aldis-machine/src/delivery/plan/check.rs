//! What makes a plan unusable, and what its author should know.

use std::collections::HashMap;

use super::{Plan, PlanProblem, TaskSpec};

/// More tasks than anybody writes down.
const TASKS_MAX: usize = 100_000;
/// How much of a cycle is printed.
const CYCLE_MAX: usize = 20;

impl Plan {
    /// Checks the plan. `lines` has the line of each task, where it is known.
    ///
    /// ```
    /// use aldis_machine::delivery::Plan;
    ///
    /// let plan = r#"{"tasks": [{"id": "a", "acceptance": ["it works"], "needs": ["a"]}]}"#;
    /// let plan: Plan = serde_json::from_str(plan)?;
    /// let problems = plan.check(&[2]);
    /// assert_eq!(problems[0].to_string(), "line 2: the tasks need one another: a -> a");
    /// assert_eq!(problems[0].help, "remove one of these needs");
    /// # Ok::<(), serde_json::Error>(())
    /// ```
    pub fn check(&self, lines: &[usize]) -> Vec<PlanProblem> {
        let mut report = Report { problems: Vec::new(), lines };
        if self.tasks.is_empty() {
            report.fatal(None, "the plan has no tasks", "write down at least one");
        }
        if self.tasks.len() > TASKS_MAX {
            let what = format!("the plan has {} tasks", self.tasks.len());
            report.fatal(None, what, "100000 are the most; split it");
        }
        let mut known: HashMap<String, usize> = HashMap::new();
        for (no, task) in self.tasks.iter().enumerate() {
            report.task(no, task);
            if let Some(first) = known.insert(task.id.to_lowercase(), no) {
                let what = match report.line(first) {
                    0 => format!("there are two tasks `{}`", task.id),
                    before => format!("there is a task `{}` in line {before} already", task.id),
                };
                let help = "give each task an id of its own; case makes no difference";
                report.fatal(Some(no), what, help);
            }
        }
        let numbers: HashMap<&str, usize> =
            self.tasks.iter().enumerate().map(|(no, task)| (&*task.id, no)).collect();
        for (no, task) in self.tasks.iter().enumerate() {
            for need in task.needs.iter().filter(|need| !numbers.contains_key(need.as_str())) {
                let close = self.tasks.iter().find(|other| other.id.eq_ignore_ascii_case(need));
                let help = match close {
                    Some(other) => format!("did you mean `{}`?", other.id),
                    None => "add the task, or remove the need".to_owned(),
                };
                let what = format!("`{}` needs `{need}`, which is no task of the plan", task.id);
                report.fatal(Some(no), what, help);
            }
        }
        if let Some(cycle) = cycle(&self.tasks, &numbers) {
            let shown = cycle.iter().take(CYCLE_MAX).filter_map(|no| self.tasks.get(*no));
            let mut path: Vec<&str> = shown.map(|task| &*task.id).collect();
            let first = path.first().copied();
            path.extend((cycle.len() > CYCLE_MAX).then_some("..."));
            path.extend(first);
            let what = format!("the tasks need one another: {}", path.join(" -> "));
            report.fatal(cycle.first().copied(), what, "remove one of these needs");
        }
        report.problems
    }
}

/// What is wrong, and where.
struct Report<'l> {
    problems: Vec<PlanProblem>,
    lines: &'l [usize],
}

impl Report<'_> {
    fn line(&self, task: usize) -> usize {
        self.lines.get(task).copied().unwrap_or(0)
    }

    fn fatal(&mut self, task: Option<usize>, what: impl Into<String>, help: impl Into<String>) {
        let line = task.map_or(0, |no| self.line(no));
        self.problems.push(PlanProblem { line, fatal: true, what: what.into(), help: help.into() });
    }

    /// Checks what can be checked of a task alone.
    fn task(&mut self, no: usize, task: &TaskSpec) {
        let id = &task.id;
        if !is_id(id) {
            let help = "use 1 to 64 letters, digits, `.`, `_` or `-`, a letter or digit first and \
                        no dot last";
            self.fatal(Some(no), format!("`{id}` cannot name a task"), help);
        }
        if task.acceptance.is_empty() && !task.done {
            let what = format!("`{id}` has no acceptance criteria");
            let help = "list what must hold when it is done; without a list the auditor has only \
                        the description, unless a business analyst is configured"
                .to_owned();
            self.problems.push(PlanProblem { line: self.line(no), fatal: false, what, help });
        }
        for path in task.files.iter().filter(|path| !stays_inside(path)) {
            let help = "name files relative to the project, without `..`";
            self.fatal(Some(no), format!("`{path}` of `{id}` is outside the project"), help);
        }
    }
}

/// Returns the first cycle of needs, by number.
fn cycle(tasks: &[TaskSpec], numbers: &HashMap<&str, usize>) -> Option<Vec<usize>> {
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
