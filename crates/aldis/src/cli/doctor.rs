//! `aldis doctor`: whether the hosts really call the hook.

use clap::Args;

use super::Outcome;
use crate::error::CommandError;
use crate::hosts::install::Host;
use crate::hosts::install::doctor::{
    Check, Status, examine, is_present, is_registered, state_directory,
};
use crate::hosts::install::locations::Locations;
use crate::io::Io;
use crate::view::display;
use crate::view::json;
use crate::view::paint::Paint;
use crate::view::wire::registration::CheckLine;

/// Check that the hook is registered and works
///
/// For each host: is the hook registered for all events, and only once; is the program found, and
/// is it this version; does the host trust it; does it answer a made-up stop in time. What is wrong
/// comes with what to do about it.
///
/// The made-up stop runs in an empty directory with a state of its own. Exits with 1 if something
/// is wrong.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  aldis doctor
  aldis doctor codex
  aldis doctor --json | jq 'select(.status == \"failed\")'")]
pub(super) struct DoctorArgs {
    /// The host; by default all of which there is a sign
    #[arg(value_enum)]
    host: Option<Host>,

    /// Print one JSON object a line
    #[arg(long)]
    json: bool,
}

pub(super) fn run(io: &mut Io, args: &DoctorArgs) -> Result<Outcome, CommandError> {
    let locations = Locations::new()?;
    let hosts = match args.host {
        Some(host) => vec![host],
        None => Host::all().iter().copied().filter(|host| is_present(&locations, *host)).collect(),
    };
    // Somebody who asks whether it works wants at least one that does.
    let some = hosts.iter().any(|host| is_registered(&locations, *host));
    let mut checks: Vec<Check> = hosts
        .iter()
        .flat_map(|host| examine(&locations, *host, args.host.is_some() || !some))
        .collect();
    checks.push(state_directory(&locations));
    if args.json {
        for check in &checks {
            json::write_line(&mut io.stdout, &line(check))?;
        }
    } else {
        tell(io, &checks, hosts.is_empty())?;
    }
    let good = !hosts.is_empty() && checks.iter().all(|check| check.status != Status::Failed);
    Ok(if good { Outcome::Yes } else { Outcome::No })
}

fn tell(io: &mut Io, checks: &[Check], nobody: bool) -> Result<(), CommandError> {
    let paint = Paint { on: io.color_stdout };
    let failed = checks.iter().filter(|check| check.status == Status::Failed).count();
    let of = checks.len();
    match failed {
        _ if nobody => {
            writeln!(io.stdout, "{}", paint.warn("There is no sign of a host here"))?;
            writeln!(io.stdout, "  fix: aldis install HOST")?;
        }
        0 => writeln!(io.stdout, "{}", paint.good(format_args!("All good, {of} checks")))?,
        1 => writeln!(io.stdout, "{}", paint.bad(format_args!("1 of {of} checks failed")))?,
        _ => writeln!(io.stdout, "{}", paint.bad(format_args!("{failed} of {of} checks failed")))?,
    }
    let mut host = None;
    for check in checks {
        if host != Some(check.host) {
            host = Some(check.host);
            let title = check.host.map_or("All hosts", Host::title);
            writeln!(io.stdout, "\n{}", paint.strong(title))?;
        }
        let message = display::line(&check.message);
        let word = word(check.status);
        let painted = match check.status {
            Status::Ok => paint.good(word),
            Status::Failed => paint.bad(word),
            Status::Note | Status::Skipped => paint.warn(word),
        };
        writeln!(io.stdout, "  {painted:<7} {:<10} {message}", check.name)?;
        if let Some(fix) = &check.fix {
            writeln!(io.stdout, "  {:<7} {:<10} fix: {}", "", "", display::line(fix))?;
        }
    }
    Ok(())
}

fn line(check: &Check) -> CheckLine {
    CheckLine {
        v: 1,
        kind: "check".to_owned(),
        host: check.host.map(|host| host.name().to_owned()),
        check: check.name.to_owned(),
        status: word(check.status).to_owned(),
        message: check.message.clone(),
        fix: check.fix.clone(),
    }
}

fn word(status: Status) -> &'static str {
    match status {
        Status::Ok => "ok",
        Status::Note => "note",
        Status::Failed => "failed",
        Status::Skipped => "skipped",
    }
}
