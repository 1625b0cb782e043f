//! What the user is told in the session when a run ends or the agent is let go before its end.

use aldis_machine::phases::{ExitReason, State};
use aldis_store::RunId;

use crate::hosts::Host;

/// Returns the message about a stop that was let go, if the user should know.
pub(super) fn text(
    run: &RunId,
    state: &State,
    host: Host,
    block_limit: Option<u32>,
) -> Option<String> {
    let phase = state.failed_in.as_deref().unwrap_or(&state.phase);
    let what = match state.exit_reason {
        Some(ExitReason::AllPhasesComplete | ExitReason::AutoCompleteSignal) => {
            return Some(format!("aldis: run {run} is complete."));
        }
        Some(ExitReason::StaleState) => {
            "was left: no activity for too long. Continue it: aldis auto resume".to_owned()
        }
        Some(ExitReason::MaxIterationsReached) => format!(
            "failed in phase {phase}: its signal is missing after {} stops. Continue it: aldis \
             auto resume",
            state.max_iterations
        ),
        Some(ExitReason::CriticalError) => {
            format!("failed in phase {phase}: the agent reported an error. See: aldis why")
        }
        None if state.block_limit.capped => {
            let title = host.title();
            let limit = block_limit.map_or_else(
                || "after too many blocked stops in a row".to_owned(),
                |limit| format!("{title} allows only {limit} blocked stops in a row"),
            );
            format!("is paused, not finished: {limit}. Send a prompt to continue")
        }
        Some(ExitReason::UserCancelled) | None => return None,
    };
    Some(format!("aldis: run {run} {what}."))
}
