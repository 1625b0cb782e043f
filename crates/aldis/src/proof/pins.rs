//! What is pinned when the work begins, and what of it changed since.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io;
use std::path::Path;

use aldis_machine::proof::{ChangeKind, Config, FileChange, FileClass, Pinned};
use ignore::WalkBuilder;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use sha2::{Digest as _, Sha256};

use super::parts::{CheckPart, made_of};
use super::patterns::Patterns;
use super::{hex, sha256};

/// The note of a run that keeps what is pinned.
pub(crate) const PINS: &str = "proof/pins";

/// The note of a delivery that keeps what is pinned for a task.
pub(crate) fn pins_of_task(no: usize) -> String {
    format!("{PINS}/{no}")
}

/// How many files are pinned.
const PINS_MAX: usize = 20_000;
/// How many files are looked at.
const FILES_MAX: usize = 200_000;
/// How many changes are named.
const CHANGES_MAX: usize = 200;
/// How many of a check's own files are named.
const OWN_MAX: usize = 20;
/// How much of a file is read whole to find a part of it.
const PART_MAX: u64 = 8 << 20;
/// Folders that tools fill by themselves, our own included.
const SKIPPED: [&str; 6] = [".aldis", ".caw", ".git", "node_modules", "target", ".venv"];

/// Everything that is pinned for a run, as the store keeps it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Pins {
    /// Format version.
    v: u32,
    /// By path and part.
    pins: Vec<Pin>,
}

/// A file, or a part of it, as it was.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Pin {
    path: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    part: Option<String>,
    class: FileClass,
    #[serde(flatten)]
    was: FileState,
}

/// How a file is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "is", rename_all = "snake_case")]
enum FileState {
    /// It is not there, or its part is not.
    Absent,
    /// A regular file.
    File {
        sha256: String,
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        executable: bool,
    },
    /// A link: the hash is of its target, and of what is there.
    Link { sha256: String },
    /// Something else, or something that cannot be read.
    Other,
}

impl FileState {
    fn hash(&self) -> Option<String> {
        match self {
            Self::File { sha256, .. } | Self::Link { sha256 } => Some(sha256.clone()),
            Self::Absent | Self::Other => None,
        }
    }
}

type Key = (String, Option<String>);

impl Pins {
    /// Pins what the checks run, what is protected, and test files, below this folder. What is `kept`
    /// stays pinned as it was.
    ///
    /// # Errors
    ///
    /// Says which pattern is wrong, or that there are too many files.
    pub(crate) fn take(
        project: &Path,
        config: &Config,
        kept: Option<&Self>,
    ) -> Result<Self, String> {
        let known: BTreeMap<Key, &Pin> = kept.into_iter().flat_map(Self::by_key).collect();
        let mut pins: Vec<Pin> = known.values().map(|pin| (*pin).clone()).collect();
        for (key, class) in scope(project, config)? {
            if !known.contains_key(&key) {
                let was = look(project, &key);
                let (path, part) = key;
                pins.push(Pin { path, part, class, was });
            }
        }
        if pins.len() > PINS_MAX {
            return Err(format!("there are more than {PINS_MAX} files to pin"));
        }
        pins.sort_by(|one, other| (&one.path, &one.part).cmp(&(&other.path, &other.part)));
        Ok(Self { v: 1, pins })
    }

    fn by_key(&self) -> impl Iterator<Item = (Key, &Pin)> {
        self.pins.iter().map(|pin| ((pin.path.clone(), pin.part.clone()), pin))
    }

    /// The files that are pinned as a whole, with their digests.
    pub(crate) fn files(&self) -> impl Iterator<Item = (&str, &str)> {
        self.pins.iter().filter_map(|pin| match &pin.was {
            FileState::File { sha256, .. } if pin.part.is_none() => Some((&*pin.path, &**sha256)),
            _ => None,
        })
    }

    /// What a run remembers of its pins.
    ///
    /// # Errors
    ///
    /// Fails if they cannot be written as JSON.
    pub(crate) fn summary(
        &self,
        config: &Config,
        commit: Option<String>,
    ) -> Result<Pinned, String> {
        let stored = serde_json::to_vec(&(&config.checks, self));
        let stored = stored.map_err(|error| format!("the pins: {error}"))?;
        let own = self.pins.iter().filter(|pin| pin.class == FileClass::Own);
        let place = |pin: &Pin| match &pin.part {
            Some(part) => format!("{} ({part})", pin.path),
            None => pin.path.clone(),
        };
        Ok(Pinned {
            sha256: sha256(&stored),
            files: u64::try_from(self.pins.len()).unwrap_or(u64::MAX),
            own: own.take(OWN_MAX).map(place).collect(),
            commit,
        })
    }

