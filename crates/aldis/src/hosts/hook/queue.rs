//! Wakes a session by its host's own queue: the host shows the message in the session as one of its
//! user's, and nobody has to wait beside it (`codex queue`).
//!
//! The hook notes whose session it was; whoever passes a human's word on wakes it.

use std::io::BufRead as _;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use aldis_engine::{Engine, note};
use aldis_machine::Decision;
use aldis_machine::phases::{Effect, Event};
use aldis_process::run_bounded;
use aldis_signal::time::Timestamp;
use serde::{Deserialize, Serialize};

use super::live::{self, PhasesRun};
use super::{Hook, HookError, HostEvent};
use crate::hosts::Host;
use crate::hosts::spec::SessionQueue;
use crate::settings::config::Settings;
use crate::settings::project::Place;

/// The note that keeps how a session can be woken.
const NOTE: &str = "queue";
/// How long the host's command may take, and how much of what it prints is read.
const TIME_MAX: Duration = Duration::from_secs(15);
const OUTPUT_MAX: usize = 4 * 1024;
/// How much of a transcript's first line is read.
const LINE_MAX: u64 = 1024 * 1024;

/// Whose session waits.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
struct QueueNote {
    host: String,
    session: String,
    /// The host's own folder, where a variable names it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    folder: Option<String>,
}

impl Hook<'_> {
    /// Notes that the session of this stop waits and can be woken by its host's queue.
    pub(super) fn note_queue(&self, engine: &Engine, run: &mut PhasesRun) -> Result<(), HookError> {
        let spec = self.call.host.spec();
        let (Some(queue), HostEvent::Stop) = (spec.queue, &self.call.event) else { return Ok(()) };
        let parked = run.state().parked().map(|parked| parked.session.clone());
        let Some(session) = parked.filter(|parked| self.call.session.as_ref() == Some(parked))
        else {
            return Ok(());
        };
        if !self.call.transcript.as_deref().is_some_and(|file| is_attended(queue, file)) {
            return Ok(());
        }
        let folder = spec.settings.variable.and_then(|(name, _)| self.env.text(name));
        let wanted =
            QueueNote { host: spec.name.to_owned(), session, folder: folder.map(str::to_owned) };
        if run.note::<QueueNote>(NOTE)?.as_ref() != Some(&wanted) {
            run.set_notes(engine, self.now, vec![note(NOTE, &wanted)?])?;
        }
        Ok(())
    }
}

fn is_attended(queue: SessionQueue, transcript: &Path) -> bool {
    let Ok(file) = std::fs::File::open(transcript) else { return false };
    let mut line = String::new();
    let read = std::io::BufReader::new(std::io::Read::take(file, LINE_MAX)).read_line(&mut line);
    read.is_ok() && (queue.is_attended)(&line)
}

/// Gives a session that waits what was sent to it, if its host has a queue. Returns what was decided. The
/// message is given first and taken out of the store afterwards: a crash between the two repeats it.
///
/// # Errors
///
/// Says why it could not be woken. Then what was sent waits for its next prompt.
pub(crate) fn wake(
    engine: &Engine,
    now: Timestamp,
    run: &mut PhasesRun,
) -> Result<Vec<Decision>, String> {
    let failed = |what: &dyn std::fmt::Display| format!("the session was not woken: {what}");
    let _turn = live::turn(engine.store(), run.project()).map_err(|error| failed(&error))?;
    run.refresh(engine, now).map_err(|error| failed(&error))?;
    let noted = run.note::<QueueNote>(NOTE).map_err(|error| failed(&error))?;
    let parked = run.state().parked();
    let Some((waits, parked)) =
        noted.zip(parked).filter(|(it, parked)| it.session == parked.session)
    else {
        return Ok(Vec::new());
    };
    let settings = Settings::load(&Place::of(Path::new(run.project()), None));
    let is_off = settings.map_err(|error| failed(&error))?.phases.wake.0.is_none();
    let host = Host::headless(&waits.host).map_err(|error| failed(&error))?.0;
    let Some(queue) = host.spec().queue.filter(|_| !is_off && parked.due) else {
        return Ok(Vec::new());
    };
    let event = Event::Woken { session: waits.session.clone(), cap: None };
    let text =
        run.state().clone().on_event(now, &event).effects.into_iter().find_map(
            |effect| match effect {
                Effect::Context { text } => Some(text),
                _ => None,
            },
        );
    let Some(text) = text else { return Ok(Vec::new()) };
    let text = format!("aldis woke this session for run {}.\n\n{text}", run.id());
    give(queue, host, &waits, Path::new(run.project()), &text).map_err(|error| failed(&error))?;
    let outcome = engine.step(now, run, event, None).map_err(|error| failed(&error))?;
    Ok(outcome.decisions)
}

/// Runs the host's command.
fn give(
    queue: SessionQueue,
    host: Host,
    waits: &QueueNote,
    project: &Path,
    text: &str,
) -> Result<(), String> {
    let mut words = queue.command.iter().map(|word| match *word {
        "{session}" => &*waits.session,
        "{text}" => text,
        word => word,
    });
    let program = words.next().unwrap_or_default();
    let mut command = Command::new(program);
    command.args(words).current_dir(project);
    if let (Some((name, _)), Some(folder)) = (host.spec().settings.variable, &waits.folder) {
        command.env(name, folder);
    }
    let done = run_bounded(command, TIME_MAX, OUTPUT_MAX).map_err(|error| error.to_string())?;
    if done.status.success() {
        return Ok(());
    }
    let said = String::from_utf8_lossy(&done.stderr);
    let last = said.lines().rfind(|line| !line.trim().is_empty()).unwrap_or("it failed");
    Err(format!("`{program} queue`: {last}"))
}
