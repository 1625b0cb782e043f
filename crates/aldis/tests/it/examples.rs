//! The examples do what they say.

use std::env;
use std::fmt::Write as _;
use std::fs;
use std::path::PathBuf;

use assert_cmd::Command;

use crate::phases::project::Project;
use crate::sandbox::ALDIS;

/// `examples/output.txt` shows commands and what they print. Set `ALDIS_BLESS=1` to write it anew.
#[test]
fn shown_output_is_real() {
    let root = PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."));
    let shown = root.join("examples/output.txt");
    let commands: [&[&str]; 3] = [
        &["scan", "examples/transcripts/session.jsonl"],
        &["explain", "--dialect", "caw", "examples/transcripts/session.jsonl"],
        &["dialects", "check", "examples/dialects/deploy.toml"],
    ];
    let mut real = String::new();
    for args in commands {
        let output =
            Command::new(ALDIS).env_clear().current_dir(&root).args(args).output().unwrap();
        let stdout = String::from_utf8(output.stdout).unwrap();
        writeln!(real, "$ aldis {}\n{}", args.join(" "), timeless(&stdout)).unwrap();
    }
    if env::var_os("ALDIS_BLESS").is_some() {
        fs::write(&shown, &real).unwrap();
    }
    assert_eq!(fs::read_to_string(shown).unwrap(), real);
}

/// What the README shows is part of it.
#[test]
fn the_readme_shows_real_output() {
    let root = PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."));
    let real = fs::read_to_string(root.join("examples/output.txt")).unwrap();
    let readme = fs::read_to_string(root.join("README.md")).unwrap();
    let mut shown = 0;
    for block in readme.split("```text\n").skip(1).filter_map(|rest| rest.split("```").next()) {
        assert!(real.contains(block.trim_end()), "not in examples/output.txt:\n{block}");
        shown += 1;
    }
    assert!(shown > 0);
}

/// The annotated files name every setting there is, each with its default.
#[test]
fn the_example_settings_are_complete_and_say_the_defaults() {
    let root = PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."));
    let settings = |project: &Project| {
        let lines = project.run(&["config", "show", "--json"]).json();
        lines.into_iter().map(|line| {
            (line["key"].clone(), line["value"].clone(), line["origin"]["source"].clone())
        })
    };
    let usual: Vec<_> = settings(&Project::new()).collect();
    assert!(usual.len() > 40, "{usual:?}");
    let annotated = "crates/aldis/src/settings/config/annotated.toml";
    for (name, path) in [("aldis.toml", annotated), ("aldis.yaml", "examples/aldis.yaml")] {
        let text = fs::read_to_string(root.join(path)).unwrap();
        let project = Project::new();
        fs::write(project.path().join(name), &text).unwrap();
        let shown: Vec<_> = settings(&project).collect();
        assert_eq!(shown.len(), usual.len(), "{name}");
        for ((key, value, source), (_, default, _)) in shown.iter().zip(&usual) {
            assert_eq!(value, default, "{name}: {key}");
            let last = key.as_str().unwrap().rsplit('.').next().unwrap();
            if source == "default" {
                // What has no default is there as a comment.
                let assigned = [format!("# {last} = "), format!("# {last}: ")];
                assert!(value.is_null(), "{name}: {key} is missing");
                assert!(
                    assigned.iter().any(|line| text.contains(line)),
                    "{name}: {key} is missing"
                );
            }
        }
        // What is shown as a comment can be used as it is.
        let uncommented: Vec<String> = text
            .lines()
            .map(|line| {
                let bare = line.trim_start();
                let key = bare.strip_prefix("# ").and_then(|rest| rest.split([' ', ':']).next());
                // Where runs are kept and exported is the user's own: a project's file may not say it.
                let unset = usual.iter().any(|(known, default, _)| {
                    let known = known.as_str().unwrap();
                    let of_user = known.starts_with("store.") || known == "telemetry.otlp";
                    default.is_null() && !of_user && known.rsplit('.').next() == key
                });
                if unset { line.replacen("# ", "", 1) } else { line.to_owned() }
            })
            .collect();
        fs::write(project.path().join(name), uncommented.join("\n")).unwrap();
        let checked = project.run(&["config", "check"]);
        assert_eq!(checked.code, 0, "{name}: {}", checked.text());
        let unset = project.run(&["config", "show"]);
        let of_user = |line: &&str| {
            ["# url ", "# direct_url ", "# otlp "].iter().any(|key| line.contains(key))
        };
        let mut lines = unset.stdout.lines().filter(|line| !of_user(line));
        assert!(!lines.any(|line| line.contains("is not set")), "{name}: {}", unset.text());
    }
}

/// Replaces how long it took.
fn timeless(text: &str) -> String {
    let lines = text.lines().map(|line| match line.split_once("kB, ") {
        Some((before, _)) if line.ends_with(" ms)") => format!("{before}kB, 0.2 ms)\n"),
        _ => format!("{line}\n"),
    });
    lines.collect()
}
