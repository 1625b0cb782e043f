//! The run machine against its specification.

mod cases;
mod crashes;
mod denials;
mod feedback;
mod looks;
mod pauses;
mod progress;
mod prompts;
mod properties;
mod rules;
mod scenarios;
mod sentences;
mod stored;

use super::*;
use crate::stagnation;
use aldis_signal::dialect::Dialect;
use aldis_signal::message::Origin;
use aldis_signal::scan::{Rules, scan};
use aldis_signal::signal::{Finding, Meaning, Via};
use aldis_signal::time::Timestamp;

fn at(seconds: i64) -> Timestamp {
    Timestamp::from_millis(1_772_445_600_000 + seconds * 1_000)
}

/// The signals of a text, in the dialect.
fn reports(dialect: &str, text: &str) -> Vec<RunSignal> {
    let rules = Rules::new([Dialect::builtin(dialect).unwrap().clone()]);
    let findings = scan(&rules, text.as_bytes(), &Origin::assistant());
    findings.iter().filter_map(Finding::signal).map(|signal| RunSignal::new(signal, 0)).collect()
}

fn begun(change: impl FnOnce(&mut Config)) -> State {
    let mut config = Config::default();
    change(&mut config);
    let mut state = State::start(
        at(0),
        Start {
            task: "Add CSV export".to_owned(),
            dialect: "chorus".to_owned(),
            instructions: "Report with a tag.".to_owned(),
            launch: String::new(),
            config,
        },
    );
    let outcome = state.on_event(at(0), &Event::Begin);
    let pins = state.status == Status::Preparing;
    assert!(pins || matches!(outcome.effects.last(), Some(Effect::Start { iteration: 1, .. })));
    state
}

fn exited(code: Option<i32>, signal: Option<i32>) -> Event {
    Event::Exited(Exit { code, signal }.into())
}

fn clean() -> Event {
    exited(Some(0), None)
}

/// Takes an event. Where the machine wants to inspect the work tree after it, nothing has changed
/// there.
fn send(state: &mut State, seconds: i64, event: &Event) -> Outcome {
    let mut outcome = state.on_event(at(seconds), event);
    if state.status == Status::Looking && outcome.effects.contains(&Effect::Look) {
        let looked = state.on_event(at(seconds), &Event::Looked(state.trees.tree.clone()));
        outcome.effects.extend(looked.effects);
        outcome.decisions.extend(looked.decisions);
    }
    outcome
}

fn keeps_work(outcome: &Outcome) -> bool {
    outcome.effects.iter().any(|effect| matches!(effect, Effect::KeepWork { .. }))
}

/// One iteration: what the agent reported, how it ended, what the check says.
fn iteration(state: &mut State, seconds: i64, text: &str, check: Option<bool>) -> Outcome {
    let signals = reports("chorus", text);
    state.on_event(at(seconds), &Event::Reported { signals });
    let mut outcome = send(state, seconds, &clean());
    if state.status == Status::Checking {
        let output = "2 of 118 tests failed".to_owned();
        let passed = check.expect("a check was not expected");
        outcome = state.on_event(at(seconds), &Event::Checked { passed, output });
    }
    outcome
}

#[test]
fn iterations_end_in_the_order_of_the_specification() {
    let done = "<chorus>COMPLETE</chorus>";
    let both = "<chorus>BLOCKED: a</chorus><chorus>COMPLETE</chorus>";
    let ask = "<chorus>NEEDS_HUMAN: keep or drop?</chorus><chorus>COMPLETE</chorus>";
    for (name, text, verify, check, ending) in [
        ("done", done, false, None, Some(Ending::Done)),
        ("done and verified", done, true, Some(true), Some(Ending::Done)),
        ("done, not verified", done, true, Some(false), None),
        ("blocked before done", both, false, None, Some(Ending::Blocked)),
        ("a question before done", ask, false, None, None),
        ("nothing", "Still at it.", false, None, None),
        ("progress", "<chorus>PROGRESS: 45</chorus>", false, None, None),
    ] {
        let mut state = begun(|config| config.verify = verify);
        iteration(&mut state, 1, text, check);
        assert_eq!(state.ending(), ending, "{name}");
        let asks = state.status == Status::Asking;
        assert_eq!(asks, name.starts_with("a question"), "{name}");
        let went_on = state.status == Status::Working && state.iteration == 2;
        assert_eq!(went_on, ending.is_none() && !asks, "{name}");
    }
}

