//! Claims under a Stop hook that are checked by a process of their own, with the real hook.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::Command;
use std::thread;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::project::{Answer, Project, block, conversation, prompted, said, tool_result};

/// How long the tests wait for a process on a busy machine.
const PATIENCE: Duration = Duration::from_secs(60);

/// A project with a check that passes once `done` is there, and a run in its last phase.
struct Stage(Project);

impl Stage {
    fn new(more: &[&str]) -> Self {
        let project = Project::new().patient();
        write(
            &project.path().join("check.sh"),
            "#!/bin/sh\ntest -e done || { echo 2 of 118 failed; exit 1; }\n",
        );
        fs::create_dir(project.path().join("tests")).unwrap();
        fs::write(project.path().join("tests/export.py"), "assert True\n").unwrap();
        Self::begun(project, &[&["--verify", "./check.sh"], more].concat())
    }

    fn begun(project: Project, more: &[&str]) -> Self {
        let skips = ["--skip-expansion", "--skip-qa", "--skip-review", "--skip-reflect"];
        project.start(&[&skips, more].concat());
        for phase in ["init", "planning"] {
            assert_eq!(project.stop(&block(phase)).word(), "block", "{phase}");
        }
        assert_eq!(project.status()["phase"], "execution");
        Self(project)
    }

    /// The agent reports that the last phase is complete. Its stop is blocked while that is checked.
    fn claim(&self) {
        let answer = self.0.stop(&block("execution"));
        assert!(answer.reason().contains("is being checked"), "{answer:?}");
    }

    /// Waits as the agent is told to, until the verdict is there.
    fn wait(&self) {
        let began = Instant::now();
        while self.is_checking() {
            assert!(began.elapsed() < PATIENCE, "{}", self.log());
            let done = self.0.run(&["auto", "status", "--wait"]);
            assert_eq!(done.code, 0, "{}", done.text());
        }
    }

    fn is_checking(&self) -> bool {
        let done = self.0.run(&["auto", "status"]);
        done.stdout.contains("is being checked")
    }

    /// What the process that checks printed.
    fn log(&self) -> String {
        let run = self.run();
        let log = self.0.state_dir().join("logs").join(run).join("supervisor.log");
        fs::read_to_string(log).unwrap_or_default()
    }

    fn run(&self) -> String {
        self.0.status()["run"].as_str().unwrap().to_owned()
    }

    /// Rules of all decisions.
    fn rules(&self) -> Vec<String> {
        let done = self.0.run(&["why", &self.run(), "--all", "--json"]);
        done.json().iter().map(|it| it["rule"].as_str().unwrap().to_owned()).collect()
    }

    fn receipts(&self) -> Vec<Value> {
        let shown = self.0.run(&["proof", "show", "--json"]);
        if shown.code == 0 { shown.json() } else { Vec::new() }
    }

    /// The processes that check this run.
    fn checkers(&self) -> Vec<u32> {
        let run = self.run();
        let mut found = Vec::new();
        for entry in fs::read_dir("/proc").unwrap().flatten() {
            let Ok(pid) = entry.file_name().to_string_lossy().parse() else { continue };
            let words = fs::read(entry.path().join("cmdline")).unwrap_or_default();
            let words: Vec<&[u8]> = words.split(|byte| *byte == 0).collect();
            if words.contains(&&b"phase-check"[..]) && words.contains(&run.as_bytes()) {
                found.push(pid);
            }
        }
        found
    }
}

fn write(path: &Path, text: &str) {
    fs::write(path, text).unwrap();
    fs::set_permissions(path, fs::Permissions::from_mode(0o755)).unwrap();
}

#[track_caller]
fn eventually(what: &str, mut holds: impl FnMut() -> bool) {
    let began = Instant::now();
    while !holds() {
        assert!(began.elapsed() < PATIENCE, "{what}");
        thread::sleep(Duration::from_millis(50));
    }
}

