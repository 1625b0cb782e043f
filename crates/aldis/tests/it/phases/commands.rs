//! What people see and do: start, status, resume, stop, why, log, replay, step.

use std::fs;

use serde_json::{Value, json};

use super::project::{Answer, Project, block, conversation, prompted, said};

const PHASES: [&str; 9] =
    ["expansion", "init", "planning", "execution", "qa", "review", "fix", "check", "reflect"];

#[test]
fn a_run_goes_through_all_phases() {
    let project = Project::new();
    let started = project.start(&[]);
    assert!(started["prompt"].as_str().unwrap().contains("Add CSV export"));
    for (at, phase) in PHASES.iter().enumerate() {
        assert_eq!(project.status()["phase"], *phase);
        assert_eq!(project.stop("Not yet.").word(), "block", "{phase}");
        let answer = project.stop(&block(phase));
        match PHASES.get(at + 1) {
            Some(next) => assert!(answer.reason().contains(&format!("phase {next}"))),
            None => assert_eq!(answer, Answer::Allow),
        }
    }
    let status = project.status();
    assert_eq!(
        (&status["phase"], &status["exit_reason"]),
        (&json!("complete"), &json!("all_phases_complete"))
    );
    assert_eq!(project.view()["completed_at"], project.now);
    assert_eq!(project.stop("Anything."), Answer::Allow);

    let run = status["run"].as_str().unwrap();
    let replay = project.run(&["replay", run]);
    assert_eq!(replay.code, 0, "{}", replay.text());
}

#[test]
fn starting_says_what_comes_next() {
    let project = Project::new();
    let started = project.run(&["auto", "start", "Add CSV export"]);
    assert_eq!((started.code, &*started.stderr), (0, ""), "{}", started.text());
    let next = "Next: start `claude` here and send any prompt. It brings these instructions:\n";
    assert!(started.stdout.contains(next), "{}", started.stdout);

    // Without a registration nothing would come.
    fs::remove_file(project.home().join(".claude/settings.json")).unwrap();
    for args in [&["auto", "start", "Another", "--replace"][..], &["auto", "resume", "--json"]] {
        let started = project.run(args);
        assert_eq!(started.code, 0, "{}", started.text());
        assert!(!started.stdout.contains("Next:"), "{}", started.stdout);
        assert!(started.stderr.contains("no host calls aldis here"), "{}", started.stderr);
        assert!(started.stderr.contains("aldis install HOST (antigravity, claude-code, codex, "));
    }
}

#[test]
fn an_active_run_is_not_replaced_by_accident() {
    let project = Project::new();
    let first = project.start(&[]);
    let refused = project.run(&["auto", "start", "Another"]);
    assert_eq!(refused.code, 1);
    assert!(refused.stderr.contains(first["run"].as_str().unwrap()), "{}", refused.text());
    let second = project.run(&["auto", "start", "Another", "--replace", "--json"]).json().remove(0);
    assert_ne!(second["run"], first["run"]);
    assert_eq!(project.view()["task_description"], "Another");
}

#[test]
fn humans_end_runs_by_command_by_file_and_by_deleting_it() {
    type End = fn(&Project);
    let ends: [(&str, End); 3] = [
        ("command", |project| assert_eq!(project.run(&["auto", "stop"]).code, 0)),
        ("file", |project| {
            let text = fs::read_to_string(project.view_path()).unwrap();
            project.write_view(&text.replace("\"active\": true", "\"active\": false"));
        }),
        ("deleted", |project| fs::remove_file(project.view_path()).unwrap()),
    ];
    for (how, end) in ends {
        let project = Project::new();
        project.start(&[]);
        end(&project);
        assert_eq!(project.stop("Not yet."), Answer::Allow, "{how}");
        let status = project.status();
        assert_eq!(status["exit_reason"], "user_cancelled", "{how}");
        assert_eq!(project.view()["active"], false, "{how}");
        assert_eq!(project.run(&["auto", "resume"]).code, 1, "{how}");
        assert_eq!(project.run(&["auto", "stop"]).code, 1, "{how}");
    }
}

#[test]
fn edits_of_the_file_are_undone_and_recorded() {
    let project = Project::new();
    project.start(&[]);
    let text = fs::read_to_string(project.view_path()).unwrap();
    let edited =
        text.replace("\"phase\": \"expansion\"", "\"theirs\": [1.50],\n  \"phase\": \"reflect\"");
    project.write_view(&edited);
    assert_eq!(project.stop(&block("reflect")).word(), "block");
    let view = fs::read_to_string(project.view_path()).unwrap();
    assert!(
        view.contains("\"phase\": \"expansion\"") && view.contains("\"theirs\": [1.50]"),
        "{view}"
    );
    let log = project.run(&["log", "--json"]).stdout;
    assert!(log.contains("state_edited"), "{log}");
}

