//! People in other processes: they pause, resume, answer, tell and abort, whoever drives the run.

use aldis_engine::{Engine, EngineError, Snapshot};
use aldis_machine::HumanCommand;
use aldis_store::RunId;

use super::fate::{Fate, SharedFate};

/// Somebody wants something of a run. `helpful` people want only that it goes on.
pub(super) fn act(engine: &Engine, run: &RunId, shared: &SharedFate, helpful: bool) {
    let Ok(Some(snapshot)) = engine.snapshot(run) else { return };
    let (now, command) = {
        let mut fate = shared.lock();
        let Some(command) = command(&mut fate, &snapshot, helpful) else { return };
        fate.event(format_args!("somebody: {command:?}"));
        (fate.now, command)
    };
    match engine.command(now, run, &command, "`aldis`", None) {
        Ok(answer) => {
            let mut fate = shared.lock();
            fate.changed = true;
            if let HumanCommand::Tell { text, .. } = command
                && !answer.decisions.is_empty()
            {
                fate.acknowledged.insert(text);
            }
        }
        Err(EngineError::NotPossible(why)) => shared.note(format_args!("not possible: {why}")),
        Err(error) => shared.stop("commands_are_understood", format!("{command:?}: {error}")),
    }
}

fn command(fate: &mut Fate, snapshot: &Snapshot, helpful: bool) -> Option<HumanCommand> {
    let question = snapshot.questions().into_iter().next();
    if let Some(question) = question.filter(|_| helpful || fate.rng.chance(50)) {
        let words = ["go on", "yes", "retry", "the second one"];
        let options: Vec<&str> = question.options.iter().map(|option| &**option).collect();
        let text = match options.is_empty() || helpful || fate.rng.chance(50) {
            true => fate.rng.pick(&words),
            false => fate.rng.pick(&options),
        };
        return Some(HumanCommand::Answer { id: question.id, text: text.to_owned() });
    }
    if helpful {
        return Some(HumanCommand::Resume);
    }
    Some(match fate.rng.below(100) {
        0..25 => HumanCommand::Pause,
        25..60 => HumanCommand::Resume,
        60..90 => HumanCommand::Tell { text: fate.text(), to: None },
        90..93 => HumanCommand::Abort,
        93..96 => HumanCommand::Answer { id: "q99".to_owned(), text: "what?".to_owned() },
        _ => HumanCommand::Tell { text: fate.text(), to: Some("nobody".to_owned()) },
    })
}