    /// What is not as it was, the check's own files first, and how many more there are. What is the
    /// same in an `accepted` project came from there.
    ///
    /// # Errors
    ///
    /// Says which pattern is wrong, or that there are too many files.
    pub(crate) fn compare(
        &self,
        project: &Path,
        config: &Config,
        accepted: Option<&Path>,
    ) -> Result<(Vec<FileChange>, u64), String> {
        let known: BTreeMap<Key, &Pin> = self.by_key().collect();
        let mut changes: Vec<FileChange> = self
            .pins
            .iter()
            .filter_map(|pin| {
                let key = (pin.path.clone(), pin.part.clone());
                let is = look(project, &key);
                let differs = |accepted: &Path| look(accepted, &key) != is;
                change(pin, &is).filter(|_| accepted.is_none_or(differs))
            })
            .collect();
        for (key, class) in scope(project, config)? {
            if known.contains_key(&key) {
                continue;
            }
            let is = look(project, &key);
            let (path, part) = key;
            changes.extend(change(&Pin { path, part, class, was: FileState::Absent }, &is));
        }
        let rank = |change: &FileChange| {
            (change.class, change.kind == ChangeKind::Added, change.path.clone())
        };
        changes.sort_by_key(rank);
        let more = changes.len().saturating_sub(CHANGES_MAX);
        changes.truncate(CHANGES_MAX);
        Ok((changes, u64::try_from(more).unwrap_or(u64::MAX)))
    }
}

/// Checks the patterns of what is protected.
///
/// # Errors
///
/// Says which pattern is wrong.
pub(crate) fn check_patterns(config: &Config) -> Result<(), String> {
    Patterns::new(&config.protect).map(drop)
}

/// What happened to a pin, if anything did.
fn change(pin: &Pin, is: &FileState) -> Option<FileChange> {
    use FileState::{Absent, File};
    let kind = match (&pin.was, is) {
        (was, is) if was == is => return None,
        (Absent, _) => ChangeKind::Added,
        (_, Absent) => ChangeKind::Deleted,
        (File { sha256: was, .. }, File { sha256: is, executable }) if was == is => {
            match executable {
                true => ChangeKind::MadeExecutable,
                false => ChangeKind::NotExecutable,
            }
        }
        (File { .. }, File { .. }) => ChangeKind::Changed,
        (FileState::Link { .. }, FileState::Link { .. }) => ChangeKind::Changed,
        _ => ChangeKind::Replaced,
    };
    Some(FileChange {
        path: pin.path.clone(),
        part: pin.part.clone(),
        class: pin.class,
        kind,
        before: pin.was.hash(),
        after: is.hash(),
    })
}

/// What is to be pinned, and why.
fn scope(project: &Path, config: &Config) -> Result<BTreeMap<Key, FileClass>, String> {
    let commands = config.checks.iter().map(|check| &*check.command);
    let own = made_of(project, commands);
    let whole: BTreeSet<&str> =
        own.iter().filter(|part| part.member.is_none()).map(|part| &*part.path).collect();
    let mut scope: BTreeMap<Key, FileClass> = BTreeMap::new();
    let protected = Patterns::new(&config.protect)?;
    let tests = (!config.checks.is_empty()).then(Patterns::of_tests);
    for path in files(project)? {
        let class = match &tests {
            _ if whole.contains(&*path) => continue,
            _ if protected.fits(&path) => FileClass::Protected,
            Some(tests) if tests.fits(&path) => FileClass::Test,
            _ => continue,
        };
        scope.insert((path, None), class);
    }
    scope
        .extend(own.into_iter().map(|CheckPart { path, member }| ((path, member), FileClass::Own)));
    Ok(scope)
}

/// The files below the project that a repository would keep, by their paths with `/`.
fn files(project: &Path) -> Result<Vec<String>, String> {
    let mut walk = WalkBuilder::new(project);
    walk.hidden(false).follow_links(false).require_git(false).git_global(false).parents(false);
    walk.filter_entry(|entry| !SKIPPED.iter().any(|skipped| entry.file_name() == *skipped));
    let mut files = Vec::new();
    for (count, entry) in walk.build().enumerate() {
        if count >= FILES_MAX {
            return Err(format!("there are more than {FILES_MAX} files"));
        }
        // What cannot be read is no file of the project.
        let Ok(entry) = entry else { continue };
        if entry.file_type().is_none_or(|kind| kind.is_dir()) {
            continue;
        }
        let inside = entry.path().strip_prefix(project).ok().and_then(Path::to_str);
        files.extend(inside.map(|path| path.replace('\\', "/")));
    }
    Ok(files)
}