#[test]
fn a_crash_outranks_every_word() {
    for exit in [Exit { code: Some(139), signal: None }, Exit { code: None, signal: Some(11) }] {
        let mut state = begun(|config| config.max_crashes = 0);
        let heard = reports("chorus", "<chorus>COMPLETE</chorus>");
        state.on_event(at(1), &Event::Reported { signals: heard });
        state.on_event(at(2), &Event::Exited(exit.into()));
        assert_eq!(state.ending(), Some(Ending::Crashed));
    }
}

#[test]
fn success_on_the_last_iteration_is_success() {
    let mut state = begun(|config| config.max_iterations = 2);
    iteration(&mut state, 1, "Still at it.", None);
    iteration(&mut state, 2, "<chorus>COMPLETE</chorus>", None);
    assert_eq!(state.ending(), Some(Ending::Done));

    let mut state = begun(|config| config.max_iterations = 2);
    iteration(&mut state, 1, "Still at it.", None);
    iteration(&mut state, 2, "Still at it.", None);
    assert_eq!(state.ending(), Some(Ending::IterationsUsedUp));
}

#[test]
fn what_the_check_said_is_in_the_next_prompt() {
    let mut state = begun(|config| config.verify = true);
    let outcome = iteration(&mut state, 1, "<chorus>COMPLETE</chorus>", Some(false));
    let Some(Effect::Start { prompt, .. }) = outcome.effects.last() else { panic!("{outcome:?}") };
    for part in ["Add CSV export", "> 2 of 118 tests failed", "Report with a tag."] {
        assert!(prompt.contains(part), "{part} in {prompt}");
    }
    // A passing check without the word never completes.
    let outcome = iteration(&mut state, 2, "All green.", Some(true));
    assert!(matches!(outcome.effects.last(), Some(Effect::Start { iteration: 3, .. })));
}

#[test]
fn claims_need_a_clean_tree_and_a_commit_where_that_is_asked_for() {
    let tree = |head: &str, dirty: bool| WorkTree {
        head: Some(head.into()),
        dirty,
        ..WorkTree::default()
    };
    for (name, after, ending) in [
        ("nothing committed", tree("a", false), None),
        ("uncommitted", tree("b", true), None),
        ("as asked", tree("b", false), Some(Ending::Done)),
    ] {
        let mut state =
            begun(|config| (config.require_commit, config.require_clean) = (true, true));
        state.on_event(at(0), &Event::Looked(tree("a", false)));
        let heard = reports("chorus", "<chorus>COMPLETE</chorus>");
        state.on_event(at(1), &Event::Reported { signals: heard });
        state.on_event(at(1), &clean());
        state.on_event(at(1), &Event::Looked(after));
        assert_eq!(state.ending(), ending, "{name}");
    }
}

#[test]
fn a_resolution_with_conflict_markers_is_none() {
    for (conflicts, ending) in [(true, None), (false, Some(Ending::Done))] {
        let mut state = begun(|_| {});
        let heard = reports("chorus", "<chorus>RESOLVED: kept both</chorus>");
        state.on_event(at(1), &Event::Reported { signals: heard });
        state.on_event(at(1), &clean());
        state.on_event(at(1), &Event::Looked(WorkTree { conflicts, ..WorkTree::default() }));
        assert_eq!(state.ending(), ending);
    }
}

