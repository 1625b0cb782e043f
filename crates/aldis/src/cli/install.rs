//! `aldis install`: registers the hook with a host.

use clap::Args;

use super::Outcome;
use crate::error::CommandError;
use crate::hosts::install::invocation::Invocation;
use crate::hosts::install::locations::{Location, Locations, Scope};
use crate::hosts::install::plan::{self, Action, Backup, InstallChange};
use crate::hosts::install::{Host, write};
use crate::hosts::spec::Registration;
use crate::io::Io;
use crate::view::display;
use crate::view::json;
use crate::view::paint::Paint;
use crate::view::wire::registration::{FileForm, InstallLine};

/// Register the hook and the MCP server with a host
///
/// Tells a host in its own configuration to run `aldis hook HOST` when an agent stops, and at the
/// events around that; and to start `aldis mcp`, by which agents report with tool calls. All other values and comments of the file stay. The file is copied to FILE.aldis-backup before its first change. Registering twice
/// changes nothing, and `aldis uninstall` gives back the file that was there before.
///
/// OpenCode and OpenClaw have no hooks that run a command; they get a small plugin that does.
///
/// Run `aldis doctor HOST` afterwards: some hosts must be told to trust the hook first.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  aldis install claude-code --dry-run
  aldis install codex --user
  aldis install cursor --absolute")]
pub(super) struct InstallArgs {
    #[command(flatten)]
    target: TargetArgs,

    /// Register the path of this program instead of its name
    ///
    /// For hosts that do not find it on their PATH. The path is valid on this computer only: do not use it
    /// for --project files that others get, too.
    #[arg(long)]
    absolute: bool,

    /// Register the hook alone
    #[arg(long)]
    no_mcp: bool,
}

/// What to register, and where.
#[derive(Debug, Args)]
pub(super) struct TargetArgs {
    /// The host
    #[arg(value_enum)]
    pub(super) host: Host,

    /// In the files of this project (default)
    ///
    /// The project is the nearest folder upwards with a `.git` or with the host's own folder, or
    /// else the current one.
    #[arg(long, group = "scope")]
    project: bool,

    /// In your own configuration, for all projects
    #[arg(long, group = "scope")]
    user: bool,

    /// In your own settings for this project (Claude Code)
    #[arg(long, group = "scope")]
    local: bool,

    /// Show what would change and write nothing
    #[arg(long)]
    dry_run: bool,

    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

impl TargetArgs {
    pub(super) fn scope(&self) -> Scope {
        match (self.user, self.local) {
            (true, _) => Scope::User,
            (_, true) => Scope::Local,
            _ => Scope::Project,
        }
    }
}

/// What is done, for the report.
pub(super) struct InstallJob<'a> {
    pub(super) kind: &'static str,
    pub(super) args: &'a TargetArgs,
    pub(super) location: &'a Location,
    pub(super) invocation: Invocation,
    pub(super) server: Option<Invocation>,
    pub(super) notes: Vec<String>,
}

pub(super) fn run(io: &mut Io, args: &InstallArgs) -> Result<Outcome, CommandError> {
    let locations = Locations::new()?;
    let host = args.target.host;
    let location = locations.of(host, args.target.scope())?;
    let program = if args.absolute { own_path()? } else { PROGRAM.to_owned() };
    let with_server = !args.no_mcp;
    let changes = plan::install(&locations, host, &location, &program, with_server)?;
    let has_server = with_server && !locations.server_parts(host, location.scope).is_empty();
    let server = has_server.then(|| Invocation::server(&program));
    let mut notes = Vec::new();
    if !args.absolute && locations.find_program(PROGRAM).is_none() {
        notes.push("`aldis` is not on the PATH; install with --absolute instead".to_owned());
    }
    if let Registration::Plugin { also: Some(also), .. } = host.spec().registration {
        notes.push(also.to_owned());
    }
    notes.extend(host.spec().server_note.filter(|_| has_server).map(str::to_owned));
    notes.push(format!("check it: aldis doctor {host}"));
    notes.push("start a run: aldis auto start \"WHAT TO DO\"".to_owned());
    let invocation = Invocation::new(host.name(), program);
    let args = &args.target;
    let job = InstallJob { kind: "install", args, location: &location, invocation, server, notes };
    carry_out(io, &locations, &job, &changes)
}

