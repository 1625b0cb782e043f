//! What people see while agents work, and what programs are told: the live views of `aldis run` and
//! `aldis deliver`.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;

use jsonschema::Validator;
use serde_json::Value;

use crate::phases::project::Project;
use crate::sandbox::ALDIS;
use crate::watch::Watched;

/// Writes the stream of Claude Code: words, tools and how they ended.
const VOICE: &str = r#"
emit() { printf '%s\n' "$1"; }
begin() { emit '{"type":"system","subtype":"init","cwd":"'$PWD'","session_id":"s1","tools":["Write"],"mcp_servers":[],"model":"m","permissionMode":"default","apiKeySource":"none"}'; }
part() { emit '{"type":"assistant","message":{"id":"'$1'","role":"assistant","content":['"$2"'],"stop_reason":null,"usage":{"input_tokens":400,"output_tokens":9}},"parent_tool_use_id":null,"session_id":"s1"}'; }
say() { part "$1" '{"type":"text","text":"'"$2"'"}'; }
tool() { part "$1" '{"type":"tool_use","id":"'$2'","name":"'$3'","input":'"$4"'}'; }
answer() { emit '{"type":"user","message":{"role":"user","content":[{"type":"tool_result","tool_use_id":"'$1'","content":"'"$2"'","is_error":'$3'}]},"parent_tool_use_id":null,"session_id":"s1"}'; }
end() { emit '{"type":"result","subtype":"success","is_error":false,"result":"","session_id":"s1","total_cost_usd":0.42,"usage":{"input_tokens":4000,"output_tokens":900}}'; }
"#;

/// Two rounds: the first claims too early.
const ROUNDS: &str = r#"
n=$(($(cat count 2>/dev/null || echo 0) + 1)); echo $n > count
cat > /dev/null
begin
if [ $n = 1 ]; then
    say m1 'I start with the export service and wire the button to it after that, step by step.'
    tool m1 t1 Read '{"file_path":"'$PWD'/src/reports.ts"}'
    answer t1 x false
    tool m2 t2 Grep '{"pattern":"export"}'
    tool m2 t3 Write '{"file_path":"'$PWD'/src/export.ts","content":"a\nb\nc\n"}'
    answer t2 x false
    answer t3 x false
    say m3 '<chorus>PROGRESS: 80</chorus>\u001b]0;title\u0007'
    tool m4 t4 Bash '{"command":"npm test"}'
    answer t4 'Exit code 1\nboom' true
else
    tool m5 t5 Bash '{"command":"npm test"}'
    answer t5 'ok' false
fi
HOLD
say m6 'Done.\n\n<chorus>COMPLETE</chorus>'
end
"#;

fn project(script: &str) -> Project {
    let project = Project::new();
    let path = project.path().join("agent.sh");
    fs::write(&path, format!("#!/bin/sh\n{VOICE}{script}")).unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
    project
}

const RUN: [&str; 6] = [
    "run",
    "--task",
    "Add CSV export",
    "--verify",
    "echo 2 of 118 failed; test $(cat count) -ge 2",
    "--max-iterations=20",
];

fn run(project: &Project, options: &[&str]) -> String {
    let done = project.run(&[&RUN[..], options, &["--", "./agent.sh"]].concat());
    assert_eq!(done.code, 0, "{}", done.text());
    let status = project.run(&["status", "--json"]).json();
    let id = status[0]["run"].as_str().unwrap();
    done.stdout.replace(id, "RUN")
}

