//! `aldis run` with real processes: every ending, questions, crashes of ours and of the agent's.

mod background;
mod git;
mod kills;
mod otherwise;
mod scripted;
mod stepping;
mod terminal;

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::{Child, Stdio};
use std::time::Duration;

use serde_json::Value;

use crate::phases::fault::has_strace;
use crate::phases::project::{Project, testdata};
use crate::sandbox::{ALDIS, Done};

/// A project with an agent that counts its rounds in `count`.
struct Stage(Project);

impl Stage {
    fn new(script: &str) -> Self {
        let stage = Self(Project::new());
        stage.script("agent.sh", &format!(
            "#!/bin/sh\nn=$(($(cat count 2>/dev/null || echo 0) + 1)); echo $n > count\ncat > prompt.$n\n{script}\n"
        ));
        stage
    }

    /// An agent that changes no file.
    fn idle(script: &str) -> Self {
        let stage = Self(Project::new());
        stage.script("agent.sh", &format!("#!/bin/sh\n{script}\n"));
        stage
    }

    fn script(&self, name: &str, text: &str) {
        let path = self.0.path().join(name);
        fs::write(&path, text).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
    }

    fn arguments<'a>(options: &[&'a str]) -> Vec<&'a str> {
        [&["run", "--task", "Add CSV export"], options, &["--", "./agent.sh"]].concat()
    }

    fn run(&self, options: &[&str]) -> Done {
        self.0.run(&Self::arguments(options))
    }

    fn start(&self, options: &[&str]) -> Child {
        let mut command = self.0.command(ALDIS);
        command.args(Self::arguments(options)).stdin(Stdio::null());
        command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
    }

    fn status(&self) -> Value {
        self.0.run(&["status", "--json"]).json().remove(0)
    }

    /// Waits until the run is there and in this state.
    fn wait_for(&self, status: &str) {
        for _ in 0..600 {
            let done = self.0.run(&["status", "--json"]);
            if done.code == 0 && done.json()[0]["status"] == status {
                return;
            }
            std::thread::sleep(Duration::from_millis(50));
        }
        panic!("never {status}: {}", self.0.run(&["status"]).text());
    }

    fn prompt(&self, round: u32) -> String {
        fs::read_to_string(self.0.path().join(format!("prompt.{round}"))).unwrap()
    }
}

/// A process that was started in a directory and is left, if there is one.
fn left_in(directory: &Path) -> Option<String> {
    let mut all = fs::read_dir("/proc").unwrap().flatten().map(|entry| entry.path());
    let left = all.find(|process| {
        fs::read_link(process.join("cwd")).is_ok_and(|cwd| cwd.starts_with(directory))
    })?;
    let name = fs::read_to_string(left.join("comm")).unwrap_or_default();
    Some(format!("{} {name}", left.display()))
}

/// Nothing that was started in a directory is left.
#[track_caller]
fn assert_nothing_runs_in(directory: &Path, who: &str) {
    assert_eq!(left_in(directory), None, "{who} left something");
}

/// Waits until something is so.
#[track_caller]
fn wait_until(what: &str, condition: impl Fn() -> bool) {
    for _ in 0..1_200 {
        if condition() {
            return;
        }
        std::thread::sleep(Duration::from_millis(25));
    }
    panic!("never: {what}");
}

/// The first crash ends the run.
const ONE_CRASH: &[&str] = &["--max-crashes", "0"];

