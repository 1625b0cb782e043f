//! Every sentence that people read about a run, one example of each rule.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use super::*;
use crate::Machine as _;

type Happens = fn(&mut State) -> Outcome;

fn stopped(state: &mut State, change: impl FnOnce(&mut Stop)) -> Outcome {
    let mut stop = stop(state, "Not yet.");
    change(&mut stop);
    state.on_event(at(1), &Event::Stop(stop))
}

fn session() -> Option<String> {
    Some("S1".to_owned())
}

fn prompted(state: &mut State) -> Outcome {
    state.on_event(at(1), &Event::Prompt { session: session(), turn: None, own: false })
}

fn by(make: impl FnOnce(String) -> Event) -> Event {
    make("`aldis auto`".to_owned())
}

const STOPS: &[(&str, Happens)] = &[
    ("nothing reported", |s| says(s, 1, "Not yet.")),
    ("another phase", |s| says(s, 1, &block("FIX_COMPLETE"))),
    ("a sub-agent's end", |s| {
        let origin = Origin::new(Role::Subagent).with_agent("a1");
        let findings = found(s, &block("AUTO_COMPLETE"), origin);
        stopped(s, |stop| stop.findings = findings)
    }),
    ("the signal", |s| says(s, 1, &block("QA_COMPLETE"))),
    ("two signals", |s| says(s, 1, &(block("QA_COMPLETE") + &block("REVIEW_COMPLETE")))),
    ("after a sub-agent", |s| {
        subagent_says(s, 1, "a1", &block("QA_COMPLETE"));
        says(s, 1, "Not yet.")
    }),
    ("stop after a phase", |s| {
        s.setup.config.after_transition = AfterTransition::Stop;
        says(s, 1, &block("QA_COMPLETE"))
    }),
    ("the last phase", |s| {
        s.progress.phase = "reflect".to_owned();
        says(s, 1, &block("REFLECT_COMPLETE"))
    }),
    ("the last phase by a sub-agent", |s| {
        s.progress.phase = "reflect".to_owned();
        subagent_says(s, 1, "a1", &block("REFLECT_COMPLETE"));
        says(s, 1, "Not yet.")
    }),
    ("the whole run", |s| says(s, 1, &block("AUTO_COMPLETE"))),
    ("the whole run in its last phase", |s| {
        s.progress.phase = "reflect".to_owned();
        says(s, 1, &block("AUTO_COMPLETE"))
    }),
    ("an error", |s| says(s, 1, &error_block("qa", true))),
    ("a fatal error", |s| says(s, 1, &error_block("qa", false))),
    ("used up", |s| {
        says(s, 1, "```\nSIGNAL: QA_COMPLETE\n```\nSoon.");
        s.progress.iteration = 20;
        says(s, 2, "Not yet.")
    }),
    ("used up, of one", |s| {
        (s.progress.iteration, s.setup.max_iterations) = (1, 1);
        says(s, 2, "Not yet.")
    }),
    ("capped", |s| {
        s.block_limit.blocks = 8;
        stopped(s, |stop| {
            stop.cap.limit = Some(8);
            stop.host_name = "Claude Code".to_owned();
            stop.continued = Some(true);
        })
    }),
    ("capped by ourselves", |s| {
        s.block_limit.blocks = DEFAULT_BLOCK_LIMIT;
        stopped(s, |stop| stop.continued = Some(true))
    }),
    ("unknown phase", |s| {
        s.progress.phase = "warp".to_owned();
        says(s, 1, "Not yet.")
    }),
    ("stale", |s| says(s, 200, "Not yet.")),
    ("stale, unreadable", |s| {
        s.clock.last_activity = None;
        says(s, 1, "Not yet.")
    }),
    ("interrupted", |s| stopped(s, |stop| stop.must_allow = Some(MustAllow::Aborted))),
    ("background", |s| {
        let what = "cargo test".to_owned();
        stopped(s, |stop| stop.must_allow = Some(MustAllow::Background { what }))
    }),
    ("host error", |s| {
        let what = "rate_limit".to_owned();
        stopped(s, |stop| stop.must_allow = Some(MustAllow::Failed { what }))
    }),
    ("question after the signal", |s| {
        let findings = found(s, &block("QA_COMPLETE"), Origin::assistant());
        stopped(s, |stop| {
            (stop.findings, stop.must_allow) = (findings, Some(MustAllow::Question));
        })
    }),
    ("paused", |s| {
        s.paused = true;
        says(s, 1, "Not yet.")
    }),
];

const SUBAGENTS: &[(&str, Happens)] = &[
    ("nothing", |s| subagent_says(s, 1, "a1", "Done.")),
    ("the phase", |s| subagent_says(s, 1, "a1", &block("QA_COMPLETE"))),
    ("the run", |s| subagent_says(s, 1, "a1", &block("AUTO_COMPLETE"))),
    ("the phase and the run", |s| {
        subagent_says(s, 1, "a1", &(block("QA_COMPLETE") + &block("AUTO_COMPLETE")))
    }),
    ("without a name", |s| {
        let findings = found(s, &block("AUTO_COMPLETE"), Origin::new(Role::Subagent));
        let (session, agent, fresh_token) = (session(), None, None);
        s.on_event(at(1), &Event::SubagentStop { session, agent, findings, fresh_token })
    }),
    ("paused", |s| {
        s.paused = true;
        subagent_says(s, 1, "a1", &block("QA_COMPLETE"))
    }),
];

