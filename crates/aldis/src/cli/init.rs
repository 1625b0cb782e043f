//! `aldis init`: from a project to a first run.

use std::fs;
use std::io::{self, IsTerminal as _, Read as _, Write as _};
use std::path::Path;

use clap::Args;

use super::{Outcome, as_typed};
use crate::agents::git::Git;
use crate::app::project_facts::{ProjectFacts, RepositoryFacts};
use crate::error::CommandError;
use crate::hosts::Host;
use crate::hosts::install::doctor::is_registered;
use crate::hosts::install::locations::Locations;
use crate::io::Io;
use crate::settings::config::{self, annotated};
use crate::settings::project::{self, Place};
use crate::view::display;
use crate::view::paint::Paint;

/// What the phases of `aldis auto` leave in a project.
const LEFT_BEHIND: &str = ".caw/";
/// What opens the file with settings.
const HEADER: &str = "\
# Settings of Aldis for this project. Every key with its default: aldis config init --print
";

/// Set up a project
///
/// Looks at the project: its repository, the command that runs its tests, the agents that are
/// installed. Then writes `aldis.toml`, registers Aldis with the agents (`aldis install`), and adds to
/// `.gitignore` what a run leaves behind. Asks before each step; changes nothing that is there already.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  aldis init
  aldis init --dry-run
  aldis init --yes")]
pub(super) struct InitArgs {
    /// Show what would be done and change nothing
    #[arg(long)]
    dry_run: bool,

    /// Do everything without asking
    #[arg(long, short, conflicts_with = "dry_run")]
    yes: bool,
}

/// Who decides about a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Consent {
    /// Nobody: steps are only shown.
    DryRun,
    /// The user, once for all.
    Given,
    /// The user, at the terminal.
    Asked,
}

pub(super) fn run(io: &mut Io, args: &InitArgs) -> Result<Outcome, CommandError> {
    let consent = match args {
        InitArgs { dry_run: true, .. } => Consent::DryRun,
        InitArgs { yes: true, .. } => Consent::Given,
        _ if io::stdin().is_terminal() && io::stdout().is_terminal() => Consent::Asked,
        _ => {
            return Err(CommandError::new("there is no terminal to ask on")
                .with_help("aldis init --yes does every step, aldis init --dry-run shows them"));
        }
    };
    let (place, locations) = (project::here()?, Locations::new()?);
    let facts = ProjectFacts::of(place.root(), &locations);
    show(io, &place, &facts)?;
    settings(io, consent, &place, &facts)?;
    let mut registered = false;
    for host in &facts.hosts {
        registered |= register(io, consent, &locations, *host)?;
    }
    if facts.repository != RepositoryFacts::Missing && registered {
        ignore(io, consent, place.root())?;
    }
    next(io, &facts, registered)?;
    Ok(Outcome::Yes)
}

fn show(io: &mut Io, place: &Place, facts: &ProjectFacts) -> Result<(), CommandError> {
    let out = &mut io.stdout;
    writeln!(out, "{}", display::line(&place.root().display().to_string()))?;
    let repository = match &facts.repository {
        RepositoryFacts::Missing => {
            "none; `git init` lets tasks be delivered in parallel".to_owned()
        }
        RepositoryFacts::Empty => {
            "without a commit; one lets tasks be delivered in parallel".to_owned()
        }
        RepositoryFacts::On(branch) => format!("on {}", display::line(branch)),
    };
    let hosts: Vec<&str> = facts.hosts.iter().map(|host| host.title()).collect();
    let or = |text: String, instead: &str| if text.is_empty() { instead.to_owned() } else { text };
    for (name, found) in [
        ("repository", repository),
        ("language", or(facts.languages.join(", "), "not known")),
        ("tests", facts.check.clone().unwrap_or_else(|| "no command found".to_owned())),
        ("agents", or(hosts.join(", "), "none on the PATH")),
    ] {
        writeln!(out, "  {name:<11} {found}")?;
    }
    Ok(())
}

/// Writes the settings, and trusts what was written.
fn settings(
    io: &mut Io,
    consent: Consent,
    place: &Place,
    facts: &ProjectFacts,
) -> Result<(), CommandError> {
    if let Some(there) = config::file_in(place.root())? {
        let name = display::line(&there.display().to_string());
        writeln!(io.stdout, "\n{name} is there already; it stays as it is.")?;
        return Ok(());
    }
    let quoted = |text: &str| toml::Value::String(text.to_owned()).to_string();
    let values = [
        ("run.host", facts.hosts.first().map(|host| quoted(host.name()))),
        ("run.verify", facts.check.as_deref().map(quoted)),
        ("run.max_iterations", None),
        ("run.max_cost", None),
    ];
    let text = format!("{HEADER}\n{}", annotated::some(&values));
    writeln!(io.stdout, "\naldis.toml:")?;
    for line in text.lines() {
        writeln!(io.stdout, "  {}", display::line(line))?;
    }
    if !agreed(io, consent, "Write aldis.toml")? {
        return Ok(());
    }
    let file = config::create(place.root(), &text)?;
    if facts.check.is_some() {
        as_typed(io, &["trust", &file.to_string_lossy()])?;
    }
    Ok(())
}

