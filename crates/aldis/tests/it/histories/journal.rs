//! A recorded journal: everything that an older release stored about one run.

use std::fs;
use std::path::{Path, PathBuf};

use aldis_signal::time::Timestamp;
use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::Value;

use crate::phases::project::testdata;

/// The file of one run.
pub(super) struct Journal {
    /// `VERSION/NAME.jsonl`.
    pub(super) file: String,
    pub(super) header: Header,
    pub(super) events: Vec<Event>,
    pub(super) decisions: Vec<Decision>,
    pub(super) effects: Vec<Effect>,
}

/// The first line.
#[derive(Deserialize)]
pub(super) struct Header {
    v: u32,
    pub(super) machine: String,
    pub(super) run: String,
    pub(super) project: String,
    pub(super) active: bool,
}

/// Any other line.
#[derive(Deserialize)]
#[serde(rename_all = "snake_case")]
enum Line {
    Event(Event),
    Decision(Decision),
    Effect(Effect),
    Part(IgnoredAny),
    Timer(IgnoredAny),
    State(IgnoredAny),
}

#[derive(Deserialize)]
pub(super) struct Event {
    pub(super) kind: String,
    pub(super) source: Option<String>,
}

#[derive(Deserialize)]
pub(super) struct Decision {
    pub(super) at: Timestamp,
    pub(super) body: Value,
}

#[derive(Deserialize)]
pub(super) struct Effect {
    pub(super) body: Value,
}

impl Journal {
    fn read(path: &Path) -> Self {
        let text = fs::read_to_string(path).unwrap();
        let mut lines = text.lines();
        let header: Header = serde_json::from_str(lines.next().unwrap()).unwrap();
        assert_eq!(header.v, 1, "{}", path.display());
        let name = |part: &Path| part.file_name().unwrap().to_string_lossy().into_owned();
        let mut journal = Self {
            file: format!("{}/{}", name(path.parent().unwrap()), name(path)),
            header,
            events: Vec::new(),
            decisions: Vec::new(),
            effects: Vec::new(),
        };
        for line in lines {
            match serde_json::from_str(line).unwrap() {
                Line::Event(event) => journal.events.push(event),
                Line::Decision(decision) => journal.decisions.push(decision),
                Line::Effect(effect) => journal.effects.push(effect),
                Line::Part(_) | Line::Timer(_) | Line::State(_) => {}
            }
        }
        journal
    }

    /// The name of its scenario.
    pub(super) fn name(&self) -> &str {
        let name = self.file.rsplit('/').next().unwrap();
        name.strip_suffix(".jsonl").unwrap()
    }
}

/// The releases whose histories are kept.
pub(super) fn versions() -> Vec<String> {
    let entries = fs::read_dir(testdata("histories")).unwrap().map(Result::unwrap);
    let releases = entries.filter(|entry| entry.path().is_dir());
    let mut names: Vec<String> =
        releases.map(|entry| entry.file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

/// All journals of a release, by name.
pub(super) fn journals(version: &str) -> Vec<Journal> {
    let entries = fs::read_dir(testdata("histories").join(version)).unwrap();
    let paths = entries.map(|entry| entry.unwrap().path());
    let is_journal = |path: &PathBuf| path.extension().is_some_and(|ending| ending == "jsonl");
    let mut paths: Vec<PathBuf> = paths.filter(is_journal).collect();
    paths.sort();
    paths.iter().map(|path| Journal::read(path)).collect()
}
