//! Registering with every host, taking it back, and proving that it works.

mod server;

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::{Path, PathBuf};

use assert_cmd::Command;
use jsonschema::Validator;
use serde_json::Value;

use crate::sandbox::{ALDIS, Done, Sandbox};

const HOSTS: [&str; 13] = [
    "antigravity",
    "claude-code",
    "codex",
    "gemini",
    "cursor",
    "copilot",
    "qwen",
    "droid",
    "goose",
    "kilo",
    "opencode",
    "openclaw",
    "pi",
];

/// A home, a project below it, and a place for programs.
struct Desk(Sandbox);

impl Desk {
    fn new() -> Self {
        let sandbox = Sandbox::new();
        for folder in ["home/app/.git", "home/app/deep/down", "bin"] {
            fs::create_dir_all(sandbox.path().join(folder)).unwrap();
        }
        fs::create_dir(sandbox.path().join("state")).unwrap();
        let private = fs::Permissions::from_mode(0o700);
        fs::set_permissions(sandbox.path().join("state"), private).unwrap();
        Self(sandbox)
    }

    /// A desk whose PATH has a program that says it is aldis, and answers stops as told.
    fn with_program(answer: &str) -> Self {
        let desk = Self::new();
        let script = format!(
            "#!/bin/sh\nif [ \"$1\" = --version ]; then echo aldis 0.2.0; exit; fi\n{answer}\n"
        );
        desk.program("aldis", &script);
        desk
    }

    fn program(&self, name: &str, script: &str) -> PathBuf {
        let path = self.0.write(&format!("bin/{name}"), script);
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
        path
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().canonicalize().unwrap().join(name)
    }

    fn run(&self, args: &[&str]) -> Done {
        self.run_in("home/app", args)
    }

    fn run_in(&self, folder: &str, args: &[&str]) -> Done {
        let path = format!("{}:/usr/bin:/bin", self.path("bin").display());
        let output = Command::new(ALDIS)
            .env_clear()
            .env("HOME", self.path("home"))
            .env("PATH", path)
            .env("ALDIS_STATE_DIR", self.path("state"))
            .current_dir(self.path(folder))
            .args(args)
            .output()
            .unwrap();
        Done {
            code: output.status.code().unwrap(),
            stdout: String::from_utf8(output.stdout).unwrap(),
            stderr: String::from_utf8(output.stderr).unwrap(),
        }
    }

    fn ok(&self, args: &[&str]) -> Done {
        let done = self.run(args);
        assert_eq!((done.code, done.stderr.as_str()), (0, ""), "{args:?}\n{}", done.stdout);
        done
    }

    /// All files of home and project, with what they hold, and all folders.
    fn picture(&self) -> BTreeMap<PathBuf, Option<Vec<u8>>> {
        fn add(folder: &Path, picture: &mut BTreeMap<PathBuf, Option<Vec<u8>>>) {
            for entry in fs::read_dir(folder).unwrap() {
                let path = entry.unwrap().path();
                if path.is_dir() {
                    add(&path, picture);
                    picture.insert(path, None);
                } else {
                    picture.insert(path.clone(), Some(fs::read(path).unwrap()));
                }
            }
        }
        let mut picture = BTreeMap::new();
        add(&self.path("home"), &mut picture);
        picture
    }

    fn check(&self, args: &[&str], name: &str) -> Value {
        let done = self.run(&[&["doctor", "--json"], args].concat());
        assert_eq!(done.stderr, "");
        let mut checks = done.json().into_iter().filter(|check| check["check"] == name);
        checks.next().unwrap_or_else(|| panic!("no {name} in {}", done.stdout))
    }
}

