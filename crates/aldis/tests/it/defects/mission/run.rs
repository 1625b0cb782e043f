//! `aldis run`: what reaches the next prompt, what counts as done, and what counts as work.

use std::fs;
use std::process::Stdio;

use aldis_signal::Parser;
use serde_json::{Value, json};

use super::{Stage, Stepper, clock, effect, pin_all};
use crate::defects::{Seen, pin};
use crate::sandbox::ALDIS;

const ANSWER: &str = "TAKE-THE-LEFT-ONE";
const OUTPUT: &str = "TWO-TESTS-FAILED";

/// Sends an event, and looks at the work tree whenever the machine wants to know. Returns the last
/// answer with the effects of all.
#[track_caller]
fn send(step: &mut Stepper, event: &str, members: &Value) -> Value {
    let mut answer = step.send(event, members);
    let mut effects = answer["effects"].as_array().unwrap().clone();
    while effect(&answer, "look").is_some() {
        assert!(effects.len() < 100, "it looks for ever: {effects:?}");
        answer = step.send("looked", &json!({}));
        effects.extend(answer["effects"].as_array().unwrap().iter().cloned());
    }
    answer["effects"] = effects.into();
    answer
}

/// A run whose first iteration has begun.
fn begun(config: &Value) -> Stepper {
    let mut step = Stepper::new("run");
    step.send("start", &json!({ "task": "Add CSV export", "config": config }));
    assert!(effect(&send(&mut step, "begin", &json!({})), "start").is_some());
    step.later(1).send("launched", &json!({ "agent": "1" }));
    step
}

/// The prompt with which the agent is now started.
#[track_caller]
fn prompt(answer: &Value) -> String {
    let start = effect(answer, "start").unwrap_or_else(|| panic!("not started: {answer}"));
    start["prompt"].as_str().unwrap().to_owned()
}

/// The agent asked, and starts with the answer.
fn answered() -> (Stepper, &'static str) {
    let mut step = begun(&json!({}));
    step.later(1).send("heard", &json!({ "text": "<chorus>NEEDS_HELP: which?</chorus>" }));
    let asked = send(&mut step, "exited", &json!({ "code": 0, "signal": null }));
    let question = effect(&asked, "ask").unwrap_or_else(|| panic!("not asked: {asked}"));
    let answer = json!({ "id": question["id"], "text": ANSWER });
    let answer = send(step.later(1), "answer", &answer);
    assert!(prompt(&answer).contains(ANSWER), "{answer}");
    (step, ANSWER)
}

/// The agent claimed to be done, and starts with what the check printed.
fn checked() -> (Stepper, &'static str) {
    let mut step = begun(&json!({ "verify": true }));
    step.later(1).send("heard", &json!({ "text": "<chorus>COMPLETE</chorus>" }));
    let claimed = send(&mut step, "exited", &json!({ "code": 0, "signal": null }));
    assert!(effect(&claimed, "check").is_some(), "{claimed}");
    let failed = json!({ "passed": false, "output": OUTPUT });
    let failed = send(step.later(1), "checked", &failed);
    assert!(prompt(&failed).contains(OUTPUT), "{failed}");
    (step, OUTPUT)
}

