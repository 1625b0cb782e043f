//! `aldis scan`: forms, exit codes, inputs.

use std::fs;
use std::io::{BufRead as _, BufReader, Write as _};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc;
use std::thread::{self, JoinHandle};
use std::time::Duration;

use serde_json::{Value, json};

use crate::sandbox::{ALDIS, QA_COMPLETE, READY, Sandbox};

#[test]
fn prints_a_line_for_each_signal() {
    let sandbox = Sandbox::new();
    sandbox.write("reply.txt", READY);
    insta::assert_snapshot!(sandbox.run(&["scan", "reply.txt"]).text(), @r"
    exit 0
    -- stdout
    reply.txt:3:1: delivery READY_FOR_REVIEW task-1      handoff
    -- stderr
    ");
}

#[test]
fn reads_standard_input() {
    let sandbox = Sandbox::new();
    for args in [&["scan"][..], &["scan", "-"]] {
        let done = sandbox.run_with(args, READY.as_bytes());
        assert!(done.stdout.starts_with("-:3:1: delivery READY_FOR_REVIEW"), "{}", done.text());
        assert_eq!(done.code, 0);
    }
}

#[test]
fn says_no_when_nothing_is_said() {
    let sandbox = Sandbox::new();
    for text in ["", "All tests pass.\n", "I will print READY_FOR_REVIEW: task-1 later.\n"] {
        let done = sandbox.run_with(&["scan"], text.as_bytes());
        assert_eq!(done.text(), "exit 1\n-- stdout\n-- stderr\n", "{text:?}");
    }
}

#[test]
fn json_has_the_documented_form() {
    let sandbox = Sandbox::new();
    let text = format!("line\n\n{}", READY.trim_start_matches("All tests pass.\n\n"));
    let done = sandbox.run_with(&["scan", "--json"], text.as_bytes());
    assert_eq!(done.code, 0);
    let [line] = done.json().try_into().unwrap();
    assert_eq!(
        line,
        json!({
            "v": 1, "kind": "signal", "dialect": "delivery", "name": "READY_FOR_REVIEW",
            "meaning": "handoff", "subject": "task-1", "payload": null, "progress": null,
            "fields": {"summary": "parser done"}, "handler": "DISPATCH_CRITIC", "warnings": [],
            "origin": {"role": "assistant", "sidechain": false, "agent": null},
            "via": "said",
            "source": {
                "file": "-", "message": 0, "line": 3, "column": 1,
                "start": 6, "end": 30, "body_end": line["source"]["body_end"],
            },
            "raw": "READY_FOR_REVIEW: task-1",
        })
    );
    assert!(line["source"]["body_end"].as_u64().is_some_and(|end| end >= 51), "{line}");
}

#[test]
fn json_keys_come_in_the_documented_order() {
    let sandbox = Sandbox::new();
    let text = format!("> SIGNAL: QA_COMPLETE\n\n{READY}");
    let done = sandbox.run_with(&["scan", "--json", "--near-misses"], text.as_bytes());
    let keys = |kind: &str| -> Vec<String> {
        let start = format!("{{\"v\":1,\"kind\":\"{kind}\",");
        let line = done.stdout.lines().find(|line| line.starts_with(&start)).unwrap();
        let mut keys: Vec<(usize, String)> = serde_json::from_str::<Value>(line)
            .unwrap()
            .as_object()
            .unwrap()
            .keys()
            .map(|key| (line.find(&format!("\"{key}\":")).unwrap(), key.clone()))
            .collect();
        keys.sort();
        keys.into_iter().map(|(_, key)| key).collect()
    };
    assert_eq!(
        keys("signal").join(" "),
        "v kind dialect name meaning subject payload progress fields handler warnings origin via \
         source raw"
    );
    assert_eq!(keys("near_miss").join(" "), "v kind dialect name reason hint origin source raw");
}

#[test]
fn near_misses_are_shown_when_asked() {
    let sandbox = Sandbox::new();
    let text = "I will print SIGNAL: QA_COMPLETE once the suite is green.\n";
    let done = sandbox.run_with(&["scan", "--near-misses", "--dialect", "caw"], text.as_bytes());
    assert_eq!(done.code, 1, "a near miss is no signal");
    assert!(done.stdout.contains("caw QA_COMPLETE"), "{}", done.stdout);
    assert!(done.stdout.contains("near miss    ["), "{}", done.stdout);

    let args = ["scan", "--near-misses", "--dialect", "caw", "--json"];
    let [line] = sandbox.run_with(&args, text.as_bytes()).json().try_into().unwrap();
    assert_eq!((&line["kind"], &line["name"]), (&json!("near_miss"), &json!("QA_COMPLETE")));
    assert!(line["hint"].as_str().is_some_and(|hint| !hint.is_empty()));
}

#[test]
fn findings_come_in_text_order() {
    let sandbox = Sandbox::new();
    let text = "<chorus>PROGRESS: 10</chorus>\nREVIEW_PASSED: a\n<chorus>PROGRESS: 90</chorus>\n\
                <axiom>PROGRESS: 95</axiom>\n<chorus>COMPLETE</chorus>\n";
    let done = sandbox.run_with(&["scan", "--json", "--near-misses"], text.as_bytes());
    let starts: Vec<u64> =
        done.json().iter().map(|line| line["source"]["start"].as_u64().unwrap()).collect();
    assert!(starts.len() >= 5 && starts.is_sorted(), "{starts:?}");
}

#[test]
fn a_long_text_is_told_in_order_while_it_comes() {
    let sandbox = Sandbox::new();
    let unit = "REVIEW_PASSED: a\n\n<chorus>PROGRESS: 90</chorus>\nGoing on.\n";
    let (told, next) = mpsc::channel();
    let pieces = vec![unit.repeat(20_000)];
    let (mut child, writing) = scan_pieces(&sandbox, &["scan", "--json"], pieces, next);
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let first = lines.next().unwrap().unwrap();
    // The input ends only when something of it has been told.
    told.send(()).unwrap();
    let rest: Vec<String> = lines.map(Result::unwrap).collect();
    writing.join().unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(0));
    let starts = std::iter::once(&first).chain(&rest).map(|line| {
        let line: Value = serde_json::from_str(line).unwrap();
        line["source"]["start"].as_u64().unwrap()
    });
    let unit_start = |number: u64| [number * unit.len() as u64, number * unit.len() as u64 + 18];
    assert!(starts.eq((0..20_000).flat_map(unit_start)));
}

