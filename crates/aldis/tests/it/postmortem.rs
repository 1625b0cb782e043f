//! `aldis postmortem`: what is found, what is said of it, and what never happens.

use std::fs;
use std::path::Path;

use assert_cmd::Command;
use serde_json::{Value, json};

use crate::sandbox::{ALDIS, Done, QA_COMPLETE, Sandbox};

/// A home in which hosts have left transcripts.
struct Home(Sandbox);

impl Home {
    fn new() -> Self {
        Self(Sandbox::new())
    }

    fn run(&self, args: &[&str]) -> Done {
        let output = Command::new(ALDIS)
            .env_clear()
            .env("HOME", self.0.path())
            .env("ALDIS_NOW", "2026-11-15T12:00:00Z")
            .current_dir(self.0.path())
            .arg("postmortem")
            .args(args)
            .output()
            .unwrap();
        Done {
            code: output.status.code().unwrap(),
            stdout: String::from_utf8(output.stdout).unwrap(),
            stderr: String::from_utf8(output.stderr).unwrap(),
        }
    }

    /// Runs it with `--json` and returns the only session.
    #[track_caller]
    fn session(&self, args: &[&str]) -> Value {
        let done = self.run(&[&["--json"], args].concat());
        let lines = done.json();
        assert_eq!(lines.len(), 1, "{}", done.text());
        lines.into_iter().next().unwrap()
    }

    /// Writes a transcript of Claude Code.
    fn claude(&self, name: &str, lines: &[Value]) -> String {
        let lines: Vec<String> = lines.iter().map(Value::to_string).collect();
        let path = format!(".claude/projects/-home-me-shop/{name}.jsonl");
        self.0.write(&path, lines.join("\n") + "\n");
        path
    }

    /// Every file below it, with what is in it.
    fn contents(&self) -> Vec<(String, Vec<u8>)> {
        fn walk(folder: &Path, all: &mut Vec<(String, Vec<u8>)>) {
            for entry in fs::read_dir(folder).unwrap() {
                let path = entry.unwrap().path();
                match path.is_dir() {
                    true => walk(&path, all),
                    false => all.push((path.display().to_string(), fs::read(&path).unwrap())),
                }
            }
        }
        let mut all = Vec::new();
        walk(self.0.path(), &mut all);
        all.sort();
        all
    }
}

fn at(time: &str, mut line: Value) -> Value {
    line["timestamp"] = format!("2026-11-15T{time}Z").into();
    line["sessionId"] = "7b1d".into();
    line["cwd"] = "/home/me/shop".into();
    line["uuid"] = time.into();
    line
}

fn prompt(time: &str, text: &str) -> Value {
    at(time, json!({"type": "user", "message": {"role": "user", "content": text}}))
}

fn says(time: &str, text: &str) -> Value {
    let message = json!({"id": time, "role": "assistant", "stop_reason": "end_turn",
        "content": [{"type": "text", "text": text}],
        "usage": {"input_tokens": 900_000, "output_tokens": 100_000}});
    at(time, json!({"type": "assistant", "message": message}))
}

fn calls(time: &str, id: &str, name: &str, input: Value) -> Value {
    let content = json!([{"type": "tool_use", "id": id, "name": name, "input": input}]);
    at(time, json!({"type": "assistant", "message": {"id": id, "content": content}}))
}

fn runs(time: &str, id: &str, command: &str) -> Value {
    calls(time, id, "Bash", json!({ "command": command }))
}

fn result(time: &str, id: &str, text: &str, is_error: bool) -> Value {
    let block =
        json!({"type": "tool_result", "tool_use_id": id, "content": text, "is_error": is_error});
    at(time, json!({"type": "user", "message": {"content": [block]}, "toolUseResult": text}))
}

fn edits(time: &str, id: &str, path: &str) -> [Value; 2] {
    let input = json!({"file_path": path, "old_string": "a", "new_string": "b"});
    [calls(time, id, "Edit", input), result(&format!("{time}.5"), id, "done", false)]
}

