//! What a check is made of: the scripts, make files and package scripts that its command runs.
//!
//! Not a shell: a command that builds its words at run time hides what it runs. What is found is
//! pinned, and what is not found is said to be no part of the proof.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Component, Path, PathBuf};

use serde_json::Value;

use super::patterns::Patterns;
use super::shell;

/// How deep scripts are followed that run scripts.
const DEPTH_MAX: u32 = 4;
/// How many parts a check has at most.
const PARTS_MAX: usize = 64;
/// How much of a script is read.
const SCRIPT_MAX: u64 = 256 * 1024;

/// Programs that run the program after their own options.
const WRAPPERS: &[&str] =
    &["env", "time", "nice", "nohup", "command", "exec", "sudo", "timeout", "stdbuf", "xargs"];
/// Programs that run the script they are given.
const INTERPRETERS: &[&str] = &[
    "sh", "bash", "dash", "zsh", "ksh", "fish", "source", ".", "python", "python2", "python3",
    "node", "ruby", "perl", "php", "tsx", "ts-node", "pwsh", "deno", "lua",
];
/// Those of them whose scripts are read for what they run.
const SHELLS: &[&str] = &["sh", "bash", "dash", "zsh", "ksh", "source", "."];
/// Programs that run the scripts of a `package.json`.
const PACKAGE_MANAGERS: &[&str] = &["npm", "pnpm", "yarn", "bun"];
/// Options that name a folder in which the program works.
const FOLDER_OPTIONS: &[&str] = &["-C", "--prefix", "--dir", "--cwd", "--directory"];
/// Programs that run what a file of a fixed name says: the first that is there.
const FIXED: &[(&str, &[&str])] = &[
    ("make", &["GNUmakefile", "makefile", "Makefile"]),
    ("gmake", &["GNUmakefile", "makefile", "Makefile"]),
    ("just", &["justfile", "Justfile", ".justfile"]),
    ("task", &["Taskfile.yml", "Taskfile.yaml"]),
    ("tox", &["tox.ini"]),
    ("nox", &["noxfile.py"]),
    ("rake", &["Rakefile"]),
];

/// A file, or a part of it, that a check runs.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct CheckPart {
    /// The path below the project, with `/`.
    pub(super) path: String,
    /// The part of it, where the rest may change: `scripts.test`.
    pub(super) member: Option<String>,
}

/// Finds what commands run, below this folder.
pub(super) fn made_of<'c>(
    project: &Path,
    commands: impl IntoIterator<Item = &'c str>,
) -> BTreeSet<CheckPart> {
    let mut finder = Finder { project, tests: Patterns::of_tests(), found: BTreeSet::new() };
    for command in commands {
        finder.line(Path::new(""), command, DEPTH_MAX);
    }
    finder.found
}

struct Finder<'p> {
    project: &'p Path,
    tests: Patterns,
    found: BTreeSet<CheckPart>,
}

