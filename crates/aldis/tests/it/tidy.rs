//! Rules of the house, as tests. Lists of exceptions may only shrink.

pub(crate) mod docs;
mod operations;
mod packages;

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use aldis_signal::Reason;
use aldis_signal::dialect::builtins;

/// Files allowed to be longer.
const LONG_FILES: &[&str] = &[];
/// Files that name a host: a dialect of another tool.
const NAMES_HOSTS: &[&str] = &["crates/aldis/src/app/reference/tags.rs"];
/// Functions allowed to be longer, as `file: name`.
const LONG_FUNCTIONS: &[&str] = &[];

/// The folders of `crates/aldis`, from the outside in: each imports only from those after it.
const FOLDERS: &[&str] = &[
    "main",
    "lib",
    "cli",
    "server",
    "tui",
    "mcp",
    "app",
    "coordinate",
    "hosts",
    "telemetry",
    "notify",
    "receipts",
    "proof",
    "agents",
    "settings",
    "view",
    "failures",
    "io",
    "error",
];
/// What each library crate may be made of.
const CRATES: &[(&str, &[&str])] = &[
    ("aldis-signal", &[]),
    ("aldis-transcript", &["aldis-signal"]),
    ("aldis-machine", &["aldis-signal"]),
    ("aldis-store", &["aldis-signal"]),
    ("aldis-engine", &["aldis-machine", "aldis-signal", "aldis-store"]),
    ("aldis-process", &[]),
];
const FILE_LINES_MAX: usize = 500;
const FUNCTION_LINES_MAX: usize = 70;

/// The pure crates.
const PURE: &[&str] =
    &["crates/aldis-machine/src", "crates/aldis-signal/src", "crates/aldis-transcript/src"];
/// What they must not even mention.
const BANNED_IN_CORE: &[&str] = &[
    "Instant::now",
    "SystemTime",
    "std::env",
    "std::fs",
    "std::net",
    "std::process",
    "std::thread",
    "tokio",
];

#[test]
fn every_file_says_what_it_is_for() {
    let silent: Vec<String> = rust_files()
        .into_iter()
        .filter(|(_, text)| !text.starts_with("//!"))
        .map(|(name, _)| name)
        .collect();
    assert_eq!(silent, [""; 0], "start with `//!` and why the file exists");
}

#[test]
fn files_are_short() {
    let long: Vec<String> = rust_files()
        .into_iter()
        .filter(|(name, text)| !is_test(name) && code(text).lines().count() > FILE_LINES_MAX)
        .map(|(name, _)| name)
        .collect();
    assert_eq!(long, LONG_FILES, "split by responsibility, or shrink the list");
}

#[test]
fn functions_fit_a_screen() {
    let mut long = Vec::new();
    for (file, text) in rust_files() {
        if !is_test(&file) {
            let functions = function_lengths(code(&text));
            let too_long = functions.into_iter().filter(|(_, lines)| *lines > FUNCTION_LINES_MAX);
            long.extend(too_long.map(|(name, _)| format!("{file}: {name}")));
        }
    }
    assert_eq!(long, LONG_FUNCTIONS, "cut them up, or shrink the list");
}

/// What stands further back knows nothing of what stands before it, so that there is no cycle.
#[test]
fn imports_go_one_way() {
    let mut wrong = Vec::new();
    for (file, text) in rust_files() {
        let Some(path) = file.strip_prefix("crates/aldis/src/").filter(|_| !is_test(&file)) else {
            continue;
        };
        let folder = path.split(['/', '.']).next().unwrap();
        let place = |name: &str| FOLDERS.iter().position(|folder| *folder == name);
        let own = place(folder).unwrap_or_else(|| panic!("`{folder}` has no place in FOLDERS"));
        for (_, rest) in
            code(&text).match_indices("crate::").map(|(at, it)| (at, &text[at + it.len()..]))
        {
            let name = rest.split(|c: char| !c.is_ascii_lowercase() && c != '_').next().unwrap();
            if place(name).is_some_and(|other| other < own) {
                wrong.push(format!("{file}: {name}"));
            }
        }
    }
    assert_eq!(wrong, [""; 0], "{FOLDERS:?}");
    for (crate_name, allowed) in CRATES {
        let manifest = document(&format!("crates/{crate_name}/Cargo.toml"));
        let own = manifest.split("[dev-dependencies]").next().unwrap();
        let used: Vec<&str> = own
            .lines()
            .filter_map(|line| line.strip_suffix(".workspace = true"))
            .filter(|name| name.starts_with("aldis-"))
            .collect();
        assert_eq!(used, *allowed, "{crate_name}");
    }
}

