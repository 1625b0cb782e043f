//! Where every host keeps its files on each system, and what is written into them there.

use std::ffi::OsString;
use std::path::PathBuf;

use super::*;
use crate::hosts::install::invocation::{HookEntry, Invocation, classify, is_aldis};
use crate::hosts::install::locations::{Locations, Scope};
use crate::settings::system::System::{self, Linux, MacOs, Windows};

/// Host, file in a project, file in the home, and the variable that names another folder than that,
/// with the file below it.
type HostPlace = (Host, &'static str, &'static str, Option<(&'static str, &'static str)>);

const PLACES: &[HostPlace] = &[
    (ANTIGRAVITY, ".agents/hooks.json", ".gemini/config/hooks.json", None),
    (
        CLAUDE_CODE,
        ".claude/settings.json",
        ".claude/settings.json",
        Some(("CLAUDE_CONFIG_DIR", "settings.json")),
    ),
    (CODEX, ".codex/hooks.json", ".codex/hooks.json", Some(("CODEX_HOME", "hooks.json"))),
    (
        COPILOT,
        ".github/hooks/aldis.json",
        ".copilot/hooks/aldis.json",
        Some(("COPILOT_HOME", "hooks/aldis.json")),
    ),
    (CURSOR, ".cursor/hooks.json", ".cursor/hooks.json", None),
    (DROID, ".factory/settings.json", ".factory/settings.json", None),
    (
        GEMINI,
        ".gemini/settings.json",
        ".gemini/settings.json",
        Some(("GEMINI_CLI_HOME", ".gemini/settings.json")),
    ),
    (
        GOOSE,
        ".agents/plugins/aldis/hooks/hooks.json",
        ".agents/plugins/aldis/hooks/hooks.json",
        None,
    ),
    (
        KILO,
        ".kilo/plugins/aldis.js",
        ".config/kilo/plugins/aldis.js",
        Some(("XDG_CONFIG_HOME", "kilo/plugins/aldis.js")),
    ),
    (
        OPENCLAW,
        ".openclaw/extensions/aldis/index.js",
        ".openclaw/extensions/aldis/index.js",
        Some(("OPENCLAW_STATE_DIR", "extensions/aldis/index.js")),
    ),
    (
        OPENCODE,
        ".opencode/plugins/aldis.js",
        ".config/opencode/plugins/aldis.js",
        Some(("XDG_CONFIG_HOME", "opencode/plugins/aldis.js")),
    ),
    (
        PI,
        ".pi/extensions/aldis.js",
        ".pi/agent/extensions/aldis.js",
        Some(("PI_CODING_AGENT_DIR", "extensions/aldis.js")),
    ),
    (QWEN, ".qwen/settings.json", ".qwen/settings.json", None),
];

/// The home of a user, as the system names it, and the variable that says so.
fn home(system: System) -> (&'static str, &'static str) {
    match system {
        Linux => ("HOME", "/home/me"),
        MacOs => ("HOME", "/Volumes/me"),
        Windows => ("USERPROFILE", r"C:\Users\me"),
    }
}

fn locations(system: System, folder: Option<(&str, &str)>) -> Locations {
    let (home, place) = home(system);
    let cwd = if system == Windows { r"C:\srv\shop" } else { "/srv/shop" };
    Locations::on(system, PathBuf::from(cwd), |name| -> Option<OsString> {
        let set = [Some((home, place)), folder];
        set.into_iter().flatten().find(|(key, _)| *key == name).map(|(_, value)| value.into())
    })
}

/// Returns the files of a registration as the system writes them.
fn files(locations: &Locations, host: Host, scope: Scope) -> Vec<String> {
    let location = locations.of(host, scope).unwrap();
    location.files.iter().map(|file| file.display().to_string()).collect()
}

fn native(system: System, folder: &str, file: &str) -> String {
    match system {
        Linux | MacOs => format!("{folder}/{file}"),
        Windows => format!(r"{folder}\{}", file.replace('/', r"\")),
    }
}

#[test]
fn every_host_has_its_files_on_every_system() {
    assert_eq!(PLACES.iter().map(|(host, ..)| *host).collect::<Vec<_>>(), Host::all());
    for system in [Linux, MacOs, Windows] {
        let plain = locations(system, None);
        let cwd = plain.cwd.display().to_string();
        for (host, project, user, variable) in PLACES {
            let name = host.name();
            let found = files(&plain, *host, Scope::Project);
            let wanted = native(system, &cwd, project);
            assert!(found.contains(&wanted), "{system:?} {name}: {found:?}, not {wanted}");
            let found = files(&plain, *host, Scope::User);
            let wanted = native(system, home(system).1, user);
            assert!(found.contains(&wanted), "{system:?} {name}: {found:?}, not {wanted}");
            let Some((variable, file)) = variable else { continue };
            let folder = if system == Windows { r"D:\own" } else { "/own" };
            let named = locations(system, Some((variable, folder)));
            let found = files(&named, *host, Scope::User);
            let wanted = native(system, folder, file);
            assert!(found.contains(&wanted), "{system:?} {name}: {found:?}, not {wanted}");
        }
    }
}

/// A registration is recognised whatever system it was written on, as long as it names no path.
#[test]
fn what_is_registered_in_a_project_is_the_same_everywhere() {
    for (host, ..) in PLACES {
        let invocation = Invocation::new(host.name(), "aldis");
        let line = invocation.line();
        assert_eq!(line, format!("aldis hook {}", host.name()));
        for system in [Linux, MacOs, Windows] {
            let words = system.split(&line).unwrap();
            assert_eq!(words, ["aldis", "hook", host.name()], "{system:?}");
        }
        let handler = serde_json::json!({"type": "command", "command": line});
        let found = classify(host.name(), &handler);
        assert_eq!(found, HookEntry::Current("aldis".to_owned()));
    }
    assert!(is_aldis("aldis") && is_aldis("aldis.exe") && !is_aldis("./aldis"));
}
