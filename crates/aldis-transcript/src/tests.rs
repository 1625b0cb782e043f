//! Samples of every host, hostile files, and properties of the reader.

mod claude_code;
mod detection;
mod hosts;
mod late;
mod long;
mod more_hosts;

use std::path::PathBuf;

use proptest::prelude::*;

use super::*;
use aldis_signal::message::Role;

const FINAL: &str = "The retry port is complete: all 61 tests pass and the docs are updated.\n\n\
                     SIGNAL: AUTO_COMPLETE";

/// Every stream and transcript among the samples whose agent ends with the marker.
pub(crate) const SAMPLES: [(&str, Format); 26] = [
    ("acp/v1_turn.jsonl", Format::Acp),
    ("acp/v2_draft_turn.jsonl", Format::Acp),
    ("amp/stream.jsonl", Format::ClaudeStream),
    ("antigravity/stream.jsonl", Format::AntigravityStream),
    ("antigravity/transcript.jsonl", Format::Antigravity),
    ("claude_code/stream.jsonl", Format::ClaudeStream),
    ("claude_code/transcript.jsonl", Format::ClaudeCode),
    ("cline/run_stream.jsonl", Format::Cline),
    ("codex/exec_stream.jsonl", Format::CodexExec),
    ("codex/rollout.jsonl", Format::CodexRollout),
    ("copilot/events.jsonl", Format::Copilot),
    ("copilot/stream.jsonl", Format::Copilot),
    ("cursor/stream.jsonl", Format::CursorStream),
    ("droid/exec_result.json", Format::ClaudeStream),
    ("droid/stream.jsonl", Format::DroidStream),
    ("droid/transcript.jsonl", Format::Droid),
    ("gemini/session.jsonl", Format::GeminiSession),
    ("gemini/stream.jsonl", Format::GeminiStream),
    ("goose/stream.jsonl", Format::Goose),
    ("kilo/run_stream.jsonl", Format::OpenCode),
    ("kimi/stream.jsonl", Format::KimiStream),
    ("kimi/wire.jsonl", Format::KimiWire),
    ("kiro/session.jsonl", Format::Kiro),
    ("opencode/run_stream.jsonl", Format::OpenCode),
    ("pi/session.jsonl", Format::Pi),
    ("pi/stream.jsonl", Format::Pi),
];

