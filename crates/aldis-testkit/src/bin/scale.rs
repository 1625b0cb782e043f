//! Simulates a fleet and prints what its databases must take.

use std::env;
use std::error::Error;
use std::io::{self, Write as _};
use std::process::ExitCode;
use std::time::Duration;

use aldis_testkit::scale::{Options, Report, simulate};

const USAGE: &str = "usage: aldis-scale [--workers N] [--channels N] [--minutes N] [--databases N] \
                     [--agent-seconds N] [--message-seconds N] [--steps N] [--claims N] [--seed N]";

fn parse() -> Result<Options, Box<dyn Error>> {
    let mut options = Options::default();
    let mut args = env::args().skip(1);
    while let Some(name) = args.next() {
        let value = args.next().ok_or(USAGE)?;
        match &*name {
            "--workers" => options.workers = value.parse()?,
            "--channels" => options.channels = value.parse()?,
            "--minutes" => options.minutes = value.parse()?,
            "--databases" => options.databases = value.parse()?,
            "--agent-seconds" => options.agent = Duration::from_secs(value.parse()?),
            "--message-seconds" => options.message = Duration::from_secs(value.parse()?),
            "--steps" => options.steps_per_second = value.parse()?,
            "--claims" => options.claims_per_second = value.parse()?,
            "--seed" => options.seed = value.parse()?,
            _ => return Err(USAGE.into()),
        }
    }
    Ok(options)
}

fn show(options: &Options, report: &Report) -> io::Result<()> {
    let mut out = io::stdout().lock();
    let [median, most, nearly_all] = report.waits;
    let (agent, message) = (options.agent.as_secs(), options.message.as_secs());
    let (steps, claims) = (options.steps_per_second, options.claims_per_second);
    writeln!(
        out,
        "assumed     an agent works {agent} s, a channel has a message every {message} s"
    )?;
    writeln!(
        out,
        "            a database takes {steps} steps or {claims} claims or renewals a second"
    )?;
    writeln!(
        out,
        "fleet       {} workers, {} channels, {} databases, {} minutes, seed {}",
        options.workers, options.channels, options.databases, options.minutes, options.seed
    )?;
    let Report { agents, tasks, messages, .. } = report;
    writeln!(out, "done        {agents} agents, {tasks} tasks, {messages} messages")?;
    writeln!(
        out,
        "a second    {:.0} steps, {:.0} claims, {:.0} renewals",
        report.steps, report.claims, report.renewals
    )?;
    writeln!(out, "busiest     {:.0} %", report.busy * 100.0)?;
    writeln!(out, "statements  {median:.1} ms, 99 % {most:.1} ms, 99.9 % {nearly_all:.1} ms")?;
    writeln!(out, "idle        {:.2} % of the workers' time", report.idle * 100.0)?;
    let day = report.bytes_per_step * report.steps * 86_400.0 / 1e9;
    let per_step = report.bytes_per_step;
    writeln!(out, "journals    {per_step:.0} bytes a step, {day:.1} GB a day")?;
    let output = options.workers as f64 * options.output_per_second as f64 * 86_400.0 / 1e9;
    writeln!(out, "output      {output:.0} GB a day")
}

fn main() -> ExitCode {
    let simulated = || -> Result<(), Box<dyn Error>> {
        let options = parse()?;
        Ok(show(&options, &simulate(&options)?)?)
    };
    match simulated() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            // Nothing is left to do if this fails too.
            let _told = writeln!(io::stderr(), "{error}");
            ExitCode::from(2)
        }
    }
}
