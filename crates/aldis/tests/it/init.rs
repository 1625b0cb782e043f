//! `aldis init`: what it finds, writes and leaves alone.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::{Path, PathBuf};
use std::time::Duration;

use aldis_process::{Agent, Environment, Input, Launch, Output};

use crate::phases::project::{Project, feed};
use crate::sandbox::{ALDIS, Done};

/// A project and the only programs that there are.
struct Stage {
    project: Project,
    programs: PathBuf,
}

impl Stage {
    fn new(programs: &[&str]) -> Self {
        let project = Project::new();
        // Nobody calls us yet.
        fs::remove_file(project.home().join(".claude/settings.json")).unwrap();
        let folder = project.root().join("programs");
        fs::create_dir(&folder).unwrap();
        for name in programs {
            let path = folder.join(name);
            fs::write(&path, "#!/bin/sh\n").unwrap();
            fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
        }
        symlink(which("git"), folder.join("git")).unwrap();
        symlink(ALDIS, folder.join("aldis")).unwrap();
        Self { project, programs: folder }
    }

    fn repository(self) -> Self {
        let mut git = self.project.command("git");
        git.env("PATH", &self.programs).args(["init", "-q", "-b", "trunk", "."]);
        assert!(git.status().unwrap().success());
        self
    }

    fn write(&self, name: &str, text: &str) {
        fs::write(self.project.path().join(name), text).unwrap();
    }

    fn read(&self, name: &str) -> String {
        fs::read_to_string(self.project.path().join(name)).unwrap()
    }

    fn run(&self, args: &[&str]) -> Done {
        let mut command = self.project.command(ALDIS);
        command.env("PATH", &self.programs).args(args);
        feed(command, b"")
    }

    /// Answers what is asked on a terminal.
    fn typed(&self, keys: &str) -> String {
        let set = |name: &str, value: &Path| (name.into(), value.into());
        let launch = Launch {
            args: vec!["init".into()],
            cwd: self.project.path(),
            environment: Environment {
                inherit: Some(Vec::new()),
                set: vec![
                    set("HOME", &self.project.home()),
                    set("ALDIS_STATE_DIR", &self.project.state_dir()),
                    set("PATH", &self.programs),
                    ("TERM".into(), "xterm".into()),
                ],
            },
            input: Input::Text(keys.as_bytes().to_vec()),
            terminal: true,
            reaper: Some(ALDIS.into()),
            ..Launch::new(ALDIS)
        };
        let agent = Agent::start(&launch).unwrap();
        let (mut shown, mut exit) = (Vec::new(), None);
        while exit.is_none() {
            match agent.next(Duration::from_secs(60)).unwrap() {
                Output::Stdout(bytes) | Output::Stderr(bytes) => shown.extend(bytes),
                Output::Exited(exited) => exit = exited.code,
                _ => {}
            }
        }
        let shown = String::from_utf8_lossy(&shown).into_owned();
        assert_eq!(exit, Some(0), "{shown}");
        shown
    }

    /// Every file of the project, without the repository.
    fn files(&self) -> BTreeMap<PathBuf, Vec<u8>> {
        let mut found = BTreeMap::new();
        let mut open = vec![self.project.path()];
        while let Some(folder) = open.pop() {
            for entry in fs::read_dir(folder).unwrap().flatten() {
                match entry.path() {
                    path if path.ends_with(".git") => {}
                    path if path.is_dir() => open.push(path),
                    path => drop(found.insert(path.clone(), fs::read(&path).unwrap())),
                }
            }
        }
        found
    }
}

fn which(program: &str) -> PathBuf {
    let path = std::env::var_os("PATH").unwrap();
    std::env::split_paths(&path).map(|folder| folder.join(program)).find(|it| it.is_file()).unwrap()
}