impl Finder<'_> {
    /// Looks at a command line that runs in this folder of the project.
    fn line(&mut self, folder: &Path, line: &str, depth: u32) {
        let mut folder = folder.to_owned();
        for simple in shell::split(line) {
            let words: Vec<&str> = simple.words.iter().map(String::as_str).collect();
            match without_wrappers(&words) {
                ["cd", into, ..] => folder = folder.join(into),
                [] => {}
                [program, rest @ ..] => self.command(&folder, program, rest, depth),
            }
        }
    }

    fn command(&mut self, folder: &Path, program: &str, words: &[&str], depth: u32) {
        if depth == 0 || self.found.len() >= PARTS_MAX {
            return;
        }
        let (folder, words) = in_folder(folder, words);
        let name = Path::new(program).file_name().and_then(|name| name.to_str()).unwrap_or(program);
        if program.contains('/') {
            self.script(&folder, program, depth);
        } else if INTERPRETERS.contains(&name) || name.starts_with("python3.") {
            self.interpreted(&folder, name, &words, depth);
        } else if PACKAGE_MANAGERS.contains(&name) {
            self.package(&folder, &words, depth);
        } else if let Some((_, files)) = FIXED.iter().find(|(known, _)| *known == name) {
            self.fixed(&folder, files, &words);
        } else if matches!(name, "npx" | "pnpx" | "bunx") {
            let rest = without_options(&words);
            if let [program, rest @ ..] = rest {
                self.command(&folder, program, rest, depth - 1);
            }
        }
        if depth == DEPTH_MAX {
            // `pytest tests/test_export.py`: the file that the command names is the check.
            for word in &words {
                let file = word.split("::").next().unwrap_or_default();
                if let Some(path) = self.inside(&folder, file)
                    && self.tests.fits(&path)
                    && self.project.join(&path).is_file()
                {
                    self.add(path, None);
                }
            }
        }
    }

    /// A program with a path: a script of the project, or one outside it, which is not ours to pin.
    fn script(&mut self, folder: &Path, file: &str, depth: u32) {
        let Some(path) = self.inside(folder, file) else { return };
        let full = self.project.join(&path);
        if self.add(path, None) && is_shell_script(&full) {
            self.follow(folder, &full, depth);
        }
    }

    /// Looks at what a shell script runs. Its folder is the one in which it was started.
    fn follow(&mut self, folder: &Path, script: &Path, depth: u32) {
        let small = fs::metadata(script).is_ok_and(|it| it.is_file() && it.len() <= SCRIPT_MAX);
        if let Some(text) = small.then(|| fs::read_to_string(script).ok()).flatten() {
            self.line(folder, &text, depth - 1);
        }
    }

    fn interpreted(&mut self, folder: &Path, name: &str, words: &[&str], depth: u32) {
        let shell = SHELLS.contains(&name);
        if shell && let Some(at) = words.iter().position(|word| is_command_option(word)) {
            if let Some(line) = words.get(at + 1) {
                self.line(folder, line, depth - 1);
            }
            return;
        }
        // A module or a line of code is no file.
        let no_file = |word: &&str| matches!(*word, "-m" | "-c" | "-e" | "--eval" | "-p");
        if !shell && words.iter().any(no_file) {
            return;
        }
        let rest = without_options(words);
        let rest = if name == "deno" { rest.get(1..).unwrap_or_default() } else { rest };
        let Some(path) = rest.first().and_then(|file| self.inside(folder, file)) else { return };
        let full = self.project.join(&path);
        if self.add(path, None) && shell {
            self.follow(folder, &full, depth);
        }
    }

    /// `npm test`, `pnpm run check`, `yarn lint`: a script of `package.json`, with those that the
    /// program runs before and after it.
    fn package(&mut self, folder: &Path, words: &[&str], depth: u32) {
        let script = match without_options(words) {
            ["run" | "run-script", script, ..] => script,
            ["test" | "t" | "tst", ..] => "test",
            ["exec" | "x" | "dlx", rest @ ..] => {
                if let [program, rest @ ..] = without_options(rest) {
                    self.command(folder, program, rest, depth - 1);
                }
                return;
            }
            [script, ..] => script,
            [] => return,
        };
        let Some(path) = self.inside(folder, "package.json") else { return };
        let scripts = read_scripts(&self.project.join(&path));
        let usual = script == "test" || scripts.contains_key(script);
        if !usual {
            return;
        }
        for name in [format!("pre{script}"), script.to_owned(), format!("post{script}")] {
            if self.add(path.clone(), Some(format!("scripts.{name}")))
                && let Some(line) = scripts.get(&name)
            {
                self.line(folder, line, depth - 1);
            }
        }
    }

    fn fixed(&mut self, folder: &Path, files: &[&str], words: &[&str]) {
        let named = words.iter().position(|word| matches!(*word, "-f" | "--file" | "--makefile"));
        if let Some(file) = named.and_then(|at| words.get(at + 1)) {
            if let Some(path) = self.inside(folder, file) {
                self.add(path, None);
            }
            return;
        }
        let there = |file: &&&str| self.project.join(folder).join(file).exists();
        let file = files.iter().find(there).or_else(|| files.last());
        if let Some(path) = file.and_then(|file| self.inside(folder, file)) {
            self.add(path, None);
        }
    }

    /// Adds a part. Returns whether it is new.
    fn add(&mut self, path: String, member: Option<String>) -> bool {
        self.found.len() < PARTS_MAX && self.found.insert(CheckPart { path, member })
    }

    /// A file of the project as a path below it; nothing if it is outside, or not a plain name.
    fn inside(&self, folder: &Path, file: &str) -> Option<String> {
        if file.is_empty() || file.contains(['$', '`', '*']) {
            return None;
        }
        let file = Path::new(file);
        let file = match file.strip_prefix(self.project) {
            Ok(inside) => inside.to_owned(),
            Err(_) if file.is_absolute() => return None,
            Err(_) => folder.join(file),
        };
        let mut parts: Vec<&str> = Vec::new();
        for part in file.components() {
            match part {
                Component::CurDir => {}
                Component::ParentDir => drop(parts.pop()?),
                Component::Normal(name) => parts.push(name.to_str()?),
                Component::RootDir | Component::Prefix(_) => return None,
            }
        }
        (!parts.is_empty()).then(|| parts.join("/"))
    }
}

