//! Long inputs: the work for a line must not grow with the lines before it. Each of these would take
//! minutes if it did, and the tests have a limit.

use std::fmt::Write as _;

use super::*;

/// Reads lines, as a whole or as they come, and returns how many messages they are.
fn count(format: Format, following: bool, lines: impl FnOnce(&mut String)) -> usize {
    let mut text = String::new();
    lines(&mut text);
    let mut count = 0;
    let mut reader = Reader::new(format).with_filter(&marked);
    if following {
        reader = reader.following();
    }
    reader.push(text.as_bytes(), &mut |_| count += 1);
    reader.finish(&mut |_| count += 1);
    count
}

/// Writes so many lines, each with its number.
fn write(text: &mut String, count: usize, line: impl Fn(usize) -> String) {
    for number in 0..count {
        writeln!(text, "{}", line(number)).unwrap();
    }
}

#[test]
fn claude_with_many_sub_agents() {
    const MANY: usize = 50_000;
    let said = count(Format::ClaudeStream, false, |text| {
        write(text, MANY, |n| {
            format!(
                r#"{{"type":"assistant","parent_tool_use_id":"toolu_{n:07}","message":{{"id":"m{n}","content":[{{"type":"text","text":"x"}}]}}}}"#
            )
        });
        write(text, MANY, |_| {
            r#"{"type":"user","message":{"content":[{"type":"text","text":"on"}]}}"#.to_owned()
        });
    });
    assert_eq!(said, MANY);
}

#[test]
fn codex_with_many_events() {
    const MANY: usize = 150_000;
    for answered in [false, true] {
        let said = count(Format::CodexRollout, false, |text| {
            write(text, MANY, |n| {
                format!(
                    r#"{{"type":"event_msg","payload":{{"type":"agent_message","message":"SIGNAL {n}"}}}}"#
                )
            });
            if answered {
                write(text, MANY, |n| {
                    format!(
                        r#"{{"type":"response_item","payload":{{"type":"message","role":"assistant","content":[{{"type":"output_text","text":"SIGNAL {n}"}}]}}}}"#
                    )
                });
            }
        });
        assert_eq!(said, MANY);
    }
}

#[test]
fn copilot_with_many_deltas() {
    const MANY: usize = 300_000;
    let said = count(Format::Copilot, false, |text| {
        write(text, MANY, |n| {
            format!(
                r#"{{"type":"assistant.message_delta","ephemeral":true,"data":{{"messageId":"m{n:07}","deltaContent":"SIGNAL"}}}}"#
            )
        });
    });
    assert_eq!(said, MANY);
}

#[test]
fn opencode_with_many_parts() {
    const MANY: usize = 300_000;
    let said = count(Format::OpenCode, false, |text| {
        write(text, MANY, |n| {
            format!(
                r#"{{"type":"text","part":{{"id":"p{n:07}","messageID":"m","type":"text","text":"x"}}}}"#
            )
        });
    });
    assert_eq!(said, 1);
}

#[test]
fn gemini_with_many_resets_and_rewinds() {
    let prompt = |n| format!(r#"{{"id":"u{n}","type":"user","content":"x"}}"#);
    let answer = |n| format!(r#"{{"id":"a{n}","type":"gemini","content":"SIGNAL"}}"#);
    let reset = |_| r#"{"$set":{"messages":[]}}"#.to_owned();
    let rewind = |n| format!("{}\n{{\"$rewindTo\":\"a{n}\"}}", answer(n));
    let said = count(Format::GeminiSession, false, |text| {
        write(text, 1, answer);
        write(text, 400_000, prompt);
        write(text, 400_000, reset);
    });
    assert_eq!(said, 1);
    let said = count(Format::GeminiSession, false, |text| {
        write(text, 400_000, prompt);
        write(text, 250_000, rewind);
    });
    assert_eq!(said, 250_000);
    let said = count(Format::GeminiSession, true, |text| {
        write(text, 50_000, prompt);
        write(text, 50_000, reset);
        write(text, 50_000, rewind);
    });
    assert_eq!(said, 50_000);
}
