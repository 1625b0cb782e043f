//! The schemas describe what is really printed.

use jsonschema::Validator;
use serde_json::Value;

use crate::sandbox::{QA_COMPLETE, READY, Sandbox};

fn validator(sandbox: &Sandbox, format: &str) -> Validator {
    let schema: Value = serde_json::from_str(&sandbox.run(&["schema", format]).stdout).unwrap();
    jsonschema::validator_for(&schema).unwrap()
}

fn check(validator: &Validator, value: &Value) {
    let errors: Vec<String> = validator.iter_errors(value).map(|error| error.to_string()).collect();
    assert!(errors.is_empty(), "{errors:?}\n{value}");
}

#[test]
fn formats_are_listed() {
    insta::assert_snapshot!(Sandbox::new().run(&["schema"]).stdout, @r"
    scan            a line of `aldis scan --json`
    dialect         a dialect file
    dialects-list   a line of `aldis dialects list --json`
    run             a run: `aldis auto ... --json`, `aldis status --json`
    live            a line of `aldis run --json` and `aldis deliver --json`
    task            a line of `aldis tasks --json`
    decision        a decision: `aldis why --json`, `aldis log --json`
    event           an event: `aldis log --events --json`
    failure         a failure of a hook: `aldis log --json`
    step            a line that `aldis step phases` prints
    config          a line of `aldis config show --json`
    trust           a line of `aldis trust --list --json`
    notice          what a webhook is sent
    step-delivery   a line that `aldis step delivery` prints
    step-run        a line that `aldis step run` prints
    plan-check      a line of `aldis plan check --json`
    step-turns      a line that `aldis step turns` prints
    doctor          a line of `aldis doctor --json`
    install         the line of `aldis install --json` and `aldis uninstall --json`
    postmortem      a line of `aldis postmortem --json`
    report          what `aldis report --json` prints
    store-prune     the line of `aldis store prune --json`
    ");
}

#[test]
fn scan_output_is_as_described() {
    let sandbox = Sandbox::new();
    let validator = validator(&sandbox, "scan");
    let text = format!(
        "{READY}\n{QA_COMPLETE}\n> <chorus>COMPLETE</chorus>\n\n<chorus>PROGRESS: 45</chorus>\n\n\
         <chorus>BLOCKED: no network</chorus>\n\n```pilot-signal\n\
         {{\"v\":2,\"type\":\"status\",\"phase\":\"IMPL\",\"progress\":50}}\n```\n"
    );
    let lines = sandbox.run_with(&["scan", "--json", "--near-misses"], text.as_bytes()).json();
    assert!(lines.len() >= 5, "{lines:?}");
    for line in &lines {
        check(&validator, line);
    }
    let mut wrong = lines[0].clone();
    wrong["v"] = 2.into();
    assert!(!validator.is_valid(&wrong), "another version is another format");
}

#[test]
fn dialect_list_is_as_described() {
    let sandbox = Sandbox::new();
    let validator = validator(&sandbox, "dialects-list");
    for line in sandbox.run(&["dialects", "list", "--json"]).json() {
        check(&validator, &line);
    }
}

#[test]
fn dialect_files_are_as_described() {
    let sandbox = Sandbox::new();
    let validator = validator(&sandbox, "dialect");
    for line in sandbox.run(&["dialects", "list", "--json"]).json() {
        let shown = sandbox.run(&["dialects", "show", line["name"].as_str().unwrap()]);
        let file: Value = toml::from_str(&shown.stdout).unwrap();
        check(&validator, &file);
        let mut wrong = file;
        wrong["no-such-key"] = true.into();
        assert!(!validator.is_valid(&wrong));
    }
}