#[test]
fn questions_wait_for_an_answer_and_use_up_no_iteration() {
    let mut state = begun(|config| config.max_iterations = 1);
    let outcome = iteration(&mut state, 1, "<chorus>NEEDS_HELP: keep or drop?</chorus>", None);
    let (id, text) = ("q1".into(), "keep or drop?".into());
    assert_eq!(outcome.effects[0], Effect::Ask { id, text, options: Vec::new(), default: None });
    // A wait of any length is no silence.
    assert_eq!(state.on_event(at(90_000), &Event::Tick), Outcome::nothing());
    assert_eq!(
        state.on_event(
            at(90_000),
            &Event::Answer { id: "q2".into(), text: "x".into(), by: String::new() }
        ),
        Outcome::nothing()
    );
    let outcome = state.on_event(
        at(90_001),
        &Event::Answer { id: "q1".into(), text: "Drop it.".into(), by: String::new() },
    );
    let Some(Effect::Start { iteration: 1, prompt }) = outcome.effects.last() else { panic!() };
    assert!(prompt.contains("> keep or drop?") && prompt.contains("> Drop it."), "{prompt}");
    assert!(state.worked(at(90_001)) < 10_000);

    let mut state = begun(|config| config.no_wait = true);
    iteration(&mut state, 1, "<chorus>NEEDS_HUMAN: x</chorus>", None);
    assert_eq!(state.ending().map(Ending::exit_code), Some(3));
}

#[test]
fn limits_of_the_service_are_waited_for_without_counting() {
    let mut state = begun(|_| {});
    let limited = Event::Limited { what: "resets at noon".into(), until: Some(at(7_200)) };
    state.on_event(at(10), &limited);
    state.on_event(at(11), &exited(Some(1), None));
    assert_eq!(state.status, Status::Limited { until: at(7_200) });
    assert_eq!(state.on_event(at(7_199), &Event::Tick), Outcome::nothing());
    let outcome = state.on_event(at(7_200), &Event::Tick);
    assert!(matches!(outcome.effects[..], [Effect::Start { iteration: 1, .. }]), "{outcome:?}");
    assert_eq!(state.monitor.level(), stagnation::Level::None);

    // One that never ends is given up.
    let mut state = begun(|config| config.max_limit_waits = 2);
    for round in 0..3 {
        state.on_event(
            at(round * 10_000),
            &Event::Limited { what: "overloaded".into(), until: None },
        );
        state.on_event(at(round * 10_000 + 1), &clean());
        state.on_event(at(round * 10_000 + 9_000), &Event::Tick);
    }
    assert_eq!(state.ending(), Some(Ending::TimedOut));
    let config = Box::new(Config::default());
    let outcome = state.on_event(at(50_000), &Event::Reopen { config });
    assert!(matches!(outcome.effects[..], [Effect::Start { iteration: 1, .. }]), "{outcome:?}");
}

#[test]
fn budgets_end_a_run_while_it_works_and_before_the_next_iteration() {
    let spent = |tokens| Event::Spent(Usage { tokens, micro_dollars: tokens * 2 });
    let mut state = begun(|config| config.max_tokens = Some(900));
    let outcome = state.on_event(at(1), &spent(600));
    assert!(matches!(outcome.effects[..], [Effect::Notice { notice: Notice::BudgetSoon, .. }]));
    assert_eq!(state.on_event(at(2), &spent(700)), Outcome::nothing(), "said once");
    iteration(&mut state, 3, "Still at it.", None);
    assert_eq!(state.cost().tokens, 700);
    let outcome = state.on_event(at(4), &spent(200));
    assert!(matches!(outcome.effects[..], [Effect::End { .. }]), "{outcome:?}");
    state.on_event(at(5), &exited(None, Some(15)));
    assert_eq!(state.ending(), Some(Ending::OverBudget));
}

#[test]
fn time_limits_end_an_iteration_and_then_the_run() {
    let mut state = begun(|config| (config.iteration_timeout, config.timeout) = (100, 250));
    assert_eq!(state.on_event(at(99), &Event::Tick).effects, []);
    let outcome = state.on_event(at(100), &Event::Tick);
    assert!(matches!(outcome.effects[..], [Effect::End { .. }]));
    let outcome = send(&mut state, 101, &exited(None, Some(15)));
    let Some(Effect::Start { iteration: 2, prompt }) = outcome.effects.last() else { panic!() };
    assert!(prompt.contains("stopped after 100 s"), "{prompt}");
    state.on_event(at(251), &Event::Tick);
    state.on_event(at(252), &exited(None, Some(9)));
    assert_eq!(state.ending(), Some(Ending::TimedOut));
}

