//! Claims that are checked before they count.

use super::*;
use crate::proof::{
    self, CheckResult, CheckStatus, Claim, Environment, Inspection, OnChange, Opinion,
    OpinionVerdict, Pinned, Step,
};
use crate::{HumanCommand, Machine as _};

type Happens = fn(&mut State) -> Outcome;

/// One example of each rule, for the sentences.
pub(super) const CASES: &[(&str, Happens)] = &[
    ("a claim that is checked", claimed),
    ("the whole run is claimed", |s| {
        checked(s);
        says(s, 1, &block("AUTO_COMPLETE"))
    }),
    ("still checking", |s| {
        claimed(s);
        says(s, 2, "I wait.")
    }),
    ("a check passes, and the run is complete", |s| {
        claimed(s);
        verdict(s, 2, CheckStatus::Passed)
    }),
    ("the check of a sub-agent's claim passes", |s| {
        last_phase(s);
        subagent_says(s, 1, "a1", &block("REFLECT_COMPLETE"));
        verdict(s, 2, CheckStatus::Passed)
    }),
    ("a check fails", |s| {
        claimed(s);
        verdict(s, 2, CheckStatus::Failed)
    }),
    ("after a failed check", |s| {
        claimed(s);
        verdict(s, 2, CheckStatus::Failed);
        says(s, 3, "I wait.")
    }),
    ("whoever checks is gone", |s| {
        claimed(s);
        lost(s, 2)
    }),
    ("whoever checks is gone again", |s| {
        claimed(s);
        lost(s, 2);
        lost(s, 3)
    }),
    ("a second opinion refuses", |s| {
        claimed(s);
        judged(s, 2, (CheckStatus::Passed, Some(OpinionVerdict::Refuse)))
    }),
    ("a human is asked", asked),
    ("a stop while a human is asked", |s| {
        asked(s);
        says(s, 3, "I wait.")
    }),
    ("a human accepts", |s| {
        asked(s);
        answer_claim(s, "yes")
    }),
    ("a human refuses", |s| {
        asked(s);
        answer_claim(s, "no, put the test back")
    }),
    ("no more stops can be blocked while it is checked", |s| {
        claimed(s);
        let cap = BlockCap { limit: Some(1), resets_on_tool_use: false };
        let stop = Stop { cap, ..stop(s, "I wait.") };
        s.on_event(at(2), &Event::Stop(stop))
    }),
];

fn checked(state: &mut State) {
    state.setup.config.proof = proof::Config::unnamed("make test");
}

fn last_phase(state: &mut State) {
    checked(state);
    state.progress.phase = "reflect".to_owned();
}

/// The last phase is claimed to be complete.
fn claimed(state: &mut State) -> Outcome {
    last_phase(state);
    says(state, 1, &block("REFLECT_COMPLETE"))
}

/// What a round of checks makes of the claim.
fn round(state: &State, status: CheckStatus, opinion: Option<OpinionVerdict>) -> Proof {
    let mut config = state.setup.config.proof.clone();
    config.judge = opinion.map(|_| "judge".to_owned());
    let (mut proof, config) = (state.checks.proof.clone(), &config);
    let mut step = Some(proof.begin_claim(config, Claim::default()));
    while let Some(next) = step.take() {
        step = match next {
            Step::Inspect { .. } => {
                let environment = Environment::default();
                let mut inspection = Inspection { environment, ..Inspection::default() };
                if config.on_change == Some(OnChange::Ask) {
                    inspection.changes.push(proof::FileChange {
                        path: "tests/export.rs".to_owned(),
                        part: None,
                        class: proof::FileClass::Test,
                        kind: proof::ChangeKind::Changed,
                        before: None,
                        after: None,
                    });
                }
                proof.on_inspected(config, &inspection)
            }
            Step::Run { check, .. } => {
                let mut result = CheckResult::new(&check.name, &check.command, status);
                result.output.tail = "2 of 118 failed\n".to_owned();
                proof.on_result(config, &result)
            }
            Step::Ask => {
                let verdict = opinion.expect("asked for nothing");
                proof.on_opinion(config, &Opinion::new("judge", verdict, "the tests are empty"))
            }
            Step::Judged(_) => None,
        };
    }
    proof
}

fn judged(
    state: &mut State,
    minutes: i64,
    (status, says): (CheckStatus, Option<OpinionVerdict>),
) -> Outcome {
    let proof = Box::new(round(state, status, says));
    let check = state.checks.started;
    state.on_event(at(minutes), &Event::Checked { check, proof, fresh_token: None })
}

