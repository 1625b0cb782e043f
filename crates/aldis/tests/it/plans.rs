//! Plans: begun, checked, and driven through the filter.

use serde_json::{Value, json};

use crate::sandbox::Sandbox;

#[test]
fn new_plans_are_good_in_every_format() {
    let sandbox = Sandbox::new();
    let mut plans = Vec::new();
    for file in ["plan.toml", "plan.yaml", "plan.json", "plan.md"] {
        let done = sandbox.run(&["plan", "new", file]);
        assert_eq!(done.code, 0, "{}", done.text());
        let checked = sandbox.run(&["plan", "check", file]);
        let expected = format!("{file}: ok, 2 tasks, 1 can start at once\n");
        assert_eq!((checked.code, &*checked.stdout, &*checked.stderr), (0, &*expected, ""));
        let mut plan = sandbox.run(&["plan", "check", file, "--json"]).json().remove(0);
        plan["file"] = Value::Null;
        plans.push(plan);
        let again = sandbox.run(&["plan", "new", file]);
        assert_eq!(again.code, 2, "a plan that is there is not touched");
    }
    for plan in &plans {
        assert_eq!(*plan, plans[0]);
    }
    assert_eq!(plans[0]["tasks"], json!(["summary", "terms"]));
    assert_eq!(plans[0]["ready"], json!(["summary"]));
    let printed = sandbox.run(&["plan", "new", "--format", "markdown"]).stdout;
    assert!(printed.starts_with("# First plan"), "{printed}");
}

#[test]
fn what_is_wrong_is_shown_with_line_and_remedy() {
    let sandbox = Sandbox::new();
    sandbox.write(
        "plan.toml",
        "[[tasks]]\nid = \"a\"\nneeds = [\"b\"]\n\n[[tasks]]\nid = \"b\"\nneeds = [\"a\"]\n\
         acceptance = [\"x\"]\n",
    );
    insta::assert_snapshot!(sandbox.run(&["plan", "check", "plan.toml"]).text(), @r"
    exit 1
    -- stdout
    -- stderr
    warning: plan.toml line 2: `a` has no acceptance criteria
       help: list what must hold when it is done; without a list the auditor has only the description, unless a business analyst is configured
    error: plan.toml line 2: the tasks need one another: a -> b -> a
     help: remove one of these needs
    ");
    let line = &sandbox.run(&["plan", "check", "plan.toml", "--json"]).json()[0];
    assert_eq!((&line["ok"], &line["tasks"]), (&json!(false), &Value::Null));
    assert_eq!(line["problems"][1]["line"], 2);
    for (file, text, part) in [
        ("missing.toml", None, "no such file"),
        ("plan.txt", Some("x"), "name it .toml, .yaml, .json or .md"),
        ("bad.json", Some("{"), "line 1"),
        ("evil.md", Some("- [ ] a\u{1b}[31m: x\n"), "cannot name a task"),
    ] {
        if let Some(text) = text {
            sandbox.write(file, text);
        }
        let done = sandbox.run(&["plan", "check", file]);
        assert_ne!(done.code, 0, "{file}");
        assert!(done.stderr.contains(part), "{file}: {}", done.text());
        assert!(!done.stderr.contains('\u{1b}'), "{file}");
    }
}

#[test]
fn a_delivery_is_a_filter() {
    let sandbox = Sandbox::new();
    let schema: Value =
        serde_json::from_str(&sandbox.run(&["schema", "step-delivery"]).stdout).unwrap();
    let validator = jsonschema::validator_for(&schema).unwrap();
    let at = |minute: u32| format!("2026-03-02T10:{minute:02}:00Z");
    let says = |minute, agent: u64, text: &str| json!({"at": at(minute), "event": "finished", "agent": agent, "text": text});
    let plan = json!({"tasks": [{"id": "a", "acceptance": ["x"]}]});
    let lines = [
        json!({"at": at(0), "event": "start", "plan": plan}),
        json!({"at": at(0), "event": "begin"}),
        says(1, 1, "AUDIT_PASSED: a"),
        says(2, 2, "SEEKING_DIVINE_CLARIFICATION\n\nQuestion: keep or drop?"),
        json!({"at": at(3), "event": "answer", "id": "q1", "text": "READY_FOR_REVIEW: a"}),
        says(4, 3, "READY_FOR_REVIEW: a"),
        says(5, 4, "REVIEW_PASSED: a"),
        says(6, 4, "REVIEW_PASSED: a"),
        says(7, 5, "AUDIT_PASSED: a"),
    ];
    let input: String = lines.iter().map(|line| format!("{line}\n")).collect();
    let done = sandbox.run_with(&["step", "delivery"], input.as_bytes());
    let steps = done.json();
    assert_eq!(steps.len(), lines.len(), "{}", done.text());
    for step in &steps {
        assert!(validator.is_valid(step), "{step}");
    }
    let status = |step: &Value| step["tasks"][0]["status"].as_str().unwrap_or("-").to_owned();
    let statuses: Vec<String> = steps.iter().map(status).collect();
    assert_eq!(
        statuses,
        [
            "pending",
            "implementing",
            "implementing",
            "awaiting-guidance",
            "implementing",
            "awaiting-review",
            "awaiting-audit",
            "-",
            "complete"
        ]
    );
    assert_eq!(steps[2]["decisions"][0]["evidence"][0]["reason"], "role_not_allowed");
    assert_eq!(steps[3]["state"]["questions"], json!(["q1"]));
    assert_eq!(steps[7]["decisions"][0]["rule"], "delivery/late-signal");
    assert_eq!(steps[8]["state"]["ending"], "complete");

    for (line, part) in [
        (json!({"at": at(0), "event": "start", "plan": {"tasks": []}}), "has no tasks"),
        (
            json!({"at": at(0), "event": "start", "plan": plan, "config": {"slots": 0}}),
            "`slots` must be at least 1",
        ),
        (
            json!({"at": at(0), "event": "start", "plan": {"tasks": [{"id": "a", "needs": ["a"]}]}}),
            "a -> a",
        ),
    ] {
        let done = sandbox.run_with(&["step", "delivery"], line.to_string().as_bytes());
        assert_eq!(done.code, 2, "{line}");
        assert!(done.stderr.contains(part), "{line}: {}", done.text());
    }
}
