//! Every sentence that people read about a channel, one example of each rule and of each refusal.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use super::*;
use crate::Machine as _;

type Happens = fn(&mut State) -> Outcome;

fn human_does(state: &mut State, kind: HumanInterrupt, to: Option<&str>) -> Outcome {
    state.config.human_interrupt = kind;
    let (text, to) = ("why?".to_owned(), to.map(str::to_owned));
    state.on_event(
        at(20),
        &Event::Human { text, from: Some("ada".to_owned()), to, by: String::new() },
    )
}

fn woken(state: &mut State, seconds: i64) -> Outcome {
    state.on_event(at(seconds), &Event::Wake { turn: None })
}

fn pause(state: &mut State) -> Outcome {
    state.on_event(at(20), &by(|by| Event::Pause { by }))
}

fn named(make: fn(String) -> Event, agent: &str) -> Event {
    make(agent.to_owned())
}

const REMOVE: fn(String) -> Event = |agent| Event::Remove { agent };
const CRASH: fn(String) -> Event = |agent| Event::Crashed { agent };
const NEXT: fn(String) -> Event = |agent| Event::Next { agent, turn: None };
const ADD: fn(String) -> Event =
    |agent| Event::Add { agent, position: QueuePosition::End, persona: None };

const MESSAGES: &[(&str, Happens)] = &[
    ("keyword", |s| says(s, 1, "pm", "Yes. TURN_COMPLETE")),
    ("keyword in manual order", |s| {
        s.config.turn_order = TurnOrder::Manual;
        says(s, 1, "pm", "Yes. TURN_COMPLETE")
    }),
    ("keyword while paused", |s| {
        pause(s);
        says(s, 21, "pm", "Yes. TURN_COMPLETE")
    }),
    ("no keyword", |s| says(s, 1, "pm", "I am at it.")),
    ("near miss", |s| says(s, 1, "pm", "Yes. TURN_COMPLETE.")),
    ("nothing to post", |s| says(s, 1, "pm", " ")),
    ("completion phrase", |s| {
        s.config.auto_detect.enabled = true;
        says(s, 1, "pm", "All done!")
    }),
    ("not active", |s| says(s, 1, "dev", "Me too.")),
    ("not active, interrupted", |s| {
        human_does(s, HumanInterrupt::Interrupt, None);
        says(s, 21, "dev", "Me too.")
    }),
    ("late", |s| {
        woken(s, 61);
        says(s, 62, "pm", "Sorry.")
    }),
    ("answer", |s| {
        human_does(s, HumanInterrupt::Interrupt, Some("dev"));
        says(s, 21, "dev", "Because.")
    }),
    ("no turns", |s| {
        s.config.mode = Some(Mode::Direct);
        says(s, 1, "dev", "Hello.")
    }),
    ("closed", |s| {
        s.on_event(at(1), &by(|by| Event::Close { by }));
        says(s, 2, "pm", "Hello.")
    }),
];

const TIME: &[(&str, Happens)] = &[
    ("timeout", |s| woken(s, 61)),
    ("timeout after three rounds", |s| {
        s.silent_turns = 5;
        woken(s, 61)
    }),
    ("grace", |s| {
        s.config.grace = true;
        woken(s, 61)
    }),
    ("silence", |s| {
        s.config.auto_detect.enabled = true;
        says(s, 1, "pm", "I looked at it.");
        woken(s, 32)
    }),
    ("restart", |s| s.on_event(at(100), &Event::Recovered)),
    ("no answer", |s| {
        human_does(s, HumanInterrupt::Interrupt, Some("dev"));
        woken(s, 100)
    }),
];

const PEOPLE: &[(&str, Happens)] = &[
    ("inject", |s| human_does(s, HumanInterrupt::Inject, None)),
    ("interrupt", |s| human_does(s, HumanInterrupt::Interrupt, Some("dev"))),
    ("parallel", |s| human_does(s, HumanInterrupt::Parallel, None)),
    ("queue", |s| human_does(s, HumanInterrupt::Queue, None)),
    ("inject while paused", |s| {
        pause(s);
        human_does(s, HumanInterrupt::Inject, None)
    }),
    ("message to a paused channel", |s| {
        pause(s);
        s.on_event(at(21), &named(REMOVE, "pm"));
        human_does(s, HumanInterrupt::Inject, None)
    }),
    ("pause", pause),
    ("resume", |s| {
        pause(s);
        s.on_event(at(21), &by(|by| Event::Resume { by }))
    }),
    ("close", |s| s.on_event(at(1), &by(|by| Event::Close { by }))),
    ("configure", |s| s.on_event(at(1), &Event::Configure { config: Box::default() })),
    ("add", |s| s.on_event(at(1), &named(ADD, "qa"))),
    ("remove", |s| s.on_event(at(1), &named(REMOVE, "pm"))),
    ("remove the last", |s| {
        s.on_event(at(1), &named(REMOVE, "pm"));
        s.on_event(at(1), &named(REMOVE, "dev"))
    }),
    ("crash", |s| s.on_event(at(1), &named(CRASH, "pm"))),
    ("next", |s| s.on_event(at(1), &named(NEXT, "dev"))),
    ("import", |s| State::adopt(at(1), s.clone()).unwrap().outcome),
];

