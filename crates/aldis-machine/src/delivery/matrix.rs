//! The checks by environment that a claim may need: a list, or a Markdown table.
//!
//! A list has rows such as `- unit (Mac): PASS` or `- unit: PASS (Mac)`. A table has a column for the
//! environment and one for the result, or a column for each environment with the results in it.

use serde_json::Value;

use super::config::Config;
use super::reply::{ReportedSignal, preview};

/// The fields in which the checks stand.
const FIELDS: [&str; 3] = ["verification_results", "commands_executed", "environment_matrix"];
/// What heads the column of a table that names environments.
const ENVIRONMENT_HEADS: [&str; 3] = ["environment", "env", "platform"];

/// What heads a column of results that says nothing of environments.
const RESULT_HEADS: [&str; 4] = ["result", "results", "status", "outcome"];

/// What is wrong with the checks of a claim.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum MatrixProblem {
    /// A check is reported as failed, whatever else is claimed: which one.
    Failed(String),
    /// No check passed in this environment, or there are no checks at all.
    Missing(String),
}

/// One check in one environment.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct CheckRow {
    /// As it is shown to people.
    row: String,
    environment: Option<String>,
    failed: bool,
    passed: bool,
}

/// Returns what is wrong with the checks of a claim; `None` if nothing is, or none are needed.
pub(super) fn problem(config: &Config, claim: &ReportedSignal) -> Option<MatrixProblem> {
    if !config.require_environment_matrix {
        return None;
    }
    let checks = checks(claim);
    if let Some(check) = checks.iter().find(|check| check.failed) {
        return Some(MatrixProblem::Failed(check.row.clone()));
    }
    let passed = |wanted: Option<&str>| {
        checks.iter().filter(|check| check.passed).any(|check| {
            check.environment.as_ref().is_some_and(|environment| {
                wanted.is_none_or(|wanted| environment.eq_ignore_ascii_case(wanted))
            })
        })
    };
    if config.environments.is_empty() {
        return (!passed(None)).then(|| MatrixProblem::Missing("any environment".to_owned()));
    }
    let missing = config.environments.iter().find(|environment| !passed(Some(environment)));
    missing.map(|environment| MatrixProblem::Missing(environment.clone()))
}

fn checks(claim: &ReportedSignal) -> Vec<CheckRow> {
    let mut checks: Vec<CheckRow> =
        FIELDS.iter().flat_map(|field| rows(claim, field)).map(|row| listed(&row)).collect();
    // A table that stands directly below the signal is meant, too.
    for text in FIELDS.map(|field| claim.field(field)).iter().chain([&claim.prose]) {
        checks.extend(tables(text));
    }
    checks
}

/// The rows of a field that are not those of a table: the items of a list, or else the lines.
fn rows(claim: &ReportedSignal, field: &str) -> Vec<String> {
    let is_list = claim.fields.get(field).is_some_and(Value::is_array);
    let items = claim.list(field).into_iter().map(|item| {
        let lines = item.lines().filter(|line| cells(line).is_none());
        lines.map(str::to_owned).collect::<Vec<_>>()
    });
    let rows = items.flat_map(|lines| if is_list { vec![lines.join("\n")] } else { lines });
    rows.filter(|row| !row.trim().is_empty()).collect()
}

/// A row of a list.
fn listed(row: &str) -> CheckRow {
    let says =
        |word: &str| row.split(|letter: char| !letter.is_alphanumeric()).any(|it| it == word);
    // In any case only as a value: a check may be named after what it expects.
    let values = || row.split(':').skip(1).filter_map(|value| value.split_whitespace().next());
    let values = || values().map(|value| plain(value).trim_end_matches([',', '.', ';']));
    let environment = row.split_once('(').and_then(|(_, rest)| rest.split_once(')'));
    CheckRow {
        row: preview(row),
        environment: environment.map(|(environment, _)| environment.trim().to_owned()),
        failed: says("FAIL") || says("FAILED") || values().any(is_fail),
        passed: says("PASS") || says("PASSED") || values().any(is_pass),
    }
}

/// The checks of the tables in a text.
fn tables(text: &str) -> Vec<CheckRow> {
    let mut checks = Vec::new();
    let mut head: Option<Vec<String>> = None;
    for line in text.lines() {
        let Some(cells) = cells(line) else {
            head = None;
            continue;
        };
        match &head {
            None => head = Some(cells),
            Some(_) if cells.iter().all(|cell| is_rule(cell)) => {}
            Some(head) => checks.extend(row_checks(head, &cells)),
        }
    }
    checks
}

/// The cells of a line of a table.
fn cells(line: &str) -> Option<Vec<String>> {
    let line = line.trim().strip_prefix('|')?;
    let line = line.strip_suffix('|').unwrap_or(line);
    Some(line.split('|').map(|cell| plain(cell).to_owned()).collect())
}

/// A cell without emphasis and code marks.
fn plain(cell: &str) -> &str {
    cell.trim().trim_matches(['*', '`', '_']).trim()
}

/// Whether a cell belongs to the line between the head and the rows.
fn is_rule(cell: &str) -> bool {
    cell.contains('-') && cell.trim_matches(['-', ':', ' ']).is_empty()
}