#[test]
fn every_host_comes_and_goes_without_a_trace() {
    for host in HOSTS {
        for scope in ["--project", "--user"] {
            let desk = Desk::new();
            let before = desk.picture();
            desk.ok(&["install", host, scope]);
            let once = desk.picture();
            assert_ne!(once, before, "{host} {scope}");
            assert!(once.keys().all(|path| !path.to_string_lossy().contains("backup")), "{host}");
            let again = desk.ok(&["install", host, scope]);
            assert!(again.stdout.contains("already calls aldis"), "{host}: {}", again.stdout);
            assert_eq!(desk.picture(), once, "{host} {scope}");
            desk.ok(&["uninstall", host, scope]);
            assert_eq!(desk.picture(), before, "{host} {scope}");
            let nothing = desk.ok(&["uninstall", host, scope]);
            assert!(nothing.stdout.contains("nothing to change"), "{host}");
        }
    }
}

#[test]
fn a_file_with_a_life_of_its_own_comes_back_byte_for_byte() {
    let files = [
        "{}",
        "{ }",
        "\n",
        "{\n}\n",
        "{\"hooks\": {}}",
        "{\r\n\t\"hooks\": { /* none */ },\r\n\t\"x\": [],\r\n}",
        "// mine\n{\n    \"a\": {\"b\": 1}, // last\n}\n\n",
        "{\"hooks\": {\"Stop\": [], \"stop\": []}, \"version\": 1}",
        "",
        "\u{feff}",
        "\u{feff}{\r\n  \"a\": 1\r\n}\r\n",
        "{\"a\": 1, /* about b */ \"b\": [1, 2,], }",
        "{\n\n\t\"a\": 1 // about a\n\t// the end\n\n}",
        "{\n  \"hooks\": {\n    \"Stop\": [\n      {\"matcher\": \"\", \"hooks\": [\n        {\"type\": \
         \"command\", \"command\": \"mine\"} // keep me\n      ]}\n    ],\n    \"PreToolUse\": [],\n    \
         \"stop\": [{\"command\": \"mine\"}]\n  }\n}\n",
    ];
    for file in files {
        for (host, path) in [
            ("claude-code", "home/app/.claude/settings.json"),
            ("codex", "home/app/.codex/hooks.json"),
            ("cursor", "home/app/.cursor/hooks.json"),
        ] {
            let desk = Desk::new();
            desk.0.write(path, file);
            let before = desk.picture();
            desk.ok(&["install", host]);
            let backup = fs::read_to_string(desk.path(&format!("{path}.aldis-backup"))).unwrap();
            assert_eq!(backup, file);
            desk.ok(&["install", host, "--absolute"]);
            let backup = fs::read_to_string(desk.path(&format!("{path}.aldis-backup"))).unwrap();
            assert_eq!(backup, file, "our own output is no backup");
            desk.ok(&["uninstall", host]);
            assert_eq!(desk.picture(), before, "{host} {file:?}");
        }
    }
}

#[test]
fn what_was_edited_meanwhile_stays() {
    let desk = Desk::new();
    let path = "home/app/.claude/settings.json";
    desk.0.write(path, "{\n  \"a\": 1\n}\n");
    desk.ok(&["install", "claude-code"]);
    let text = fs::read_to_string(desk.path(path)).unwrap();
    desk.0.write(path, text.replace("\"a\": 1", "\"a\": 2 /* new */"));
    desk.ok(&["uninstall", "claude-code"]);
    assert_eq!(fs::read_to_string(desk.path(path)).unwrap(), "{\n  \"a\": 2 /* new */\n}\n");
}

#[test]
fn comments_beside_an_entry_survive_it() {
    let desk = Desk::new();
    let path = "home/app/.claude/settings.json";
    desk.0.write(path, "{\"a\": 1 /* one */}\n");
    desk.ok(&["install", "claude-code"]);
    let text = fs::read_to_string(desk.path(path)).unwrap();
    assert!(text.contains("/* one */"), "{text}");
    let edited =
        text.replace("\"hooks\": {", "/* two */ \"hooks\": {").replace("\n}\n", " // three\n}\n");
    desk.0.write(path, &edited);
    desk.ok(&["uninstall", "claude-code"]);
    let left = fs::read_to_string(desk.path(path)).unwrap();
    for comment in ["/* one */", "/* two */", "// three"] {
        assert!(left.contains(comment), "{left}");
    }
    assert!(!left.contains("aldis"), "{left}");
}