fn verdict(state: &mut State, minutes: i64, status: CheckStatus) -> Outcome {
    judged(state, minutes, (status, None))
}

fn lost(state: &mut State, minutes: i64) -> Outcome {
    let (check, what) = (state.checks.started, "the process that ran them is gone".to_owned());
    state.on_event(at(minutes), &Event::CheckLost { check, what })
}

fn asked(state: &mut State) -> Outcome {
    claimed(state);
    state.setup.config.proof.on_change = Some(OnChange::Ask);
    verdict(state, 2, CheckStatus::Passed)
}

fn answer_claim(state: &mut State, text: &str) -> Outcome {
    let id = state.question().unwrap().id.clone();
    let command = HumanCommand::Answer { id, text: text.to_owned() };
    let event = state.command(&command, "`aldis answer`").unwrap();
    state.on_event(at(4), &event)
}

fn wants_check(outcome: &Outcome) -> Option<u32> {
    outcome.effects.iter().find_map(|effect| match effect {
        Effect::Check { check } => Some(*check),
        _ => None,
    })
}

#[test]
fn the_claim_that_ends_a_run_is_checked_and_no_other() {
    let mut state = run_in("execution");
    checked(&mut state);
    let outcome = says(&mut state, 1, &block("EXECUTION_COMPLETE"));
    assert_eq!(answer(&outcome), "block phases/phase-complete");
    assert_eq!((wants_check(&outcome), &*state.progress.phase), (None, "qa"));
    let outcome = claimed(&mut state);
    assert_eq!(answer(&outcome), "block phases/check-started");
    assert_eq!(
        (wants_check(&outcome), &*state.progress.phase, state.progress.iteration),
        (Some(1), "reflect", 0)
    );
    assert!(prompt_of(&outcome).contains("aldis auto status --wait"), "{}", prompt_of(&outcome));
    // The prompt itself is no signal.
    assert_eq!(found(&state, prompt_of(&outcome), Origin::assistant()), []);
    // Said again, it is the same claim.
    let outcome = says(&mut state, 2, &block("REFLECT_COMPLETE"));
    assert_eq!(
        (answer(&outcome), wants_check(&outcome)),
        ("block phases/still-checking".into(), None)
    );
    let outcome = verdict(&mut state, 3, CheckStatus::Passed);
    assert_eq!(answer(&outcome), "allow phases/all-phases-complete");
    assert_eq!(
        (state.progress.active, state.closing.exit_reason),
        (false, Some(ExitReason::AllPhasesComplete))
    );
    assert_eq!(says(&mut state, 4, "I am done."), Outcome::untouched());
}

#[test]
fn without_checks_nothing_is_different() {
    let mut state = run_in("reflect");
    let outcome = says(&mut state, 1, &block("REFLECT_COMPLETE"));
    assert_eq!(answer(&outcome), "allow phases/all-phases-complete");
    assert!(state.checks.is_empty());
    assert!(!state.to_stored().unwrap().contains("checks"));
}

#[test]
fn a_refused_claim_tells_the_agent_why_and_can_be_made_again() {
    let mut state = run_in("qa");
    claimed(&mut state);
    assert_eq!(answer(&verdict(&mut state, 2, CheckStatus::Failed)), "nothing phases/check-failed");
    // What is claimed before the agent knows the verdict is not checked again.
    let outcome = says(&mut state, 3, &block("REFLECT_COMPLETE"));
    assert_eq!((answer(&outcome), wants_check(&outcome)), ("block phases/blocked".into(), None));
    assert!(prompt_of(&outcome).contains("2 of 118 failed"), "{}", prompt_of(&outcome));
    assert_eq!((state.progress.iteration, &state.checks.refused), (1, &None));
    let outcome = says(&mut state, 4, &block("REFLECT_COMPLETE"));
    assert_eq!(wants_check(&outcome), Some(2));
    assert_eq!(
        answer(&verdict(&mut state, 5, CheckStatus::Passed)),
        "allow phases/all-phases-complete"
    );
}

#[test]
fn a_session_is_never_trapped_by_a_check() {
    let mut state = run_in("qa");
    claimed(&mut state);
    let cap = BlockCap { limit: Some(8), resets_on_tool_use: false };
    let mut blocked = 0;
    let last = loop {
        let stop = Stop { cap, ..stop(&state, "I wait.") };
        let outcome = state.on_event(at(2), &Event::Stop(stop));
        if !matches!(outcome.effects.first(), Some(Effect::Block { .. })) {
            break outcome;
        }
        blocked += 1;
    };
    assert_eq!((blocked, answer(&last)), (7, "allow phases/capped".into()));
    assert_eq!(state.progress.iteration, 0, "waiting uses nothing up");
    // The session that was let go is woken with the verdict.
    verdict(&mut state, 3, CheckStatus::Failed);
    assert!(state.parked.as_ref().unwrap().due);
    let woken = Event::Woken { session: "S1".to_owned(), cap: None };
    let outcome = state.on_event(at(4), &woken);
    assert!(prompt_of(&outcome).contains("2 of 118 failed"), "{}", prompt_of(&outcome));
}

