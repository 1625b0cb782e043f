//! `aldis run`: what agents do to their checks, and what becomes of it.

use std::fs;
use std::thread;
use std::time::{Duration, Instant};

use serde_json::Value;

use super::Stage;
use crate::sandbox::{ALDIS, Done};

/// How long the tests wait for a process on a busy machine.
const PATIENCE: Duration = Duration::from_secs(60);

/// An agent that does something in its first round, and the work in its second.
fn agent(first: &str, second: &str) -> String {
    format!(
        "#!/bin/sh\nn=$(($(cat count 2>/dev/null || echo 0) + 1)); echo $n > count\n\
         cat > prompt.$n\n\
         if [ $n = 1 ]; then\n{first}\nelse\n:\n{second}\nfi\n\
         echo '<chorus>COMPLETE</chorus>'\n"
    )
}

impl Stage {
    fn run(&self, options: &[&str]) -> Done {
        let command = ["--", "./agent.sh"];
        self.aldis(&[&["run", "--task", "Write needle"], options, &command].concat())
    }

    fn prompt(&self, round: u32) -> String {
        fs::read_to_string(self.0.path().join(format!("prompt.{round}"))).unwrap()
    }
}

/// The work itself.
const WORK: &str = "echo needle >> src.txt";

/// Each way to bend a check is refused with its reason, and the honest second round is accepted.
#[test]
fn an_agent_that_bends_the_check_is_refused_with_the_reason() {
    let protect: &[&str] = &["--protect", "tests/**"];
    for (what, bends, undo, options, rule, reason) in [
        (
            "rewrites the script",
            "printf '#!/bin/sh\\ntrue\\n' > scripts/test",
            "git checkout -q scripts/test",
            &[][..],
            "proof/own-file-changed",
            "`scripts/test` changed, and a check runs it",
        ),
        (
            "fakes the exit code",
            "sed -i '2i exit 0' scripts/test",
            "git checkout -q scripts/test",
            &[],
            "proof/own-file-changed",
            "`scripts/test` changed, and a check runs it",
        ),
        (
            "deletes the script",
            "rm scripts/test",
            "git checkout -q scripts/test",
            &[],
            "proof/own-file-changed",
            "`scripts/test` was deleted, and a check runs it",
        ),
        (
            "edits a test",
            "echo needle >> src.txt; echo 'test three' > tests/a.txt",
            "git checkout -q tests",
            protect,
            "proof/protected-file-changed",
            "`tests/a.txt` changed, and it is protected",
        ),
        (
            "deletes a test",
            "echo needle >> src.txt; rm tests/a.txt",
            "git checkout -q tests",
            protect,
            "proof/protected-file-changed",
            "`tests/a.txt` was deleted, and it is protected",
        ),
        (
            "deletes a test that nobody protects",
            "echo needle >> src.txt; rm tests/a.txt",
            "git checkout -q tests",
            &[],
            "proof/test-file-changed",
            "`tests/a.txt` was deleted, and it belongs to the tests",
        ),
        (
            "puts a link in the place of a test",
            "echo needle >> src.txt; mv tests/a.txt x.txt; ln -s ../x.txt tests/a.txt",
            "rm x.txt; git checkout -q tests",
            protect,
            "proof/protected-file-changed",
            "`tests/a.txt` is not a regular file any more, and it is protected",
        ),
        (
            "edits a test, by policy",
            "echo needle >> src.txt; echo 'test three' > tests/a.txt",
            "git checkout -q tests",
            &["--on-change", "refuse"],
            "proof/test-file-changed",
            "`tests/a.txt` changed, and it belongs to the tests",
        ),
    ] {
        let stage = Stage::new(&agent(bends, &format!("{undo}; {WORK}")));
        let options = [&["--verify", "./scripts/test"], options].concat();
        let done = stage.run(&options);
        assert_eq!(done.code, 0, "{what}: {}", done.text());
        let refused = stage.decisions("run/proof-refused");
        assert_eq!(refused.len(), 1, "{what}: {}", done.text());
        assert_eq!(refused[0]["because"], "the agent claimed to be done in iteration 1");
        let evidence = refused[0]["evidence"].as_array().unwrap();
        let found = evidence.iter().find(|seen| seen["what"] == "finding").unwrap();
        assert_eq!((&found["reason"], &found["quote"]), (&rule.into(), &reason.into()), "{what}");
        let prompt = stage.prompt(2);
        assert!(prompt.contains(reason) && prompt.contains("Restore it"), "{what}: {prompt}");
        assert!(done.text().contains(reason), "the live view says so: {}", done.text());
    }
}