#[test]
fn runs_end_as_they_should() {
    for (name, script, options, code, ending) in [
        ("done", "echo '<chorus>COMPLETE</chorus>'", &[][..], 0, "done"),
        ("blocked", "echo '<chorus>BLOCKED: no database</chorus>'", &[], 3, "blocked"),
        ("crashed", "echo '<chorus>COMPLETE</chorus>'; exit 7", ONE_CRASH, 1, "crashed"),
        ("killed", "echo '<chorus>COMPLETE</chorus>'; kill -SEGV $$", ONE_CRASH, 1, "crashed"),
        (
            "used up",
            "touch f.$n; echo working",
            &["--max-iterations", "2"],
            5,
            "iterations_used_up",
        ),
        (
            "a question",
            "echo '<chorus>NEEDS_HUMAN: keep it?</chorus>'",
            &["--no-wait"],
            3,
            "needs_human",
        ),
        ("no time", "sleep 60", &["--total-timeout", "1"], 4, "timed_out"),
        ("stuck", "echo working", &[], 4, "stagnated"),
        (
            "mentioned",
            "echo 'I will print <chorus>COMPLETE</chorus> later.'",
            &["--max-iterations", "1"],
            5,
            "iterations_used_up",
        ),
    ] {
        let stage = if name == "stuck" { Stage::idle(script) } else { Stage::new(script) };
        let done = stage.run(options);
        assert_eq!(done.code, code, "{name}: {}", done.text());
        let status = stage.status();
        assert_eq!(status["exit_reason"], ending, "{name}");
        assert_eq!(status["active"], false, "{name}");
        let why = stage.0.run(&["why", "--last"]);
        assert_eq!(why.code, 0, "{name}: {}", why.text());
    }
}

#[test]
fn a_crashed_agent_is_started_again() {
    let stage = Stage::new("[ $n = 1 ] && exit 7; echo '<chorus>COMPLETE</chorus>'");
    fs::write(stage.0.path().join("aldis.toml"), "[run]\ncrash_wait = 1\n").unwrap();
    let done = stage.run(&["--max-iterations", "1"]);
    assert_eq!(done.code, 0, "{}", done.text());
    assert_eq!(stage.status()["iteration"], 1, "a crash uses up no iteration");
    assert!(stage.prompt(2).contains("exited with code 7"), "{}", stage.prompt(2));
}

#[test]
fn a_claim_counts_when_the_check_agrees() {
    let stage = Stage::new("echo '<chorus>COMPLETE</chorus>'");
    let done = stage.run(&["--verify", "echo two tests failed; test $(cat count) -ge 3"]);
    assert_eq!(done.code, 0, "{}", done.text());
    assert_eq!(stage.status()["iteration"], 3);
    assert!(stage.prompt(2).contains("> two tests failed"), "{}", stage.prompt(2));
    assert!(
        stage.prompt(1).contains("Add CSV export") && !stage.prompt(1).contains("check failed")
    );
}

#[test]
fn prompts_come_on_standard_input_as_an_argument_or_as_a_file() {
    for how in ["stdin", "argument", "file"] {
        let stage = Stage::new("");
        stage.script(
            "agent.sh",
            "#!/bin/sh\ncase $1 in '') cat > got;; *aldis-prompt*) cat \"$1\" > got;; *) echo \"$1\" > got;; esac\necho '<chorus>COMPLETE</chorus>'\n",
        );
        assert_eq!(stage.run(&["--prompt-by", how]).code, 0, "{how}");
        let got = fs::read_to_string(stage.0.path().join("got")).unwrap();
        assert!(got.contains("Add CSV export"), "{how}: {got}");
    }
}

#[test]
fn a_question_waits_for_its_answer() {
    let stage = Stage::new(
        "if [ $n = 1 ]; then echo '<chorus>NEEDS_HUMAN: keep or drop?</chorus>'; else echo '<chorus>COMPLETE</chorus>'; fi",
    );
    let child = stage.start(&[]);
    stage.wait_for("asking");
    assert_eq!(stage.status()["question"]["text"], "keep or drop?");
    assert_eq!(stage.0.run(&["answer", "q9", "x"]).code, 1);
    let answered = stage.0.run(&["answer", "q1", "Drop it."]);
    assert_eq!(answered.code, 0, "{}", answered.text());
    assert_eq!(child.wait_with_output().unwrap().status.code(), Some(0));
    assert!(stage.prompt(2).contains("> Drop it."), "{}", stage.prompt(2));
    assert_eq!(stage.status()["iteration"], 1, "a question uses up no iteration");
}

