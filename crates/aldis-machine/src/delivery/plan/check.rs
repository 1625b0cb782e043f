//! What makes a plan unusable, and what its author should know.

use std::collections::{HashMap, HashSet};

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
        let mut found = PlanCheck { problems: Vec::new(), lines };
        if self.tasks.is_empty() {
            found.fatal(None, "the plan has no tasks", "write down at least one");
        }
        if self.tasks.len() > TASKS_MAX {
            let what = format!("the plan has {} tasks", self.tasks.len());
            found.fatal(None, what, "100000 are the most; split it");
        }
        let mut known: HashMap<String, usize> = HashMap::new();
        for (no, task) in self.tasks.iter().enumerate() {
            found.task(no, task);
            if let Some(first) = known.insert(task.id.to_lowercase(), no) {
                let what = match found.line(first) {
                    0 => format!("there are two tasks `{}`", task.id),
                    before => format!("there is a task `{}` in line {before} already", task.id),
                };
                let help = "give each task an id of its own; case makes no difference";
                found.fatal(Some(no), what, help);
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
                found.fatal(Some(no), what, help);
            }
        }
        if let Some(cycle) = cycle(&self.tasks, &numbers) {
            let shown = cycle.iter().take(CYCLE_MAX).filter_map(|no| self.tasks.get(*no));
            let mut path: Vec<&str> = shown.map(|task| &*task.id).collect();
            let first = path.first().copied();
            path.extend((cycle.len() > CYCLE_MAX).then_some("..."));
            path.extend(first);
            let what = format!("the tasks need one another: {}", path.join(" -> "));
            found.fatal(cycle.first().copied(), what, "remove one of these needs");
        }
        found.problems
    }
}

/// What is wrong, and where.
struct PlanCheck<'l> {
    problems: Vec<PlanProblem>,
    lines: &'l [usize],
}

impl PlanCheck<'_> {
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

/// Returns the first cycle of needs, by number: what is left when every task is taken away whose needs
/// are met (Kahn's algorithm) leads into one, whichever need is followed.
fn cycle(tasks: &[TaskSpec], numbers: &HashMap<&str, usize>) -> Option<Vec<usize>> {
    let needs = |no: usize| tasks[no].needs.iter().filter_map(|need| numbers.get(&**need).copied());
    let mut dependents = vec![Vec::new(); tasks.len()];
    let mut unmet: Vec<usize> = (0..tasks.len()).map(|no| needs(no).count()).collect();
    (0..tasks.len()).for_each(|no| needs(no).for_each(|need| dependents[need].push(no)));
    let mut met: Vec<usize> = (0..tasks.len()).filter(|no| unmet[*no] == 0).collect();
    while let Some(no) = met.pop() {
        for dependent in &dependents[no] {
            unmet[*dependent] -= 1;
            met.extend((unmet[*dependent] == 0).then_some(*dependent));
        }
    }
    let (mut path, mut seen) = (Vec::new(), HashSet::new());
    let mut no = unmet.iter().position(|unmet| *unmet > 0)?;
    while seen.insert(no) {
        path.push(no);
        no = needs(no).find(|need| unmet[*need] > 0)?;
    }
    let begins = path.iter().position(|on_path| *on_path == no)?;
    Some(path.split_off(begins))
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