#[test]
fn capped_failed_and_stale_ends_are_resumed() {
    let project = Project::new();
    project.start(&["--max-iterations", "2"]);
    for want in ["block", "block", "allow"] {
        assert_eq!(project.stop("Not yet.").word(), want);
    }
    assert_eq!(project.status()["exit_reason"], "max_iterations_reached");
    let resumed = project.run(&["auto", "resume", "--json"]).json().remove(0);
    assert_eq!((&resumed["phase"], &resumed["iteration"]), (&json!("expansion"), &json!(0)));
    assert_eq!(resumed["session"], Value::Null);
    assert_eq!(project.stop("Not yet.").word(), "block");

    let project = Project::new();
    project.start(&["--max-iterations", "50"]);
    let mut payload = project.payload("Not yet.");
    payload["stop_hook_active"] = json!(true);
    payload["prompt_id"] = json!("p1");
    let answers: Vec<&str> = (0..10).map(|_| project.hook(&payload).word()).collect();
    assert_eq!(answers.iter().filter(|answer| **answer == "block").count(), 8, "{answers:?}");
    let status = project.status();
    assert_eq!((&status["capped"], &status["active"]), (&json!(true), &json!(true)));
    assert_eq!(project.why()["rule"], "phases/capped");
    assert_eq!(project.run(&["auto", "resume"]).code, 0);
    assert_eq!(project.status()["capped"], false);
    assert_eq!(project.hook(&payload).word(), "block");

    let mut project = Project::new();
    project.start(&[]);
    "2026-03-02T12:00:01Z".clone_into(&mut project.now);
    assert_eq!(project.stop("Not yet."), Answer::Allow);
    assert_eq!(project.status()["exit_reason"], "stale_state");
    assert_eq!(project.run(&["auto", "resume"]).code, 0);
}

#[test]
fn other_sessions_are_left_alone() {
    let project = Project::new();
    project.start(&[]);
    let before = fs::read_to_string(project.view_path()).unwrap();
    for session in [json!("S2"), json!(""), Value::Null, json!(7)] {
        let mut payload = project.payload(&block("expansion"));
        payload["session_id"] = session.clone();
        assert_eq!(project.hook(&payload), Answer::Allow, "{session}");
    }
    assert_eq!(fs::read_to_string(project.view_path()).unwrap(), before);
    assert_eq!(project.status()["iteration"], 0);
}

#[test]
fn a_turn_that_began_before_the_run_does_not_bind_it() {
    let project = Project::new();
    project.run(&["auto", "start", "Add CSV export"]);
    for (began, word) in [("2026-03-02T09:59:59Z", "allow"), ("2026-03-02T10:00:01Z", "block")] {
        let lines = conversation(&[prompted("go", Some(began)), said("Not yet.", Some(began))]);
        let mut payload = project.payload("Not yet.");
        payload["transcript_path"] = json!(project.transcript(&lines));
        assert_eq!(project.hook(&payload).word(), word, "{began}");
    }
    assert_eq!(project.status()["session"], "S1");
}

#[test]
fn the_first_prompt_gets_the_start_prompt() {
    let project = Project::new();
    project.start(&[]);
    let prompt = json!({
        "session_id": "S1", "cwd": project.path(), "hook_event_name": "UserPromptSubmit",
        "prompt": "go", "prompt_id": "p1",
    });
    let Answer::Other(answer) = project.hook(&prompt) else { panic!("no context") };
    let context = answer["hookSpecificOutput"]["additionalContext"].as_str().unwrap();
    assert!(context.contains("Add CSV export") && context.contains("EXPANSION_COMPLETE"));
    assert_eq!(project.hook(&prompt), Answer::Allow);
}

#[test]
fn why_tells_the_rule_the_evidence_and_the_remedy() {
    let mut project = Project::new();
    project.start(&[]);
    project.stop("Nearly.\n\nI will print SIGNAL: EXPANSION_COMPLETE after the tests.");
    "2026-03-02T10:03:00Z".clone_into(&mut project.now);
    let why = project.why();
    assert_eq!(
        (&why["rule"], &why["evidence"][0]["reason"]),
        (&json!("phases/blocked"), &json!("not_whole_line"))
    );
    assert_eq!(why["evidence"][0]["line"], 3);
    let id = project.status()["run"].as_str().unwrap().to_owned();
    let shown = project.run(&["why"]).stdout.replace(&id, "RUN");
    insta::assert_snapshot!(shown);
    let status = project.run(&["status"]).stdout;
    let root = project.path().display().to_string();
    insta::assert_snapshot!(status.replace(&id, "RUN").replace(&root, "PROJECT"));
}

#[test]
fn own_pipelines_come_from_the_configuration() {
    let project = Project::new();
    fs::write(
        project.path().join("aldis.toml"),
        "[phases]\npipeline = \"small\"\n[pipelines.small]\nphases = [\n  { name = \"build\", signal = \
         \"EXECUTION_COMPLETE\", purpose = \"Build it.\" },\n  { name = \"test\", signal = \"QA_COMPLETE\", \
         skip = \"skip_test\" },\n]\n",
    )
    .unwrap();
    assert_eq!(project.start(&[])["phase"], "build");
    let test = project.stop(&block("execution")).reason().to_owned();
    assert!(test.contains("phase test"), "{test}");
    assert_eq!(project.stop(&block("qa")), Answer::Allow);
    assert_eq!(project.status()["phase"], "complete");
    let wrong = project.run(&["auto", "start", "x", "--skip", "skip_all"]);
    assert!(wrong.stderr.contains("the flags are skip_test"), "{}", wrong.text());
}

