//! What humans send and want.

use super::config::{Config, HumanInterrupt, TurnOrder};
use super::event::{ChannelMessage, Effect, Outcome, TurnEndReason};
use super::holder::TurnHolder;
use super::message::whose_turn;
use super::rule::Rule;
use super::state::State;
use aldis_signal::time::Timestamp;

/// How many messages of humans wait for a turn.
const HELD_MAX: usize = 32;

pub(super) fn on_human(
    state: &mut State,
    now: Timestamp,
    text: &str,
    from: Option<&str>,
    to: Option<&str>,
) -> Outcome {
    let from = from.unwrap_or("human");
    let message = ChannelMessage { from: from.to_owned(), text: text.to_owned() };
    if let Some(to) = to
        && !state.queue.iter().any(|queued| queued == to)
    {
        return Outcome::refused(format!("{to} is not in the queue"));
    }
    if !state.takes_turns() {
        return give_all(state, message, "the channel has no turns");
    }
    let mut outcome = Outcome::default();
    if matches!(state.holder, TurnHolder::Paused { turn: None, .. }) {
        hold(state, message);
        resume_channel(state, now, &mut outcome);
        return state
            .decide(outcome, Rule::ResumedByMessage, "Resumed the channel")
            .because(format!("{from} sent a message"))
            .next("the agent whose turn starts next gets it");
    }
    let active = state.holder.active().map(|turn| turn.agent.clone());
    match (state.config.human_interrupt, active) {
        (HumanInterrupt::Parallel, _) => {
            give_all(state, message, "`human_interrupt` is `parallel`")
        }
        (HumanInterrupt::Inject, Some(active)) => {
            let to = to.map_or(active, str::to_owned);
            let summary = format!("Gave a message of {from} to {to}");
            outcome.effects.push(Effect::Deliver { to: vec![to], message });
            state
                .decide(outcome, Rule::MessageInjected, summary)
                .because("`human_interrupt` is `inject`")
                .next("the turn continues")
        }
        (HumanInterrupt::Interrupt, Some(active)) => {
            interrupt(state, now, to.unwrap_or(&active), message)
        }
        (HumanInterrupt::Queue, _) | (_, None) => {
            let because = match state.config.human_interrupt {
                HumanInterrupt::Queue => "`human_interrupt` is `queue`",
                _ => "no agent is active that could get it",
            };
            if !hold(state, message) {
                return Outcome::refused(format!("{HELD_MAX} messages already wait"));
            }
            state
                .decide(outcome, Rule::MessageHeld, format!("Held a message of {from}"))
                .because(because)
                .next("the agent whose turn starts next gets it")
        }
    }
}

fn give_all(state: &State, message: ChannelMessage, because: &str) -> Outcome {
    let summary = format!("Gave a message of {} to all agents", message.from);
    let effects = vec![Effect::Deliver { to: state.queue.clone(), message }];
    state
        .decide(Outcome { effects, ..Outcome::default() }, Rule::MessageToAll, summary)
        .because(because)
        .next("no turn changes")
}

/// The turn waits until the agent that is asked has answered.
fn interrupt(state: &mut State, now: Timestamp, asked: &str, message: ChannelMessage) -> Outcome {
    let until = now.after(state.config.timeout(state.personas.get(asked)));
    let Some((turn, remaining_ms)) = state.suspend_turn(now) else { return Outcome::default() };
    let summary = format!("Interrupted {}'s turn", turn.agent);
    let because = format!("{} sent a message, and `human_interrupt` is `interrupt`", message.from);
    let asked = asked.to_owned();
    state.holder = TurnHolder::Interrupted { turn, remaining_ms, asked: asked.clone(), until };
    let next = format!("the turn continues when {asked} has answered, at {until} at the latest");
    let effects = vec![Effect::Deliver { to: vec![asked], message }];
    state
        .decide(Outcome { effects, ..Outcome::default() }, Rule::Interrupted, summary)
        .because(because)
        .next(next)
}

