//! Phases: never backwards, none left out, none complete that nobody completed.

use aldis_machine::phases::{COMPLETE, Event, ExitReason, SaidSignal, State};
use aldis_signal::Meaning;

use super::{Books, Check, Seen, hold, signals};

impl Books {
    /// Judges where the run went, by what was said.
    pub(super) fn progress(&mut self, seen: &Seen<'_>) -> Check {
        let Seen { before, after, event, .. } = seen;
        let said = signals(before, event);
        let result = match event {
            Event::Stop(_) | Event::SubagentStop { .. } => self.walked(before, after, &said),
            Event::Resume { .. } => {
                let same = before.failed_in.as_ref().unwrap_or(&before.phase);
                hold(after.phase == *same, "resume_keeps_the_phase", || {
                    format!("{} after {same}", after.phase)
                })
            }
            _ => hold(after.phase == before.phase, "only_signals_move", || {
                format!("{} after {}", after.phase, before.phase)
            }),
        };
        result?;
        self.ends(before, after, event, &said)?;
        heard(before, after, event, &said)?;
        for (place, signal) in said.iter().enumerate() {
            if let Some(agent) = &signal.agent
                && self.counts(before, &said, place)
            {
                self.heard.insert((agent.clone(), signal.name.clone()));
            }
        }
        Ok(())
    }

    /// Every phase that was passed was ended by a signal that counts, in order.
    fn walked(&mut self, before: &State, after: &State, said: &[&SaidSignal]) -> Check {
        let target = match after.exit_reason {
            Some(ExitReason::AutoCompleteSignal) => after.left_out.first(),
            Some(ExitReason::CriticalError | ExitReason::MaxIterationsReached) => {
                after.failed_in.as_ref()
            }
            _ => Some(&after.phase),
        };
        let target = target.map_or(COMPLETE, String::as_str);
        let mut at = before.phase.clone();
        for (place, signal) in said.iter().enumerate() {
            if at == target && !after.completed.contains(target) {
                break;
            }
            if self.counts(before, said, place) && ends(before, &at, signal) {
                self.completed.insert(at.clone());
                if at == target {
                    break;
                }
                let next = before.pipeline.next(&at, &before.config.skip).unwrap_or(COMPLETE);
                at = next.to_owned();
            }
        }
        // What a sub-agent completed last is ended by the main agent's stop.
        let handed_over = target == COMPLETE && before.handed_over && self.completed.contains(&at);
        let last = before.pipeline.next(&at, &before.config.skip) == Some(COMPLETE);
        hold(at == target || handed_over && last, "phases_in_order", || {
            let names: Vec<&str> = said.iter().map(|signal| &*signal.name).collect();
            format!("from {} to {target} by {names:?}, which lead to {at}", before.phase)
        })
    }

    /// Whether a signal may change anything: said in time, for the first time, not taken back.
    fn counts(&self, before: &State, said: &[&SaidSignal], place: usize) -> bool {
        let signal = said[place];
        let late = signal.at.is_some_and(|at| {
            at < before.phase_started_at || before.heard_until.is_some_and(|until| at <= until)
        });
        let again = match &signal.agent {
            Some(agent) => self.heard.contains(&(agent.clone(), signal.name.clone())),
            None => false,
        };
        let about = |other: &SaidSignal| match (before.pipeline.ended_by(&other.name), other) {
            (Some(phase), _) => phase.name.clone(),
            (None, SaidSignal { meaning: Meaning::Failed, phase: Some(phase), .. }) => {
                phase.clone()
            }
            (None, _) => before.phase.clone(),
        };
        let subject = about(signal);
        // Success and failure about one thing in one message: neither is a success.
        let against = |others: &[&SaidSignal], meaning: Meaning| {
            others.iter().any(|other| {
                other.meaning == meaning
                    && other.message == signal.message
                    && about(other) == subject
            })
        };
        let denied = match signal.meaning {
            Meaning::Done => against(said, Meaning::Failed),
            Meaning::Failed => against(&said[place..], Meaning::Done),
            _ => false,
        };
        !late && !again && !denied
    }

    /// A success was earned, and every other end has its own reason.
    fn ends(&self, before: &State, after: &State, event: &Event, said: &[&SaidSignal]) -> Check {
        let Some(reason) = after.exit_reason.filter(|_| before.active) else { return Ok(()) };
        let main = |name: &str| said.iter().any(|s| s.name == name && !s.subagent);
        let earned = match reason {
            ExitReason::AllPhasesComplete => {
                let mut phase = self.first.clone();
                let mut all = true;
                while phase != COMPLETE {
                    all &= self.completed.contains(&phase);
                    let next = before.pipeline.next(&phase, &before.config.skip);
                    phase = next.unwrap_or(COMPLETE).to_owned();
                }
                all
            }
            ExitReason::AutoCompleteSignal => before.pipeline.finish.as_deref().is_some_and(main),
            ExitReason::CriticalError => said.iter().any(|signal| {
                signal.meaning == Meaning::Failed
                    && !signal.subagent
                    && signal.recoverable == Some(false)
            }),
            ExitReason::MaxIterationsReached => before.iteration >= before.max_iterations,
            ExitReason::StaleState => matches!(event, Event::Stop(_)),
            ExitReason::UserCancelled => matches!(event, Event::Cancel { .. }),
        };
        hold(earned, "an_end_is_earned", || format!("{reason:?} by {event:?}"))
    }
}

/// Whether this signal ends this phase.
fn ends(state: &State, phase: &str, signal: &SaidSignal) -> bool {
    match state.pipeline.phase(phase).map(|phase| &phase.signal) {
        Some(Some(name)) => *name == signal.name,
        // A signal that ends the whole run ends no phase of it.
        Some(None) => {
            signal.meaning == Meaning::Done && state.pipeline.finish.as_ref() != Some(&signal.name)
        }
        None => false,
    }
}

/// The plain case must work: the main agent says the expected thing, once, now.
fn heard(before: &State, after: &State, event: &Event, said: &[&SaidSignal]) -> Check {
    let (Event::Stop(_), [signal]) = (event, said) else { return Ok(()) };
    let plain = signal.at.is_none() && !signal.subagent && ends(before, &before.phase, signal);
    let stale = after.exit_reason == Some(ExitReason::StaleState);
    hold(!plain || stale || after.phase != before.phase, "signals_are_heard", || {
        format!("{} in phase {} changed nothing", signal.name, before.phase)
    })
}
