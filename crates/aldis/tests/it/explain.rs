//! `aldis explain`: diagnostics that show the source and the fix.

use crate::sandbox::{Done, READY, Sandbox};

/// Hides how long it took.
fn timeless(done: &Done) -> String {
    let text = done.text();
    let lines = text.lines().map(|line| match line.rsplit_once(" B, ") {
        Some((before, _)) => format!("{before} B, 0.0 ms)\n"),
        None => format!("{line}\n"),
    });
    lines.collect()
}

#[test]
fn signals_show_who_said_them() {
    let sandbox = Sandbox::new();
    sandbox.write("reply.txt", READY);
    insta::assert_snapshot!(timeless(&sandbox.run(&["explain", "reply.txt"])), @r"
    exit 0
    -- stdout
    signal: delivery READY_FOR_REVIEW task-1  (handoff)
      --> reply.txt:3:1
        |
      3 | READY_FOR_REVIEW: task-1
        | ^^^^^^^^^^^^^^^^^^^^^^^^ said by the assistant

    1 signal, 0 near misses in 4 lines (63 B, 0.0 ms)
    -- stderr
    ");
}

#[test]
fn near_misses_show_the_reason_and_the_fix() {
    let sandbox = Sandbox::new();
    sandbox.write("reply.txt", "Note:\n\n  READY_FOR_REVIEW: task-1\n");
    let done = sandbox.run(&["explain", "--dialect", "delivery", "reply.txt"]);
    assert_eq!(done.code, 1);
    assert!(done.stdout.starts_with("near miss: delivery READY_FOR_REVIEW  [indented]\n"));
    assert!(done.stdout.contains("  3 |   READY_FOR_REVIEW: task-1\n"), "{}", done.stdout);
    assert!(done.stdout.contains("^ must start its line\n"), "{}", done.stdout);
    assert!(done.stdout.contains("    = help: "), "{}", done.stdout);
    assert!(done.stdout.contains("0 signals, 1 near miss in 3 lines ("), "{}", done.stdout);
}

#[test]
fn what_others_said_is_counted_and_listed_on_request() {
    let sandbox = Sandbox::new();
    let entry = |index: u32| {
        format!(
            "{{\"type\":\"user\",\"uuid\":\"u{index}\",\"sessionId\":\"s\",\"message\":{{\"role\":\
             \"user\",\"content\":\"<chorus>COMPLETE</chorus> please\"}}}}\n"
        )
    };
    sandbox.write("session.jsonl", (0..3).map(entry).collect::<String>());
    let folded = sandbox.run(&["explain", "-d", "chorus", "session.jsonl"]);
    assert_eq!(folded.code, 1);
    assert!(folded.stdout.contains("near miss: chorus COMPLETE  [untrusted_origin]"));
    assert!(
        folded.stdout.contains(
            "= note: 2 more candidates from files, prompts and tool output were ignored \
             (--all to list them)"
        ),
        "{}",
        folded.stdout
    );
    let listed = sandbox.run(&["explain", "-d", "chorus", "--all", "session.jsonl"]);
    assert_eq!(listed.stdout.matches("[untrusted_origin]").count(), 3, "{}", listed.stdout);
    assert!(listed.stdout.contains("0 signals, 3 near misses in 3 lines"), "{}", listed.stdout);
}

#[test]
fn what_cannot_be_read_is_not_summed_up() {
    let done = Sandbox::new().run(&["explain", "missing.txt"]);
    let error = "error: `missing.txt`: no such file or directory\n";
    assert_eq!(done.text(), format!("exit 2\n-- stdout\n-- stderr\n{error}"));
}

#[test]
fn colour_marks_the_parts() {
    let sandbox = Sandbox::new();
    let done = sandbox.run_with(&["explain", "--color", "always"], READY.as_bytes());
    assert!(done.stdout.starts_with("\x1b[1m\x1b[32msignal:\x1b[0m"), "{:?}", done.stdout);
}
