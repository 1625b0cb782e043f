//! What a project is, as far as its files and the PATH say: what `aldis init` starts from.

use std::path::Path;

use serde_json::Value;

use crate::agents::git::Git;
use crate::hosts::Host;
use crate::hosts::install::locations::Locations;
use crate::settings::config;

/// What is known of a project.
#[derive(Debug)]
pub(crate) struct ProjectFacts {
    pub(crate) repository: RepositoryFacts,
    /// What it is written in.
    pub(crate) languages: Vec<&'static str>,
    /// The command that runs its tests.
    pub(crate) check: Option<String>,
    /// The hosts that are installed, the original first.
    pub(crate) hosts: Vec<Host>,
}

/// The repository of a project.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum RepositoryFacts {
    /// There is none.
    Missing,
    /// Nothing is committed yet.
    Empty,
    /// With commits, on this branch.
    On(String),
}

/// A kind of project: the file that shows it, and how its tests are run.
struct ProjectKind {
    files: &'static [&'static str],
    language: Option<&'static str>,
    check: fn(&Path, &str) -> Option<String>,
}

/// Whoever wrote a target or a script for the tests knows best, so these are first.
const KINDS: &[ProjectKind] = &[
    ProjectKind {
        files: &["GNUmakefile", "makefile", "Makefile"],
        language: None,
        check: |_, text| has_target(text, "test").then(|| "make test".to_owned()),
    },
    ProjectKind {
        files: &["justfile", "Justfile"],
        language: None,
        check: |_, text| has_target(text, "test").then(|| "just test".to_owned()),
    },
    ProjectKind {
        files: &["Cargo.toml"],
        language: Some("Rust"),
        check: |_, _| always("cargo test"),
    },
    ProjectKind { files: &["go.mod"], language: Some("Go"), check: |_, _| always("go test ./...") },
    ProjectKind { files: &["package.json"], language: Some("JavaScript"), check: node },
    ProjectKind { files: &["pyproject.toml", "setup.py"], language: Some("Python"), check: python },
    ProjectKind {
        files: &["build.gradle", "build.gradle.kts"],
        language: Some("Java"),
        check: |root, _| root.join("gradlew").is_file().then(|| "./gradlew test".to_owned()),
    },
    ProjectKind { files: &["pom.xml"], language: Some("Java"), check: |_, _| always("mvn test") },
];

impl ProjectFacts {
    /// Looks at the project with this root.
    pub(crate) fn of(root: &Path, locations: &Locations) -> Self {
        let repository = match Git::around(root) {
            None => RepositoryFacts::Missing,
            Some(git) if git.has_commit() => {
                RepositoryFacts::On(git.branch().unwrap_or_else(|| "no branch".to_owned()))
            }
            Some(_) => RepositoryFacts::Empty,
        };
        let (mut languages, mut check) = (Vec::new(), None);
        for kind in KINDS {
            let text = kind.files.iter().find_map(|file| config::text(&root.join(file)).ok());
            let Some(text) = text else { continue };
            languages.extend(kind.language.filter(|language| !languages.contains(language)));
            check = check.or_else(|| (kind.check)(root, &text));
        }
        let installed = |host: &Host| {
            let programs = host.spec().programs;
            programs.iter().any(|name| locations.find_program(name).is_some())
        };
        let mut hosts: Vec<Host> = Host::all().iter().copied().filter(installed).collect();
        hosts.sort_by_key(|host| *host != Host::original());
        Self { repository, languages, check, hosts }
    }
}

fn always(command: &str) -> Option<String> {
    Some(command.to_owned())
}

/// Whether a makefile or a justfile has a rule of this name.
fn has_target(text: &str, name: &str) -> bool {
    let rest = |line: &str| line.strip_prefix(name).map(|rest| rest.trim_start().to_owned());
    let is_rule = |rest: String| rest.starts_with(':') && !rest.starts_with(":=");
    text.lines().filter_map(rest).any(is_rule)
}

/// The script of a package, run by the package manager that wrote the lock file.
fn node(root: &Path, text: &str) -> Option<String> {
    let package: Value = serde_json::from_str(text).ok()?;
    let script = package.pointer("/scripts/test")?.as_str()?;
    // What `npm init` writes.
    if script.is_empty() || script.contains("no test specified") {
        return None;
    }
    let managers = [
        ("pnpm-lock.yaml", "pnpm test"),
        ("yarn.lock", "yarn test"),
        ("bun.lock", "bun run test"),
        ("bun.lockb", "bun run test"),
    ];
    let used = managers.iter().find(|(lock, _)| root.join(lock).is_file());
    always(used.map_or("npm test", |(_, command)| command))
}

fn python(root: &Path, text: &str) -> Option<String> {
    let has = |name: &str| root.join(name).exists();
    if !text.contains("pytest") && !has("pytest.ini") && !has("conftest.py") {
        return None;
    }
    let runners = [("uv.lock", "uv run pytest"), ("poetry.lock", "poetry run pytest")];
    let used = runners.iter().find(|(lock, _)| has(lock));
    always(used.map_or("pytest", |(_, command)| command))
}

#[cfg(test)]
mod tests {
    //! Which files mean which command.

    use std::fs;

    use super::*;

    #[test]
    fn the_command_that_runs_the_tests() {
        let script = r#"{"scripts": {"test": "vitest"}}"#;
        let no_script = r#"{"scripts": {"test": "echo \"Error: no test specified\" && exit 1"}}"#;
        for (files, languages, check) in [
            (&[][..], &[][..], None),
            (&[("Cargo.toml", "")], &["Rust"], Some("cargo test")),
            (&[("go.mod", "module x")], &["Go"], Some("go test ./...")),
            (&[("package.json", script)], &["JavaScript"], Some("npm test")),
            (
                &[("package.json", script), ("pnpm-lock.yaml", "")],
                &["JavaScript"],
                Some("pnpm test"),
            ),
            (&[("package.json", script), ("bun.lock", "")], &["JavaScript"], Some("bun run test")),
            (&[("package.json", no_script)], &["JavaScript"], None),
            (&[("package.json", "{")], &["JavaScript"], None),
            (&[("pyproject.toml", "[tool.pytest]")], &["Python"], Some("pytest")),
            (&[("pyproject.toml", "pytest"), ("uv.lock", "")], &["Python"], Some("uv run pytest")),
            (&[("pyproject.toml", "")], &["Python"], None),
            (&[("Makefile", "all:\n\ntest: all\n\ttrue\n")], &[], Some("make test")),
            (&[("Makefile", "tests:\ntest := 1\n")], &[], None),
            (&[("Makefile", "test :\n"), ("Cargo.toml", "")], &["Rust"], Some("make test")),
            (
                &[("Cargo.toml", ""), ("package.json", script)],
                &["Rust", "JavaScript"],
                Some("cargo test"),
            ),
        ] {
            let root = tempfile::tempdir().unwrap();
            for (name, text) in files {
                fs::write(root.path().join(name), text).unwrap();
            }
            let facts = ProjectFacts::of(root.path(), &Locations::new().unwrap());
            assert_eq!(
                (&*facts.languages, facts.check.as_deref()),
                (languages, check),
                "{files:?}"
            );
        }
    }
}
