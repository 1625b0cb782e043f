//! `aldis doctor`: whether the hosts really call the hook.

use std::time::Duration;

use aldis_signal::signal::Via;
use clap::Args;
use serde_json::Value;

use super::Outcome;
use crate::app::calls::caller::Caller;
use crate::app::calls::elsewhere;
use crate::error::CommandError;
use crate::failures;
use crate::hosts::hook::{adoption, call_log};
use crate::hosts::install::Host;
use crate::hosts::install::doctor::{
    CheckStatus, HealthCheck, examine, is_present, is_registered, state_directory,
};
use crate::hosts::install::locations::Locations;
use crate::io::Io;
use crate::notify;
use crate::settings::project::{self, Place};
use crate::settings::remote::{Remote, spool};
use crate::settings::store::{OpenStore, StorePlace};
use crate::settings::{clock, home};
use crate::telemetry::Target;
use crate::view::display;
use crate::view::json;
use crate::view::paint::Paint;
use crate::view::time::local;
use crate::view::wire::registration::CheckLine;

/// Check that the hook is registered and works
///
/// For each host: is the hook registered for all events, and only once; is the program found, and
/// is it this version; does the host trust it; does it answer a test stop in time? Each failed check
/// says how to fix it.
///
/// The test stop runs in an empty directory with its own state. Exits with 1 if a check fails.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  aldis doctor
  aldis doctor codex
  aldis doctor --json | jq 'select(.status == \"failed\")'")]
pub(super) struct DoctorArgs {
    /// The host to check (default: every host detected here)
    #[arg(value_enum)]
    host: Option<Host>,

    /// Print one JSON object per line
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
    let mut checks: Vec<HealthCheck> = hosts
        .iter()
        .flat_map(|host| {
            let asked = args.host.is_some() || !some;
            examine(&locations, *host, asked)
        })
        .collect();
    checks.push(state_directory(&locations));
    let directory = home::state_directory(io.state_dir.as_deref())?;
    // What is wrong with the store is said elsewhere.
    let at = StorePlace::of(&directory).ok().filter(StorePlace::exists);
    let store = at.and_then(|at| at.open().ok()).map(OpenStore::shared);
    let store = store.as_deref();
    let (place, now) = (Place::of(&locations.cwd, None), clock::now()?);
    // A state file may want a run and get none.
    let fix = "delete the file, or start a run of your own: aldis auto start";
    let unheeded = adoption::explain(store, &place, now);
    checks.extend(unheeded.map(|message| HealthCheck::note("state file", message, fix)));
    let troubles = store.and_then(|store| notify::troubles(store, &directory, now).ok());
    let fix = "check the sink; what waits is sent by the next aldis serve, run or deliver";
    let note = |what| HealthCheck::note("notices", what, fix);
    checks.extend(troubles.into_iter().flatten().map(note));
    checks.extend(traces());
    checks.extend(last_failure(io));
    checks.extend(server_elsewhere());
    checks.extend(waiting(io));
    checks.extend(hook_log(io));
    if args.json {
        for check in &checks {
            json::write_line(&mut io.stdout, &line(check))?;
        }
    } else {
        tell(io, &checks, hosts.is_empty())?;
    }
    let good = !hosts.is_empty() && checks.iter().all(|check| check.status != CheckStatus::Failed);
    Ok(if good { Outcome::Yes } else { Outcome::No })
}

/// Mentions the last time a hook failed.
fn last_failure(io: &Io) -> Option<HealthCheck> {
    let directory = home::state_directory(io.state_dir.as_deref()).ok()?;
    let last = failures::latest(&directory, 1).pop()?;
    let at = local(last.at);
    let message = format!("the last failure, at {at}: {}: {}", last.part, last.what);
    Some(HealthCheck::note("failures", message, "aldis log lists them"))
}

