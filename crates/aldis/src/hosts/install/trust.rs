//! Whether a host will really run what is registered with it.
//!
//! Hosts guard against repositories that bring hooks along. Codex is strict and silent: a hook runs
//! only if the project is trusted and the hash of the very entry was approved. Others ask once, or
//! have switches that turn all hooks off.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::{Map, Value, json};
use sha2::{Digest as _, Sha256};

use super::edit::{find, read_json};
use super::hooks_file::Entry;
use super::place::World;
use super::{Host, Scope};

/// Whether a host runs the hook.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Trust {
    /// Yes.
    Yes(String),
    /// Yes, once somebody has said so when asked.
    Asks(String),
    /// No.
    No {
        /// Why not.
        why: String,
        /// What to do about it.
        fix: String,
    },
}

/// Examines what a host says about a registration in a file.
pub(crate) fn examine(
    world: &World,
    host: Host,
    scope: Scope,
    file: &Path,
    entries: &[Entry],
) -> Trust {
    if let Some(switch) = switched_off(world, host) {
        return switch;
    }
    match host {
        Host::Codex => codex(world, scope, file, entries),
        Host::Gemini if scope == Scope::Project => gemini(world),
        Host::ClaudeCode if scope != Scope::User => claude_code(world),
        Host::OpenClaw => openclaw(world),
        Host::Cursor | Host::Qwen | Host::Droid | Host::Copilot if scope == Scope::Project => {
            Trust::Asks(format!("{} may ask once whether to trust this folder", host.title()))
        }
        _ => Trust::Yes(format!("{} asks for no approval", host.title())),
    }
}

/// Looks for a setting that turns hooks off.
fn switched_off(world: &World, host: Host) -> Option<Trust> {
    let off = |file: &Path, switch: &str, fix: String| Trust::No {
        why: format!("`{switch}` in `{}` turns hooks off", world.shown(file)),
        fix,
    };
    let switches: &[(&[&str], bool)] = match host {
        Host::ClaudeCode | Host::Qwen | Host::Droid | Host::Cursor | Host::Copilot => {
            &[(&["disableAllHooks"], true)]
        }
        Host::Gemini => &[(&["hooksConfig", "enabled"], false), (&["hooks", "enabled"], false)],
        Host::Codex | Host::Goose | Host::OpenCode | Host::OpenClaw => &[],
    };
    let files = world.spots(host).into_iter().flat_map(|spot| spot.files);
    for file in files.chain(managed_settings(host)) {
        let Some(root) = json_file(&file) else { continue };
        for (path, value) in switches {
            if find(&root, path) == Some(&Value::Bool(*value)) {
                let name = path.join(".");
                let fix = format!("remove `{name}` from `{}`", world.shown(&file));
                return Some(off(&file, &name, fix));
            }
        }
        if managed_settings(host).contains(&file)
            && root.get("allowManagedHooksOnly") == Some(&Value::Bool(true))
        {
            let fix = "ask whoever manages this computer to allow the hook".to_owned();
            return Some(off(&file, "allowManagedHooksOnly", fix));
        }
    }
    None
}

fn managed_settings(host: Host) -> Vec<PathBuf> {
    let files: &[&str] = match host {
        Host::ClaudeCode => &[
            "/etc/claude-code/managed-settings.json",
            "/Library/Application Support/ClaudeCode/managed-settings.json",
        ],
        _ => &[],
    };
    files.iter().map(PathBuf::from).collect()
}