#[test]
fn a_run_can_be_spoken_in_any_dialect() {
    let project = Project::new();
    project.start(&["--dialect", "chorus", "--skip-expansion"]);
    let answer = project.stop("Ready.\n\n<chorus>COMPLETE</chorus>\n");
    assert!(answer.reason().contains("phase planning"), "{answer:?}");
    let none = project.run(&["auto", "start", "x", "--dialect", "turn", "--replace"]);
    assert!(none.stderr.contains("no signal that means `done`"), "{}", none.text());
}

/// The loop that most people know: one phase, until the agent promises.
#[test]
fn a_promise_ends_a_loop() {
    let project = Project::new();
    let started = project.start(&["--dialect", "promise=ALL OK"]);
    assert_eq!(
        (&started["phase"], &started["dialect"]),
        (&json!("work"), &json!("promise=ALL OK"))
    );
    let prompt = started["prompt"].as_str().unwrap();
    assert!(prompt.contains("\n\n    <promise>ALL OK</promise>\n\n"), "{prompt}");
    for early in
        ["Not yet.", "<promise>COMPLETE</promise>", "I will say <promise>ALL OK</promise> soon."]
    {
        let reason = project.stop(early).reason().to_owned();
        assert!(reason.contains("<promise>ALL OK</promise>"), "{early}: {reason}");
    }
    let told = project.notice("All tests pass.\n\n<promise>ALL OK</promise>\n");
    assert!(told.ends_with("is complete."), "{told}");
    assert_eq!(project.status()["exit_reason"], "all_phases_complete");

    // The same by settings, and phases by name.
    fs::write(project.path().join("aldis.toml"), "[phases]\npipeline = \"loop\"\n").unwrap();
    assert_eq!(project.start(&[])["expected"], "PROMISE");
    let nine = project.start(&["--replace", "--pipeline", "caw", "--dialect", "promise=ALL OK"]);
    assert_eq!(nine["phase"], "expansion");
    let none = project.run(&["auto", "start", "x", "--dialect", "chorus=X", "--replace"]);
    assert_eq!(none.code, 2, "{}", none.text());
    assert_eq!(project.status()["run"], nine["run"], "nothing was replaced");
}

/// The user reads in the session which phase the run is in, and never what nobody decided.
#[test]
fn the_user_follows_the_phases() {
    let project = Project::new();
    let run = project.start(&["--skip-expansion", "--skip-reflect"])["run"].clone();
    let run = run.as_str().unwrap();
    let prompt = json!({
        "session_id": "S1", "cwd": project.path(), "hook_event_name": "UserPromptSubmit",
        "prompt": "go", "prompt_id": "p1",
    });
    let Answer::Other(answer) = project.hook(&prompt) else { panic!("no context") };
    let began = format!("aldis: run {run} works in this session: phase init, 2 of 8.");
    assert_eq!(answer["systemMessage"], began);
    assert_eq!(project.notice("Not yet."), "");
    let next = format!(
        "aldis: run {run}: Phase init is complete. Kept the agent working on phase planning, 3 of 8."
    );
    assert_eq!(project.notice(&block("init")), next);
    let error = "---\nSIGNAL: PHASE_ERROR\nPHASE: planning\nSTATUS: error\nERROR: no access to \u{1b}[31mmain\n\
                 RECOVERABLE: true\n---\n";
    let told = project.notice(error);
    assert!(told.contains("needs you in phase planning: no access to"), "{told}");
    assert!(!told.contains('\u{1b}'), "{told:?}");
}

#[test]
fn a_machine_is_a_filter() {
    let project = Project::new();
    let lines = [
        json!({"at": "2026-03-02T10:00:00Z", "event": "start", "task": "Add CSV export", "phase": "qa"}),
        json!({"at": "2026-03-02T10:01:00Z", "event": "stop", "session": "S1", "text": "Half done."}),
        json!({"at": "2026-03-02T10:02:00Z", "event": "stop", "session": "S1", "text": block("qa")}),
        json!({"at": "2026-03-02T10:03:00Z", "event": "cancel", "by": "me"}),
    ];
    let input: String = lines.iter().map(|line| format!("{line}\n")).collect();
    let done = project.run_with(&["step", "phases"], input.as_bytes());
    let phases: Vec<String> = done
        .json()
        .iter()
        .map(|line| line["state"]["phase"].as_str().unwrap().to_owned())
        .collect();
    assert_eq!(phases, ["qa", "qa", "review", "review"], "{}", done.text());
    assert_eq!(done.json()[1]["effects"][0]["effect"], "block");
    assert_eq!(done.json()[3]["state"]["exit_reason"], "user_cancelled");
    let wrong = project.run_with(&["step", "phases"], b"{\"event\":\"start\"}\n");
    assert_eq!(wrong.code, 2);
    assert!(wrong.stderr.contains("line 1"), "{}", wrong.text());
}