/// Mentions where traces go, or why they do not.
fn traces() -> Option<HealthCheck> {
    let (status, message, fix) = match Target::load() {
        Ok(target) => (CheckStatus::Note, format!("traces go to {}", target?), None),
        Err(error) => (
            CheckStatus::Failed,
            format!("traces are not exported: {error}"),
            Some("correct the setting, or unset it".to_owned()),
        ),
    };
    Some(HealthCheck { host: None, name: "telemetry", status, message, fix })
}

/// Asks the server that keeps the runs, if that is another one.
fn server_elsewhere() -> Option<HealthCheck> {
    let remote = match Remote::of_environment() {
        Ok(remote) => remote?,
        Err(error) => {
            return Some(HealthCheck::failed(SERVER_CHECK, error.to_string(), "correct it"));
        }
    };
    let here = project::current().unwrap_or_default();
    let asked = elsewhere::read(&Caller::at(here, Via::Receipt), "status", "");
    match remote.post::<Value>(elsewhere::READ, &asked, SERVER_PATIENCE) {
        Ok(_) => Some(HealthCheck::passed(
            SERVER_CHECK,
            format!("{remote} answers, and takes the token"),
        )),
        Err(error) => {
            let fix =
                "is ALDIS_SERVER right, and ALDIS_TOKEN a token of it? aldis token list, there";
            Some(HealthCheck::failed(SERVER_CHECK, error.to_string(), fix))
        }
    }
}

/// Mentions what waits for that server.
fn waiting(io: &Io) -> Option<HealthCheck> {
    let directory = home::state_directory(io.state_dir.as_deref()).ok()?;
    let count = spool::count(&directory);
    let message = format!("{count} of what happened here waits for the server");
    let fix = "the next hook or report that reaches the server delivers it";
    (count > 0).then(|| HealthCheck::note("spool", message, fix))
}

/// The check of a server elsewhere, and how long it may take.
const SERVER_CHECK: &str = "server elsewhere";
const SERVER_PATIENCE: Duration = Duration::from_secs(5);

/// Mentions where hook calls are logged, if they are.
fn hook_log(io: &Io) -> Option<HealthCheck> {
    let directory = home::state_directory(io.state_dir.as_deref()).ok()?;
    let message = format!("hook calls are logged in `{}`", call_log::place(&directory)?.display());
    Some(HealthCheck {
        host: None,
        name: "hook log",
        status: CheckStatus::Note,
        message,
        fix: None,
    })
}

fn tell(io: &mut Io, checks: &[HealthCheck], nobody: bool) -> Result<(), CommandError> {
    let paint = Paint { on: io.color_stdout };
    let failed = checks.iter().filter(|check| check.status == CheckStatus::Failed).count();
    let of = checks.len();
    match failed {
        _ if nobody => {
            let names: Vec<&str> = Host::all().iter().map(|host| host.name()).collect();
            writeln!(io.stdout, "{}", paint.warn("No supported agent is configured here."))?;
            writeln!(io.stdout, "  fix: aldis install HOST ({})", names.join(", "))?;
        }
        0 => writeln!(io.stdout, "{}", paint.good(format_args!("All {of} checks passed")))?,
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
            CheckStatus::Ok => paint.good(word),
            CheckStatus::Failed => paint.bad(word),
            CheckStatus::Note | CheckStatus::Skipped => paint.warn(word),
        };
        writeln!(io.stdout, "  {painted:<7} {:<10} {message}", check.name)?;
        if let Some(fix) = &check.fix {
            writeln!(io.stdout, "  {:<7} {:<10} fix: {}", "", "", display::line(fix))?;
        }
    }
    Ok(())
}

fn line(check: &HealthCheck) -> CheckLine {
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

fn word(status: CheckStatus) -> &'static str {
    match status {
        CheckStatus::Ok => "ok",
        CheckStatus::Note => "note",
        CheckStatus::Failed => "failed",
        CheckStatus::Skipped => "skipped",
    }
}
