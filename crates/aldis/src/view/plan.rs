//! The plan of a delivery as a graph: who waits for whom, how deep, what was found, and the critical
//! path.

use std::collections::BTreeMap;

use aldis_machine::delivery::State;
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::json;

use super::wire::card::{clean, clean_lines};
use super::wire::task::TaskLine;

/// The state of a task with which nothing is left to do.
const COMPLETE: &str = "complete";

/// A task in its plan.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub(crate) struct PlanTask {
    /// The task, as lists have it.
    #[serde(flatten)]
    pub(crate) line: TaskLine,
    /// How many tasks must come before it, one after the other.
    pub(crate) level: usize,
    /// Whether it is on the critical path.
    pub(crate) critical: bool,
    /// What reviewers found.
    pub(crate) findings: Vec<ReviewFinding>,
}

/// Something that a reviewer found.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub(crate) struct ReviewFinding {
    /// `open`, `fixed`, `withdrawn` or `disputed`.
    pub(crate) status: String,
    /// The file and the line; empty where it has no place.
    pub(crate) place: String,
    /// What is wrong, as the reviewer wrote it.
    pub(crate) text: String,
    /// The reviewer's role.
    pub(crate) by: String,
    /// How often it was raised.
    pub(crate) raised: u32,
}

/// Returns the plan of a delivery, in its own order.
pub(crate) fn plan(state: &State, lines: &[TaskLine]) -> Vec<PlanTask> {
    let needs: BTreeMap<&str, &[String]> =
        lines.iter().map(|line| (&*line.task, &*line.needs)).collect();
    let left = |id: &str| lines.iter().any(|line| line.task == id && line.status != COMPLETE);
    let mut levels = BTreeMap::new();
    let mut lengths = BTreeMap::new();
    for line in lines {
        depth(&line.task, &needs, &mut levels, &|_| true);
        depth(&line.task, &needs, &mut lengths, &left);
    }
    let critical = longest(&needs, &lengths);
    let tasks = lines.iter().zip(state.tasks()).map(|(line, task)| {
        let findings = task.ledger.findings().iter().map(|finding| ReviewFinding {
            status: name(&finding.status),
            place: match finding.line {
                Some(number) => clean(&format!("{}:{number}", finding.file)),
                None => clean(&finding.file),
            },
            text: clean_lines(&finding.text),
            by: finding.by.as_str().to_owned(),
            raised: finding.raised,
        });
        PlanTask {
            line: TaskLine {
                title: clean(&line.title),
                progress: line.progress.as_deref().map(clean),
                setback: line.setback.as_deref().map(clean_lines),
                ..line.clone()
            },
            level: levels.get(&*line.task).copied().unwrap_or(1).saturating_sub(1),
            critical: critical.contains(&&*line.task),
            findings: findings.collect(),
        }
    });
    tasks.collect()
}

/// How many tasks that count are on the longest way to this one, itself included. A plan has no cycles:
/// one is cut where it is met.
fn depth<'p>(
    id: &'p str,
    needs: &BTreeMap<&'p str, &'p [String]>,
    known: &mut BTreeMap<&'p str, usize>,
    counts: &impl Fn(&str) -> bool,
) -> usize {
    // Without recursion: a plan may be a chain of hundreds.
    let mut stack = vec![(id, false)];
    while let Some((id, is_ready)) = stack.pop() {
        let Some(before) = needs.get(id) else { continue };
        if is_ready {
            let deepest = before.iter().filter_map(|it| known.get(&**it)).max();
            let deepest = deepest.copied().unwrap_or(0);
            known.insert(id, deepest + usize::from(counts(id)));
        } else if !known.contains_key(id) {
            known.insert(id, usize::from(counts(id)));
            stack.push((id, true));
            let open = before.iter().filter(|it| !known.contains_key(&***it));
            stack.extend(open.map(|it| (&**it, false)));
        }
    }
    known.get(id).copied().unwrap_or(0)
}

/// The critical path: the tasks of the longest way through what is left to do.
fn longest<'p>(
    needs: &BTreeMap<&'p str, &'p [String]>,
    lengths: &BTreeMap<&'p str, usize>,
) -> Vec<&'p str> {
    let mut way = Vec::new();
    let longest = |ids: &mut dyn Iterator<Item = &'p str>| {
        let known = ids.filter_map(|id| Some((*lengths.get(id)?, id)));
        known.filter(|(length, _)| *length > 0).max_by_key(|(length, _)| *length)
    };
    let mut at = longest(&mut needs.keys().copied());
    while let Some((length, id)) = at {
        if way.contains(&id) {
            break;
        }
        way.push(id);
        let before = needs.get(id).copied().unwrap_or_default();
        at = longest(&mut before.iter().map(|it| &**it)).filter(|(before, _)| *before <= length);
    }
    way
}

/// The stable name of a status.
fn name(status: &impl Serialize) -> String {
    json!(status).as_str().unwrap_or_default().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn levels_and_the_longest_way() {
        let list = |ids: &[&str]| ids.iter().map(|id| (*id).to_owned()).collect::<Vec<String>>();
        let plan: Vec<(&str, Vec<String>)> = vec![
            ("a", list(&[])),
            ("b", list(&["a"])),
            ("c", list(&["b", "d"])),
            ("d", list(&[])),
            ("e", list(&["d"])),
        ];
        let needs: BTreeMap<&str, &[String]> =
            plan.iter().map(|(id, needs)| (*id, &**needs)).collect();
        for (done, want, way) in [
            (&[][..], [1, 2, 3, 1, 2], vec!["c", "b", "a"]),
            (&["a", "b"][..], [0, 0, 2, 1, 2], vec!["e", "d"]),
            (&["a", "b", "c", "d", "e"][..], [0, 0, 0, 0, 0], vec![]),
        ] {
            let mut lengths = BTreeMap::new();
            for (id, _) in &plan {
                depth(id, &needs, &mut lengths, &|id| !done.contains(&id));
            }
            assert_eq!(lengths.values().copied().collect::<Vec<usize>>(), want, "{done:?}");
            assert_eq!(longest(&needs, &lengths), way, "{done:?}");
        }
    }

    #[test]
    fn a_chain_of_thousands_and_a_cycle_end() {
        let ids: Vec<String> = (0..5_000).map(|number| format!("t{number}")).collect();
        let before: Vec<Vec<String>> = (0..ids.len())
            .map(|at| at.checked_sub(1).map(|at| ids[at].clone()).into_iter().collect())
            .collect();
        let needs: BTreeMap<&str, &[String]> =
            ids.iter().zip(&before).map(|(id, needs)| (&**id, &**needs)).collect();
        assert_eq!(depth("t4999", &needs, &mut BTreeMap::new(), &|_| true), 5_000);
        let own = [vec!["b".to_owned()], vec!["a".to_owned()]];
        let cycle: BTreeMap<&str, &[String]> = [("a", &*own[0]), ("b", &*own[1])].into();
        let mut lengths = BTreeMap::new();
        depth("a", &cycle, &mut lengths, &|_| true);
        assert!(longest(&cycle, &lengths).len() <= 2);
    }
}