#[test]
fn a_claim_is_checked_beside_the_session_and_then_counts() {
    let stage = Stage::new(&[]);
    fs::write(stage.0.path().join("done"), "").unwrap();
    stage.claim();
    stage.wait();
    assert_eq!(stage.0.stop("I am done."), Answer::Allow);
    let status = stage.0.status();
    assert_eq!(
        (&status["phase"], &status["active"]),
        (&json!("complete"), &json!(false)),
        "{}",
        stage.log()
    );
    stage.0.assert_sound();
    assert_eq!(stage.0.alarms(), "");
    let receipt = &stage.receipts()[0]["receipt"];
    let check = &receipt["checks"][0];
    assert_eq!(
        (&check["status"], &check["exit_code"], &check["command"]),
        (&json!("passed"), &json!(0), &json!("./check.sh"))
    );
    assert_eq!(receipt["verdict"]["acceptance"], "accepted");
    let files = receipt["protected"]["files"].as_array().unwrap();
    assert!(files.iter().any(|file| file["path"] == "check.sh"), "{receipt}");
    assert_eq!(stage.0.run(&["proof", "verify"]).code, 0);
}

#[test]
fn a_claim_that_does_not_hold_comes_back_with_the_last_lines() {
    let stage = Stage::new(&[]);
    stage.claim();
    stage.wait();
    let answer = stage.0.stop("I waited.");
    assert!(answer.reason().contains("2 of 118 failed"), "{answer:?}");
    assert_eq!(stage.receipts(), [Value::Null; 0]);
    fs::write(stage.0.path().join("done"), "").unwrap();
    stage.claim();
    stage.wait();
    assert_eq!(stage.0.stop("I am done."), Answer::Allow);
    let rules = stage.rules();
    for rule in ["check-started", "check-failed", "blocked", "all-phases-complete"] {
        assert!(rules.contains(&format!("phases/{rule}")), "{rule}: {rules:?}");
    }
    assert_eq!(stage.receipts().len(), 1);
    let report = stage.0.run(&["report", "--json"]).json().remove(0);
    let fates: Vec<&Value> =
        report["claims"].as_array().unwrap().iter().map(|claim| &claim["fate"]).collect();
    assert_eq!(fates, ["held", "held", "refused", "held"], "{report}");
    assert_eq!(report["claims"][2]["output"], "2 of 118 failed", "{report}");
    assert_eq!(report["iterations"], Value::Null, "{report}");
}

/// An agent that bends the check instead of doing the work is refused, and told why.
#[test]
fn an_agent_that_bends_the_check_is_refused() {
    type Cheat = fn(&Path);
    let cases: [(&str, &[&str], Cheat, &str); 6] = [
        (
            "rewrites the script",
            &[],
            |it| write(&it.join("check.sh"), "#!/bin/sh\nexit 0\n"),
            "check.sh",
        ),
        (
            "fakes the exit code",
            &[],
            |it| {
                let script = fs::read_to_string(it.join("check.sh")).unwrap();
                fs::write(it.join("check.sh"), script.replacen('\n', "\nexit 0\n", 1)).unwrap();
            },
            "check.sh",
        ),
        ("deletes the script", &[], |it| fs::remove_file(it.join("check.sh")).unwrap(), "check.sh"),
        (
            "edits the test",
            &["--protect", "tests/**"],
            |it| fs::write(it.join("tests/export.py"), "pass\n").unwrap(),
            "tests/export.py",
        ),
        (
            "deletes the test",
            &["--protect", "tests/**"],
            |it| fs::remove_file(it.join("tests/export.py")).unwrap(),
            "tests/export.py",
        ),
        (
            "claims without a commit",
            &["--clean"],
            |it| {
                let git = |args: &[&str]| {
                    let identity = ["-c", "user.name=t", "-c", "user.email=t@t"];
                    let mut git = Command::new("git");
                    assert!(
                        git.args(identity).args(args).current_dir(it).status().unwrap().success()
                    );
                };
                git(&["init", "-q", "."]);
                git(&["add", "."]);
                git(&["commit", "-q", "-m", "first"]);
            },
            "commit",
        ),
    ];
    for (name, options, cheat, told) in cases {
        let stage = match name {
            // The repository is there when the run begins, and nothing is committed after that.
            "claims without a commit" => {
                let project = Project::new().patient();
                write(&project.path().join("check.sh"), "#!/bin/sh\nexit 0\n");
                cheat(&project.path());
                Stage::begun(project, &[&["--verify", "./check.sh"], options].concat())
            }
            _ => Stage::new(options),
        };
        fs::write(stage.0.path().join("done"), "").unwrap();
        if name != "claims without a commit" {
            cheat(&stage.0.path());
        }
        stage.claim();
        stage.wait();
        let answer = stage.0.stop("I am done.");
        assert!(answer.reason().contains(told), "{name}: {answer:?}\n{}", stage.log());
        assert_eq!(stage.0.status()["active"], true, "{name}");
        assert_eq!(stage.receipts(), [Value::Null; 0], "{name}");
    }
}

