//! The hostile collection: what hosts, transcripts, state files, repositories and configurations
//! can do to a hook.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::Path;

use serde_json::{Value, json};

use super::project::{Answer, Project, block, testdata};

/// The rows about one kind of attack.
fn rows(kind: &str) -> Vec<Value> {
    let text = fs::read_to_string(testdata("hostile/other.jsonl")).unwrap();
    let rows: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let rows: Vec<Value> = rows.into_iter().filter(|row| row["dialect"] == kind).collect();
    assert!(!rows.is_empty(), "no rows about {kind}");
    rows
}

fn file(row: &Value) -> Vec<u8> {
    fs::read(testdata("hostile").join(row["file"].as_str().unwrap())).unwrap()
}

/// A run of session S1 in phase execution.
fn in_execution() -> Project {
    let project = Project::new();
    project.start(&["--skip-expansion"]);
    for phase in ["init", "planning"] {
        project.stop(&block(phase));
    }
    assert_eq!(project.status()["phase"], "execution");
    project
}

#[test]
fn hostile_payloads_are_answered_as_expected() {
    for row in rows("hook") {
        let project = in_execution();
        let name = row["file"].as_str().unwrap();
        let link = project.path().with_file_name("repo-link");
        symlink(project.path(), link).unwrap();
        let root = project.path().display().to_string();
        let fifo = project.home().join("fifo");
        nix::unistd::mkfifo(&fifo, nix::sys::stat::Mode::S_IRWXU).unwrap();
        let payload = String::from_utf8(file(&row)).unwrap();
        let payload = payload
            .replace("/repo/../repo-link", &format!("{root}/../repo-link"))
            .replace("\"/repo\"", &format!("\"{root}\""))
            .replace("/var/x/fifo", &fifo.display().to_string());
        let answer = project.hook_bytes("claude-code", payload.as_bytes());
        let wanted = row["expected"].as_str().unwrap().trim_start_matches("hook:");
        assert_eq!(answer.word(), wanted, "{name}: {}", row["attack"]);
        let iteration = project.status()["iteration"].as_u64().unwrap();
        let counted = wanted == "block" && name != "hook_01_last_message.json";
        assert_eq!(iteration, u64::from(counted), "{name}");
        if ["hook_09", "hook_11", "hook_12"].iter().any(|broken| name.starts_with(broken)) {
            assert!(project.alarms().contains("hook claude-code"), "{name} leaves a word");
        }
    }
}

#[test]
fn hostile_transcripts_are_heard_as_expected() {
    let mut heard = BTreeMap::new();
    for row in rows("transcript") {
        let name = row["file"].as_str().unwrap();
        // Streams are not transcripts: the scanner's own tests have them.
        if name.contains("deltas") {
            continue;
        }
        let project = in_execution();
        let transcript = project.home().join(".claude/projects/p/S1.jsonl");
        fs::create_dir_all(transcript.parent().unwrap()).unwrap();
        fs::write(&transcript, file(&row)).unwrap();
        let mut payload = project.payload("");
        payload.as_object_mut().unwrap().remove("last_assistant_message");
        if let Some(input) = row["hook_input"].as_str() {
            let input = fs::read_to_string(testdata("hostile").join(input)).unwrap();
            let input: Value = serde_json::from_str(&input).unwrap();
            payload["last_assistant_message"] = input["last_assistant_message"].clone();
        }
        payload["transcript_path"] = json!(transcript);
        assert_eq!(project.hook(&payload).word(), "block", "{name}");
        let accepted = project.status()["phase"] == "qa";
        let wanted = row["expected"].as_str().unwrap().starts_with("accept");
        assert_eq!(accepted, wanted, "{name}: {}", row["attack"]);
        heard.insert(name.to_owned(), accepted);
    }
    assert!(heard.values().any(|accepted| *accepted) && heard.values().any(|accepted| !accepted));
}

#[test]
fn hostile_state_files_decide_nothing() {
    for row in rows("state") {
        let project = Project::new();
        let text = file(&row);
        fs::create_dir(project.path().join(".caw")).unwrap();
        fs::write(project.view_path(), &text).unwrap();
        assert_eq!(project.stop("working"), Answer::Allow, "{}", row["attack"]);
        assert_eq!(fs::read(project.view_path()).unwrap(), text, "{} is untouched", row["file"]);
        assert_eq!(project.run(&["auto", "status"]).code, 1, "{}: no run came of it", row["file"]);
    }
}

/// A hostile repository, as its fixture says.
fn build(project: &Project, fixture: &Value, victim: &Path) {
    for entry in fixture["entries"].as_array().unwrap() {
        let path = project.path().join(entry["path"].as_str().unwrap());
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        let fill =
            |text: &Value| text.as_str().unwrap().replace("$VICTIM", victim.to_str().unwrap());
        if entry.get("symlink").is_some() {
            symlink(fill(&entry["symlink"]), &path).unwrap();
        } else if entry.get("fifo").is_some() {
            nix::unistd::mkfifo(&path, nix::sys::stat::Mode::S_IRWXU).unwrap();
        } else if entry.get("file").is_some() {
            fs::write(&path, fill(&entry["file"])).unwrap();
        } else {
            fs::create_dir_all(&path).unwrap();
        }
        if let Some(mode) = entry["mode"].as_str() {
            let mode = u32::from_str_radix(mode, 8).unwrap();
            fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
        }
    }
}

#[test]
fn hostile_repositories_harm_nobody() {
    for row in rows("fs") {
        let name = row["file"].as_str().unwrap();
        let project = Project::new();
        let victim = project.home().join("victim");
        fs::create_dir(&victim).unwrap();
        fs::write(victim.join("canary"), "alive").unwrap();
        build(&project, &serde_json::from_slice(&file(&row)).unwrap(), &victim);
        // The engine runs, with or without a view.
        let started = project.run(&["auto", "start", "x", "--session", "S1"]);
        assert_eq!(started.code, 0, "{name}: {}", started.text());
        let refused = ["fs_01", "fs_03", "fs_05"].iter().any(|bad| name.starts_with(bad));
        assert_eq!(started.stderr.contains("warning"), refused, "{name}: {}", started.text());
        assert_eq!(project.stop("working").word(), "block", "{name}");
        assert_eq!(project.status()["iteration"], 1, "{name}");
        let left: Vec<_> =
            fs::read_dir(&victim).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        assert_eq!(left, ["canary"], "{name}");
        assert_eq!(fs::read_to_string(victim.join("canary")).unwrap(), "alive", "{name}");
    }
}

#[test]
fn hostile_configurations_are_refused() {
    for row in rows("config") {
        let name = row["file"].as_str().unwrap();
        // Settings of a host are for the installer's tests.
        let Some(extension) = name.split('.').next_back().filter(|name| *name != "json") else {
            continue;
        };
        let project = Project::new();
        let config = format!("aldis.{extension}");
        fs::write(project.path().join(&config), file(&row)).unwrap();
        let refused = project.run(&["auto", "start", "x"]);
        assert_eq!(refused.code, 2, "{name}: {}", refused.text());
        assert!(refused.stderr.contains(&config), "{name}: {}", refused.text());
        // A hook is not stopped by it.
        assert_eq!(project.stop("working"), Answer::Allow, "{name}");
    }
}
