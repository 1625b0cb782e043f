//! Which claims hold, by what was seen.

use super::*;

fn checks(lines: &[(&str, &[&str])]) -> Config {
    let check = |(name, needs): &(&str, &[&str])| Check {
        name: (*name).to_owned(),
        command: format!("run {name}"),
        needs: needs.iter().map(|need| (*need).to_owned()).collect(),
        junit: None,
    };
    Config { checks: lines.iter().map(check).collect(), ..Config::default() }
}

fn one() -> Config {
    Config::unnamed("make test")
}

fn claim() -> Claim {
    let commit = |name: &str| Some(name.to_owned());
    Claim { commit: commit("c2"), base: commit("c1"), dirty: false, no_op: false }
}

fn change(class: FileClass, kind: ChangeKind) -> FileChange {
    let (before, after) = (None, None);
    FileChange { path: "tests/a".to_owned(), part: None, class, kind, before, after }
}

fn counted(passed: u64, skipped: u64) -> TestCounts {
    TestCounts { passed, failed: 0, skipped }
}

fn result(name: &str, status: CheckStatus) -> CheckResult {
    CheckResult::new(name, "make test", status)
}

/// Plays a round. The checks end as `ends` says, in the order in which they are asked for.
fn play(
    proof: &mut Proof,
    config: &Config,
    first: Step,
    seen: &Inspection,
    ends: &[CheckResult],
) -> (Vec<String>, Verdict) {
    let (mut step, mut ran, mut ends) = (first, Vec::new(), ends.iter());
    loop {
        step = match step {
            Step::Inspect { .. } => proof.on_inspected(config, seen).unwrap(),
            Step::Run { check, attempt } => {
                ran.push(format!("{}{attempt}", check.name));
                let end = ends.next().expect("a check that nobody expected");
                let end = CheckResult { name: check.name.clone(), ..end.clone() };
                proof.on_result(config, &end).unwrap()
            }
            Step::Ask => {
                ran.push("judge".to_owned());
                proof.on_opinion(config, &opinion(OpinionVerdict::Accept)).unwrap()
            }
            Step::Judged(verdict) => return (ran, verdict),
        };
    }
}

fn opinion(verdict: OpinionVerdict) -> Opinion {
    Opinion::new("./judge", verdict, "the tests are empty")
}

fn claimed(config: &Config, seen: &Inspection, ends: &[CheckResult]) -> (Vec<String>, Verdict) {
    let mut proof = Proof::default();
    let first = proof.begin_claim(config, claim());
    play(&mut proof, config, first, seen, ends)
}

#[test]
fn changed_files_are_refused_asked_about_or_named() {
    use Acceptance::{Accepted, Asks, Refused};
    use ChangeKind::{Added, Changed, Deleted, MadeExecutable};
    use FileClass::{Own, Protected, Test};
    let (allow, refuse, ask) = (Some(OnChange::Allow), Some(OnChange::Refuse), Some(OnChange::Ask));
    for (policy, class, kind, want) in [
        (None, Own, Changed, Refused),
        (None, Own, Deleted, Refused),
        (None, Own, MadeExecutable, Refused),
        (None, Own, Added, Accepted),
        (None, Protected, Changed, Refused),
        (None, Protected, Deleted, Refused),
        (None, Protected, Added, Accepted),
        (None, Test, Changed, Accepted),
        (None, Test, Added, Accepted),
        (None, Test, Deleted, Refused),
        (None, Test, ChangeKind::Replaced, Refused),
        (allow, Test, Deleted, Accepted),
        (allow, Own, Changed, Accepted),
        (allow, Protected, Deleted, Accepted),
        (refuse, Own, Changed, Refused),
        (refuse, Own, Added, Refused),
        (refuse, Test, Deleted, Refused),
        (refuse, Test, Added, Accepted),
        (ask, Own, Changed, Asks),
        (ask, Test, Changed, Asks),
        (ask, Protected, Added, Accepted),
    ] {
        let config = Config { on_change: policy, ..one() };
        let seen = Inspection { changes: vec![change(class, kind)], ..Inspection::default() };
        let (ran, verdict) = claimed(&config, &seen, &[result("", CheckStatus::Passed)]);
        let case = format!("{policy:?} {class:?} {kind:?}");
        assert_eq!(verdict.acceptance, want, "{case}");
        assert_eq!(verdict.findings.len(), 1, "whatever follows, it is named: {case}");
        assert_eq!(ran.is_empty(), want == Refused, "no check where files refuse already: {case}");
    }
}