#[test]
fn a_project_is_ready_in_one_command() {
    let stage = Stage::new(&["claude", "codex"]).repository();
    stage.write("Cargo.toml", "[package]\nname = \"x\"\n");
    stage.write(".gitignore", "target");
    let done = stage.run(&["init", "--yes"]);
    assert_eq!((done.code, &*done.stderr), (0, ""), "{}", done.text());
    for words in ["Rust", "cargo test", "Claude Code, Codex", "aldis run \"WHAT TO DO\""] {
        assert!(done.stdout.contains(words), "{words}: {}", done.text());
    }
    assert!(stage.read("aldis.toml").contains("verify = \"cargo test\""));
    assert_eq!(stage.run(&["config", "check"]).code, 0);
    let shown = stage.run(&["config", "show", "run.verify", "--json"]).json().remove(0);
    assert_eq!(shown["value"], "cargo test");
    assert_eq!(shown["needs_trust"], false, "what was just agreed to is trusted");
    assert!(stage.read(".claude/settings.json").contains("\"hook\""));
    assert!(stage.read(".codex/hooks.json").contains("aldis hook codex"));
    assert_eq!(stage.read(".gitignore"), "target\n.caw/\n");

    // Once more changes nothing.
    let files = stage.files();
    let again = stage.run(&["init", "--yes"]);
    assert_eq!(again.code, 0, "{}", again.text());
    assert!(again.stdout.contains("is there already; it stays as it is"), "{}", again.stdout);
    assert!(again.stdout.contains("Codex calls aldis already"), "{}", again.stdout);
    assert_eq!(stage.files(), files);
}

#[test]
fn a_dry_run_changes_nothing() {
    let stage = Stage::new(&["claude"]).repository();
    stage.write("package.json", r#"{"scripts": {"test": "vitest"}}"#);
    let before = stage.files();
    let done = stage.run(&["init", "--dry-run"]);
    assert_eq!(done.code, 0, "{}", done.text());
    for words in ["verify = \"npm test\"", "Register with Claude Code", "Add .caw/ to .gitignore"] {
        assert!(done.stdout.contains(words), "{words}: {}", done.text());
    }
    assert_eq!(stage.files(), before);
    assert_eq!(stage.run(&["trust", "--list"]).stdout, "");
}

#[test]
fn nothing_is_done_unasked() {
    let stage = Stage::new(&["claude"]).repository();
    let before = stage.files();
    let done = stage.run(&["init"]);
    assert_eq!(done.code, 2, "{}", done.text());
    assert!(done.stderr.contains("aldis init --yes"), "{}", done.stderr);
    assert_eq!(stage.files(), before);

    // The settings, but not the hook.
    let shown = stage.typed("y\nn\n");
    assert!(shown.contains("Write aldis.toml? [Y/n]"), "{shown}");
    assert!(stage.project.path().join("aldis.toml").exists(), "{shown}");
    assert!(!stage.project.path().join(".claude").exists(), "{shown}");
    assert!(!stage.project.path().join(".gitignore").exists(), "{shown}");
    assert!(!shown.contains("aldis auto start"), "{shown}");
}

#[test]
fn a_project_of_which_nothing_is_known_gets_the_next_step() {
    let stage = Stage::new(&[]);
    let done = stage.run(&["init", "--yes"]);
    assert_eq!(done.code, 0, "{}", done.text());
    for words in ["no command found", "none on the PATH", "npm install -g", "aldis demo"] {
        assert!(done.stdout.contains(words), "{words}: {}", done.text());
    }
    let settings = stage.read("aldis.toml");
    assert!(settings.contains("# verify = "), "{settings}");
    assert_eq!(
        stage.run(&["config", "check"]).text(),
        "exit 0\n-- stdout\nsettings: ok, 0 values are set\n-- stderr\n"
    );
}

#[test]
fn a_file_with_every_setting() {
    let stage = Stage::new(&[]);
    let done = stage.run(&["config", "init"]);
    assert_eq!(done.code, 0, "{}", done.text());
    let text = stage.read("aldis.toml");
    assert_eq!(stage.run(&["config", "init", "--print"]).stdout, text);
    assert_eq!(stage.run(&["config", "show", "--json"]).text(), {
        let usual = Stage::new(&[]);
        usual.run(&["config", "show", "--json"]).text()
    });
    assert!(text.contains("\n# max_iterations = 50 "), "{text}");
    let again = stage.run(&["config", "init"]);
    assert_eq!(again.code, 2, "{}", again.text());
    assert!(again.stderr.contains("is there already"), "{}", again.stderr);
    assert_eq!(stage.run(&["config", "init", "--user"]).code, 0);
    assert!(stage.project.home().join(".config/aldis/aldis.toml").exists());
}
