//! What each route needs of whoever asks, and whether a grant has it.

use std::collections::HashMap;

use axum::http::{Method, StatusCode};

use crate::server::error::ApiError;
use crate::settings::tokens::{Grant, Scope};

/// What a route needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::server) enum Need {
    /// Nothing: whether we are there, the way in, and what a signed link opens.
    Nothing,
    /// A browser that is logged in, by its cookie alone: nothing that differs between users.
    Page,
    /// That somebody may do this much there.
    Grant(Scope, Reach),
}

/// Where a request goes, as far as grants for a run or a project must know.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::server) enum Reach {
    /// To the run or channel that the address names.
    Run,
    /// To all runs of a project: the handler leaves out what the grant does not reach.
    Project,
    /// To what the body or the query names: the handler asks the grant.
    Request,
    /// To everything.
    Everywhere,
}

/// What all routes need: the table of the API, by path and method.
#[derive(Debug, Default)]
pub(in crate::server) struct Needs(HashMap<String, Vec<(Option<Method>, Need)>>);

impl Needs {
    /// Notes what a route needs; of every method if none is named.
    pub(in crate::server) fn add(&mut self, path: &str, method: Option<Method>, need: Need) {
        self.0.entry(path.to_owned()).or_default().push((method, need));
    }

    /// Returns what a request needs; nothing where there is no such route.
    pub(super) fn of(&self, path: &str, method: &Method) -> Option<Need> {
        // Whoever may read may ask how long the answer would be.
        let method = if *method == Method::HEAD { &Method::GET } else { method };
        let row = self.0.get(path)?;
        let found = row.iter().find(|(it, _)| it.as_ref().is_none_or(|it| it == method));
        found.map(|(_, need)| *need)
    }

    /// Returns the whole table, in order.
    #[cfg(test)]
    pub(in crate::server) fn rows(&self) -> Vec<(String, Option<Method>, Need)> {
        let rows = self.0.iter().flat_map(|(path, row)| {
            row.iter().map(|(method, need)| (path.clone(), method.clone(), *need))
        });
        let mut rows: Vec<_> = rows.collect();
        rows.sort_by_key(|(path, method, _)| {
            (path.clone(), method.as_ref().map(Method::to_string))
        });
        rows
    }
}

/// Refuses a grant that does not allow this, as far as no run has to be looked at.
pub(super) fn check(grant: &Grant, scope: Scope, reach: Reach) -> Result<(), ApiError> {
    let (has, needs) = (grant.scope.as_str(), scope.as_str());
    if !grant.scope.covers(scope) {
        let message = format!(
            "this token may `{has}`, and this needs `{needs}`; make another: \
             aldis token new --scope {needs}"
        );
        return Err(insufficient(message));
    }
    let what = match (&grant.run, reach) {
        (Some(_), Reach::Project) => "one run",
        _ if reach == Reach::Everywhere && !grant.is_everywhere() => "one project",
        _ => return Ok(()),
    };
    let remedy = "make another: aldis token new --all-projects";
    Err(insufficient(format!("this token is for {what}, and this concerns others too; {remedy}")))
}

/// What a grant is refused that is good, but not for this.
pub(in crate::server) fn insufficient(message: impl Into<String>) -> ApiError {
    ApiError::new(StatusCode::FORBIDDEN, "insufficient_scope", message)
}