#[test]
fn an_agent_that_goes_on_after_its_claim_is_asked_to_stop() {
    let mut state = begun(|_| {});
    let heard = reports("chorus", "<chorus>COMPLETE</chorus>");
    state.on_event(at(1), &Event::Reported { signals: heard });
    assert_eq!(state.on_event(at(30), &Event::Tick).effects, []);
    assert_eq!(state.on_event(at(31), &Event::Tick).effects, [Effect::End { grace: 30 }]);
    state.on_event(at(32), &exited(None, Some(15)));
    state.on_event(at(32), &Event::Looked(WorkTree::default()));
    assert_eq!(state.ending(), Some(Ending::Done), "it was asked to stop, it did not crash");
}

#[test]
fn silence_warns_then_suspends_and_a_human_decides() {
    let mut state = begun(|_| {});
    let outcome = state.on_event(at(600), &Event::Tick);
    assert!(matches!(outcome.effects[..], [Effect::Notice { notice: Notice::StagnationWarn, .. }]));
    let outcome = state.on_event(at(1_200), &Event::Tick);
    assert_eq!(outcome.effects[0], Effect::Suspend);
    assert_eq!(state.on_event(at(4_000), &Event::Tick), Outcome::nothing());
    assert_eq!(
        state.on_event(at(4_001), &Event::Resume { by: String::new() }).effects,
        [Effect::Continue]
    );
    assert_eq!(state.on_event(at(4_100), &Event::Tick).effects, []);
}

#[test]
fn iterations_without_evidence_end_a_run() {
    let mut state = begun(|_| {});
    state.on_event(at(0), &Event::Looked(WorkTree { dirty: true, ..WorkTree::default() }));
    for round in 1..=7 {
        iteration(&mut state, round, "Still at it.", None);
    }
    assert_eq!(state.ending(), Some(Ending::Stagnated));

    // Work is evidence, whatever is said.
    let mut state = begun(|_| {});
    for round in 1..=20 {
        state.on_event(at(round), &Event::Activity);
        iteration(&mut state, round, "Still at it.", None);
    }
    assert_eq!(state.ending(), None);
}

#[test]
fn partial_work_is_kept_where_there_is_some() {
    let tree = |name: &str, dirty| {
        Event::Looked(WorkTree { fingerprint: Some(name.into()), dirty, ..WorkTree::default() })
    };
    for (name, before, after, kept) in [
        ("nothing changed", tree("a", false), tree("a", false), false),
        ("changed", tree("a", false), tree("b", true), true),
        ("dirty before, and nothing changed", tree("a", true), tree("a", true), false),
        ("dirty before, and changed", tree("a", true), tree("b", true), true),
    ] {
        let mut state = begun(|config| config.max_iterations = 1);
        state.on_event(at(0), &before);
        state.on_event(at(1), &clean());
        let outcome = state.on_event(at(1), &after);
        assert_eq!(state.ending(), Some(Ending::IterationsUsedUp), "{name}");
        assert_eq!(keeps_work(&outcome), kept, "{name}");
    }
}

#[test]
fn humans_pause_resume_and_abort() {
    let mut state = begun(|_| {});
    assert_eq!(
        state.on_event(at(1), &Event::Pause { by: String::new() }).effects,
        [Effect::Suspend]
    );
    assert_eq!(state.on_event(at(2), &Event::Pause { by: String::new() }), Outcome::nothing());
    assert_eq!(
        state.on_event(at(90_000), &Event::Tick),
        Outcome::nothing(),
        "a pause is no silence"
    );
    state.on_event(at(90_000), &Event::Resume { by: String::new() });
    let outcome = state.on_event(at(90_001), &Event::Abort { by: "`aldis abort`".into() });
    assert_eq!(outcome.effects, [Effect::End { grace: 30 }]);
    state.on_event(at(90_002), &clean());
    assert_eq!(state.ending().map(Ending::exit_code), Some(130));
    assert_eq!(state.on_event(at(90_003), &Event::Begin), Outcome::nothing());
}