#[test]
fn a_run_is_shown_as_its_agent_works() {
    let shown = run(&project(&ROUNDS.replace("HOLD", "")), &["--max-cost", "5"]);
    let shown: Vec<&str> = shown
        .lines()
        .map(|line| line.split_once(" iterations, ").map_or(line, |(before, _)| before))
        .collect();
    insta::assert_snapshot!(shown.join("\n"), @r"
    ● RUN  Add CSV export
      ./agent.sh, chorus, verify: echo 2 of 118 failed; test $(cat count) -ge 2
       1/20  I start with the export service and wire the button to it after that, step by step.
             Read src/reports.ts · Grep export · Write src/export.ts (+3)
             ␛]0;title␇
             Bash npm test  ✗ 1
             Done.
             progress 80 %
             claims done → echo 2 of 118 failed; test $(cat count) -ge 2 failed (exit 1). Sent the output back.
             2 of 118 failed
       2/20  Bash npm test  ✓
             Done.
             claims done → echo 2 of 118 failed; test $(cat count) -ge 2 passed
    ✔ Done and verified after 2
      aldis why RUN · aldis output RUN · aldis report RUN
    ");
}

#[test]
fn less_and_more_are_shown_on_request() {
    let script = ROUNDS.replace("HOLD", "echo aside >&2");
    let quiet = run(&project(&script), &["--quiet"]);
    for (words, is_there) in [
        ("I start with", false),
        ("Bash npm test", false),
        ("aside", false),
        ("claims done", true),
        ("Sent the output back.", true),
        ("2/20", true),
    ] {
        assert_eq!(quiet.contains(words), is_there, "{words}: {quiet}");
    }
    let verbose = run(&project(&script), &["-v"]);
    let line = verbose.lines().find(|line| line.contains("I start with")).unwrap();
    assert_eq!(line.as_bytes()[2], b':', "the time stands in front: {line}");
    assert!(verbose.contains("aside"), "{verbose}");
}

#[test]
fn a_long_message_is_shown_in_part() {
    let words: String = (1..=60).map(|n| format!("line {n}\\n")).collect();
    let script = ROUNDS.replace("HOLD", &format!("say m9 '{words}'"));
    let shown = run(&project(&script), &[]);
    assert!(shown.contains("line 20\n") && !shown.contains("line 21\n"), "{shown}");
    assert!(shown.contains("… 40 more lines: aldis output RUN"), "{shown}");
    assert!(run(&project(&script), &["-v"]).contains("line 60\n"));
}

fn validator(project: &Project) -> Validator {
    let schema: Value = serde_json::from_str(&project.run(&["schema", "live"]).stdout).unwrap();
    jsonschema::validator_for(&schema).unwrap()
}

fn check(validator: &Validator, lines: &[Value]) {
    for line in lines {
        let errors: Vec<String> = validator.iter_errors(line).map(|it| it.to_string()).collect();
        assert!(errors.is_empty(), "{errors:?}\n{line}");
    }
}

fn of_kind<'l>(lines: &'l [Value], kind: &str) -> Vec<&'l Value> {
    lines.iter().filter(|line| line["kind"] == kind).collect()
}

#[test]
fn programs_are_told_in_types() {
    let project = project(&ROUNDS.replace("HOLD", ""));
    let done = project.run(&[&RUN[..], &["--json", "--", "./agent.sh"]].concat());
    assert_eq!(done.code, 0, "{}", done.text());
    assert!(!done.stdout.contains('\x1b'), "harmless also where somebody looks");
    let lines = done.json();
    let validator = validator(&project);
    check(&validator, &lines);
    let tools = of_kind(&lines, "tool");
    assert_eq!(tools.len(), 5, "{tools:?}");
    let write = tools.iter().find(|line| line["tool"] == "Write").unwrap();
    assert_eq!((&write["about"], &write["lines_added"]), (&"src/export.ts".into(), &3.into()));
    let failed = of_kind(&lines, "tool_ended").into_iter().find(|line| line["failed"] == true);
    assert_eq!(failed.unwrap()["exit_code"], 1);
    let checks: Vec<&Value> = of_kind(&lines, "check").iter().map(|line| &line["passed"]).collect();
    assert_eq!(checks, [&Value::Null, &false.into(), &Value::Null, &true.into()]);
    assert_eq!(of_kind(&lines, "iteration").len(), 2);
    assert_eq!(of_kind(&lines, "progress")[0]["progress"], 80);
    assert_eq!(of_kind(&lines, "spent").last().unwrap()["micro_dollars"], 840_000);
    assert!(of_kind(&lines, "decision").iter().any(|line| line["rule"] == "run/check-failed"));
    let ended = of_kind(&lines, "ended");
    assert_eq!((&ended[0]["ending"], &ended[0]["iterations"]), (&"done".into(), &2.into()));
    let quiet =
        project.run(&[&RUN[..], &["--json", "--quiet", "--", "./agent.sh"]].concat()).json();
    assert!(of_kind(&quiet, "tool").is_empty() && of_kind(&quiet, "words").is_empty());
    assert!(!of_kind(&quiet, "check").is_empty());
    let mut wrong = lines[0].clone();
    wrong["kind"] = "nonsense".into();
    assert!(!validator.is_valid(&wrong), "every kind is described");
}