/// Writes the changes, unless they are only to be shown, and reports.
pub(super) fn carry_out(
    io: &mut Io,
    locations: &Locations,
    job: &InstallJob<'_>,
    changes: &[InstallChange],
) -> Result<Outcome, CommandError> {
    if !job.args.dry_run {
        for change in changes {
            write::perform(change)?;
        }
    }
    if job.args.json {
        json::write_line(&mut io.stdout, &line(job, changes))?;
    } else {
        tell(io, locations, job, changes)?;
    }
    Ok(Outcome::Yes)
}

fn tell(
    io: &mut Io,
    locations: &Locations,
    job: &InstallJob<'_>,
    changes: &[InstallChange],
) -> Result<(), CommandError> {
    let paint = Paint { on: io.color_stdout };
    let title = job.args.host.title();
    let changed = changes.iter().any(|change| change.action() != Action::Unchanged);
    let installing = job.kind == "install";
    let headline = match (installing, changed, job.args.dry_run) {
        (true, true, false) => format!("{title} now calls aldis"),
        (true, true, true) => format!("{title} would call aldis"),
        (true, false, _) => format!("{title} already calls aldis; nothing to change"),
        (false, true, false) => format!("{title} no longer calls aldis"),
        (false, true, true) => format!("{title} would no longer call aldis"),
        (false, false, _) => format!("{title} does not call aldis; nothing to change"),
    };
    writeln!(io.stdout, "{}", paint.strong(headline))?;
    for change in changes {
        let path = display::line(&locations.shown(&change.path));
        let action = change.action();
        let action = if job.args.dry_run { action.planned() } else { action.name() };
        write!(io.stdout, "  {action:<12} {path}")?;
        if change.target.file_name() != change.path.file_name() || change.path.is_symlink() {
            write!(io.stdout, " -> {}", display::line(&change.target.display().to_string()))?;
        }
        writeln!(io.stdout)?;
        if change.backup == Backup::Write {
            let backup = display::line(&locations.shown(&change.backup_path()));
            let word = if job.args.dry_run { "would copy" } else { "backup" };
            writeln!(io.stdout, "  {word:<12} {backup}")?;
        }
        if job.args.dry_run && change.action() != Action::Unchanged {
            let diff = write::diff(change, &locations.shown(&change.path));
            write!(io.stdout, "{}", display::lines(&diff))?;
        }
    }
    if installing {
        let events = job.args.host.spec().registration.events().join(", ");
        writeln!(io.stdout, "  {:<12} {}", "command", display::line(&job.invocation.line()))?;
        writeln!(io.stdout, "  {:<12} {events}", "events")?;
        if let Some(server) = &job.server {
            writeln!(io.stdout, "  {:<12} {}", "MCP server", display::line(&server.line()))?;
        }
        // What is only shown has nothing after it.
        for note in job.notes.iter().filter(|_| !job.args.dry_run) {
            writeln!(io.stdout, "  {:<12} {note}", "next")?;
        }
    }
    Ok(())
}

fn line(job: &InstallJob<'_>, changes: &[InstallChange]) -> InstallLine {
    let text = |path: &std::path::Path| path.display().to_string();
    let files = changes.iter().map(|change| FileForm {
        path: text(&change.path),
        target: (change.target != change.path).then(|| text(&change.target)),
        action: change.action().name().to_owned(),
        backup: (change.backup == Backup::Write).then(|| text(&change.backup_path())),
        diff: (job.args.dry_run && change.action() != Action::Unchanged)
            .then(|| write::diff(change, &text(&change.path))),
    });
    let words = |invocation: &Invocation| {
        let Invocation { program, args } = invocation.clone();
        [vec![program], args].concat()
    };
    InstallLine {
        v: 1,
        kind: job.kind.to_owned(),
        host: job.args.host.name().to_owned(),
        scope: job.location.scope.name().to_owned(),
        changed: changes.iter().any(|change| change.action() != Action::Unchanged),
        dry_run: job.args.dry_run,
        command: words(&job.invocation),
        server: job.server.as_ref().map(words),
        events: job
            .args
            .host
            .spec()
            .registration
            .events()
            .iter()
            .map(|event| (*event).to_owned())
            .collect(),
        files: files.collect(),
        notes: job.notes.clone(),
    }
}

fn own_path() -> Result<String, CommandError> {
    let path = std::env::current_exe()
        .map_err(|error| CommandError::new(format!("the path of this program: {error}")))?;
    path.into_os_string().into_string().map_err(|path| {
        CommandError::new(format!("`{}` is not UTF-8, and JSON must be", path.display()))
    })
}

/// What a host runs, if its PATH has it.
pub(super) const PROGRAM: &str = "aldis";
