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
    worker          a line of `aldis worker list --json`
    call            the answer to a report: the tools of `aldis mcp`, `aldis signal --json`
    token           a line of `aldis token new --json` and `aldis token list --json`
    postmortem      a line of `aldis postmortem --json`
    report          what `aldis report --json` prints
    receipt         a receipt: `aldis proof show --json`
    receipt-list    a line of `aldis proof list --json`
    receipt-verify  a line of `aldis proof verify --json`
    judge           what `[proof] judge` reads
    judge-answer    what `[proof] judge` prints
    store-prune     the line of `aldis store prune --json`
    config-file     `aldis.toml` and `aldis.yaml`, for editors
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

/// Editors complete and check `aldis.toml` by its schema, so that must say what the program does.
#[test]
fn the_settings_file_is_as_described() {
    let sandbox = Sandbox::new();
    let validator = validator(&sandbox, "config-file");
    let annotated = include_str!("../../src/settings/config/annotated.toml");
    // Everything that is shown as a comment, too.
    let shown: String = annotated
        .lines()
        .map(|line| {
            let bare = line.strip_prefix("# ").unwrap_or(line);
            let is_toml = bare.trim_start().starts_with(['[', ']', '{', '}'])
                || bare.split_once(" = ").is_some_and(|(key, _)| !key.trim().contains(' '));
            if is_toml && !bare.contains("dialects.deploy") {
                format!("{bare}\n")
            } else {
                "\n".to_owned()
            }
        })
        .collect();
    let file = sandbox.write("aldis.toml", &shown);
    assert_eq!(sandbox.run(&["config", "check", file.to_str().unwrap()]).code, 0, "{shown}");
    let value: Value = toml::from_str(&shown).unwrap();
    check(&validator, &value);
    check(&validator, &serde_json::json!({}));

    let mut keys = 0;
    for (table, members) in value.as_object().unwrap() {
        for name in members.as_object().unwrap().keys() {
            keys += 1;
            let mut wrong = value.clone();
            let members = wrong[table].as_object_mut().unwrap();
            let kept = members.remove(name).unwrap();
            members.insert(format!("{name}_"), kept);
            let is_own_name = ["dialects", "experts", "pipelines"].contains(&&**table);
            assert_eq!(validator.is_valid(&wrong), is_own_name, "{table}.{name}_");
        }
    }
    assert!(keys > 60, "{keys}");
    let schema: Value =
        serde_json::from_str(&sandbox.run(&["schema", "config-file"]).stdout).unwrap();
    let timeout = schema["$defs"]["Run"]["properties"]["timeout"].clone();
    assert_eq!(
        (&timeout["default"], &timeout["description"]),
        (&"30m".into(), &"per iteration".into())
    );

    for (path, right, wrong) in [
        ("/run/max_iterations", serde_json::json!(3), serde_json::json!(0)),
        ("/run/timeout", "2h".into(), "soon".into()),
        ("/run/max_cost", serde_json::json!(2.5), "much".into()),
        ("/run/prompt_by", "file".into(), "post".into()),
        ("/phases/after_transition", "stop".into(), "go".into()),
        ("/signals/token", "require".into(), "yes".into()),
        ("/store/keep_ended", "never".into(), "always".into()),
        ("/notify/events/question", serde_json::json!(["desktop"]), serde_json::json!(["pager"])),
    ] {
        for (value_there, fits) in [(right, true), (wrong, false)] {
            let mut changed = value.clone();
            *changed.pointer_mut(path).unwrap() = value_there.clone();
            assert_eq!(validator.is_valid(&changed), fits, "{path}: {value_there}");
            let text = toml::to_string(&changed).unwrap();
            let file = sandbox.write("changed.toml", text);
            let checked = sandbox.run(&["config", "check", file.to_str().unwrap()]);
            assert_eq!(checked.code == 0, fits, "{path}: {}", checked.text());
        }
    }
}
