//! Does the hook really work? One check after the other, each with what to do when not.

mod tools;

use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};

use serde_json::Value;

use super::edit::Document;
use super::hooks_file::{self, CurrentEntry, OutdatedEntry};
use super::locations::{Location, Locations, Scope, is_executable};
use super::probe::{self, DEADLINE, ProbeOutcome, in_scratch};
use super::trust::{self, Trust};
use super::{Host, plan};
use crate::hosts::spec::{Imports, PROGRAM_LINE, PluginFile, Registration};
use crate::settings::home;
use crate::settings::store;

/// What is written to see whether there is space.
const BLOCK: usize = 4096;

/// How a check came out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CheckStatus {
    /// As it should be.
    Ok,
    /// Works, and there is something to know.
    Note,
    /// Does not work.
    Failed,
    /// Could not be checked, because an earlier check failed.
    Skipped,
}

/// The outcome of one check.
#[derive(Clone, Debug)]
pub(crate) struct HealthCheck {
    /// The host, or nothing for what concerns all.
    pub(crate) host: Option<Host>,
    /// What was checked, in a word.
    pub(crate) name: &'static str,
    /// How it came out.
    pub(crate) status: CheckStatus,
    /// What was found.
    pub(crate) message: String,
    /// What to do about it.
    pub(crate) fix: Option<String>,
}

impl HealthCheck {
    /// Something to know that concerns all hosts.
    pub(crate) fn note(name: &'static str, message: String, fix: &str) -> Self {
        Self { host: None, name, status: CheckStatus::Note, message, fix: Some(fix.to_owned()) }
    }

    /// Something that is well and concerns all hosts.
    pub(crate) fn passed(name: &'static str, message: String) -> Self {
        Self { host: None, name, status: CheckStatus::Ok, message, fix: None }
    }

    /// Something that is wrong and concerns all hosts.
    pub(crate) fn failed(name: &'static str, message: String, fix: &str) -> Self {
        Self { status: CheckStatus::Failed, ..Self::note(name, message, fix) }
    }
}

/// A registration that was found.
struct Installed {
    scope: Scope,
    file: PathBuf,
    program: String,
    entries: Vec<CurrentEntry>,
    events: Vec<String>,
}

/// What all files of a host say.
#[derive(Default)]
struct Survey {
    found: Vec<Installed>,
    others: Vec<(PathBuf, OutdatedEntry)>,
    broken: Vec<String>,
    outdated: Vec<PathBuf>,
    plugin: Option<PathBuf>,
}

/// Examines a host. Unless it was asked for by name, not being registered is only worth a note.
pub(crate) fn examine(locations: &Locations, host: Host, asked: bool) -> Vec<HealthCheck> {
    let survey = survey(locations, host);
    let mut checks = Checks { host: Some(host), list: Vec::new() };
    registered(locations, host, asked, &survey, &mut checks);
    duplicates(locations, host, &survey, &mut checks);
    let mut programs = Vec::new();
    for registration in &survey.found {
        let path = command(locations, host, registration, &mut checks);
        trusted(locations, host, registration, &mut checks);
        answers(locations, host, path.as_deref(), &mut checks);
        programs.extend(path.map(|path| (registration.program.clone(), path)));
    }
    if let Some(first) = survey.found.first() {
        tools::examine(locations, host, first.scope, &programs, &mut checks);
        let flags = host.spec().ignored_with.map(str::to_owned);
        flags.into_iter().for_each(|it| checks.add("flags", CheckStatus::Note, it, None));
    }
    checks.list
}

/// Whether there is any sign of a host: its program, its folder, or our entry.
pub(crate) fn is_present(locations: &Locations, host: Host) -> bool {
    host.spec().programs.iter().any(|name| locations.find_program(name).is_some())
        || locations
            .all_of(host)
            .iter()
            .any(|location| location.files.iter().any(|file| file.exists()))
        || locations.user_folder(&host.spec().settings).is_ok_and(|folder| folder.is_dir())
}

/// Whether a host's files hold our entry.
pub(crate) fn is_registered(locations: &Locations, host: Host) -> bool {
    let survey = survey(locations, host);
    !survey.found.is_empty() || survey.plugin.is_some()
}

/// Returns why a host ignores the entries of ours that it has.
pub(crate) fn distrusted(locations: &Locations, host: Host) -> Vec<HealthCheck> {
    let mut checks = Checks { host: Some(host), list: Vec::new() };
    for registration in &survey(locations, host).found {
        trusted(locations, host, registration, &mut checks);
    }
    checks.list.retain(|check| check.status == CheckStatus::Failed);
    checks.list
}