/// Keeps a message for the next turn; `false` if there are too many.
fn hold(state: &mut State, message: ChannelMessage) -> bool {
    let room = state.held.len() < HELD_MAX;
    if room {
        state.held.push(message);
    }
    room
}

pub(super) fn on_pause(state: &mut State, now: Timestamp, by: &str) -> Outcome {
    if matches!(state.holder, TurnHolder::Paused { .. }) {
        return Outcome::refused("the channel is already paused");
    }
    if !state.takes_turns() {
        return Outcome::refused("the channel has no turns, so there is nothing to pause");
    }
    let (turn, remaining_ms) = match state.suspend_turn(now) {
        Some((turn, remaining_ms)) => (Some(turn), remaining_ms),
        None => (None, 0),
    };
    let next = match &turn {
        Some(turn) => format!("resume it at any time; {} keeps the time it had left", turn.agent),
        None => "resume it at any time".to_owned(),
    };
    state.holder = TurnHolder::Paused { turn, remaining_ms, why: format!("{by} paused it") };
    state
        .decide(Outcome::default(), Rule::Paused, "Paused the channel")
        .because(format!("requested by {by}"))
        .next(next)
}

pub(super) fn on_resume(state: &mut State, now: Timestamp, by: &str) -> Outcome {
    let mut outcome = Outcome::default();
    if !resume_channel(state, now, &mut outcome) {
        return Outcome::refused("the channel is not paused, so there is nothing to resume");
    }
    let next = whose_turn(state);
    state
        .decide(outcome, Rule::Resumed, "Resumed the channel")
        .because(format!("requested by {by}"))
        .next(next)
}

/// Resumes what waits; `false` if nothing does.
fn resume_channel(state: &mut State, now: Timestamp, outcome: &mut Outcome) -> bool {
    let paused = match &state.holder {
        TurnHolder::Paused { .. } => true,
        TurnHolder::Interrupted { .. } => false,
        TurnHolder::Nobody | TurnHolder::Active(_) => return false,
    };
    state.silent_turns = 0;
    if !state.resume_turn(now) {
        state.start_next(now, state.index, outcome);
    } else if let (true, Some(turn)) = (paused, state.holder.active()) {
        let (agent, deadline) = (turn.agent.clone(), turn.deadline);
        outcome.effects.push(Effect::Notify {
            agent,
            turn: state.turn,
            deadline,
            held: Vec::new(),
        });
    }
    true
}

pub(super) fn on_close(state: &mut State, now: Timestamp, by: &str) -> Outcome {
    state.end_turn(now, TurnEndReason::Manual);
    state.holder = TurnHolder::Nobody;
    state.closed = true;
    state
        .decide(Outcome::default(), Rule::Closed, "Closed the channel")
        .because(format!("requested by {by}"))
        .next("a closed channel stays closed; open another one")
}

pub(super) fn on_configure(state: &mut State, now: Timestamp, config: &Config) -> Outcome {
    if let Err(error) = config.check() {
        return Outcome::refused(error.to_string());
    }
    if let Err(error) = super::state::check_mode(config, state.queue.len()) {
        return Outcome::refused(error.to_string());
    }
    let had_turns = state.takes_turns();
    state.config = config.clone();
    let mut outcome = Outcome::default();
    match (had_turns, state.takes_turns()) {
        (true, false) => {
            state.end_turn(now, TurnEndReason::Manual);
            state.holder = TurnHolder::Nobody;
        }
        (false, true) => state.start_next(now, state.index, &mut outcome),
        // Nobody will name the next any more.
        (true, true)
            if matches!(state.holder, TurnHolder::Nobody)
                && config.turn_order != TurnOrder::Manual =>
        {
            state.start_next(now, state.index, &mut outcome);
        }
        (true, true) | (false, false) => {}
    }
    if config.turn_order == TurnOrder::Priority {
        state.sort_by_priority();
    }
    state
        .decide(outcome, Rule::Configured, "Changed the configuration of the channel")
        .because("requested by a human or a program")
        .next("a running turn keeps its deadline")
}
