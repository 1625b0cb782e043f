//! The dialects there are: the built-in ones and the user's own.
//!
//! A project is the nearest directory, from the current one upwards, that has `.aldis/dialects` or a
//! file with settings. Its dialects are the files `.aldis/dialects/*.toml` and the tables
//! `[dialects.NAME]` of that file; those of the user's own file are there everywhere.

use std::fs;
use std::io;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use aldis_engine::Dialects;
use aldis_signal::dialect::{FORMAT_VERSION, builtin_source, builtins};
use aldis_signal::{Dialect, DialectError};
use toml::Spanned;
use toml::de::{DeTable, DeValue};

use crate::error::CommandError;
use crate::settings::config::{self, Document, Node, NodeKind, Origin};

/// A dialect and where it comes from.
#[derive(Clone, Debug)]
pub(crate) struct Entry {
    pub(crate) dialect: Arc<Dialect>,
    /// The file that defines it; `None` for a built-in one.
    pub(crate) file: Option<PathBuf>,
    /// Its TOML text.
    pub(crate) source: String,
}

/// Every dialect that can be named.
#[derive(Debug)]
pub(crate) struct Catalog {
    entries: Vec<Entry>,
}

impl Catalog {
    /// Loads the built-in dialects and those of the project around `directory`.
    ///
    /// # Errors
    ///
    /// Fails if a user's dialect cannot be used: it would be missing from every result.
    pub(crate) fn load(directory: &Path) -> Result<Self, CommandError> {
        let mut catalog = Self::builtin();
        if let Some(document) = config::user_document()? {
            catalog.add_all(&document)?;
        }
        let Some(project) = directory.ancestors().find(|place| is_project(place)) else {
            return Ok(catalog);
        };
        for file in dialect_files(&project.join(DIALECTS_DIR))? {
            let entry = load_file(&file)?;
            catalog.add(entry)?;
        }
        if let Some(file) = config::file_in(project)? {
            catalog.add_all(&Document::read(&file, true)?)?;
        }
        Ok(catalog)
    }

    /// Returns only the built-in dialects.
    pub(crate) fn builtin() -> Self {
        let entries = builtins().iter().map(|dialect| Entry {
            dialect: Arc::clone(dialect),
            file: None,
            source: builtin_source(&dialect.name).unwrap_or_default().to_owned(),
        });
        Self { entries: entries.collect() }
    }

    /// Returns the dialects, built-in ones first.
    pub(crate) fn entries(&self) -> &[Entry] {
        &self.entries
    }

    /// Returns the dialect of that name.
    ///
    /// # Errors
    ///
    /// Fails with the names there are.
    pub(crate) fn get(&self, name: &str) -> Result<&Entry, CommandError> {
        self.entries.iter().find(|entry| &*entry.dialect.name == name).ok_or_else(|| {
            let names: Vec<&str> = self.entries.iter().map(|entry| &*entry.dialect.name).collect();
            CommandError::new(format!("there is no dialect `{name}`"))
                .with_help(format!("the dialects are {}", names.join(", ")))
        })
    }

    /// Returns the dialect that a person names: `NAME`, or `NAME=WORD` with its word changed.
    ///
    /// # Errors
    ///
    /// Fails if there is none, or if it has no word to change.
    pub(crate) fn choose(&self, choice: &str) -> Result<Arc<Dialect>, CommandError> {
        choose(choice, |name| Ok(Arc::clone(&self.get(name)?.dialect)))
    }

    /// Adds the dialects of a file with settings.
    ///
    /// # Errors
    ///
    /// Fails if one of them cannot be used.
    pub(crate) fn add_all(&mut self, document: &Document) -> Result<(), CommandError> {
        load_config(document)?.into_iter().try_for_each(|entry| self.add(entry))
    }

    fn add(&mut self, entry: Entry) -> Result<(), CommandError> {
        let name = &entry.dialect.name;
        let Some(other) = self.entries.iter().find(|other| other.dialect.name == *name) else {
            self.entries.push(entry);
            return Ok(());
        };
        let place = entry.file.as_deref().unwrap_or_else(|| Path::new("")).display();
        Err(match &other.file {
            None => CommandError::new(format!("`{place}`: `{name}` is a built-in dialect"))
                .with_help("change `name` in the file"),
            Some(file) => CommandError::new(format!(
                "`{place}`: the dialect `{name}` is already defined in `{}`",
                file.display()
            ))
            .with_help("remove or rename one of them"),
        })
    }
}

