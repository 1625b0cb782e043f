//! How and why a run ended, in words that every surface shares.

use aldis_machine::phases::ExitReason;
use aldis_machine::run::{AgentExit, Ending, State};
use aldis_signal::Meaning;
use aldis_signal::redact::redact;

use super::display;

/// How much of the words of an agent or a human is told.
const REASON_MAX: usize = 200;

/// A stable code as words.
pub(super) fn spoken(code: &str) -> String {
    code.replace('_', " ")
}

/// How a supervised run ended.
pub(crate) fn ending_words(ending: Ending) -> String {
    match ending {
        Ending::NeedsHuman => "needs you".to_owned(),
        ending => spoken(ending.as_str()),
    }
}

/// Why it ended, in the agent's own words where there are any.
pub(crate) fn ending_reason(state: &State, ending: Ending) -> Option<String> {
    let said = |meaning: Meaning| {
        let last = state.signals().iter().rfind(|signal| signal.meaning == meaning)?;
        last.text.as_deref()
    };
    let text = match (ending, state.last_exit()) {
        (Ending::Crashed, _) if state.host_error().is_some() => state.host_error(),
        (Ending::NeedsHuman, _) => state.question().map(|question| &*question.text),
        (Ending::Blocked, _) => said(Meaning::Blocked),
        (Ending::Failed, _) => said(Meaning::Failed),
        (Ending::Crashed, Some(AgentExit { code: Some(code), .. })) if *code != 0 => {
            return Some(format!("the agent exited with code {code}"));
        }
        (Ending::Crashed, Some(AgentExit { signal: Some(signal), .. })) => {
            return Some(format!("the agent was ended by signal {signal}"));
        }
        _ => None,
    };
    text.map(|text| display::excerpt(&redact(text), REASON_MAX))
}

/// What a human does next about a run that ended, with the limit that must be raised.
pub(crate) fn ended_remedy(id: &str, state: &State, ending: Ending) -> Option<String> {
    let command = format!("aldis run --continue {id}");
    let config = &state.setup().config;
    Some(match (ending, state.question()) {
        (Ending::Done, _) => return None,
        (Ending::PermissionDenied, _) => state.how_to_allow(),
        (_, Some(question)) => format!("`aldis answer {} TEXT`, then `{command}`", question.id),
        (Ending::IterationsUsedUp, _) => {
            let more = config.max_iterations.saturating_mul(2);
            format!("raise the limit: `{command} --max-iterations {more}`")
        }
        (Ending::OverBudget, _) => {
            let option = match config.max_micro_dollars {
                Some(_) => "--max-cost DOLLARS",
                None => "--max-tokens N",
            };
            format!("raise the limit: `{command} {option}`")
        }
        (Ending::Crashed, _) if state.host_error().is_some() => {
            format!("waiting does not help: check login, account and request, then `{command}`")
        }
        _ => format!("continue it: `{command}`"),
    })
}

/// How a session of phases ended. A good end says only what is out of the ordinary.
pub(super) const fn exit_words(reason: Option<ExitReason>) -> &'static str {
    match reason {
        Some(ExitReason::AllPhasesComplete) => "",
        Some(ExitReason::AutoCompleteSignal) => ": the agent declared the whole run complete",
        Some(ExitReason::CriticalError) => "failed",
        Some(ExitReason::MaxIterationsReached) => "iterations used up",
        Some(ExitReason::StaleState) => "ended for inactivity",
        Some(ExitReason::UserCancelled) => "cancelled",
        None => "ended",
    }
}