const OTHERS: &[(&str, Happens)] = &[
    ("prompt", prompted),
    ("prompt while paused", |s| {
        s.paused = true;
        prompted(s)
    }),
    ("first prompt", |s| {
        s.handover.prompt_pending = true;
        prompted(s)
    }),
    ("prompt with a message", |s| {
        s.handover.human_messages = vec!["Use tabs.".to_owned()];
        prompted(s)
    }),
    ("prompt with messages", |s| {
        s.handover.human_messages = vec!["Use tabs.".to_owned(); 2];
        prompted(s)
    }),
    ("own prompt", |s| {
        s.on_event(at(1), &Event::Prompt { session: session(), turn: None, own: true })
    }),
    ("response", |s| {
        let (findings, closing_text) = (Vec::new(), String::new());
        s.on_event(at(1), &Event::Responded { session: session(), findings, closing_text })
    }),
    ("interruption", |s| s.on_event(at(1), &Event::Interrupted { session: session() })),
    ("session start", |s| s.on_event(at(1), &Event::SessionStart { session: session() })),
    ("session end", |s| s.on_event(at(1), &Event::SessionEnd { session: session() })),
    ("failed turn", |s| {
        let error = "rate_limit".to_owned();
        s.on_event(at(1), &Event::StopFailed { session: session(), error, until: None })
    }),
    ("limited turn", |s| {
        let (error, until) = ("rate_limit".to_owned(), Some(at(60)));
        s.on_event(at(1), &Event::StopFailed { session: session(), error, until })
    }),
    ("wake after a limit", |s| {
        let (error, until) = ("rate_limit".to_owned(), Some(at(60)));
        s.on_event(at(1), &Event::StopFailed { session: session(), error, until });
        s.on_event(at(60), &Event::Woken { session: "S1".to_owned(), cap: None })
    }),
    ("edit", |s| s.on_event(at(1), &Event::Edited { members: vec!["phase".into()] })),
    ("cancel", |s| s.on_event(at(1), &by(|by| Event::Cancel { by }))),
    ("pause", |s| s.on_event(at(1), &by(|by| Event::Pause { by }))),
    ("resume of a paused run", |s| {
        s.paused = true;
        s.on_event(at(1), &by(|by| Event::Resume { by, fresh_token: None }))
    }),
    ("resume of an ended run", |s| {
        s.end(at(0), ExitReason::StaleState);
        s.on_event(at(1), &Event::Resume { by: String::new(), fresh_token: None })
    }),
    ("tell", |s| s.on_event(at(1), &by(|by| Event::Tell { text: "Use \"tabs\".".into(), by }))),
    ("tell a parked run", |s| {
        says(s, 1, &error_block("qa", true));
        s.on_event(at(2), &by(|by| Event::Tell { text: "Use tabs.".into(), by }))
    }),
    ("wake with a message", |s| {
        says(s, 1, &error_block("qa", true));
        s.on_event(at(2), &by(|by| Event::Tell { text: "Use tabs.".into(), by }));
        s.on_event(at(3), &Event::Woken { session: "S1".to_owned(), cap: None })
    }),
    ("wake with the prompt", |s| {
        s.paused = true;
        says(s, 1, "Not yet.");
        s.on_event(at(2), &by(|by| Event::Resume { by, fresh_token: None }));
        s.on_event(at(3), &Event::Woken { session: "S1".to_owned(), cap: None })
    }),
    ("tell a paused run", |s| {
        s.paused = true;
        s.on_event(at(1), &by(|by| Event::Tell { text: "Use tabs.".into(), by }))
    }),
];

#[test]
fn every_rule_has_its_sentences() {
    let mut shown = String::new();
    let mut rules = BTreeSet::new();
    let mut show = |title: &str, outcome: &Outcome| {
        let decision = outcome.decision().unwrap();
        rules.insert(decision.rule.clone());
        let quotes = decision.evidence.iter().map(|evidence| {
            let reason = evidence.reason.as_deref().unwrap_or("-");
            format!("\n  {} {} {reason}", evidence.what, evidence.name.as_deref().unwrap_or("-"))
        });
        let _ = writeln!(
            shown,
            "{title}\n  {}\n  {}: {}\n  {}{}\n",
            decision.summary,
            decision.rule,
            decision.because,
            decision.remedy,
            quotes.collect::<String>()
        );
    };
    let start = Start {
        task: "Add CSV export".to_owned(),
        pipeline: Pipeline::caw(),
        config: Config::default(),
        phase: "expansion".to_owned(),
        max_iterations: 20,
        session: None,
        token: None,
        proof: Proof::default(),
    };
    show("start", &<State as crate::Machine>::start(at(0), start).unwrap().outcome);
    for (title, happens) in STOPS.iter().chain(SUBAGENTS).chain(OTHERS).chain(checks::CASES) {
        let mut state = run_in("qa");
        show(title, &happens(&mut state));
        let stored = state.to_stored().unwrap();
        assert_eq!(State::from_stored(&stored, &[]).unwrap(), state, "{title}");
    }
    let all: BTreeSet<String> = Rule::ALL.iter().map(|rule| rule.as_str().to_owned()).collect();
    assert_eq!(rules, all, "every rule has an example");
    insta::assert_snapshot!(shown);
}
