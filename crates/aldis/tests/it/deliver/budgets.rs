//! What a delivery may cost and how long it may take; how it goes on after that.

use super::*;

#[test]
fn money_ends_a_delivery_and_more_of_it_lets_it_go_on() {
    let stage = Stage::speaking("");
    // Each agent costs 40 cents, so the second one is one too many.
    let done = stage.run(&["--max-cost", "0.70"]);
    assert_eq!(done.code, 5, "{}", done.text());
    assert!(done.stdout.contains("Over budget: 0 of 1 task complete"), "{}", done.text());
    assert_eq!(stage.dispatches(), ["developer csv", "critic csv"], "nobody else is started");
    let status = stage.status();
    assert_eq!(status["exit_reason"], "over_budget");
    assert_eq!((&status["micro_dollars"], &status["tokens"]), (&800_000.into(), &200.into()));

    let run = status["run"].as_str().unwrap();
    for options in [&[][..], &["--max-cost", "0.8"], &["--max-tokens", "1000"]] {
        let refused = stage.0.run(&[&["deliver", "--continue"][..], options].concat());
        assert_eq!(refused.code, 2, "{options:?}: {}", refused.text());
        let remedy = format!("aldis deliver --continue {run} --max-cost DOLLARS");
        assert!(refused.stderr.contains(&remedy), "{}", refused.text());
    }
    let done = stage.0.run(&["deliver", "--max-cost", "9", "--continue", run]);
    assert_eq!(done.code, 0, "{}", done.text());
    stage.assert_complete();
    assert_eq!(stage.dispatches().len(), 3, "what was done is not done again");
    assert_eq!(stage.status()["micro_dollars"], 1_200_000);
    let replayed = stage.0.run(&["replay", run]);
    assert_eq!(replayed.code, 0, "{}", replayed.text());
}

#[test]
fn tokens_are_limited_in_the_settings() {
    let stage = Stage::speaking("");
    stage.settings("[deliver]\nmax_tokens = 150\n");
    assert_eq!(stage.run(&[]).code, 5);
    assert_eq!(stage.dispatches().len(), 2);
    let why = stage.0.run(&["why", "--json", stage.status()["run"].as_str().unwrap()]);
    assert!(why.stdout.contains("200 tokens are used"), "{}", why.text());
    // The last verdict counts before its price.
    let stage = Stage::speaking("");
    assert_eq!(stage.run(&["--max-tokens", "250"]).code, 0);
    stage.assert_complete();
}

#[test]
fn time_ends_a_delivery_and_more_of_it_lets_it_go_on() {
    let stage = Stage::new("[ $role = developer ] && first && sleep 20", ONE);
    stage.settings("[deliver]\ntotal_timeout = 2\n");
    let done = stage.run(&[]);
    assert_eq!(done.code, 4, "{}", done.text());
    assert_eq!(stage.status()["exit_reason"], "timed_out");
    assert_nobody_is_left(&stage);
    let refused = stage.0.run(&["deliver", "--continue"]);
    assert_eq!(refused.code, 2, "{}", refused.text());
    assert!(refused.stderr.contains("--total-timeout TIME"), "{}", refused.text());
    let done = stage.0.run(&["deliver", "--continue", "--total-timeout", "1h"]);
    assert_eq!(done.code, 0, "{}", done.text());
    stage.assert_complete();
}

#[test]
fn what_was_given_up_is_not_continued() {
    let special = "[ $role = developer ] && { printf 'SEEKING_DIVINE_CLARIFICATION\\nTask: csv\\nQuestion: why?\\n'; exit 0; }";
    let stage = Stage::new(special, ONE);
    assert_eq!(stage.run(&["--no-wait"]).code, 3);
    assert_eq!(stage.0.run(&["answer", &stage.question(), "fail"]).code, 0);
    for args in [&["deliver", "--continue"][..], &["deliver", "--continue", "--max-tokens", "9"]] {
        let refused = stage.0.run(args);
        assert_eq!(refused.code, 2, "{}", refused.text());
        assert!(refused.stderr.contains("depend on a task that failed"), "{}", refused.text());
    }
    assert_eq!(stage.0.run(&["deliver", "--continue", "nobody"]).code, 2);
    assert_eq!(stage.0.run(&["deliver", "--continue", "--slots", "2"]).code, 2);
}