/// Registers the hook and what else belongs to it. Returns whether the host calls us afterwards.
fn register(
    io: &mut Io,
    consent: Consent,
    locations: &Locations,
    host: Host,
) -> Result<bool, CommandError> {
    if is_registered(locations, host) {
        writeln!(io.stdout, "\n{} calls aldis already.", host.title())?;
        return Ok(true);
    }
    let step = format!("Register with {}, for `aldis auto` (aldis install {host})", host.title());
    if !agreed(io, consent, &step)? {
        return Ok(consent == Consent::DryRun);
    }
    Ok(as_typed(io, &["install", host.name()])? == Outcome::Yes)
}

/// Keeps what a run leaves behind out of the repository.
fn ignore(io: &mut Io, consent: Consent, root: &Path) -> Result<(), CommandError> {
    if Git::around(root).is_none_or(|git| git.ignores(&root.join(LEFT_BEHIND))) {
        return Ok(());
    }
    if !agreed(io, consent, &format!("Add {LEFT_BEHIND} to .gitignore"))? {
        return Ok(());
    }
    let file = root.join(".gitignore");
    let failed = |error| CommandError::file(&file, &error);
    let before = match fs::read(&file) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Vec::new(),
        read => read.map_err(failed)?,
    };
    let gap = if before.last().is_some_and(|byte| *byte != b'\n') { "\n" } else { "" };
    let added = format!("{gap}{LEFT_BEHIND}\n");
    let open = fs::OpenOptions::new().append(true).create(true).open(&file);
    open.and_then(|mut open| open.write_all(added.as_bytes())).map_err(failed)
}

/// Says what a step is, and returns whether it is to be done.
fn agreed(io: &mut Io, consent: Consent, step: &str) -> Result<bool, CommandError> {
    let paint = Paint { on: io.color_stdout };
    match consent {
        Consent::DryRun => writeln!(io.stdout, "\n{} (not done: --dry-run)", paint.strong(step))?,
        Consent::Given => writeln!(io.stdout, "\n{}", paint.strong(step))?,
        Consent::Asked => {
            write!(io.stdout, "\n{} ", paint.strong(format!("{step}? [Y/n]")))?;
            io.stdout.flush()?;
            let (mut answer, mut byte) = (Vec::new(), [0]);
            // What is typed ahead belongs to the next question.
            while io.stdin.read(&mut byte).is_ok_and(|count| count == 1) {
                match byte {
                    [b'\n'] => {
                        return Ok(matches!(answer.first(), None | Some(b'y' | b'Y' | b'\r')));
                    }
                    [other] => answer.push(other),
                }
            }
            return Ok(false);
        }
    }
    Ok(consent == Consent::Given)
}

fn next(io: &mut Io, facts: &ProjectFacts, registered: bool) -> Result<(), CommandError> {
    let paint = Paint { on: io.color_stdout };
    writeln!(io.stdout, "\n{}", paint.strong("Next:"))?;
    let Some(host) = facts.hosts.first() else {
        let original = Host::original();
        writeln!(
            io.stdout,
            "  {}   installs an agent: {}\n  {:<width$}   needs no agent",
            original.spec().get_program,
            original.title(),
            "aldis demo",
            width = original.spec().get_program.len()
        )?;
        return Ok(());
    };
    let until = match &facts.check {
        Some(check) => format!("one agent, until `{}` passes", display::line(check)),
        None => "one agent, until it is done".to_owned(),
    };
    let mut steps = vec![
        ("aldis run \"WHAT TO DO\"", until),
        ("aldis plan new plan.md", "several tasks; then: aldis deliver plan.md".to_owned()),
    ];
    if registered {
        let session = format!("phases in your own session of {}", host.title());
        steps.push(("aldis auto start \"WHAT TO DO\"", session));
    }
    steps.push(("aldis why", "after any of them: why it stopped".to_owned()));
    for (command, what) in steps {
        writeln!(io.stdout, "  {command:<30} {what}")?;
    }
    Ok(())
}
