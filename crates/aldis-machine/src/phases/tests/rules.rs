//! Every rule of the decision at a stop, and every event beside it.

use super::*;

type Change = fn(&mut State);

/// One stop: how the run stood, what was said, what came of it.
struct Row {
    name: &'static str,
    phase: &'static str,
    given: Change,
    said: String,
    answer: &'static str,
    phase_after: &'static str,
    iteration: u32,
    exit: Option<ExitReason>,
}

fn row(name: &'static str, phase: &'static str, said: impl Into<String>) -> Row {
    let (answer, phase_after) = ("block phases/blocked", phase);
    let said = said.into();
    Row { name, phase, given: |_| {}, said, answer, phase_after, iteration: 1, exit: None }
}

impl Row {
    fn given(mut self, change: Change) -> Self {
        self.given = change;
        self
    }

    fn gives(mut self, answer: &'static str, phase: &'static str, iteration: u32) -> Self {
        (self.answer, self.phase_after, self.iteration) = (answer, phase, iteration);
        self
    }

    fn ends(mut self, exit: ExitReason) -> Self {
        self.exit = Some(exit);
        self
    }
}

fn skip(state: &mut State, flags: &[&str]) {
    state.setup.config.skip = flags.iter().map(|flag| (*flag).to_owned()).collect();
}

fn completions() -> Vec<Row> {
    vec![
        row("the expected signal", "qa", block("QA_COMPLETE")).gives(
            "block phases/phase-complete",
            "review",
            0,
        ),
        row("on the last allowed iteration", "qa", block("QA_COMPLETE"))
            .given(|s| s.progress.iteration = 20)
            .gives("block phases/phase-complete", "review", 0),
        row("skipping one", "execution", block("EXECUTION_COMPLETE"))
            .given(|s| skip(s, &["skip_qa"]))
            .gives("block phases/phase-complete", "review", 0),
        row("skipping four", "execution", block("EXECUTION_COMPLETE"))
            .given(|s| skip(s, &["skip_qa", "skip_review"]))
            .gives("block phases/phase-complete", "reflect", 0),
        row("skipping all the rest", "execution", block("EXECUTION_COMPLETE"))
            .given(|s| skip(s, &["skip_qa", "skip_review", "skip_reflect"]))
            .gives("allow phases/all-phases-complete", "complete", 0)
            .ends(ExitReason::AllPhasesComplete),
        row("the last phase", "reflect", block("REFLECT_COMPLETE"))
            .gives("allow phases/all-phases-complete", "complete", 0)
            .ends(ExitReason::AllPhasesComplete),
        row("two in one message", "execution", block("EXECUTION_COMPLETE") + &block("QA_COMPLETE"))
            .gives("block phases/phase-complete", "review", 0),
        row("twice the same", "init", block("INIT_COMPLETE") + &block("INIT_COMPLETE")).gives(
            "block phases/phase-complete",
            "planning",
            0,
        ),
        row("out of order", "execution", block("QA_COMPLETE")),
        row("in the wrong order", "execution", block("QA_COMPLETE") + &block("EXECUTION_COMPLETE"))
            .gives("block phases/phase-complete", "qa", 0),
        row("a transition only", "execution", block("TRANSITION_TO_QA")),
        row("stop after a phase", "qa", block("QA_COMPLETE"))
            .given(|s| s.setup.config.after_transition = AfterTransition::Stop)
            .gives("allow phases/stopped-after-phase", "review", 0),
        row("the whole run", "qa", block("AUTO_COMPLETE"))
            .gives("allow phases/auto-complete", "complete", 0)
            .ends(ExitReason::AutoCompleteSignal),
    ]
}