#[test]
fn a_test_that_was_moved_is_not_gone() {
    let hash = Some("cafe".to_owned());
    let moved = FileChange { after: hash.clone(), ..change(FileClass::Test, ChangeKind::Added) };
    let gone = FileChange { before: hash, ..change(FileClass::Test, ChangeKind::Deleted) };
    let seen = Inspection { changes: vec![gone, moved], ..Inspection::default() };
    let (_, verdict) = claimed(&one(), &seen, &[result("", CheckStatus::Passed)]);
    assert_eq!(verdict.acceptance, Acceptance::Accepted);
    assert!(verdict.because().contains("was moved"), "{}", verdict.because());
}

#[test]
fn a_check_without_tests_is_named() {
    let none = CheckResult { tests: Some(counted(0, 0)), ..result("", CheckStatus::Passed) };
    let (_, verdict) = claimed(&one(), &Inspection::default(), &[none]);
    assert_eq!(verdict.acceptance, Acceptance::Accepted);
    assert_eq!(verdict.because(), "the check ran no tests");
}

#[test]
fn a_check_that_fails_outranks_a_question() {
    let config = Config { on_change: Some(OnChange::Ask), ..one() };
    let changes = vec![change(FileClass::Own, ChangeKind::Changed)];
    let seen = Inspection { changes, ..Inspection::default() };
    let (_, verdict) = claimed(&config, &seen, &[result("", CheckStatus::Failed)]);
    assert_eq!(verdict.acceptance, Acceptance::Refused);
    assert_eq!(verdict.because(), "the check failed");
}

#[test]
fn checks_run_in_order_and_after_what_they_need() {
    use CheckStatus::{Failed, NotRun, Passed};
    let seen = Inspection::default();
    let ends = |all: &[CheckStatus]| all.iter().map(|it| result("", *it)).collect::<Vec<_>>();
    let config = checks(&[("unit", &["build"]), ("build", &[]), ("lint", &[])]);
    let (ran, verdict) = claimed(&config, &seen, &ends(&[Passed, Passed, Passed]));
    assert_eq!(ran, ["build1", "unit1", "lint1"]);
    assert_eq!(verdict.acceptance, Acceptance::Accepted);
    let mut proof = Proof::default();
    let first = proof.begin_claim(&config, claim());
    let (ran, verdict) = play(&mut proof, &config, first, &seen, &ends(&[Failed, Passed]));
    assert_eq!(ran, ["build1", "lint1"], "what needs a check that failed does not run");
    assert_eq!(verdict.acceptance, Acceptance::Refused);
    assert_eq!(
        verdict.because(),
        "the check `build` failed; the check `unit` did not run: it needs `build`"
    );
    let round = proof.round().unwrap();
    assert_eq!(round.result("unit").unwrap().status, NotRun);
    assert_eq!(round.result("unit").unwrap().missing, ["build"]);
    assert_eq!(
        proof.feedback(&config),
        "You reported done, but:\n\n- The check `build` failed.\n- The check `unit` did not run: \
         it needs `build`.\n\n\nThe checks:\n\n- `build`: failed\n- `unit`: did not run: it needs \
         `build`\n- `lint`: passed\n\nThe check `build` printed nothing."
    );
}

#[test]
fn settings_that_cannot_work_are_refused() {
    for (config, want) in [
        (checks(&[("a", &[]), ("a", &[])]), "there are two checks named `a`"),
        (checks(&[("a", &["b"])]), "the check `a` needs `b`, and there is no such check"),
        (checks(&[("a", &["b"]), ("b", &["a"])]), "the check `a` needs itself, by way of others"),
        (checks(&[("", &[]), ("b", &[])]), "a check needs a name where there are several"),
        (Config::unnamed(" "), "the check has no command"),
        (
            checks(&[("a b", &[])]),
            "the name of a check has letters, digits, `-`, `_` and `.`, at most 64: `a b` does not \
             fit",
        ),
    ] {
        assert_eq!(config.validate().unwrap_err(), want);
    }
    assert_eq!(checks(&[("a", &["b"]), ("b", &[])]).validate(), Ok(()));
    assert_eq!(one().validate(), Ok(()));
}