/// Somebody who searches for a type must find it. Only what really is the same kind of thing in many
/// machines or systems (`State`, `Event`, `Agent`) may have one name there.
#[test]
fn few_type_names_are_defined_often() {
    let mut places: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for (file, text) in rust_files() {
        if !is_test(&file) && file.contains("/src/") {
            for name in defined_types(code(&text)) {
                places.entry(name).or_default().push(file.clone());
            }
        }
    }
    places.retain(|_, files| files.len() > 2);
    assert!(places.len() <= 12, "name them by what they are: {places:#?}");
    assert!(places.contains_key("State"), "nothing was counted");
}

/// The names of the types of a file, but for those that belong to a trait.
fn defined_types(text: &str) -> impl Iterator<Item = String> {
    text.lines().filter_map(|line| {
        let own = line.trim_start();
        let own = match own.strip_prefix("pub") {
            Some(rest) => rest.split_once(' ')?.1,
            None => own,
        };
        let (kind, rest) = own.split_once(' ')?;
        let is_type =
            matches!(kind, "struct" | "enum" | "trait") || kind == "type" && !line.starts_with(' ');
        let name: String = rest.chars().take_while(|it| it.is_alphanumeric()).collect();
        (is_type && name.starts_with(char::is_uppercase)).then_some(name)
    })
}

#[test]
fn the_core_is_pure() {
    let mut impure = Vec::new();
    for (file, text) in rust_files() {
        if PURE.iter().any(|pure| file.starts_with(pure)) && !is_test(&file) {
            for (at, line) in code(&text).lines().enumerate() {
                let banned = BANNED_IN_CORE.iter().find(|banned| line.contains(**banned));
                impure.extend(banned.map(|banned| format!("{file}:{}: {banned}", at + 1)));
            }
        }
    }
    assert_eq!(impure, [""; 0], "time, files and processes belong into the shell");
}

#[test]
fn a_host_is_named_only_in_its_own_file() {
    let folder = "crates/aldis/src/hosts/";
    let files = rust_files();
    let stem = |file: &str| Some(file.strip_prefix(folder)?.strip_suffix(".rs")?.to_owned());
    let is_host = |(_, text): &&(String, String)| text.contains("static SPEC: HostSpec");
    let stems: Vec<String> =
        files.iter().filter(is_host).filter_map(|(file, _)| stem(file)).collect();
    assert!(stems.len() >= 10, "{stems:?}");
    assert!(names("host == Host::Codex", "codex") && !names("it declined", "cline"));
    let words: Vec<&str> = stems.iter().map(|stem| stem.split('_').next().unwrap()).collect();
    let mut found = Vec::new();
    for (file, text) in &files {
        let own = stems.iter().any(|stem| file.starts_with(&format!("{folder}{stem}")));
        let listed = file == "crates/aldis/src/hosts.rs" || NAMES_HOSTS.contains(&&**file);
        if !file.starts_with("crates/aldis/src/") || is_test(file) || own || listed {
            continue;
        }
        for (at, line) in code(text).lines().enumerate() {
            // Comments and the examples in help texts are documents.
            let line = line.trim_start();
            if line.starts_with("//") || line.starts_with("aldis ") {
                continue;
            }
            let named = words.iter().find(|word| names(line, word));
            found.extend(named.map(|word| format!("{file}:{}: {word}", at + 1)));
        }
    }
    assert_eq!(found, [""; 0], "ask the host's spec instead");
}

/// Whether a line of code names a host.
fn names(line: &str, host: &str) -> bool {
    // A terminal and a reader have one, too.
    if host == "cursor" {
        return ["Host::Cursor", "\"cursor\"", "\".cursor", "CURSOR_", "cursor_", "cursor-"]
            .iter()
            .any(|it| line.contains(it));
    }
    let line = line.to_ascii_lowercase();
    line.match_indices(host)
        .any(|(at, _)| !line[..at].ends_with(|before: char| before.is_ascii_alphanumeric()))
}

#[test]
fn only_one_place_knows_platforms() {
    let conditions = ["target_os", "cfg(unix", "cfg(windows", "cfg!(", "not(unix", "not(windows"];
    let mut found = Vec::new();
    for (file, text) in rust_files() {
        let elsewhere = file
            .strip_prefix("crates/aldis-process/src/")
            .is_some_and(|file| file != "os.rs" && !file.starts_with("os/"));
        if elsewhere && conditions.iter().any(|condition| text.contains(condition)) {
            found.push(file);
        }
    }
    assert_eq!(found, [""; 0], "what depends on the system belongs below os/");
}

#[test]
fn there_is_no_unsafe_code() {
    let mut found = Vec::new();
    for (file, text) in rust_files() {
        // Written in two parts, or this file would be the first to fail.
        let blocks =
            [concat!("unsafe ", "{"), concat!("unsafe ", "fn"), concat!("unsafe ", "impl")];
        if blocks.iter().any(|block| text.contains(block)) {
            found.push(file);
        }
    }
    assert_eq!(found, [""; 0]);
}

