//! Where agents work, how many at once, and what is left behind: merges, and ticks in the plan.

use std::fs;
use std::process::Output;

use super::{ONE, Stage, plan};
use crate::phases::project::feed;
use crate::sandbox::{ALDIS, Done};

/// Each developer writes a file; whoever finds somebody else at work says so.
const WRITES: &str = r#"
[ -e "$MARKS/busy" ] && touch "$MARKS/overlap"
[ $role = developer ] && { touch "$MARKS/busy"; echo "$task" > "$task.txt"; sleep 0.1; rm "$MARKS/busy"; }
"#;

fn git(stage: &Stage, args: &[&str]) -> Output {
    let mut command = stage.0.command("git");
    command.env("PATH", std::env::var_os("PATH").unwrap());
    command.args(["-c", "user.name=t", "-c", "user.email=t@t"]).args(args).output().unwrap()
}

fn said(stage: &Stage, args: &[&str]) -> String {
    String::from_utf8(git(stage, args).stdout).unwrap()
}

/// A repository on the branch `trunk` with the plan and the agent in its first commit.
fn commit(stage: &Stage) {
    git(stage, &["init", "-q", "-b", "trunk", "."]);
    git(stage, &["add", "."]);
    git(stage, &["commit", "-qm", "first"]);
}

fn deliver(stage: &Stage, options: &[&str]) -> Done {
    let mut command = stage.0.command(ALDIS);
    command.env("PATH", std::env::var_os("PATH").unwrap()).args(Stage::arguments(options));
    feed(command, b"")
}

#[test]
fn a_repository_gets_work_trees_merges_with_titles_and_ticks() {
    let stage =
        Stage::new(WRITES, "# P\r\n\r\n1. [ ] a: Write [the] \"a\"\r\n2. [ ] Second one\r\n");
    commit(&stage);
    fs::write(stage.0.path().join("unseen.txt"), "mine").unwrap();
    let done = deliver(&stage, &[]);
    assert_eq!(done.code, 0, "{}", done.text());
    assert!(done.stderr.contains("merged into trunk."), "{}", done.stderr);
    assert!(done.stderr.contains("do not see your uncommitted changes"), "{}", done.stderr);
    for file in ["a.txt", "task-2.txt"] {
        assert!(stage.0.path().join(file).exists(), "{file}");
    }
    let merges = said(&stage, &["log", "--merges", "--format=%s|%b"]);
    let mut merges: Vec<&str> = merges.lines().filter(|line| !line.is_empty()).collect();
    merges.sort_unstable();
    assert_eq!(merges.len(), 2, "{merges:?}");
    assert!(merges[0].starts_with("Second one|Task task-2 of delivery "), "{merges:?}");
    assert!(merges[1].starts_with("Write [the] \"a\"|Task a of delivery "), "{merges:?}");
    let text = fs::read_to_string(stage.0.path().join("plan.md")).unwrap();
    assert_eq!(text, "# P\r\n\r\n1. [x] a: Write [the] \"a\"\r\n2. [x] Second one\r\n");
    let ticks = said(&stage, &["log", "--format=%s", "--", "plan.md"]);
    assert!(ticks.contains("Tick in plan.md: Second one"), "{ticks}");
    assert_eq!(said(&stage, &["status", "--porcelain"]), "?? unseen.txt\n");
}

#[test]
fn a_plan_with_changes_of_its_own_is_ticked_and_not_committed() {
    let stage = Stage::new(WRITES, ONE);
    commit(&stage);
    let plan = stage.0.path().join("plan.md");
    let before = fs::read_to_string(&plan).unwrap() + "\nmine, not committed\n";
    fs::write(&plan, &before).unwrap();
    let done = deliver(&stage, &["--no-worktrees"]);
    assert_eq!(done.code, 0, "{}", done.text());
    assert!(
        done.stderr.contains("One agent at a time works in this directory.\n"),
        "{}",
        done.stderr
    );
    assert_eq!(fs::read_to_string(&plan).unwrap(), before.replace("[ ] csv", "[x] csv"));
    assert_eq!(said(&stage, &["log", "--format=%s"]), "first\n");
}

