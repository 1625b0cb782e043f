//! One row for each rule that the scenarios do not show.

use super::*;
use aldis_signal::scan::{Scan, Token};
use aldis_signal::signal::Via;

fn hear(state: &mut State, seconds: i64, dialect: &str, text: &str) -> Outcome {
    state.on_event(at(seconds), &Event::Reported { signals: reports(dialect, text) })
}

fn exits(state: &mut State, seconds: i64) -> Outcome {
    state.on_event(at(seconds), &clean())
}

fn looks(state: &mut State, seconds: i64, tree: WorkTree) -> Outcome {
    state.on_event(at(seconds), &Event::Looked(tree))
}

/// Several messages, one after another, then the end of the process.
fn ends_after(dialect: &str, messages: &[String]) -> Option<Ending> {
    let mut state = begun(|_| {});
    for (number, text) in (0..).zip(messages) {
        let mut heard = reports(dialect, text);
        heard.iter_mut().for_each(|heard| heard.message = number);
        state.on_event(at(1), &Event::Reported { signals: heard });
    }
    exits(&mut state, 2);
    looks(&mut state, 2, WorkTree::default());
    state.ending()
}

fn exit(success: bool) -> String {
    format!("```pilot-signal\n{{\"v\":2,\"type\":\"exit\",\"success\":{success}}}\n```\n")
}

#[test]
fn the_latest_exit_counts_unless_one_message_says_both() {
    let (good, bad) = (exit(true), exit(false));
    for (name, messages, ending) in [
        ("failed, then done", vec![bad.clone(), good.clone()], Some(Ending::Done)),
        ("done, then failed", vec![good.clone(), bad.clone()], Some(Ending::Failed)),
        ("both at once", vec![bad.clone() + &good], None),
        ("failed twice", vec![bad.clone(), bad.clone()], Some(Ending::Failed)),
        ("failed, then both at once", vec![bad.clone(), bad.clone() + &good], None),
        ("done, then both at once", vec![good.clone(), bad.clone() + &good], None),
        ("both at once, then done", vec![bad.clone() + &good, good.clone()], Some(Ending::Done)),
        ("both at once, then failed", vec![bad.clone() + &good, bad], Some(Ending::Failed)),
    ] {
        assert_eq!(ends_after("pilot", &messages), ending, "{name}");
    }
}

#[test]
fn no_number_of_reports_hides_what_matters() {
    // Up and down: the same over and over again would be stagnation.
    let report = |number: usize| format!("<chorus>PROGRESS: {}</chorus>", number % 2);
    let chatter = |count: usize| (0..count).map(report).collect::<Vec<_>>();
    let done = vec!["<chorus>COMPLETE</chorus>".to_owned()];
    let blocked = vec!["<chorus>BLOCKED: no key</chorus>".to_owned()];
    for count in [0, 62, 63, 64, 65, 500] {
        let last = [chatter(count), done.clone()].concat();
        assert_eq!(ends_after("chorus", &last), Some(Ending::Done), "after {count}");
        let first = [blocked.clone(), chatter(count), done.clone()].concat();
        assert_eq!(ends_after("chorus", &first), Some(Ending::Blocked), "before {count}");
    }
}

#[test]
fn a_claim_that_nothing_was_to_do_needs_no_commit_but_a_clean_tree() {
    let claim = |reason: &str| {
        format!(
            "```pilot-signal\n{{\"v\":2,\"type\":\"exit\",\"success\":true,\"no_op\":true,\"reason\":\"{reason}\"}}\n```\n"
        )
    };
    for (name, reason, dirty, ending) in [
        ("nothing to do", "already there", false, Some(Ending::Done)),
        ("nothing to do, and yet", "already there", true, None),
        ("without a reason it is an ordinary claim", "  ", false, None),
    ] {
        let mut state = begun(|config| config.require_commit = true);
        let tree = WorkTree { head: Some("a".into()), ..WorkTree::default() };
        looks(&mut state, 0, tree.clone());
        hear(&mut state, 1, "pilot", &claim(reason));
        exits(&mut state, 1);
        looks(&mut state, 1, WorkTree { dirty, ..tree });
        assert_eq!(state.ending(), ending, "{name}");
    }
}