#[test]
fn a_crash_of_ours_repeats_the_iteration_and_keeps_the_rest() {
    let mut state = begun(|config| config.verify = true);
    iteration(&mut state, 1, "Still at it.", None);
    let outcome = state.on_event(at(2), &Event::Recovered);
    assert!(matches!(outcome.effects[..], [Effect::Start { iteration: 2, .. }]), "{outcome:?}");
    let heard = reports("chorus", "<chorus>COMPLETE</chorus>");
    state.on_event(at(3), &Event::Reported { signals: heard });
    state.on_event(at(3), &clean());
    state.on_event(at(3), &Event::Looked(WorkTree::default()));
    assert_eq!(state.on_event(at(4), &Event::Recovered).effects, [Effect::Check]);
}

#[test]
fn failure_and_contradiction() {
    let exit = |success: bool| {
        format!("```pilot-signal\n{{\"v\":2,\"type\":\"exit\",\"success\":{success}}}\n```\n")
    };
    for (text, ending) in [
        (exit(true), Some(Ending::Done)),
        (exit(false), Some(Ending::Failed)),
        (exit(false) + &exit(true), None),
        (exit(true) + &exit(false), Some(Ending::Failed)),
    ] {
        let mut state = begun(|_| {});
        state.on_event(at(1), &Event::Reported { signals: reports("pilot", &text) });
        state.on_event(at(1), &clean());
        state.on_event(at(1), &Event::Looked(WorkTree::default()));
        assert_eq!(state.ending(), ending, "{text}");
    }
}

