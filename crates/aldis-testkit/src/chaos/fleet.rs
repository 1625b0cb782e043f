//! The processes that are treated badly, and the project that they work on.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::io;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use super::ChaosOptions;
use super::proxy::Proxy;
use crate::corpus::rng::Rng;

/// How many agents a worker runs at the same time.
const SLOTS: &str = "3";
/// An agent that works for a moment and does what its role should. One developer at a time waits until
/// its worker is frozen, so that what it reports then is late.
const AGENT: &str = r#"#!/bin/sh
cat > /dev/null
if [ "$ALDIS_ROLE" = developer ] && mkdir MARKS/held 2>/dev/null; then
    echo "$$ ${HOME##*/}" > MARKS/holder
    while [ -e MARKS/hold ]; do sleep 0.1; done
fi
sleep 0.$((($$ % 7) + 2))
case $ALDIS_ROLE in
developer)
    echo "agent $ALDIS_AGENT" >> "$ALDIS_TASK.txt"
    printf 'Done.\n\nREADY_FOR_REVIEW: %s\nSummary: done\n' "$ALDIS_TASK";;
critic) printf 'REVIEW_PASSED: %s\n' "$ALDIS_TASK";;
auditor) printf 'AUDIT_PASSED: %s\n' "$ALDIS_TASK";;
esac
"#;

/// What runs.
#[derive(Debug)]
pub(super) struct Fleet {
    directory: tempfile::TempDir,
    aldis: PathBuf,
    proxy: Proxy,
    tasks: usize,
    workers: BTreeMap<String, Child>,
    servers: Vec<Child>,
    coordinator: Option<Child>,
    /// How the coordinator ended, once it has.
    ended: Option<i32>,
    begun: bool,
    frozen: Option<String>,
    /// The worker that was frozen: what it has to report must not die with it.
    spared: Option<String>,
    told: usize,
    /// Messages that were acknowledged.
    pub(super) acknowledged: Vec<String>,
}

impl Fleet {
    /// Starts everything, with the database at this port behind a proxy.
    pub(super) fn start(options: &ChaosOptions, database: u16) -> io::Result<Self> {
        let directory = tempfile::Builder::new().prefix("aldis-chaos").tempdir()?;
        let proxy = Proxy::start(database, options.seed)?;
        let mut fleet = Self {
            directory,
            aldis: fs::canonicalize(&options.aldis)?,
            proxy,
            tasks: options.tasks,
            workers: BTreeMap::new(),
            servers: Vec::new(),
            coordinator: None,
            ended: None,
            begun: false,
            frozen: None,
            spared: None,
            told: 0,
            acknowledged: Vec::new(),
        };
        fleet.set_up()?;
        for number in 1..=options.workers {
            let name = format!("worker-{number}");
            let worker = fleet.worker(&name)?;
            fleet.workers.insert(name, worker);
        }
        for number in 0..2 {
            let server = fleet.server(number)?;
            fleet.servers.push(server);
        }
        fleet.keep_going()?;
        Ok(fleet)
    }

    fn project(&self) -> PathBuf {
        self.directory.path().join("project")
    }

    fn remote(&self) -> PathBuf {
        self.directory.path().join("remote.git")
    }

    /// Where an agent says that it waits.
    fn marks(&self) -> PathBuf {
        self.directory.path().join("marks")
    }

    /// Makes the project, its plan and its remote.
    fn set_up(&self) -> io::Result<()> {
        let (project, remote) = (self.project(), self.remote());
        fs::create_dir_all(&project)?;
        fs::create_dir_all(&remote)?;
        let agent = project.join("agent.sh");
        fs::create_dir(self.marks())?;
        fs::write(self.marks().join("hold"), "")?;
        fs::write(&agent, AGENT.replace("MARKS", &self.marks().to_string_lossy()))?;
        fs::set_permissions(&agent, fs::Permissions::from_mode(0o755))?;
        let mut plan = String::from("# Chaos\n\n");
        for task in 1..=self.tasks {
            let _written = writeln!(plan, "- [ ] t{task}: Write file {task}");
        }
        fs::write(project.join("plan.md"), plan)?;
        self.git(&remote, &["init", "-q", "--bare", "-b", "main", "."])?;
        self.git(&project, &["init", "-q", "-b", "main", "."])?;
        self.git(&project, &["add", "."])?;
        self.git(&project, &["commit", "-qm", "first"])?;
        let url = remote.to_string_lossy();
        self.git(&project, &["remote", "add", "origin", &url])?;
        self.git(&project, &["push", "-q", "origin", "main"]).map(drop)
    }

