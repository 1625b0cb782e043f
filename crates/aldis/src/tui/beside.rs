//! What is read of the one run that is open: its story, and what its agents write.

use std::path::{Path, PathBuf};
use std::time::Duration;

use aldis_engine::Engine;
use aldis_signal::Rules;
use aldis_signal::time::Timestamp;
use aldis_store::RunId;

use super::model::ViewInput;
use crate::agents::output_log::LoggedAgent;
use crate::app::output::{OutputReader, Written};
use crate::app::story::Story;
use crate::view::run_view::RunView;

/// How often it is read.
const LOOK_EVERY: Duration = Duration::from_millis(500);
/// How many pieces of output are taken at once: a view that reads for long takes no keys.
const PIECES_MAX: usize = 64;

/// Reads it.
pub(super) struct Beside<'r> {
    engine: &'r Engine,
    state: PathBuf,
    rules: &'r Rules,
    story: Option<(RunId, Story)>,
    output: Option<(RunId, OutputReader<'r>, Option<LoggedAgent>)>,
    looked: Option<Timestamp>,
}

impl<'r> Beside<'r> {
    pub(super) fn new(engine: &'r Engine, state: &Path, rules: &'r Rules) -> Self {
        let state = state.to_owned();
        Self { engine, state, rules, story: None, output: None, looked: None }
    }

    /// Reads what is new of a run, or of what its agents write. Nothing if it is too soon, or if it cannot
    /// be read now: the next look shows it.
    pub(super) fn look(&mut self, run: &RunId, output: bool, now: Timestamp) -> Option<ViewInput> {
        let is_other = match output {
            true => self.output.as_ref().is_none_or(|(known, ..)| known != run),
            false => self.story.as_ref().is_none_or(|(known, _)| known != run),
        };
        if !is_other && self.looked.is_some_and(|looked| now.since(looked) < LOOK_EVERY) {
            return None;
        }
        self.looked = Some(now);
        if output { Some(self.written(run)) } else { self.told(run, now) }
    }

    fn told(&mut self, run: &RunId, now: Timestamp) -> Option<ViewInput> {
        let snapshot = self.engine.snapshot(run).ok()??;
        if self.story.as_ref().is_none_or(|(known, _)| known != run) {
            self.story = Some((run.clone(), Story::new(run.clone())));
        }
        let (_, story) = self.story.as_mut()?;
        story.read(self.engine.store(), &snapshot.run.record.machine).ok()?;
        let told = story.tell(&snapshot, &RunView::new(&snapshot, now), now);
        Some(ViewInput::Story(run.clone(), Box::new(told)))
    }

    fn written(&mut self, run: &RunId) -> ViewInput {
        if self.output.as_ref().is_none_or(|(known, ..)| known != run) {
            let reader = OutputReader::new(&self.state, run, None, Some(self.rules));
            self.output = Some((run.clone(), reader, None));
        }
        let mut lines = Vec::new();
        if let Some((_, reader, last)) = &mut self.output {
            for _ in 0..PIECES_MAX {
                let pieces = reader.read().unwrap_or_default();
                if pieces.is_empty() {
                    break;
                }
                for (agent, piece) in pieces {
                    let Written::Text { text, .. } = piece else { continue };
                    if last.as_ref() != Some(&agent) {
                        lines.extend(heading(&agent));
                        *last = Some(agent);
                    }
                    lines.extend(text.lines().map(str::to_owned));
                }
            }
        }
        ViewInput::Output(run.clone(), lines)
    }
}

/// Who writes, where there are several.
fn heading(agent: &LoggedAgent) -> Option<String> {
    let task = agent.task.as_deref().map(|task| format!(" of {task}")).unwrap_or_default();
    (!agent.role.is_empty()).then(|| format!("── {}{task} ──", agent.role))
}
