//! The table of checks by environment that a claim may need.

use super::config::Config;
use super::task::list;
use aldis_signal::signal::Fields;

/// The fields in which such a table stands.
const TABLES: [&str; 2] = ["verification_results", "commands_executed"];

/// What a claim lacks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum MatrixProblem {
    /// A check is reported as failed, whatever else is claimed.
    Failed(String),
    /// There is no row for this environment, or no table at all.
    Missing(String),
}

/// Looks at the table of a claim; `None` if it is as it should be, or not asked for.
pub(super) fn lack(config: &Config, fields: &Fields) -> Option<MatrixProblem> {
    if !config.require_environment_matrix {
        return None;
    }
    let rows: Vec<String> = TABLES.iter().flat_map(|table| list(fields, table)).collect();
    let says = |row: &str, word: &str| {
        let mut words = row.split(|letter: char| !letter.is_alphanumeric());
        words.any(|said| said == word)
    };
    if let Some(row) = rows.iter().find(|row| says(row, "FAIL") || says(row, "FAILED")) {
        return Some(MatrixProblem::Failed(row.clone()));
    }
    let passed = |environment: Option<&str>| {
        rows.iter().filter(|row| says(row, "PASS")).any(|row| {
            let named = row.split_once('(').and_then(|(_, rest)| rest.split_once(')'));
            named.is_some_and(|(named, _)| {
                environment.is_none_or(|wanted| named.trim().eq_ignore_ascii_case(wanted))
            })
        })
    };
    if config.environments.is_empty() {
        return (!passed(None)).then(|| MatrixProblem::Missing("any environment".to_owned()));
    }
    let missing = config.environments.iter().find(|environment| !passed(Some(environment)));
    missing.map(|environment| MatrixProblem::Missing(environment.clone()))
}
