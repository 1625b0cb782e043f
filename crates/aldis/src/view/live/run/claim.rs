//! What became of a claim, in the live view.

use aldis_machine::Decision;
use aldis_machine::proof::Acceptance;
use aldis_machine::run::{Rule, State};
use aldis_signal::Via;
use aldis_signal::time::Timestamp;

use super::{RunReporter, TITLE_MAX, excerpt};
use crate::view::paint::Tone;

/// How many lines of a failed check are shown, and how many if more is asked for.
const CHECK_LINES: [usize; 2] = [10, 40];

/// The checks of a run in few words: the command of the only one, or the names of several.
pub(super) fn checks(state: &State) -> Option<String> {
    match &*state.setup().config.proof.checks {
        [] => None,
        [only] => Some(only.command.clone()),
        several => {
            let names: Vec<&str> = several.iter().map(|check| &*check.name).collect();
            Some(names.join(", "))
        }
    }
}

/// The name of a check, if it has one.
pub(super) fn name(name: &str) -> Option<String> {
    (!name.is_empty()).then(|| name.to_owned())
}

impl RunReporter {
    /// Shows what became of a claim, or that there was none.
    pub(super) fn claim(
        &mut self,
        now: Timestamp,
        decision: &Decision,
        state: &State,
        goes_on: bool,
    ) {
        let Some(rule) = Rule::ALL.iter().find(|rule| rule.as_str() == decision.rule) else {
            return;
        };
        let Some((tone, text)) = self.line(*rule, decision, state, goes_on) else { return };
        self.output.show(now, tone, &text);
        if *rule == Rule::CheckFailed {
            let output = decision.evidence.iter().find(|seen| seen.what == "output");
            let lines: Vec<&str> =
                output.map_or("", |seen| &seen.quote).trim_end().lines().collect();
            let most = CHECK_LINES[usize::from(self.output.is_verbose())];
            let shown = lines[lines.len().saturating_sub(most)..].join("\n");
            self.output.show(now, Some(Tone::Dim), &shown);
        }
    }

    fn line(
        &mut self,
        rule: Rule,
        decision: &Decision,
        state: &State,
        goes_on: bool,
    ) -> Option<(Option<Tone>, String)> {
        let claim = decision.evidence.iter().rfind(|seen| seen.what == "signal");
        let claims = match claim.map(|claim| claim.via) {
            Some(Via::Call) => "claims done (by call)",
            _ => "claims done",
        };
        let back = |what: &str| if goes_on { format!(". {what}") } else { String::new() };
        let verify = excerpt(&self.verify, TITLE_MAX);
        let because = state.last_refusal().map_or("", |refused| &refused.because);
        let several = state.setup().config.proof.checks.len() > 1;
        Some(match rule {
            Rule::Done if state.setup().config.has_check() => {
                let remarks = remarks(state);
                (Some(Tone::Good), format!("{claims} → {verify} passed{remarks}"))
            }
            Rule::Done => {
                (Some(Tone::Good), format!("{claims} → accepted: no check is configured"))
            }
            Rule::CheckFailed if !several => {
                let code = self.checked.take().map(|code| format!(" (exit {code})"));
                let code = code.unwrap_or_default();
                let text =
                    format!("{claims} → {verify} failed{code}{}", back("Sent the output back."));
                (Some(Tone::Bad), text)
            }
            Rule::CheckFailed => {
                let text =
                    format!("{claims} → refused: {because}{}", back("Sent the output back."));
                (Some(Tone::Bad), text)
            }
            Rule::ClaimRefused | Rule::ProofRefused => {
                let text = format!("{claims} → refused: {because}{}", back("Told the agent."));
                (Some(Tone::Bad), text)
            }
            Rule::Contradiction => {
                (Some(Tone::Bad), "reports success after failure in one message".to_owned())
            }
            Rule::IterationEnded => {
                let hint = state.last_near_miss().map(|hint| format!(": {hint}"));
                let text = format!("stopped without claiming done{}", hint.unwrap_or_default());
                (Some(Tone::Warn), text)
            }
            _ => return None,
        })
    }
}

/// What was found although the claim holds.
fn remarks(state: &State) -> String {
    let verdict = state.proof().verdict().filter(|it| it.acceptance == Acceptance::Accepted);
    match verdict.map(|verdict| verdict.because()) {
        Some(because) if !because.is_empty() => format!("; {because}"),
        _ => String::new(),
    }
}
