//! The machine under test, and the bugs that can be planted in it and in whoever keeps it.
//!
//! A bug changes what the machine or its keeper does, never what the simulator checks.

use std::time::Duration;

use aldis::engine::channel_log::Kept;
use aldis_machine::turns::{Effect, Event, Floor, Outcome, Reason, State, Verdict};
use aldis_signal::time::Timestamp;

/// A mistake that somebody could make.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Bug {
    /// A request is answered although the write failed.
    AnswerBeforeCommit,
    /// The same request is taken twice.
    TakenTwice,
    /// After a timeout nobody sets the alarm of the next turn.
    AlarmForgotten,
    /// What was due while the server was down counts as any timeout.
    RecoveryForgotten,
    /// What is to be posted is lost with the server.
    PostLost,
    /// An alarm ends a turn that still has time.
    EarlyTimeout,
    /// The words of an agent whose turn is over count as those of the one after it.
    LateCounts,
    /// The words of an agent whose turn is over are not posted.
    LateLost,
    /// A timeout is announced twice.
    NoticeTwice,
    /// One agent of the queue is left out.
    OneSkipped,
    /// What follows the end of a turn is posted all the same.
    BatchGoesOn,
    /// A channel in which nobody speaks never rests.
    NeverRests,
    /// Whoever talks has more time.
    DeadlineMoves,
    /// An agent that is removed keeps the floor.
    GhostFloor,
    /// Anybody can end anybody's turn.
    AnyoneEnds,
}

impl Bug {
    /// Every bug there is.
    pub const ALL: [Self; 15] = [
        Self::AnswerBeforeCommit,
        Self::TakenTwice,
        Self::AlarmForgotten,
        Self::RecoveryForgotten,
        Self::PostLost,
        Self::EarlyTimeout,
        Self::LateCounts,
        Self::LateLost,
        Self::NoticeTwice,
        Self::OneSkipped,
        Self::BatchGoesOn,
        Self::NeverRests,
        Self::DeadlineMoves,
        Self::GhostFloor,
        Self::AnyoneEnds,
    ];
}

/// Takes one event, as the real machine does or with a bug. Returns when to wake it, where that has
/// changed.
pub(super) fn take(
    bug: Option<Bug>,
    state: &mut State,
    now: Timestamp,
    event: &Event,
) -> (Kept, Option<Option<Timestamp>>) {
    let Some(bug) = bug else { return kept(state.on_event(now, event)) };
    let before = state.clone();
    let event = misread(bug, state, event.clone());
    let now = if bug == Bug::EarlyTimeout && matches!(event, Event::Wake { .. }) {
        now.after(Duration::from_secs(2))
    } else {
        now
    };
    let mut outcome = state.on_event(now, &event);
    misjudge(bug, &before, state, &event, &mut outcome);
    let (kept, wake) = kept(outcome);
    // A state that was tampered with wants another alarm than the machine said.
    let moved = kept.rule.is_some() && state.next_wake() != before.next_wake();
    (kept, if moved { Some(state.next_wake()) } else { wake })
}

/// What whoever keeps the machine makes of an outcome: alarms are no effects.
pub(super) fn kept(outcome: Outcome) -> (Kept, Option<Option<Timestamp>>) {
    let Outcome { mut effects, replies, decision, .. } = outcome;
    let wake = effects.iter().find_map(|effect| match effect {
        Effect::Wake { at, .. } => Some(*at),
        _ => None,
    });
    effects.retain(|effect| !matches!(effect, Effect::Wake { .. }));
    let rule = decision.map(|decision| decision.rule);
    (Kept { effects, replies, rule, repeated: false }, wake)
}

/// Bugs in understanding what happened.
fn misread(bug: Bug, state: &State, event: Event) -> Event {
    let Event::Said { agent, turn, messages } = event else { return event };
    let holder = state.active_agent().map(str::to_owned);
    let last = state.agents.get(&agent).and_then(|known| known.last_ended);
    let late = matches!(last, Some(Reason::Timeout | Reason::Recovery));
    let ends = messages.iter().any(|message| message.signal.is_some());
    match (bug, holder) {
        (Bug::LateCounts, Some(holder)) if late && ends => {
            Event::Said { agent: holder, turn: None, messages }
        }
        (Bug::AnyoneEnds, Some(holder)) if !late && ends => {
            Event::Said { agent: holder, turn: None, messages }
        }
        _ => Event::Said { agent, turn, messages },
    }
}

/// Bugs in what comes of it.
fn misjudge(bug: Bug, before: &State, state: &mut State, event: &Event, outcome: &mut Outcome) {
    match bug {
        Bug::LateLost => {
            for reply in &mut outcome.replies {
                if reply.reason == Some(Verdict::LateSignal) {
                    reply.posted = false;
                    outcome.effects.retain(|effect| !matches!(effect, Effect::Post { .. }));
                }
            }
        }
        Bug::NoticeTwice => {
            let system = |effect: &&Effect| matches!(effect, Effect::Post { agent, .. } if agent == Effect::SYSTEM);
            let notice = outcome.effects.iter().find(system).cloned();
            outcome.effects.extend(notice.filter(|_| matches!(event, Event::Wake { .. })));
        }
        Bug::OneSkipped => {
            if let (Event::Wake { .. }, Floor::Held(turn)) = (event, &mut state.floor)
                && state.turn > before.turn
                && state.queue.len() > 2
            {
                state.index = (state.index + 1) % state.queue.len();
                turn.agent.clone_from(&state.queue[state.index]);
            }
        }
        Bug::BatchGoesOn => {
            for reply in &mut outcome.replies {
                if reply.reason == Some(Verdict::AfterTurnEnd) {
                    reply.reason = None;
                    reply.posted = true;
                }
            }
        }
        Bug::NeverRests => state.silent_turns = 0,
        Bug::DeadlineMoves => {
            if let (Event::Said { .. }, Floor::Held(turn)) = (event, &mut state.floor)
                && state.turn == before.turn
            {
                turn.deadline = turn.deadline.after(Duration::from_secs(1));
            }
        }
        Bug::GhostFloor if matches!(event, Event::Remove { .. }) && state.turn > before.turn => {
            state.floor = before.floor.clone();
        }
        _ => {}
    }
}