    fn git(&self, directory: &Path, args: &[&str]) -> io::Result<String> {
        let mut command = Command::new("git");
        command.args(["-c", "user.name=chaos", "-c", "user.email=chaos@localhost"]).args(args);
        let done = command.current_dir(directory).env("HOME", self.directory.path()).output()?;
        if done.status.success() {
            return Ok(String::from_utf8_lossy(&done.stdout).into_owned());
        }
        Err(io::Error::other(String::from_utf8_lossy(&done.stderr).into_owned()))
    }

    /// A command on a machine of its own: a state directory that nobody else has.
    fn command(&self, machine: &str, args: &[&str]) -> Command {
        let port = self.proxy.port();
        let mut command = Command::new(&self.aldis);
        command.args(args).current_dir(self.project());
        command.env("HOME", self.directory.path().join(machine));
        command.env("ALDIS_STATE_DIR", self.directory.path().join(machine).join("state"));
        command
            .env("ALDIS_STORE", format!("postgres://aldis@127.0.0.1:{port}/postgres?schema=chaos"));
        command.stdin(Stdio::null());
        command
    }

    fn spawn(&self, machine: &str, args: &[&str]) -> io::Result<Child> {
        let log = self.directory.path().join(format!("{machine}.log"));
        let log = fs::OpenOptions::new().create(true).append(true).open(log)?;
        self.command(machine, args).stdout(log.try_clone()?).stderr(log).spawn()
    }

    fn worker(&self, name: &str) -> io::Result<Child> {
        self.spawn(name, &["worker", "--name", name, "--slots", SLOTS])
    }

    fn server(&self, number: usize) -> io::Result<Child> {
        self.spawn(&format!("server-{number}"), &["serve", "--listen", "127.0.0.1:0"])
    }

    /// Starts again whatever is gone: as systemd would, or Kubernetes.
    pub(super) fn keep_going(&mut self) -> io::Result<()> {
        for name in self.workers.keys().cloned().collect::<Vec<_>>() {
            let gone = match self.workers.get_mut(&name) {
                Some(worker) => worker.try_wait()?.is_some(),
                None => false,
            };
            if gone {
                let worker = self.worker(&name)?;
                self.workers.insert(name, worker);
            }
        }
        for number in 0..self.servers.len() {
            if self.servers[number].try_wait()?.is_some() {
                self.servers[number] = self.server(number)?;
            }
        }
        if let Some(mut coordinator) = self.coordinator.take() {
            match coordinator.try_wait()? {
                None => self.coordinator = Some(coordinator),
                Some(status) => self.ended = status.code(),
            }
        }
        if self.coordinator.is_none() && self.ended != Some(0) {
            self.begun = self.begun || self.has_run()?;
            let slots = (self.workers.len() * 3).to_string();
            let begin = [
                "deliver",
                "plan.md",
                "--workers",
                "--no-tick",
                "--slots",
                &slots,
                "--",
                "./agent.sh",
            ];
            let again = ["deliver", "--continue"];
            let args = if self.begun { &again[..] } else { &begin[..] };
            self.coordinator = Some(self.spawn("coordinator", args)?);
            self.ended = None;
        }
        Ok(())
    }

    /// Whether the delivery has begun; unknown counts as not, while the database is gone.
    fn has_run(&self) -> io::Result<bool> {
        let done = self.command("human", &["tasks", "--json"]).output()?;
        Ok(done.status.success() && !done.stdout.is_empty())
    }

    /// Sends a message to some task, and remembers it if that is acknowledged.
    pub(super) fn tell(&mut self, rng: &mut Rng) -> io::Result<()> {
        self.begun = self.begun || self.has_run()?;
        if !self.begun {
            return Ok(());
        }
        self.told += 1;
        let (text, task) =
            (format!("message {}", self.told), format!("t{}", 1 + rng.below(self.tasks)));
        let run = self.command("human", &["tasks", "--json"]).output()?;
        let line: serde_json::Value = run
            .stdout
            .split(|byte| *byte == b'\n')
            .next()
            .map_or(serde_json::Value::Null, |line| {
                serde_json::from_slice(line).unwrap_or_default()
            });
        let Some(run) = line["run"].as_str() else { return Ok(()) };
        let done = self.command("human", &["tell", run, "--to", &task, &text]).output()?;
        if done.status.success() {
            self.acknowledged.push(text);
        }
        Ok(())
    }