/// Codex keeps its approvals in `config.toml`: `trust_level` of a project, and for each handler
/// `hooks.state."FILE:EVENT:GROUP:HANDLER".trusted_hash`.
fn codex(world: &World, scope: Scope, file: &Path, entries: &[Entry]) -> Trust {
    let Ok(home) = world.user_folder(Host::Codex) else {
        return Trust::Asks("the folder of Codex is not known".to_owned());
    };
    let config = home.join("config.toml");
    let text = fs::read_to_string(&config).unwrap_or_default();
    let Ok(table) = text.parse::<toml::Table>() else {
        let why = format!("`{}` is not valid TOML", world.shown(&config));
        return Trust::No { why, fix: "correct the file".to_owned() };
    };
    let table = toml::Value::Table(table);
    let at = |path: &[&str]| path.iter().try_fold(&table, |value, name| value.get(name));
    if at(&["features", "hooks"]).and_then(toml::Value::as_bool) == Some(false) {
        let why = format!("`features.hooks` in `{}` turns hooks off", world.shown(&config));
        return Trust::No { why, fix: "codex features enable hooks".to_owned() };
    }
    if scope == Scope::Project {
        let root = world.project(Host::Codex);
        let trusted = names(&root).iter().any(|root| {
            at(&["projects", root, "trust_level"]).and_then(toml::Value::as_str) == Some("trusted")
        });
        if !trusted {
            let why =
                format!("Codex does not trust `{}` and passes over its hooks", root.display());
            let fix = "start `codex` here and trust the folder when asked".to_owned();
            return Trust::No { why, fix };
        }
    }
    let unapproved: Vec<&str> = entries
        .iter()
        .filter(|entry| {
            let approved = names(file).iter().any(|file| {
                let key = format!("{file}:{}:{}:{}", snake(&entry.event), entry.index, entry.inner);
                let state = at(&["hooks", "state", &key]);
                let hash = state.and_then(|state| state.get("trusted_hash")?.as_str());
                let enabled = state.and_then(|state| state.get("enabled")?.as_bool());
                enabled != Some(false) && hash == Some(&codex_hash(entry))
            });
            !approved
        })
        .map(|entry| entry.event.as_str())
        .collect();
    if unapproved.is_empty() {
        return Trust::Yes("approved in Codex".to_owned());
    }
    Trust::No {
        why: format!("not approved in Codex: {}", unapproved.join(", ")),
        fix: "start `codex`, type /hooks, review and trust the entries of aldis".to_owned(),
    }
}

/// The hash by which Codex knows an approved handler: of its meaning, not of its text.
pub(super) fn codex_hash(entry: &Entry) -> String {
    let text = |name: &str| entry.handler.get(name).and_then(Value::as_str);
    let brief = matches!(entry.event.as_str(), "SessionEnd" | "Interrupt");
    let timeout = match entry.handler.get("timeout").and_then(Value::as_u64) {
        Some(timeout) if brief => timeout.clamp(1, 3),
        Some(timeout) => timeout.max(1),
        None if brief => 1,
        None => 600,
    };
    // Members must be in alphabetical order; the map may keep the order of insertion.
    let mut handler = Map::new();
    handler.insert("async".into(), (entry.handler.get("async") == Some(&true.into())).into());
    handler.insert("command".into(), text("command").into());
    if let Some(message) = text("statusMessage") {
        handler.insert("statusMessage".into(), message.into());
    }
    handler.insert("timeout".into(), timeout.into());
    handler.insert("type".into(), "command".into());
    let mut identity = Map::new();
    identity.insert("event_name".into(), snake(&entry.event).into());
    identity.insert("hooks".into(), json!([handler]));
    let matched = !matches!(entry.event.as_str(), "Stop" | "UserPromptSubmit" | "SessionEnd");
    if let Some(matcher) = entry.matcher.as_deref().filter(|_| matched) {
        identity.insert("matcher".into(), matcher.into());
    }
    let digest = Sha256::digest(Value::Object(identity).to_string());
    let digits: Vec<String> = digest.iter().map(|byte| format!("{byte:02x}")).collect();
    format!("sha256:{}", digits.concat())
}