/// Starts `aldis` with a standard input that is written in pieces, each when `next` allows it.
fn scan_pieces(
    sandbox: &Sandbox,
    args: &[&str],
    pieces: Vec<String>,
    next: mpsc::Receiver<()>,
) -> (Child, JoinHandle<()>) {
    let mut child = Command::new(ALDIS)
        .env_clear()
        .current_dir(sandbox.path())
        .args(args)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut input = child.stdin.take().unwrap();
    let writing = thread::spawn(move || {
        for piece in pieces {
            input.write_all(piece.as_bytes()).unwrap();
            next.recv().unwrap();
        }
    });
    (child, writing)
}

#[test]
fn one_signal_is_told_while_much_text_follows() {
    let sandbox = Sandbox::new();
    let text = "<chorus>PROGRESS: 90</chorus>\n".to_owned() + &"Going on.\n".repeat(100_000);
    let (told, next) = mpsc::channel();
    let (mut child, writing) = scan_pieces(&sandbox, &["scan"], vec![text], next);
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let first = lines.next().unwrap().unwrap();
    assert!(first.contains("PROGRESS"), "{first}");
    // Only now the input ends.
    told.send(()).unwrap();
    writing.join().unwrap();
    assert_eq!(lines.count(), 0);
    assert_eq!(child.wait().unwrap().code(), Some(0));
}

#[test]
fn a_first_line_may_come_in_pieces() {
    let sandbox = Sandbox::new();
    let lines = "{\"type\":\"thread.started\",\"thread_id\":\"t\"}\n\
                 {\"type\":\"item.completed\",\"item\":{\"id\":\"i\",\
                 \"type\":\"agent_message\",\"text\":\"<chorus>COMPLETE</chorus>\"}}\n";
    let (start, rest) = lines.split_at(18);
    let (written, next) = mpsc::channel();
    let pieces = vec![start.to_owned(), rest.to_owned()];
    let (child, writing) = scan_pieces(&sandbox, &["scan", "--json"], pieces, next);
    // Time for the first piece to be read by itself; if it is not, both are read together.
    thread::sleep(Duration::from_millis(300));
    written.send(()).unwrap();
    written.send(()).unwrap();
    writing.join().unwrap();
    let output = child.wait_with_output().unwrap();
    let line: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(line["name"], "COMPLETE");
}