const REFUSALS: &[(&str, Happens)] = &[
    ("add again", |s| s.on_event(at(1), &named(ADD, "pm"))),
    ("add a bad name", |s| s.on_event(at(1), &named(ADD, "../x"))),
    ("add a stranger", |s| {
        s.personas.insert("pm".to_owned(), Persona::default());
        s.on_event(at(1), &named(ADD, "eve"))
    }),
    ("add to a single agent", |s| {
        s.config.mode = Some(Mode::Single);
        s.on_event(at(1), &named(ADD, "qa"))
    }),
    ("remove a stranger", |s| s.on_event(at(1), &named(REMOVE, "eve"))),
    ("next stranger", |s| s.on_event(at(1), &named(NEXT, "eve"))),
    ("next after an old turn", |s| {
        s.on_event(at(1), &Event::Next { agent: "dev".to_owned(), turn: Some(0) })
    }),
    ("next without turns", |s| {
        s.config.mode = Some(Mode::Direct);
        s.on_event(at(1), &named(NEXT, "dev"))
    }),
    ("ask a stranger", |s| human_does(s, HumanInterrupt::Inject, Some("eve"))),
    ("too many messages", |s| {
        (0..33).map(|_| human_does(s, HumanInterrupt::Queue, None)).last().unwrap()
    }),
    ("pause twice", |s| {
        pause(s);
        pause(s)
    }),
    ("pause without turns", |s| {
        s.config.mode = Some(Mode::Direct);
        pause(s)
    }),
    ("resume", |s| s.on_event(at(1), &by(|by| Event::Resume { by }))),
    ("configure badly", |s| {
        let config = Config { grace_seconds: 0, ..Config::default() };
        s.on_event(at(1), &Event::Configure { config: Box::new(config) })
    }),
    ("configure another mode", |s| {
        let config = Config { mode: Some(Mode::Single), ..Config::default() };
        s.on_event(at(1), &Event::Configure { config: Box::new(config) })
    }),
    ("after the close", |s| {
        s.on_event(at(1), &by(|by| Event::Close { by }));
        s.on_event(at(2), &named(ADD, "qa"))
    }),
];

#[test]
fn every_rule_has_its_sentences() {
    let mut shown = String::new();
    let mut rules = BTreeSet::new();
    let mut show = |title: &str, outcome: &Outcome| {
        let decision = outcome.decision().unwrap_or_else(|| panic!("{title}"));
        rules.insert(decision.rule.clone());
        let _ = writeln!(
            shown,
            "{title}\n  {}\n  {}: {}\n  {}",
            decision.summary, decision.rule, decision.because, decision.remedy
        );
        let posted = posts(outcome);
        for notice in posted.iter().filter(|post| post.starts_with(Effect::SYSTEM)) {
            let _ = writeln!(shown, "  {notice}");
        }
        shown.push('\n');
    };
    for agents in [&["pm"][..], &["pm", "dev"]] {
        let agents = agents.iter().map(|agent| (*agent).to_owned()).collect();
        let start = Start { channel: "c1".to_owned(), agents, ..Start::default() };
        show("start", &State::start(at(0), start).unwrap().1);
    }
    for (title, happens) in MESSAGES.iter().chain(TIME).chain(PEOPLE) {
        let mut state = channel(&["pm", "dev"]);
        show(title, &happens(&mut state));
        let stored = state.to_stored().unwrap();
        assert_eq!(State::from_stored(&stored, &[]).unwrap(), state, "{title}");
    }
    let all: BTreeSet<String> = Rule::ALL.iter().map(|rule| rule.as_str().to_owned()).collect();
    assert_eq!(rules, all, "every rule has an example");
    for (title, happens) in REFUSALS {
        let outcome = happens(&mut channel(&["pm", "dev"]));
        assert_eq!(outcome.decisions, [], "{title}");
        let _ = writeln!(shown, "{title}\n  {}\n", outcome.warnings().join("; "));
    }
    insta::assert_snapshot!(shown);
}