/// The checks of one row: one, or one for each environment that has a column.
fn row_checks(head: &[String], cells: &[String]) -> Vec<CheckRow> {
    let is_environment =
        |name: &String| ENVIRONMENT_HEADS.iter().any(|head| name.eq_ignore_ascii_case(head));
    let name = cells.first().map(String::as_str).unwrap_or_default();
    let check = |environment: Option<&str>, result: &str| {
        let (passed, failed) = (is_pass(result), is_fail(result));
        (passed || failed).then(|| CheckRow {
            row: match environment {
                Some(environment) => format!("{name} ({environment}): {result}"),
                None => format!("{name}: {result}"),
            },
            environment: environment.map(str::to_owned),
            failed,
            passed,
        })
    };
    if let Some(column) = head.iter().position(is_environment) {
        let environment = cells.get(column).map(String::as_str).filter(|it| !it.is_empty());
        let results = cells.iter().filter(|cell| is_pass(cell) || is_fail(cell));
        // One failure makes the row a failure.
        let worst = results.clone().find(|cell| is_fail(cell)).or_else(|| results.clone().next());
        return worst.and_then(|result| check(environment, result)).into_iter().collect();
    }
    let columns = head.iter().zip(cells).skip(1);
    let environment = |head: &str| {
        let is_result = RESULT_HEADS.iter().any(|result| head.eq_ignore_ascii_case(result));
        (!is_result).then(|| head.to_owned())
    };
    let checks = columns.filter_map(|(head, result)| check(environment(head).as_deref(), result));
    checks.collect()
}

fn is_pass(cell: &str) -> bool {
    ["pass", "passed", "ok", "✓", "✔", "✅"].iter().any(|word| cell.eq_ignore_ascii_case(word))
}

fn is_fail(cell: &str) -> bool {
    ["fail", "failed", "✗", "✘", "❌"].iter().any(|word| cell.eq_ignore_ascii_case(word))
}

#[cfg(test)]
mod tests {
    //! Lists and tables of checks.

    use super::super::reply::AgentReply;
    use super::*;
    use aldis_signal::scan::{Rules, Token};

    fn judged(environments: &[&str], results: &str) -> Option<MatrixProblem> {
        let environments = environments.iter().map(|&name| name.to_owned()).collect();
        let config = Config { require_environment_matrix: true, environments, ..Config::default() };
        let text = format!("READY_FOR_REVIEW: t1\n\nVerification Results:\n{results}");
        let reply = AgentReply::read(Rules::builtin(), &Token::Off, &text);
        problem(&config, &reply.signals[0])
    }

    #[test]
    fn checks_are_read_from_lists_and_tables() {
        let failed = |row: &str| Some(MatrixProblem::Failed(row.to_owned()));
        let missing = |what: &str| Some(MatrixProblem::Missing(what.to_owned()));
        let long = "| Check | Environment | Exit | Result |\n|---|:-:|---|---|\n";
        let wide = "\n| Check | Mac | CI |\n|---|---|---|\n";
        for (environments, results, problem) in [
            (&["Mac", "CI"][..], "- unit: PASS (Mac)\n- unit (ci): PASSED\n".to_owned(), None),
            (&["Mac", "CI"], "- unit: PASS (Mac)\n".to_owned(), missing("CI")),
            (&[], "- unit: PASS\n".to_owned(), missing("any environment")),
            (
                &[],
                "- unit (Mac): PASS\n- lint (Mac): FAIL\n".to_owned(),
                failed("lint (Mac): FAIL"),
            ),
            (&[], format!("{long}| unit | native | 0 | PASS |\n"), None),
            (&["native"], format!("{long}| unit | `native` | 0 | **PASS** |\n"), None),
            (&["Mac"], format!("{long}| unit | native | 0 | PASS |\n"), missing("Mac")),
            (
                &[],
                format!("{long}| unit | native | 0 | PASS |\n| lint | native | 1 | FAIL |\n"),
                failed("lint (native): FAIL"),
            ),
            (&["Mac", "CI"], format!("{wide}| unit | ✅ | PASS |\n"), None),
            (&["Mac", "CI"], format!("{wide}| unit | PASS | - |\n"), missing("CI")),
            (
                &["Mac", "CI"],
                format!("{wide}| unit | PASS | PASS |\n| lint | PASS | ❌ |\n"),
                failed("lint (CI): ❌"),
            ),
            (&[], "\n| Check | Environment | Result |\n".to_owned(), missing("any environment")),
            (&[], "All is well.\n".to_owned(), missing("any environment")),
            (
                &[],
                "- unit (Mac): PASS\n- lint (Mac): failed, see above\n".to_owned(),
                failed("lint (Mac): failed, see above"),
            ),
            (&[], "- unit (Mac): PASS\n- e2e (CI): ❌\n".to_owned(), failed("e2e (CI): ❌")),
            (&["Mac"], "- a fail-over that must fail (Mac): pass\n".to_owned(), None),
            (
                &[],
                "\n| Check | Result |\n|---|---|\n| unit | PASS |\n".to_owned(),
                missing("any environment"),
            ),
            (
                &[],
                "\n| Check | Status |\n|---|---|\n| unit | FAIL |\n".to_owned(),
                failed("unit: FAIL"),
            ),
            (&[], "unit (Mac): PASS\nlint (Mac): FAIL\n".to_owned(), failed("lint (Mac): FAIL")),
            (
                &[],
                format!(
                    "I ran everything.\n\n{long}| unit | Mac | 0 | PASS |\n| lint | Mac | 1 | FAIL |\n"
                ),
                failed("lint (Mac): FAIL"),
            ),
        ] {
            assert_eq!(judged(environments, &results), problem, "{results}");
        }
    }

    #[test]
    fn a_table_may_stand_directly_below_the_signal() {
        let config = Config { require_environment_matrix: true, ..Config::default() };
        let text = "AUDIT_PASSED: t1\n\n| Check | Env | Result |\n|-|-|-|\n| unit | CI | PASS |\n";
        let reply = AgentReply::read(Rules::builtin(), &Token::Off, text);
        assert_eq!(problem(&config, &reply.signals[0]), None);
    }
}
