//! What `aldis run` costs beside its agent: the whole way of its output through pump, facts, reader,
//! scanner, log file and the machine, with a quiet display.
//!
//! Run with `cargo bench -p aldis --bench run`; with `-- --check` a limit that is not kept is a
//! failure. The limits: 2 % of one core at 10 MB/s, memory flat over 1 GB.

#![expect(clippy::unwrap_used, clippy::print_stdout, reason = "a bench is for reading")]

#[cfg(target_os = "linux")]
fn main() -> std::process::ExitCode {
    bench::main()
}

#[cfg(not(target_os = "linux"))]
fn main() {}

#[cfg(target_os = "linux")]
mod bench {
    use std::env;
    use std::fs;
    use std::io::{self, Write as _};
    use std::process::{Command, ExitCode, Stdio};
    use std::thread;
    use std::time::{Duration, Instant};

    use aldis_testkit::corpus::bulk::agent_text;
    use serde_json::json;

    const RATE: usize = 10_000_000;
    const SECONDS: usize = 10;
    const GIGABYTE: usize = 1_000_000_000;
    /// What is written again and again.
    const SAMPLE: usize = 4_000_000;
    const PERCENT_MAX: f64 = 2.0;
    const GROWTH_MAX: usize = 4_096;
    const TICKS_PER_SECOND: f64 = 100.0;
    const PAUSE: Duration = Duration::from_millis(20);

    pub(crate) fn main() -> ExitCode {
        let args: Vec<String> = env::args().collect();
        if let [_, command, kind, rate, total] = &args[..]
            && command == "--agent"
        {
            write(kind, rate.parse().unwrap(), total.parse().unwrap());
            return ExitCode::SUCCESS;
        }
        let mut kept = true;
        for kind in ["text", "claude-stream", "codex-exec"] {
            let Seen { used, seconds, .. } = supervise(kind, RATE, RATE * SECONDS);
            let percent = used / seconds * 100.0;
            let rate = (RATE * SECONDS) as f64 / seconds / 1e6;
            println!("{kind:14} {percent:.2} % of a core at {rate:.1} MB/s");
            kept &= percent <= PERCENT_MAX;
        }
        for kind in ["text", "claude-stream", "codex-exec"] {
            let Seen { used, seconds, least, most } = supervise(kind, 0, GIGABYTE);
            let rate = GIGABYTE as f64 / seconds / 1e6;
            println!(
                "{kind:14} 1 GB at {rate:.0} MB/s, {used:.2} s of a core; memory {least} to {most} KiB"
            );
            kept &= most - least <= GROWTH_MAX;
        }
        if kept || !args.iter().any(|arg| arg == "--check") {
            ExitCode::SUCCESS
        } else {
            ExitCode::FAILURE
        }
    }

    /// What was seen of a run.
    struct Seen {
        /// Seconds of processor time, of the supervisor and the keeper.
        used: f64,
        seconds: f64,
        /// Resident memory after the first tenth, in KiB.
        least: usize,
        most: usize,
    }

    /// Supervises an agent that writes so much, and watches what that costs.
    fn supervise(kind: &str, rate: usize, total: usize) -> Seen {
        let root = tempfile::tempdir().unwrap();
        let agent = env::current_exe().unwrap();
        let [rate, total] = [rate, total].map(|number| number.to_string());
        let mut run = Command::new(env!("CARGO_BIN_EXE_aldis"))
            .args(["run", "--quiet", "--task", "x", "--max-iterations", "1", "--input", kind])
            .arg("--")
            .arg(agent)
            .args(["--agent", kind, &rate, &total])
            .env("ALDIS_STATE_DIR", root.path().join("state"))
            .current_dir(root.path())
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .spawn()
            .unwrap();
        let start = Instant::now();
        let pid = run.id();
        let (mut supervisor, mut keeper, mut sizes) = (0.0, 0.0, Vec::new());
        let mut known = Vec::new();
        while run.try_wait().unwrap().is_none() {
            thread::sleep(PAUSE);
            if known.is_empty() {
                known = children(pid);
            }
            supervisor = time_of(pid).unwrap_or(supervisor);
            keeper = known.iter().filter_map(|pid| time_of(*pid)).fold(keeper, f64::max);
            sizes.extend(resident(pid));
        }
        let seconds = start.elapsed().as_secs_f64();
        let later = sizes.get(sizes.len() / 10..).unwrap_or_default();
        let (least, most) = (later.iter().min(), later.iter().max());
        let [least, most] = [least, most].map(|size| size.copied().unwrap_or(0));
        Seen { used: supervisor + keeper, seconds, least, most }
    }