/// One that skips a test is refused with both numbers.
#[test]
fn an_agent_that_skips_a_test_is_refused() {
    let project = Project::new().patient();
    let count = |what: &str| format!("$(grep -c ^{what} tests)");
    let (passed, skipped) = (count("test"), count("skip"));
    let counts = format!(
        "echo \"test result: ok. {passed} passed; 0 failed; {skipped} ignored; 0 measured\""
    );
    write(&project.path().join("check.sh"), &format!("#!/bin/sh\n{counts}\n"));
    fs::write(project.path().join("tests"), "test one\ntest two\n").unwrap();
    fs::write(project.path().join("aldis.toml"), "[proof]\nbaseline = true\n").unwrap();
    let stage = Stage::begun(project, &["--verify", "./check.sh"]);
    fs::write(stage.0.path().join("tests"), "test one\nskip two\n").unwrap();
    stage.claim();
    stage.wait();
    let reason = "the check skipped 1 test, and before the work started it skipped 0";
    let answer = stage.0.stop("I am done.");
    assert!(answer.reason().contains(reason), "{answer:?}\n{}", stage.log());
    assert_eq!(stage.receipts(), [Value::Null; 0]);
    fs::write(stage.0.path().join("tests"), "test one\ntest two\n").unwrap();
    stage.claim();
    stage.wait();
    assert_eq!(stage.0.stop("I am done."), Answer::Allow, "{}", stage.log());
}

#[test]
fn a_check_whose_process_died_is_noticed_and_said() {
    let stage = Stage::new(&[]);
    write(&stage.0.path().join("done"), "");
    // One that takes long, and that nobody may edit: its own file says how long.
    let project = Project::new().patient();
    write(&project.path().join("check.sh"), "#!/bin/sh\ntest -e go && exit 0\nsleep 300\n");
    let stage = Stage::begun(project, &["--verify", "./check.sh"]);
    stage.claim();
    eventually("a process that checks", || !stage.checkers().is_empty());
    eventually("it says who it is", || {
        let run = stage.run();
        let store = rusqlite::Connection::open(stage.0.state_dir().join("aldis.db")).unwrap();
        let sql = "SELECT count(*) FROM parts WHERE run = ?1 AND key = 'checker'";
        store.query_row(sql, [&run], |row| row.get::<_, i64>(0)).is_ok_and(|count| count == 1)
    });
    for pid in stage.checkers() {
        let pid = nix::unistd::Pid::from_raw(i32::try_from(pid).unwrap());
        nix::sys::signal::kill(pid, nix::sys::signal::Signal::SIGKILL).unwrap();
    }
    eventually("it is gone", || stage.checkers().is_empty());
    fs::write(stage.0.path().join("go"), "").unwrap();
    let answer = stage.0.stop("I wait.");
    assert!(answer.reason().contains("is being checked"), "{answer:?}");
    stage.wait();
    assert_eq!(stage.0.stop("I am done."), Answer::Allow, "{}", stage.log());
    let rules = stage.rules();
    assert!(rules.contains(&"phases/check-lost".to_owned()), "{rules:?}");
    assert_eq!(stage.0.status()["phase"], "complete");
}

#[test]
fn stopping_the_run_ends_its_check() {
    let project = Project::new().patient();
    write(&project.path().join("check.sh"), "#!/bin/sh\necho $$ > pid\nexec sleep 300\n");
    let stage = Stage::begun(project, &["--verify", "./check.sh"]);
    stage.claim();
    let pid = stage.0.path().join("pid");
    eventually("the check runs", || fs::read_to_string(&pid).is_ok_and(|pid| pid.ends_with('\n')));
    let began = Instant::now();
    assert_eq!(stage.0.stop("I wait.").word(), "block");
    assert!(began.elapsed() < Duration::from_secs(20), "the hook waited for the check");
    assert_eq!(stage.0.run(&["auto", "stop"]).code, 0);
    assert_eq!(stage.0.stop("I wait."), Answer::Allow);
    eventually("nobody checks any more", || stage.checkers().is_empty());
    let check = fs::read_to_string(pid).unwrap();
    let check = Path::new("/proc").join(check.trim());
    eventually("the check is gone", || !check.exists());
}

