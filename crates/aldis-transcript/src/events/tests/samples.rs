//! The events of every sample.

use super::*;

/// Live outputs among the samples, and what they report.
pub(super) const SAMPLES: [(&str, Format, &[&str]); 19] = [
    (
        "acp/v1_turn.jsonl",
        Format::Acp,
        &[
            "session sess_1",
            "tool execute cargo test",
            "ended call_1",
            "spent 0 $45000",
            "ended true",
        ],
    ),
    ("acp/v2_draft_turn.jsonl", Format::Acp, &["session sess_1", "ended true"]),
    (
        "amp/stream.jsonl",
        Format::ClaudeStream,
        &["session T-1", "tool Bash cargo test", "ended toolu_1", "ended true"],
    ),
    (
        "antigravity/stream.jsonl",
        Format::AntigravityStream,
        &[
            "session 8377fd63-b158-49b9-b2c1-2d89ed9135ce",
            "tool run_command cat docs/protocol.md",
            "ended 2",
            "spent 2000 $0",
            "ended true",
        ],
    ),
    (
        "claude_code/stream.jsonl",
        Format::ClaudeStream,
        &[
            "session 7b1d6c52-0f7e-4c7b-9a35-3f3f0c9d8a11",
            "spent 18913 $0",
            "tool Bash cargo test",
            "ended toolu_01S",
            "spent 37826 $0",
            "spent 56739 $0",
            "tool Agent probe",
            "spent 75652 $0",
            "ended toolu_01T",
            "spent 94565 $0",
            "spent 947551 $842100",
            "ended true",
        ],
    ),
    (
        "claude_code/stream_max_turns.jsonl",
        Format::ClaudeStream,
        &[
            "session 7b1d6c52-0f7e-4c7b-9a35-3f3f0c9d8a11",
            "retrying: overloaded (529), attempt 1 of 10 until 2026-11-15T15:30:01.2Z",
            "spent 39 $20000",
            "ended false: Reached maximum number of turns (3)",
        ],
    ),
    ("cline/run_stream.jsonl", Format::Cline, &["spent 960 $0", "ended true"]),
    (
        "codex/exec_stream.jsonl",
        Format::CodexExec,
        &[
            "session 0199f2a4-6c1e-7d33-9b0e-3f1f6b2f7a55",
            "tool command_execution cargo test",
            "failed item_1 101",
            "tool file_change /home/dev/home/dev/widget/src/retry.rs",
            "ended item_2",
            "tool aldis/status",
            "answered : ",
            "ended item_4",
            "spent 187451 $0",
            "ended true",
        ],
    ),
    (
        "codex/exec_stream_failed.jsonl",
        Format::CodexExec,
        &[
            "session 0199f2a4-6c1e-7d33-9b0e-3f1f6b2f7a55",
            "limited: exceeded retry limit, last status: 429 Too Many Requests",
            "ended false: exceeded retry limit, last status: 429 Too Many Requests",
        ],
    ),
    (
        "copilot/stream.jsonl",
        Format::Copilot,
        &[
            "tool bash cargo test",
            "ended t1",
            "session 06b41838-31ab-4dc4-8481-96d85281bfa7",
            "ended true",
        ],
    ),
    (
        "cursor/stream.jsonl",
        Format::CursorStream,
        &[
            "session c6b62c6f-7ead-4fd6-9922-e952131177ff",
            "tool shell cargo test",
            "ended toolu_1 0",
            "ended true",
        ],
    ),
    (
        "droid/exec_result.json",
        Format::ClaudeStream,
        &["session 8af22e0a-d222-42c6-8c7e-7a059e391b0b", "spent 112564 $0", "ended true"],
    ),
    (
        "droid/stream.jsonl",
        Format::DroidStream,
        &[
            "session 8af22e0a-d222-42c6-8c7e-7a059e391b0b",
            "tool Execute cargo test",
            "ended call_1",
            "spent 112564 $0",
            "ended true",
        ],
    ),
    (
        "gemini/stream.jsonl",
        Format::GeminiStream,
        &[
            "session 4f0b7a2e-7d7c-4b6e-9f11-0d9f7d6c5b4a",
            "tool run_shell_command cargo test",
            "ended run_shell_command-1",
            "spent 41210 $0",
            "ended true",
        ],
    ),
    ("goose/stream.jsonl", Format::Goose, &["spent 4120 $0", "ended true"]),
    (
        "kilo/run_stream.jsonl",
        Format::OpenCode,
        &[
            "session ses_e0ade35b6ffezz60hTuHHHkqtu",
            "tool bash cat docs/protocol.md && exit 3",
            "failed call_1 3",
            "spent 15 $0",
            "tool bash printf 'test result: ok. 61 passed\\n'",
            "ended call_2 0",
            "spent 30 $0",
            "spent 45 $0",
            "ended true",
        ],
    ),
    (
        "kimi/stream.jsonl",
        Format::KimiStream,
        &[
            "tool Bash cargo test",
            "ended call_1",
            "session session_65632c80-629a-4f24-a636-5504c7e1f716",
            "ended true",
        ],
    ),
    (
        "opencode/run_stream.jsonl",
        Format::OpenCode,
        &[
            "session ses_5f1c2a7b9ffeAbCdEfGhIjKlMn",
            "tool bash cargo test",
            "ended call_1",
            "spent 940 $10000",
            "spent 3000 $30000",
            "ended true",
        ],
    ),
    (
        "pi/stream.jsonl",
        Format::Pi,
        &[
            "session 01a1f521-9012-73b0-bb37-65b7af6d2e95",
            "spent 15 $0",
            "tool bash cat docs/protocol.md && exit 3",
            "failed call_1 3",
            "spent 30 $0",
            "tool bash printf 'test result: ok. 61 passed\\n'",
            "ended call_2",
            "spent 45 $0",
            "ended true",
        ],
    ),
];

