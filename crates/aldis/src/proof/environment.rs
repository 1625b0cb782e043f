//! What checks depend on beside the files of the project.

use std::env;

use aldis_machine::proof::Environment;

use super::sha256;

/// How many variables are named.
const VARIABLES_MAX: usize = 200;
/// How much of `PATH` is kept.
const PATH_MAX: usize = 4_000;

/// Looks at the environment that checks inherit.
pub(super) fn look() -> Environment {
    let mut variables: Vec<(String, String)> = env::vars_os()
        .map(|(name, value)| {
            (name.to_string_lossy().into_owned(), value.to_string_lossy().into_owned())
        })
        .collect();
    variables.sort();
    let all: String = variables.iter().map(|(name, value)| format!("{name}={value}\0")).collect();
    let path = variables.iter().find(|(name, _)| name == "PATH").map(|(_, path)| &**path);
    Environment {
        system: format!("{} {}", env::consts::OS, env::consts::ARCH),
        path: path.unwrap_or_default().chars().take(PATH_MAX).collect(),
        variables: variables.iter().take(VARIABLES_MAX).map(|(name, _)| name.clone()).collect(),
        sha256: sha256(all.as_bytes()),
    }
}