    /// Answers what is asked: an agent that lost its workers too often needs a person.
    pub(super) fn answer(&self) -> io::Result<()> {
        let done = self.command("human", &["tasks", "--json"]).output()?;
        let lines = done.stdout.split(|byte| *byte == b'\n');
        let tasks = lines.filter_map(|line| serde_json::from_slice::<serde_json::Value>(line).ok());
        for id in tasks.filter_map(|task| task["question"].as_str().map(str::to_owned)) {
            // It is asked again while it is not answered.
            let _done = self.command("human", &["answer", &id, "go on"]).output()?;
        }
        Ok(())
    }

    pub(super) fn kill_worker(&mut self, rng: &mut Rng) -> io::Result<()> {
        let names: Vec<String> = self
            .workers
            .keys()
            .filter(|name| self.spared.as_ref() != Some(*name))
            .cloned()
            .collect();
        match names.get(rng.below(names.len())).and_then(|name| self.workers.get_mut(name)) {
            Some(worker) => end(worker),
            None => Ok(()),
        }
    }

    pub(super) fn kill_server(&mut self, rng: &mut Rng) -> io::Result<()> {
        let number = rng.below(self.servers.len());
        self.servers.get_mut(number).map_or(Ok(()), end)
    }

    pub(super) fn kill_coordinator(&mut self) -> io::Result<()> {
        match self.coordinator.as_mut().filter(|_| self.begun) {
            Some(coordinator) => end(coordinator),
            None => Ok(()),
        }
    }

    pub(super) fn cut(&self) {
        self.proxy.cut();
    }

    /// The worker whose agent waits for it to be frozen, if one does.
    pub(super) fn held(&self) -> io::Result<Option<String>> {
        let holder = fs::read_to_string(self.marks().join("holder")).unwrap_or_default();
        let Some((agent, worker)) = holder.trim().split_once(' ') else { return Ok(None) };
        let lives = Path::new("/proc").join(agent).exists();
        if lives && self.workers.contains_key(worker) {
            return Ok(Some(worker.to_owned()));
        }
        // It went with its worker: the next developer waits instead.
        fs::remove_file(self.marks().join("holder"))?;
        fs::remove_dir(self.marks().join("held"))?;
        Ok(None)
    }

    /// Freezes a worker, and lets its agent say that it is done: nobody reads that in time.
    pub(super) fn freeze(&mut self, name: &str) -> io::Result<()> {
        let Some(worker) = self.workers.get(name) else { return Ok(()) };
        signal(worker, Signal::SIGSTOP)?;
        (self.frozen, self.spared) = (Some(name.to_owned()), Some(name.to_owned()));
        fs::remove_file(self.marks().join("hold"))
    }

    pub(super) fn thaw(&mut self) -> io::Result<()> {
        let name = self.frozen.take();
        match name.and_then(|name| self.workers.get(&name)) {
            Some(worker) => signal(worker, Signal::SIGCONT),
            None => Ok(()),
        }
    }

    /// Lets everything go on.
    pub(super) fn calm(&mut self) -> io::Result<()> {
        self.thaw()?;
        self.keep_going()
    }

    /// Whether the coordinator has ended because the plan is delivered.
    pub(super) fn is_delivered(&mut self) -> io::Result<bool> {
        self.keep_going()?;
        Ok(self.ended == Some(0))
    }

    /// What must not be in the repository: a task whose work is not merged. An agent whose worker was lost
    /// after it pushed is run again on what it left, so that a task may have more than one line.
    pub(super) fn outside(&self) -> io::Result<Vec<String>> {
        let mut found = Vec::new();
        for task in 1..=self.tasks {
            let file = self.git(&self.remote(), &["show", &format!("main:t{task}.txt")]);
            if let Err(error) = file {
                found.push(format!("the work of t{task} is not merged: {error}"));
            }
        }
        Ok(found)
    }
}

impl Drop for Fleet {
    fn drop(&mut self) {
        let _thawed = self.thaw();
        let coordinator = self.coordinator.iter_mut();
        for process in self.workers.values_mut().chain(&mut self.servers).chain(coordinator) {
            let _ended = end(process);
        }
    }
}

/// Kills a process at once.
fn end(process: &mut Child) -> io::Result<()> {
    process.kill()?;
    process.wait().map(drop)
}

fn signal(process: &Child, signal: Signal) -> io::Result<()> {
    let pid = i32::try_from(process.id()).map_err(io::Error::other)?;
    kill(Pid::from_raw(pid), signal).map_err(io::Error::from)
}
