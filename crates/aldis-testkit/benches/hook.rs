//! What one call of the Stop hook costs, as a process, beside the processes that other hooks start
//! with: `cargo build --release && cargo bench -p aldis-testkit --bench hook`.
//!
//! Each call finds the same state: an active run, and a transcript of which nothing was heard yet.
//! It decides, commits with a sync, answers and writes the state file.

mod measure;

use std::fs::{self, File, Permissions};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::Duration;

use aldis_testkit::corpus::bulk::claude_transcript;
use measure::{Bars, Contender, medians, timed};
use nix::sys::resource::{UsageWho, getrusage};

const ROUNDS: usize = 21;
/// How many calls are timed together: the clock of a process is coarse.
const CALLS: u32 = 5;
/// The session of the generated transcripts.
const SESSION: &str = "7b1d6c52-0f7e-4c7b-9a35-3f3f0c9d8a11";
/// The last turn of every transcript, about this long.
const TURN_BYTES: usize = 200_000;
/// How many percent of the agent's messages signal.
const SIGNALLED: usize = 33;
const SIZES: [(&str, usize); 3] =
    [("1 MB", 1_000_000), ("100 MB", 100_000_000), ("1 GB", 1_000_000_000)];

const FINAL: &str = "The parser is written, and half of its tests pass. Next I look at the rest.";

fn main() -> io::Result<()> {
    let stage = Stage::new()?;
    let mut made = Ok(Vec::new());
    let took = timed(|| made = transcripts(&stage))?;
    let transcripts = made?;
    writeln!(io::stdout(), "Transcripts written in {:.1} s.\n", took.as_secs_f64())?;
    let python = python()?;
    let mut names = ["`true`", "`node -e 0`", "`python3 -c pass`"].map(str::to_owned).to_vec();
    let mut contenders: Vec<Contender<'_>> = vec![
        Box::new(|| plain(Path::new("true"), &[])),
        Box::new(|| plain(Path::new("node"), &["-e", "0"])),
        Box::new(|| plain(&python, &["-c", "pass"])),
    ];
    names.push("hook, no transcript".to_owned());
    contenders.push(Box::new(|| stage.hook(Some(FINAL), None)));
    for (name, path) in &transcripts {
        names.push(format!("hook, {name}, final text"));
        contenders.push(Box::new(|| stage.hook(Some(FINAL), Some(path))));
    }
    for (name, path) in &transcripts {
        names.push(format!("hook, {name}, no final text"));
        contenders.push(Box::new(|| stage.hook(None, Some(path))));
    }
    // Builds of the same interpreter differ by a factor of four; the system's is a quick one.
    let system = Path::new("/usr/bin/python3");
    if system.exists() && fs::canonicalize(system)? != fs::canonicalize(&python)? {
        names.push("`/usr/bin/python3 -c pass`".to_owned());
        contenders.push(Box::new(|| plain(system, &["-c", "pass"])));
    }
    let costs = medians(ROUNDS, &mut contenders)?;
    drop(contenders);
    print(&names, &costs)?;
    bars(&costs).report()
}

/// A project, a home and a state directory, as they are before each call.
struct Stage {
    root: tempfile::TempDir,
    aldis: PathBuf,
    before: Vec<(PathBuf, Vec<u8>)>,
}

impl Stage {
    fn new() -> io::Result<Self> {
        let aldis = release_binary()?;
        // Next to the build, not in memory: a commit should be as durable as it really is.
        let root = tempfile::TempDir::new_in(target())?;
        // A repository of its own, inside ours.
        for directory in ["project", "project/.git", "home"] {
            fs::create_dir(root.path().join(directory))?;
        }
        let mut stage = Self { root, aldis, before: Vec::new() };
        let start = ["auto", "start", "Add CSV export", "--session", SESSION];
        let started = stage.command(&start).output()?;
        expect(started.status.success(), "the run was not started")?;
        // A few stops, so that the run has a past.
        for _ in 0..3 {
            stage.call(Some(FINAL), None)?;
        }
        for directory in ["state", "project/.caw"] {
            for entry in fs::read_dir(stage.path(directory))? {
                let path = entry?.path();
                if path.is_file() {
                    stage.before.push((path.clone(), fs::read(path)?));
                }
            }
        }
        Ok(stage)
    }