/// `why` on a run that ends so says it, too.
#[test]
fn why_names_what_was_bent() {
    let stage = Stage::new(&agent("rm scripts/test", WORK));
    let options = ["--verify", "./scripts/test", "--max-iterations", "1"];
    let done = stage.run(&options);
    assert_eq!(done.code, 5, "{}", done.text());
    let why = stage.why();
    assert!(why.contains("`scripts/test` was deleted, and a check runs it"), "{why}");
    assert!(why.contains("proof/own-file-changed"), "{why}");
    let proof = &stage.status()["proof"];
    assert_eq!(proof["acceptance"], "refused", "{proof}");
    assert_eq!(proof["changes"][0]["change"], "deleted", "{proof}");
}

#[test]
fn the_script_of_a_package_is_the_check() {
    let stage = Stage::new(&agent(
        r#"printf '{"scripts": {"test": "exit 0"}}' > package.json"#,
        "git checkout -q package.json; echo needle >> src.txt",
    ));
    stage.write("package.json", r#"{"version": "1", "scripts": {"test": "./scripts/test"}}"#);
    // Not npm itself: what counts is which part of the file the command stands for.
    stage.script(
        "bin/npm",
        "#!/bin/sh\nexec sh -c \"$(sed 's/.*\"test\": \"//; s/\".*//' package.json)\"\n",
    );
    stage.commit("package");
    let done = stage.run(&["--verify", "PATH=$PWD/bin:$PATH npm test"]);
    assert_eq!(done.code, 0, "{}", done.text());
    let refused = stage.decisions("run/proof-refused");
    assert_eq!(refused.len(), 1, "{}", done.text());
    assert!(
        stage.prompt(2).contains("`package.json (scripts.test)` changed"),
        "{}",
        stage.prompt(2)
    );
}

/// Whoever only adds tests is not in the way of anything, and what changed is named.
#[test]
fn an_honest_agent_may_add_tests() {
    let stage = Stage::new(&agent("echo needle >> src.txt; echo 'test b' > tests/b.txt", ""));
    let done = stage.run(&["--verify", "./scripts/test", "--protect", "tests/**"]);
    assert_eq!(done.code, 0, "{}", done.text());
    let finished = stage.decisions("run/done").remove(0);
    let because = finished["because"].as_str().unwrap();
    assert!(because.contains("the check passed; `tests/b.txt` was added"), "{because}");
}

#[test]
fn skipped_and_missing_tests_are_refused_where_they_were_counted_before() {
    for (bends, rule, reason) in [
        (
            "sed -i 's/^test two/skip two/' tests/a.txt",
            "proof/more-skipped",
            "the check skipped 1 test, and before the work started it skipped 0",
        ),
        (
            "sed -i '/two/d' tests/a.txt",
            "proof/fewer-tests",
            "the check has 1 test, and before the work started it had 2",
        ),
    ] {
        let stage = Stage::new(&agent(&format!("{WORK}; {bends}"), "git checkout -q tests"));
        stage.write("src.txt", "needle\n");
        stage.commit("it passes");
        stage.write("aldis.toml", "[proof]\nbaseline = true\n");
        let done = stage.run(&["--verify", "./scripts/test"]);
        assert_eq!(done.code, 0, "{}", done.text());
        let refused = stage.decisions("run/proof-refused");
        assert_eq!(refused.len(), 1, "{}", done.text());
        let evidence = refused[0]["evidence"].to_string();
        assert!(evidence.contains(rule) && evidence.contains(reason), "{evidence}");
    }
}

/// A clean checkout has what was committed, and nothing else.
#[test]
fn a_claim_without_a_commit_is_refused_where_checks_run_clean() {
    let commit = "git -c user.name=t -c user.email=t@t commit -qam work";
    let stage = Stage::new(&agent(WORK, commit));
    let done = stage.run(&["--verify", "./scripts/test", "--clean"]);
    assert_eq!(done.code, 0, "{}", done.text());
    let refused = stage.decisions("run/proof-refused");
    assert_eq!(refused.len(), 1, "{}", done.text());
    let reason = "there is no commit since the work began, and the checks run on a commit";
    assert!(
        stage.prompt(2).contains(&format!("You reported done, but {reason}. Commit your work"))
    );
    let proof = &stage.status()["proof"];
    let head = String::from_utf8(stage.git(&["rev-parse", "HEAD"]).stdout).unwrap();
    assert_eq!(proof["clean"], head.trim(), "{proof}");
    stage.assert_no_checkout();
}

/// What lies about in the work tree does not help.
#[test]
fn a_clean_check_does_not_see_what_is_not_committed() {
    let commit = "git -c user.name=t -c user.email=t@t commit -q --allow-empty -m nothing";
    let stage = Stage::new(&agent(&format!("{WORK}; {commit}"), &format!("git add -A; {commit}")));
    let done = stage.run(&["--verify", "./scripts/test", "--clean"]);
    assert_eq!(done.code, 0, "{}", done.text());
    assert_eq!(stage.decisions("run/check-failed").len(), 1, "{}", done.text());
    assert!(stage.prompt(2).contains("> needle is missing"), "{}", stage.prompt(2));
    stage.assert_no_checkout();
}

/// A script that is bent in the commit is seen there, whatever the work tree looks like.
#[test]
fn a_bent_commit_behind_an_honest_work_tree_is_refused() {
    let bends = "printf '#!/bin/sh\\ntrue\\n' > scripts/test; \
                 git -c user.name=t -c user.email=t@t commit -qam bent; \
                 git checkout -q HEAD~1 -- scripts/test";
    let undo = "git -c user.name=t -c user.email=t@t commit -qam back; echo needle >> src.txt; \
                git -c user.name=t -c user.email=t@t commit -qam work";
    let stage = Stage::new(&agent(bends, undo));
    let done = stage.run(&["--verify", "./scripts/test", "--clean"]);
    assert_eq!(done.code, 0, "{}", done.text());
    assert_eq!(stage.decisions("run/proof-refused").len(), 1, "{}", done.text());
    assert!(stage.prompt(2).contains("`scripts/test` changed, and a check runs it"));
}

#[test]
fn a_check_that_passes_when_repeated_is_called_flaky() {
    let stage = Stage::new(&agent(WORK, ""));
    stage.write("aldis.toml", "[proof]\nrepeat = 2\n");
    let mark = stage.0.root().join("mark").display().to_string();
    let check = format!("test -e {mark} || {{ touch {mark}; echo 'no luck'; exit 1; }}");
    let done = stage.run(&["--verify", &check]);
    assert_eq!(done.code, 0, "{}", done.text());
    let finished = stage.decisions("run/done").remove(0);
    let because = finished["because"].as_str().unwrap();
    assert!(because.contains("the check is flaky: it passed after 1 failure"), "{because}");
    let check = &stage.status()["proof"]["checks"][0];
    assert_eq!((&check["runs"], &check["flaky"]), (&2.into(), &true.into()), "{check}");
}

#[test]
fn a_check_must_fail_before_the_work() {
    // It fails first: nothing to say.
    let stage = Stage::new(&agent(WORK, ""));
    let done = stage.run(&["--verify", "./scripts/test", "--red-first"]);
    assert_eq!(done.code, 0, "{}", done.text());
    assert!(stage.decisions("run/check-proves-nothing").is_empty(), "{}", done.text());
    // It passes first: the run says so, and goes on.
    let stage = Stage::new(&agent(WORK, ""));
    stage.write("src.txt", "needle\n");
    let done = stage.run(&["--verify", "./scripts/test", "--red-first"]);
    assert_eq!(done.code, 0, "{}", done.text());
    let reason = "the check passed before the work started, so it proves nothing";
    assert_eq!(stage.decisions("run/check-proves-nothing")[0]["because"], reason);
    assert!(stage.why().contains(reason), "{}", stage.why());
    assert!(done.text().contains("proves nothing"), "{}", done.text());
    // Strictly, no agent is started.
    let stage = Stage::new(&agent(WORK, ""));
    stage.write("src.txt", "needle\n");
    let done = stage.run(&["--verify", "./scripts/test", "--red-first=strict"]);
    assert_eq!(done.code, 3, "{}", done.text());
    assert!(stage.why().contains(reason), "{}", stage.why());
    assert!(!stage.0.path().join("count").exists(), "no agent was started");
    let again = stage.aldis(&["run", "--continue", "--red-first=false"]);
    assert_eq!(again.code, 0, "{}", again.text());
}

/// Checks run in order, each after what it needs, and each has its own verdict.
#[test]
fn checks_with_names_run_in_steps() {
    let stage = Stage::new(&agent("touch built", WORK));
    stage.write(
        "aldis.toml",
        "[[proof.check]]\nname = \"unit\"\ncommand = \"./scripts/test; x=$?; echo unit >> order; exit $x\"\nneeds = [\"build\"]\n\
         [[proof.check]]\nname = \"build\"\ncommand = \"echo build >> order; test -e built\"\n\
         [[proof.check]]\nname = \"deploy\"\ncommand = \"echo deploy >> order\"\nneeds = [\"unit\"]\n",
    );
    let refused = stage.run(&[]);
    assert_eq!(refused.code, 2, "commands of a repository need trust: {}", refused.text());
    assert!(
        refused.text().contains("`proof.check` is set by the repository"),
        "{}",
        refused.text()
    );
    assert_eq!(stage.aldis(&["trust"]).code, 0);
    let done = stage.run(&[]);
    assert_eq!(done.code, 0, "{}", done.text());
    let order = fs::read_to_string(stage.0.path().join("order")).unwrap();
    assert_eq!(order, "build\nunit\nbuild\nunit\ndeploy\n");
    let prompt = stage.prompt(2);
    for line in [
        "- `build`: passed",
        "- `unit`: failed with exit code 1",
        "- `deploy`: did not run: it needs `unit`",
        "The output of the check `unit` ends with:\n\n> needle is missing",
    ] {
        assert!(prompt.contains(line), "{line}: {prompt}");
    }
    let failed = stage.decisions("run/check-failed");
    assert_eq!(failed.len(), 1);
    let evidence = failed[0]["evidence"].to_string();
    assert!(evidence.contains("the check `build` passed"), "{evidence}");
    assert!(done.text().contains("the check `unit` failed"), "{}", done.text());
    let checks = stage.status()["proof"]["checks"].clone();
    let names: Vec<_> = checks.as_array().unwrap().iter().map(|it| it["name"].clone()).collect();
    assert_eq!(names, ["build", "unit", "deploy"]);
    assert!(stage.why().contains("all 3 checks passed"), "{}", stage.why());
    let report = stage.aldis(&["report"]).text();
    assert!(report.contains("did not run"), "{report}");
}

#[test]
fn a_human_is_asked_about_changed_tests() {
    let bends = "echo needle >> src.txt; echo 'test three' >> tests/a.txt";
    let stage = Stage::new(&agent(bends, ""));
    let options = ["--verify", "./scripts/test", "--on-change", "ask", "--no-wait"];
    let done = stage.run(&options);
    assert_eq!(done.code, 3, "{}", done.text());
    assert!(stage.why().contains("`tests/a.txt` changed, and it belongs to the tests"));
    assert_eq!(stage.aldis(&["answer", "q1", "accept"]).code, 0);
    let again = stage.aldis(&["run", "--continue"]);
    assert_eq!(again.code, 0, "{}", again.text());
    assert!(stage.why().contains("accepted by"), "{}", stage.why());
    // Anything else goes to the agent.
    let stage = Stage::new(&agent(bends, "git checkout -q tests"));
    assert_eq!(stage.run(&options).code, 3);
    assert_eq!(stage.aldis(&["answer", "q1", "Put the tests back."]).code, 0);
    let again = stage.aldis(&["run", "--continue"]);
    assert_eq!(again.code, 0, "{}", again.text());
    let prompt = stage.prompt(2);
    assert!(prompt.contains("`tests/a.txt` changed") && prompt.contains("> Put the tests back."));
    // The agent asked nothing.
    assert!(!prompt.contains("You asked") && prompt.contains("The human you work for"), "{prompt}");
}

/// Of a run that is supervised, an answer that ends it says so, and not that it is to be continued.
#[test]
fn an_answer_says_what_became_of_the_run() {
    let bends = "echo needle >> src.txt; echo 'test three' >> tests/a.txt";
    let stage = Stage::new(&agent(bends, ""));
    let options = ["--verify", "./scripts/test", "--on-change", "ask", "--detach"];
    assert_eq!(stage.run(&options).code, 0);
    let began = Instant::now();
    while stage.status()["status"] != "asking" {
        assert!(began.elapsed() < PATIENCE, "{}", stage.status());
        thread::sleep(Duration::from_millis(50));
    }
    let done = stage.aldis(&["answer", "q1", "accept"]);
    assert_eq!(done.code, 0, "{}", done.text());
    assert!(done.stdout.starts_with("Answered q1; run "), "{}", done.text());
    assert!(done.stdout.contains(": done"), "{}", done.text());
    assert!(!done.stdout.contains("--continue"), "{}", done.text());
}

/// Whoever claims by a call is told at once what a pinned file says against it, and what to do.
#[test]
fn a_call_is_refused_while_a_pinned_file_is_bent() {
    let claim = |summary: &str, reply: &str| {
        format!("{ALDIS} signal done {summary} --json > prompt.{reply}; :\n")
    };
    let bent = "echo needle >> src.txt; printf '#!/bin/sh\\ntrue\\n' > scripts/test\n";
    let restored = "git checkout -q scripts/test\n";
    let acts = [bent, &claim("bent", "bent"), restored, &claim("restored", "whole")].concat();
    let stage = Stage::new(&agent(&acts, ""));
    let done = stage.run(&["--verify", "./scripts/test"]);
    assert_eq!(done.code, 0, "{}", done.text());
    let reply = |name: &str| -> Value {
        let text = fs::read_to_string(stage.0.path().join(format!("prompt.{name}"))).unwrap();
        serde_json::from_str(&text).unwrap()
    };
    let bent = reply("bent");
    assert_eq!((&bent["accepted"], &bent["rule"]), (&false.into(), &"call/claim-refused".into()));
    assert_eq!(bent["reason"], "`scripts/test` changed, and a check runs it", "{bent}");
    assert_eq!(bent["next"], "Restore it as it was. Then call `complete` again.", "{bent}");
    let whole = reply("whole");
    assert_eq!(whole["accepted"], true, "{whole}");
    assert_eq!(whole["check"]["status"], "passed", "{whole}");
    let asked = "echo 'test three' >> tests/a.txt; echo needle >> src.txt\n";
    let stage = Stage::new(&agent(&[asked, &claim("edited", "bent")].concat(), ""));
    let options = ["--verify", "./scripts/test", "--on-change", "ask", "--no-wait"];
    assert_eq!(stage.run(&options).code, 3);
    let text = fs::read_to_string(stage.0.path().join("prompt.bent")).unwrap();
    assert!(text.contains("a human is then asked, because `tests/a.txt` changed"), "{text}");
}

/// What was pinned when the run began stays pinned when it is continued.
#[test]
fn continuing_a_run_does_not_bless_what_was_bent() {
    let stage = Stage::new(&agent("printf '#!/bin/sh\\ntrue\\n' > scripts/test", "true"));
    let options = ["--verify", "./scripts/test", "--max-iterations", "1"];
    assert_eq!(stage.run(&options).code, 5);
    let more = ["run", "--continue", "--max-iterations", "2", "--protect", "tests/**"];
    let again = stage.aldis(&more);
    assert_eq!(again.code, 5, "{}", again.text());
    assert!(stage.why().contains("`scripts/test` changed"), "{}", stage.why());
    let allowed = ["run", "--continue", "--max-iterations", "3", "--on-change", "allow"];
    let again = stage.aldis(&allowed);
    assert_eq!(again.code, 0, "{}", again.text());
    assert!(stage.why().contains("`scripts/test` changed"), "it is named all the same");
}

/// What cannot be, is refused before anything starts.
#[test]
fn settings_that_cannot_be_are_refused() {
    let stage = Stage::new(&agent(WORK, ""));
    for (options, file, want) in [
        (&["--protect", "a[b"][..], "", "the pattern `a[b`"),
        (&["--on-change", "maybe"], "", "maybe"),
        (
            &[],
            "[[proof.check]]\nname = \"a\"\ncommand = \"true\"\nneeds = [\"b\"]\n",
            "needs `b`, and there is no such check",
        ),
        (&[], "[proof]\nred_first = \"maybe\"\n", "true, false or `strict`"),
    ] {
        stage.write("aldis.toml", file);
        let done = stage.run(&[&["--verify", "true"], options].concat());
        assert_eq!(done.code, 2, "{}", done.text());
        assert!(done.text().contains(want), "{want}: {}", done.text());
    }
    stage.write("aldis.toml", "");
    fs::remove_dir_all(stage.0.path().join(".git")).unwrap();
    let done = stage.run(&["--verify", "true", "--clean"]);
    assert_eq!(done.code, 2, "{}", done.text());
    assert!(done.text().contains("--clean: there is no git repository"), "{}", done.text());
}
