//! How a host is told to call Aldis: a program and constant arguments.
//!
//! What is written contains no variable, no substitution and nothing from a repository. Where a host
//! takes a program and a list, that is what it gets; where it takes a line for a shell, the line is
//! words only.

use serde_json::Value;

use crate::settings::system::System;

/// The option of the hook that waits.
const WAKE: &str = "--wake";

/// A program and its arguments.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Invocation {
    /// A name to look up in PATH, or an absolute path.
    pub(crate) program: String,
    /// What follows.
    pub(crate) args: Vec<String>,
}

/// How a handler in a host's file relates to Aldis.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum HookEntry {
    /// As `aldis install` writes it, with this program.
    Current(String),
    /// What waits beside a session, as `aldis install` writes it, with this program.
    Waker(String),
    /// It calls Aldis in another way: by an older version, for another host, or by hand.
    Outdated(String),
    /// Somebody else's.
    ThirdParty,
}

impl Invocation {
    /// Returns what is registered for a host.
    pub(crate) fn new(host: &str, program: impl Into<String>) -> Self {
        Self { program: program.into(), args: vec!["hook".to_owned(), host.to_owned()] }
    }

    /// Returns what waits beside a session.
    pub(crate) fn waker(host: &str, program: impl Into<String>) -> Self {
        let mut invocation = Self::new(host, program);
        invocation.args.push(WAKE.to_owned());
        invocation
    }

    /// Returns how the MCP server is started.
    pub(crate) fn server(program: impl Into<String>) -> Self {
        Self { program: program.into(), args: vec!["mcp".to_owned()] }
    }

    /// Returns the line for a shell.
    pub(crate) fn line(&self) -> String {
        let words: Vec<String> = self.words().map(|word| System::CURRENT.quote(word)).collect();
        words.join(" ")
    }

    fn words(&self) -> impl Iterator<Item = &str> {
        std::iter::once(self.program.as_str()).chain(self.args.iter().map(String::as_str))
    }
}

/// Says whether a handler of a host's file is ours.
pub(crate) fn classify(host: &str, handler: &Value) -> HookEntry {
    let line = ["command", "exec", "bash"].iter().find_map(|key| handler.get(key)?.as_str());
    let Some(line) = line else { return HookEntry::ThirdParty };
    let words = match handler.get("args").and_then(Value::as_array) {
        Some(args) => {
            let args = args.iter().map(|arg| arg.as_str().map(str::to_owned));
            std::iter::once(Some(line.to_owned())).chain(args).collect::<Option<Vec<_>>>()
        }
        None => System::CURRENT.split(line),
    };
    let shown = words.as_ref().map_or_else(|| line.to_owned(), |words| words.join(" "));
    match words.as_deref() {
        Some([program, hook, name]) if is_aldis(program) && hook == "hook" && name == host => {
            HookEntry::Current(program.clone())
        }
        Some([program, hook, name, wake])
            if is_aldis(program) && hook == "hook" && name == host && wake == WAKE =>
        {
            HookEntry::Waker(program.clone())
        }
        Some([program, hook, ..]) if is_aldis(program) && hook == "hook" => {
            HookEntry::Outdated(shown)
        }
        _ if mentions_hook(&shown) => HookEntry::Outdated(shown),
        _ => HookEntry::ThirdParty,
    }
}

/// Whether the words `aldis hook` are somewhere in a line.
fn mentions_hook(line: &str) -> bool {
    let part_of_word = |c: char| c.is_alphanumeric() || matches!(c, '-' | '_');
    line.match_indices("aldis hook").any(|(at, words)| {
        let before = line.get(..at).and_then(|text| text.chars().next_back());
        let after = line.get(at + words.len()..).and_then(|text| text.chars().next());
        !before.is_some_and(part_of_word) && !after.is_some_and(part_of_word)
    })
}

/// Whether a word names the program, by its name alone or by an absolute path.
pub(crate) fn is_aldis(program: &str) -> bool {
    let name = program.rsplit(['/', '\\']).next().unwrap_or_default();
    let name = name.strip_suffix(".exe").unwrap_or(name);
    let absolute = System::CURRENT.is_absolute(program);
    name == "aldis" && (absolute || !program.contains(['/', '\\']))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn splits_words_and_nothing_else() {
        let table: &[(&str, Option<&[&str]>)] = &[
            ("aldis hook codex", Some(&["aldis", "hook", "codex"])),
            ("  '/a b/aldis'  hook codex ", Some(&["/a b/aldis", "hook", "codex"])),
            (r"'/it'\''s/aldis' hook x", Some(&["/it's/aldis", "hook", "x"])),
            ("\"/a b/aldis\" '' x", Some(&["/a b/aldis", "", "x"])),
            ("aldis hook \"$(cat id)\"", None),
            ("aldis hook codex; rm x", None),
            ("aldis hook 'codex", None),
            ("ALDIS=$HOME aldis hook codex", None),
        ];
        for (line, words) in table {
            let words = words.map(|words| words.iter().map(|word| (*word).to_owned()).collect());
            assert_eq!(System::Linux.split(line), words, "{line}");
        }
    }

    proptest::proptest! {
        #[test]
        fn a_line_is_the_words_it_was_made_of(program in "[^\0\n\r]{1,20}") {
            let invocation = Invocation::new("codex", program.clone());
            let words = vec![program, "hook".to_owned(), "codex".to_owned()];
            assert_eq!(System::CURRENT.split(&invocation.line()), Some(words));
        }
    }
}