/// An earlier claim says nothing about the one that counts.
#[test]
fn only_the_claim_that_counts_says_whether_there_was_anything_to_do() {
    let nothing = "```pilot-signal\n{\"v\":2,\"type\":\"exit\",\"success\":true,\"no_op\":true,\
                   \"reason\":\"already there\"}\n```\n";
    for (name, [first, second], vias, ending) in [
        ("no longer", [nothing, &exit(true)], [Via::Said; 2], None),
        ("after all", [&exit(true), nothing], [Via::Said; 2], Some(Ending::Done)),
        ("by call, and said otherwise", [&exit(true), nothing], [Via::Call, Via::Said], None),
    ] {
        let mut state = begun(|config| config.require_commit = true);
        let tree = WorkTree { head: Some("a".into()), ..WorkTree::default() };
        looks(&mut state, 0, tree.clone());
        for (message, (text, via)) in (0..).zip([first, second].into_iter().zip(vias)) {
            let mut signals = reports("pilot", text);
            signals.iter_mut().for_each(|it| (it.message, it.via) = (message, via));
            state.on_event(at(1), &Event::Reported { signals });
        }
        exits(&mut state, 1);
        looks(&mut state, 1, tree);
        assert_eq!(state.ending(), ending, "{name}");
    }
}

#[test]
fn a_merge_that_is_resolved_in_vain_needs_a_human() {
    for (name, verify, conflicts) in [("markers", false, true), ("the check", true, false)] {
        let mut state = begun(|config| config.verify = verify);
        for attempt in 1..=3 {
            assert_eq!(state.status, Status::Working, "{name} {attempt}");
            hear(&mut state, attempt, "chorus", "<chorus>RESOLVED: kept both</chorus>");
            exits(&mut state, attempt);
            looks(&mut state, attempt, WorkTree { conflicts, ..WorkTree::default() });
            if state.status == Status::Checking {
                let (passed, output) = (false, String::new());
                state.on_event(at(attempt), &Event::Checked { passed, output });
            }
        }
        assert_eq!(state.status, Status::Asking, "{name}");
        let question = state.question.clone().unwrap();
        assert!(question.text.contains("3 attempts"), "{name}: {}", question.text);
        // The human's word is a new beginning.
        let answer =
            Event::Answer { id: question.id, text: "Keep ours.".into(), by: String::new() };
        state.on_event(at(9), &answer);
        assert_eq!(
            (&state.status, state.counts.refused_resolutions),
            (&Status::Working, 0),
            "{name}"
        );
    }
}

#[test]
fn what_a_lost_agent_spent_is_spent() {
    let mut state = begun(|config| config.max_tokens = Some(100));
    for round in 1..=3 {
        state.on_event(at(round), &Event::Spent(Usage { tokens: 30, micro_dollars: 5 }));
        state.on_event(at(round), &Event::Recovered);
    }
    assert_eq!(state.cost(), Usage { tokens: 90, micro_dollars: 15 });
    state.on_event(at(5), &Event::Spent(Usage { tokens: 10, micro_dollars: 0 }));
    send(&mut state, 6, &clean());
    assert_eq!(state.ending(), Some(Ending::OverBudget));
}

#[test]
fn a_limit_is_not_waited_for_for_ever() {
    let mut state = begun(|_| {});
    let until = Some(at(400 * 86_400));
    state.on_event(at(1), &Event::Limited { what: "resets next year".into(), until });
    exits(&mut state, 2);
    assert_eq!(state.status, Status::Limited { until: at(2 + 8 * 86_400) });
}