/// Gemini passes over the hooks of folders it does not trust; it announces new ones and runs them.
fn gemini(world: &World) -> Trust {
    let Ok(home) = world.user_folder(Host::Gemini) else {
        return Trust::Asks("the folder of Gemini CLI is not known".to_owned());
    };
    let root = world.project(Host::Gemini);
    let folders = json_file(&home.join("trustedFolders.json"));
    let folders = folders.as_ref().and_then(Value::as_object);
    let says = |word: &str, folder: &dyn Fn(&Path) -> bool| {
        let mut folders = folders.into_iter().flatten();
        folders.any(|(path, value)| value == word && folder(Path::new(path)))
    };
    let roots = names(&root);
    let below = |folder: &Path| roots.iter().any(|root| Path::new(root).starts_with(folder));
    if says("DO_NOT_TRUST", &|folder| roots.iter().any(|root| Path::new(root) == folder)) {
        let why = format!("Gemini CLI was told not to trust `{}`", root.display());
        let fix = "start `gemini` here and type /permissions to trust the folder".to_owned();
        return Trust::No { why, fix };
    }
    let trusted = says("TRUST_FOLDER", &below)
        || says("TRUST_PARENT", &|folder| folder.parent().is_some_and(below));
    let announced = json_file(&home.join("trusted_hooks.json")).is_some_and(|hooks| {
        names(&root).iter().any(|root| {
            let keys = hooks.get(root).and_then(Value::as_array);
            let mut keys = keys.into_iter().flatten().filter_map(Value::as_str);
            keys.any(|key| key.starts_with("aldis:"))
        })
    });
    match (trusted, announced) {
        (_, true) => Trust::Yes("known to Gemini CLI".to_owned()),
        (true, false) => {
            Trust::Asks("Gemini CLI will announce the hook once, and run it".to_owned())
        }
        (false, false) => {
            Trust::Asks("Gemini CLI may ask once whether to trust this folder".to_owned())
        }
    }
}

/// Claude Code asks in interactive sessions whether to trust a folder; `claude -p` does not.
fn claude_code(world: &World) -> Trust {
    let root = world.project(Host::ClaudeCode);
    let own = super::place::folder("CLAUDE_CONFIG_DIR").or_else(|| world.home.clone());
    let state = own.and_then(|folder| json_file(&folder.join(".claude.json")));
    let trusted = names(&root).iter().any(|root| {
        let path = ["projects", root.as_str(), "hasTrustDialogAccepted"];
        state.as_ref().and_then(|state| find(state, &path)) == Some(&Value::Bool(true))
    });
    if trusted {
        Trust::Yes("the folder is trusted".to_owned())
    } else {
        Trust::Asks(
            "Claude Code asks once whether to trust this folder; `claude -p` does not".into(),
        )
    }
}

/// OpenClaw tells a plugin what was said only if it is allowed to know.
fn openclaw(world: &World) -> Trust {
    let config = world.user_folder(Host::OpenClaw).map(|folder| folder.join("openclaw.json"));
    let root = config.as_ref().ok().and_then(|file| json_file(file));
    if root.is_none() && config.is_ok_and(|file| file.exists()) {
        return Trust::Asks(
            "`openclaw.json` cannot be read here; the plugin needs \
             `plugins.entries.aldis.hooks.allowConversationAccess`"
                .to_owned(),
        );
    }
    let entry = root.as_ref().and_then(|root| find(root, &["plugins", "entries", "aldis"]));
    let at = |path: &[&str]| entry.and_then(|entry| find(entry, path)?.as_bool());
    if at(&["enabled"]) == Some(false) {
        return Trust::No {
            why: "the plugin is switched off in `openclaw.json`".to_owned(),
            fix: "openclaw plugins enable aldis".to_owned(),
        };
    }
    if at(&["hooks", "allowConversationAccess"]) == Some(true) {
        return Trust::Yes("the plugin may see conversations".to_owned());
    }
    Trust::No {
        why: "the plugin may not see conversations".to_owned(),
        fix: "openclaw config set plugins.entries.aldis.hooks.allowConversationAccess true"
            .to_owned(),
    }
}

fn json_file(path: &Path) -> Option<Value> {
    read_json(&super::plan::read(path).ok()??)
}

/// A path as it was given, and as it really is.
fn names(path: &Path) -> Vec<String> {
    let mut names = vec![path.display().to_string()];
    names.extend(fs::canonicalize(path).map(|path| path.display().to_string()));
    names
}

fn snake(event: &str) -> String {
    let mut name = String::new();
    for c in event.chars() {
        if c.is_ascii_uppercase() && !name.is_empty() {
            name.push('_');
        }
        name.push(c.to_ascii_lowercase());
    }
    name
}

#[cfg(test)]
mod tests;