/// The bar shows what the agent says, else how far its phase usually is.
#[test]
fn a_phase_implies_how_far_the_work_is() {
    let mut state = begun(|_| {});
    for (body, progress, bar) in [
        (r#""type":"phase","phase":"INIT""#, None, Some(10)),
        (r#""type":"phase","phase":"verification""#, None, Some(80)),
        (r#""type":"status","phase":"VERIFY","progress":60"#, Some(60), Some(60)),
        (r#""type":"status","phase":"VERIFY""#, Some(60), Some(60)),
        (r#""type":"phase","phase":"POLISH""#, Some(60), Some(50)),
        (r#""type":"phase","phase":"COMPLETE""#, Some(60), Some(95)),
        (r#""type":"exit","phase":"IMPL","success":true"#, Some(60), Some(95)),
    ] {
        let text = format!("```pilot-signal\n{{\"v\":2,{body}}}\n```");
        state.on_event(at(1), &Event::Reported { signals: reports("pilot", &text) });
        assert_eq!(
            (state.reported.progress, state.reported.shown_progress),
            (progress, bar),
            "{body}"
        );
    }
}

#[test]
fn progress_never_goes_backwards_on_exit() {
    let mut state = begun(|_| {});
    let heard = |progress, meaning| RunSignal {
        name: "X".into(),
        meaning,
        progress: Some(progress),
        text: None,
        options: Vec::new(),
        default: None,
        phase: None,
        phase_progress: None,
        iteration: None,
        no_op: false,
        message: 0,
        quote: String::new(),
        line: 1,
        via: Via::Said,
    };
    state.on_event(at(1), &Event::Reported { signals: vec![heard(80, Meaning::Progress)] });
    state.on_event(at(2), &Event::Reported { signals: vec![heard(0, Meaning::Done)] });
    assert_eq!(state.reported.progress, Some(80));
}

#[test]
fn a_state_survives_its_stored_form() {
    let mut state = begun(|config| config.verify = true);
    iteration(&mut state, 1, "<chorus>PROGRESS: 45</chorus>", None);
    let stored = serde_json::to_string(&state).unwrap();
    assert_eq!(serde_json::from_str::<State>(&stored).unwrap(), state);
}

#[test]
fn runs_that_were_cut_off_are_opened_again() {
    let mut state = begun(|config| config.max_iterations = 1);
    iteration(&mut state, 1, "Still at it.", None);
    assert_eq!(state.ending(), Some(Ending::IterationsUsedUp));
    let config = Box::new(Config { max_iterations: 5, ..Config::default() });
    let outcome = state.on_event(at(100), &Event::Reopen { config: config.clone() });
    assert!(
        matches!(outcome.effects.last(), Some(Effect::Start { iteration: 2, .. })),
        "{outcome:?}"
    );
    iteration(&mut state, 101, "<chorus>COMPLETE</chorus>", None);
    assert_eq!(state.on_event(at(102), &Event::Reopen { config }), Outcome::nothing());

    let mut state = begun(|config| config.no_wait = true);
    iteration(&mut state, 1, "<chorus>NEEDS_HUMAN: keep?</chorus>", None);
    state.on_event(
        at(2),
        &Event::Answer { id: "q1".into(), text: "Drop it.".into(), by: String::new() },
    );
    let outcome = state.on_event(at(3), &Event::Reopen { config: Box::default() });
    let Some(Effect::Start { iteration, prompt }) = outcome.effects.last() else {
        panic!("{outcome:?}")
    };
    assert!(prompt.contains("> Drop it."), "{prompt}");
    assert_eq!(*iteration, 1, "a question does not use an iteration up");
}

/// Which iteration a run goes on with, and which limits it would reach at once.
#[test]
fn a_run_that_was_cut_off_repeats_its_iteration() {
    let crashed = || vec![exited(Some(1), None)];
    let looked = || Event::Looked(WorkTree::default());
    let aborted = || vec![Event::Abort { by: "x".to_owned() }, clean()];
    let spent = || vec![Event::Spent(Usage { tokens: 100, micro_dollars: 0 }), clean()];
    let idle = vec![clean(), looked()];
    let blocked = Event::Reported { signals: reports("chorus", "<chorus>BLOCKED: x</chorus>") };
    for (name, events, ending, next, reached) in [
        ("crashed", crashed(), Ending::Crashed, 1, None),
        ("aborted", aborted(), Ending::Aborted, 1, None),
        ("over budget", spent(), Ending::OverBudget, 1, Some(Ending::OverBudget)),
        ("blocked", vec![blocked, clean()], Ending::Blocked, 2, Some(Ending::IterationsUsedUp)),
        ("used up", idle, Ending::IterationsUsedUp, 2, Some(Ending::IterationsUsedUp)),
    ] {
        let limits = |config: &mut Config| {
            (config.max_iterations, config.max_tokens, config.max_crashes) = (1, Some(100), 0);
        };
        let mut state = begun(limits);
        for (second, event) in (1..).zip(events) {
            state.on_event(at(second), &event);
        }
        assert_eq!(state.ending(), Some(ending), "{name}");
        assert_eq!(state.reached(&state.start.config), reached, "{name}");
        let config = Config { max_iterations: 5, max_tokens: Some(500), ..Config::default() };
        assert_eq!(state.reached(&config), None, "{name}");
        state.on_event(at(10), &Event::Reopen { config: Box::new(config) });
        assert_eq!((state.iteration, &state.status), (next, &Status::Working), "{name}");
    }
}

#[test]
fn what_waiting_does_not_cure_ends_the_run() {
    for exit in [clean(), exited(Some(1), None)] {
        let mut state = begun(|_| {});
        let what = "OAuth token has expired".to_owned();
        state.on_event(
            at(5),
            &Event::Reported { signals: reports("chorus", "<chorus>COMPLETE</chorus>") },
        );
        state.on_event(at(6), &Event::HostFailed { what });
        let outcome = state.on_event(at(7), &exit);
        assert_eq!(state.ending(), Some(Ending::Crashed));
        assert_eq!(outcome.decision().unwrap().because, "OAuth token has expired");
    }
}

#[test]
fn a_host_that_tries_again_by_itself_does_not_stagnate() {
    for (retries, paused) in [(false, true), (true, false)] {
        let mut state = begun(|_| {});
        if retries {
            state.on_event(at(1), &Event::Retrying { what: "529 overloaded".to_owned() });
        }
        state.on_event(at(1_500), &Event::Tick);
        assert_eq!(matches!(state.status, Status::Paused { .. }), paused);
        // It works again: from here on the clock runs.
        state.on_event(at(1_600), &Event::Activity);
        assert!(!state.attempt.retrying);
    }
}
