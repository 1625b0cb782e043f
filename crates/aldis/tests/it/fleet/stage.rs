//! A project with a git remote, workers, and agents that can be held up.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use aldis_engine::Engine;
use aldis_store::{PostgresAddress, PostgresStore, RunId, SqliteStore, Store};
use aldis_testkit::history::History;
use serde_json::Value;

use crate::phases::project::{Project, feed};
use crate::sandbox::{ALDIS, Done};

/// How long something may take that takes a moment, and the time of a claim beside it.
const PATIENCE: Duration = Duration::from_secs(110);

/// An agent that waits while it is held up, and then does what its role should.
const AGENT: &str = r#"#!/bin/sh
prompt=$(cat)
role=$ALDIS_ROLE task=$ALDIS_TASK
echo $$ > "MARKS/$role-$task.pid"
while [ -e "MARKS/$role-$task.hold" ]; do sleep 0.05; done
case $role in
developer) echo "$task by $$" > "$task.txt"; printf 'Done.\n\nREADY_FOR_REVIEW: %s\nSummary: done\n' "$task";;
critic) printf 'REVIEW_PASSED: %s\n' "$task";;
auditor) printf 'AUDIT_PASSED: %s\n' "$task";;
esac
"#;

/// A project whose agents are run by workers.
pub(super) struct Fleet {
    project: Project,
    store: Option<String>,
}

/// A process that goes with the test.
pub(super) struct Process(Child);

pub(super) mod signal {
    //! Signals by the programs that send them.

    use std::process::Command;

    /// Whether a process is there.
    pub(crate) fn lives(pid: u32) -> bool {
        let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
        let state = stat.rsplit(')').next().and_then(|rest| rest.split_whitespace().next());
        state.is_some_and(|state| state != "Z")
    }

    pub(super) fn send(signal: &str, pid: u32) {
        let sent = Command::new("kill").args([signal, &pid.to_string()]).status();
        assert!(sent.unwrap().success());
    }
}

impl Fleet {
    pub(super) fn new(plan: &str) -> Self {
        Self::running(plan, AGENT)
    }

    /// A project with agents of its own.
    pub(super) fn running(plan: &str, script: &str) -> Self {
        let fleet = Self { project: Project::new().patient(), store: None };
        fs::create_dir(fleet.marks()).unwrap();
        let agent = fleet.project.path().join("agent.sh");
        fs::write(&agent, script.replace("MARKS", fleet.marks().to_str().unwrap())).unwrap();
        fs::set_permissions(&agent, fs::Permissions::from_mode(0o755)).unwrap();
        fs::write(fleet.project.path().join("plan.md"), plan).unwrap();
        fleet.git_at(&fleet.project.path(), &["init", "-q", "-b", "main", "."]);
        fleet.commit("first");
        let remote = fleet.remote();
        fs::create_dir(&remote).unwrap();
        fleet.git_at(&remote, &["init", "-q", "--bare", "-b", "main", "."]);
        let url = remote.to_str().unwrap();
        fleet.git_at(&fleet.project.path(), &["remote", "add", "origin", url]);
        fleet.git_at(&fleet.project.path(), &["push", "-q", "origin", "main"]);
        fleet
    }

    /// Keeps runs in this database.
    pub(super) fn sharing(self, store: &str) -> Self {
        Self { store: Some(store.to_owned()), ..self }
    }

    fn remote(&self) -> PathBuf {
        self.project.root().join("remote.git")
    }

    fn marks(&self) -> PathBuf {
        self.project.root().join("marks")
    }

    pub(super) fn commit(&self, message: &str) {
        let project = self.project.path();
        self.git_at(&project, &["add", "."]);
        self.git_at(&project, &["commit", "-qm", message, "--allow-empty"]);
    }

    fn git_at(&self, directory: &std::path::Path, args: &[&str]) -> String {
        let mut command = self.project.command("git");
        command.env("PATH", std::env::var_os("PATH").unwrap()).current_dir(directory);
        command.args(["-c", "user.name=t", "-c", "user.email=t@t"]).args(args);
        let done = feed(command, b"");
        assert_eq!(done.code, 0, "{}", done.text());
        done.stdout
    }

    /// What the remote says.
    pub(super) fn git(&self, args: &[&str]) -> String {
        self.git_at(&self.remote(), args)
    }

    fn command(&self, args: &[&str]) -> Command {
        let mut command = self.project.command(ALDIS);
        command.env_remove("ALDIS_NOW").env("PATH", std::env::var_os("PATH").unwrap());
        if let Some(store) = &self.store {
            command.env("ALDIS_STORE", store);
        }
        command.args(args);
        command
    }

    pub(super) fn run(&self, args: &[&str]) -> Done {
        feed(self.command(args), b"")
    }

    fn spawn(&self, args: &[&str], environment: &[(&str, &str)]) -> Process {
        let mut command = self.command(args);
        command.envs(environment.iter().copied()).stdin(Stdio::null());
        let log = self.project.root().join(format!("{}.log", args.join("-").replace('/', "_")));
        let log = fs::File::create(log).unwrap();
        Process(command.stdout(log.try_clone().unwrap()).stderr(log).spawn().unwrap())
    }

    pub(super) fn worker(&self, name: &str, options: &[&str]) -> Process {
        self.worker_with(name, options, &[])
    }

    pub(super) fn worker_with(
        &self,
        name: &str,
        options: &[&str],
        environment: &[(&str, &str)],
    ) -> Process {
        self.spawn(&[&["worker", "--name", name], options].concat(), environment)
    }