#[test]
fn a_question_can_be_answered_later() {
    let stage = Stage::new(
        "if [ $n = 1 ]; then echo '<chorus>NEEDS_HELP: which way?</chorus>'; else echo '<chorus>COMPLETE</chorus>'; fi",
    );
    assert_eq!(stage.run(&["--no-wait"]).code, 3);
    assert_eq!(stage.0.run(&["answer", "q1", "The left one."]).code, 0);
    let done = stage.0.run(&["run", "--continue"]);
    assert_eq!(done.code, 0, "{}", done.text());
    assert!(stage.prompt(2).contains("> The left one."));
}

#[test]
fn humans_pause_resume_and_abort_from_elsewhere() {
    let stage = Stage::new("while :; do date +%s%N > beat; sleep 0.05; done");
    let child = stage.start(&[]);
    stage.wait_for("working");
    assert_eq!(stage.0.run(&["resume"]).code, 1, "it is not suspended");
    assert_eq!(stage.0.run(&["pause"]).code, 0);
    stage.wait_for("paused");
    let beat = || fs::read_to_string(stage.0.path().join("beat")).unwrap_or_default();
    // Suspending takes a moment; then nothing moves any more.
    let mut last = beat();
    for _ in 0..100 {
        std::thread::sleep(Duration::from_millis(100));
        let now = beat();
        if now == last {
            break;
        }
        last = now;
    }
    assert_eq!(beat(), last);
    assert_eq!(stage.0.run(&["resume"]).code, 0);
    for _ in 0..200 {
        if beat() != last {
            break;
        }
        std::thread::sleep(Duration::from_millis(50));
    }
    assert_ne!(beat(), last, "it goes on");
    assert_eq!(stage.0.run(&["abort"]).code, 0);
    assert_eq!(child.wait_with_output().unwrap().status.code(), Some(130));
    assert_eq!(stage.status()["exit_reason"], "aborted");
}

#[test]
fn a_killed_supervisor_is_continued() {
    let stage = Stage::new(
        "if [ $n = 2 ]; then touch here; sleep 600; fi\nif [ $n -ge 3 ]; then echo '<chorus>COMPLETE</chorus>'; fi",
    );
    let mut child = stage.start(&[]);
    for _ in 0..600 {
        if stage.0.path().join("here").exists() {
            break;
        }
        std::thread::sleep(Duration::from_millis(50));
    }
    child.kill().unwrap();
    child.wait().unwrap();
    assert_eq!(stage.status()["active"], true);
    let done = stage.0.run(&["run", "--continue"]);
    assert_eq!(done.code, 0, "{}", done.text());
    assert_eq!(stage.status()["iteration"], 2, "the iteration that was cut off is repeated");
    assert_nothing_runs_in(&stage.0.path(), "the killed supervisor");
}

/// The first agent kills the supervisor before that can store whom it has started: its disk is slow.
#[test]
fn no_second_agent_is_started_beside_one_that_was_not_stored() {
    if !has_strace() {
        return;
    }
    let stage = Stage::new("");
    let agent = "#!/bin/sh\nif mkdir first 2>/dev/null; then\n  trap '' TERM HUP INT\n  echo $$ > pid\n  \
                 read -r _ _ _ supervisor _ < /proc/$PPID/stat\n  kill -9 $supervisor\n  \
                 while :; do sleep 0.1; done\nfi\nkill -0 $(cat pid) 2>/dev/null && touch two\n\
                 echo '<chorus>COMPLETE</chorus>'\n";
    stage.script("agent.sh", agent);
    let mut command = stage.0.command("strace");
    command.env("PATH", std::env::var_os("PATH").unwrap_or_default());
    command.args(["-qq", "-o", "/dev/null", "-e", "trace=fsync,fdatasync"]);
    command.args(["-e", "inject=fsync,fdatasync:delay_enter=200000", ALDIS]);
    command.args(Stage::arguments(&[])).stdin(Stdio::null()).stdout(Stdio::null());
    assert_eq!(command.status().unwrap().code(), None, "it was killed");
    let done = stage.0.run(&["run", "--continue"]);
    assert_eq!(done.code, 0, "{}", done.text());
    assert!(!stage.0.path().join("two").exists(), "two agents worked at once");
    assert_nothing_runs_in(&stage.0.path(), "the killed supervisor");
}

