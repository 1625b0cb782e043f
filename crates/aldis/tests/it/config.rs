//! Settings from files, the environment and the command line; and the trust that commands need.

use std::fs;

use serde_json::Value;

use crate::phases::project::{Project, feed, testdata};
use crate::sandbox::{ALDIS, Done};

/// A project with a `.git` and, where given, a file with settings.
fn project(name: &str, text: &str) -> Project {
    let project = Project::new();
    fs::create_dir(project.path().join(".git")).unwrap();
    fs::write(project.path().join(name), text).unwrap();
    project
}

/// The value of a key, its source, and its line if it has one.
fn setting(done: &Done, key: &str) -> (Value, String, Option<u64>) {
    let line = done.json().into_iter().find(|line| line["key"] == key).unwrap();
    let origin = &line["origin"];
    (line["value"].clone(), origin["source"].as_str().unwrap().to_owned(), origin["line"].as_u64())
}

fn with_environment(project: &Project, variables: &[(&str, &str)], args: &[&str]) -> Done {
    let mut command = project.command(ALDIS);
    command.envs(variables.iter().copied()).args(args);
    feed(command, b"")
}

#[test]
fn every_value_says_where_it_comes_from() {
    let project = project("aldis.toml", "[run]\ntimeout = \"5m\"\nmax_iterations = 7\n");
    fs::create_dir_all(project.home().join(".config/aldis")).unwrap();
    let user = "run:\n  timeout: 1h\n  pty: true\n  max_cost: 5\n";
    fs::write(project.home().join(".config/aldis/aldis.yaml"), user).unwrap();
    let done = with_environment(
        &project,
        &[("ALDIS_RUN_MAX_ITERATIONS", "8"), ("ALDIS_RUN_NO_WAIT", "true")],
        &["config", "show", "--json", "--max-tokens", "90", "--no-wait=false"],
    );
    assert_eq!(done.code, 0, "{}", done.text());
    for (key, value, source, line) in [
        ("run.timeout", "\"5m\"", "project_file", Some(2)),
        ("run.pty", "true", "user_file", Some(3)),
        ("run.max_cost", "5", "user_file", Some(4)),
        ("run.max_iterations", "8", "environment", None),
        ("run.no_wait", "false", "command_line", None),
        ("run.max_tokens", "90", "command_line", None),
        ("run.total_timeout", "\"1d\"", "default", None),
        ("run.verify", "null", "default", None),
    ] {
        let value: Value = serde_json::from_str(value).unwrap();
        assert_eq!(setting(&done, key), (value, source.to_owned(), line), "{key}");
    }
    let deeper = project.path().join("src/deep");
    fs::create_dir_all(&deeper).unwrap();
    let mut command = project.command(ALDIS);
    command.current_dir(deeper).args(["config", "show", "--json"]);
    assert_eq!(setting(&feed(command, b""), "run.timeout").1, "project_file", "found upwards");
}

