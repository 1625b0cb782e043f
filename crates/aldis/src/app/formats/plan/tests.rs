//! Plans: four ways to write one down, and what is wrong with them.

use aldis_machine::delivery::Priority;

use super::*;

const TOML: &str = r#"title = "Billing export"

[[tasks]]
id = "csv"
title = "CSV writer"
description = "Write the file."
acceptance = ["quotes are escaped", "there is a header"]
priority = "high"
files = ["src/csv.rs"]

[[tasks]]
id = "button"
title = "Download button"
acceptance = ["it downloads"]
needs = ["csv"]
"#;

const YAML: &str = r#"title: Billing export
tasks:
  - id: csv
    title: CSV writer
    description: Write the file.
    acceptance:
      - quotes are escaped
      - there is a header
    priority: high
    files: [src/csv.rs]
  - id: button
    title: Download button
    acceptance: ["it downloads"]
    needs: [csv]
"#;

const JSON: &str = r#"{
  "title": "Billing export",
  "tasks": [
    {"id": "csv", "title": "CSV writer", "description": "Write the file.",
     "acceptance": ["quotes are escaped", "there is a header"], "priority": "high",
     "files": ["src/csv.rs"]},
    {"id": "button", "title": "Download button", "acceptance": ["it downloads"], "needs": ["csv"]}
  ]
}
"#;

const MARKDOWN: &str = "# Billing export

Some words about it.

- [ ] csv: CSV writer
  Write the file.
  - Priority: high
  - Files: `src/csv.rs`
  - [ ] quotes are escaped
  - [ ] there is a header
- [ ] **button**: Download button
  - Needs: csv
  - [ ] it downloads
";

#[test]
fn a_plan_is_the_same_in_every_format() {
    let plans: Vec<Plan> = [
        (PlanFormat::Toml, TOML),
        (PlanFormat::Yaml, YAML),
        (PlanFormat::Json, JSON),
        (PlanFormat::Markdown, MARKDOWN),
    ]
    .map(|(format, text)| {
        let PlanReading { plan, problems, .. } = read_plan(format, text);
        assert_eq!(problems, [], "{format:?}");
        plan.unwrap()
    })
    .to_vec();
    let csv = &plans[0].tasks[0];
    assert_eq!((&*csv.id, csv.priority, csv.acceptance.len()), ("csv", Priority::High, 2));
    assert_eq!(plans[0].tasks[1].needs, ["csv"]);
    for plan in &plans[1..] {
        assert_eq!(*plan, plans[0]);
    }
    assert_eq!(plans[0].check(&[]), []);
}

fn problems(format: PlanFormat, text: &str) -> Vec<String> {
    let PlanReading { plan, problems, .. } = read_plan(format, text);
    assert_eq!(plan.is_none(), problems.iter().any(|problem| problem.fatal));
    assert!(problems.iter().all(|problem| !problem.help.is_empty()));
    problems.iter().map(ToString::to_string).collect()
}