#[test]
fn a_limit_without_a_time_survives_the_stored_form() {
    let mut state = begun(|_| {});
    state.on_event(at(1), &Event::Limited { what: "overloaded".into(), until: None });
    let stored = serde_json::to_string(&state).unwrap();
    let mut state: State = serde_json::from_str(&stored).unwrap();
    state.on_event(at(2), &exited(Some(1), None));
    assert_eq!(state.status, Status::Limited { until: at(2 + 15 * 60) });
}

/// Found by the simulator: kept for the next step, it started the agent a second time after the
/// answer.
#[test]
fn a_supervisor_that_comes_back_to_a_wait_says_so_at_once() {
    for (name, events) in [
        ("asking", [heard("<chorus>NEEDS_HUMAN: x</chorus>"), clean()]),
        ("limited", [Event::Limited { what: "x".into(), until: None }, clean()]),
    ] {
        let mut state = begun(|_| {});
        for event in &events {
            state.on_event(at(1), event);
        }
        let outcome = state.on_event(at(2), &Event::Recovered);
        assert_eq!(outcome.effects, [], "{name}");
        assert!(outcome.decision().is_some(), "{name}");
        assert_eq!(state.status.name(), name);
    }
}

#[test]
fn an_abort_is_an_abort_wherever_the_run_is() {
    let abort = Event::Abort { by: "somebody".into() };
    let mut reached = Vec::new();
    for (name, with_agent, events) in [
        ("working", true, vec![]),
        ("paused", true, vec![Event::Pause { by: String::new() }]),
        ("looking", false, vec![heard("<chorus>COMPLETE</chorus>"), clean()]),
        (
            "checking",
            false,
            vec![heard("<chorus>COMPLETE</chorus>"), clean(), Event::Looked(WorkTree::default())],
        ),
        ("asking", false, vec![heard("<chorus>NEEDS_HUMAN: x</chorus>"), clean()]),
        ("limited", false, vec![Event::Limited { what: "x".into(), until: None }, clean()]),
    ] {
        let mut state = begun(|config| config.verify = true);
        for event in &events {
            state.on_event(at(1), event);
        }
        assert_eq!(state.status.name(), name);
        let outcome = state.on_event(at(2), &abort);
        let asked = outcome.effects.contains(&Effect::End { grace: 30 });
        assert_eq!(asked, with_agent, "{name}");
        if with_agent {
            // Asking again changes nothing, and what the agent says now does not either.
            state.on_event(at(3), &heard("<chorus>COMPLETE</chorus>"));
            exits(&mut state, 3);
        }
        assert_eq!(state.ending(), Some(Ending::Aborted), "{name}");
        reached.push(name);
    }
    assert_eq!(reached.len(), 6);
}

#[test]
fn after_the_end_only_a_human_changes_anything() {
    let mut state = begun(|config| config.max_iterations = 1);
    iteration(&mut state, 1, "Still at it.", None);
    let ended = state.clone();
    for event in [
        Event::Begin,
        Event::Recovered,
        Event::Launched { agent: "x".into() },
        heard("<chorus>COMPLETE</chorus>"),
        Event::NearMiss { hint: "x".into() },
        Event::Activity,
        Event::Spent(Usage { tokens: 1, micro_dollars: 1 }),
        Event::Retrying { what: "x".into() },
        Event::Limited { what: "x".into(), until: None },
        Event::HostFailed { what: "x".into() },
        clean(),
        Event::Looked(WorkTree { dirty: true, ..WorkTree::default() }),
        Event::Checked { passed: true, output: String::new() },
        Event::Tick,
        Event::Pause { by: String::new() },
        Event::Resume { by: String::new() },
        Event::Abort { by: "x".into() },
        Event::Answer { id: "q1".into(), text: "x".into(), by: String::new() },
    ] {
        assert_eq!(state.on_event(at(2), &event), Outcome::nothing(), "{event:?}");
        let same_time = State { clock: ended.clock.clone(), ..state.clone() };
        assert_eq!(same_time, ended, "{event:?}");
    }
}