/// `-c`, `-ec`: what follows is a command line.
fn is_command_option(word: &str) -> bool {
    word.starts_with('-') && !word.starts_with("--") && word.ends_with('c')
}

/// Leaves out variables that are set, and programs that only run another one.
fn without_wrappers<'w, 'a>(mut words: &'w [&'a str]) -> &'w [&'a str] {
    let is_assignment = |word: &str| {
        word.split_once('=').is_some_and(|(name, _)| {
            !name.is_empty() && name.bytes().all(|it| it.is_ascii_alphanumeric() || it == b'_')
        })
    };
    let opens = ["if", "then", "else", "elif", "while", "until", "do", "!", "{", "("];
    let mut wrapped = false;
    while let [first, rest @ ..] = words {
        let is_number = first.starts_with(|it: char| it.is_ascii_digit());
        let skipped = wrapped && (first.starts_with('-') || is_number);
        let wraps = WRAPPERS.contains(first);
        if !(is_assignment(first) || opens.contains(first) || wraps || skipped) {
            break;
        }
        wrapped |= wraps;
        words = rest;
    }
    words
}

fn without_options<'w, 'a>(words: &'w [&'a str]) -> &'w [&'a str] {
    let first = words.iter().position(|word| !word.starts_with('-')).unwrap_or(words.len());
    &words[first..]
}

/// Takes out the option that says in which folder the program works.
fn in_folder<'a>(folder: &Path, words: &[&'a str]) -> (PathBuf, Vec<&'a str>) {
    let (mut folder, mut rest) = (folder.to_owned(), Vec::new());
    let mut words = words.iter();
    while let Some(word) = words.next() {
        let (name, value) = word.split_once('=').map_or((*word, None), |(n, v)| (n, Some(v)));
        match FOLDER_OPTIONS.contains(&name) {
            true => {
                folder = folder.join(value.or_else(|| words.next().copied()).unwrap_or_default());
            }
            false => rest.push(*word),
        }
    }
    (folder, rest)
}

fn is_shell_script(path: &Path) -> bool {
    if path.extension().is_some_and(|it| it == "sh" || it == "bash") {
        return true;
    }
    let small = fs::metadata(path).is_ok_and(|it| it.is_file() && it.len() <= SCRIPT_MAX);
    let text = small.then(|| fs::read(path).ok()).flatten().unwrap_or_default();
    let first = text.split(|byte| *byte == b'\n').next().unwrap_or_default();
    first.starts_with(b"#!") && String::from_utf8_lossy(first).trim_end().ends_with("sh")
}

