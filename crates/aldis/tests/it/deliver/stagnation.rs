//! Agents whose work does not move, and sessions that go on.

use super::*;

#[test]
fn a_silent_agent_is_ended_with_all_it_started() {
    let stage = Stage::new("sleep 600 & sleep 600", ONE);
    stage.settings("[stagnation]\npause_timeout = 2\n[deliver]\ntimeout_limit = 2\n");
    let done = stage.run(&["--no-wait", "--json"]);
    assert_eq!(done.code, 3, "{}", done.text());
    assert_nobody_is_left(&stage);
    let kinds: Vec<Value> = done.json().iter().map(|line| line["notice"].clone()).collect();
    let stalled = kinds.iter().filter(|kind| **kind == "stagnation_abort");
    assert_eq!(stalled.count(), 2, "{kinds:?}");

    let tasks = stage.tasks();
    let setback = tasks[0]["setback"].as_str().unwrap();
    assert!(setback.contains("its work stalled: no progress for "), "{setback}");
    assert!(stage.0.run(&["tasks"]).stdout.contains("before: the developer was ended because"));
    let why = stage.0.run(&["why", "csv", "--json"]).json();
    let started = why.iter().filter(|decision| decision["rule"] == "delivery/agent-started");
    assert_eq!(started.count(), 2, "each one is counted");
    let stagnation = why.iter().find(|decision| decision["rule"] == "delivery/agent-stagnated");
    let stagnation = stagnation.unwrap();
    assert!(stagnation["because"].as_str().unwrap().contains("its work stalled"), "{stagnation}");
    assert_eq!(stagnation["counters"]["timeouts"], 1);
}

#[test]
fn the_same_checkpoint_again_and_again_ends_an_agent() {
    // It says a word at a time, for ever; how fast does not matter.
    let special = r#"
[ $role = developer ] && first && {
    printf '{"type":"system","subtype":"init","session_id":"s","cwd":".","tools":["Bash"],"mcp_servers":[],"model":"scripted","permissionMode":"default"}\n'
    while :; do
        number=$((number + 1))
        printf '{"type":"assistant","message":{"id":"msg_%s","type":"message","role":"assistant","model":"scripted","content":[{"type":"text","text":"CHECKPOINT: csv\\nProgress: 10%%"}]},"parent_tool_use_id":null,"session_id":"s"}\n' "$number"
        sleep 0.1
    done
}
"#;
    let stage = Stage::speaking(special);
    let done = stage.run(&[]);
    assert_eq!(done.code, 0, "{}", done.text());
    assert!(done.stdout.contains("was ended because its work stalled"), "{}", done.text());
    stage.assert_complete();
    assert_eq!(stage.dispatches()[..2], ["developer csv", "developer csv"]);
    assert_eq!(stage.tasks()[0]["setback"], Value::Null);
    let why = stage.0.run(&["why", "csv"]);
    assert!(why.stdout.contains("the same state 5 times"), "{}", why.text());
}

#[test]
fn whoever_is_not_watched_may_be_silent() {
    let special = "[ $role = developer ] && sleep 3";
    let stage = Stage::new(special, ONE);
    stage.settings("[stagnation]\nenabled = false\npause_timeout = 1\n");
    assert_eq!(stage.run(&[]).code, 0);
    assert_eq!(stage.dispatches().len(), 3);
}

#[test]
fn a_developer_goes_on_in_its_own_session() {
    let special = r#"
echo "$role $*" >> "$MARKS/arguments"
[ $role = critic ] && first && speak "REVIEW_FAILED: csv\\nIssues Found:\\n- a.rs:1: wrong"
"#;
    let stage = Stage::speaking(special);
    stage.settings(
        "[roles.developer]\nresume = [\"./agent.sh\", \"--resume\", \"{session}\"]\n\
         [roles.critic]\nresume = [\"./agent.sh\", \"--resume\", \"{session}\"]\n",
    );
    let done = stage.run(&[]);
    assert_eq!(done.code, 0, "{}", done.text());
    stage.assert_complete();
    let arguments = fs::read_to_string(stage.0.root().join("marks/arguments")).unwrap();
    let lines: Vec<&str> = arguments.lines().map(str::trim_end).collect();
    // The session has the name that the host gave it; reviewers look with fresh eyes.
    let resumed = "developer --resume session-developer-1";
    assert_eq!(lines, ["developer", "critic", resumed, "critic", "auditor"]);

    stage.settings("[roles.developer]\nresume = [\"./agent.sh\", \"--continue\"]\n");
    let refused = stage.run(&[]);
    assert_eq!(refused.code, 2, "{}", refused.text());
    assert!(refused.stderr.contains("{session}"), "{}", refused.text());
}
