//! `aldis deliver`: checks between the developer and the critic.

use std::fs;

use super::Stage;
use crate::sandbox::Done;

/// A developer that does something in its first round, and something else after that. Prompts are kept
/// outside the work trees.
fn agent(root: &str, first: &str, second: &str) -> String {
    format!(
        "#!/bin/sh\nn=$(ls {root}/prompts | wc -l)\n\
         cat > {root}/prompts/$n.$ALDIS_ROLE\n\
         case $ALDIS_ROLE in\n\
         developer) if [ ! -e {root}/tried ]; then touch {root}/tried\n{first}\nelse\n{second}\nfi\n\
         printf 'READY_FOR_REVIEW: %s\\nSummary: done\\n' $ALDIS_TASK;;\n\
         critic) printf 'REVIEW_PASSED: %s\\n' $ALDIS_TASK;;\n\
         auditor) printf 'AUDIT_PASSED: %s\\n' $ALDIS_TASK;;\n\
         esac\n"
    )
}

impl Stage {
    fn delivery(first: &str, second: &str) -> Self {
        let stage = Self::new("");
        let root = stage.0.root().display().to_string();
        fs::create_dir(stage.0.root().join("prompts")).unwrap();
        stage.script("agent.sh", &agent(&root, first, second));
        stage.write("plan.md", "- [ ] a: Write needle\n");
        stage.commit("plan");
        stage
    }

    fn deliver(&self, options: &[&str]) -> Done {
        let command = ["--no-wait", "--", "./agent.sh"];
        self.aldis(&[&["deliver", "plan.md"], options, &command].concat())
    }

    /// The prompts of a role, in order.
    fn prompts(&self, role: &str) -> Vec<String> {
        let mut files: Vec<_> = fs::read_dir(self.0.root().join("prompts"))
            .unwrap()
            .map(|entry| entry.unwrap().path())
            .filter(|path| path.extension().is_some_and(|it| it == role))
            .collect();
        files.sort();
        files.iter().map(|file| fs::read_to_string(file).unwrap()).collect()
    }
}

const WORK: &str = "echo needle >> src.txt";

#[test]
fn a_failing_check_goes_back_to_the_developer_before_the_critic() {
    let stage = Stage::delivery("echo hay >> src.txt", WORK);
    let done = stage.deliver(&["--verify", "./scripts/test"]);
    assert_eq!(done.code, 0, "{}", done.text());
    let developers = stage.prompts("developer");
    assert_eq!(developers.len(), 2, "{}", done.text());
    assert!(developers[1].contains("> needle is missing"), "{}", developers[1]);
    assert_eq!(stage.decisions("delivery/checks-failed").len(), 1, "{}", done.text());
    for role in ["critic", "auditor"] {
        let prompts = stage.prompts(role);
        assert_eq!(prompts.len(), 1, "{role}: {}", done.text());
        assert!(prompts[0].contains("### What the checks said"), "{}", prompts[0]);
        assert!(prompts[0].contains("- the check: passed, 2 passed"), "{}", prompts[0]);
    }
    let merged = fs::read_to_string(stage.0.path().join("src.txt")).unwrap();
    assert!(merged.contains("needle"), "{merged}");
}

#[test]
fn a_developer_that_bends_the_check_gets_its_work_back_with_the_reason() {
    let protect: &[&str] = &["--protect", "tests/**"];
    for (bends, undo, options, reason) in [
        (
            "printf '#!/bin/sh\\ntrue\\n' > scripts/test",
            "git checkout -q scripts/test",
            &[][..],
            "`scripts/test` changed, and a check runs it",
        ),
        (
            "sed -i '2i exit 0' scripts/test",
            "git checkout -q scripts/test",
            &[],
            "`scripts/test` changed, and a check runs it",
        ),
        (
            "rm scripts/test",
            "git checkout -q scripts/test",
            &[],
            "`scripts/test` was deleted, and a check runs it",
        ),
        (
            "echo needle >> src.txt; echo 'test x' > tests/a.txt",
            "git checkout -q tests",
            protect,
            "`tests/a.txt` changed, and it is protected",
        ),
        (
            "echo needle >> src.txt; rm tests/a.txt",
            "git checkout -q tests",
            protect,
            "`tests/a.txt` was deleted, and it is protected",
        ),
    ] {
        let stage = Stage::delivery(bends, &format!("{undo}; {WORK}"));
        let done = stage.deliver(&[&["--verify", "./scripts/test"], options].concat());
        assert_eq!(done.code, 0, "{}", done.text());
        let failed = stage.decisions("delivery/checks-failed");
        assert_eq!(failed.len(), 1, "{}", done.text());
        assert_eq!(failed[0]["because"], reason);
        assert!(stage.prompts("developer")[1].contains(reason), "{reason}");
        assert_eq!(stage.prompts("critic").len(), 1, "no critic read it before");
    }
}

#[test]
fn skipped_tests_and_missing_commits_are_refused_in_a_delivery() {
    let skips = format!("{WORK}; sed -i 's/^test two/skip two/' tests/a.txt");
    let stage = Stage::delivery(&skips, "git checkout -q tests");
    stage.write("src.txt", "needle\n");
    stage.commit("it passes");
    stage.write("aldis.toml", "[proof]\nbaseline = true\n");
    let done = stage.deliver(&["--verify", "./scripts/test"]);
    assert_eq!(done.code, 0, "{}", done.text());
    let reason = "the check skipped 1 test, and before the work started it skipped 0";
    assert_eq!(stage.decisions("delivery/checks-failed")[0]["because"], reason);

    let commit = "git -c user.name=t -c user.email=t@t commit -qam work";
    let stage = Stage::delivery(WORK, commit);
    let done = stage.deliver(&["--verify", "./scripts/test", "--clean"]);
    assert_eq!(done.code, 0, "{}", done.text());
    let reason = "there is no commit since the work began, and the checks run on a commit";
    assert_eq!(stage.decisions("delivery/checks-failed")[0]["because"], reason);
    stage.assert_no_checkout();
}

#[test]
fn checks_that_fail_again_and_again_need_a_human() {
    let stage = Stage::delivery("true", "true");
    let done = stage.deliver(&["--verify", "./scripts/test"]);
    assert_eq!(done.code, 3, "{}", done.text());
    assert_eq!(stage.decisions("delivery/check-limit").len(), 1, "{}", done.text());
    assert!(stage.prompts("critic").is_empty(), "no critic was started");
}

#[test]
fn a_human_is_asked_about_changed_tests_of_a_task() {
    let bends = "echo needle >> src.txt; echo 'test x' >> tests/a.txt";
    let stage = Stage::delivery(bends, "true");
    let done = stage.deliver(&["--verify", "./scripts/test", "--on-change", "ask"]);
    assert_eq!(done.code, 3, "{}", done.text());
    assert!(stage.prompts("critic").is_empty(), "{}", done.text());
    assert_eq!(stage.aldis(&["answer", "q1", "accept"]).code, 0);
    let again = stage.aldis(&["deliver", "--continue", "--no-wait"]);
    assert_eq!(again.code, 0, "{}", again.text());
    let critic = &stage.prompts("critic")[0];
    assert!(critic.contains("`tests/a.txt` changed"), "{critic}");
}
