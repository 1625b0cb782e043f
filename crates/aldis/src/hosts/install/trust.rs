//! Whether a host will really run what is registered with it.
//!
//! Hosts guard against repositories that bring hooks along: some want an approval, some ask once,
//! some have switches that turn all hooks off. What each wants is in its own file.

use std::path::{Path, PathBuf};

use serde_json::Value;

use super::Host;
use super::edit::{find, read_json};
use super::hooks_file::CurrentEntry;
use super::locations::{Locations, Scope};

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
    locations: &Locations,
    host: Host,
    scope: Scope,
    file: &Path,
    entries: &[CurrentEntry],
) -> Trust {
    let off = switched_off(locations, host);
    off.unwrap_or_else(|| (host.spec().trust.examine)(locations, scope, file, entries))
}

/// Looks for a setting that turns hooks off.
fn switched_off(locations: &Locations, host: Host) -> Option<Trust> {
    let rules = &host.spec().trust;
    let off = |file: &Path, switch: &str, fix: String| Trust::No {
        why: format!("`{switch}` in `{}` turns hooks off", locations.shown(file)),
        fix,
    };
    let own = locations.all_of(host).into_iter().flat_map(|location| location.files);
    let own = own.map(|file| (file, false));
    let managed = rules.managed.iter().map(|file| (PathBuf::from(file), true));
    for (file, is_managed) in own.chain(managed) {
        let Some(root) = json_file(&file) else { continue };
        for (path, value) in rules.switches {
            if find(&root, path) == Some(&Value::Bool(*value)) {
                let name = path.join(".");
                let fix = format!("remove `{name}` from `{}`", locations.shown(&file));
                return Some(off(&file, &name, fix));
            }
        }
        if is_managed && root.get("allowManagedHooksOnly") == Some(&Value::Bool(true)) {
            let fix = "ask whoever manages this computer to allow the hook".to_owned();
            return Some(off(&file, "allowManagedHooksOnly", fix));
        }
    }
    None
}

/// Reads a host's own JSON file, if it is there and valid.
pub(crate) fn json_file(path: &Path) -> Option<Value> {
    read_json(&super::plan::read(path).ok()??)
}