#[test]
fn a_question_is_told_once_with_its_id() {
    let script = "cat > /dev/null; begin; say m1 '<chorus>NEEDS_HUMAN: keep it?</chorus>'; end";
    let project = project(script);
    let done = project.run(&["run", "--task", "x", "--no-wait", "--json", "--", "./agent.sh"]);
    assert_eq!(done.code, 3, "{}", done.text());
    let lines = done.json();
    check(&validator(&project), &lines);
    let ended = of_kind(&lines, "ended");
    assert_eq!(ended[0]["ending"], "needs_human");
    let plan = "# One\n\n- [ ] csv: Write the CSV\n  - [ ] it works\n";
    fs::write(project.path().join("plan.md"), plan).unwrap();
    fs::write(
        project.path().join("agent.sh"),
        "#!/bin/sh\ncat > /dev/null\necho 'SEEKING_DIVINE_CLARIFICATION'\necho \"Task: csv\"\necho 'Question: keep it?'\n",
    )
    .unwrap();
    let done = project.run(&["deliver", "plan.md", "--no-wait", "--json", "--", "./agent.sh"]);
    assert_eq!(done.code, 3, "{}", done.text());
    let lines = done.json();
    check(&validator(&project), &lines);
    let questions = of_kind(&lines, "question");
    assert_eq!(questions.len(), 1, "{}", done.text());
    assert_eq!((&questions[0]["question"], &questions[0]["task"]), (&"q1".into(), &"csv".into()));
    assert!(!questions[0]["text"].as_str().unwrap().contains("aldis answer"), "no layout");
    assert_eq!(of_kind(&lines, "waits")[0]["questions"], serde_json::json!(["q1"]));
}

/// At any width: words are wrapped, the status line keeps what matters most, nothing is coloured where
/// nobody wants that.
#[test]
fn a_terminal_shows_how_the_run_is() {
    for columns in [80, 40] {
        let project = project(&ROUNDS.replace("HOLD", "while [ ! -e go ]; do sleep 0.05; done"));
        let mut command = project.command(ALDIS);
        command.args(RUN).args(["--max-cost", "5", "--total-timeout", "2h", "--", "./agent.sh"]);
        command.env("NO_COLOR", "1");
        let watched = Watched::start(command, (30, columns));
        // The last line has what matters most.
        let wanted: &[&str] = match columns {
            80 => &["80 %", "of 2 h", "$0.00 of $5.00", "last activity"],
            _ => &["80 %", "last activity"],
        };
        watched.wait_until(&format!("{wanted:?} in the last line"), |text| {
            let last = text.trim_end().lines().last().unwrap_or_default();
            wanted.iter().all(|words| last.contains(words))
        });
        let text = watched.text();
        assert!(text.contains("  1/20  I start with the export service"), "{text}");
        let wrapped = text.lines().find(|line| line.contains("step by step.")).unwrap();
        let breaks = if columns == 80 { 1 } else { 2 };
        assert!(wrapped.starts_with("        ") && wrapped.len() < 80 / breaks, "{text}");
        fs::write(project.path().join("go"), "").unwrap();
        watched
            .wait_until("the end", |text| text.contains("✔ Done and verified after 2 iterations"));
        assert!(!watched.text().contains("last activity"), "{}", watched.text());
        assert!(!watched.is_coloured(), "{}", watched.text());
    }
}

