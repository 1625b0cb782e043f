//! What humans say and want.

use super::config::{Config, HumanInterrupt, TurnOrder};
use super::event::{Effect, Outcome, Words};
use super::floor::Floor;
use super::state::State;
use aldis_signal::time::Timestamp;

/// How many words of humans wait for a turn at most.
const HELD_MAX: usize = 32;

pub(super) fn on_human(
    state: &mut State,
    now: Timestamp,
    text: &str,
    from: Option<&str>,
    to: Option<&str>,
) -> Outcome {
    let words = Words { from: from.unwrap_or("human").to_owned(), text: text.to_owned() };
    if let Some(to) = to
        && !state.queue.iter().any(|queued| queued == to)
    {
        return Outcome::refused(format!("{to} is not in the queue"));
    }
    if !state.takes_turns() {
        return give_all(state, words, "the channel has no turns");
    }
    let mut outcome = Outcome::default();
    if matches!(state.floor, Floor::Paused { turn: None, .. }) {
        hold(state, words);
        go_on(state, now, &mut outcome);
        return state
            .decide(outcome, "turns/resumed", "Let the channel go on")
            .because("a human spoke")
            .next("the next agent is told what was said");
    }
    let active = state.floor.active().map(|turn| turn.agent.clone());
    match (state.config.human_interrupt, active) {
        (HumanInterrupt::Parallel, _) => give_all(state, words, "`human_interrupt` is `parallel`"),
        (HumanInterrupt::Inject, Some(active)) => {
            let to = vec![to.map_or(active, str::to_owned)];
            let whom = to.join(", ");
            outcome.effects.push(Effect::Deliver { to, words });
            state
                .decide(outcome, "turns/inject", format!("Gave a human's words to {whom}"))
                .because("`human_interrupt` is `inject`")
                .next("the turn goes on")
        }
        (HumanInterrupt::Interrupt, Some(active)) => {
            interrupt(state, now, to.unwrap_or(&active), words)
        }
        (HumanInterrupt::Queue, _) | (_, None) => {
            if !hold(state, words) {
                return Outcome::refused(format!("{HELD_MAX} words wait already"));
            }
            state
                .decide(outcome, "turns/held", "Kept a human's words for the next turn")
                .because("nobody is interrupted")
                .next("whoever has the floor next is told")
        }
    }
}

fn give_all(state: &State, words: Words, because: &str) -> Outcome {
    let to = state.queue.clone();
    let effects = vec![Effect::Deliver { to, words }];
    state
        .decide(
            Outcome { effects, ..Outcome::default() },
            "turns/parallel",
            "Gave a human's words to all",
        )
        .because(because)
        .next("no turn changes")
}

/// The turn waits until whoever is asked has answered.
fn interrupt(state: &mut State, now: Timestamp, asked: &str, words: Words) -> Outcome {
    let until = now.after(state.config.timeout(state.personas.get(asked)));
    let Some((turn, left_ms)) = state.set_aside(now) else { return Outcome::default() };
    let summary = format!("Let the turn of {} wait", turn.agent);
    state.floor = Floor::Interrupted { turn, left_ms, asked: asked.to_owned(), until };
    let effects = vec![Effect::Deliver { to: vec![asked.to_owned()], words }];
    state
        .decide(Outcome { effects, ..Outcome::default() }, "turns/interrupt", summary)
        .because("a human spoke and `human_interrupt` is `interrupt`")
        .next(format!("it goes on when {asked} has answered, at the latest at {until}"))
}

/// Keeps words for the next turn; `false` if there are too many.
fn hold(state: &mut State, words: Words) -> bool {
    let room = state.held.len() < HELD_MAX;
    if room {
        state.held.push(words);
    }
    room
}

pub(super) fn on_pause(state: &mut State, now: Timestamp, by: &str) -> Outcome {
    if !state.takes_turns() || matches!(state.floor, Floor::Paused { .. }) {
        return Outcome::refused("there is no turn to pause");
    }
    let (turn, left_ms) = match state.set_aside(now) {
        Some((turn, left_ms)) => (Some(turn), left_ms),
        None => (None, 0),
    };
    state.floor = Floor::Paused { turn, left_ms, why: format!("{by} paused it") };
    state
        .decide(Outcome::default(), "turns/paused", "Let the channel rest")
        .because(format!("{by} asked for it"))
        .next("resume it when you like; the turn keeps the time it had left")
}

pub(super) fn on_resume(state: &mut State, now: Timestamp, by: &str) -> Outcome {
    let mut outcome = Outcome::default();
    if !go_on(state, now, &mut outcome) {
        return Outcome::refused("nothing waits to go on");
    }
    state
        .decide(outcome, "turns/resumed", "Let the channel go on")
        .because(format!("{by} asked for it"))
        .next("whoever has the floor is told")
}

/// Lets what waits go on; `false` if nothing does.
fn go_on(state: &mut State, now: Timestamp, outcome: &mut Outcome) -> bool {
    let paused = match &state.floor {
        Floor::Paused { .. } => true,
        Floor::Interrupted { .. } => false,
        Floor::Free | Floor::Held(_) => return false,
    };
    state.silent_turns = 0;
    if !state.take_up(now) {
        state.begin_next(now, state.index, outcome);
    } else if let (true, Some(turn)) = (paused, state.floor.active()) {
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
    state.end_turn(now, super::event::Reason::Manual);
    state.floor = Floor::Free;
    state.closed = true;
    state
        .decide(Outcome::default(), "turns/closed", "Closed the channel")
        .because(format!("{by} asked for it"))
        .next("open another one when you like")
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
            state.end_turn(now, super::event::Reason::Manual);
            state.floor = Floor::Free;
        }
        (false, true) => state.begin_next(now, state.index, &mut outcome),
        // Nobody will name the next any more.
        (true, true)
            if matches!(state.floor, Floor::Free) && config.turn_order != TurnOrder::Manual =>
        {
            state.begin_next(now, state.index, &mut outcome);
        }
        (true, true) | (false, false) => {}
    }
    if config.turn_order == TurnOrder::Priority {
        state.sort_by_priority();
    }
    state
        .decide(outcome, "turns/configured", "Changed how the channel is run")
        .because("somebody asked for it")
        .next("a turn that goes on keeps its deadline")
}