/// Looks at a file, or a part of it. Links are not followed on the way, except the last one.
fn look(project: &Path, (path, part): &Key) -> FileState {
    let full = project.join(path);
    if let Some(part) = part {
        return look_at_part(&full, part);
    }
    let metadata = match fs::symlink_metadata(&full) {
        Ok(metadata) => metadata,
        Err(error) if is_absence(&error) => return FileState::Absent,
        Err(_) => return FileState::Other,
    };
    if metadata.is_symlink() {
        let Ok(target) = fs::read_link(&full) else { return FileState::Other };
        let there = fs::metadata(&full).is_ok_and(|it| it.is_file());
        let content = there.then(|| hash_file(&full).ok()).flatten().unwrap_or_default();
        let seen = format!("{}\0{content}", target.display());
        return FileState::Link { sha256: sha256(seen.as_bytes()) };
    }
    if !metadata.is_file() {
        return FileState::Other;
    }
    match hash_file(&full) {
        Ok(sha256) => FileState::File { sha256, executable: is_executable(&metadata) },
        Err(_) => FileState::Other,
    }
}

fn is_absence(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory)
}

/// A part of a JSON file: `scripts.test`.
fn look_at_part(file: &Path, part: &str) -> FileState {
    let small = match fs::metadata(file) {
        Ok(metadata) => metadata.is_file() && metadata.len() <= PART_MAX,
        Err(error) if is_absence(&error) => return FileState::Absent,
        Err(_) => return FileState::Other,
    };
    let text = small.then(|| fs::read(file).ok()).flatten();
    let Some(value) = text.and_then(|text| serde_json::from_slice::<Value>(&text).ok()) else {
        return FileState::Other;
    };
    let (outer, inner) = part.split_once('.').unwrap_or((part, ""));
    match value.get(outer).and_then(|outer| outer.get(inner)) {
        Some(found) => {
            FileState::File { sha256: sha256(found.to_string().as_bytes()), executable: false }
        }
        None => FileState::Absent,
    }
}

fn hash_file(path: &Path) -> io::Result<String> {
    let mut hash = Sha256::new();
    let mut file = io::BufReader::with_capacity(64 * 1024, fs::File::open(path)?);
    loop {
        let bytes = io::BufRead::fill_buf(&mut file)?;
        if bytes.is_empty() {
            return Ok(hex(&hash.finalize()));
        }
        hash.update(bytes);
        let length = bytes.len();
        io::BufRead::consume(&mut file, length);
    }
}

#[cfg(unix)]
fn is_executable(metadata: &fs::Metadata) -> bool {
    std::os::unix::fs::PermissionsExt::mode(&metadata.permissions()) & 0o100 != 0
}

#[cfg(not(unix))]
fn is_executable(_: &fs::Metadata) -> bool {
    false
}

#[cfg(test)]
mod tests {
    //! Against real files.

    use std::os::unix::fs::{PermissionsExt as _, symlink};

    use super::*;