/// Lines of Codex: a command that prints a claim, and a claim by the agent.
const CODEX: &str = concat!(
    "{\"type\":\"thread.started\",\"thread_id\":\"t\"}\n",
    "{\"type\":\"item.completed\",\"item\":{\"id\":\"i\",\"type\":\"command_execution\",\
     \"aggregated_output\":\"<chorus>BLOCKED: no</chorus>\"}}\n",
    "{\"type\":\"item.completed\",\"item\":{\"id\":\"j\",\"type\":\"agent_message\",\
     \"text\":\"<chorus>COMPLETE</chorus>\"}}\n",
);

#[test]
fn notices_may_come_before_a_transcript_that_is_followed() {
    let sandbox = Sandbox::new();
    let (first, rest) = CODEX.split_at(18);
    let all: [&[&str]; 4] = [
        &["npm warn old\n", CODEX],
        &["npm wa", "rn old\n\n", first, rest],
        &["<chorus>PROGRESS: 1</chorus>\nnpm warn old\n", CODEX],
        &["npm warn old\n{\"level\":30}\n", first, rest],
    ];
    for pieces in all {
        let (written, next) = mpsc::channel();
        let owned = pieces.iter().map(|piece| (*piece).to_owned()).collect();
        let args = ["scan", "--follow", "--json", "--dialect", "chorus"];
        let (child, writing) = scan_pieces(&sandbox, &args, owned, next);
        for _ in pieces {
            // Time for each piece to be read by itself.
            thread::sleep(Duration::from_millis(200));
            written.send(()).unwrap();
        }
        writing.join().unwrap();
        let output = String::from_utf8(child.wait_with_output().unwrap().stdout).unwrap();
        let lines: Vec<Value> =
            output.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        let told: Vec<_> = lines.iter().filter(|line| line["name"] == "PROGRESS").collect();
        assert_eq!(told.len(), pieces.concat().matches("PROGRESS").count(), "{output}");
        let [said] = &lines[told.len()..] else { panic!("{output}") };
        let before = pieces.concat().lines().count() - 3;
        let name = (&said["name"], &said["source"]["entry"]);
        assert_eq!(name, (&json!("COMPLETE"), &json!(before + 3)), "{output}");
    }
}

#[test]
fn a_lone_line_after_notices_is_told_when_nothing_follows() {
    let sandbox = Sandbox::new();
    let (told, next) = mpsc::channel();
    let last = CODEX.lines().last().unwrap();
    let pieces = vec![format!("npm warn old\n{last}\n")];
    // Without a host's name, a line that holds words and has no company is only shown.
    let args =
        ["scan", "--follow", "--json", "--near-misses", "--dialect", "chorus", "--input", "codex"];
    let (mut child, writing) = scan_pieces(&sandbox, &args, pieces, next);
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let line: Value = serde_json::from_str(&lines.next().unwrap().unwrap()).unwrap();
    assert_eq!((&line["name"], &line["source"]["entry"]), (&json!("COMPLETE"), &json!(2)));
    told.send(()).unwrap();
    writing.join().unwrap();
    assert_eq!((lines.count(), child.wait().unwrap().code()), (0, Some(0)));
}

#[test]
fn an_answer_that_shows_a_hosts_line_is_heard() {
    let sandbox = Sandbox::new();
    let shown = CODEX.lines().next().unwrap();
    for text in [
        format!("It starts with:\n```json\n{shown}\n```\nDone.\n\n<chorus>COMPLETE</chorus>\n"),
        format!("It starts with:\n{shown}\nDone.\n\n<chorus>COMPLETE</chorus>\n"),
    ] {
        for follow in [&[][..], &["--follow"]] {
            let args = [&["scan", "--dialect", "chorus"], follow].concat();
            let done = sandbox.run_with(&args, text.as_bytes());
            assert!(done.stdout.contains("chorus COMPLETE"), "{}", done.text());
        }
    }
}