fn errors_and_limits() -> Vec<Row> {
    vec![
        row("a recoverable error", "qa", error_block("qa", true))
            .given(|s| s.progress.iteration = 4)
            .gives("allow phases/recoverable-error", "qa", 4),
        row("a fatal error", "planning", error_block("planning", false))
            .gives("allow phases/critical-error", "failed", 0)
            .ends(ExitReason::CriticalError),
        row("neither", "qa", error_block("qa", true).replace("E: true", "E: perhaps")).gives(
            "allow phases/recoverable-error",
            "qa",
            0,
        ),
        row("failure, then success", "qa", error_block("qa", true) + &block("QA_COMPLETE")),
        row("success, then failure", "qa", block("QA_COMPLETE") + &error_block("qa", true)).gives(
            "allow phases/recoverable-error",
            "qa",
            0,
        ),
        row("nothing", "execution", "Still going."),
        row("the limit", "execution", "Still going.")
            .given(|s| s.progress.iteration = 20)
            .gives("allow phases/iterations-used-up", "failed", 20)
            .ends(ExitReason::MaxIterationsReached),
        row("one below the limit", "execution", "Still going.")
            .given(|s| s.progress.iteration = 19)
            .gives("block phases/blocked", "execution", 20),
        row("an unknown phase", "warp", "Still going.").gives(
            "allow phases/unknown-phase",
            "warp",
            0,
        ),
        row("silence", "execution", "Still going.")
            .given(|s| s.clock.last_activity = Some(at(-121)))
            .gives("allow phases/stale", "execution", 0)
            .ends(ExitReason::StaleState),
        row("silence just short enough", "execution", "Still going.")
            .given(|s| s.clock.last_activity = Some(at(-119))),
        row("a long turn that ends in the signal", "qa", block("QA_COMPLETE"))
            .given(|s| s.clock.last_activity = Some(at(-600)))
            .gives("block phases/phase-complete", "review", 0),
        row("no legible start", "qa", block("QA_COMPLETE"))
            .given(|s| s.clock.started_at = None)
            .gives("allow phases/stale", "qa", 0)
            .ends(ExitReason::StaleState),
    ]
}

fn nobody_elses() -> Vec<Row> {
    vec![
        row("ended", "qa", block("QA_COMPLETE"))
            .given(|s| s.progress.active = false)
            .gives("allow -", "qa", 0),
        row("complete, though active", "complete", "done").gives("allow -", "complete", 0),
        row("failed, though active", "failed", "done").gives("allow -", "failed", 0),
        row("another session", "qa", block("QA_COMPLETE"))
            .given(|s| s.session = Some("S2".to_owned()))
            .gives("allow -", "qa", 0),
        row("no session yet", "qa", "Still going.").given(|s| s.session = None),
    ]
}

#[test]
fn stops_are_judged_by_the_rules() {
    for row in completions().into_iter().chain(errors_and_limits()).chain(nobody_elses()) {
        let mut state = run_in(row.phase);
        (row.given)(&mut state);
        let before = state.clone();
        let outcome = says(&mut state, 1, &row.said);
        let got = (
            &*answer(&outcome),
            &*state.progress.phase,
            state.progress.iteration,
            state.closing.exit_reason,
        );
        assert_eq!(got, (row.answer, row.phase_after, row.iteration, row.exit), "{}", row.name);
        if row.answer == "allow -" {
            assert_eq!(state, before, "{}", row.name);
        }
        let ended = state.closing.exit_reason.is_some_and(ExitReason::is_success);
        assert_eq!(
            ended,
            state.progress.phase == "complete" && before.progress.phase != "complete",
            "{}",
            row.name
        );
    }
}

#[test]
fn a_stop_without_a_session_is_never_refused() {
    let mut state = run_in("qa");
    let stop = Stop { session: None, ..stop(&state, "Still going.") };
    let outcome = state.on_event(at(1), &Event::Stop(stop));
    assert_eq!(outcome.decisions, []);
}

#[test]
fn a_run_binds_to_the_first_turn_that_began_after_it() {
    for (began, bound) in [(Some(at(-5)), None), (Some(at(1)), Some("S1")), (None, Some("S1"))] {
        let mut state = run_in("qa");
        state.session = None;
        let stop = Stop { turn_began: began, ..stop(&state, "Still going.") };
        state.on_event(at(2), &Event::Stop(stop));
        assert_eq!(state.session.as_deref(), bound, "turn began at {began:?}");
    }
}