#[test]
fn a_file_that_says_something_twice_is_not_touched() {
    let desk = Desk::new();
    desk.0.write("home/app/.claude/settings.json", "{\n\"hooks\": {},\n\"hooks\": {}\n}\n");
    let before = desk.picture();
    for command in ["install", "uninstall"] {
        let done = desk.run(&[command, "claude-code"]);
        assert_eq!((done.code, done.stdout.as_str()), (2, ""));
        assert!(done.stderr.contains("line 3: `hooks` is there twice"), "{}", done.stderr);
    }
    assert_eq!(desk.picture(), before);
    assert_eq!(desk.check(&["claude-code"], "registered")["status"], "failed");
}

#[test]
fn a_dry_run_shows_and_writes_nothing() {
    let desk = Desk::with_program("");
    desk.0.write("home/app/.codex/hooks.json", "{\n  // mine\n  \"hooks\": {}\n}\n");
    let before = desk.picture();
    let done = desk.ok(&["install", "codex", "--dry-run", "--no-mcp"]);
    assert_eq!(desk.picture(), before);
    insta::assert_snapshot!(done.stdout);
}

#[test]
fn the_project_is_found_from_below() {
    let desk = Desk::new();
    desk.run_in("home/app/deep/down", &["install", "gemini"]);
    assert!(desk.path("home/app/.gemini/settings.json").exists());
    // The user's own folder does not make the home directory a project.
    fs::create_dir_all(desk.path("home/.claude")).unwrap();
    fs::create_dir_all(desk.path("home/loose")).unwrap();
    desk.run_in("home/loose", &["install", "claude-code"]);
    assert!(desk.path("home/loose/.claude/settings.json").exists());
}

#[test]
fn local_settings_are_claude_codes() {
    let desk = Desk::new();
    desk.ok(&["install", "claude-code", "--local"]);
    assert!(desk.path("home/app/.claude/settings.local.json").exists());
    assert_eq!(desk.run(&["install", "gemini", "--local"]).code, 2);
}

#[test]
fn the_environment_moves_the_users_files() {
    let desk = Desk::new();
    for (name, host, file) in [
        ("CLAUDE_CONFIG_DIR", "claude-code", "moved/settings.json"),
        ("CODEX_HOME", "codex", "moved/hooks.json"),
        ("XDG_CONFIG_HOME", "opencode", "moved/opencode/plugins/aldis.js"),
    ] {
        let status = Command::new(ALDIS)
            .env_clear()
            .env("HOME", desk.path("home"))
            .env(name, desk.path("moved"))
            .current_dir(desk.path("home/app"))
            .args(["install", host, "--user"])
            .ok();
        assert!(status.is_ok(), "{host}");
        assert!(desk.path(file).exists(), "{host}");
    }
}

#[test]
fn a_broken_file_is_not_touched() {
    let desk = Desk::new();
    desk.0.write("home/app/.claude/settings.json", "{\n  \"a\": 1\n  \"b\": 2\n}\n");
    let before = desk.picture();
    for command in ["install", "uninstall"] {
        let done = desk.run(&[command, "claude-code"]);
        assert_eq!((done.code, done.stdout.as_str()), (2, ""));
        assert!(done.stderr.contains("settings.json` line 2: not valid JSON"), "{}", done.stderr);
    }
    assert_eq!(desk.picture(), before);
}

#[test]
fn somebody_elses_plugin_is_not_touched() {
    let desk = Desk::new();
    desk.0.write("home/app/.opencode/plugins/aldis.js", "export const Mine = 1;\n");
    let before = desk.picture();
    let done = desk.run(&["install", "opencode"]);
    assert_eq!(done.code, 2);
    assert!(done.stderr.contains("was not written by aldis"), "{}", done.stderr);
    desk.ok(&["uninstall", "opencode"]);
    assert_eq!(desk.picture(), before);
}