/// For machines whose agents speak one of these.
impl Dialects for Catalog {
    fn dialect(&self, name: &str) -> Result<Arc<Dialect>, String> {
        self.choose(name).map_err(|error| error.to_string())
    }
}

/// Returns the dialect that a person names, as [`Catalog::choose`]; `find` is asked for those that
/// are not built in, so that only they cost reading files.
///
/// # Errors
///
/// Fails if there is none, or if it has no word to change.
pub(crate) fn choose(
    choice: &str,
    find: impl FnOnce(&str) -> Result<Arc<Dialect>, CommandError>,
) -> Result<Arc<Dialect>, CommandError> {
    let (name, word) = match choice.split_once('=') {
        Some((name, word)) => (name, Some(word)),
        None => (choice, None),
    };
    let dialect = match Dialect::builtin(name) {
        Some(dialect) => Arc::clone(dialect),
        None => find(name)?,
    };
    let Some(word) = word else { return Ok(dialect) };
    let changed = dialect.with_word(word);
    changed
        .map(Arc::new)
        .map_err(|error| refused(crate::view::display::lines(&error.message), error.help))
}

/// Reads one dialect file.
///
/// # Errors
///
/// Fails with the file and line of what is wrong.
pub(crate) fn load_file(path: &Path) -> Result<Entry, CommandError> {
    let source = config::text(path)?;
    match Dialect::from_toml(&source) {
        Ok(dialect) => {
            Ok(Entry { dialect: Arc::new(dialect), file: Some(path.to_owned()), source })
        }
        Err(error) => {
            let problem = Problem::new(path, &source, error);
            let mut message = problem.message();
            if let Some(excerpt) = &problem.excerpt {
                message.push('\n');
                message.push_str(excerpt);
            }
            Err(refused(message, problem.help))
        }
    }
}

/// Reads one dialect file and refuses what could not be used beside the built-in dialects.
///
/// # Errors
///
/// As [`load_file`], and if its name is taken.
pub(crate) fn check_file(path: &Path) -> Result<Entry, CommandError> {
    let entry = load_file(path)?;
    Catalog::builtin().add(entry.clone())?;
    Ok(entry)
}

/// Makes an error of what is wrong and what would be right, if that can be said.
pub(crate) fn refused(message: String, help: Option<String>) -> CommandError {
    let failed = CommandError::new(message);
    match help {
        Some(help) => failed.with_help(help),
        None => failed,
    }
}

/// What is wrong with a dialect file, ready to be shown.
#[derive(Debug)]
pub(crate) struct Problem {
    file: String,
    line: Option<usize>,
    what: String,
    /// The source line with an underline.
    pub(crate) excerpt: Option<String>,
    /// What would be right.
    pub(crate) help: Option<String>,
}

impl Problem {
    fn new(path: &Path, source: &str, error: DialectError) -> Self {
        let excerpt = match (error.line, &error.span) {
            (Some(line), Some(span)) => underlined(source, line, span),
            _ => None,
        };
        let help = help(source, &error);
        let (file, line) = (path.display().to_string(), error.line);
        Self { file, line, what: error.message, excerpt, help }
    }

    /// Says what is wrong and where.
    pub(crate) fn message(&self) -> String {
        let what = crate::view::display::lines(&self.what);
        match self.line {
            Some(line) => format!("{} line {line}: {what}", self.file),
            None => format!("{}: {what}", self.file),
        }
    }
}

/// Returns what would be right: what the error says, or the key that was meant.
fn help(source: &str, error: &DialectError) -> Option<String> {
    error.help.clone().or_else(|| {
        let mut names = error.message.split('`').skip(1).step_by(2);
        let key = names.next()?;
        if error.message.starts_with("missing field") {
            let table = source.parse().ok()?;
            let mut keys = Vec::new();
            collect_keys(&table, &mut keys);
            let written = config::nearest(key, &keys).filter(|written| *written != key)?;
            return Some(format!("did you mean `{key}` where `{written}` stands?"));
        }
        let known: Vec<&str> = names.filter(|_| error.message.starts_with("unknown ")).collect();
        config::nearest(key, &known).map(|known| format!("did you mean `{known}`?"))
    })
}

fn collect_keys<'t>(table: &'t toml::Table, keys: &mut Vec<&'t str>) {
    for (key, value) in table {
        keys.push(key);
        value.as_table().into_iter().for_each(|inner| collect_keys(inner, keys));
    }
}