/// A prompt may be longer than what is looked at to tell the format.
#[test]
fn long_prompts_are_not_the_agents_words() {
    let sandbox = Sandbox::new();
    let user = |start: &str| {
        let text = "Say <chorus>COMPLETE</chorus>\\n<chorus>COMPLETE</chorus>\\n";
        format!("{{{start}{text}{}{text}\"}}]}}}}", "z".repeat(300_000))
    };
    let message = r#""message":{"role":"user","content":[{"type":"text","text":""#;
    let prompt = user(&format!("\"type\":\"user\",{message}"));
    let says = r#"{"type":"assistant","message":{"id":"m","role":"assistant","content":[{"type":"text","text":"<chorus>PROGRESS: 5</chorus>"}]},"session_id":"s"}"#;
    let lists = [format!("{prompt}\n{says}\n"), format!("[{prompt},{says}]\n")];
    let noise = format!("{}{prompt}\n{says}\n", "npm warn old\n".repeat(20));
    for text in lists.iter().chain([&noise]) {
        for follow in [&[][..], &["--follow"]] {
            let args = [&["scan", "--json", "--dialect", "chorus"], follow].concat();
            let lines = sandbox.run_with(&args, text.as_bytes()).json();
            let names: Vec<_> = lines.iter().map(|line| line["name"].as_str().unwrap()).collect();
            assert_eq!(names, ["PROGRESS"], "{follow:?} {}", &text[..40]);
        }
    }
}