#[test]
fn what_is_wrong_is_said_with_its_line() {
    let task =
        |id: &str, rest: &str| format!("[[tasks]]\nid = \"{id}\"\nacceptance = [\"x\"]\n{rest}\n");
    let two = |first: (&str, &str), second: (&str, &str)| {
        task(first.0, first.1) + &task(second.0, second.1)
    };
    for (text, expected) in [
        ("tasks = []".to_owned(), "the plan has no tasks"),
        (two(("a", ""), ("a", "")), "line 6: there is a task `a` in line 2 already"),
        (two(("a", ""), ("A", "")), "line 6: there is a task `A` in line 2 already"),
        (task("a b", ""), "line 2: `a b` cannot name a task"),
        (task("a.", ""), "line 2: `a.` cannot name a task"),
        (task("../a", ""), "line 2: `../a` cannot name a task"),
        (task("a", "needs = [\"b\"]"), "line 2: `a` needs `b`, which is no task of the plan"),
        (task("a", "needs = [\"a\"]"), "line 2: the tasks need one another: a -> a"),
        (
            two(("a", "needs = [\"b\"]"), ("b", "needs = [\"a\"]")),
            "line 2: the tasks need one another: a -> b -> a",
        ),
        (task("a", "files = [\"../x\"]"), "line 2: `../x` of `a` is outside the project"),
        (task("a", "files = [\"/etc/x\"]"), "line 2: `/etc/x` of `a` is outside the project"),
        ("[[tasks]]\nid = \"a\"".to_owned(), "line 2: `a` has no acceptance criteria"),
        ("[[tasks]]\nid = 1".to_owned(), "line 2: invalid type: integer `1`, expected a string"),
        (
            "[[tasks]]\nname = \"a\"".to_owned(),
            "line 2: unknown field `name`, expected one of `id`, `title`, `description`, `acceptance`, `needs`, `priority`, `files`, `done`",
        ),
    ] {
        assert_eq!(problems(PlanFormat::Toml, &text), [expected], "{text}");
    }
    let did_you_mean = read_plan(PlanFormat::Toml, &two(("Csv", ""), ("b", "needs = [\"csv\"]")));
    assert_eq!(did_you_mean.problems[0].help, "did you mean `Csv`?");
}

#[test]
fn the_other_formats_name_lines_too() {
    let yaml = "tasks:\n  - id: a\n    acceptance: [x]\n    needs: [b]\n";
    assert_eq!(
        problems(PlanFormat::Yaml, yaml),
        ["line 2: `a` needs `b`, which is no task of the plan"]
    );
    let json = "{\"tasks\": [\n {\"id\": \"a\", \"acceptance\": [\"x\"], \"needs\": [\"b\"]}\n]}";
    assert_eq!(
        problems(PlanFormat::Json, json),
        ["line 2: `a` needs `b`, which is no task of the plan"]
    );
    let json = "{\"tasks\": [\n {\"id\": \"a\", \"priority\": \"urgent\"}\n]}";
    let expected = "line 2: `urgent` is no priority; use high, medium or low";
    assert_eq!(problems(PlanFormat::Json, json), [expected]);
    let yaml = problems(PlanFormat::Yaml, "tasks:\n  - id: a\n    wrong: 1\n");
    assert!(yaml[0].starts_with("line 3: ") && yaml[0].contains("wrong"), "{yaml:?}");
    let yaml = problems(PlanFormat::Yaml, "tasks:\n  - id: a\n    id: b\n");
    assert_eq!(yaml, ["line 3: duplicate mapping key: id"]);
    let markdown = "- [ ] a: A\n  - [ ] x\n  - Priority: urgent\n  - Needs: b\n";
    let expected = [
        "line 1: `a` needs `b`, which is no task of the plan",
        "line 3: `urgent` is no priority; use high, medium or low",
    ];
    assert_eq!(problems(PlanFormat::Markdown, markdown), expected);
    let orphan = problems(PlanFormat::Markdown, "  - [ ] x\n");
    assert_eq!(orphan[0], "line 1: a criterion without a task above it");
}

#[test]
fn markdown_is_forgiving() {
    let text = "# T\n\n* [x] done: already\n- [ ] No id here\n  ```\n  - [ ] not a criterion\n  ```\n  - [X] met\n";
    let plan = read_plan(PlanFormat::Markdown, text).plan.unwrap();
    assert_eq!((&*plan.tasks[0].id, plan.tasks[0].done), ("done", true));
    let second = &plan.tasks[1];
    assert_eq!((&*second.id, &*second.title), ("task-2", "No id here"));
    assert_eq!(second.acceptance, ["met"]);
    assert!(second.description.contains("not a criterion"));
}