#[test]
fn hostile_agents_leave_nothing_behind() {
    for (file, options, code) in [
        ("agent_00_control.sh", &[][..], 0),
        ("agent_01_ignore_term.sh", &["--total-timeout", "1"][..], 4),
        ("agent_02_setsid_grandchild.sh", &["--total-timeout", "1"], 4),
        ("agent_03_holds_stdout.sh", &[], 0),
        ("agent_04_flood.sh", &["--max-iterations", "1", "--quiet"], 5),
        ("agent_05_no_newline.sh", &["--max-iterations", "1", "--quiet"], 5),
        ("agent_07_split_utf8.sh", &[], 0),
        ("agent_08_signal_then_crash.sh", ONE_CRASH, 1),
        ("agent_11_closes_stdout.sh", &["--total-timeout", "1"], 4),
        ("agent_12_stops_itself.sh", &["--total-timeout", "1"], 4),
        ("agent_13_fork_tree.sh", &["--total-timeout", "1"], 4),
        ("agent_14_writes_state.sh", &["--max-iterations", "1"], 5),
        ("agent_16_tty_probe.sh", &["--max-iterations", "1", "--pty"], 5),
    ] {
        let stage = Stage::new("");
        stage.script("agent.sh", &fs::read_to_string(testdata("hostile").join(file)).unwrap());
        let done = stage.run(&[options, &["--grace", "1"]].concat());
        assert_eq!(done.code, code, "{file}: {}", done.text());
        assert_nothing_runs_in(&stage.0.path(), file);
    }
}

#[test]
fn what_an_agent_prints_is_harmless_on_a_terminal() {
    for entry in fs::read_dir(testdata("hostile")).unwrap().flatten() {
        let name = entry.file_name().into_string().unwrap();
        if !name.starts_with("display_") {
            continue;
        }
        let stage = Stage::new("cat words; echo; echo; echo '<chorus>COMPLETE</chorus>'");
        fs::copy(entry.path(), stage.0.path().join("words")).unwrap();
        let done = stage.run(&[]);
        let harmless = |c: char| c == '\n' || c == '\t' || !c.is_control();
        assert!(done.stdout.chars().all(harmless), "{name}: {:?}", done.stdout);
        assert!(!done.stdout.contains("<chorus>"), "signals are not shown: {}", done.stdout);
    }
}

#[test]
fn mistakes_are_explained() {
    let stage = Stage::new("");
    for (args, word) in [
        (&["run", "--", "true"][..], "no task"),
        (&["run", "--task", "x", "--dialect", "nope", "--", "true"], "no dialect"),
        (&["run", "--task", "x", "--input", "nope", "--", "true"], "unknown input format"),
        (&["run", "--task", "x", "--dialect", "caw=WORD", "--", "true"], "no word to set"),
        (&["run", "--task", "x", "--require-commit", "--", "true"], "no git repository"),
        (&["run", "--task", "x", "--require-clean", "--", "true"], "no git repository"),
        (&["run", "--continue"], "no run to continue"),
    ] {
        let stage = Stage::new("");
        let done = stage.0.run(args);
        assert_eq!(done.code, 2, "{args:?}: {}", done.text());
        assert!(done.stderr.contains(word), "{args:?}: {}", done.text());
    }
    let missing = stage.0.run(&["run", "--task", "x", "--", "./no-such-agent"]);
    assert_eq!(missing.code, 2, "{}", missing.text());
    assert!(missing.stderr.contains("no-such-agent"), "{}", missing.text());
}
