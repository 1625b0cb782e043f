//! Plans as people write them down: TOML, YAML, JSON, or a Markdown list with check boxes.
//!
//! [`read_plan`] says what is wrong with a plan, by line and with the remedy.

mod markdown;
mod structured;

#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

use aldis_machine::delivery::{Plan, PlanProblem};

use crate::coordinate::plan_box::PlanBox;

/// How a plan is written down.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PlanFormat {
    /// `[[tasks]]` tables.
    Toml,
    /// A list under `tasks:`.
    Yaml,
    /// An object with `tasks`.
    Json,
    /// A list with check boxes.
    Markdown,
}

impl PlanFormat {
    /// Returns the format of files with this name.
    pub(crate) fn of_name(name: &str) -> Option<Self> {
        let (_, ending) = name.rsplit_once('.')?;
        match &*ending.to_ascii_lowercase() {
            "toml" => Some(Self::Toml),
            "yaml" | "yml" => Some(Self::Yaml),
            "json" => Some(Self::Json),
            "md" | "markdown" => Some(Self::Markdown),
            _ => None,
        }
    }
}

/// What reading a plan gave.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct PlanReading {
    /// The plan; `None` if a problem is fatal.
    pub(crate) plan: Option<Plan>,
    /// What its author should know, by line.
    pub(crate) problems: Vec<PlanProblem>,
    /// The boxes of its open tasks, if it has any: those of Markdown.
    pub(crate) boxes: BTreeMap<String, PlanBox>,
}

/// A plan and where its tasks stand.
#[derive(Debug, Default)]
struct Draft {
    plan: Plan,
    /// The line of each task.
    lines: Vec<usize>,
    problems: Vec<PlanProblem>,
}

/// Reads and checks a plan.
pub(crate) fn read_plan(format: PlanFormat, text: &str) -> PlanReading {
    let Draft { plan, lines, mut problems } = match format {
        PlanFormat::Markdown => markdown::read(text),
        PlanFormat::Toml => structured::toml(text),
        PlanFormat::Yaml => structured::yaml(text),
        PlanFormat::Json => structured::json(text),
    };
    // Of a plan that could not be read nothing else is known.
    if problems.is_empty() || !plan.tasks.is_empty() {
        problems.extend(plan.check(&lines));
    }
    problems.sort_by_key(|problem| problem.line);
    let good = !problems.iter().any(|problem| problem.fatal);
    let boxes = match format {
        PlanFormat::Markdown => boxes(text, &plan, &lines),
        PlanFormat::Toml | PlanFormat::Yaml | PlanFormat::Json => BTreeMap::new(),
    };
    PlanReading { plan: good.then_some(plan), problems, boxes }
}

/// Returns the lines of the tasks that are not ticked yet.
fn boxes(text: &str, plan: &Plan, lines: &[usize]) -> BTreeMap<String, PlanBox> {
    let texts: Vec<&str> = text.lines().collect();
    let of = |line: usize| {
        let text = (*texts.get(line.checked_sub(1)?)?).to_owned();
        Some(PlanBox { line, text })
    };
    let open = plan.tasks.iter().zip(lines).filter(|(task, _)| !task.done);
    open.filter_map(|(task, line)| Some((task.id.clone(), of(*line)?))).collect()
}