fn underlined(source: &str, line: usize, span: &Range<usize>) -> Option<String> {
    let start = source.get(..span.start)?.rfind('\n').map_or(0, |newline| newline + 1);
    let text = source.get(start..)?.lines().next()?;
    let before = source.get(start..span.start)?;
    let covered = source.get(span.clone())?.lines().next().unwrap_or_default();
    let number = line.to_string();
    Some(format!(
        "{:width$} |\n{number} | {}\n{:width$} | {}{}",
        "",
        crate::view::display::line(text),
        "",
        " ".repeat(crate::view::display::line(before).chars().count()),
        "^".repeat(crate::view::display::line(covered).chars().count().max(1)),
        width = number.len(),
    ))
}

fn is_project(directory: &Path) -> bool {
    directory.join(DIALECTS_DIR).is_dir()
        || config::NAMES.iter().any(|name| directory.join(name).is_file())
}

fn dialect_files(directory: &Path) -> Result<Vec<PathBuf>, CommandError> {
    let entries = match fs::read_dir(directory) {
        Ok(entries) => entries,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(CommandError::file(directory, &error)),
    };
    let mut files = Vec::new();
    for entry in entries {
        let path = entry.map_err(|error| CommandError::file(directory, &error))?.path();
        // Editors leave hidden files beside the one they edit.
        let hidden = path.file_name().is_some_and(|name| name.as_encoded_bytes().starts_with(b"."));
        if !hidden && path.extension().is_some_and(|extension| extension == "toml") {
            files.push(path);
        }
    }
    files.sort();
    Ok(files)
}

/// Takes the `[dialects.NAME]` tables of a file with settings. The rest of it is not ours.
fn load_config(document: &Document) -> Result<Vec<Entry>, CommandError> {
    let Some(NodeKind::Table(dialects)) = document.tree.get("dialects").map(|node| &node.kind)
    else {
        return Ok(Vec::new());
    };
    let path = &document.file.path;
    dialects.iter().map(|(name, node)| load_table(path, name, node)).collect()
}

fn load_table(path: &Path, name: &str, node: &Node) -> Result<Entry, CommandError> {
    let place = format!("`{}`: [dialects.{name}]", path.display());
    let Ok(toml::Value::Table(mut table)) = toml::Value::try_from(node.to_json()) else {
        return Err(CommandError::new(format!("{place} is not a table")));
    };
    table.entry("v").or_insert_with(|| i64::from(FORMAT_VERSION).into());
    table.entry("name").or_insert_with(|| name.into());
    if table.get("name").and_then(toml::Value::as_str) != Some(name) {
        return Err(CommandError::new(format!("{place} has another `name`"))
            .with_help("leave `name` out: the table says it"));
    }
    let source =
        toml::to_string(&table).map_err(|error| CommandError::new(format!("{place}: {error}")))?;
    match Dialect::from_toml(&source) {
        Ok(dialect) => {
            Ok(Entry { dialect: Arc::new(dialect), file: Some(path.to_owned()), source })
        }
        Err(error) => {
            // Lines are those of the text written here; the user's file has them elsewhere.
            let found = error.span.as_ref().and_then(|span| {
                let written = DeTable::parse(&source).ok()?.into_inner();
                node_at(node, &DeValue::Table(written), span.start)
            });
            let place = match &found.unwrap_or(node).origin {
                Origin::File { line, .. } => {
                    format!("`{}` line {line}: [dialects.{name}]", path.display())
                }
                Origin::Default | Origin::Environment(_) | Origin::Flag(_) => place,
            };
            let what = crate::view::display::lines(&error.message);
            Err(refused(format!("{place}: {what}"), help(&source, &error)))
        }
    }
}

/// Returns the part of a tree that stands at `at` where the tree is written as `value`.
fn node_at<'n>(node: &'n Node, value: &DeValue<'_>, at: usize) -> Option<&'n Node> {
    let inside = |member: &'n Node, value: &Spanned<DeValue<'_>>| {
        let own = value.span().contains(&at).then_some(member);
        node_at(member, value.get_ref(), at).or(own)
    };
    match (&node.kind, value) {
        (NodeKind::Table(members), DeValue::Table(table)) => {
            members.iter().find_map(|(key, member)| {
                let (written, value) = table.get_key_value(key.as_str())?;
                inside(member, value).or_else(|| written.span().contains(&at).then_some(member))
            })
        }
        (NodeKind::List(items), DeValue::Array(values)) => {
            items.iter().zip(values.iter()).find_map(|(item, value)| inside(item, value))
        }
        _ => None,
    }
}

const DIALECTS_DIR: &str = ".aldis/dialects";