#[test]
fn links_are_followed_but_not_out_of_the_project() {
    let desk = Desk::new();
    desk.0.write("home/dotfiles/claude.json", "{}\n");
    fs::set_permissions(desk.path("home/dotfiles/claude.json"), fs::Permissions::from_mode(0o640))
        .unwrap();
    fs::create_dir(desk.path("home/.claude")).unwrap();
    let link = desk.path("home/.claude/settings.json");
    symlink("../dotfiles/claude.json", &link).unwrap();
    let done = desk.ok(&["install", "claude-code", "--user"]);
    assert!(done.stdout.contains("dotfiles/claude.json"), "{}", done.stdout);
    assert!(link.is_symlink());
    let real = desk.path("home/dotfiles/claude.json");
    assert!(fs::read_to_string(&real).unwrap().contains("hook"));
    assert_eq!(real.metadata().unwrap().permissions().mode() & 0o777, 0o640);

    fs::create_dir(desk.path("home/app/.claude")).unwrap();
    symlink("../../dotfiles/claude.json", desk.path("home/app/.claude/settings.json")).unwrap();
    symlink("../dotfiles", desk.path("home/app/.codex")).unwrap();
    let before = desk.picture();
    for host in ["claude-code", "codex"] {
        let done = desk.run(&["install", host]);
        assert_eq!(done.code, 2, "{host}");
        assert!(done.stderr.contains("leads out of the project"), "{}", done.stderr);
    }
    assert_eq!(desk.picture(), before);
}

#[test]
fn nothing_that_is_written_is_expanded() {
    for host in HOSTS {
        let desk = Desk::new();
        desk.ok(&["install", host, "--absolute"]);
        for (path, text) in desk.picture() {
            let Some(text) = text else { continue };
            let text = String::from_utf8(text).unwrap();
            // A script may say `${key}`; a command may not.
            let script = path.extension().is_some_and(|extension| extension == "js");
            assert!(script || !text.contains(['$', '`']), "{host}: {text}");
            assert!(!text.contains("\"*\""), "{host}: {text}");
        }
    }
}

#[test]
fn doctor_finds_a_sound_registration() {
    for host in HOSTS.into_iter().filter(|host| !matches!(*host, "codex" | "openclaw")) {
        let desk = Desk::with_program(&format!("exec '{ALDIS}' \"$@\""));
        desk.ok(&["install", host]);
        let done = desk.run(&["doctor", host]);
        assert_eq!((done.code, done.stderr.as_str()), (0, ""), "{host}\n{}", done.stdout);
        assert!(done.stdout.starts_with("All "), "{}", done.stdout);
        assert!(!done.stdout.contains("skipped"), "{}", done.stdout);
    }
}

#[test]
fn doctor_speaks_to_people() {
    let desk = Desk::with_program("cat > /dev/null; echo oops >&2; exit 3");
    desk.ok(&["install", "codex"]);
    let done = desk.run(&["doctor", "codex"]);
    assert_eq!(done.code, 1);
    let shown = done.stdout.replace(desk.path("").to_str().unwrap(), "/desk/");
    insta::assert_snapshot!(shown);
}

#[test]
fn doctor_judges_the_answer() {
    let table = [
        ("cat > /dev/null", "ok"),
        ("cat > /dev/null; echo '{\"decision\":\"block\",\"reason\":\"x\"}'", "ok"),
        ("cat > /dev/null; echo hello", "failed"),
        ("cat > /dev/null; echo '[]'", "failed"),
        ("cat > /dev/null; echo x >&2", "failed"),
        ("cat > /dev/null; exit 2", "failed"),
        ("kill -9 $$", "failed"),
        ("test \"$2\" = goose && grep -q '\"event\":\"Stop\"'", "ok"),
        ("test -n \"$ALDIS_STATE_DIR\" && test \"$HOME\" = \"$(pwd)\"", "ok"),
    ];
    for (answer, status) in table {
        let desk = Desk::with_program(answer);
        desk.ok(&["install", "goose"]);
        assert_eq!(desk.check(&["goose"], "answers")["status"], status, "{answer}");
    }
}

#[test]
fn doctor_waits_for_nobody() {
    let desk = Desk::with_program("exec sleep 60");
    desk.ok(&["install", "goose"]);
    let check = desk.check(&["goose"], "answers");
    assert_eq!(check["status"], "failed");
    assert!(check["message"].as_str().unwrap().ends_with("did not answer within 5 s"), "{check}");
}