#[test]
fn what_comes_late_or_twice_counts_for_nothing() {
    let mut state = begun(|config| config.verify = true);
    let checked = Event::Checked { passed: true, output: String::new() };
    assert_eq!(state.on_event(at(1), &checked), Outcome::nothing(), "nobody asked for a check");
    hear(&mut state, 2, "chorus", "<chorus>COMPLETE</chorus>");
    exits(&mut state, 2);
    for event in [
        clean(),
        heard("<chorus>BLOCKED: x</chorus>"),
        Event::Pause { by: String::new() },
        Event::Resume { by: String::new() },
    ] {
        assert_eq!(state.on_event(at(3), &event), Outcome::nothing(), "{event:?}");
    }
    looks(&mut state, 3, WorkTree::default());
    assert_eq!(state.status, Status::Checking);
    assert_eq!(state.on_event(at(4), &clean()), Outcome::nothing());
    state.on_event(at(5), &checked);
    assert_eq!(state.ending(), Some(Ending::Done));
}

#[test]
fn a_level_reached_while_the_agent_stops_ends_the_run() {
    let mut state = begun(|config| config.iteration_timeout = 5);
    state.on_event(at(5), &Event::Tick);
    assert_eq!(state.status, Status::Ending { with: None });
    for second in 6..16 {
        hear(&mut state, second, "chorus", "<chorus>PROGRESS: 10</chorus>");
    }
    assert_eq!(state.monitor.level(), stagnation::Level::Abort);
    let outcome = send(&mut state, 20, &clean());
    assert_eq!(state.ending(), Some(Ending::Stagnated));
    let because = &outcome.decision().unwrap().because;
    assert!(because.starts_with("the agent reported the same state 10 times;"), "{because}");
}

#[test]
fn the_first_commit_of_a_repository_is_a_commit() {
    let looked = |head: Option<&str>| {
        let fingerprint = Some(format!("{head:?}"));
        Event::Looked(WorkTree {
            fingerprint,
            head: head.map(str::to_owned),
            ..WorkTree::default()
        })
    };
    for (name, before, after, done) in [
        ("a commit in an empty repository", None, Some("a"), true),
        ("an empty repository", None, None, false),
        ("a commit", Some("a"), Some("b"), true),
        ("no commit", Some("a"), Some("a"), false),
    ] {
        let mut state = begun(|config| config.require_commit = true);
        state.on_event(at(0), &looked(before));
        state.on_event(at(1), &looked(after));
        hear(&mut state, 2, "chorus", "<chorus>COMPLETE</chorus>");
        exits(&mut state, 3);
        state.on_event(at(4), &looked(after));
        assert_eq!(state.ending() == Some(Ending::Done), done, "{name}");
    }
}

#[test]
fn work_since_the_last_look_is_kept_too() {
    let clean_tree = WorkTree { fingerprint: Some("clean".to_owned()), ..WorkTree::default() };
    for (name, tree, keeps) in
        [("in git", clean_tree, true), ("elsewhere", WorkTree::default(), false)]
    {
        let mut state = begun(|_| {});
        state.on_event(at(0), &Event::Looked(tree));
        state.on_event(at(5), &Event::Abort { by: "x".to_owned() });
        let outcome = state.on_event(at(6), &clean());
        assert_eq!(keeps_work(&outcome), keeps, "{name}");
    }
}