/// Examines the directory that holds the state of all runs.
pub(crate) fn state_directory(locations: &Locations) -> HealthCheck {
    let check = |status, message: String, fix: Option<String>| HealthCheck {
        host: None,
        name: "state",
        status,
        message,
        fix,
    };
    let failed = |message: String, fix: String| check(CheckStatus::Failed, message, Some(fix));
    let Ok(place) = home::state_directory(None) else {
        let message = "no place to store runs: the home directory is not known".to_owned();
        return failed(message, "set HOME or ALDIS_STATE_DIR".to_owned());
    };
    let shown = locations.shown(&place);
    let Some(existing) = place.ancestors().find(|folder| folder.exists()) else {
        return failed(format!("`{shown}` cannot be created"), "set ALDIS_STATE_DIR".to_owned());
    };
    let folder = existing.display();
    let written = tempfile::tempfile_in(existing).map(|mut file| file.write_all(&[0; BLOCK]));
    if !existing.is_dir() || written.is_err() {
        let message = format!("`{folder}` is not a writable directory");
        failed(message, format!("chmod u+rwx '{folder}'"))
    } else if let Ok(Err(error)) = written {
        let message = format!("nothing can be written to `{folder}`: {error}");
        failed(message, "free some space on its disk".to_owned())
    } else if existing == place && !is_private(&place) {
        let message = format!("other users can read `{shown}`");
        failed(message, format!("chmod 700 '{}'", place.display()))
    } else if let Some(error) = store::problem(&place) {
        failed(error.to_string(), "until then agents are let go and nothing is decided".to_owned())
    } else if existing != place {
        let message =
            format!("`{shown}` will be created when it is needed{}", store::elsewhere(&place));
        check(CheckStatus::Ok, message, None)
    } else {
        let message = format!("`{shown}` is private and writable{}", store::elsewhere(&place));
        check(CheckStatus::Ok, message, None)
    }
}

fn survey(locations: &Locations, host: Host) -> Survey {
    let mut survey = Survey::default();
    for location in locations.all_of(host) {
        match host.spec().registration {
            Registration::Entries(_) => inspect_entries(locations, host, &location, &mut survey),
            Registration::Plugin { files, events, .. } => {
                inspect_plugin(host, &location, (files, events), &mut survey);
            }
        }
    }
    survey
}

fn inspect_entries(locations: &Locations, host: Host, location: &Location, survey: &mut Survey) {
    for file in &location.files {
        let Ok(Some(bytes)) = plan::read(file) else { continue };
        let parsed = Document::parse(&bytes)
            .and_then(|document| Ok((hooks_file::find(host.name(), &document)?, document.object)));
        let (found, object) = match parsed {
            Ok(parsed) => parsed,
            Err(error) => {
                survey.broken.push(format!("`{}` {error}", locations.shown(file)));
                continue;
            }
        };
        if let Some(problem) = (host.spec().trust.unreadable)(&bytes) {
            let (title, file) = (host.title(), locations.shown(file));
            survey.broken.push(format!("{title} ignores `{file}`: {problem}"));
        }
        let plugins = host.spec().trust.plugins.and_then(|name| object.object_value(name));
        let plugins = plugins.and_then(|plugins| plugins.to_serde_value());
        let enabled =
            plugins.as_ref().and_then(Value::as_object).into_iter().flatten().any(|(name, on)| {
                name.split('@').next() == Some("aldis") && *on == Value::Bool(true)
            });
        if enabled {
            survey.plugin.get_or_insert_with(|| file.clone());
        }
        survey.others.extend(found.outdated.iter().map(|other| (file.clone(), other.clone())));
        if let Some(first) = found.current.first() {
            survey.found.push(Installed {
                scope: location.scope,
                file: file.clone(),
                program: first.program.clone(),
                events: found
                    .current
                    .iter()
                    .filter(|entry| !entry.is_waker)
                    .map(|entry| entry.event.clone())
                    .collect(),
                entries: found.current,
            });
        }
    }
}

fn inspect_plugin(
    host: Host,
    location: &Location,
    (files, events): (&[PluginFile], &[&str]),
    survey: &mut Survey,
) {
    let texts = location.files.iter().map(|file| fs::read_to_string(file).ok());
    let texts: Vec<Option<String>> = texts.collect();
    let program = texts.iter().flatten().find_map(|text| program_in(host, text));
    let (Some(program), Some(last)) = (program, location.files.last()) else { return };
    for ((file, text), own) in location.files.iter().zip(&texts).zip(files) {
        if text.as_deref() != Some(&(own.render)(&program)) {
            survey.outdated.push(file.clone());
        }
    }
    survey.found.push(Installed {
        scope: location.scope,
        file: last.clone(),
        program,
        entries: Vec::new(),
        events: events.iter().map(|event| (*event).to_owned()).collect(),
    });
}