#[expect(clippy::disallowed_methods, reason = "the samples are files; only tests read them")]
fn testdata(path: &str) -> Vec<u8> {
    let root = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../testdata");
    std::fs::read(root.join(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
}

pub(crate) fn sample(path: &str) -> Vec<u8> {
    testdata(&format!("hosts/samples/{path}"))
}

fn marked(raw: &[u8]) -> bool {
    let found = |literal: &[u8]| memchr::memmem::find(raw, literal).is_some();
    found(b"SIGNAL") || found(b"AUTO_COMP") || found(b"TURN_")
}

/// The one place that drives a reader.
fn read_chunks<'a>(
    format: Format,
    chunks: impl IntoIterator<Item = &'a [u8]>,
    may_matter: &dyn Fn(&[u8]) -> bool,
) -> (Vec<Message>, u64) {
    let mut messages = Vec::new();
    let mut reader = Reader::new(format).with_filter(may_matter);
    for chunk in chunks {
        reader.push(chunk, &mut |message| messages.push(message));
    }
    let skipped = reader.finish_counting(&mut |message| messages.push(message));
    (messages, skipped)
}

fn read(bytes: &[u8]) -> Vec<Message> {
    read_chunks(detect(bytes), [bytes], &marked).0
}

fn follow(format: Format, bytes: &[u8]) -> Vec<(usize, Message)> {
    let mut messages = Vec::new();
    let mut reader = Reader::new(format).with_filter(&marked).following();
    for (line, bytes) in bytes.split_inclusive(|byte| *byte == b'\n').enumerate() {
        reader.push(bytes, &mut |message| messages.push((line + 1, message)));
    }
    reader.finish(&mut |message| messages.push((usize::MAX, message)));
    messages
}

fn signalling(messages: &[Message]) -> Vec<&Message> {
    messages.iter().filter(|message| message.origin.may_signal()).collect()
}

/// Texts of the messages that may signal and hold the marker.
fn claims(bytes: &[u8]) -> Vec<String> {
    let messages = read(bytes);
    let claims =
        signalling(&messages).into_iter().filter(|message| message.text.contains("SIGNAL"));
    claims.map(|message| message.text.clone()).collect()
}

#[test]
fn every_sample_ends_in_one_claim_of_the_agent() {
    for (path, format) in SAMPLES {
        let bytes = sample(path);
        assert_eq!(detect(&bytes), format, "{path}");
        let messages = read(&bytes);
        let finals: Vec<_> = signalling(&messages)
            .into_iter()
            .filter(|message| message.origin.role == Role::Assistant)
            .filter(|message| message.text.ends_with("\nSIGNAL: AUTO_COMPLETE"))
            .collect();
        assert_eq!(finals.len(), 1, "{path}: {finals:#?}");
        assert_eq!(finals[0].text, FINAL, "{path}");
        let last = signalling(&messages).into_iter().max_by_key(|message| message.index);
        assert_eq!(last, Some(finals[0]), "{path}");
    }
}

#[test]
fn look_alikes_of_the_samples_are_told_apart() {
    for (path, roles) in [
        ("acp/v1_turn.jsonl", "tool assistant"),
        ("amp/stream.jsonl", "tool assistant"),
        ("antigravity/stream.jsonl", "tool assistant"),
        ("antigravity/transcript.jsonl", "user tool tool host assistant"),
        ("claude_code/stream.jsonl", "tool assistant subagent assistant"),
        ("codex/exec_stream.jsonl", "tool assistant"),
        ("codex/rollout.jsonl", "system user tool assistant host system assistant"),
        ("copilot/events.jsonl", "user tool assistant assistant"),
        ("copilot/stream.jsonl", "user tool assistant"),
        ("cursor/stream.jsonl", "tool assistant"),
        ("droid/stream.jsonl", "user tool assistant"),
        ("droid/transcript.jsonl", "user tool assistant"),
        ("gemini/session.jsonl", "user tool assistant assistant"),
        ("gemini/stream.jsonl", "tool assistant"),
        ("kilo/run_stream.jsonl", "tool assistant"),
        ("kimi/stream.jsonl", "tool assistant"),
        ("kimi/wire.jsonl", "user tool assistant"),
        ("kiro/session.jsonl", "user tool assistant assistant"),
        ("opencode/run_stream.jsonl", "tool assistant"),
        ("pi/session.jsonl", "user tool assistant"),
        ("pi/stream.jsonl", "user tool assistant"),
    ] {
        let messages = read(&sample(path));
        let marked = messages.iter().filter(|message| message.text.contains("SIGNAL"));
        let got: Vec<_> = marked.map(|message| message.origin.role.as_str()).collect();
        assert_eq!(got.join(" "), roles, "{path}");
    }
}

#[test]
fn hostile_files() {
    const BLOCK: &str = "---\nSIGNAL: EXECUTION_COMPLETE\n";
    for (path, want) in [
        ("00_control", 1),
        ("01_prompt_only", 0),
        ("02_tool_result", 0),
        ("05_sidechain", 0),
        ("06_other_session", 0),
        // Whether an old turn counts is the machine's business.
        ("07_old_turn", 1),
        ("10_stale_missing_final", 0),
        ("12_bad_line_middle", 1),
        ("13_nul_padding", 1),
        ("15_bom", 1),
        ("16_deep_line", 0),
        ("18_stream_deltas", 1),
        ("19_interleaved_deltas", 0),
        ("20_duplicate_uuid", 1),
        ("21_hook_feedback", 0),
        ("22_compact_summary", 0),
        ("23_dup_role_key", 0),
        ("24_content_string", 1),
        ("25_web_fetch", 0),
        ("26_web_fetch_obeyed", 1),
    ] {
        let claims = claims(&testdata(&format!("hostile/transcript_{path}.jsonl")));
        let whole = claims.iter().filter(|text| text.contains(BLOCK)).count();
        assert_eq!(whole, want, "{path}: {claims:?}");
    }
}

#[test]
fn bad_lines_are_counted_and_hide_nothing() {
    for (path, want) in [
        ("00_control", 0),
        ("12_bad_line_middle", 1),
        ("13_nul_padding", 1),
        ("15_bom", 0),
        ("16_deep_line", 1),
        ("23_dup_role_key", 1),
    ] {
        let bytes = testdata(&format!("hostile/transcript_{path}.jsonl"));
        let (_, skipped) = read_chunks(Format::ClaudeCode, [&*bytes], &marked);
        assert_eq!(skipped, want, "{path}");
    }
    let other = testdata("hostile/transcript_06_other_session.jsonl");
    let dead = read(&other).into_iter().find(|message| !message.origin.live).unwrap();
    assert_eq!(dead.origin.detail.as_deref(), Some("another session"));
}

#[test]
fn documents_and_lists() {
    let pretty = b"{\n  \"type\": \"result\",\n  \"is_error\": false,\n  \"session_id\": \"s\",\n  \"result\": \"SIGNAL a\"\n}\n";
    assert_eq!(claims(pretty), ["SIGNAL a"]);
    let list = br#"[{"type":"system","subtype":"init","session_id":"s","uuid":"u"},{"type":"result","is_error":false,"session_id":"s","result":"SIGNAL a"}]"#;
    assert_eq!(claims(list), ["SIGNAL a"]);
    let gemini = b"{\n \"sessionId\": \"s\",\n \"messages\": [{\"id\":\"1\",\"type\":\"user\",\"content\":\"SIGNAL\"},\n {\"id\":\"2\",\"type\":\"gemini\",\"content\":\"SIGNAL a\"}]\n}";
    assert_eq!(detect(gemini), Format::GeminiSession);
    assert_eq!(claims(gemini), ["SIGNAL a"]);
    let error = br#"{"type":"result","is_error":true,"session_id":"s","result":"SIGNAL a"}"#;
    assert_eq!(read(error)[0].origin.role, Role::Host);
}

#[test]
fn names_and_detection() {
    for format in Format::ALL.iter().copied() {
        assert_eq!(Format::from_name(format.as_str()), Some(format));
        assert!(Input::from_name(format.as_str()).is_some());
    }
    for host in HOSTS {
        assert!(Format::from_name(host).is_some() && Input::from_name(host).is_some(), "{host}");
    }
    assert_eq!(Input::from_name("nonesuch"), None);
    let resolve = |host, path| Input::from_name(host).unwrap().resolve(&sample(path));
    assert_eq!(resolve("codex", "codex/exec_stream.jsonl"), Format::CodexExec);
    assert_eq!(resolve("codex", "codex/rollout.jsonl"), Format::CodexRollout);
    assert_eq!(resolve("gemini", "codex/rollout.jsonl"), Format::GeminiSession);
    assert_eq!(resolve("droid", "droid/exec_result.json"), Format::ClaudeStream);
    for text in ["", "All done.\n\nSIGNAL: X\n", "{\"a\":1}\nnot a transcript\n", "[1,2]\n", "{\n"]
    {
        assert_eq!(detect(text.as_bytes()), Format::Text, "{text:?}");
    }
    let flat = br#"{"type":"message","role":"assistant","content":"a"}"#;
    assert_eq!(Input::from_name("copilot").unwrap().resolve(flat), Format::GeminiStream);
    for (path, format) in SAMPLES {
        let bytes = [br#"{"type":"zork","session_id":"s"}"#, &b"\n"[..], &sample(path)].concat();
        // One document is not a line of a stream.
        if !path.ends_with(".json") {
            assert_eq!(detect(&bytes), format, "{path} after an unknown line");
        }
    }
    let noise =
        [b"\0\0\xef\xbb\xbf\nwarning: x\n".to_vec(), sample("copilot/stream.jsonl")].concat();
    assert_eq!(detect(&noise), Format::Copilot);
    let long = sample("claude_code/transcript.jsonl");
    let from_entry = long.split(|byte| *byte == b'\n').nth(4).unwrap();
    assert_eq!(detect(&from_entry[..200]), Format::ClaudeCode);
    for (cut, format) in [
        (r#"{"sessionId": "s", "projectHash": "h", "messages": [{"id""#, Format::GeminiSession),
        ("{\n  \"sessionId\": \"s\",\n  \"messages\": [\n", Format::GeminiSession),
        (r#"{"timestamp":"t","type":"session_meta","payload":{"id"#, Format::CodexRollout),
        (r#"{"type":"message","id":"m","message":{"role"#, Format::Droid),
        (r#"{"type":"user.message","data":{"content":"a"#, Format::Copilot),
        (r#"{"type":"message","role":"user","content":"a"#, Format::GeminiStream),
        (r#"{"type":"result","is_error":false,"result":"a"#, Format::ClaudeStream),
        (r#"{"type":"user","sessionId":"s","message":{"#, Format::ClaudeCode),
        (r#"{"type":"system","uuid":"u","session_id":"s","tools":["#, Format::ClaudeStream),
        (r#"{"type":"system","session_id":"s","tools":["#, Format::ClaudeStream),
        (r#"{"type":"assistant","message":{"content"#, Format::ClaudeStream),
    ] {
        assert_eq!(detect(cut.as_bytes()), format, "{cut}");
    }
}

#[test]
fn following_gives_messages_as_they_come() {
    for (path, format) in SAMPLES {
        let bytes = sample(path);
        let messages = follow(format, &bytes);
        let found = messages.iter().rfind(|(_, message)| message.text == FINAL);
        let Some((line, message)) = found else { panic!("{path}: {messages:#?}") };
        assert!(message.origin.may_signal(), "{path}");
        if path == "claude_code/transcript.jsonl" {
            assert_eq!(*line, 389);
        }
    }
}

#[test]
fn broken_text_is_mended() {
    let line = b"{\"type\":\"assistant\",\"sessionId\":\"s\",\"message\":{\"role\":\"assistant\",\"content\":\"SIGNAL \xff\"}}\n";
    let (messages, skipped) = read_chunks(Format::ClaudeCode, [&line[..]], &marked);
    assert_eq!((messages[0].text.as_str(), skipped), ("SIGNAL \u{fffd}", 0));
}

#[test]
fn half_a_character_costs_no_words() {
    for (path, _) in SAMPLES {
        let sound = String::from_utf8(sample(path)).unwrap();
        let cut = sound.replace("retry port is complete", r"retry port \ud83d is complete");
        let said = claims(cut.as_bytes()).pop().unwrap_or_default();
        assert_eq!(said.replace("\u{fffd} ", ""), FINAL, "{path}");
        assert_eq!(said == FINAL, cut == sound, "{path}: {said}");
    }
}

#[test]
fn streams_count_each_text_once() {
    let complete = r#"{"type":"assistant","message":{"content":[{"type":"text","text":"SIGNAL a b"}]},"session_id":"s"}"#;
    let piece = |text: &str| {
        format!(
            r#"{{"type":"assistant","message":{{"content":[{{"type":"text","text":"{text}"}}]}},"session_id":"s","timestamp_ms":1}}"#
        )
    };
    let pieces = [piece("SIGNAL a"), piece(" b")].join("\n");
    let read = |lines: &str| read_chunks(Format::CursorStream, [lines.as_bytes()], &marked).0;
    for lines in [pieces.clone(), format!("{pieces}\n{complete}")] {
        let texts: Vec<_> = read(&lines).into_iter().map(|message| message.text).collect();
        assert_eq!(texts, ["SIGNAL a b"]);
    }
    let delta =
        r#"{"type":"assistant.message_delta","data":{"messageId":"m","deltaContent":"SIGNAL"}}"#;
    assert_eq!(claims(delta.as_bytes()), ["SIGNAL"]);
    let rollout = sample("codex/rollout.jsonl");
    let without_items: Vec<_> = rollout
        .split_inclusive(|byte| *byte == b'\n')
        .filter(|line| memchr::memmem::find(line, b"output_text").is_none())
        .collect();
    assert_eq!(claims(&without_items.concat()), [FINAL]);
}

fn any_sample() -> impl Strategy<Value = (Vec<u8>, Format)> {
    let hostile = ["12_bad_line_middle", "13_nul_padding", "15_bom", "19_interleaved_deltas"]
        .map(|name| testdata(&format!("hostile/transcript_{name}.jsonl")))
        .map(|bytes| (detect(&bytes), bytes));
    let samples = SAMPLES.map(|(path, format)| (format, sample(path)));
    let all: Vec<_> = samples.into_iter().chain(hostile).map(|(f, bytes)| (bytes, f)).collect();
    prop::sample::select(all)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]

    #[test]
    fn chunking_makes_no_difference(
        (bytes, format) in any_sample(),
        cuts in prop::collection::vec(any::<prop::sample::Index>(), 0..40),
    ) {
        let mut cuts: Vec<_> = cuts.iter().map(|cut| cut.index(bytes.len() + 1)).collect();
        cuts.extend([0, bytes.len()]);
        cuts.sort_unstable();
        let chunks = cuts.windows(2).map(|pair| &bytes[pair[0]..pair[1]]);
        prop_assert_eq!(
            read_chunks(format, chunks, &marked),
            read_chunks(format, [&*bytes], &marked)
        );
    }

    #[test]
    fn signals_only_leaves_out_nothing_that_may_signal(
        (bytes, format) in any_sample(),
        copies in prop::collection::vec(any::<(prop::sample::Index, prop::sample::Index)>(), 0..4),
        gaps in prop::collection::vec(any::<prop::sample::Index>(), 0..3),
    ) {
        let mut lines: Vec<&[u8]> = bytes.split_inclusive(|byte| *byte == b'\n').collect();
        for (from, to) in copies {
            lines.insert(to.index(lines.len()), lines[from.index(lines.len())]);
        }
        for gap in gaps {
            // Of a single line nothing may be missing.
            if lines.len() > 1 {
                lines.remove(gap.index(lines.len()));
            }
        }
        let bytes = lines.concat();
        let mut heard = Vec::new();
        let mut reader = Reader::new(format).with_filter(&marked).signals_only();
        reader.push(&bytes, &mut |message| heard.push(message));
        reader.finish(&mut |message| heard.push(message));
        let (all, _) = read_chunks(format, [&*bytes], &marked);
        prop_assert_eq!(signalling(&heard), signalling(&all));
    }

    #[test]
    fn what_the_filter_leaves_out_holds_no_claim(
        (bytes, format) in any_sample(),
        copies in prop::collection::vec(any::<(prop::sample::Index, prop::sample::Index)>(), 0..4),
        hits in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..8),
        is_only in any::<bool>(),
    ) {
        let mut lines: Vec<&[u8]> = bytes.split_inclusive(|byte| *byte == b'\n').collect();
        for (from, to) in copies {
            lines.insert(to.index(lines.len()), lines[from.index(lines.len())]);
        }
        let mut bytes = lines.concat();
        for (at, byte) in hits {
            let at = at.index(bytes.len());
            bytes[at] = byte;
        }
        let read = |reader: Reader<'_>| {
            let mut reader = if is_only { reader.signals_only() } else { reader };
            let mut claims = Vec::new();
            let mut sink = |message: Message| {
                if message.origin.may_signal() && marked(message.text.as_bytes()) {
                    claims.push((message.entry, message.text));
                }
            };
            reader.push(&bytes, &mut sink);
            reader.finish(&mut sink);
            claims
        };
        prop_assert_eq!(read(Reader::new(format).with_filter(&marked)), read(Reader::new(format)));
    }

    #[test]
    fn damaged_input_never_panics(
        (mut bytes, format) in any_sample(),
        hits in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..30),
    ) {
        for (at, byte) in hits {
            let at = at.index(bytes.len());
            bytes[at] = byte;
        }
        let cut = bytes.len().min(64 << 10);
        detect(&bytes[..cut]);
        read_chunks(format, [&*bytes], &|_| true);
        follow(format, &bytes);
    }

    #[test]
    fn asking_for_events_changes_no_message(
        (mut bytes, format) in any_sample(),
        hits in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..30),
        size in 1..5_000_usize,
    ) {
        for (at, byte) in hits {
            let at = at.index(bytes.len());
            bytes[at] = byte;
        }
        let now = Timestamp::from_millis(1_794_787_200_000);
        let mut found = Vec::new();
        let mut sink = |output| match output {
            Output::Message(message) => found.push(message),
            Output::Activity(_) | Output::Event(_) => {}
        };
        let mut reader = Reader::new(format).with_filter(&marked).following().with_events(Zone::utc());
        bytes.chunks(size).for_each(|chunk| reader.push_live(chunk, now, &mut sink));
        reader.finish_live(now, &mut sink);
        let messages: Vec<_> = follow(format, &bytes).into_iter().map(|(_, message)| message).collect();
        prop_assert_eq!(found, messages);
    }

    #[test]
    fn any_format_takes_any_sample(
        (bytes, _) in any_sample(),
        format in prop::sample::select(Format::ALL.to_vec()),
    ) {
        read_chunks(format, [&*bytes], &|_| true);
    }
}
