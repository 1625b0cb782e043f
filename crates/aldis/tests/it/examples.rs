//! The examples do what they say.

use std::env;
use std::fmt::Write as _;
use std::fs;
use std::path::PathBuf;

use assert_cmd::Command;

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

/// Replaces how long it took.
fn timeless(text: &str) -> String {
    let lines = text.lines().map(|line| match line.split_once("kB, ") {
        Some((before, _)) if line.ends_with(" ms)") => format!("{before}kB, 0.2 ms)\n"),
        _ => format!("{line}\n"),
    });
    lines.collect()
}
