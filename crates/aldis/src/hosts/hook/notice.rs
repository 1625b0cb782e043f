//! What the user is told in the session: that a phase ended and the next began, that the run is
//! complete, or why the agent was let go before its end.

use aldis_machine::Decision;
use aldis_machine::phases::{Rule, State};
use aldis_store::RunId;

use crate::hosts::Host;
use crate::view::display;

/// How much of an agent's error is shown.
const ERROR_MAX: usize = 160;

/// Returns the message about a decision, if the user should know.
pub(super) fn text(
    run: &RunId,
    state: &State,
    decision: &Decision,
    host: Host,
    block_limit: Option<u32>,
) -> Option<String> {
    let phase = state.failed_in().unwrap_or_else(|| state.phase());
    let count = match state.position() {
        Some((_, 1)) | None => String::new(),
        Some((at, of)) => format!(", {at} of {of}"),
    };
    let error = || {
        let error = state.last_error().map_or("", |error| &error.message);
        display::excerpt(error.trim_end_matches('.'), ERROR_MAX)
    };
    // Agents end their questions themselves.
    let asked = || match error() {
        error if error.ends_with(['?', '!', '…']) => error,
        error => error + ".",
    };
    let what = match Rule::of_stored(&decision.rule, &decision.summary)? {
        Rule::AllPhasesComplete | Rule::AutoComplete => "is complete".to_owned(),
        Rule::StartPromptDelivered => format!("works in this session: phase {phase}{count}"),
        Rule::PhaseComplete => {
            return Some(format!("aldis: run {run}: {}{count}.", decision.summary));
        }
        Rule::StoppedAfterPhase => {
            format!("waits before phase {phase}{count}. Send a prompt to start it")
        }
        Rule::RecoverableError => {
            let id = state.question().map_or("", |question| &question.id);
            let answer = format!("aldis answer {id} TEXT --run {run}");
            format!("needs you in phase {phase}: {} Answer with a prompt, or: {answer}", asked())
        }
        Rule::Stale => {
            "was left: no activity for too long. Continue it: aldis auto resume".to_owned()
        }
        Rule::IterationsUsedUp => format!(
            "failed in phase {phase}: its signal is missing after {} stops. Continue it: aldis \
             auto resume",
            state.max_iterations()
        ),
        Rule::CriticalError => format!("failed in phase {phase}: {}. See: aldis why", error()),
        Rule::Capped => {
            let title = host.title();
            let limit = block_limit.map_or_else(
                || "after too many blocked stops in a row".to_owned(),
                |limit| format!("{title} allows only {limit} blocked stops in a row"),
            );
            format!("is paused, not finished: {limit}. Send a prompt to continue")
        }
        _ => return None,
    };
    Some(format!("aldis: run {run} {what}."))
}