const PLAN: &str = "# Billing\n\n- [ ] csv: CSV writer\n  - [ ] quotes are escaped\n";

/// Tools, words, what became of claims and the line at the bottom: as in front of the supervisor itself.
#[test]
fn whoever_attaches_sees_what_its_supervisor_would_show() {
    let hold = "[ $n = 1 ] || while [ ! -e go ]; do sleep 0.05; done";
    let project = project(&ROUNDS.replace("HOLD", hold));
    let done = project.run(&[&RUN[..], &["--detach", "--", "./agent.sh"]].concat());
    assert_eq!(done.code, 0, "{}", done.text());
    let mut command = project.command(ALDIS);
    command.arg("attach");
    let watched = Watched::start(command, (40, 120));
    watched.wait_until("the line at the bottom", |text| {
        let last = text.lines().rfind(|line| !line.trim().is_empty()).unwrap_or_default();
        last.contains("2/20") && last.contains(" of 24 h")
    });
    fs::write(project.path().join("go"), "").unwrap();
    watched.wait_until("the end", |text| text.contains(": done (iteration 2 of 20)"));
    let text = watched.text();
    for words in [
        "Add CSV export",
        "Bash npm test  ✗ 1",
        "2/20",
        "Bash npm test  ✓",
        "Done.",
        "Done and verified after 2 iterations",
    ] {
        assert!(text.contains(words), "{words}: {text}");
    }
    assert!(!text.contains("<chorus>COMPLETE") && !text.contains("t5"), "{text}");
}

#[test]
fn a_delivery_shows_titles_and_on_request_what_agents_do() {
    let script = r#"
cat > /dev/null
begin
tool m1 t1 Bash '{"command":"cargo test"}'
answer t1 ok false
HOLD
case $ALDIS_ROLE in
developer) say m2 'It writes now.\n\nREADY_FOR_REVIEW: csv\nSummary: done';;
critic) say m2 'REVIEW_PASSED: csv';;
auditor) say m2 'AUDIT_PASSED: csv';;
esac
end
"#;
    let plain = project(&script.replace("HOLD", ""));
    fs::write(plain.path().join("plan.md"), PLAN).unwrap();
    let done = plain.run(&["deliver", "plan.md", "--", "./agent.sh"]);
    assert_eq!(done.code, 0, "{}", done.text());
    assert!(
        done.stdout.contains("CSV writer                Sent the work to the critic"),
        "{}",
        done.text()
    );
    assert!(
        !done.stdout.contains("cargo test") && !done.stdout.contains("It writes now"),
        "{}",
        done.text()
    );
    let verbose = project(&script.replace("HOLD", ""));
    fs::write(verbose.path().join("plan.md"), PLAN).unwrap();
    let done = verbose.run(&["deliver", "plan.md", "-v", "--", "./agent.sh"]);
    for words in ["developer:", "Bash cargo test  ✓", "It writes now."] {
        assert!(done.stdout.contains(words), "{words}: {}", done.text());
    }
    assert!(!done.stdout.contains("READY_FOR_REVIEW"), "signals are not words: {}", done.text());
    let held = project(&script.replace("HOLD", "while [ ! -e go ]; do sleep 0.05; done"));
    fs::write(held.path().join("plan.md"), PLAN).unwrap();
    let mut command = held.command(ALDIS);
    command.args(["deliver", "plan.md", "--", "./agent.sh"]);
    let watched = Watched::start(command, (24, 100));
    watched.wait_until("a line for the agent", |text| {
        let mut lines = text.lines();
        lines.any(|line| {
            line.contains("CSV writer")
                && line.contains("developer")
                && line.contains("Bash cargo test")
        })
    });
    fs::write(held.path().join("go"), "").unwrap();
    watched.wait_until("the end", |text| text.contains("✔ Complete: 1 of 1 task complete"));
}
