//! The hosts that want a plugin: files that are wholly ours.

use super::edit::{Document, EMPTY};
use super::{Host, command_hooks, hooks_file};

/// A file that `aldis install` writes whole.
#[derive(Clone, Copy, Debug)]
pub(crate) struct OwnFile {
    /// Where, below the place for plugins.
    pub(crate) path: &'static str,
    /// By what we know it again, whatever version wrote it.
    pub(crate) mark: &'static str,
    /// Its text with the program to call put in.
    pub(crate) render: fn(&str) -> String,
}

/// A folder with a manifest and hooks. No matcher: `*` would silence the rule.
pub(crate) const GOOSE: &[OwnFile] = &[
    OwnFile {
        path: "aldis/plugin.json",
        mark: "\"name\": \"aldis\"",
        render: |_| {
            let version = env!("CARGO_PKG_VERSION");
            format!(
                "{{\n  \"name\": \"aldis\",\n  \"version\": \"{version}\",\n  \
                 \"description\": \"Calls aldis when an agent stops\"\n}}\n"
            )
        },
    },
    OwnFile { path: "aldis/hooks/hooks.json", mark: "hook goose", render: goose_hooks },
];

/// One module.
pub(crate) const OPENCODE: &[OwnFile] = &[OwnFile {
    path: "aldis.js",
    mark: "Written by `aldis install opencode`",
    render: |program| with_program(include_str!("opencode.js"), program),
}];

/// A package.
pub(crate) const OPENCLAW: &[OwnFile] = &[
    OwnFile {
        path: "aldis/package.json",
        mark: "\"name\": \"aldis-openclaw\"",
        render: |_| include_str!("openclaw.package.json").to_owned(),
    },
    OwnFile {
        path: "aldis/openclaw.plugin.json",
        mark: "\"id\": \"aldis\"",
        render: |_| include_str!("openclaw.plugin.json").to_owned(),
    },
    OwnFile {
        path: "aldis/index.js",
        mark: "Written by `aldis install openclaw`",
        render: |program| with_program(include_str!("openclaw.js"), program),
    },
];

/// Returns the program that a file calls.
pub(crate) fn program_in(host: Host, text: &str) -> Option<String> {
    if host == Host::Goose {
        let document = Document::parse(text.as_bytes()).ok()?;
        let found = hooks_file::find(host, &document).ok()?;
        return found.current.into_iter().next().map(|entry| entry.program);
    }
    let line = text.lines().find_map(|line| line.strip_prefix(PROGRAM_LINE))?;
    serde_json::from_str(line.strip_suffix(';')?).ok()
}

fn goose_hooks(program: &str) -> String {
    let Ok(document) = Document::parse(EMPTY.as_bytes()) else { return String::new() };
    // An empty object has room for every entry.
    let _added = hooks_file::add(Host::Goose, &command_hooks::GOOSE, program, &document);
    document.text()
}

fn with_program(script: &str, program: &str) -> String {
    let lines = script.lines().map(|line| match line.strip_prefix(PROGRAM_LINE) {
        Some(_) => format!("{PROGRAM_LINE}{};\n", serde_json::Value::from(program)),
        None => format!("{line}\n"),
    });
    lines.collect()
}

const PROGRAM_LINE: &str = "const PROGRAM = ";