    fn path(&self, name: &str) -> PathBuf {
        self.root.path().join(name)
    }

    fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new(&self.aldis);
        command
            .args(args)
            .env_clear()
            .env("HOME", self.path("home"))
            .env("ALDIS_STATE_DIR", self.path("state"))
            .current_dir(self.path("project"))
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        command
    }

    /// Puts everything back.
    fn reset(&self) -> io::Result<()> {
        for (path, bytes) in &self.before {
            fs::write(path, bytes)?;
            fs::set_permissions(path, private())?;
        }
        Ok(())
    }

    fn call(&self, text: Option<&str>, transcript: Option<&Path>) -> io::Result<Output> {
        let payload = serde_json::json!({
            "session_id": SESSION, "transcript_path": transcript, "cwd": self.path("project"),
            "permission_mode": "acceptEdits", "hook_event_name": "Stop",
            "stop_hook_active": false, "last_assistant_message": text,
        });
        let mut child = self.command(&["hook", "claude-code"]).stdin(Stdio::piped()).spawn()?;
        if let Some(mut input) = child.stdin.take() {
            input.write_all(payload.to_string().as_bytes())?;
        }
        child.wait_with_output()
    }

    /// Times calls, each of which must refuse the stop and count it.
    fn hook(&self, text: Option<&str>, transcript: Option<&Path>) -> io::Result<Duration> {
        let mut cost = Duration::ZERO;
        for _ in 0..CALLS {
            self.reset()?;
            let before = children()?;
            let output = self.call(text, transcript)?;
            cost += children()?.saturating_sub(before);
            let answer = String::from_utf8_lossy(&output.stdout);
            expect(answer.contains("\"decision\":\"block\""), &format!("answered {answer:?}"))?;
            let view = fs::read_to_string(self.path("project/.caw/auto-state.json"))?;
            expect(view.contains("\"iteration\": 4"), &format!("not counted: {view}"))?;
        }
        let failures = fs::read_to_string(self.path("state/failures.jsonl")).unwrap_or_default();
        expect(failures.is_empty(), &failures)?;
        Ok(cost / CALLS)
    }
}

/// Transcripts that differ in length alone: the last turn of all is the same.
fn transcripts(stage: &Stage) -> io::Result<Vec<(&'static str, PathBuf)>> {
    let body = claude_transcript(SIZES[1].1, SIGNALLED, 1).text;
    let turn = claude_transcript(TURN_BYTES, SIGNALLED, 2).text;
    // Agents speak last; the generator ends with a tool.
    let spoken = turn.rfind("[{\"type\":\"text\"").unwrap_or(0);
    let end = turn[spoken..].find('\n').map_or(turn.len(), |newline| spoken + newline + 1);
    let directory = stage.path("home/.claude/projects/widget");
    fs::create_dir_all(&directory)?;
    let mut paths = Vec::new();
    for (name, bytes) in SIZES {
        let path = directory.join(format!("{bytes}.jsonl"));
        let mut file = File::create(&path)?;
        for start in (0..bytes).step_by(SIZES[1].1) {
            let piece = body.as_bytes().get(..bytes - start).unwrap_or(body.as_bytes());
            let lines = piece.iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1);
            file.write_all(&piece[..lines])?;
        }
        file.write_all(&turn.as_bytes()[..end])?;
        file.sync_all()?;
        paths.push((name, path));
    }
    Ok(paths)
}