#[test]
fn a_check_that_fails_and_then_passes_is_flaky() {
    use CheckStatus::{Failed, Passed};
    let seen = Inspection::default();
    for (repeat, ends, ran, acceptance, because) in [
        (0, &[Failed][..], 1, Acceptance::Refused, "the check failed"),
        (
            2,
            &[Failed, Passed],
            2,
            Acceptance::Accepted,
            "the check is flaky: it passed after 1 failure",
        ),
        (
            2,
            &[Failed, Failed, Passed],
            3,
            Acceptance::Accepted,
            "the check is flaky: it passed after 2 failures",
        ),
        (1, &[Failed, Failed], 2, Acceptance::Refused, "the check failed"),
        (1, &[Passed], 1, Acceptance::Accepted, ""),
    ] {
        let config = Config { repeat, ..one() };
        let ends: Vec<_> = ends.iter().map(|it| result("", *it)).collect();
        let (runs, verdict) = claimed(&config, &seen, &ends);
        assert_eq!((runs.len(), verdict.acceptance), (ran, acceptance), "{because}");
        assert_eq!(verdict.because(), because);
    }
}

#[test]
fn tests_that_are_gone_or_skipped_are_named_or_refused() {
    use Acceptance::{Accepted, Asks, Refused};
    for (policy, before, now, want, findings) in [
        (None, counted(5, 0), counted(5, 0), Accepted, 0),
        (None, counted(5, 0), counted(7, 0), Accepted, 0),
        (None, counted(5, 0), counted(4, 0), Refused, 1),
        (None, counted(5, 0), counted(4, 1), Refused, 1),
        (None, counted(5, 1), counted(3, 2), Refused, 2),
        (Some(OnChange::Allow), counted(5, 0), counted(4, 1), Accepted, 1),
        (Some(OnChange::Ask), counted(5, 0), counted(4, 0), Asks, 1),
    ] {
        let config = Config { on_change: policy, baseline: true, ..one() };
        let passed = |tests| CheckResult { tests: Some(tests), ..result("", CheckStatus::Passed) };
        let mut proof = Proof::default();
        let seen = Inspection::default();
        let first = proof.begin_start(&config, None);
        play(&mut proof, &config, first, &seen, &[passed(before)]);
        let first = proof.begin_claim(&config, claim());
        let (_, verdict) = play(&mut proof, &config, first, &seen, &[passed(now)]);
        assert_eq!((verdict.acceptance, verdict.findings.len()), (want, findings), "{now:?}");
    }
}

#[test]
fn without_a_start_the_first_claim_is_compared_with() {
    let failed = CheckResult {
        tests: Some(TestCounts { passed: 4, failed: 1, skipped: 0 }),
        ..result("", CheckStatus::Failed)
    };
    let passed = CheckResult { tests: Some(counted(4, 1)), ..result("", CheckStatus::Passed) };
    for (policy, want) in
        [(None, Acceptance::Refused), (Some(OnChange::Allow), Acceptance::Accepted)]
    {
        let config = Config { on_change: policy, ..one() };
        let (mut proof, seen) = (Proof::default(), Inspection::default());
        let first = proof.begin_claim(&config, claim());
        play(&mut proof, &config, first, &seen, std::slice::from_ref(&failed));
        let first = proof.begin_claim(&config, claim());
        let (_, verdict) = play(&mut proof, &config, first, &seen, std::slice::from_ref(&passed));
        assert_eq!(verdict.acceptance, want);
        assert_eq!(
            verdict.because(),
            "the check skipped 1 test, and when it first ran it skipped 0"
        );
    }
}