/// A night with everything: two claims, one of them false, a permission that was waited for, and a limit.
fn night() -> Vec<Value> {
    let [edit, edited] = edits("00:10:00", "t1", "/home/me/shop/src/export.ts");
    vec![
        prompt("00:00:00", "Add CSV export to the reports page"),
        edit,
        edited,
        runs("00:20:00", "t2", "npm test 2>&1"),
        result("00:20:30", "t2", "Exit code 1\n2 of 118 failed", true),
        says("00:21:10", QA_COMPLETE),
        prompt("00:30:00", "Go on."),
        runs("00:31:00", "t3", "npm test"),
        result("00:31:20", "t3", "118 passed", false),
        says("00:32:00", QA_COMPLETE),
        runs("00:33:00", "t4", "npm publish"),
        result("01:14:00", "t4", "The user doesn't want to proceed with this tool use.", true),
        at(
            "02:14:00",
            json!({"type": "assistant", "isApiErrorMessage": true, "error": "rate_limit",
                "message": {"content": [{"type": "text", "text": "You've hit your limit · resets 4am (UTC)"}]}}),
        ),
    ]
}

/// The same as a page, with a picture of the night: claims, waits and the end are in it.
#[test]
fn a_night_is_a_page_with_a_picture() {
    let home = Home::new();
    home.claude("7b1d", &night());
    let done = home.run(&["-o", "night.html"]);
    assert_eq!((done.code, &*done.stdout), (1, ""), "{}", done.text());
    let page = fs::read_to_string(home.0.path().join("night.html")).unwrap();
    for part in [
        "Postmortem: the last 24 hours",
        "<svg",
        "claims done (QA_COMPLETE): contradicted by a failed check",
        "class=\"wait\"",
        ".claude/projects/-home-me-shop/7b1d.jsonl",
    ] {
        assert!(page.contains(part), "{part}: {page}");
    }
    assert_eq!(home.run(&["--html"]).stdout, page);
    let text = home.run(&["--md"]).stdout;
    assert!(text.starts_with("# Postmortem: the last 24 hours\n\n**✘ 1 of 1 session"), "{text}");
    assert!(text.contains("Claimed done (QA\\_COMPLETE)"), "{text}");
    assert_eq!(home.run(&["-o", "night.md"]).code, 1);
    assert_eq!(fs::read_to_string(home.0.path().join("night.md")).unwrap(), text);
    assert_eq!(home.run(&["-o", "night.jsonl"]).code, 1);
    let line = fs::read_to_string(home.0.path().join("night.jsonl")).unwrap();
    let line: Value = serde_json::from_str(&line).unwrap();
    assert_eq!(line["waits"][1]["until"], "2026-11-15T01:14:00Z", "{:#}", line["waits"]);
    assert_eq!(home.run(&["-o", "missing/night.html"]).code, 2);
    assert_eq!(home.run(&["--html", "--json"]).code, 2, "one form at a time");
}

/// All claims are counted, however many are listed.
#[test]
fn a_thousand_claims_are_a_thousand() {
    let home = Home::new();
    let claims: Vec<Value> = (0..1_000)
        .map(|n| says(&format!("{:02}:{:02}:{:02}", n / 3_600, n / 60 % 60, n % 60), QA_COMPLETE))
        .collect();
    home.claude("7b1d", &claims);
    let text = home.run(&[]).stdout;
    assert!(text.contains("1000 claims of done: 1000 without any check"), "{text}");
    let session = home.session(&[]);
    assert_eq!(session["claim_counts"]["unchecked"], 1_000);
    assert_eq!(session["claims"].as_array().unwrap().len(), 100);
}

#[test]
fn a_night_is_told_the_worst_first() {
    let home = Home::new();
    home.claude("7b1d", &night());
    insta::assert_snapshot!(home.run(&[]).text());
}

#[test]
fn programs_get_a_line_for_each_session() {
    let home = Home::new();
    home.claude("7b1d", &night());
    let schema = home.0.run(&["schema", "postmortem"]).stdout;
    let validator = jsonschema::validator_for(&serde_json::from_str(&schema).unwrap()).unwrap();
    let session = home.session(&[]);
    let errors: Vec<_> = validator.iter_errors(&session).map(|error| error.to_string()).collect();
    assert!(errors.is_empty(), "{errors:?}");
    let mut wrong = session.clone();
    wrong["v"] = 2.into();
    assert!(!validator.is_valid(&wrong), "another version is another format");
    for (member, want) in [
        ("host", json!("Claude Code")),
        ("session", json!("7b1d")),
        ("directory", json!("/home/me/shop")),
        ("prompts", json!(2)),
        ("tools", json!(4)),
        ("files_written", json!(1)),
        ("tokens", json!(2_000_000)),
        ("dollars", json!(null)),
        // From 00:21:10 to the next prompt, and 41 minutes for a permission.
        ("waited_seconds", json!(530 + 41 * 60)),
    ] {
        assert_eq!(session[member], want, "{member}: {session:#}");
    }
    let verdicts: Vec<_> =
        session["claims"].as_array().unwrap().iter().map(|claim| &claim["verdict"]).collect();
    assert_eq!(verdicts, ["contradicted", "confirmed"]);
    assert_eq!(session["claims"][0]["line"], 6);
    assert_eq!(session["claims"][0]["check"]["line"], 5);
    assert_eq!(session["claims"][0]["check"]["exit"], 1);
    let kinds: Vec<_> =
        session["findings"].as_array().unwrap().iter().map(|found| &found["kind"]).collect();
    assert_eq!(kinds, ["limit", "denied"]);
    assert_eq!(session["findings"][0]["until"], "2026-11-15T04:00:00Z");
    assert_eq!(session["findings"][1]["seconds"], 41 * 60);
}