/// Returns the program that a file of a plugin calls.
fn program_in(host: Host, text: &str) -> Option<String> {
    if let Some(line) = text.lines().find_map(|line| line.strip_prefix(PROGRAM_LINE)) {
        return serde_json::from_str(line.strip_suffix(';')?).ok();
    }
    let document = Document::parse(text.as_bytes()).ok()?;
    let found = hooks_file::find(host.name(), &document).ok()?;
    found.current.into_iter().next().map(|entry| entry.program)
}

fn registered(
    locations: &Locations,
    host: Host,
    asked: bool,
    survey: &Survey,
    checks: &mut Checks,
) {
    let install = format!("aldis install {}", host.name());
    for broken in &survey.broken {
        checks.failed("registered", broken.clone(), "correct the file");
    }
    if let Some(file) = &survey.plugin {
        let file = locations.shown(file);
        checks.ok("registered", format!("registered by the plugin that `{file}` enables"));
        return;
    }
    if survey.found.is_empty() && survey.broken.is_empty() {
        let message = format!("{} does not call aldis", host.title());
        if asked {
            checks.failed("registered", message, install);
        } else {
            checks.add("registered", CheckStatus::Note, message, Some(install));
        }
        return;
    }
    for file in &survey.outdated {
        let message = format!("`{}` is missing or from another version", locations.shown(file));
        checks.failed("registered", message, install.clone());
    }
    for registration in &survey.found {
        let missing: Vec<&str> = host
            .spec()
            .registration
            .events()
            .iter()
            .filter(|event| !survey.found.iter().any(|found| found.hears(event)))
            .copied()
            .collect();
        let file = locations.shown(&registration.file);
        if missing.is_empty() {
            let events = registration.events.join(", ");
            checks.ok("registered", format!("`{file}`: {events}"));
        } else {
            let message = format!("`{file}` has no entry for {}", missing.join(", "));
            let scope = registration.scope.name();
            checks.failed("registered", message, format!("{install} --{scope}"));
        }
    }
}

/// Looks for entries that make one stop two.
fn duplicates(locations: &Locations, host: Host, survey: &Survey, checks: &mut Checks) {
    for (file, other) in &survey.others {
        let place = format!("{}:{}", locations.shown(file), other.line);
        let message = format!("`{place}` also calls aldis at {}: `{}`", other.event, other.command);
        checks.failed("single", message, format!("remove the entry at {place}"));
    }
    let uninstall = |registration: &Installed| {
        format!("aldis uninstall {} --{}", host.name(), registration.scope.name())
    };
    let Some((first, rest)) = survey.found.split_first() else { return };
    if let Some(file) = &survey.plugin {
        let files = (locations.shown(file), locations.shown(&first.file));
        let message = format!("the plugin of `{}` and `{}` both call aldis", files.0, files.1);
        checks.failed("single", message, uninstall(first));
    }
    for second in rest {
        let same = host.spec().trust.merges_identical && first.program == second.program;
        if !same {
            let files = (locations.shown(&first.file), locations.shown(&second.file));
            let message = format!("`{}` and `{}` both call aldis", files.0, files.1);
            checks.failed("single", message, uninstall(second));
        }
    }
    let original = Host::original();
    if host.spec().imports != Imports::Nothing && is_registered(locations, original) {
        let (title, other) = (host.title(), original.title());
        let message = format!("{title} also runs the hooks in the settings of {other}");
        let fix = format!("aldis uninstall {host}, or register {other} with --user only");
        checks.add("single", CheckStatus::Note, message, Some(fix));
    }
}