#[test]
fn signals_said_before_the_phase_began_are_late() {
    let mut state = run_in("qa");
    state.clock.phase_started_at = at(10);
    let mut late = stop(&state, &block("QA_COMPLETE"));
    for said in &mut late.findings {
        let PhaseFinding::Signal(signal) = said else { continue };
        signal.at = Some(at(9));
    }
    let outcome = state.on_event(at(11), &Event::Stop(late));
    assert_eq!(answer(&outcome), "block phases/blocked");
    assert!(prompt_of(&outcome).contains("before this phase began"), "{}", prompt_of(&outcome));
}

#[test]
fn what_was_heard_once_is_not_heard_again() {
    let mut state = run_in("qa");
    let mut first = stop(&state, &error_block("qa", true));
    for said in &mut first.findings {
        let PhaseFinding::Signal(signal) = said else { continue };
        signal.at = Some(at(1));
    }
    assert_eq!(
        answer(&state.on_event(at(2), &Event::Stop(first.clone()))),
        "allow phases/recoverable-error"
    );
    assert_eq!(answer(&state.on_event(at(3), &Event::Stop(first))), "block phases/blocked");
}

#[test]
fn subagents_complete_phases_and_never_runs() {
    let mut state = run_in("planning");
    let outcome = subagent_says(&mut state, 1, "a1", &block("PLANNING_COMPLETE"));
    assert_eq!(
        (&*answer(&outcome), &*state.progress.phase),
        ("allow phases/subagent-completed-phase", "execution")
    );
    // The main agent goes on with the next phase, without using up an iteration.
    let outcome = says(&mut state, 2, "Planner finished, plan looks good.");
    assert_eq!((&*answer(&outcome), state.progress.iteration), ("block phases/phase-complete", 0));
    assert!(prompt_of(&outcome).contains("phase execution"));
    // The same result again, as the transcript has it.
    let mut again = stop(&state, "");
    again.findings =
        found(&state, &block("PLANNING_COMPLETE"), Origin::new(Role::Subagent).with_agent("a1"));
    let outcome = state.on_event(at(3), &Event::Stop(again));
    assert_eq!((&*answer(&outcome), &*state.progress.phase), ("block phases/blocked", "execution"));

    for (text, name) in [
        (block("AUTO_COMPLETE"), "AUTO_COMPLETE"),
        (error_block("execution", false), "PHASE_ERROR"),
    ] {
        let outcome = subagent_says(&mut state, 4, "a2", &text);
        let want = ("allow phases/subagent-signal-ignored", "execution");
        assert_eq!((&*answer(&outcome), &*state.progress.phase), want);
        let decision = outcome.decision().unwrap();
        assert_eq!(decision.summary, format!("Ignored {name} from sub-agent a2"));
        assert_eq!(decision.evidence[0].reason.as_deref(), Some("role_not_allowed"));
    }
    assert_eq!(state.progress.iteration, 1);
}

#[test]
fn subagents_complete_the_last_phase_and_the_main_agent_ends_the_run() {
    let ended = Some(ExitReason::AllPhasesComplete);
    for (said, answered, phase, exit) in [
        (
            "All findings are written down.".to_owned(),
            "allow phases/all-phases-complete",
            "complete",
            ended,
        ),
        (block("REFLECT_COMPLETE"), "allow phases/all-phases-complete", "complete", ended),
        // The main agent knows better.
        (error_block("reflect", true), "allow phases/recoverable-error", "reflect", None),
    ] {
        let mut state = run_in("reflect");
        let outcome = subagent_says(&mut state, 1, "a1", &block("REFLECT_COMPLETE"));
        let got = (&*answer(&outcome), &*state.progress.phase, state.progress.active);
        assert_eq!(got, ("allow phases/subagent-completed-phase", "reflect", true));
        let outcome = says(&mut state, 2, &said);
        let got = (&*answer(&outcome), &*state.progress.phase, state.closing.exit_reason);
        assert_eq!(got, (answered, phase, exit), "{said}");
        let again = answer(&says(&mut state, 3, "Anything else?"));
        assert_eq!(again, if exit.is_some() { "allow -" } else { "block phases/blocked" });
    }
}