#[test]
fn without_a_repository_agents_take_turns() {
    let stage = Stage::new(WRITES, &plan(4));
    let done = stage.run(&[]);
    assert_eq!(done.code, 0, "{}", done.text());
    let why = "One agent at a time works in this directory: there is no git repository with a commit here.\n";
    assert!(done.stderr.contains(why), "{}", done.stderr);
    assert!(!stage.0.root().join("marks/overlap").exists());
    let text = fs::read_to_string(stage.0.path().join("plan.md")).unwrap();
    assert_eq!(text.matches("- [x] t").count(), 4, "{text}");

    let stage = Stage::new("", ONE);
    let done = stage.run(&["--no-tick", "--slots", "3"]);
    assert_eq!(done.code, 0, "{}", done.text());
    assert!(done.stderr.contains("3 agents at a time work in this directory"), "{}", done.stderr);
    assert_eq!(fs::read_to_string(stage.0.path().join("plan.md")).unwrap(), ONE);
}

/// A plan that changed meanwhile is the user's.
#[test]
fn a_box_that_is_gone_is_said_and_left() {
    let special = "[ $role = auditor ] && echo '# Rewritten' > plan.md";
    let stage = Stage::new(special, ONE);
    let done = stage.run(&[]);
    assert_eq!(done.code, 0, "{}", done.text());
    assert!(
        done.stdout.contains("plan.md` is not ticked: its line has changed"),
        "{}",
        done.stdout
    );
    assert_eq!(fs::read_to_string(stage.0.path().join("plan.md")).unwrap(), "# Rewritten\n");
}

#[test]
fn an_aborted_delivery_is_answered_and_goes_on() {
    let special = "[ $role = developer ] && first && { printf 'SEEKING_DIVINE_CLARIFICATION\\nTask: csv\\nQuestion: keep or drop?\\n'; exit 0; }";
    let stage = Stage::new(special, ONE);
    let mut child = stage.start(&Stage::arguments(&[]));
    let id = stage.question();
    assert_eq!(stage.0.run(&["abort"]).code, 0);
    assert_eq!(child.wait().unwrap().code(), Some(130));
    // Continued without an answer, it says at once what it waits for.
    let again = stage.0.run(&["deliver", "--continue", "--no-wait"]);
    assert_eq!(again.code, 3, "{}", again.text());
    assert!(again.stdout.contains(&format!("aldis answer {id} TEXT")), "{}", again.text());
    // What `aldis tasks` tells people to type works.
    assert!(stage.0.run(&["tasks"]).stdout.contains(&format!("aldis answer {id} TEXT")));
    assert_eq!(stage.0.run(&["answer", &id, "Drop it."]).code, 0);
    assert_eq!(stage.0.run(&["deliver", "--continue"]).code, 0);
    stage.assert_complete();
}

/// What is over for good takes no answer, so nobody is told to give one.
#[test]
fn a_halted_delivery_asks_nothing() {
    let special = r#"
        [ $role-$task = developer-t0 ] && { printf 'INFRA_BLOCKED: t0\nIssue: down\n'; exit 0; }
        [ $role-$task = developer-t1 ] && { printf 'SEEKING_DIVINE_CLARIFICATION\nTask: t1\nQuestion: keep?\n'; exit 0; }
        [ $role = health_auditor ] && { echo 'HEALTH_AUDIT: UNHEALTHY'; exit 0; }
    "#;
    let stage = Stage::new(special, &plan(2));
    stage.settings("[deliver]\nslots = 2\nremediation_attempts = 1\n");
    let mut child = stage.start(&Stage::arguments(&[]));
    let mut halt = None;
    stage.wait_for("both questions", || {
        let shown = stage.0.run(&["tasks"]).stdout;
        let lines: Vec<&str> = shown.lines().collect();
        let asks = lines.windows(2).find(|two| two[0].contains("halt"));
        let id = asks.and_then(|two| two[1].split_whitespace().nth(2));
        halt = id.map(str::to_owned);
        halt.is_some() && shown.contains("keep?")
    });
    assert_eq!(stage.0.run(&["answer", &halt.unwrap(), "halt"]).code, 0);
    assert_eq!(child.wait().unwrap().code(), Some(3));
    let shown = stage.0.run(&["tasks"]);
    assert!(!shown.stdout.contains("aldis answer"), "{}", shown.text());
    assert!(!shown.stdout.contains("waiting for you"), "{}", shown.text());
    assert!(stage.tasks().iter().all(|task| task["question"].is_null()));
}
