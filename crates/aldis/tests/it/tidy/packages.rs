//! What releases are made of: the workflows that CI runners read, the scripts they call, the versions.
//! Nobody runs a workflow here, so what can be said of one without a runner is said.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::process::Command;

use serde_json::Value;

use super::{document, root};

/// What `scripts/package` makes.
const KINDS: &[&str] = &["crate", "deb", "image", "npm", "plugin", "tarball", "wheel"];

/// Returns the workflows: name, text, and what a YAML reader makes of it.
fn workflows() -> Vec<(String, String, Value)> {
    let folder = root().join(".github/workflows");
    let mut workflows: Vec<_> = fs::read_dir(folder)
        .unwrap()
        .map(|entry| {
            let entry = entry.unwrap();
            let text = fs::read_to_string(entry.path()).unwrap();
            let name = entry.file_name().into_string().unwrap();
            let value = serde_saphyr::from_str(&text).unwrap_or_else(|it| panic!("{name}: {it}"));
            (name, text, value)
        })
        .collect();
    workflows.sort_by(|one, other| one.0.cmp(&other.0));
    assert!(workflows.len() >= 3);
    workflows
}

/// Returns every step with the name of its job.
fn steps(workflow: &Value) -> Vec<(String, &Value)> {
    let jobs = workflow["jobs"].as_object().unwrap();
    let steps = jobs.iter().flat_map(|(name, job)| {
        let steps = job["steps"].as_array().unwrap_or_else(|| panic!("{name} has no steps"));
        steps.iter().map(|step| (name.clone(), step))
    });
    steps.collect()
}

#[test]
fn workflows_may_little_and_end() {
    for (name, _, workflow) in workflows() {
        assert_eq!(workflow["permissions"], serde_json::json!({"contents": "read"}), "{name}");
        for (job, text) in workflow["jobs"].as_object().unwrap() {
            assert!(text["timeout-minutes"].as_u64().is_some(), "{name}: {job} has no end");
            assert!(text["runs-on"].is_string(), "{name}: {job} runs nowhere");
        }
        for (job, step) in steps(&workflow) {
            let does = [&step["run"], &step["uses"]].into_iter().filter(|it| it.is_string());
            assert_eq!(does.count(), 1, "{name}: {job}: {step}");
        }
    }
}

/// A tag can be moved to other code, a commit cannot. One action has one digest everywhere.
#[test]
fn actions_are_pinned_by_digest() {
    let mut pins = BTreeMap::new();
    for (name, text, workflow) in workflows() {
        for (_, step) in steps(&workflow) {
            let Some(uses) = step["uses"].as_str() else { continue };
            let (action, digest) = uses.split_once('@').unwrap();
            let is_digest = digest.len() == 40 && digest.bytes().all(|it| it.is_ascii_hexdigit());
            assert!(is_digest, "{name}: {uses} is not pinned");
            let line = text.lines().find(|line| line.contains(uses)).unwrap();
            assert!(line.contains(" # v"), "{name}: which release is {uses}?");
            let pin = line.split("@").nth(1).unwrap().to_owned();
            assert_eq!(*pins.entry(action.to_owned()).or_insert_with(|| pin.clone()), pin);
        }
    }
    assert!(pins.len() >= 5, "{pins:?}");
}

#[test]
fn what_workflows_and_scripts_call_exists() {
    let mut called = Vec::new();
    for (name, _, workflow) in workflows() {
        for (_, step) in steps(&workflow) {
            let run = step["run"].as_str().unwrap_or_default();
            called.extend(run.split_whitespace().map(|word| (name.clone(), word.to_owned())));
        }
    }
    for script in [".ci/run", "scripts/release-check"] {
        let text = document(script);
        called.extend(text.split_whitespace().map(|word| (script.to_owned(), word.to_owned())));
    }
    let scripts = called.iter().filter_map(|(file, word)| {
        let path = word.trim_start_matches(['`', '(']).strip_prefix("./")?;
        Some((file, path.trim_end_matches([';', ')', '`', ','])))
    });
    let mut count = 0;
    for (file, path) in scripts.filter(|(_, path)| path.contains('/')) {
        let meta =
            fs::metadata(root().join(path)).unwrap_or_else(|it| panic!("{file}: {path}: {it}"));
        assert!(meta.permissions().mode() & 0o111 != 0, "{file}: {path} is not executable");
        count += 1;
    }
    assert!(count > 10, "{count}");
}

#[test]
fn every_kind_of_package_is_made_checked_and_documented() {
    let mut found: Vec<String> = fs::read_dir(root().join("packaging"))
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.join("build").is_file() && path.join("check").is_file())
        .map(|path| path.file_name().unwrap().to_str().unwrap().to_owned())
        .collect();
    found.sort();
    assert_eq!(found, KINDS);
    let help = document("scripts/package");
    let page = document("docs/install-aldis.md");
    let release = document("scripts/release-check");
    for kind in KINDS {
        assert!(help.contains(&format!("\n#   {kind} ")), "scripts/package does not list {kind}");
        assert!(page.contains(&format!("`{kind}`")), "docs/install-aldis.md does not name {kind}");
        assert!(release.contains(kind), "scripts/release-check leaves {kind} out");
    }
}

/// Release, manifests, plugins and packages have one version.
#[test]
fn there_is_one_version() {
    let check = |tag: &str| {
        let output = Command::new(root().join("scripts/check-version")).arg(tag).output().unwrap();
        (output.status.success(), String::from_utf8_lossy(&output.stderr).into_owned())
    };
    let version = env!("CARGO_PKG_VERSION");
    assert_eq!(check(&format!("v{version}")), (true, String::new()));
    assert!(!check("v9.9.9").0);
}

/// The platforms of the npm packages are those that the release builds.
#[test]
fn npm_has_a_package_for_every_platform_that_is_built() {
    let platforms: BTreeMap<String, Value> =
        serde_json::from_str(&document("packaging/npm/platforms.json")).unwrap();
    let mut known: Vec<&str> =
        platforms.values().map(|platform| platform["target"].as_str().unwrap()).collect();
    let (_, _, release) = workflows().into_iter().find(|(name, ..)| name == "release.yml").unwrap();
    let built = &release["jobs"]["binaries"]["strategy"]["matrix"]["include"];
    let mut built: Vec<&str> =
        built.as_array().unwrap().iter().map(|it| it["target"].as_str().unwrap()).collect();
    known.sort_unstable();
    built.sort_unstable();
    assert_eq!(built, known);
}