/// The transcript has a sub-agent's report as the result of its task.
#[test]
fn an_ignored_signal_of_a_subagent_is_named_at_a_stop() {
    let mut state = run_in("qa");
    let mut result = stop(&state, "");
    result.findings =
        found(&state, &block("AUTO_COMPLETE"), Origin::new(Role::Subagent).with_agent("a1"));
    let outcome = state.on_event(at(1), &Event::Stop(result));
    assert_eq!((&*answer(&outcome), &*state.progress.phase), ("block phases/blocked", "qa"));
    let because = &outcome.decision().unwrap().because;
    assert!(because.contains("ignored AUTO_COMPLETE from sub-agent a1"), "{because}");
    assert!(prompt_of(&outcome).contains("AUTO_COMPLETE from sub-agent a1"));
}

/// What was really missing is what people ask for when a run ends without success.
#[test]
fn an_ending_names_the_last_claim_that_did_not_count() {
    type Ends = fn(&mut State) -> Outcome;
    let used_up: Ends = |state| {
        state.progress.iteration = state.setup.max_iterations;
        says(state, 3, "Still going.")
    };
    let capped: Ends = |state| {
        let cap = BlockCap { limit: Some(1), resets_on_tool_use: false };
        let continued = Some(true);
        let stop = Stop { cap, continued, ..stop(state, "Still going.") };
        state.on_event(at(3), &Event::Stop(stop))
    };
    let stale: Ends = |state| says(state, 500, "Still going.");
    for (ends, rule) in [
        (used_up, "allow phases/iterations-used-up"),
        (capped, "allow phases/capped"),
        (stale, "allow phases/stale"),
    ] {
        for (claim, reason) in [
            ("```\nSIGNAL: QA_COMPLETE\n```\nSoon.".to_owned(), "quoted"),
            (block("REVIEW_COMPLETE"), "out_of_order"),
        ] {
            let mut state = run_in("qa");
            says(&mut state, 1, &claim);
            let outcome = ends(&mut state);
            assert_eq!(answer(&outcome), rule);
            let decision = outcome.decision().unwrap();
            assert_eq!(decision.evidence[0].reason.as_deref(), Some(reason), "{rule}");
            assert!(decision.because.ends_with(&format!("did not count: {reason}")), "{rule}");
        }
    }
    // What was refused in a phase that is complete explains nothing any more.
    let mut state = run_in("qa");
    says(&mut state, 1, &block("REVIEW_COMPLETE"));
    says(&mut state, 2, &block("QA_COMPLETE"));
    assert_eq!(state.last_refused, None);
}

#[test]
fn the_cap_is_explained_by_its_host() {
    for (host, host_name, limit, want) in [
        ("claude-code", "Claude Code", Some(8), "Claude Code allows only 8 blocked stops in a row"),
        ("claude-code", "", Some(8), "claude-code allows only 8 blocked stops in a row"),
        ("", "", Some(1), "the host allows only 1 blocked stop in a row"),
        ("goose", "Goose", None, "20 stops in a row were blocked without a tool call"),
    ] {
        let mut state = run_in("qa");
        state.block_limit.blocks = limit.unwrap_or(DEFAULT_BLOCK_LIMIT);
        let stop = Stop {
            host: host.to_owned(),
            host_name: host_name.to_owned(),
            cap: BlockCap { limit, resets_on_tool_use: false },
            continued: Some(true),
            ..stop(&state, "Not yet.")
        };
        let outcome = state.on_event(at(1), &Event::Stop(stop));
        let summary = &outcome.decision().unwrap().summary;
        assert!(summary.starts_with(&format!("Let the agent stop: {want}")), "{summary}");
        assert!(summary.ends_with("The run is paused, not finished"), "{summary}");
    }
}