#[test]
fn b1_a_repeated_iteration_gets_the_answer_and_the_failed_check_again() {
    let mut symptoms = Vec::new();
    for (what, begin) in
        [("answer", answered as fn() -> (Stepper, &'static str)), ("check", checked)]
    {
        // Killed before the agent was started, and after.
        for launched in [false, true] {
            let (mut step, words) = begin();
            if launched {
                step.later(1).send("launched", &json!({ "agent": "2" }));
            }
            let again = prompt(&send(step.later(1), "recovered", &json!({})));
            if !again.contains(words) {
                symptoms.push(format!("{what}, recovered, launched {launched}: {again}"));
            }
        }
        let (mut step, words) = begin();
        step.later(1).send("launched", &json!({ "agent": "2" }));
        let until = clock(step.now + 60);
        step.send("limited", &json!({ "what": "usage limit reached", "until": until }));
        send(&mut step, "exited", &json!({ "code": 1, "signal": null }));
        let again = prompt(&send(step.later(61), "tick", &json!({})));
        if !again.contains(words) {
            symptoms.push(format!("{what}, rate limit: {again}"));
        }
    }
    symptoms.extend(answer_to_a_dead_supervisor());
    pin_all("mission/B1", &symptoms);
}

/// The supervisor is killed while it waits for an answer, and continued with one.
fn answer_to_a_dead_supervisor() -> Option<String> {
    let stage = Stage::new(
        "if [ $n = 1 ]; then echo '<chorus>NEEDS_HELP: which?</chorus>'; \
         else echo '<chorus>COMPLETE</chorus>'; fi",
    );
    let agent = stage.agent().display().to_string();
    let mut command = stage.command(ALDIS, &["run", "--task", "Add CSV export", "--", &agent]);
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    let mut supervisor = command.spawn().unwrap();
    let question = stage.question();
    supervisor.kill().unwrap();
    supervisor.wait().unwrap();
    let done = stage.aldis(&["answer", &question, ANSWER]);
    assert_eq!(done.code, 0, "{}", done.text());
    let done = stage.aldis(&["run", "--continue"]);
    assert_eq!(done.code, 0, "{}", done.text());
    let again = stage.prompt(2);
    (!again.contains(ANSWER)).then(|| format!("killed while it asked: {again}"))
}

/// A repository in the middle of a merge, with one file in conflict.
fn merging(script: &str) -> Stage {
    let stage = Stage::new(&format!("{script}\necho '<chorus>RESOLVED</chorus>'"));
    let file = stage.0.path().join("f");
    let commit = |text: &str| {
        fs::write(&file, text).unwrap();
        assert!(stage.git(&["add", "f"]).status.success());
        assert!(stage.git(&["commit", "-qm", "work"]).status.success());
    };
    assert!(stage.git(&["init", "-q", "."]).status.success());
    commit("base\n");
    assert!(stage.git(&["checkout", "-qb", "theirs"]).status.success());
    commit("one\n");
    assert!(stage.git(&["checkout", "-q", "-"]).status.success());
    commit("two\n");
    assert!(!stage.git(&["merge", "-q", "theirs"]).status.success());
    let status = stage.git(&["status", "--short"]).stdout;
    assert_eq!(String::from_utf8(status).unwrap(), "UU f\n");
    assert!(fs::read_to_string(&file).unwrap().contains("<<<<<<<"));
    stage
}

#[test]
fn b2_resolved_is_taken_exactly_when_no_conflict_markers_are_left() {
    const COMMIT: &str = "git -c user.name=t -c user.email=t@t commit -qam merged";
    let mut symptoms = Vec::new();
    for (name, script, resolved, certain) in [
        ("left alone", ":".to_owned(), false, true),
        ("markers staged", "git add f".to_owned(), false, false),
        ("markers committed", COMMIT.to_owned(), false, false),
        ("resolved, not staged", "echo both > f".to_owned(), true, false),
        ("resolved and staged", "echo both > f; git add f".to_owned(), true, true),
        ("resolved and committed", format!("echo both > f; {COMMIT}"), true, true),
    ] {
        let stage = merging(&script);
        let args = ["run", "--task", "Merge it", "--max-iterations", "1", "--no-wait"];
        let done = stage.supervise(&args);
        let reason = stage.status()["exit_reason"].clone();
        assert_eq!(done.code == 0, reason == "done", "{name}: {}", done.text());
        if (done.code == 0) != resolved {
            assert!(!certain, "{name}: {}", done.text());
            symptoms.push(format!("{name}: {reason}"));
        }
    }
    pin_all("mission/B2", &symptoms);
}

/// Whether ten iterations that each change a file are all run. Otherwise the run must have been taken
/// for stagnated.
fn ten_iterations_of_work(script: &str, with_git: bool) -> bool {
    let stage = Stage::new(&format!("echo $n >> f\n{script}\necho working"));
    if with_git {
        assert!(stage.git(&["init", "-q", "."]).status.success());
        assert!(stage.git(&["commit", "-q", "--allow-empty", "-m", "first"]).status.success());
    }
    let done = stage.supervise(&["run", "--task", "Add CSV export", "--max-iterations", "10"]);
    let status = stage.status();
    let changes = fs::read_to_string(stage.0.path().join("f")).unwrap().lines().count();
    assert_eq!(status["iteration"], changes, "{}", done.text());
    match status["exit_reason"].as_str() {
        Some("iterations_used_up") if changes == 10 => true,
        Some("stagnated") => false,
        _ => panic!("{}", done.text()),
    }
}

#[test]
fn b4_changes_and_commits_are_evidence_in_short_iterations_too() {
    const COMMIT: &str = "git add f; git -c user.name=t -c user.email=t@t commit -qm \"step $n\"";
    let mut symptoms = Vec::new();
    for (name, script, with_git) in
        [("commits", COMMIT, true), ("changes", ":", true), ("changes without git", ":", false)]
    {
        if !ten_iterations_of_work(script, with_git) {
            symptoms.push(format!("{name}: stagnated"));
        }
    }
    pin_all("mission/B4", &symptoms);
}

/// Whether a run without any progress is over at one of these seconds. With `pause` it is suspended
/// after twenty minutes.
fn ends(limits: &Value, ticks: &[u32]) -> bool {
    let pause = limits["pause"] == true;
    let stagnation = json!({
        "enabled": true, "warn_timeout": 600, "pause_timeout": if pause { 1_200 } else { 0 },
        "abort_timeout": limits["abort"],
    });
    // The limit of one iteration is out of reach.
    let config = json!({
        "stagnation": stagnation, "iteration_timeout": 100_000, "timeout": limits["total"],
    });
    let mut step = begun(&config);
    let mut at = |second: u32| {
        step.now = second;
        send(&mut step, "tick", &json!({}))
    };
    at(601);
    let tick = at(1_201);
    assert_eq!(effect(&tick, "suspend").is_some(), pause, "{tick}");
    let over = |answer: &Value| ["end", "finish"].iter().any(|kind| effect(answer, kind).is_some());
    ticks.iter().any(|second| over(&at(*second)))
}

#[test]
fn b10_a_run_that_nobody_resumes_ends_by_time() {
    let cap = |pause: bool| json!({ "pause": pause, "abort": 1_800, "total": 100_000 });
    let total = |pause: bool| json!({ "pause": pause, "abort": 0, "total": 3_000 });
    assert!(ends(&cap(false), &[1_801]) && ends(&total(false), &[3_001]), "without a pause");
    // An hour after it was suspended at the latest; at the limit of the run, if that comes first.
    let hour = &[1_801, 3_600, 4_802, 4_900][..];
    let neither = json!({ "pause": true, "abort": 0, "total": 100_000 });
    let mut symptoms = Vec::new();
    for (name, limits, ticks) in [
        ("nobody came for an hour", neither, hour),
        ("the cap of half an hour", cap(true), hour),
        ("the limit of the run", total(true), &[3_001, 3_100]),
    ] {
        if !ends(&limits, ticks) {
            symptoms.push(format!("{name}: still suspended"));
        }
    }
    pin_all("mission/B10", &symptoms);
}

/// Only the library answers this question: `aldis scan` prints signals and leaves the question open.
#[test]
fn b17d_a_resolved_conflict_is_not_a_complete_task() {
    let chorus = Parser::builtin("chorus").unwrap();
    assert!(chorus.read("<chorus>COMPLETE</chorus>").is_complete());
    let message = "<chorus>RESOLVED</chorus>";
    assert!(chorus.read(message).has_signal("RESOLVED"));
    let seen = match chorus.read(message).is_complete() {
        true => Seen::Wrong("RESOLVED is complete".to_owned()),
        false => Seen::Right,
    };
    pin("mission/B17d", seen);
}