/// What the host refused to run says nothing about the work, a call of our tool is a claim, and an
/// outage is no limit.
#[test]
fn a_run_of_ours_is_told_as_it_was() {
    let home = Home::new();
    let report = json!({"summary": "exported", "evidence": ["npm test"]});
    let task = "Add CSV export\n\n## How to report\n\nCall the tool when you are done.";
    let outage = "API Error: Can't reach the API server — check your internet or DNS (ENOTFOUND)";
    home.claude(
        "7b1d",
        &[
            prompt("00:00:00", task),
            runs("00:01:00", "t1", "npm test"),
            result("00:01:01", "t1", "This command requires approval", true),
            calls("00:02:00", "t2", "mcp__aldis__complete", report),
            result("00:02:01", "t2", "{}", false),
            at(
                "00:03:00",
                json!({"type": "assistant", "isApiErrorMessage": true, "error": "server_error",
                    "message": {"content": [{"type": "text", "text": outage}]}}),
            ),
        ],
    );
    let session = home.session(&[]);
    assert_eq!(session["asked"], "Add CSV export", "{session:#}");
    let kinds: Vec<_> =
        session["findings"].as_array().unwrap().iter().map(|found| &found["kind"]).collect();
    assert_eq!(kinds, ["error", "denied"], "{session:#}");
    assert_eq!(session["claims"][0]["verdict"], "unchecked", "{session:#}");
    assert!(session["claims"][0]["words"].as_str().unwrap().contains("exported"), "{session:#}");
}

#[test]
fn a_claim_is_compared_with_the_checks_before_it() {
    let passed = [runs("00:01:00", "t1", "npm test"), result("00:01:10", "t1", "ok", false)];
    let failed =
        [runs("00:02:00", "t2", "npm test"), result("00:02:10", "t2", "Exit code 1\nFAIL", true)];
    let linted = [runs("00:03:00", "t3", "npm run lint"), result("00:03:10", "t3", "ok", false)];
    let edit = edits("00:04:00", "t4", "/home/me/shop/a.ts");
    let claim = says("00:05:00", QA_COMPLETE);
    let cases: [(&str, Vec<&[Value]>, i32); 7] = [
        ("unchecked", vec![], 0),
        ("confirmed", vec![&passed], 0),
        ("contradicted", vec![&passed, &failed], 1),
        ("contradicted", vec![&failed, &linted], 1),
        ("contradicted", vec![&failed, &edit], 1),
        ("outdated", vec![&passed, &edit], 0),
        ("confirmed", vec![&failed[..0], &linted], 0),
    ];
    for (verdict, before, code) in cases {
        let home = Home::new();
        let mut lines = vec![prompt("00:00:00", "Do it.")];
        lines.extend(before.concat());
        lines.push(claim.clone());
        home.claude("7b1d", &lines);
        assert_eq!(home.session(&[])["claims"][0]["verdict"], verdict, "{lines:#?}");
        assert_eq!(home.run(&[]).code, code, "{verdict}");
    }
}

/// A claim that was taken back with its branch is none.
#[test]
fn a_claim_on_a_branch_that_was_rewound_does_not_count() {
    let home = Home::new();
    let mut first = prompt("00:00:00", "Do it.");
    first["parentUuid"] = Value::Null;
    let mut claim = says("00:01:00", QA_COMPLETE);
    claim["parentUuid"] = "00:00:00".into();
    let mut other = says("00:02:00", "There is more to do.");
    other["parentUuid"] = "00:00:00".into();
    home.claude("7b1d", &[first, claim, other]);
    assert_eq!(home.session(&[])["claims"], json!([]));
}

