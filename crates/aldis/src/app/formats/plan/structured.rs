//! Plans as TOML, YAML and JSON.

use aldis_machine::delivery::{Plan, PlanProblem};

use super::Draft;

/// Makes a draft of what a parser gave: a plan, or the line and what is wrong there.
fn draft(text: &str, parsed: Result<Plan, (usize, String)>) -> Draft {
    match parsed {
        Ok(plan) => Draft { lines: lines(text, &plan), plan, problems: Vec::new() },
        Err((line, what)) => {
            let help = "a plan has `title` and `tasks`; a task has `id`, `title`, `description`, \
                        `acceptance`, `needs`, `priority`, `files` and `done`";
            let problem = PlanProblem { line, fatal: true, what, help: help.to_owned() };
            // Without tasks: whether those that are missing have problems is not known.
            Draft { problems: vec![problem], ..Draft::default() }
        }
    }
}

pub(super) fn toml(text: &str) -> Draft {
    let parsed = toml::from_str(text).map_err(|error| {
        let line = error
            .span()
            .map_or(0, |span| 1 + text.get(..span.start).unwrap_or_default().matches('\n').count());
        (line, error.message().to_owned())
    });
    draft(text, parsed)
}

pub(super) fn yaml(text: &str) -> Draft {
    let parsed = serde_saphyr::from_str(text).map_err(|error| {
        let line = error.location().map_or(0, |place| place.line());
        let what = error.without_snippet().to_string();
        // What follows is for whoever calls the parser, and the place, which is shown before it.
        let end = [", set ", " at line "].iter().filter_map(|rest| what.find(rest)).min();
        let what = what.get(..end.unwrap_or(what.len())).unwrap_or(&what).to_owned();
        (usize::try_from(line).unwrap_or(0), what)
    });
    draft(text, parsed)
}

pub(super) fn json(text: &str) -> Draft {
    let parsed = serde_json::from_str(text).map_err(|error| {
        let place = format!(" at line {} column {}", error.line(), error.column());
        let what = error.to_string();
        (error.line(), what.strip_suffix(&place).unwrap_or(&what).to_owned())
    });
    draft(text, parsed)
}

/// Finds the line of each task: where its id is given, in order.
fn lines(text: &str, plan: &Plan) -> Vec<usize> {
    let mut rest = (1..).zip(text.lines());
    plan.tasks
        .iter()
        .map(|task| {
            let mut here = rest.clone();
            let found = here.find(|(_, line)| gives_id(line, &task.id));
            match found {
                Some((line, _)) => {
                    rest = here;
                    line
                }
                None => 0,
            }
        })
        .collect()
}

/// Whether a line says that `id` is the id, in any of the three.
fn gives_id(line: &str, id: &str) -> bool {
    let name = |letter: char| letter.is_ascii_alphanumeric() || "._-".contains(letter);
    line.match_indices("id").any(|(at, _)| {
        let (before, after) = (line.get(..at), line.get(at + 2..).unwrap_or_default());
        let alone = before.is_some_and(|before| !before.ends_with(name));
        let after = after.trim_start_matches(['"', '\'', ' ', '\t']);
        let value = after.strip_prefix(['=', ':']).unwrap_or_default();
        let value = value.trim_start_matches(['"', '\'', ' ', '\t']);
        let rest = value.strip_prefix(id);
        alone && rest.is_some_and(|rest| !rest.starts_with(name))
    })
}