#[test]
fn numbered_boxes_are_tasks_and_what_is_dropped_is_said() {
    let text = "# T\n\nFor people.\n\n1. [ ] csv: Write it\nwith a header\n   - [ ] quoted\n2) [x] Done\n\n\
        10. [ ] last\n\nLost text\nof two lines\n\n- no box\n- [] empty\n-[ ] close\n  - [-] inner\n\
        - [link](x) and [ ]\n```\n- [ ] code\n```\n## Notes\n1. plain\n2024 was long\n";
    let PlanReading { plan, problems, boxes } = read_plan(PlanFormat::Markdown, text);
    let plan = plan.unwrap();
    let tasks: Vec<_> = plan.tasks.iter().map(|it| (&*it.id, &*it.title, it.done)).collect();
    assert_eq!(
        tasks,
        [("csv", "Write it", false), ("task-2", "Done", true), ("task-3", "last", false)]
    );
    assert_eq!(plan.tasks[0].description, "with a header");
    assert_eq!(plan.tasks[0].acceptance, ["quoted"]);
    assert!(plan.tasks[2].description.contains("- [ ] code"), "{:?}", plan.tasks[2]);
    let warned: Vec<String> = problems.iter().map(ToString::to_string).collect();
    let no_box = "this is no task: it has no check box";
    let odd_box = "this is no task: its check box is not `[ ]` or `[x]`";
    let mut expected = vec![
        "line 10: `task-3` has no acceptance criteria".to_owned(),
        "line 12: this text belongs to no task, so agents are not told".to_owned(),
        format!("line 15: {no_box}"),
    ];
    expected.extend([16, 17, 18].map(|line| format!("line {line}: {odd_box}")));
    expected.extend([19, 24].map(|line| format!("line {line}: {no_box}")));
    expected.push("line 25: this text belongs to no task, so agents are not told".to_owned());
    assert_eq!(warned, expected);
    assert!(problems.iter().all(|problem| !problem.fatal));
    let boxes: Vec<_> = boxes.into_iter().map(|(id, it)| (id, it.line, it.text)).collect();
    let open = |id: &str, line, text: &str| (id.to_owned(), line, text.to_owned());
    let expected = [open("csv", 5, "1. [ ] csv: Write it"), open("task-3", 10, "10. [ ] last")];
    assert_eq!(boxes, expected);
}

#[test]
fn formats_are_known_by_their_names() {
    for (name, format) in [
        ("plan.toml", Some(PlanFormat::Toml)),
        ("a/plan.YML", Some(PlanFormat::Yaml)),
        ("plan.json", Some(PlanFormat::Json)),
        ("TODO.md", Some(PlanFormat::Markdown)),
        ("plan", None),
        ("plan.txt", None),
    ] {
        assert_eq!(PlanFormat::of_name(name), format, "{name}");
    }
}

#[test]
fn priorities_are_words_or_numbers() {
    for (written, wanted) in [
        ("\"high\"", Priority::High),
        ("\"HIGH\"", Priority::High),
        ("1", Priority::High),
        ("\"Medium\"", Priority::Medium),
        ("2", Priority::Medium),
        ("\"low\"", Priority::Low),
        ("3", Priority::Low),
        ("7", Priority::Low),
    ] {
        let toml = format!("[[tasks]]\nid = \"a\"\npriority = {written}\n");
        let yaml = format!("tasks:\n  - id: a\n    priority: {written}\n");
        let json = format!("{{\"tasks\":[{{\"id\":\"a\",\"priority\":{written}}}]}}");
        let markdown = format!("- [ ] a: A\n  - Priority: {}\n", written.trim_matches('"'));
        for (format, text) in [
            (PlanFormat::Toml, toml),
            (PlanFormat::Yaml, yaml),
            (PlanFormat::Json, json),
            (PlanFormat::Markdown, markdown),
        ] {
            let read = read_plan(format, &text);
            let plan = read.plan.unwrap_or_else(|| panic!("{text}: {:?}", read.problems));
            assert_eq!(plan.tasks[0].priority, wanted, "{text}");
        }
    }
}