/// How a signal came is in its decision, in words and as evidence.
#[test]
fn decisions_show_how_a_signal_came() {
    let rules = Rules::new([Dialect::builtin("chorus").unwrap().clone()]);
    let token = Token::Accept("k7f3".to_owned());
    let text = b"<chorus>COMPLETE: #k7f3</chorus>";
    let found = Scan::new(&rules).token(token).run(text);
    let signal = RunSignal::new(found[0].signal().unwrap(), 0);
    for (via, because) in [
        (Via::Said, "in its output"),
        (Via::Token, "in its output, with the run token"),
        (Via::Receipt, "with `aldis signal`"),
        (Via::Call, "by tool call"),
    ] {
        assert_eq!(signal.via, Via::Token);
        let signals = vec![RunSignal { via, ..signal.clone() }];
        let mut state = begun(|_| {});
        let outcome = state.on_event(at(1), &Event::Reported { signals });
        let decision = outcome.decision().unwrap();
        assert_eq!((&*decision.because, decision.evidence[0].via), (because, via));
        let stored = serde_json::to_value(&decision.evidence[0]).unwrap();
        assert_eq!(stored.get("via").is_some(), via != Via::Said, "{stored}");
    }
}

#[test]
fn no_limit_is_0() {
    assert_eq!(Config::default().check(), Ok(()));
    let usual = serde_json::to_value(Config::default()).unwrap();
    for key in [
        "max_iterations",
        "iteration_timeout",
        "timeout",
        "max_tokens",
        "max_micro_dollars",
        "limit_wait",
        "max_limit_waits",
        "crash_wait",
        "max_attempts",
    ] {
        let mut changed = usual.clone();
        changed[key] = 0.into();
        let config: Config = serde_json::from_value(changed).unwrap();
        assert_eq!(config.check(), Err(ConfigError { key: key.to_owned() }), "{key}");
    }
}

fn heard(text: &str) -> Event {
    Event::Reported { signals: reports("chorus", text) }
}

/// Who is believed when an agent reports in several ways in one iteration.
#[test]
fn a_stronger_report_beats_a_weaker_one() {
    use Via::{Call, Receipt, Said, Token};
    let (done, blocked) = ("<chorus>COMPLETE</chorus>", "<chorus>BLOCKED: no key</chorus>");
    let asks = "<chorus>NEEDS_HUMAN: which?</chorus>";
    for (name, reported, ending, outranked) in [
        ("as before", [(done, Said), (blocked, Said)], Some(Ending::Blocked), None),
        ("a call", [(done, Call), (blocked, Said)], Some(Ending::Done), Some("BLOCKED")),
        (
            "whatever came first",
            [(blocked, Said), (done, Call)],
            Some(Ending::Done),
            Some("BLOCKED"),
        ),
        ("a receipt", [(done, Receipt), (asks, Token)], Some(Ending::Done), Some("NEEDS_HUMAN")),
        ("a token", [(blocked, Token), (done, Said)], Some(Ending::Blocked), Some("COMPLETE")),
        ("the same", [(done, Said), (done, Call)], Some(Ending::Done), None),
    ] {
        let mut state = begun(|_| {});
        for (number, (text, via)) in (0..).zip(reported) {
            let mut signals = reports("chorus", text);
            signals.iter_mut().for_each(|it| (it.message, it.via) = (number, via));
            state.on_event(at(1), &Event::Reported { signals });
        }
        let mut outcome = exits(&mut state, 2);
        assert_eq!(outcome.decisions.len(), 1, "{name}");
        let decided = outcome.decisions.remove(0);
        looks(&mut state, 2, WorkTree::default());
        assert_eq!(state.ending(), ending, "{name}");
        // It is quoted, and said.
        let refused = decided.evidence.iter().find(|it| it.what == "refused");
        assert_eq!(refused.and_then(|it| it.name.as_deref()), outranked, "{name}");
        assert_eq!(refused.and_then(|it| it.reason.as_deref()), outranked.map(|_| "outranked"));
        assert!(refused.is_none_or(|it| !it.quote.is_empty()), "{name}");
        let told = outranked.map(|outranked| format!("{outranked} does not count"));
        let told = told.is_none_or(|told| decided.because.contains(&told));
        assert!(told, "{name}: {}", decided.because);
    }
}