    fn arguments<'a>(options: &[&'a str]) -> Vec<&'a str> {
        [&["deliver", "plan.md", "--workers"], options, &["--", "./agent.sh"]].concat()
    }

    pub(super) fn deliver(&self, options: &[&str]) -> Done {
        self.run(&Self::arguments(options))
    }

    pub(super) fn start(&self, options: &[&str]) -> Process {
        self.spawn(&Self::arguments(options), &[])
    }

    pub(super) fn go_on(&self) -> Process {
        self.spawn(&["deliver", "--continue"], &[])
    }

    /// Settings of the user's own.
    pub(super) fn settings(&self, text: &str) {
        let directory = self.project.home().join(".config/aldis");
        fs::create_dir_all(&directory).unwrap();
        fs::write(directory.join("aldis.toml"), text).unwrap();
    }

    /// How agents of this role and task were started, in order, where they write that down.
    pub(super) fn started(&self, agent: &str) -> Vec<String> {
        let text = fs::read_to_string(self.marks().join("arguments")).unwrap_or_default();
        let lines = text.lines().map(str::trim_end);
        lines.filter(|line| line.split(' ').next() == Some(agent)).map(str::to_owned).collect()
    }

    /// Holds up an agent, by its role and task.
    pub(super) fn hold(&self, agent: &str) {
        fs::write(self.marks().join(format!("{agent}.hold")), "").unwrap();
    }

    pub(super) fn release(&self, agent: &str) {
        fs::remove_file(self.marks().join(format!("{agent}.hold"))).unwrap();
    }

    /// Waits until an agent works. Returns its process.
    pub(super) fn wait_for_agent(&self, agent: &str) -> u32 {
        let mark = self.marks().join(format!("{agent}.pid"));
        let pid = || fs::read_to_string(&mark).ok()?.trim().parse().ok();
        self.wait_for(agent, || pid().is_some());
        pid().unwrap()
    }

    #[track_caller]
    pub(super) fn wait_for(&self, what: &str, mut there: impl FnMut() -> bool) {
        let began = Instant::now();
        while !there() {
            assert!(began.elapsed() < PATIENCE, "{what} did not come; {}", self.logs());
            thread::sleep(Duration::from_millis(100));
        }
    }

    /// What all processes said.
    fn logs(&self) -> String {
        let files = fs::read_dir(self.project.root()).unwrap().flatten();
        let logs = files.filter(|file| file.path().extension().is_some_and(|it| it == "log"));
        let read = |file: fs::DirEntry| {
            let text = fs::read_to_string(file.path()).unwrap_or_default();
            format!("{}:\n{text}\n", file.file_name().display())
        };
        logs.map(read).collect()
    }

    pub(super) fn tasks(&self) -> Vec<Value> {
        let done = self.run(&["tasks", "--json"]);
        if done.code == 0 { done.json() } else { Vec::new() }
    }

    pub(super) fn workers(&self) -> Vec<Value> {
        self.run(&["worker", "list", "--json"]).json()
    }

    pub(super) fn run_id(&self) -> String {
        let runs = self.run(&["status", "--all", "--json"]).json();
        runs[0]["run"].as_str().unwrap().to_owned()
    }

    fn open(&self) -> Box<dyn Store> {
        match &self.store {
            None => Box::new(SqliteStore::open(&self.project.state_dir()).unwrap()),
            Some(address) => {
                Box::new(PostgresStore::open(PostgresAddress::parse(address).unwrap()).unwrap())
            }
        }
    }

    fn history(&self) -> History {
        let run = RunId::new(self.run_id()).unwrap();
        History::read(&*self.open(), &run, Vec::new()).unwrap()
    }

    /// Who claimed agents of which role, in order.
    pub(super) fn claims(&self) -> Vec<(String, String)> {
        let history = self.history();
        let roles: Vec<String> = fs::read_to_string(
            self.project.state_dir().join("logs").join(self.run_id()).join("agents.jsonl"),
        )
        .unwrap_or_default()
        .lines()
        .map(str::to_owned)
        .collect();
        let role = |agent: &Value| {
            let parsed = roles.iter().filter_map(|line| serde_json::from_str::<Value>(line).ok());
            let found = parsed.into_iter().find(|line| line["agent"] == *agent);
            found.and_then(|line| line["role"].as_str().map(str::to_owned)).unwrap_or_default()
        };
        let claimed = history.events.iter().filter(|event| event.body["event"] == "claimed");
        let pairs = claimed.map(|event| {
            let worker = event.body["worker"].as_str().unwrap().to_owned();
            (role(&event.body["agent"]), worker)
        });
        pairs.collect()
    }

    /// The journal holds what it must, and leads to what is stored.
    #[track_caller]
    pub(super) fn sound(&self) {
        assert_eq!(self.history().check(), [], "{}", self.logs());
        let engine = Engine::new(self.open().into());
        let run = RunId::new(self.run_id()).unwrap();
        assert_eq!(engine.replay(&run).unwrap().differences, []);
    }
}

impl Process {
    pub(super) fn terminate(&self) {
        signal::send("-TERM", self.0.id());
    }

    pub(super) fn freeze(&self) {
        signal::send("-STOP", self.0.id());
    }

    pub(super) fn thaw(&self) {
        signal::send("-CONT", self.0.id());
    }

    pub(super) fn kill(&mut self) {
        self.0.kill().unwrap();
        self.0.wait().unwrap();
    }

    /// Waits until it has ended. Returns its exit code.
    pub(super) fn wait(&mut self) -> Option<i32> {
        let began = Instant::now();
        loop {
            if let Some(status) = self.0.try_wait().unwrap() {
                return status.code();
            }
            assert!(began.elapsed() < PATIENCE, "it does not end");
            thread::sleep(Duration::from_millis(50));
        }
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ended = self.0.kill();
        let _reaped = self.0.wait();
    }
}