#[test]
fn subagents_of_an_unbound_run_are_not_heard() {
    let mut state = run_in("planning");
    state.session = None;
    let outcome = subagent_says(&mut state, 1, "a1", &block("PLANNING_COMPLETE"));
    assert_eq!((outcome.decision(), &*state.progress.phase), (None, "planning"));
}

#[test]
fn reasons_to_let_go_are_respected() {
    for hold in [
        MustAllow::Aborted,
        MustAllow::Background { what: "cargo test".to_owned() },
        MustAllow::Failed { what: "rate_limit".to_owned() },
        MustAllow::Question,
    ] {
        let mut state = run_in("qa");
        let waiting = Stop { must_allow: Some(hold.clone()), ..stop(&state, "Waiting.") };
        let outcome = state.on_event(at(1), &Event::Stop(waiting));
        let got = (&*answer(&outcome), state.progress.iteration, state.progress.active);
        assert_eq!(got, ("allow phases/allowed-for-now", 0, true), "{hold:?}");
        // A signal still counts.
        let done = Stop { must_allow: Some(hold.clone()), ..stop(&state, &block("QA_COMPLETE")) };
        let outcome = state.on_event(at(2), &Event::Stop(done));
        assert_eq!(
            (&*answer(&outcome), &*state.progress.phase),
            ("allow phases/allowed-for-now", "review"),
            "{hold:?}"
        );
        assert!(state.handover.prompt_pending);
    }
}

/// Stops in one turn until the agent is let go; returns how often it was refused.
fn refusals(state: &mut State, cap: BlockCap, tools_ran: bool) -> u32 {
    for count in 0..100 {
        let stop = Stop {
            cap,
            tools_ran,
            continued: Some(count > 0),
            turn: Some("t1".into()),
            ..stop(state, "Not yet.")
        };
        if answer(&state.on_event(at(1), &Event::Stop(stop))) != "block phases/blocked" {
            return count;
        }
    }
    100
}

#[test]
fn the_governor_lets_go_before_the_host_does() {
    let capped = |limit, resets_on_tool_use| BlockCap { limit, resets_on_tool_use };
    for (cap, tools, want) in [
        (capped(Some(8), true), false, 8),
        (capped(Some(8), false), true, 8),
        (capped(Some(8), true), true, 50),
        (capped(Some(3), true), false, 3),
        (capped(None, false), false, DEFAULT_BLOCK_LIMIT),
        (capped(None, false), true, 50),
    ] {
        let mut state = run_in("qa");
        state.setup.max_iterations = 50;
        assert_eq!(refusals(&mut state, cap, tools), want, "{cap:?} with tools {tools}");
        // Forced is not complete, and not failed either unless the phase's own limit says so.
        assert_eq!(state.block_limit.capped, want < 50);
        assert_eq!(state.progress.active, want < 50);
    }
}

#[test]
fn a_capped_run_goes_on_with_the_next_prompt_or_a_resume() {
    let cap = BlockCap { limit: Some(8), resets_on_tool_use: true };
    let mut state = run_in("qa");
    assert_eq!(refusals(&mut state, cap, false), 8);
    let prompt = Event::Prompt { session: Some("S1".into()), turn: Some("t2".into()), own: false };
    state.on_event(at(2), &prompt);
    assert!(!state.block_limit.capped);
    assert_eq!(refusals(&mut state, cap, false), 8);

    assert_eq!(state.can_resume(), Ok(()));
    state.on_event(at(3), &Event::Resume { fresh_token: None, by: String::new() });
    assert_eq!(
        (state.progress.iteration, state.session.as_deref(), &*state.progress.phase),
        (0, None, "qa")
    );
    assert!(state.handover.prompt_pending && !state.block_limit.capped);
}

#[test]
fn its_own_continuation_is_no_new_turn() {
    let mut state = run_in("qa");
    let outcome = says(&mut state, 1, "Not yet.");
    assert!(state.is_own_prompt(prompt_of(&outcome)));
    assert!(!state.is_own_prompt("go on"));
    let prompt = Event::Prompt { session: Some("S1".into()), turn: None, own: true };
    state.on_event(at(2), &prompt);
    assert_eq!(state.block_limit.blocks, 1);
}

