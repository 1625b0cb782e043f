//! `aldis output`: what agents wrote.

use std::fs;
use std::io::{BufRead as _, BufReader};
use std::os::unix::fs::PermissionsExt as _;
use std::process::Stdio;

use crate::phases::project::Project;
use crate::sandbox::{ALDIS, Done};

/// A host's stream: its start, a tool's output, what the agent said, the end.
const STREAM: &str = r#"{"type":"system","subtype":"init","session_id":"s1","cwd":"/p","tools":[],"mcp_servers":[],"model":"m","permissionMode":"default"}
{"type":"user","session_id":"s1","message":{"role":"user","content":[{"type":"tool_result","tool_use_id":"t","content":"tool words"}]}}
{"type":"assistant","session_id":"s1","message":{"id":"m","role":"assistant","content":[{"type":"text","text":"Agent words.\n\n<chorus>COMPLETE</chorus>"}]},"parent_tool_use_id":null}
{"type":"result","subtype":"success","is_error":false,"session_id":"s1","result":"Agent words.\n\n<chorus>COMPLETE</chorus>"}
"#;

fn agent(project: &Project, text: &str) {
    let path = project.path().join("agent.sh");
    fs::write(&path, format!("#!/bin/sh\ncat > /dev/null\n{text}\n")).unwrap();
    fs::set_permissions(path, fs::Permissions::from_mode(0o755)).unwrap();
}

fn run(project: &Project) -> Done {
    let done = project.run(&["run", "--task", "x", "--quiet", "--", "./agent.sh"]);
    assert_eq!(done.code, 0, "{}", done.text());
    done
}

fn output(project: &Project, more: &[&str]) -> (i32, String) {
    let done = project.run(&[&["output"], more].concat());
    (done.code, done.stdout)
}

#[test]
fn text_is_shown_safely_and_raw_as_it_is() {
    let project = Project::new();
    let secret = format!("ghp_{}", "x".repeat(36));
    agent(
        &project,
        &format!("printf 'one \\033[31m\\n{secret}\\n'; echo '<chorus>COMPLETE</chorus>'"),
    );
    run(&project);
    let shown = "one ␛[31m\n[redacted]\n<chorus>COMPLETE</chorus>\n";
    assert_eq!(output(&project, &[]), (0, shown.to_owned()));
    assert_eq!(output(&project, &["--follow"]), (0, shown.to_owned()), "the run is over");
    let raw = "one \x1b[31m\n[redacted]\n<chorus>COMPLETE</chorus>\n";
    assert_eq!(output(&project, &["--raw"]), (0, raw.to_owned()));
    let runs = project.run(&["status", "--all", "--json"]).json();
    let prefix = &runs[0]["run"].as_str().unwrap()[..4];
    assert_eq!(output(&project, &[prefix]).1, shown);
}

#[test]
fn of_a_stream_the_words_of_the_agent_are_shown() {
    let project = Project::new();
    fs::write(project.path().join("stream"), STREAM).unwrap();
    agent(&project, "cat stream");
    run(&project);
    let shown = "Agent words.\n\n<chorus>COMPLETE</chorus>\n";
    assert_eq!(output(&project, &[]), (0, shown.to_owned()));
    assert_eq!(output(&project, &["--raw"]), (0, STREAM.to_owned()));
}

#[test]
fn agents_of_a_delivery_are_told_apart() {
    let project = Project::new();
    agent(
        &project,
        "case $ALDIS_ROLE in\ndeveloper) echo \"I did $ALDIS_TASK.\"; echo; echo \"READY_FOR_REVIEW: $ALDIS_TASK\";;\n\
         critic) echo \"REVIEW_PASSED: $ALDIS_TASK\";;\nauditor) echo \"AUDIT_PASSED: $ALDIS_TASK\";;\nesac",
    );
    let plan = "# Two\n\n- [ ] csv: Write it\n  - [ ] it is written\n- [ ] doc: Describe it\n  - [ ] it is described\n";
    fs::write(project.path().join("plan.md"), plan).unwrap();
    let done = project.run(&["deliver", "plan.md", "--quiet", "--", "./agent.sh"]);
    assert_eq!(done.code, 0, "{}", done.text());
    let (code, all) = output(&project, &[]);
    assert_eq!(code, 0);
    assert!(all.contains("I did csv.") && all.contains("I did doc."), "{all}");
    assert_eq!(all.matches("== ").count(), 6, "three agents for each task: {all}");
    let (_, of_task) = output(&project, &["--task", "csv"]);
    let titles: Vec<&str> = of_task.lines().filter(|line| line.starts_with("== ")).collect();
    assert_eq!(titles.len(), 3, "{of_task}");
    assert!(titles[0].starts_with("== csv: developer (agent "), "{of_task}");
    assert!(of_task.contains("I did csv.") && !of_task.contains("doc"), "{of_task}");
    let done = project.run(&["output", "--task", "zip"]);
    assert_eq!(done.code, 1, "{}", done.text());
    assert!(done.stderr.contains("about task zip"), "{}", done.text());
}

#[test]
fn output_is_followed_until_the_run_ends() {
    let project = Project::new();
    agent(
        &project,
        "echo first; while [ ! -e go ]; do sleep 0.05; done; echo last; echo '<chorus>COMPLETE</chorus>'",
    );
    let start = |args: &[&str]| {
        let mut command = project.command(ALDIS);
        let path = std::env::var_os("PATH").unwrap_or_default();
        command.env("PATH", path).args(args).stdin(Stdio::null()).stderr(Stdio::null());
        command.stdout(Stdio::piped()).spawn().unwrap()
    };
    let mut running = start(&["run", "--task", "x", "--", "./agent.sh"]);
    let mut lines = BufReader::new(running.stdout.take().unwrap()).lines();
    // By then it has a run, whose output is kept before it is shown.
    assert!(lines.any(|line| line.unwrap().contains("first")));
    let mut following = start(&["output", "--follow"]);
    let mut followed = BufReader::new(following.stdout.take().unwrap()).lines();
    assert_eq!(followed.next().unwrap().unwrap(), "first");
    fs::write(project.path().join("go"), "").unwrap();
    let rest: Vec<String> = followed.map(Result::unwrap).collect();
    assert_eq!(rest, ["last", "<chorus>COMPLETE</chorus>"]);
    assert_eq!(following.wait().unwrap().code(), Some(0));
    lines.for_each(drop);
    assert_eq!(running.wait().unwrap().code(), Some(0));
}

#[test]
fn where_nothing_is_kept_it_says_so() {
    let project = Project::new();
    let done = project.run(&["output"]);
    assert!(done.code == 1 && done.stderr.contains("no run in this project"), "{}", done.text());
    project.start(&[]);
    let done = project.run(&["output"]);
    assert!(done.code == 1 && done.stderr.contains("no output of run"), "{}", done.text());
    assert_eq!(project.run(&["output", "nobody"]).code, 2);
}