#[test]
fn samples() {
    for (path, format, want) in SAMPLES {
        let bytes = sample(path);
        for input in [Input::Format(format), Input::Auto] {
            assert_eq!(render(&read(input, [&*bytes])), want.join("\n"), "{path} as {input:?}");
        }
    }
    // The bus of OpenCode, one event per file.
    for (path, want) in [
        ("opencode/event_session_idle.json", "session ses_5f1c2a7b9ffeAbCdEfGhIjKlMn\nended true"),
        (
            "opencode/event_session_status.json",
            "session ses_5f1c2a7b9ffeAbCdEfGhIjKlMn\nended true",
        ),
        (
            "opencode/event_session_error.json",
            "session ses_5f1c2a7b9ffeAbCdEfGhIjKlMn\nfailed: aborted",
        ),
    ] {
        assert_eq!(render(&read(Input::Auto, [&*sample(path)])), want, "{path}");
    }
    for path in ["claude_code/transcript.jsonl", "codex/rollout.jsonl", "gemini/session.jsonl"] {
        assert_eq!(read(Input::Auto, [&*sample(path)]), [], "{path}: a file is no live output");
    }
}

#[test]
fn hosts_are_told_by_their_streams() {
    let lines = sample("codex/exec_stream.jsonl");
    let host = |name| Input::from_name(name).unwrap();
    assert_eq!(read(host("codex"), [&*lines]), read(Input::Auto, [&*lines]));
    // Another host's lines are what the agent printed.
    assert_eq!(read(host("gemini"), [&*lines]), []);
    let noise = [b"\xef\xbb\xbfwarning: x\n\n".as_slice(), &lines].concat();
    assert_eq!(read(Input::Auto, [&*noise]), read(Input::Auto, [&*lines]));
    let list =
        [b"[", &*lines.trim_ascii().split(|b| *b == b'\n').collect::<Vec<_>>().join(&b','), b"]"]
            .concat();
    assert_eq!(read(Input::Auto, [&*list]), read(Input::Auto, [&*lines]));
}
