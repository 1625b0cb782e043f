//! What agents and humans say and want, at random.

use std::collections::BTreeMap;

use aldis_machine::Evidence;
use aldis_machine::turns::{
    AutoDetect, Config, Event, Heard, HumanInterrupt, Mode, Persona, Position, Start, State,
    TurnBehavior, TurnOrder,
};

use crate::corpus::rng::Rng;

/// Everybody who could ever take part.
const AGENTS: [&str; 6] = ["pm", "dev", "qa", "ops", "ux", "doc"];

/// How a channel begins.
pub(super) fn start(rng: &mut Rng, channel: String) -> Start {
    let config = config(rng, true);
    let most = if config.mode == Some(Mode::Single) { 1 } else { 5 };
    let least = if config.mode == Some(Mode::TurnBased) { 2 } else { 1 };
    let first = rng.below(AGENTS.len());
    let number = rng.between(least, most + 1);
    let agents = (0..number).map(|place| AGENTS[(first + place) % AGENTS.len()].to_owned());
    let agents: Vec<String> = agents.collect();
    let mut personas = BTreeMap::new();
    if rng.chance(50) {
        // Where there are personas, they say who there is.
        for name in AGENTS {
            if rng.chance(60) || agents.iter().any(|agent| agent == name) {
                personas.extend([persona(rng, name)]);
            }
        }
    }
    Start { channel, agents, config, personas }
}

fn persona(rng: &mut Rng, name: &str) -> (String, Persona) {
    let timeout_seconds = rng.chance(50).then(|| 1 + rng.below(60) as u64);
    let behavior = TurnBehavior { timeout_seconds };
    let priority = i64::try_from(rng.below(3)).unwrap_or(0);
    (name.to_owned(), Persona { priority, turn_behavior: behavior, ..Persona::default() })
}

/// How a channel is run.
pub(super) fn config(rng: &mut Rng, new: bool) -> Config {
    let mode = match rng.below(20) {
        0 if new => Some(Mode::Single),
        1..4 if new => Some(Mode::TurnBased),
        4 => Some(Mode::Broadcast),
        5 => Some(Mode::Direct),
        _ => None,
    };
    let orders = [TurnOrder::RoundRobin, TurnOrder::RoundRobin, TurnOrder::Priority];
    let order = if rng.chance(10) { TurnOrder::Manual } else { rng.pick(&orders) };
    let interrupts = [
        HumanInterrupt::Inject,
        HumanInterrupt::Interrupt,
        HumanInterrupt::Parallel,
        HumanInterrupt::Queue,
    ];
    Config {
        mode,
        turn_order: order,
        human_interrupt: rng.pick(&interrupts),
        default_timeout_seconds: 1 + rng.below(60) as u64,
        announce_timeouts: rng.chance(80),
        grace: rng.chance(30),
        grace_seconds: 1 + rng.below(5) as u64,
        auto_detect: AutoDetect {
            enabled: rng.chance(30),
            silence_threshold: 1 + rng.below(30) as u64,
            detect_punctuation: rng.chance(50),
            ..AutoDetect::default()
        },
        ..Config::default()
    }
}

/// Somebody speaks: mostly whoever has the floor, in one message, at the end of its turn.
pub(super) fn speech(rng: &mut Rng, state: &State) -> Event {
    let holder = state.floor.turn().map(|turn| turn.agent.clone());
    let agent = match holder {
        Some(holder) if rng.chance(70) => holder,
        _ => rng.pick(&AGENTS).to_owned(),
    };
    let turn = match rng.below(10) {
        0..6 => None,
        6..9 => Some(state.turn),
        _ => Some(state.turn.saturating_sub(rng.below(3) as u64)),
    };
    let phrases = state.config.auto_detect.enabled;
    let number = if rng.chance(85) { 1 } else { rng.between(2, 5) };
    let messages = (0..number).map(|_| message(rng, phrases)).collect();
    Event::Said { agent, turn, messages }
}

fn message(rng: &mut Rng, phrases: bool) -> Heard {
    let display = match rng.below(10) {
        0 => String::new(),
        1 => " \n\u{200b}".to_owned(),
        _ => format!("word {}", rng.below(1_000)),
    };
    let evidence = || Evidence {
        what: "signal".to_owned(),
        name: Some("TURN_COMPLETE".to_owned()),
        ..Evidence::default()
    };
    Heard {
        display,
        signal: rng.chance(50).then(evidence),
        phrase: phrases && rng.chance(10),
        closed: rng.chance(50),
        ..Heard::default()
    }
}

/// Somebody changes who takes part.
pub(super) fn change(rng: &mut Rng, state: &State) -> Event {
    let agent = rng.pick(&AGENTS).to_owned();
    match rng.below(10) {
        0..5 => {
            let places = [Position::End, Position::Start, Position::At(rng.below(7))];
            let persona = rng.chance(20).then(|| persona(rng, &agent).1);
            Event::Add { agent, position: rng.pick(&places), persona }
        }
        5..8 => Event::Remove { agent: somebody(rng, state).unwrap_or(agent) },
        8 => Event::Crashed { agent: somebody(rng, state).unwrap_or(agent) },
        _ => Event::Configure { config: Box::new(config(rng, false)) },
    }
}

/// A human says or wants something.
pub(super) fn human(rng: &mut Rng, state: &State) -> Event {
    let by = "a human".to_owned();
    match rng.below(20) {
        0..10 => {
            let to = if rng.chance(30) { somebody(rng, state) } else { None };
            Event::Human { text: "and the tests?".to_owned(), from: None, to, by: String::new() }
        }
        10..13 => Event::Pause { by },
        13..16 => Event::Resume { by },
        _ => {
            let agent = somebody(rng, state).unwrap_or_else(|| rng.pick(&AGENTS).to_owned());
            let turn = rng.chance(50).then(|| state.turn.saturating_sub(rng.below(2) as u64));
            Event::Next { agent, turn }
        }
    }
}

fn somebody(rng: &mut Rng, state: &State) -> Option<String> {
    let place = rng.below(state.queue.len());
    state.queue.get(place).cloned()
}
