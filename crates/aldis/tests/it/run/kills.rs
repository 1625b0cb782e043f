//! `aldis run` killed at random moments and continued: it ends as if nobody had killed it.
//!
//! The suite kills [`KILLS`] times. More, with another seed:
//! `ALDIS_KILLS=200 ALDIS_SEED=7 cargo test -p aldis --test it run::kills`.

use std::env;
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::process::{Command, Stdio};
use std::thread;
use std::time::Duration;

use aldis_store::SqliteStore;
use serde_json::Value;

use super::assert_nothing_runs_in;
use super::scripted::finished;
use crate::phases::project::Project;
use crate::sandbox::{ALDIS, Done};

const KILLS: u64 = 25;
/// A run that was killed so often is left to end.
const KILLS_PER_RUN: u64 = 10;
/// How long a supervisor lives, at most.
const LIFE_MAX: u64 = 900;
/// What one iteration of the agent costs.
const TOKENS: u64 = 10;

/// Reports as Claude Code does. It is done in the fourth iteration; the check agrees in the fifth.
/// What it does depends on the iteration alone, not on how often it was started.
const AGENT: &str = r#"#!/bin/sh
echo >> starts
cat > prompt
echo '{"type":"system","subtype":"init","cwd":".","session_id":"s","tools":["Bash"],"mcp_servers":[],"model":"m","permissionMode":"default"}'
say() { echo "{\"type\":\"assistant\",\"message\":{\"id\":\"m$1\",\"role\":\"assistant\",\"content\":[$2]},\"parent_tool_use_id\":null}"; }
say 1 '{"type":"tool_use","id":"t","name":"Bash","input":{}}'
sleep 0.05
n=$(./iteration)
say 2 "{\"type\":\"text\",\"text\":\"<chorus>PROGRESS: ${n}0</chorus>\"}"
sleep 0.05
[ "$n" -ge 4 ] && say 3 '{"type":"text","text":"<chorus>COMPLETE</chorus>"}'
echo '{"type":"result","subtype":"success","is_error":false,"total_cost_usd":0.001,"usage":{"input_tokens":10},"session_id":"s"}'
"#;
const ITERATION: &str = "#!/bin/sh\n\"$ALDIS\" status --json | sed -n 's/.*\"iteration\":\\([0-9]*\\).*/\\1/p' | head -1\n";
const VERIFY: &str = "sleep 0.05; test $(./iteration) -ge 5";

struct Stage(Project);

impl Stage {
    fn new() -> Self {
        let project = Project::new();
        for (name, text) in [("agent", AGENT), ("iteration", ITERATION)] {
            let path = project.path().join(name);
            fs::write(&path, text).unwrap();
            fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
        }
        Self(project)
    }

    fn command(&self, args: &[&str]) -> Command {
        let mut command = self.0.command(ALDIS);
        command.env("ALDIS", ALDIS).env("PATH", env::var_os("PATH").unwrap());
        command.env("TMPDIR", self.0.root()).args(args);
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command
    }

    /// The run, once there is one.
    fn status(&self) -> Option<Value> {
        let done = self.0.run(&["status", "--json"]);
        (done.code == 0).then(|| done.json().remove(0))
    }

    /// What to call next: the run itself, or going on with it.
    fn next(&self) -> Vec<&'static str> {
        match self.status() {
            None => vec!["run", "--task", "Count", "--verify", VERIFY, "--", "./agent"],
            Some(_) => vec!["run", "--continue"],
        }
    }

    fn has_ended(&self) -> bool {
        self.status().is_some_and(|status| status["active"] == false)
    }

    fn starts(&self) -> u64 {
        let starts = fs::read(self.0.path().join("starts")).unwrap_or_default();
        starts.len() as u64
    }

    /// Ends as every run of this agent must, however often it was killed.
    fn assert_ended_well(&self, last: &Done, place: &str) {
        let status = self.status().unwrap();
        let place = format!("{place}: {status} {}", last.text());
        assert_eq!(status["exit_reason"], "done", "{place}");
        assert_eq!(status["iteration"], 5, "{place}");
        assert_eq!(status["progress"], 50, "{place}");
        assert_eq!(status["max_iterations"], 50, "{place}");
        // What a lost agent spent is spent, as far as it told.
        let tokens = status["tokens"].as_u64().unwrap();
        assert!((5 * TOKENS..=self.starts() * TOKENS).contains(&tokens), "{place}");
        let replay = self.0.run(&["replay", status["run"].as_str().unwrap()]);
        assert_eq!(replay.code, 0, "{place}: {}", replay.text());
        assert_nothing_runs_in(&self.0.path(), &place);
        let store = SqliteStore::open(&self.0.state_dir()).unwrap();
        store.check().unwrap();
        store.abandon();
        let mut names: Vec<_> =
            fs::read_dir(self.0.root()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        names.sort();
        assert_eq!(names, ["home", "project", "state"], "{place}");
    }
}

#[test]
fn an_undisturbed_run() {
    let stage = Stage::new();
    let done = finished(stage.command(&stage.next()).output().unwrap());
    assert_eq!(done.code, 0, "{}", done.text());
    stage.assert_ended_well(&done, "undisturbed");
    assert_eq!(stage.starts(), 5);
    assert_eq!(stage.status().unwrap()["tokens"], 5 * TOKENS);
}

#[test]
fn killed_runs_end_as_if_nobody_had_killed_them() {
    let number = |name: &str| env::var(name).ok().and_then(|value| value.parse::<u64>().ok());
    let (wanted, seed) =
        (number("ALDIS_KILLS").unwrap_or(KILLS), number("ALDIS_SEED").unwrap_or(1));
    let mut random = seed;
    let mut kills = 0;
    while kills < wanted {
        let stage = Stage::new();
        let mut here = 0;
        let last = loop {
            let mut child = stage.command(&stage.next()).spawn().unwrap();
            if here < KILLS_PER_RUN.min(wanted) {
                random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                thread::sleep(Duration::from_millis((random >> 33) % LIFE_MAX));
                child.kill().unwrap();
                here += 1;
            }
            let last = finished(child.wait_with_output().unwrap());
            if stage.has_ended() {
                break last;
            }
            assert_eq!(last.code, -1, "seed {seed}, kill {kills} + {here}: {}", last.text());
        };
        kills += here;
        stage.assert_ended_well(&last, &format!("seed {seed}, {kills} kills"));
    }
}