#[test]
fn the_same_hint_is_given_twice_then_only_the_form() {
    let mut state = run_in("qa");
    let almost = "I will print SIGNAL: QA_COMPLETE once the suite is green.";
    let texts: Vec<String> =
        (1..=4).map(|m| prompt_of(&says(&mut state, m, almost)).to_owned()).collect();
    let explained: Vec<bool> = texts.iter().map(|text| text.contains("Almost a signal")).collect();
    assert_eq!(explained, [true, true, false, false], "{texts:#?}");
    assert!(texts[2].contains("Copy the form below"));
    // Another mistake is explained again.
    let other = prompt_of(&says(&mut state, 5, "> SIGNAL: QA_COMPLETE")).to_owned();
    assert!(other.contains("Almost a signal"), "{other}");
}

#[test]
fn the_first_prompt_tells_what_the_phase_is_about() {
    let mut state = run_in("qa");
    state.handover.prompt_pending = true;
    let prompt =
        |session: &str| Event::Prompt { session: Some(session.into()), turn: None, own: false };
    assert_eq!(state.on_event(at(1), &prompt("S2")).decisions, []);
    let outcome = state.on_event(at(1), &prompt("S1"));
    assert_eq!(answer(&outcome), "context phases/start-prompt-delivered");
    assert!(prompt_of(&outcome).contains("Add CSV export"));
    assert_eq!(answer(&state.on_event(at(2), &prompt("S1"))), "nothing phases/prompt-received");
    // A session that comes back after a compaction has forgotten it.
    state.on_event(at(3), &Event::SessionStart { session: Some("S1".into()) });
    assert_eq!(
        answer(&state.on_event(at(4), &prompt("S1"))),
        "context phases/start-prompt-delivered"
    );
}

#[test]
fn silence_before_a_prompt_makes_a_run_stale() {
    let mut state = run_in("qa");
    let prompt = Event::Prompt { session: Some("S1".into()), turn: None, own: false };
    state.on_event(at(180), &prompt);
    assert_eq!(answer(&says(&mut state, 181, "Back again.")), "allow phases/stale");
    assert_eq!(state.closing.exit_reason, Some(ExitReason::StaleState));
    assert_eq!(state.can_resume(), Ok(()));
}

/// A clock that steps back and is right again leaves no gap.
#[test]
fn a_clock_step_does_not_make_a_run_stale() {
    for back in [-1, -240, -100_000] {
        let mut state = run_in("qa");
        assert_eq!(answer(&says(&mut state, 1, "Not yet.")), "block phases/blocked");
        assert_eq!(answer(&says(&mut state, back, "Not yet.")), "block phases/blocked");
        assert_eq!(state.clock.last_activity, Some(at(1)), "back to {back}");
        let prompt = Event::Prompt { session: Some("S1".into()), turn: None, own: false };
        state.on_event(at(back), &prompt);
        assert_eq!(
            answer(&says(&mut state, 6, "Not yet.")),
            "block phases/blocked",
            "back to {back}"
        );
    }
}

#[test]
fn a_failed_turn_is_recorded_and_counts_nothing() {
    let mut state = run_in("qa");
    let failed =
        Event::StopFailed { session: Some("S1".into()), error: "rate_limit".into(), until: None };
    assert_eq!(answer(&state.on_event(at(1), &failed)), "allow phases/turn-failed");
    assert_eq!((state.progress.iteration, state.progress.active), (0, true));
    assert!(state.closing.last_error.unwrap().message.contains("rate_limit"));
}

