//! `aldis report`: what happened in a run, in every form, for every machine.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;

use serde_json::Value;

use crate::phases::project::Project;
use crate::sandbox::Done;

/// Claims twice, with what no page may take as its own.
const AGENT: &str = r#"#!/bin/sh
n=$(($(cat count 2>/dev/null || echo 0) + 1)); echo $n > count
cat > /dev/null
echo "Look: <script>alert(1)</script> <img src=http://evil.example/x> [x](javascript:y) **bold**"
printf 'key ghp_%036d\n' 0
echo '<chorus>COMPLETE</chorus>'
"#;

fn project(agent: &str) -> Project {
    let project = Project::new();
    let path = project.path().join("agent.sh");
    fs::write(&path, agent).unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
    project
}

fn git(project: &Project, args: &[&str]) {
    let mut command = project.command("git");
    command.env("PATH", std::env::var_os("PATH").unwrap_or_default());
    command.args(["-c", "user.name=A", "-c", "user.email=a@example.org"]).args(args);
    assert!(command.output().unwrap().status.success(), "{args:?}");
}

/// A run whose first claim did not hold.
fn refused_once() -> (Project, Done) {
    let commit = "git -c user.name=A -c user.email=a@example.org commit -qam \"Round $n <b>\"";
    let project =
        project(&AGENT.replace("echo \"Look", &format!("git add count; {commit}\necho \"Look")));
    git(&project, &["init", "-q", "."]);
    git(&project, &["commit", "-q", "--allow-empty", "-m", "first"]);
    let mut command = project.command(crate::sandbox::ALDIS);
    command.env("PATH", std::env::var_os("PATH").unwrap_or_default());
    command.args(["run", "--task", "Add CSV export\n\nWith quotes.", "--verify"]);
    command.args(["echo 2 of 118 failed; test $(cat count) -ge 2", "--", "./agent.sh"]);
    let done = crate::phases::project::feed(command, b"");
    assert_eq!(done.code, 0, "{}", done.text());
    (project, done)
}

#[test]
fn a_run_is_told_with_its_claims_checks_and_commits() {
    let (project, done) = refused_once();
    assert!(done.stdout.contains(". 2 commits on "), "{}", done.text());
    // What was committed after the end is of others.
    let mut later = project.command("git");
    later.env("PATH", std::env::var_os("PATH").unwrap_or_default());
    later.env("GIT_COMMITTER_DATE", "2097-01-01T00:00:00Z");
    later.args(["-c", "user.name=A", "-c", "user.email=a@example.org"]);
    later.args(["commit", "-q", "--allow-empty", "-m", "Of the next day"]);
    assert!(later.output().unwrap().status.success());
    let text = project.run(&["report"]).stdout;
    assert!(!text.contains("Of the next day"), "{text}");
    for words in [
        "# Add CSV export\n\n**✔ done (iteration 2 of 50)**",
        "## What was asked\n\n> Add CSV export",
        "- Claims: 2 claims: 1 held, 1 did not",
        "did not hold: Refused the done claim: the check failed",
        "held: Done and verified after 2 iterations",
        "    2 of 118 failed",
        "Round 1 \\<b\\>",
        "| count | 1 | 0 |",
        "run/check-failed",
    ] {
        assert!(text.contains(words), "{words}: {text}");
    }
    assert!(!text.contains("ghp_0") && text.contains("\\[redacted\\]"), "{text}");
    assert!(
        !text.contains("<script>") && !text.contains("[x](") && !text.contains("**bold"),
        "{text}"
    );
}

#[test]
fn a_page_runs_loads_and_sends_nothing() {
    let (project, _) = refused_once();
    let file = project.path().join("report.html");
    let done = project.run(&["report", "-o", file.to_str().unwrap()]);
    assert_eq!((done.code, &*done.stdout), (0, ""), "{}", done.text());
    let page = fs::read_to_string(file).unwrap();
    assert!(page.contains("&lt;script&gt;alert(1)"), "the agent's words are there: {page}");
    let hostile = ["<script", "<img", "src=", "href=", "url(", "@import", " style=", "ghp_0"];
    let found: Vec<&str> = hostile.into_iter().filter(|it| page.contains(it)).collect();
    assert_eq!(found, ["src="], "only in the words of the agent: {page}");
    assert!(page.contains("<svg") && page.contains("class=\"check\""), "{page}");
    assert!(page.contains("default-src 'none'; style-src 'sha256-"), "{page}");
    let svg = project.run(&["report", "--svg"]).stdout;
    assert!(page.contains(svg.trim_end()), "the same picture");
}

fn json(project: &Project, args: &[&str]) -> Value {
    let done = project.run(&[&["report", "--json"], args].concat());
    assert_eq!(done.code, 0, "{}", done.text());
    let schema: Value = serde_json::from_str(&project.run(&["schema", "report"]).stdout).unwrap();
    let validator = jsonschema::validator_for(&schema).unwrap();
    let form = done.json().remove(0);
    let errors: Vec<String> = validator.iter_errors(&form).map(|it| it.to_string()).collect();
    assert!(errors.is_empty(), "{errors:?}\n{form}");
    form
}

