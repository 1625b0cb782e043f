//! The settings as one annotated file: what `aldis config init` and `aldis init` write from, and where
//! editors get their descriptions.

use std::fmt::Write as _;

use schemars::{Schema, schema_for};
use serde_json::Value;

use super::Settings;

/// Every key with its default and what it does.
const ANNOTATED: &str = include_str!("annotated.toml");
/// What opens a comment, also before a key that has no default.
const COMMENT: &str = "# ";

/// A line that sets a key, or would without its `#`.
struct KeyLine<'t> {
    /// The table it is in.
    table: &'t str,
    key: &'t str,
    /// The default, or an example where there is none.
    usual: &'t str,
    /// What it does.
    about: &'t str,
    is_set: bool,
}

/// Returns every key as a comment, so that nothing is set until a `#` is taken away.
pub(crate) fn all_off() -> String {
    let mut table = "";
    let mut text = String::with_capacity(ANNOTATED.len());
    for line in ANNOTATED.lines() {
        if key_line(line, &mut table).is_some_and(|key| key.is_set) {
            text.push_str(COMMENT);
        }
        text.push_str(line);
        text.push('\n');
    }
    text
}

/// Returns the lines of some keys with their tables and what they do: set to these values in TOML, or
/// as comments with what usually holds. What there is no such key for is left out.
pub(crate) fn some(values: &[(&str, Option<String>)]) -> String {
    let mut text = String::new();
    let (mut table, mut open) = ("", "");
    for line in ANNOTATED.lines() {
        let Some(KeyLine { table, key, usual, about, .. }) = key_line(line, &mut table) else {
            continue;
        };
        let is_it =
            |path: &str| path.strip_prefix(table).and_then(|it| it.strip_prefix('.')) == Some(key);
        let Some((_, value)) = values.iter().find(|(path, _)| is_it(path)) else { continue };
        if table != open {
            let gap = if open.is_empty() { "" } else { "\n" };
            let _written = writeln!(text, "{gap}[{table}]");
            open = table;
        }
        let setting = match value {
            Some(value) => format!("{key} = {value}"),
            None => format!("{COMMENT}{key} = {usual}"),
        };
        let _written = writeln!(text, "{setting:<25} # {about}");
    }
    text
}

/// Returns what each key does, with its path: `run.timeout`. In tables of the user's own names, `NAME`
/// stands for theirs.
fn descriptions() -> impl Iterator<Item = (String, &'static str)> {
    let mut table = "";
    ANNOTATED.lines().filter_map(move |line| {
        let KeyLine { table, key, about, .. } = key_line(line, &mut table)?;
        (!about.is_empty()).then(|| (format!("{table}.{key}"), about))
    })
}

/// Reads a line, and notes the table it opens.
fn key_line<'t>(line: &'t str, table: &mut &'t str) -> Option<KeyLine<'t>> {
    let bare = line.strip_prefix(COMMENT).unwrap_or(line).trim_start();
    if let Some(name) = bare.strip_prefix('[').and_then(|name| name.strip_suffix(']')) {
        *table = name;
        return None;
    }
    let (key, value) = bare.split_once(" = ")?;
    let is_key =
        !key.is_empty() && key.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'_');
    let mut quoted = false;
    let comment = value.bytes().position(|byte| {
        quoted ^= byte == b'"';
        byte == b'#' && !quoted
    });
    let (usual, about) = value.split_at(comment.unwrap_or(value.len()));
    let (usual, about) = (usual.trim_end(), about.trim_start_matches(['#', ' ']));
    is_key.then_some(KeyLine { table, key, usual, about, is_set: !line.starts_with('#') })
}

/// Returns the schema of `aldis.toml`, with what each key does.
pub(crate) fn schema() -> Schema {
    let mut schema = schema_for!(Settings).to_value();
    for (path, about) in descriptions() {
        describe(&mut schema, &path, about);
    }
    schema["title"] = "aldis.toml".into();
    schema.try_into().unwrap_or_default()
}

/// Says what the key at this path does.
fn describe(schema: &mut Value, path: &str, about: &str) {
    let mut at = String::new();
    for name in path.split('.') {
        let here = schema.pointer(&at);
        // Tables are described once, elsewhere.
        let link = here.and_then(|here| here["$ref"].as_str()).and_then(|it| it.strip_prefix('#'));
        let table = link.unwrap_or(&at).to_owned();
        at = format!("{table}/properties/{name}");
    }
    if let Some(Value::Object(key)) = schema.pointer_mut(&at) {
        key.insert("description".to_owned(), about.into());
    }
}

#[cfg(test)]
mod tests {
    //! That the file is read as it is meant.

    use super::*;

    #[test]
    fn nothing_is_set_and_everything_is_there() {
        let off: toml::Table = all_off().parse().unwrap();
        let mut leaves = off.values().flat_map(|table| table.as_table().unwrap().values());
        assert!(leaves.all(toml::Value::is_table), "{off:?}");
        assert_eq!(all_off().lines().count(), ANNOTATED.lines().count());
        let known = serde_json::to_value(Settings::default()).unwrap();
        for (path, about) in descriptions() {
            let named = path.starts_with("roles") || path.starts_with("experts");
            let found = known.pointer(&format!("/{}", path.replace('.', "/")));
            assert!(named || path.starts_with("pipelines") || found.is_some(), "{path}: {about}");
        }
        assert!(descriptions().count() > 70, "{}", descriptions().count());
    }

    #[test]
    fn some_keys_are_written_with_what_they_do() {
        let values = [
            ("deliver.slots", Some("3".to_owned())),
            ("run.verify", Some("\"make # all\"".to_owned())),
            ("run.max_cost", None),
            ("run.timeout", None),
            ("run.there_is_no_such_key", Some("1".to_owned())),
        ];
        let text = some(&values);
        let read: toml::Table = text.parse().unwrap();
        assert_eq!(read["run"]["verify"].as_str(), Some("make # all"));
        assert_eq!(read["deliver"]["slots"].as_integer(), Some(3));
        assert_eq!(read["run"].as_table().unwrap().len(), 1, "{text}");
        for line in ["# a command that checks a claim", "\n# max_cost = ", "\n# timeout = "] {
            assert!(text.contains(line), "{text}");
        }
    }
}
