//! People: told of what happens, and asked at their terminal.

use aldis_process::{Agent, Environment, Input, Launch, Output};

use super::*;

const ASKS: &str = "[ $role = developer ] && first && { printf 'SEEKING_DIVINE_CLARIFICATION\\nTask: csv\\nQuestion: keep or drop?\\n'; exit 0; }";

#[test]
fn people_are_told_of_questions_failures_and_the_end() {
    let stage = Stage::new(ASKS, ONE);
    let told = stage.0.root().join("told");
    stage.settings(&format!(
        "[notify]\ncommand = 'echo \"$ALDIS_NOTICE $ALDIS_TEXT\" >> {}'\n",
        told.display()
    ));
    let mut child = stage.start(&Stage::arguments(&[]));
    assert_eq!(stage.0.run(&["answer", &stage.question(), "fail"]).code, 0);
    assert_eq!(child.wait().unwrap().code(), Some(1));
    let lines = || -> Vec<String> {
        fs::read_to_string(&told).unwrap_or_default().lines().map(str::to_owned).collect()
    };
    assert_eq!(
        lines(),
        [
            "question \"Write the CSV\" (csv): keep or drop?",
            "task_failed \"Write the CSV\" (csv) was given up by a human.",
            "run_ended One ended (failed): 0 of 1 task complete.",
        ]
    );

    let stage = Stage::new(
        "[ $role = developer ] && first && { printf 'TASK_INCOMPLETE: csv\\nNeeded: a key\\n'; exit 0; }",
        ONE,
    );
    stage.settings(&format!(
        "[notify]\ncommand = 'echo \"$ALDIS_NOTICE $ALDIS_TEXT\" >> {}'\n\
         [notify.events]\ntask_complete = true\n",
        told.display()
    ));
    fs::remove_file(&told).unwrap();
    assert_eq!(stage.run(&[]).code, 0);
    assert_eq!(
        lines(),
        [
            "task_blocked \"Write the CSV\" (csv) is on hold (needed: a key)",
            "task_complete \"Write the CSV\" (csv) is complete.",
            "run_ended One is complete: 1 task.",
        ]
    );
}

#[test]
fn a_person_at_the_terminal_is_asked_on_the_spot() {
    let stage = Stage::new(ASKS, ONE);
    let launch = Launch {
        args: Stage::arguments(&[]).into_iter().map(Into::into).collect(),
        cwd: stage.0.path(),
        environment: Environment {
            inherit: Some(Vec::new()),
            set: vec![
                ("HOME".into(), stage.0.home().into()),
                ("ALDIS_STATE_DIR".into(), stage.0.state_dir().into()),
                ("TERM".into(), "xterm".into()),
            ],
        },
        input: Input::Text(b"Drop it.\n".to_vec()),
        terminal: true,
        reaper: Some(ALDIS.into()),
        ..Launch::new(ALDIS)
    };
    let agent = Agent::start(&launch).unwrap();
    let (mut shown, mut exit) = (Vec::new(), None);
    while exit.is_none() {
        match agent.next(Duration::from_secs(60)).expect("something happens") {
            Output::Stdout(bytes) | Output::Stderr(bytes) => shown.extend(bytes),
            Output::Exited(exited) => exit = exited.code,
            _ => {}
        }
    }
    let shown = String::from_utf8_lossy(&shown);
    assert_eq!(exit, Some(0), "{shown}");
    assert!(shown.contains("answer q1 > "), "{shown}");
    stage.assert_complete();
    let why = stage.0.run(&["why", "csv"]);
    assert!(why.stdout.contains("Drop it."), "{}", why.text());
}