/// Times processes that do nothing.
fn plain(program: &Path, args: &[&str]) -> io::Result<Duration> {
    let before = children()?;
    for _ in 0..CALLS {
        let status = Command::new(program).args(args).stdin(Stdio::null()).status()?;
        expect(status.success(), &format!("{} failed", program.display()))?;
    }
    Ok(children()?.saturating_sub(before) / CALLS)
}

/// The interpreter itself: a shim that looks for it first would flatter us.
fn python() -> io::Result<PathBuf> {
    let code = "import sys; print(sys.executable)";
    let output = Command::new("python3").args(["-c", code]).output()?;
    Ok(PathBuf::from(String::from_utf8_lossy(&output.stdout).trim()))
}

/// The binary that users run, which `cargo bench` does not build.
fn release_binary() -> io::Result<PathBuf> {
    let path = target().join("release/aldis");
    expect(path.exists(), "run `cargo build --release` first")?;
    Ok(path)
}

/// Where the build puts its files: `release/deps` lies in it, and this program there.
fn target() -> PathBuf {
    let program = std::env::current_exe().unwrap_or_default();
    program.ancestors().nth(3).map_or_else(PathBuf::new, Path::to_owned)
}

fn private() -> Permissions {
    std::os::unix::fs::PermissionsExt::from_mode(0o600)
}

fn expect(met: bool, otherwise: &str) -> io::Result<()> {
    if met { Ok(()) } else { Err(io::Error::other(otherwise.to_owned())) }
}

/// Returns the processor time, user and system, of all children that have ended.
fn children() -> io::Result<Duration> {
    let usage = getrusage(UsageWho::RUSAGE_CHILDREN)?;
    let micros = |time: nix::sys::time::TimeVal| {
        u64::try_from(time.tv_sec() * 1_000_000 + time.tv_usec()).unwrap_or(0)
    };
    Ok(Duration::from_micros(micros(usage.user_time()) + micros(usage.system_time())))
}

fn print(names: &[String], costs: &[Duration]) -> io::Result<()> {
    let [_, node, python, ..] = *costs else { return Ok(()) };
    let mut out = io::stdout().lock();
    writeln!(out, "| process | ms | of `node` | of `python3` |\n|---|---|---|---|")?;
    for (name, cost) in names.iter().zip(costs) {
        let share = |of: Duration| cost.as_secs_f64() / of.as_secs_f64();
        let (millis, node, python) = (cost.as_secs_f64() * 1e3, share(node), share(python));
        writeln!(out, "| {name} | {millis:.2} | {node:.3} | {python:.3} |")?;
    }
    Ok(())
}

fn bars(costs: &[Duration]) -> Bars {
    let mut bars = Bars::default();
    let [_, node, python, hooks @ ..] = costs else { return bars };
    let hooks = &hooks[..1 + 2 * SIZES.len()];
    let dearest = hooks.iter().max().copied().unwrap_or_default().as_secs_f64();
    let (of_node, of_python) = (dearest / node.as_secs_f64(), dearest / python.as_secs_f64());
    let dearest = |share: f64| format!("{share:.3} at most");
    bars.add("at most a tenth of `node -e 0`", dearest(of_node), of_node <= 0.1);
    let third = 3.0 * of_python <= 1.0;
    bars.add("at most a third of `python3 -c pass`", dearest(of_python), third);
    let (with_text, without) = hooks[1..].split_at(SIZES.len());
    for (bar, costs) in [
        ("the same within 20 % for every transcript, final text", with_text),
        ("the same within 20 % for every transcript, no final text", without),
    ] {
        let spread = spread(costs);
        bars.add(bar, format!("{:.1} %", 100.0 * (spread - 1.0)), spread <= 1.2);
    }
    bars
}

/// How much more the dearest costs than the cheapest.
fn spread(costs: &[Duration]) -> f64 {
    let seconds = costs.iter().map(Duration::as_secs_f64);
    seconds.clone().fold(0.0, f64::max) / seconds.fold(f64::INFINITY, f64::min)
}