    /// The agent: writes so much, at this rate.
    fn write(kind: &str, rate: usize, total: usize) {
        let sample = sample(kind);
        let start = Instant::now();
        let mut out = io::stdout().lock();
        let mut written = 0;
        'all: loop {
            for chunk in sample.chunks(16 * 1024) {
                out.write_all(chunk).unwrap();
                written += chunk.len();
                if written >= total {
                    break 'all;
                }
                if rate > 0 {
                    let due = Duration::from_secs_f64(written as f64 / rate as f64);
                    // Sleeping for less takes longer.
                    let early = due.saturating_sub(start.elapsed());
                    if early > Duration::from_millis(1) {
                        thread::sleep(early);
                    }
                }
            }
        }
        out.write_all(b"\n").unwrap();
    }

    /// What agents print: prose, code, logs, near misses; in a host's form mostly what tools printed.
    fn sample(kind: &str) -> Vec<u8> {
        let text = agent_text(SAMPLE, None, 7).text;
        if kind == "text" {
            return text.into_bytes();
        }
        let mut lines = Vec::new();
        let mut rest = &*text;
        let mut number = 0;
        while !rest.is_empty() {
            number += 1;
            let said = head(&mut rest, 400);
            let printed = head(&mut rest, 4_000);
            let [said, printed] = [said, printed].map(|text| json!(text).to_string());
            // In the order in which the hosts write their members.
            lines.push(match kind {
                "codex-exec" => format!(
                    r#"{{"type":"item.completed","item":{{"id":"s{number}","type":"agent_message","text":{said}}}}}
{{"type":"item.completed","item":{{"id":"c{number}","type":"command_execution","command":"cargo test","aggregated_output":{printed},"exit_code":0,"status":"completed"}}}}
"#
                ),
                _ => format!(
                    r#"{{"type":"assistant","message":{{"model":"m","id":"m{number}","type":"message","role":"assistant","content":[{{"type":"text","text":{said}}},{{"type":"tool_use","id":"t{number}","name":"Bash","input":{{}}}}],"usage":{{"input_tokens":4,"output_tokens":12}}}},"parent_tool_use_id":null,"session_id":"s"}}
{{"type":"user","message":{{"role":"user","content":[{{"tool_use_id":"t{number}","type":"tool_result","content":{printed}}}]}},"parent_tool_use_id":null,"session_id":"s"}}
"#
                ),
            });
        }
        lines.concat().into_bytes()
    }

    /// Takes about so many bytes from a text.
    fn head<'t>(text: &mut &'t str, bytes: usize) -> &'t str {
        let at = (bytes..text.len()).find(|at| text.is_char_boundary(*at)).unwrap_or(text.len());
        let (head, rest) = text.split_at(at);
        *text = rest;
        head
    }

    /// Processor seconds of a process, without its children.
    fn time_of(pid: u32) -> Option<f64> {
        let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
        let fields: Vec<&str> = stat.rsplit(')').next()?.split_whitespace().collect();
        let ticks = |at: usize| fields.get(at)?.parse::<f64>().ok();
        Some((ticks(11)? + ticks(12)?) / TICKS_PER_SECOND)
    }

    /// The processes it has started: the keeper.
    fn children(pid: u32) -> Vec<u32> {
        let all = fs::read_dir("/proc").into_iter().flatten().flatten();
        let all = all.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
        let parent = |child: u32| {
            let stat = fs::read_to_string(format!("/proc/{child}/stat")).ok()?;
            stat.rsplit(')').next()?.split_whitespace().nth(1)?.parse::<u32>().ok()
        };
        all.filter(|child| parent(*child) == Some(pid)).collect()
    }

    fn resident(pid: u32) -> Option<usize> {
        let pages = fs::read_to_string(format!("/proc/{pid}/statm")).ok()?;
        let pages = pages.split(' ').nth(1)?.parse::<usize>().ok()?;
        // One that has just ended has none.
        (pages > 0).then_some(pages * 4)
    }
}