#[test]
fn a_second_opinion_refuses_and_never_accepts_alone() {
    let refuse = r#"{"verdict":"refuse","reason":"the tests are empty","cost_usd":0.02}"#;
    let accept = r#"{"verdict":"accept","reason":"looks right"}"#;
    for (name, judge, check_passes, complete, verdict) in [
        ("refuses", format!("cat > question; echo '{refuse}'"), true, false, "refuse"),
        ("accepts", format!("cat > question; echo '{accept}'"), true, true, "accept"),
        ("accepts what failed", format!("touch asked; echo '{accept}'"), false, false, ""),
        ("fails", "echo no key >&2; exit 3".to_owned(), true, true, "none"),
        ("talks nonsense", "echo 'sure, done!'".to_owned(), true, true, "none"),
        ("does not read", format!("exec <&-; echo '{accept}'"), true, true, "accept"),
    ] {
        let project = Project::new().patient();
        write(&project.path().join("check.sh"), "#!/bin/sh\ntest -e done\n");
        fs::create_dir_all(project.home().join(".config/aldis")).unwrap();
        let settings = format!("[proof]\njudge = {}\n", json!(judge));
        fs::write(project.home().join(".config/aldis/aldis.toml"), settings).unwrap();
        let stage = Stage::begun(project, &["--verify", "./check.sh"]);
        if check_passes {
            fs::write(stage.0.path().join("done"), "").unwrap();
        }
        let call = json!({"type": "tool_use", "id": "t1", "name": "Bash", "input": {"command": "npm test"}});
        let message = json!({"id": "mt", "role": "assistant", "content": [call]});
        let used = json!({"type": "assistant", "message": message});
        let mut lines = conversation(&[prompted("go", None), used, tool_result("118 passed")]);
        lines.push(said(&block("execution"), None));
        let transcript = stage.0.transcript(&lines);
        let mut payload = stage.0.payload(&block("execution"));
        payload["transcript_path"] = json!(transcript);
        assert_eq!(stage.0.hook(&payload).word(), "block", "{name}");
        stage.wait();
        let answer = stage.0.stop("I am done.");
        assert_eq!(answer == Answer::Allow, complete, "{name}: {answer:?} {}", stage.log());
        match verdict {
            "" => assert!(!stage.0.path().join("asked").exists(), "{name}: asked in vain"),
            "refuse" => {
                assert!(answer.reason().contains("the tests are empty"), "{name}: {answer:?}");
                let question = fs::read(stage.0.path().join("question")).unwrap();
                let question: Value = serde_json::from_slice(&question).unwrap();
                assert_eq!(question["checks"][0]["status"], "passed", "{question}");
                assert_eq!(question["tool_results"][0]["output"], "118 passed", "{question}");
                let schema = stage.0.run(&["schema", "judge"]).stdout;
                let schema: Value = serde_json::from_str(&schema).unwrap();
                assert!(
                    jsonschema::validator_for(&schema).unwrap().is_valid(&question),
                    "{question}"
                );
            }
            verdict => {
                let opinion = &stage.receipts()[0]["receipt"]["opinions"][0];
                assert_eq!(opinion["verdict"], verdict, "{name}: {opinion}");
            }
        }
    }
}

/// A repository cannot make the user's machine run a judge or a check of its own.
#[test]
fn checks_of_a_repository_need_trust() {
    let project = Project::new();
    fs::write(project.path().join("aldis.toml"), "[proof]\njudge = \"touch pwned\"\n").unwrap();
    let started = project.run(&["auto", "start", "Add CSV export", "--verify", "true"]);
    assert_eq!(started.code, 2, "{}", started.text());
    assert!(started.stderr.contains("aldis trust"), "{}", started.text());
}