#[test]
fn questions_crashes_and_their_waits_are_told() {
    let project = project(
        "#!/bin/sh\nn=$(($(cat count 2>/dev/null || echo 0) + 1)); echo $n > count; cat > /dev/null\n\
         case $n in 1) exit 7;; 2) echo '<chorus>NEEDS_HUMAN: keep it?</chorus>';; *) echo '<chorus>COMPLETE</chorus>';; esac\n",
    );
    fs::write(project.path().join("aldis.toml"), "[run]\ncrash_wait = 1\n").unwrap();
    let done = project.run(&["run", "--task", "x", "--no-wait", "--", "./agent.sh"]);
    assert_eq!(done.code, 3, "{}", done.text());
    let form = json(&project, &[]);
    assert_eq!(form["questions"][0]["text"], "keep it?");
    assert_eq!(form["questions"][0]["id"], "q1");
    assert_eq!(form["tone"], "bad");
    assert!(form["waits"][0]["what"].as_str().unwrap().contains("crash"), "{form}");
    assert_eq!(project.run(&["answer", "q1", "Drop it."]).code, 0);
    assert_eq!(project.run(&["run", "--continue"]).code, 0);
    let form = json(&project, &[]);
    assert_eq!(form["questions"][0]["answer"], "Drop it.", "{form}");
    assert_eq!(form["claims"][0]["fate"], "held");
}

/// Where there is no run, `why` says whose run it tells about.
#[test]
fn why_names_the_project_of_another_run() {
    let project = project("#!/bin/sh\ncat > /dev/null; echo '<chorus>COMPLETE</chorus>'\n");
    assert_eq!(project.run(&["run", "--task", "x", "--", "./agent.sh"]).code, 0);
    let here = project.run(&["why"]);
    assert!(!here.text().contains("another"), "{}", here.text());
    let mut command = project.command(crate::sandbox::ALDIS);
    command.arg("why").current_dir(project.root());
    let done = crate::phases::project::feed(command, b"");
    assert!(done.stderr.contains("this project has no run"), "{}", done.text());
    let path = project.path().display().to_string();
    assert!(done.stdout.contains(&format!("project   {path}")), "{}", done.text());
}

#[test]
fn questions_of_a_delivery_are_told_with_their_answers() {
    let project = project("");
    assert_eq!(project.run(&["demo", "--fast"]).code, 0);
    let form = json(&project, &[]);
    assert_eq!(form["questions"][0]["text"], "keep or drop the old address?", "{form}");
    assert_eq!(form["questions"][0]["answer"], "Drop the old address.");
    let refused = form["claims"].as_array().unwrap().iter().find(|it| it["fate"] == "refused");
    let because = refused.unwrap()["because"].as_str().unwrap();
    assert!(because.contains("the critic refused it"), "{because}");
}

#[test]
fn every_machine_is_told() {
    let project = project(
        "#!/bin/sh\ncat > /dev/null\ncase $ALDIS_ROLE in\ndeveloper) echo \"READY_FOR_REVIEW: $ALDIS_TASK\"; echo 'Summary: done';;\n\
         critic) echo \"REVIEW_PASSED: $ALDIS_TASK\";;\nauditor) echo \"AUDIT_PASSED: $ALDIS_TASK\";;\nesac\n",
    );
    assert_eq!(project.run(&["report"]).code, 1, "there is no run");
    fs::write(project.path().join("plan.md"), "# One\n\n- [ ] csv: CSV writer\n  - [ ] it works\n")
        .unwrap();
    assert_eq!(project.run(&["deliver", "plan.md", "--", "./agent.sh"]).code, 0);
    let form = json(&project, &[]);
    assert_eq!((&form["machine"], &form["title"]), (&"delivery".into(), &"One".into()));
    assert_eq!(form["claims"][0]["fate"], "held", "{form}");
    assert_eq!(form["claims"][0]["task"], "csv");
    let because = form["claims"][0]["because"].as_str().unwrap();
    assert!(because.contains("the auditor passed it"), "{because}");
    let roles: Vec<&Value> =
        form["agents"].as_array().unwrap().iter().map(|agent| &agent["role"]).collect();
    assert_eq!(roles, ["developer", "critic", "auditor"]);
    let svg = project.run(&["report", "--svg"]).stdout;
    assert!(svg.contains(">CSV writer</text>") && svg.contains("Completed the task"), "{svg}");
    assert_eq!(project.run(&["auto", "start", "Add CSV export"]).code, 0);
    let form = json(&project, &[]);
    assert_eq!((&form["machine"], &form["active"]), (&"phases".into(), &true.into()));
    assert!(project.run(&["report"]).stdout.contains("**●"), "it goes on");
    assert_eq!(project.run(&["report", "nobody"]).code, 2);
}