/// The scripts of a `package.json`.
fn read_scripts(file: &Path) -> BTreeMap<String, String> {
    let value = fs::read(file).ok().and_then(|text| serde_json::from_slice::<Value>(&text).ok());
    let scripts = value.as_ref().and_then(|value| value.get("scripts")?.as_object());
    let scripts = scripts.into_iter().flatten();
    scripts.filter_map(|(name, line)| Some((name.clone(), line.as_str()?.to_owned()))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(command: &str) -> String {
        let project = tempfile::tempdir().unwrap();
        let write = |name: &str, text: &str| {
            let path = project.path().join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        };
        write("scripts/test", "#!/bin/sh\n. ./scripts/lib.sh\ncargo test --all\nsrc/main.rs\n");
        write("scripts/lib.sh", "exec ./scripts/deep.sh\n");
        write("scripts/deep.sh", "true\n");
        write("Makefile", "test:\n\ttrue\n");
        write("Cargo.toml", "");
        write("tests/test_a.py", "");
        write(
            "package.json",
            r#"{"scripts": {"test": "node scripts/t.js && npm run unit", "unit": "jest", "pretest": "sh scripts/lib.sh"}}"#,
        );
        write("web/package.json", r#"{"scripts": {"check": "vitest run"}}"#);
        let parts = made_of(project.path(), [command]);
        let part = |it: &CheckPart| match &it.member {
            Some(member) => format!("{}#{member}", it.path),
            None => it.path.clone(),
        };
        parts.iter().map(part).collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn what_a_command_runs_is_found() {
        let script = "scripts/deep.sh scripts/lib.sh scripts/test src/main.rs";
        let npm = "package.json#scripts.postunit package.json#scripts.preunit \
                   package.json#scripts.unit";
        for (command, want) in [
            ("./scripts/test", script),
            ("CI=1 timeout 60 scripts/test --fast", script),
            ("bash -e scripts/lib.sh", "scripts/deep.sh scripts/lib.sh"),
            ("sh -c 'cd scripts && ./deep.sh'", "scripts/deep.sh"),
            ("make test", "Makefile"),
            ("make -C web -f ../Makefile", "Makefile"),
            (
                "cd web && npm run check",
                "web/package.json#scripts.check web/package.json#scripts.postcheck web/package.json#scripts.precheck",
            ),
            (
                "npm --prefix web run check",
                "web/package.json#scripts.check web/package.json#scripts.postcheck web/package.json#scripts.precheck",
            ),
            ("npm run unit", npm),
            ("yarn unit", npm),
            ("yarn eslint .", ""),
            ("python -m pytest tests/test_a.py::test_x", "tests/test_a.py"),
            ("python3 scripts/check.py", "scripts/check.py"),
            ("cargo test --manifest-path Cargo.toml", ""),
            ("/bin/true; ../elsewhere/x; $HOME/x", ""),
            ("cat Cargo.toml | ./scripts/deep.sh", "scripts/deep.sh"),
            ("if ./scripts/deep.sh; then exit 1; fi", "scripts/deep.sh"),
        ] {
            assert_eq!(shown(command), want, "{command}");
        }
        let test = shown("npm test");
        for part in [
            "package.json#scripts.test",
            "package.json#scripts.pretest",
            "package.json#scripts.unit",
            "scripts/t.js",
            "scripts/lib.sh",
        ] {
            assert!(test.contains(part), "{part}: {test}");
        }
    }

    #[test]
    fn hostile_scripts_end() {
        let project = tempfile::tempdir().unwrap();
        fs::write(project.path().join("a.sh"), "./a.sh\n".repeat(1_000)).unwrap();
        assert_eq!(made_of(project.path(), ["./a.sh"]).len(), 1);
        let many: String = (0..1_000).map(|number| format!("./{number}.sh\n")).collect();
        fs::write(project.path().join("b.sh"), many).unwrap();
        assert_eq!(made_of(project.path(), ["./b.sh"]).len(), PARTS_MAX);
    }
}