#[test]
fn every_way_to_stop_is_told() {
    let work = prompt("00:00:00", "Do it.");
    let failed =
        [runs("00:01:00", "t1", "cargo test"), result("00:01:10", "t1", "Exit code 101\n", true)];
    let interrupted = prompt("00:03:00", "[Request interrupted by user]");
    let error = at(
        "00:03:00",
        json!({"type": "assistant", "isApiErrorMessage": true, "error": "authentication_failed",
            "message": {"content": [{"type": "text", "text": "Please run /login"}]}}),
    );
    let question = json!({"questions": [{"question": "Which database?"}]});
    let asked = calls("00:01:00", "t2", "AskUserQuestion", question);
    let cases: [(&str, bool, Vec<Value>); 6] = [
        ("failing_check", true, [&failed[..], &[says("00:02:00", "Two tests fail.")]].concat()),
        ("error", true, vec![error]),
        ("interrupted", false, vec![interrupted.clone()]),
        ("unanswered", false, vec![runs("00:01:00", "t1", "npm publish")]),
        ("question_wait", false, vec![asked, result("00:21:00", "t2", "SQLite", false)]),
        ("long_call", false, vec![failed[0].clone(), result("00:31:00", "t1", "ok", false)]),
    ];
    for (kind, failure, lines) in cases {
        let home = Home::new();
        home.claude("7b1d", &[std::slice::from_ref(&work), &lines[..]].concat());
        let session = home.session(&[]);
        assert_eq!(session["findings"].as_array().unwrap().len(), 1, "{session:#}");
        assert_eq!(session["findings"][0]["kind"], kind, "{session:#}");
        assert_eq!(session["findings"][0]["failure"], failure, "{session:#}");
        assert_eq!(home.run(&[]).code, i32::from(failure), "{kind}");
    }
    // Whoever was interrupted and went on was not stopped.
    let home = Home::new();
    home.claude("7b1d", &[work, interrupted, says("00:04:00", "Going on.")]);
    assert_eq!(home.session(&[])["findings"], json!([]));
}

/// What happened before the window only says how things stood.
#[test]
fn the_window_is_told_by_the_times_in_the_files() {
    let home = Home::new();
    home.claude("7b1d", &night());
    let session = home.session(&["--since", "2026-11-15T00:31:30Z"]);
    assert_eq!(session["claims"].as_array().unwrap().len(), 1, "{session:#}");
    assert_eq!(session["claims"][0]["verdict"], "confirmed");
    assert_eq!((&session["tools"], &session["tokens"]), (&json!(1), &json!(1_000_000)));
    let none = home.run(&["--since", "1h"]);
    assert_eq!(
        none.text(),
        "exit 0\n-- stdout\nNo sessions in the last 60 minutes. `--since all` looks further back.\n-- stderr\n"
    );
    assert_eq!(home.run(&["--since", "2026-11-14"]).code, 1);
    // Files that are named are read whole.
    let path = home
        .claude("old", &[at("00:00:00", json!({"type": "user", "message": {"content": "Hi."}}))]);
    let text = fs::read_to_string(home.0.path().join(&path)).unwrap();
    home.0.write(&path, text.replace("2026-", "2020-"));
    assert_eq!(home.run(&["--json"]).json().len(), 1);
    assert_eq!(home.run(&["--json", &path]).json().len(), 1);
    assert_eq!(home.run(&["--json", "--since", "all"]).json().len(), 2);
    let wrong = home.run(&["--since", "yesterday"]);
    assert_eq!(wrong.code, 2);
    assert!(wrong.stderr.contains("a span such as 12h or 3d"), "{}", wrong.stderr);
}