#[test]
fn compressed_files_are_refused() {
    let sandbox = Sandbox::new();
    sandbox.write("rollout.jsonl.zst", b"\x28\xb5\x2f\xfd\x04\x00");
    sandbox.write("log.gz", b"\x1f\x8b\x08\x00");
    sandbox.write("b.txt", QA_COMPLETE);
    insta::assert_snapshot!(sandbox.run(&["scan", "rollout.jsonl.zst", "b.txt"]).text(), @r"
    exit 2
    -- stdout
    b.txt:3:1: caw QA_COMPLETE                       done
    -- stderr
    error: `rollout.jsonl.zst` is compressed by zstd
     help: decompress it: `zstd -dc FILE | aldis scan`
    ");
    for command in ["scan", "explain"] {
        let done = sandbox.run(&[command, "log.gz"]);
        assert_eq!((done.code, &*done.stdout), (2, ""), "{}", done.text());
        assert!(done.stderr.contains("gzip -dc FILE | aldis scan"), "{}", done.text());
    }
}

#[test]
fn only_chosen_dialects_are_looked_for() {
    let sandbox = Sandbox::new();
    let text = format!("{READY}\n<promise>SHIPPED</promise>\n");
    let names = |args: &[&str]| -> Vec<String> {
        let done = sandbox.run_with(&[&["scan", "--json"], args].concat(), text.as_bytes());
        done.json().iter().map(|line| line["dialect"].as_str().unwrap().to_owned()).collect()
    };
    assert_eq!(names(&["--dialect", "delivery"]), ["delivery"]);
    assert_eq!(names(&["--dialect", "promise"]), [""; 0]);
    assert_eq!(names(&["--dialect", "promise=SHIPPED"]), ["promise"]);
    assert_eq!(names(&["-d", "promise=SHIPPED", "-d", "delivery"]), ["delivery", "promise"]);
    let turn =
        sandbox.run_with(&["scan", "--dialect", "turn=OVER_TO_YOU"], b"Done.\n\nOVER_TO_YOU\n");
    assert_eq!(turn.code, 0, "{}", turn.text());
}

#[test]
fn files_that_cannot_be_read_do_not_hide_the_others() {
    let sandbox = Sandbox::new();
    sandbox.write("a.txt", READY);
    sandbox.write("b.txt", QA_COMPLETE);
    fs::create_dir(sandbox.path().join("directory")).unwrap();
    insta::assert_snapshot!(sandbox.run(&["scan", "a.txt", "missing.txt", "directory", "b.txt"]).text(), @r"
    exit 2
    -- stdout
    a.txt:3:1: delivery READY_FOR_REVIEW task-1      handoff
    b.txt:3:1: caw QA_COMPLETE                       done
    -- stderr
    error: `missing.txt`: no such file or directory
    error: `directory` is a directory
     help: name the files in it
    ");
}

#[test]
fn a_reader_that_leaves_ends_the_scan() {
    let sandbox = Sandbox::new();
    let many = "<chorus>PROGRESS: 10</chorus>\n".repeat(20_000);
    sandbox.write("many.txt", many);
    let mut child = Command::new(ALDIS)
        .env_clear()
        .current_dir(sandbox.path())
        .args(["scan", "--json", "many.txt"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut first = String::new();
    BufReader::new(child.stdout.take().unwrap()).read_line(&mut first).unwrap();
    let output = child.wait_with_output().unwrap();
    assert!(first.contains("PROGRESS"), "{first}");
    assert_eq!(output.status.code(), Some(0), "there was a signal");
    assert_eq!(String::from_utf8(output.stderr).unwrap(), "");
}

#[test]
fn transcripts_are_recognised_and_their_origins_judged() {
    let sandbox = Sandbox::new();
    let session = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/transcripts/session.jsonl");
    sandbox.write("session.jsonl", fs::read(session).unwrap());
    let args = ["scan", "--json", "--near-misses", "--dialect", "caw", "session.jsonl"];
    let lines = sandbox.run(&args).json();
    let (signals, misses): (Vec<&Value>, Vec<&Value>) =
        lines.iter().partition(|line| line["kind"] == "signal");
    let [signal] = signals.try_into().unwrap();
    assert_eq!(signal["name"], "QA_COMPLETE");
    assert_eq!(signal["origin"]["role"], "assistant");
    assert!(signal["source"]["entry"].as_u64().is_some());
    let reasons: Vec<&str> = misses.iter().map(|miss| miss["reason"].as_str().unwrap()).collect();
    assert!(reasons.contains(&"untrusted_origin"), "{reasons:?}");
    assert!(reasons.contains(&"quoted"), "{reasons:?}");

    let as_text = sandbox.run(&["scan", "--input", "text", "--json", "session.jsonl"]);
    assert!(as_text.json().iter().all(|line| line["source"].get("entry").is_none()));
}

#[test]
fn run_tokens_are_checked() {
    let sandbox = Sandbox::new();
    let with = "Done.\n\n<chorus>BLOCKED: #k3y9 no network</chorus>\n";
    let without = "Done.\n\n<chorus>BLOCKED: no network</chorus>\n";
    let table: &[(&[&str], &str, i32)] = &[
        (&["--token", "k3y9"], with, 0),
        (&["--token", "k3y9"], without, 0),
        (&["--token", "other"], with, 1),
        (&["--token", "k3y9", "--require-token"], with, 0),
        (&["--token", "k3y9", "--require-token"], without, 1),
    ];
    for (args, text, code) in table {
        let args = [&["scan", "--dialect", "chorus"], *args].concat();
        assert_eq!(sandbox.run_with(&args, text.as_bytes()).code, *code, "{args:?} {text:?}");
    }
}

#[test]
fn reference_matching_takes_what_a_regex_takes() {
    let sandbox = Sandbox::new();
    let text = "```\n<chorus>COMPLETE</chorus>\n```\nThat was an example.\n";
    let run = |how| sandbox.run_with(&["scan", "-d", "chorus", "--matching", how], text.as_bytes());
    assert_eq!(run("careful").code, 1);
    assert_eq!(run("reference").code, 0);
    let tokens = ["scan", "--matching", "reference", "--token", "k3y9", "--require-token"];
    let done = sandbox.run_with(&tokens, b"<chorus>COMPLETE</chorus>\n");
    assert_eq!((done.code, done.stdout.as_str()), (2, ""), "{}", done.text());
}

#[test]
fn chunks_do_not_matter() {
    let sandbox = Sandbox::new();
    let text = format!("{}\n{READY}", "x".repeat(256 * 1024 - 8));
    let [line] = sandbox.run_with(&["scan", "--json"], text.as_bytes()).json().try_into().unwrap();
    assert_eq!(line["subject"], "task-1");
}

/// Whatever an agent says, nothing reaches the terminal that it would obey.
#[test]
fn hostile_text_is_shown_harmlessly() {
    let sandbox = Sandbox::new();
    let texts = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/display");
    for entry in fs::read_dir(texts).unwrap() {
        let path = entry.unwrap().path();
        let hostile = fs::read(&path).unwrap();
        let text = [b"<chorus>BLOCKED: a ".as_slice(), &hostile, b" b</chorus>\n"].concat();
        let all: &[&[&str]] = &[
            &["scan", "--near-misses"],
            &["scan", "--near-misses", "--json"],
            &["explain", "--all"],
        ];
        for args in all {
            let done = sandbox.run_with(args, &text);
            assert!(!done.stdout.is_empty());
            let bad = done.stdout.chars().find(|&c| {
                (c.is_control() && c != '\n' && c != '\t')
                    || matches!(c, '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
            });
            assert_eq!(bad, None, "{} {args:?}", path.display());
        }
    }
}
