//! What newcomers stumbled over and no other test is about.

use std::os::unix::fs::PermissionsExt as _;
use std::{fs, thread};

use crate::phases::project::{Project, feed};
use crate::sandbox::ALDIS;
use crate::tidy::docs::blocks;
use crate::watch::Watched;

fn project(agent: &str) -> Project {
    let project = Project::new();
    let path = project.path().join("agent.sh");
    fs::write(&path, format!("#!/bin/sh\n{agent}\n")).unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
    project
}

/// A prompt shows the form literally and which iteration it is.
#[test]
fn a_prompt_shows_what_to_write_and_where_the_run_is() {
    let project = project(
        "n=$(($(cat n 2>/dev/null || echo 0) + 1)); echo $n > n; cat > prompt.$n; echo half; touch f.$n",
    );
    let task = ["run", "--task", "Add CSV export", "--max-iterations", "2", "--", "./agent.sh"];
    assert_eq!(project.run(&task).code, 5);
    let prompt = |n: u32| fs::read_to_string(project.path().join(format!("prompt.{n}"))).unwrap();
    for n in [1, 2] {
        let text = prompt(n);
        assert!(text.contains("\n    <chorus>COMPLETE</chorus>\n"), "{text}");
        assert_eq!(text.contains("This is iteration 2 of 2"), n == 2, "{text}");
        assert!(!text.contains("blank"), "a blank may be a line: {text}");
    }
}

/// A question in a wrong form reaches the human, without one agent after the other.
#[test]
fn a_question_in_a_wrong_form_reaches_the_human() {
    let project = project(
        r#"prompt=$(cat); echo "$prompt" >> prompts
case $ALDIS_ROLE in
developer) printf 'SEEKING_DIVINE_CLARIFICATION: csv\nQuestion: keep or drop?\n';;
esac"#,
    );
    let plan = "# One\n\n- [ ] csv: Write the CSV\n  - [ ] quotes are escaped\n";
    fs::write(project.path().join("plan.md"), plan).unwrap();
    let done = project.run(&["deliver", "plan.md", "--no-wait", "--", "./agent.sh"]);
    assert_eq!(done.code, 3, "{}", done.text());
    assert!(done.stdout.contains("keep or drop?"), "{}", done.text());
    let prompts = fs::read_to_string(project.path().join("prompts")).unwrap();
    assert!(prompts.matches("## You are the developer").count() <= 2, "{prompts}");
    assert_eq!(
        prompts.matches("## You are").count(),
        prompts.matches("SEEKING_DIVINE_CLARIFICATION").count(),
        "every agent may ask: {prompts}"
    );
}

/// Times are those of the person who looks.
#[test]
fn times_are_local_wherever_people_look() {
    let project = project("cat > /dev/null; echo '<chorus>COMPLETE</chorus>'");
    // The zone has no summer time, and no whole hour.
    let zone = ("TZ", "Asia/Kathmandu");
    let run = |args: &[&str]| {
        let mut command = project.command(ALDIS);
        command.env(zone.0, zone.1).env_remove("ALDIS_NOW").args(args);
        feed(command, b"")
    };
    assert_eq!(run(&["run", "--task", "Add CSV export", "--", "./agent.sh"]).code, 0);
    let line = &run(&["log", "--json"]).json()[0];
    let at = line["at"].as_str().unwrap();
    let minutes: u32 = at[14..16].parse().unwrap();
    let hours: u32 = at[11..13].parse().unwrap();
    let local = hours * 60 + minutes + 5 * 60 + 45;
    let local = format!("{:02}:{:02}:{}", local / 60 % 24, local % 60, &at[17..19]);
    for args in [&["log"][..], &["why", "--all"], &["report"]] {
        let shown = run(args).stdout;
        assert!(shown.contains(&local), "{args:?}: no {local} in {shown}");
        assert!(!shown.contains(&at[11..19]), "{args:?}: {shown}");
    }
    let mut command = project.command(ALDIS);
    command.env(zone.0, zone.1).env_remove("ALDIS_NOW").arg("watch");
    let screen = Watched::start(command, (40, 120));
    for _ in 0..200 {
        if screen.text().contains(&local) {
            return;
        }
        thread::sleep(std::time::Duration::from_millis(50));
    }
    panic!("no {local}: {}", screen.text());
}

/// A question that nobody waits for is still one that somebody wants to know of.
#[test]
fn a_question_is_notified_also_where_nobody_waits() {
    let project = project("cat > /dev/null; echo '<chorus>NEEDS_HUMAN: keep or drop?</chorus>'");
    let noted = project.root().join("noted");
    let note =
        format!("printf '%s %s\\n' \"$ALDIS_NOTICE\" \"$ALDIS_TEXT\" >> '{}'", noted.display());
    let task = ["run", "--task", "x", "--no-wait", "--notify", &note, "--", "./agent.sh"];
    let done = project.run(&task);
    assert_eq!(done.code, 3, "{}", done.text());
    assert!(done.stdout.contains("✘ Needs you after 1 iteration"), "{}", done.text());
    let noted = fs::read_to_string(noted).unwrap();
    assert!(noted.contains("question ") && noted.contains("keep or drop?"), "{noted}");
    assert!(noted.contains("run_ended "), "{noted}");
}

/// Whoever follows the README has the program before the first command of ours, and no test suite to run.
#[test]
fn the_readme_installs_the_program_before_it_is_used() {
    let readme = include_str!("../../../../README.md");
    let (_, start) = readme.split_once("\n## Quick start\n").unwrap();
    let (start, _) = start.split_once("\n## ").unwrap();
    let commands: Vec<String> = blocks(start).into_iter().map(|block| block.text).collect();
    assert!(commands[0].starts_with("cargo install "), "{commands:?}");
    assert!(commands.iter().all(|it| !it.contains("scripts/test")), "{commands:?}");
    assert!(commands[1..].concat().lines().all(|it| it.starts_with("aldis ")), "{commands:?}");
    // What is installed so is what the program is called.
    let manifest = include_str!("../../Cargo.toml");
    assert!(manifest.contains("\nname = \"aldis\""), "{manifest}");
}

/// What help calls the default is the default.
#[test]
fn help_says_the_defaults() {
    let project = Project::new();
    let help = project.run(&["run", "--help"]).stdout;
    let settings = project.run(&["config", "show", "--json"]).json();
    for (option, key) in [
        ("--max-iterations", "run.max_iterations"),
        ("--timeout", "run.timeout"),
        ("--total-timeout", "run.total_timeout"),
        ("--max-crashes", "run.max_crashes"),
        ("--grace", "stagnation.grace_period"),
    ] {
        let (_, about) = help.split_once(&format!(" {option} <")).unwrap();
        let (about, _) = about.split_once("\n\n").unwrap();
        let (_, said) =
            about.split_once("(default: ").unwrap_or_else(|| panic!("{option}: {about}"));
        let (said, _) = said.split_once(')').unwrap();
        let value = &settings.iter().find(|line| line["key"] == key).unwrap()["value"];
        let value = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
        assert_eq!(plain(said), plain(&value), "{option}: help says {said}, and it is {value}");
    }
}

/// A number, or a span of time in seconds.
fn plain(text: &str) -> u64 {
    let units = [("s", 1), ("m", 60), ("h", 3_600), ("d", 86_400)];
    let span = units.iter().find_map(|(unit, times)| Some((text.strip_suffix(unit)?, times)));
    let (number, times) = span.unwrap_or((text, &1));
    number.parse::<u64>().unwrap() * times
}