/// Checks that the program is there and is this one. Returns where it is.
fn command(
    locations: &Locations,
    host: Host,
    registration: &Installed,
    checks: &mut Checks,
) -> Option<PathBuf> {
    let install = format!("aldis install {} --{}", host.name(), registration.scope.name());
    let program = Path::new(&registration.program);
    let path = if program.is_absolute() {
        if !is_executable(program) {
            let message = format!("`{}` is not an executable file", program.display());
            checks.failed("command", message, format!("{install} --absolute"));
            return None;
        }
        program.to_owned()
    } else if let Some(path) = locations.find_program(&registration.program) {
        path
    } else {
        let message = format!("`{}` is not on the PATH", registration.program);
        checks.failed("command", message, format!("{install} --absolute"));
        return None;
    };
    // A repository must not choose what is run here.
    let real = fs::canonicalize(&path).unwrap_or_else(|_| path.clone());
    let project = fs::canonicalize(locations.project(&host.spec().settings)).unwrap_or_default();
    let own = std::env::current_exe().and_then(fs::canonicalize).ok();
    if registration.scope != Scope::User && real.starts_with(project) && own != Some(real) {
        let message = format!("`{}` is a file of the project; it was not run", path.display());
        checks.failed("command", message, install);
        return None;
    }
    let expected = format!("aldis {}", env!("CARGO_PKG_VERSION"));
    match in_scratch(|folder| probe::run(&path, &["--version"], "", folder, &locations.path)) {
        ProbeOutcome::Ended { code: Some(0), stdout, .. } if stdout.trim() == expected => {
            checks.ok("command", format!("`{}`, {expected}", path.display()));
            Some(path)
        }
        ProbeOutcome::Ended { stdout, .. } => {
            let said = crate::view::display::excerpt(stdout.trim(), 40);
            let message = format!("`{}` is `{said}`; this is {expected}", path.display());
            checks.failed("command", message, format!("{install} --absolute"));
            Some(path)
        }
        answer => {
            checks.failed("command", unresponsive(&path, &answer), format!("{install} --absolute"));
            None
        }
    }
}

fn trusted(locations: &Locations, host: Host, registration: &Installed, checks: &mut Checks) {
    let Installed { scope, file, entries, .. } = registration;
    match trust::examine(locations, host, *scope, file, entries) {
        Trust::Yes(message) => checks.ok("trusted", message),
        Trust::Asks(message) => checks.add("trusted", CheckStatus::Note, message, None),
        Trust::No { why, fix } => checks.failed("trusted", why, fix),
    }
}

/// Sends a test stop through the program.
fn answers(locations: &Locations, host: Host, path: Option<&Path>, checks: &mut Checks) {
    let Some(path) = path else {
        let message = "there is no program to test".to_owned();
        checks.add("answers", CheckStatus::Skipped, message, None);
        return;
    };
    let answer = in_scratch(|folder| {
        let stop = (host.spec().payload.test_stop)(&folder.display().to_string()).to_string();
        probe::run(path, &["hook", host.name()], &stop, folder, &locations.path)
    });
    let fix =
        "update aldis and run `aldis doctor` again; if it still fails, report it with this output";
    match &answer {
        ProbeOutcome::Ended { code: Some(0), stdout, stderr } if stderr.is_empty() => {
            let silent = stdout.trim().is_empty();
            let object = matches!(serde_json::from_str(stdout), Ok(Value::Object(_)));
            if silent || object {
                checks.ok("answers", "answered a test stop correctly".to_owned());
            } else {
                let said = crate::view::display::excerpt(stdout.trim(), 80);
                checks.failed(
                    "answers",
                    format!("printed something other than JSON: `{said}`"),
                    fix,
                );
            }
        }
        ProbeOutcome::Ended { code, stderr, .. } => {
            let ended = code.map_or_else(
                || "was ended by a signal".to_owned(),
                |code| format!("exited with code {code}"),
            );
            let said = crate::view::display::excerpt(stderr.trim(), 80);
            checks.failed("answers", format!("{ended}; standard error: `{said}`"), fix);
        }
        ProbeOutcome::TimedOut | ProbeOutcome::NotStarted(_) => {
            checks.failed("answers", unresponsive(path, &answer), fix);
        }
    }
}

fn unresponsive(path: &Path, answer: &ProbeOutcome) -> String {
    match answer {
        ProbeOutcome::NotStarted(error) => format!("`{}` cannot be run: {error}", path.display()),
        _ => format!("`{}` did not answer within {} s", path.display(), DEADLINE.as_secs()),
    }
}

#[cfg(unix)]
fn is_private(folder: &Path) -> bool {
    use std::os::unix::fs::PermissionsExt as _;
    folder.metadata().is_ok_and(|meta| meta.permissions().mode() & 0o077 == 0)
}

#[cfg(not(unix))]
fn is_private(_: &Path) -> bool {
    true
}

impl Installed {
    fn hears(&self, event: &str) -> bool {
        self.events.iter().any(|own| own == event)
    }
}

/// Checks of one host, as they come in.
struct Checks {
    host: Option<Host>,
    list: Vec<HealthCheck>,
}

impl Checks {
    fn ok(&mut self, name: &'static str, message: String) {
        self.add(name, CheckStatus::Ok, message, None);
    }

    fn failed(&mut self, name: &'static str, message: impl Into<String>, fix: impl Into<String>) {
        self.add(name, CheckStatus::Failed, message.into(), Some(fix.into()));
    }

    fn add(
        &mut self,
        name: &'static str,
        status: CheckStatus,
        message: String,
        fix: Option<String>,
    ) {
        self.list.push(HealthCheck { host: self.host, name, status, message, fix });
    }
}