#[test]
fn doctor_misses_the_program() {
    let desk = Desk::new();
    desk.ok(&["install", "gemini"]);
    let check = desk.check(&["gemini"], "command");
    assert_eq!(check["status"], "failed");
    assert_eq!(check["fix"], "aldis install gemini --project --absolute");
    assert_eq!(desk.check(&["gemini"], "answers")["status"], "skipped");
    desk.program("aldis", "#!/bin/sh\necho aldis 0.0.9\n");
    let check = desk.check(&["gemini"], "command");
    assert!(check["message"].as_str().unwrap().contains("`aldis 0.0.9`"), "{check}");
}

#[test]
fn doctor_runs_nothing_of_a_repository() {
    let desk = Desk::new();
    let trap = desk.0.write("home/app/aldis", "#!/bin/sh\ntouch sprung ../sprung\n");
    fs::set_permissions(&trap, fs::Permissions::from_mode(0o755)).unwrap();
    let trap = trap.canonicalize().unwrap();
    for command in [format!("{} hook codex", trap.display()), "./aldis hook codex".to_owned()] {
        let hooks = serde_json::json!({"hooks": {"Stop": [{"hooks": [{"command": command}]}]}});
        desk.0.write("home/app/.codex/hooks.json", hooks.to_string());
        assert_eq!(desk.run(&["doctor", "codex"]).code, 1);
    }
    assert!(!desk.path("home/app/sprung").exists() && !desk.path("home/sprung").exists());
}

#[test]
fn doctor_finds_doubles() {
    let desk = Desk::with_program("");
    desk.ok(&["install", "gemini"]);
    desk.ok(&["install", "gemini", "--user"]);
    let check = desk.check(&["gemini"], "single");
    assert_eq!(check["fix"], "aldis uninstall gemini --user");
    // Claude Code runs the same handler once, another one twice.
    desk.ok(&["install", "claude-code"]);
    desk.ok(&["install", "claude-code", "--user"]);
    let single = |line: &Value| line["check"] == "single";
    assert!(!desk.run(&["doctor", "claude-code", "--json"]).json().iter().any(single));
    desk.0.write(
        "home/.claude/settings.json",
        "{\"hooks\": {\"Stop\": [{\"hooks\": [\n{\"command\": \"aldis hook stop\"}]}]}}",
    );
    let check = desk.check(&["claude-code"], "single");
    assert_eq!(check["fix"], "remove the entry at ~/.claude/settings.json:2");
}

#[test]
fn doctor_finds_missing_events() {
    let desk = Desk::with_program("");
    desk.0.write(
        "home/app/.qwen/settings.json",
        r#"{"hooks": {"Stop": [{"hooks": [{"command": "aldis hook qwen"}]}]}}"#,
    );
    let check = desk.check(&["qwen"], "registered");
    assert_eq!(check["status"], "failed");
    assert!(
        check["message"].as_str().unwrap().contains("has no entry for SubagentStop, "),
        "{check}"
    );
    desk.ok(&["install", "qwen"]);
    assert_eq!(desk.check(&["qwen"], "registered")["status"], "ok");
}