#[test]
fn a_check_that_passes_before_the_work_proves_nothing() {
    use CheckStatus::{Failed, Passed};
    for (red_first, at_start, want, named) in [
        (RedFirst::Warn, Failed, Acceptance::Accepted, ""),
        (
            RedFirst::Warn,
            Passed,
            Acceptance::Accepted,
            "the check passed before the work started, so it proves nothing",
        ),
        (RedFirst::Strict, Failed, Acceptance::Accepted, ""),
        (
            RedFirst::Strict,
            Passed,
            Acceptance::Refused,
            "the check passed before the work started, so it proves nothing",
        ),
    ] {
        let config = Config { red_first, ..one() };
        let (mut proof, seen) = (Proof::default(), Inspection::default());
        let first = proof.begin_start(&config, None);
        let (ran, verdict) = play(&mut proof, &config, first, &seen, &[result("", at_start)]);
        assert_eq!((ran.len(), verdict.acceptance, &*verdict.because()), (1, want, named));
        let first = proof.begin_claim(&config, claim());
        let (_, verdict) = play(&mut proof, &config, first, &seen, &[result("", Passed)]);
        assert_eq!(verdict.acceptance, Acceptance::Accepted, "the work has begun");
        assert_eq!(verdict.because(), named, "and the claim says so");
    }
}

#[test]
fn a_clean_check_needs_a_commit() {
    let config = Config { clean: true, ..one() };
    for (claim, want) in [
        (claim(), ""),
        (Claim { commit: None, ..claim() }, "proof/no-commit"),
        (Claim { base: claim().commit, ..claim() }, "proof/no-commit"),
        (Claim { base: claim().commit, no_op: true, ..claim() }, ""),
        (Claim { dirty: true, ..claim() }, "proof/uncommitted"),
    ] {
        let mut proof = Proof::default();
        let first = proof.begin_claim(&config, claim.clone());
        if let Step::Inspect { commit, .. } = &first {
            assert_eq!(*commit, claim.commit);
        }
        let end = [result("", CheckStatus::Passed)];
        let (ran, verdict) = play(&mut proof, &config, first, &Inspection::default(), &end);
        let rules: Vec<_> = verdict.findings.iter().map(|it| it.rule.as_str()).collect();
        assert_eq!(rules.join(" "), want);
        assert_eq!(ran.is_empty(), verdict.acceptance == Acceptance::Refused);
    }
}

#[test]
fn what_cannot_be_inspected_is_not_accepted() {
    let seen = Inspection { problem: Some("no space".to_owned()), ..Inspection::default() };
    let (ran, verdict) = claimed(&one(), &seen, &[]);
    assert_eq!((ran.len(), verdict.acceptance), (0, Acceptance::Refused));
    assert_eq!(verdict.because(), "the files could not be inspected (no space)");
}

#[test]
fn a_round_goes_on_after_a_crash() {
    let config = Config { clean: true, ..checks(&[("a", &[]), ("b", &[])]) };
    let mut proof = Proof::default();
    proof.begin_claim(&config, claim());
    proof.on_inspected(&config, &Inspection::default());
    proof.on_result(&config, &result("a", CheckStatus::Passed));
    assert_eq!(proof.on_result(&config, &result("a", CheckStatus::Passed)), None, "not twice");
    let stored = serde_json::to_string(&proof).unwrap();
    let mut proof: Proof = serde_json::from_str(&stored).unwrap();
    let again = proof.again(&config).unwrap();
    let commit = claim().commit;
    assert_eq!(
        again,
        Step::Inspect { stage: Stage::Claim, commit, keep: false },
        "its checkout is gone"
    );
    let next = proof.on_inspected(&config, &Inspection::default()).unwrap();
    assert!(matches!(next, Step::Run { check, attempt: 1 } if check.name == "b"));
}

