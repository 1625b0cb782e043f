//! What supervising costs: processor time at 10 MB/s, memory over 1 GB, time to start and end.
//!
//! Run with `cargo bench -p aldis --bench supervise`. The limits are those of the issue: at most
//! 2 % of one core, memory flat.

#![expect(clippy::unwrap_used, clippy::print_stdout, reason = "a bench is for reading")]

#[cfg(target_os = "linux")]
fn main() {
    bench::main();
}

#[cfg(not(target_os = "linux"))]
fn main() {}

#[cfg(target_os = "linux")]
mod bench {
    use std::env;
    use std::fs;
    use std::io::{self, Write as _};
    use std::thread;
    use std::time::{Duration, Instant};

    use aldis_process::{Agent, Launch, Output};
    use nix::sys::resource::{UsageWho, getrusage};

    const RATE: usize = 10_000_000;
    const SECONDS: usize = 10;
    const GIGABYTE: usize = 1_000_000_000;
    const STARTS: u32 = 100;
    const TICKS_PER_SECOND: f64 = 100.0;
    const PATIENCE: Duration = Duration::from_secs(5);

    pub(crate) fn main() {
        let args: Vec<String> = env::args().collect();
        if let [_, command, rate, total, chunk] = &args[..]
            && command == "--agent"
        {
            write(rate.parse().unwrap(), total.parse().unwrap(), chunk.parse().unwrap());
            return;
        }
        for chunk in [100, 4096, 65536] {
            let (used, seconds, bytes) = listen(RATE, RATE * SECONDS, chunk, |_| ());
            let megabytes = bytes as f64 / seconds / 1e6;
            let percent = used / seconds * 100.0;
            println!("{chunk:6} bytes per write: {percent:.2} % of a core at {megabytes:.1} MB/s");
        }
        let (mut least, mut most) = (usize::MAX, 0);
        let (used, seconds, bytes) = listen(0, GIGABYTE, 65536, |seen| {
            // What the first megabytes need is needed for good.
            if seen > GIGABYTE / 100 {
                let now = resident();
                (least, most) = (least.min(now), most.max(now));
            }
        });
        println!(
            "{bytes} bytes at {:.0} MB/s, {used:.2} s of a core; memory {} to {} KiB",
            bytes as f64 / seconds / 1e6,
            least / 1024,
            most / 1024
        );
        let start = Instant::now();
        for _ in 0..STARTS {
            let agent = Agent::start(&launch("/bin/true")).unwrap();
            assert_eq!(agent.end(PATIENCE).survivors, []);
        }
        println!("start and end: {:?}", start.elapsed() / STARTS);
    }

    /// Listens to an agent. Returns the processor time used by us and the reaper, the time it took
    /// and the bytes heard.
    fn listen(
        rate: usize,
        total: usize,
        chunk: usize,
        mut look: impl FnMut(usize),
    ) -> (f64, f64, usize) {
        let mut launch = launch(env::current_exe().unwrap().to_str().unwrap());
        let numbers = [rate, total, chunk].map(|number| number.to_string().into());
        launch.args = [vec!["--agent".into()], numbers.to_vec()].concat();
        let before = own_time();
        let start = Instant::now();
        let agent = Agent::start(&launch).unwrap();
        let (mut bytes, mut done, mut heard) = (0, 0, 0);
        while done < 2 {
            match agent.next(PATIENCE) {
                Some(Output::Stdout(chunk)) => {
                    bytes += chunk.len();
                    heard += 1;
                    if heard % 64 == 0 {
                        look(bytes);
                    }
                }
                Some(Output::Closed | Output::Exited(_)) => done += 1,
                Some(_) | None => {}
            }
        }
        let seconds = start.elapsed().as_secs_f64();
        let used = own_time() - before + time_of(agent.identity().reaper_pid.unwrap_or_default());
        assert_eq!(agent.end(PATIENCE).survivors, []);
        assert_eq!(bytes, total);
        (used, seconds, bytes)
    }

    fn launch(program: &str) -> Launch {
        Launch { reaper: Some(env!("CARGO_BIN_EXE_aldis").into()), ..Launch::new(program) }
    }

    /// The agent: writes so much, at this rate.
    fn write(rate: usize, total: usize, chunk: usize) {
        let line = [&vec![b'x'; chunk - 1][..], b"\n"].concat();
        let start = Instant::now();
        let mut out = io::stdout().lock();
        let mut written = 0;
        while written < total {
            let length = chunk.min(total - written);
            out.write_all(&line[chunk - length..]).unwrap();
            out.flush().unwrap();
            written += length;
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

    fn own_time() -> f64 {
        let usage = getrusage(UsageWho::RUSAGE_SELF).unwrap();
        let seconds =
            |time: nix::sys::time::TimeVal| time.tv_sec() as f64 + time.tv_usec() as f64 / 1e6;
        seconds(usage.user_time()) + seconds(usage.system_time())
    }

    fn time_of(pid: i32) -> f64 {
        let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
        let fields: Vec<&str> = stat.rsplit(')').next().unwrap().split_whitespace().collect();
        let ticks = |at: usize| fields.get(at).map_or(0.0, |field| field.parse().unwrap());
        (ticks(11) + ticks(12)) / TICKS_PER_SECOND
    }

    fn resident() -> usize {
        let pages = fs::read_to_string("/proc/self/statm").unwrap();
        pages.split(' ').nth(1).unwrap().parse::<usize>().unwrap() * 4096
    }
}