#[test]
fn doctor_finds_switches() {
    let desk = Desk::with_program("");
    desk.0.write("home/.claude/settings.json", r#"{"disableAllHooks": true}"#);
    desk.ok(&["install", "claude-code"]);
    let check = desk.check(&["claude-code"], "trusted");
    assert_eq!(check["fix"], "remove `disableAllHooks` from `~/.claude/settings.json`");
}

#[test]
fn doctor_knows_what_codex_trusts() {
    let desk = Desk::with_program("");
    desk.ok(&["install", "codex"]);
    let trusted = |config: &str| {
        desk.0.write("home/.codex/config.toml", config);
        desk.check(&["codex"], "trusted")["status"].clone()
    };
    let root = desk.path("home/app");
    let project = format!("[projects.{:?}]\ntrust_level = \"trusted\"\n", root.to_str().unwrap());
    let hashes = [
        ("stop", "123ed81f1bba191be1f11f1dad1275bc4a103ee4cdeed629ef8e6ad0d06a1af7"),
        ("subagent_stop", "19a569ae9bc804987973f5216dea5e1f967989926822e20c17a486b4cb05c823"),
        ("user_prompt_submit", "2b6173f7792d324de432f356de7642d9906b48aab90340f94204e6885e5bb737"),
        ("session_start", "26e8aa20863384d4e45f330b0a8d6df677453115815ebb40a53ffcab8dc99fbb"),
        ("session_end", "4a16034e3ff8e0dd9e0ef39d93c4cd58570b061e8b4b0a5c418e6afd46461361"),
    ];
    let file = root.join(".codex/hooks.json");
    let state: String = hashes
        .iter()
        .map(|(event, hash)| {
            let key = format!("{}:{event}:0:0", file.display());
            format!("[hooks.state.{key:?}]\ntrusted_hash = \"sha256:{hash}\"\n")
        })
        .collect();
    assert_eq!(trusted(""), "failed");
    assert_eq!(trusted(&project), "failed");
    assert_eq!(trusted(&state), "failed");
    assert_eq!(trusted(&format!("{project}{state}")), "ok");
    assert_eq!(trusted(&format!("{project}{state}enabled = false\n")), "failed");
    assert_eq!(trusted(&format!("{project}{}", state.replace("sha256:1", "sha256:0"))), "failed");
    assert_eq!(trusted(&format!("[features]\nhooks = false\n{project}{state}")), "failed");
    assert_eq!(trusted("oops"), "failed");
}

#[test]
fn doctor_knows_what_codex_can_read() {
    let desk = Desk::with_program("");
    for (file, problem) in [
        ("{\n// mine\n}", "line 2 is not plain JSON"),
        ("{\"theme\": 1}", "it does not know `theme`"),
    ] {
        desk.0.write("home/app/.codex/hooks.json", file);
        desk.ok(&["install", "codex"]);
        let check = desk.check(&["codex"], "registered");
        assert_eq!(check["status"], "failed");
        assert!(check["message"].as_str().unwrap().ends_with(problem), "{check}");
    }
}

#[test]
fn doctor_looks_at_the_state_directory() {
    let desk = Desk::with_program("");
    assert_eq!(desk.check(&["codex"], "state")["status"], "ok");
    let open = fs::Permissions::from_mode(0o755);
    fs::set_permissions(desk.path("state"), open).unwrap();
    let check = desk.check(&["codex"], "state");
    assert_eq!(check["status"], "failed");
    assert!(check["fix"].as_str().unwrap().starts_with("chmod 700 "), "{check}");
}

#[test]
fn doctor_takes_those_that_are_there() {
    let desk = Desk::with_program("");
    let done = desk.run(&["doctor"]);
    assert_eq!(done.code, 1, "{}", done.stdout);
    assert!(done.stdout.starts_with("No supported agent is configured here.\n"), "{}", done.stdout);
    desk.program("gemini", "#!/bin/sh\n");
    desk.ok(&["install", "goose"]);
    let done = desk.ok(&["doctor"]);
    assert!(done.stdout.contains("note    registered Gemini CLI does not call aldis"));
}

#[test]
fn programs_get_what_the_schemas_say() {
    let desk = Desk::with_program("");
    let check = |format: &str, done: &Done| {
        let schema = desk.run(&["schema", format]).stdout;
        let schema: Value = serde_json::from_str(&schema).unwrap();
        let validator: Validator = jsonschema::validator_for(&schema).unwrap();
        assert!(!done.json().is_empty());
        for line in done.json() {
            assert!(validator.is_valid(&line), "{line}");
        }
    };
    check("install", &desk.ok(&["install", "cursor", "--json", "--dry-run"]));
    check("install", &desk.ok(&["install", "cursor", "--json"]));
    check("doctor", &desk.run(&["doctor", "--json"]));
    check("install", &desk.ok(&["uninstall", "cursor", "--json"]));
}