#[test]
fn humans_end_and_resume_runs() {
    let mut state = run_in("qa");
    state.on_event(at(1), &Event::Cancel { by: "`aldis auto stop`".into() });
    assert_eq!(
        (state.progress.active, state.closing.exit_reason),
        (false, Some(ExitReason::UserCancelled))
    );
    assert_eq!(state.can_resume(), Err(NotResumable::Cancelled));
    let before = state.clone();
    assert_eq!(
        state.on_event(at(2), &Event::Resume { fresh_token: None, by: String::new() }).decisions,
        []
    );
    assert_eq!(state, before);

    let mut state = run_in("reflect");
    says(&mut state, 1, &block("REFLECT_COMPLETE"));
    assert_eq!(state.can_resume(), Err(NotResumable::Complete));

    let mut state = run_in("qa");
    says(&mut state, 1, &error_block("qa", false));
    state.on_event(at(2), &Event::Resume { fresh_token: None, by: String::new() });
    assert_eq!(
        (&*state.progress.phase, state.progress.active, state.closing.exit_reason),
        ("qa", true, None)
    );
}

#[test]
fn tokens_are_demanded_and_rotated() {
    let mut state = run_in("qa");
    state.setup.config.token = TokenPolicy::Require;
    state.token = Some("k7Qd".to_owned());
    assert_eq!(answer(&says(&mut state, 1, &block("QA_COMPLETE"))), "block phases/blocked");
    let said = block("QA_COMPLETE").replace("STATUS", "TOKEN: k7Qd\nSTATUS");
    let both = said + &block("REVIEW_COMPLETE").replace("STATUS", "TOKEN: k7Qd\nSTATUS");
    let stop = Stop { fresh_token: Some("m2Xp".into()), ..stop(&state, &both) };
    let outcome = state.on_event(at(2), &Event::Stop(stop));
    // The next phase has a code of its own, which nobody knew when this was said.
    assert_eq!(
        (&*answer(&outcome), &*state.progress.phase),
        ("block phases/phase-complete", "review")
    );
    assert_eq!(state.token.as_deref(), Some("m2Xp"));
    assert!(prompt_of(&outcome).contains("TOKEN: m2Xp"));
    let decision = serde_json::to_string(&outcome.decisions).unwrap();
    assert!(!decision.contains("k7Qd"), "{decision}");

    let leaked = Stop {
        token_leaked: true,
        fresh_token: Some("z9Aa".into()),
        ..super::stop(&state, "m2Xp?")
    };
    state.on_event(at(3), &Event::Stop(leaked.clone()));
    assert_eq!(state.token.as_deref(), Some("z9Aa"));

    // A run that ends in the same stop needs no new one.
    state.setup.config.token = TokenPolicy::Accept;
    let ending = Stop { findings: super::stop(&state, &block("AUTO_COMPLETE")).findings, ..leaked };
    state.on_event(at(4), &Event::Stop(ending));
    assert_eq!((&*state.progress.phase, state.token), ("complete", None));
}

#[test]
fn another_dialect_completes_phases_by_meaning() {
    let mut state = run_in("qa");
    state.setup.pipeline = Pipeline::caw().in_dialect("chorus");
    let outcome = says(&mut state, 1, "All green.\n\n<chorus>COMPLETE</chorus>");
    assert_eq!(
        (&*answer(&outcome), &*state.progress.phase),
        ("block phases/phase-complete", "review")
    );
    assert!(prompt_of(&outcome).contains("chorus"));
}

#[test]
fn limits_are_never_unlimited() {
    for (asked, want) in [
        (None, 20),
        (Some(0), 20),
        (Some(1), 1),
        (Some(50), 50),
        (Some(500), 50),
        (Some(u64::MAX), 50),
    ] {
        assert_eq!(clamp_iterations(asked), want, "{asked:?}");
    }
}

#[test]
fn what_was_said_before_a_stop_without_text_counts() {
    for (session, phase) in [("S1", "review"), ("S2", "qa")] {
        let mut state = run_in("qa");
        let findings = found(&state, &block("QA_COMPLETE"), Origin::assistant());
        let event = Event::Responded {
            session: Some(session.into()),
            findings,
            closing_text: "Done.".into(),
        };
        state.on_event(at(1), &event);
        says(&mut state, 2, "");
        assert_eq!(state.progress.phase, phase);
        assert_eq!(state.reading.pending_response, None, "it counts for one stop");
    }
}