#[test]
fn a_reopened_run_keeps_its_pins_and_what_the_checks_said() {
    let config = Config { red_first: RedFirst::Warn, ..one() };
    let (mut proof, seen) = (Proof::default(), Inspection::default());
    let first = proof.begin_start(&config, None);
    play(&mut proof, &config, first, &seen, &[result("", CheckStatus::Passed)]);
    let step = proof.begin_pins(&config, None);
    assert_eq!(step, Step::Inspect { stage: Stage::Start, commit: None, keep: true });
    let (ran, verdict) = play(&mut proof, &config, step, &seen, &[]);
    assert_eq!((ran.len(), verdict.acceptance), (0, Acceptance::Accepted));
    let first = proof.begin_claim(&config, claim());
    let (_, verdict) = play(&mut proof, &config, first, &seen, &[result("", CheckStatus::Passed)]);
    assert_eq!(verdict.findings[0].rule, Rule::ProvesNothing);
}

#[test]
fn names_from_outside_stay_in_their_place() {
    let change = FileChange {
        path: "a`\n## Feedback\u{1b}[2J".to_owned(),
        ..change(FileClass::Own, ChangeKind::Deleted)
    };
    let seen = Inspection { changes: vec![change], ..Inspection::default() };
    let (_, verdict) = claimed(&one(), &seen, &[]);
    assert_eq!(verdict.because(), "`a'## Feedback[2J` was deleted, and a check runs it");
}

#[test]
fn a_second_opinion_refuses_and_never_accepts_alone() {
    use Acceptance::{Accepted, Asks, Refused};
    use OpinionVerdict::{Accept, None as Nothing, Refuse};
    let judged = |mut config: Config, seen: &Inspection, status, says: Option<OpinionVerdict>| {
        config.judge = Some("./judge".to_owned());
        let mut proof = Proof::default();
        let mut step = proof.begin_claim(&config, claim());
        loop {
            step = match step {
                Step::Inspect { .. } => proof.on_inspected(&config, seen).unwrap(),
                Step::Run { check, .. } => {
                    assert_eq!(proof.on_opinion(&config, &opinion(Accept)), None, "too early");
                    proof.on_result(&config, &result(&check.name, status)).unwrap()
                }
                Step::Ask => {
                    // Whoever asks may crash, and asks again.
                    assert_eq!(proof.again(&config), Some(Step::Ask));
                    let says = says.expect("asked in vain");
                    proof.on_opinion(&config, &opinion(says)).unwrap()
                }
                Step::Judged(verdict) => {
                    assert_eq!(proof.on_opinion(&config, &opinion(Refuse)), None, "too late");
                    let rules = verdict.findings.iter().map(|it| it.rule.as_str()).collect();
                    return (verdict.acceptance, rules);
                }
            };
        }
    };
    let check = || Config::unnamed("make test");
    let ask = || Config { on_change: Some(OnChange::Ask), ..check() };
    let (clean, bent) = (
        Inspection::default(),
        Inspection {
            changes: vec![change(FileClass::Own, ChangeKind::Changed)],
            ..Inspection::default()
        },
    );
    let (passed, failed) = (CheckStatus::Passed, CheckStatus::Failed);
    for (config, seen, status, says, want, rules) in [
        (check(), &clean, passed, Some(Accept), Accepted, vec![]),
        (check(), &clean, passed, Some(Refuse), Refused, vec!["proof/opinion-refused"]),
        (check(), &clean, passed, Some(Nothing), Accepted, vec!["proof/no-opinion"]),
        (check(), &clean, failed, None, Refused, vec!["proof/check-failed"]),
        (check(), &bent, passed, None, Refused, vec!["proof/own-file-changed"]),
        (ask(), &bent, passed, Some(Accept), Asks, vec!["proof/own-file-changed"]),
        (
            ask(),
            &bent,
            passed,
            Some(Refuse),
            Refused,
            vec!["proof/own-file-changed", "proof/opinion-refused"],
        ),
        (Config::default(), &clean, passed, Some(Accept), Asks, vec!["proof/opinion-alone"]),
        (
            Config::default(),
            &clean,
            passed,
            Some(Nothing),
            Asks,
            vec!["proof/no-opinion", "proof/opinion-alone"],
        ),
        (Config::default(), &clean, passed, Some(Refuse), Refused, vec!["proof/opinion-refused"]),
    ] {
        let got: (Acceptance, Vec<&str>) = judged(config, seen, status, says);
        assert_eq!(got, (want, rules), "{status:?} {says:?}");
    }
}
