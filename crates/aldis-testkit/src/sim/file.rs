//! The view file of a project, and those who meddle with it.

use std::rc::Rc;

use aldis::hosts::state_file::{self, StateFileCheck};
use aldis_machine::phases::{State, View};
use aldis_signal::time::Timestamp;

use crate::corpus::rng::Rng;

/// One look in so many renders and parses a view that must be right, instead of comparing states.
const CLOSELY_EVERY: u64 = 64;

/// A state file without a disk.
#[derive(Debug, Default)]
pub(super) struct File {
    content: Content,
    glances: u64,
    /// Whether an outsider changed it since it was last written.
    pub(super) meddled: bool,
    /// Whether that change means that the run is to end.
    pub(super) cancelled: bool,
}

#[derive(Debug, Default)]
enum Content {
    #[default]
    Absent,
    /// What this state's view says: only rendered when somebody looks closely.
    View(Rc<State>),
    Text(String),
}

impl File {
    /// There is none yet. The number says which of the looks at it are close ones.
    pub(super) fn new(number: u64) -> Self {
        Self { glances: number % CLOSELY_EVERY, ..Self::default() }
    }

    pub(super) fn text(&self) -> Option<String> {
        match &self.content {
            Content::Absent => None,
            Content::View(state) => Some(state.render_view(None)),
            Content::Text(text) => Some(text.clone()),
        }
    }

    /// Returns the text of a file that may tell of a run.
    pub(super) fn news(&mut self) -> Option<String> {
        self.glances += 1;
        match &self.content {
            Content::View(state) if !state.is_live() => {
                self.glances.is_multiple_of(CLOSELY_EVERY).then(|| state.render_view(None))
            }
            _ => self.text(),
        }
    }

    /// Compares the file with a run, as the hook does. `written` says whether its absence means
    /// anything.
    pub(super) fn inspect(&mut self, state: &Rc<State>, written: bool) -> StateFileCheck {
        self.glances += 1;
        let closely = self.glances.is_multiple_of(CLOSELY_EVERY);
        match &self.content {
            Content::Absent if written => StateFileCheck::Changed(Box::new(state_file::deleted())),
            Content::Absent => StateFileCheck::Unchanged,
            Content::View(shown) if !closely && same_view(shown, state) => {
                StateFileCheck::Unchanged
            }
            Content::View(shown) => state_file::compare(&shown.render_view(None), state),
            Content::Text(text) => state_file::compare(text, state),
        }
    }

    /// Writes the view. Fails with what is wrong with the result.
    pub(super) fn write(&mut self, state: &Rc<State>) -> Result<(), String> {
        if let Content::Text(text) = &self.content {
            let Ok(view) = View::parse(text) else {
                // What cannot be understood is left alone.
                return Ok(());
            };
            let foreign = text.contains(FOREIGN);
            let rendered = state.render_view(Some(view));
            if foreign && !rendered.contains(FOREIGN) {
                return Err(format!("a member of another tool is lost: {rendered}"));
            }
            shows(&rendered, state)?;
        }
        self.content = Content::View(Rc::clone(state));
        (self.meddled, self.cancelled) = (false, false);
        Ok(())
    }

    /// A human repairs what cannot be read.
    pub(super) fn mend(&mut self, state: &Rc<State>) {
        if self.text().is_some_and(|text| View::parse(&text).is_err()) {
            self.content = Content::View(Rc::clone(state));
            (self.meddled, self.cancelled) = (false, false);
        }
    }

    /// Somebody else changes the file: deletes it, ends the run, edits a member, adds their own.
    pub(super) fn meddle(&mut self, rng: &mut Rng) {
        let Some(text) = self.text() else { return };
        let changed = match rng.below(12) {
            0 => {
                self.content = Content::Absent;
                (self.meddled, self.cancelled) = (true, true);
                return;
            }
            1 => text.replacen("\"active\": true", "\"active\": false", 1),
            2 => text.replacen("\"iteration\": ", "\"iteration\": 1", 1),
            3 => text.replacen("\"phase\": \"", "\"phase\": \"x", 1),
            4 => "<<<<<<< HEAD".to_owned(),
            5..9 => text.replacen('{', &format!("{{\n  {FOREIGN},"), 1),
            _ => text.replacen("\"max_iterations\": ", "\"max_iterations\": 4", 1),
        };
        // Whoever edits a view that says so leaves a file that says so.
        self.cancelled |= changed.contains("\"active\": false");
        self.meddled = true;
        self.content = Content::Text(changed);
    }

    /// Another tool starts a run by writing the file.
    pub(super) fn found(&mut self, rng: &mut Rng, now: Timestamp, session: Option<&str>) {
        let phase = rng.pick(&["init", "planning", "execution", "qa", "reflect", "warp"]);
        let iteration = rng.pick(&[0, 1, 3, 19, 60]);
        let most = rng.pick(&["20", "3", "500", "0", "\"many\""]);
        let started = if rng.chance(90) { now.to_string() } else { "yesterday".to_owned() };
        let session = match session {
            Some(session) => format!("\"{session}\""),
            None => "null".to_owned(),
        };
        let heard = format!("{{\"signal\": \"INIT_COMPLETE\", \"detected_at\": \"{now}\"}}");
        let heard = if rng.chance(30) { format!("{heard}, {heard}") } else { heard };
        self.content = Content::Text(format!(
            "{{\n  \"schema_version\": \"2.0\",\n  \"active\": true,\n  \"phase\": \"{phase}\",\n  \
             \"iteration\": {iteration},\n  \"max_iterations\": {most},\n  \"started_at\": \
             \"{started}\",\n  \"task_description\": \"Theirs\",\n  \"session_id\": {session},\n  \
             \"config\": {{\"skip_qa\": false, \"skip_review\": true}},\n  \"signals\": \
             {{\"detected_signals\": [{heard}]}},\n  {FOREIGN}\n}}"
        ));
        (self.meddled, self.cancelled) = (true, false);
    }
}

/// Whether two states have the same view, member by member.
fn same_view(one: &Rc<State>, other: &Rc<State>) -> bool {
    Rc::ptr_eq(one, other)
        || one.active == other.active
            && one.iteration == other.iteration
            && one.phase == other.phase
            && one.last_checked == other.last_checked
            && one.phase_started_at == other.phase_started_at
            && one.started_at == other.started_at
            && one.completed_at == other.completed_at
            && one.max_iterations == other.max_iterations
            && one.session == other.session
            && one.exit_reason == other.exit_reason
            && one.last_error == other.last_error
            && one.detected == other.detected
            && one.completed == other.completed
            && one.durations == other.durations
            && one.task == other.task
            && one.config == other.config
            && one.pipeline == other.pipeline
}

/// A member of another tool, as it must survive.
const FOREIGN: &str = "\"theirs\": 12345678901234567890123";

/// Checks that a rendered view parses back and shows this state.
pub(super) fn shows(text: &str, state: &State) -> Result<(), String> {
    let view = View::parse(text).map_err(|error| format!("{error}: {text}"))?;
    let edits = view.edits(state);
    if edits.is_empty() { Ok(()) } else { Err(format!("{} differ: {text}", edits.join(", "))) }
}
