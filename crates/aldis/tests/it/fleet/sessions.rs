//! Agents that continue a session of their host: it is on one worker.

use super::stage::Fleet;

/// An agent that speaks as Claude Code does. The first review of `a` finds something.
const AGENT: &str = r#"#!/bin/sh
prompt=$(cat)
role=$ALDIS_ROLE task=$ALDIS_TASK session="session-$task-$ALDIS_AGENT"
echo "$role-$task $*" >> "MARKS/arguments"
echo $$ > "MARKS/$role-$task.pid"
while [ -e "MARKS/$role-$task.hold" ]; do sleep 0.05; done
case $role in
developer) echo "$ALDIS_AGENT" >> "$task.txt"; say="READY_FOR_REVIEW: $task";;
critic)
    say="REVIEW_PASSED: $task"
    if [ "$task" = a ] && mkdir MARKS/reviewed 2>/dev/null; then
        say="REVIEW_FAILED: a\\nIssues Found:\\n- a.txt:1: wrong"
    fi;;
auditor) say="AUDIT_PASSED: $task";;
esac
printf '{"type":"system","subtype":"init","session_id":"%s","cwd":".","tools":["Bash"],"mcp_servers":[],"model":"scripted","permissionMode":"default"}\n' "$session"
printf '{"type":"assistant","message":{"id":"msg_1","type":"message","role":"assistant","model":"scripted","content":[{"type":"text","text":"%s"}]},"parent_tool_use_id":null,"session_id":"%s"}\n' "$say" "$session"
printf '{"type":"result","subtype":"success","is_error":false,"result":"","usage":{"input_tokens":90,"output_tokens":10},"session_id":"%s"}\n' "$session"
"#;

/// The worker that has the session of the developer of `a` is busy, and another one has room.
fn busy() -> (Fleet, [super::stage::Process; 3]) {
    let fleet = Fleet::running("- [ ] a: Write a\n- [ ] b: Write b\n", AGENT);
    fleet.settings("[roles.developer]\nresume = [\"./agent.sh\", \"--resume\", \"{session}\"]\n");
    fleet.hold("developer-b");
    let has = fleet.worker("has", &["--roles", "developer"]);
    let deliver = fleet.start(&["--slots", "3"]);
    fleet.wait_for_agent("developer-b");
    let other = fleet.worker("other", &["--slots", "3"]);
    fleet.wait_for("the developer of a to have to go on", || {
        let tasks = fleet.tasks();
        let again = |task: &serde_json::Value| task["task"] == "a" && task["role"] == "developer";
        tasks.iter().any(|task| again(task) && task["queued"] == true)
    });
    (fleet, [has, other, deliver])
}

#[test]
fn a_session_goes_on_at_the_worker_that_has_it() {
    let (fleet, [_has, _other, mut deliver]) = busy();
    // Long enough for a worker with room to look for work.
    std::thread::sleep(std::time::Duration::from_secs(7));
    assert_eq!(fleet.started("developer-a").len(), 1, "the other worker has room, and left it");
    fleet.release("developer-b");
    assert_eq!(deliver.wait(), Some(0));
    let developers = fleet.started("developer-a");
    assert_eq!(developers.len(), 2, "{developers:?}");
    assert!(developers[1].starts_with("developer-a --resume session-a-"), "{developers:?}");
    let claims = fleet.claims();
    let mut developers = claims.iter().filter(|(role, _)| role == "developer");
    assert!(developers.all(|(_, worker)| worker == "has"), "{claims:?}");
    fleet.sound();
}

#[test]
fn a_session_whose_worker_is_lost_is_begun_anew_elsewhere() {
    let (fleet, [mut has, _other, mut deliver]) = busy();
    has.kill();
    fleet.release("developer-b");
    assert_eq!(deliver.wait(), Some(0));
    let developers = fleet.started("developer-a");
    assert_eq!(developers, ["developer-a", "developer-a"], "no session can be resumed elsewhere");
    let (_, last) = fleet.claims().into_iter().rfind(|(role, _)| role == "developer").unwrap();
    assert_eq!(last, "other");
    fleet.sound();
}