#[test]
fn a_verdict_after_the_end_or_about_an_older_claim_changes_nothing() {
    let mut state = run_in("qa");
    claimed(&mut state);
    lost(&mut state, 2);
    let before = state.clone();
    let proof = Box::new(round(&state, CheckStatus::Passed, None));
    let old = Event::Checked { check: 1, proof, fresh_token: None };
    assert_eq!((state.on_event(at(3), &old), &state), (Outcome::untouched(), &before));
    state.on_event(at(3), &Event::Cancel { by: "`aldis auto stop`".to_owned() });
    assert_eq!(state.checks.claim, None);
    assert_eq!(verdict(&mut state, 4, CheckStatus::Passed), Outcome::untouched());
    assert_eq!(state.closing.exit_reason, Some(ExitReason::UserCancelled));
}

#[test]
fn a_failure_takes_the_claim_back() {
    let mut state = run_in("qa");
    claimed(&mut state);
    let outcome = says(&mut state, 2, &error_block("reflect", true));
    assert_eq!(answer(&outcome), "allow phases/recoverable-error");
    assert_eq!(verdict(&mut state, 3, CheckStatus::Passed), Outcome::untouched());
    assert!(state.progress.active);
}

#[test]
fn a_subagent_ends_no_run_with_a_check_either() {
    let mut state = run_in("reflect");
    checked(&mut state);
    let outcome = subagent_says(&mut state, 1, "a1", &block("REFLECT_COMPLETE"));
    assert_eq!(
        (answer(&outcome), wants_check(&outcome)),
        ("allow phases/check-started".into(), Some(1))
    );
    verdict(&mut state, 2, CheckStatus::Passed);
    assert!(state.progress.active && state.handover.ends_at_next_stop);
    assert_eq!(answer(&says(&mut state, 3, "I am done.")), "allow phases/all-phases-complete");
}

#[test]
fn an_opinion_refuses_and_never_accepts_alone() {
    for (status, opinion, want) in [
        (CheckStatus::Passed, None, "allow phases/all-phases-complete"),
        (CheckStatus::Passed, Some(OpinionVerdict::Accept), "allow phases/all-phases-complete"),
        (CheckStatus::Passed, Some(OpinionVerdict::None), "allow phases/all-phases-complete"),
        (CheckStatus::Passed, Some(OpinionVerdict::Refuse), "nothing phases/opinion-refused"),
        (CheckStatus::Failed, Some(OpinionVerdict::Accept), "nothing phases/check-failed"),
        (CheckStatus::TimedOut, Some(OpinionVerdict::Accept), "nothing phases/check-failed"),
    ] {
        let mut state = run_in("qa");
        claimed(&mut state);
        assert_eq!(
            answer(&judged(&mut state, 2, (status, opinion))),
            want,
            "{status:?} {opinion:?}"
        );
    }
}

#[test]
fn a_human_decides_where_the_policy_asks() {
    for (text, want, active) in [
        ("yes", "allow phases/all-phases-complete", false),
        ("Accept.", "allow phases/all-phases-complete", false),
        ("no", "nothing phases/claim-refused", true),
        ("yes, but put the test back first", "nothing phases/claim-refused", true),
    ] {
        let mut state = run_in("qa");
        asked(&mut state);
        assert_eq!(answer(&says(&mut state, 3, "I wait.")), "allow phases/check-asks");
        assert_eq!(answer(&answer_claim(&mut state, text)), want, "{text}");
        assert_eq!(state.progress.active, active, "{text}");
    }
}

#[test]
fn what_was_pinned_is_kept_with_the_run() {
    let pinned = Pinned { files: 3, ..Pinned::default() };
    let mut proof = Proof::default();
    let config = proof::Config::unnamed("make test");
    proof.begin_start(&config, None);
    proof.on_inspected(
        &config,
        &Inspection { pinned: Some(pinned.clone()), ..Inspection::default() },
    );
    let mut state = run_in("qa");
    state.checks.proof = proof;
    let stored = state.to_stored().unwrap();
    assert_eq!(State::from_stored(&stored, &[]).unwrap().checks.proof.pinned(), Some(&pinned));
}