/// Every host that keeps its sessions in files is looked for where it keeps them.
#[test]
fn sessions_of_every_host_are_found() {
    let samples = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata/hosts/samples");
    let home = Home::new();
    let places = [
        ("codex/rollout.jsonl", ".codex/sessions/2026/11/15/rollout-1.jsonl", "Codex"),
        ("copilot/events.jsonl", ".copilot/session-state/b9c1/events.jsonl", "Copilot CLI"),
        ("droid/transcript.jsonl", ".factory/sessions/-home/8af2.jsonl", "Droid"),
        ("gemini/session.jsonl", ".gemini/tmp/b194/chats/session-1.jsonl", "Gemini CLI"),
        ("claude_code/transcript.jsonl", ".claude/projects/-home/7b1d.jsonl", "Claude Code"),
        ("claude_code/transcript.jsonl", ".qwen/projects/-home/chats/7b1d.jsonl", "Qwen Code"),
    ];
    for (sample, place, _) in places {
        home.0.write(place, fs::read(samples.join(sample)).unwrap());
    }
    let cursor = r#"{"role":"user","message":{"content":[{"type":"text","text":"Port it."}]}}"#;
    home.0.write(".cursor/projects/p/agent-transcripts/c6b6.jsonl", cursor);
    let lines = home.run(&["--json", "--since", "all"]).json();
    let mut hosts: Vec<_> = lines.iter().map(|line| line["host"].as_str().unwrap()).collect();
    hosts.sort_unstable();
    let mut want: Vec<_> = places.iter().map(|(_, _, host)| *host).chain(["Cursor"]).collect();
    want.sort_unstable();
    assert_eq!(hosts, want);
    for line in &lines {
        let claims = line["claims"].as_array().unwrap().len();
        assert_eq!(claims, usize::from(line["host"] != "Cursor"), "{line:#}");
    }
}

#[test]
fn what_sub_agents_did_is_part_of_their_session() {
    let home = Home::new();
    home.claude("7b1d", &[prompt("00:00:00", "Do it."), says("00:05:00", "It is done.")]);
    let mut side = runs("00:01:00", "s1", "npm test");
    side["isSidechain"] = true.into();
    side["message"]["usage"] = json!({"input_tokens": 500});
    home.claude("7b1d/subagents/agent-a1", &[side]);
    let session = home.session(&[]);
    assert_eq!((&session["tools"], &session["tokens"]), (&json!(1), &json!(1_000_500)));
}

#[test]
fn what_cannot_be_read_is_named_and_passed_over() {
    let home = Home::new();
    home.claude("7b1d", &night());
    home.0.write(".codex/sessions/2026/rollout-old.jsonl.zst", b"\x28\xB5\x2F\xFDx");
    home.0.write(".claude/projects/x/notes.jsonl", "no transcript\n");
    let done = home.run(&[]);
    assert_eq!(done.code, 1);
    assert!(
        done.stderr.contains("rollout-old.jsonl.zst` is compressed by zstd"),
        "{}",
        done.stderr
    );
    assert!(!done.stderr.contains("notes.jsonl"), "{}", done.stderr);
    home.0.write("text.txt", "All tests pass.\n");
    for (args, part) in [
        (&["text.txt"][..], "`text.txt` is no transcript of a host that Aldis knows"),
        (&["none.jsonl"], "`none.jsonl`: no such file or directory"),
    ] {
        let done = home.run(args);
        assert_eq!(done.code, 2, "{}", done.text());
        assert!(done.stderr.contains(part), "{}", done.stderr);
    }
    let empty = Home::new();
    let done = empty.run(&[]);
    assert_eq!(done.code, 2);
    assert!(
        done.stderr.contains("no supported agent has left transcripts here"),
        "{}",
        done.stderr
    );
}

/// Words of an agent neither reach the terminal as commands nor give secrets away, and nothing is
/// written anywhere.
#[test]
fn hostile_words_are_harmless_and_nothing_is_written() {
    let home = Home::new();
    let secret = format!("ghp_{}", "x".repeat(36));
    let evil = format!("npm test -- \x1b[2J\x07 \u{202e}{secret}");
    let lines = [
        prompt("00:00:00", &format!("Do it.\x1b[2J {secret}")),
        runs("00:01:00", "t1", &evil),
        result("00:01:10", "t1", &format!("Exit code 1\n{secret}"), true),
        says("00:02:00", &format!("\x1b[31m{secret}\n\n{QA_COMPLETE}")),
    ];
    home.claude("7b1d", &lines);
    let before = home.contents();
    for args in [&[][..], &["--json"]] {
        let done = home.run(args);
        assert_eq!(done.code, 1, "{}", done.text());
        assert!(!done.stdout.contains(&secret), "{}", done.stdout);
        assert!(!done.stdout.contains(['\x1b', '\u{202e}', '\x07']), "{:?}", done.stdout);
        assert!(done.stdout.contains("npm test"), "{}", done.stdout);
    }
    assert_eq!(home.contents(), before, "something was written");
}