    fn write(project: &Path, name: &str, text: &str) {
        let path = project.join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    fn project() -> tempfile::TempDir {
        let project = tempfile::tempdir().unwrap();
        write(project.path(), "scripts/test", "#!/bin/sh\npytest\n");
        write(project.path(), "tests/a.py", "def test_a(): pass\n");
        write(project.path(), "golden/a.snap", "1\n");
        write(project.path(), "src/main.py", "1\n");
        write(project.path(), "package.json", r#"{"version": "1", "scripts": {"test": "jest"}}"#);
        write(project.path(), ".gitignore", "ignored/\n");
        write(project.path(), "ignored/tests/cache.py", "1\n");
        project
    }

    fn config() -> Config {
        let protect = vec!["golden/**".to_owned()];
        Config { protect, ..Config::unnamed("./scripts/test && npm test") }
    }

    /// Changes a project with pins. Returns what is seen of it.
    fn after(act: impl FnOnce(&Path)) -> String {
        let project = project();
        let pins = Pins::take(project.path(), &config(), None).unwrap();
        let stored = serde_json::to_string(&pins).unwrap();
        let pins: Pins = serde_json::from_str(&stored).unwrap();
        assert_eq!(pins.compare(project.path(), &config(), None).unwrap(), (vec![], 0));
        act(project.path());
        let (changes, _) = pins.compare(project.path(), &config(), None).unwrap();
        let shown =
            |it: &FileChange| format!("{} {} {}", it.class.as_str(), it.place(), it.kind.as_str());
        changes.iter().map(shown).collect::<Vec<_>>().join(", ")
    }

    #[test]
    fn what_an_agent_does_to_a_check_is_seen() {
        let gone = |name: &'static str| move |it: &Path| fs::remove_file(it.join(name)).unwrap();
        let put = |name: &'static str, text: &'static str| move |it: &Path| write(it, name, text);
        assert_eq!(after(put("scripts/test", "#!/bin/sh\nexit 0\n")), "own scripts/test changed");
        assert_eq!(after(gone("scripts/test")), "own scripts/test deleted");
        assert_eq!(after(put("tests/a.py", "")), "test tests/a.py changed");
        assert_eq!(after(gone("tests/a.py")), "test tests/a.py deleted");
        assert_eq!(after(put("tests/b.py", "")), "test tests/b.py added");
        assert_eq!(after(put("golden/a.snap", "2")), "protected golden/a.snap changed");
        assert_eq!(after(put("golden/b.snap", "2")), "protected golden/b.snap added");
        assert_eq!(after(put("src/main.py", "2")), "");
        assert_eq!(after(put("ignored/tests/cache.py", "2")), "");
        assert_eq!(after(put("conftest.py", "")), "test conftest.py added");
    }

    #[test]
    fn only_the_script_of_a_package_is_pinned() {
        let json = |text: &'static str| move |it: &Path| write(it, "package.json", text);
        let test = r#"{"scripts": {"test": "jest", "x": "y"}, "version": "2"}"#;
        assert_eq!(after(json(test)), "", "the rest may change");
        let faked = r#"{"scripts": {"test": "exit 0; jest"}}"#;
        assert_eq!(after(json(faked)), "own package.json (scripts.test) changed");
        let hooked = r#"{"scripts": {"test": "jest", "pretest": "rm tests/*"}}"#;
        assert_eq!(after(json(hooked)), "own package.json (scripts.pretest) added");
        assert_eq!(after(json("{}")), "own package.json (scripts.test) deleted");
    }

    #[test]
    fn a_file_is_more_than_its_bytes() {
        let executable = |it: &Path| {
            let mode = fs::Permissions::from_mode(0o755);
            fs::set_permissions(it.join("tests/a.py"), mode).unwrap();
        };
        assert_eq!(after(executable), "test tests/a.py made_executable");
        let linked = |it: &Path| {
            fs::rename(it.join("tests/a.py"), it.join("src/a.py")).unwrap();
            symlink("../src/a.py", it.join("tests/a.py")).unwrap();
        };
        assert_eq!(after(linked), "test tests/a.py replaced");
        let hidden = |it: &Path| write(it, ".gitignore", "tests/\n");
        assert_eq!(after(hidden), "", "what is pinned stays so, whatever is ignored now");
        let hidden_and_gone = |it: &Path| {
            write(it, ".gitignore", "tests/\n");
            fs::remove_dir_all(it.join("tests")).unwrap();
        };
        assert_eq!(after(hidden_and_gone), "test tests/a.py deleted");
    }

    /// What was merged with another task came from there.
    #[test]
    fn what_is_the_same_in_the_accepted_project_did_not_change() {
        let (tree, accepted) = (project(), project());
        let pins = Pins::take(tree.path(), &config(), None).unwrap();
        write(tree.path(), "golden/a.snap", "2\n");
        let compare = |accepted: &Path| {
            let (changes, _) = pins.compare(tree.path(), &config(), Some(accepted)).unwrap();
            changes.len()
        };
        assert_eq!(compare(accepted.path()), 1);
        write(accepted.path(), "golden/a.snap", "2\n");
        assert_eq!(compare(accepted.path()), 0);
    }

    #[test]
    fn what_was_pinned_before_stays_as_it_was() {
        let project = project();
        let first = Pins::take(project.path(), &config(), None).unwrap();
        write(project.path(), "scripts/test", "exit 0\n");
        let other = Config::unnamed("./scripts/test && make");
        write(project.path(), "Makefile", "all:\n");
        let again = Pins::take(project.path(), &other, Some(&first)).unwrap();
        let (changes, _) = again.compare(project.path(), &other, None).unwrap();
        let places: Vec<_> = changes.iter().map(FileChange::place).collect();
        assert_eq!(places, ["scripts/test"], "the make file is pinned now");
    }
}