#[test]
fn no_file_knows_this_machine() {
    // Written in two parts, or this file would be the first to fail.
    let homes = [concat!("/wo", "rk/"), concat!("/ro", "ot/"), concat!("/Us", "ers/")];
    let mut found = Vec::new();
    for path in files(&root(), &["rs", "toml", "md", "yml", "sh", ""]) {
        let Ok(text) = fs::read_to_string(&path) else { continue };
        let line = text.lines().position(|line| homes.iter().any(|home| line.contains(home)));
        found.extend(line.map(|line| format!("{}:{}", name_of(&path), line + 1)));
    }
    assert_eq!(found, [""; 0], "use relative paths");
}

#[test]
fn documents_stay_short() {
    for (name, most) in [("README.md", 120), ("ARCHITECTURE.md", 150)] {
        let lines = document(name).lines().count();
        assert!(lines <= most, "{name} has {lines} lines; {most} are enough");
    }
}

#[test]
fn every_dialect_is_documented() {
    let text = document("docs/dialects.md");
    let missing: Vec<&str> = builtins()
        .iter()
        .map(|dialect| &*dialect.name)
        .filter(|name| !text.contains(&format!("\n### `{name}`")))
        .collect();
    assert_eq!(missing, [""; 0]);
}

#[test]
fn every_reason_is_documented() {
    let text = document("docs/near-misses.md");
    let missing: Vec<&str> = Reason::ALL
        .iter()
        .map(|reason| reason.as_str())
        .filter(|code| !text.contains(&format!("\n| `{code}` |")))
        .collect();
    assert_eq!(missing, [""; 0]);
}

#[test]
fn the_function_counter_counts() {
    let text = "fn one() {\n    a();\n}\n\nimpl X {\n    pub(crate) fn two(\n        self,\n    ) -> u8 {\n        \
                if a {\n            b();\n        }\n        1\n    }\n\n    fn three();\n    fn four() {}\n}\n";
    let expected = [("one".to_owned(), 1), ("two".to_owned(), 4)];
    assert_eq!(function_lengths(text), expected);
}

/// Counts the body lines of each function. Relies on rustfmt: a body opens at the end of a line and
/// closes with a brace at the indentation of its `fn`.
fn function_lengths(text: &str) -> Vec<(String, usize)> {
    let lines: Vec<&str> = text.lines().collect();
    let mut lengths = Vec::new();
    for (start, line) in lines.iter().enumerate() {
        let Some(name) = function_name(line) else { continue };
        let indent = &line[..line.len() - line.trim_start().len()];
        let at_indent = |line: &str| {
            line.strip_prefix(indent).is_some_and(|rest| !rest.starts_with([' ', '\n']))
        };
        let head = lines[start..].iter().position(|line| {
            at_indent(line) && (line.ends_with(['{', ';']) || line.ends_with("{}"))
        });
        let Some(open) = head.map(|offset| start + offset) else { continue };
        if !lines[open].ends_with('{') {
            continue;
        }
        let close = format!("{indent}}}");
        let length = lines[open + 1..].iter().take_while(|line| **line != close).count();
        lengths.push((name.to_owned(), length));
    }
    lengths
}

fn function_name(line: &str) -> Option<&str> {
    let words = line.trim_start();
    let (before, after) = words.split_once("fn ")?;
    let plain = before
        .split_whitespace()
        .all(|word| matches!(word, "async" | "const") || word.starts_with("pub"));
    if !plain || line.ends_with('}') {
        return None;
    }
    after.split(['(', '<']).next()
}

/// The part of a file that is not its inline tests.
pub(crate) fn code(text: &str) -> &str {
    text.split("#[cfg(test)]\nmod tests {").next().unwrap()
}

pub(crate) fn is_test(name: &str) -> bool {
    name.contains("/tests/")
        || name.ends_with("tests.rs")
        || name.starts_with("crates/aldis-testkit")
}

pub(crate) fn rust_files() -> Vec<(String, String)> {
    let files = [root().join("crates"), root().join("fuzz")].into_iter().flat_map(|directory| {
        files(&directory, &["rs"])
            .into_iter()
            .map(|path| (name_of(&path), fs::read_to_string(&path).unwrap()))
    });
    let mut files: Vec<_> = files.collect();
    assert!(files.len() > 20, "the files were not found");
    files.sort();
    files
}

fn document(name: &str) -> String {
    fs::read_to_string(root().join(name)).unwrap()
}

fn files(directory: &Path, extensions: &[&str]) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let Ok(entries) = fs::read_dir(directory) else { return found };
    for entry in entries {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        let extension = path.extension().unwrap_or_default().to_string_lossy().into_owned();
        if path.is_dir() {
            let foreign = [".git", "target", "corpus", "artifacts", "node_modules", "data"];
            if !foreign.contains(&name.as_str()) {
                found.extend(files(&path, extensions));
            }
        } else if name != ".git" && extensions.contains(&extension.as_str()) {
            found.push(path);
        }
    }
    found
}

fn name_of(path: &Path) -> String {
    path.strip_prefix(root()).unwrap().to_string_lossy().into_owned()
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2).unwrap().to_owned()
}