#[test]
fn people_see_a_file_that_could_be_theirs() {
    let project = project("aldis.yaml", "run:\n  max_iterations: 7\n  verify: make test\n");
    let shown = project.run(&["config", "show", "--origin", "--pty", "run"]);
    insta::assert_snapshot!(shown.text(), @r#"
    exit 0
    -- stdout
    [run]
    # host is not set                    # default
    dialect = "chorus"                   # default
    prompt_by = "stdin"                  # default
    input = "auto"                       # default
    verify = "make test"                 # aldis.yaml:3, not trusted yet: aldis trust
    pty = true                           # command line --pty
    max_iterations = 7                   # aldis.yaml:2
    timeout = "30m"                      # default
    total_timeout = "1d"                 # default
    # max_tokens is not set              # default
    # max_cost is not set                # default
    require_commit = false               # default
    require_clean = false                # default
    no_wait = false                      # default
    limit_wait = "15m"                   # default
    max_limit_waits = 40                 # default
    max_crashes = 2                      # default
    crash_wait = "10s"                   # default
    max_attempts = 3                     # default
    -- stderr
    "#);
    let all = project.run(&["config", "show"]).stdout;
    fs::remove_file(project.path().join("aldis.yaml")).unwrap();
    fs::write(project.path().join("aldis.toml"), all).unwrap();
    let again = project.run(&["config", "check"]);
    assert_eq!(again.code, 0, "{}", again.text());
}

#[test]
fn checks_say_what_to_change() {
    let project = project("aldis.toml", "[run]\nmax_iteration = 5\n");
    let path = project.path();
    let done = project.run(&["config", "check"]);
    let text = done.text().replace(&format!("{}/", path.display()), "");
    insta::assert_snapshot!(text, @r"
    exit 1
    -- stdout
    -- stderr
    error: `aldis.toml` line 2: unknown key `max_iteration` in [run]
     help: did you mean `max_iterations`?
    ");
    for (name, text, code, word) in [
        ("good.toml", "[run]\ntimeout = 5\n", 0, "good.toml: ok, 1 value is set"),
        ("good.yaml", "run: {timeout: 5, pty: true}\n", 0, "good.yaml: ok, 2 values are set"),
        (
            "p.toml",
            "[pipelines.p]\nphases = [{ name = \"a\", signal = \"NO_SUCH\" }]\n",
            1,
            "NO_SUCH",
        ),
        ("q.toml", "[phases]\npipeline = \"none\"\n", 1, "there is no pipeline `none`"),
        ("d.yaml", "dialects: {caw: {about: mine}}\n", 1, "[dialects.caw]"),
        // All mistakes at once.
        ("many.toml", "[run]\nfoo = 1\nbar = 2\n", 1, "line 3: unknown key `bar` in [run]"),
        ("same.toml", "[run]\nfoo = 1\nbar = 2\n", 1, "line 2: unknown key `foo` in [run]"),
    ] {
        fs::write(path.join(name), text).unwrap();
        let done = project.run(&["config", "check", name]);
        assert_eq!(done.code, code, "{name}: {}", done.text());
        assert!((done.stdout.clone() + &done.stderr).contains(word), "{name}: {}", done.text());
    }
    fs::write(path.join("aldis.yaml"), "").unwrap();
    for args in [&["config", "show"][..], &["scan", "x"], &["auto", "start", "x"]] {
        let both = project.run(args);
        assert_eq!(both.code, 2, "{args:?}: {}", both.text());
        assert!(both.stderr.contains("has both `aldis.toml` and `aldis.yaml`"), "{}", both.text());
    }
}

#[test]
fn misspelled_variables_are_refused() {
    let project = project("aldis.toml", "");
    for (name, value, word) in [
        ("ALDIS_RUN_MAX_ITERATION", "5", "did you mean ALDIS_RUN_MAX_ITERATIONS?"),
        ("ALDIS_RUN_TIMEOUT", "0", "ALDIS_RUN_TIMEOUT: `run.timeout`: expected a span"),
        ("ALDIS_STAGNATION_ENABLED", "no", "expected a boolean"),
        ("ALDIS_NOTIFY_EVENTS_QUESTION", "pager", "expected true, false, or a list of terminal"),
    ] {
        let done = with_environment(&project, &[(name, value)], &["config", "show"]);
        assert_eq!(done.code, 2, "{name}: {}", done.text());
        assert!(done.stderr.contains(word), "{name}: {}", done.text());
    }
    let others = [("ALDIS_RUN", "x"), ("ALDIS_NOTICE", "x"), ("ALDIS_RUN_TIMEOUT", "")];
    assert_eq!(with_environment(&project, &others, &["config", "show"]).code, 0);
    let list = [("ALDIS_NOTIFY_EVENTS_QUESTION", "desktop, webhook")];
    assert_eq!(with_environment(&project, &list, &["config", "show"]).code, 0);
}

const AGENT: [&str; 4] = ["--", "/bin/sh", "-c", "echo '<chorus>COMPLETE</chorus>'"];

fn run_agent(project: &Project, options: &[&str]) -> Done {
    project.run(&[&["run", "--task", "x"], options, &AGENT].concat())
}

#[test]
fn commands_of_a_repository_run_only_when_trusted() {
    let project = project("aldis.toml", "[run]\nverify = \"echo ran >> ran\"\n");
    let ran = || fs::read_to_string(project.path().join("ran")).unwrap_or_default();
    let file = project.path().join("aldis.toml");

    let refused = run_agent(&project, &[]);
    assert_eq!((refused.code, &*ran()), (2, ""), "{}", refused.text());
    assert!(refused.stderr.contains("aldis.toml` line 2: `run.verify`"), "{}", refused.text());
    assert!(
        refused.stderr.contains("help: review the file, then run: aldis trust"),
        "{}",
        refused.text()
    );
    let checked = project.run(&["config", "check"]);
    let told = "  not trusted yet: run.verify; review the file, then: aldis trust\n";
    assert!(checked.code == 0 && checked.stdout.ends_with(told), "{}", checked.text());
    assert_eq!(run_agent(&project, &["--verify", "true"]).code, 0, "one's own word needs no trust");
    assert_eq!(ran(), "");

    let trusted = project.run(&["trust"]);
    assert_eq!(trusted.code, 0, "{}", trusted.text());
    assert!(!project.run(&["config", "check"]).stdout.contains("not trusted"));
    assert!(trusted.stdout.contains("run.verify = \"echo ran >> ran\""), "{}", trusted.text());
    assert_eq!(run_agent(&project, &[]).code, 0);
    assert_eq!(ran(), "ran\n");

    // What was trusted is the content, not the name.
    let hostile =
        fs::read_to_string(testdata("hostile").join("config_02_changed_after_trust.toml"));
    let command = hostile.unwrap().lines().last().unwrap().replace("run =", "verify =");
    fs::write(&file, format!("[run]\n{command}\n")).unwrap();
    assert_eq!(run_agent(&project, &[]).code, 2);
    let listed = project.run(&["trust", "--list", "--json"]).json();
    assert_eq!((listed.len(), &listed[0]["status"]), (1, &"changed".into()));

    fs::write(&file, "[run]\nverify = \"echo ran >> ran\"\n").unwrap();
    assert_eq!(run_agent(&project, &[]).code, 0, "as it was when it was trusted");
    assert_eq!(project.run(&["trust", "--list", "--json"]).json()[0]["status"], "current");
    assert_eq!(project.run(&["trust", "--revoke"]).code, 0);
    assert_eq!(project.run(&["trust", "--revoke"]).code, 1);
    assert_eq!(run_agent(&project, &[]).code, 2);
    assert!(!project.path().join(".aldis").exists(), "nothing of it is kept in the repository");
}

#[test]
fn what_only_the_user_may_decide_is_complete() {
    for line in [
        "run.verify = \"id\"",
        "notify.command = \"id\"",
        "notify.webhook_secret_file = \"s\"\nnotify.webhook = \"https://example.org\"",
        "notify.webhook_secret_file = \"secret\"",
        "notify.webhook_private = true",
    ] {
        let project = project("aldis.toml", &format!("{line}\n"));
        let refused = run_agent(&project, &[]);
        assert_eq!(refused.code, 2, "{line}: {}", refused.text());
        assert!(refused.stderr.contains("aldis trust"), "{line}: {}", refused.text());
    }
    // The user's own file needs no trust, and limits need none either.
    let project = project("aldis.toml", "run.max_iterations = 3\nnotify.desktop = false\n");
    fs::create_dir_all(project.home().join(".config/aldis")).unwrap();
    fs::write(project.home().join(".config/aldis/aldis.toml"), "run.verify = \"true\"\n").unwrap();
    let done = run_agent(&project, &[]);
    assert_eq!(done.code, 0, "{}", done.text());
    assert!(done.stdout.contains("claims done → true passed"), "{}", done.text());
}

#[test]
fn a_run_goes_by_its_settings() {
    let project = project("aldis.yaml", "run:\n  max_iterations: 2\n  dialect: promise\n");
    let agent = ["--", "/bin/sh", "-c", "touch f.$$; echo working"];
    let done = project.run(&[&["run", "--task", "x"], &agent[..]].concat());
    assert_eq!(done.code, 5, "{}", done.text());
    assert!(done.stdout.contains("2/2  working"), "{}", done.text());
    let more = project.run(&["run", "--continue", "--max-iterations", "3"]);
    assert_eq!(more.code, 5, "{}", more.text());
    assert!(more.stdout.contains("3/3  working"), "{}", more.text());
}

#[test]
fn dialects_are_taken_from_either_format_and_from_the_user() {
    let project = project(
        "aldis.yaml",
        "dialects:\n  ship:\n    about: ships\n    syntax: {family: tag, open: '<ship>', close: '</ship>'}\n    signals:\n      - {name: SAILED, meaning: done}\n",
    );
    fs::create_dir_all(project.home().join(".config/aldis")).unwrap();
    let mine = "[dialects.mine]\nabout = \"m\"\n[dialects.mine.syntax]\nfamily = \"tag\"\nopen = \"<m>\"\nclose = \"</m>\"\n[[dialects.mine.signals]]\nname = \"OK\"\nmeaning = \"done\"\n";
    fs::write(project.home().join(".config/aldis/aldis.toml"), mine).unwrap();
    let text = b"Done.\n\n<ship>SAILED</ship>\n\n<m>OK</m>\n";
    let done = project.run_with(&["scan"], text);
    assert_eq!(done.code, 0, "{}", done.text());
    assert!(done.stdout.contains("SAILED") && done.stdout.contains("mine OK"), "{}", done.text());
}

#[test]
fn programs_read_what_is_described() {
    let project = project("aldis.toml", "run.verify = \"true\"\n");
    project.run(&["trust"]);
    for (format, args) in
        [("config", &["config", "show", "--json"][..]), ("trust", &["trust", "--list", "--json"])]
    {
        let schema: Value = serde_json::from_str(&project.run(&["schema", format]).stdout).unwrap();
        let validator = jsonschema::validator_for(&schema).unwrap();
        let lines = project.run(args).json();
        assert!(!lines.is_empty(), "{format}");
        for line in lines {
            assert!(validator.is_valid(&line), "{format}: {line}");
        }
    }
}
