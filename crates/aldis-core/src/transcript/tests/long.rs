//! Long inputs: the work for a line must not grow with the lines before it. Each of these would take
//! minutes if it did, and the tests have a limit.

use std::fmt::Write as _;

use super::*;

/// How many lines of a kind there are.
const MANY: usize = 150_000;

/// Reads lines, as a whole or as they come, and returns how many messages they are.
fn count(format: Format, following: bool, lines: impl FnOnce(&mut String)) -> usize {
    let mut text = String::new();
    lines(&mut text);
    let mut count = 0;
    let mut reader = Reader::new(format, &marked);
    if following {
        reader = reader.following();
    }
    reader.push(text.as_bytes(), &mut |_| count += 1);
    reader.finish(&mut |_| count += 1);
    count
}

/// Writes a line for each number.
fn write(text: &mut String, line: impl Fn(usize) -> String) {
    for number in 0..MANY {
        writeln!(text, "{}", line(number)).unwrap();
    }
}

#[test]
fn claude_with_many_sub_agents() {
    let said = count(Format::ClaudeStream, false, |text| {
        write(text, |n| {
            format!(
                r#"{{"type":"assistant","parent_tool_use_id":"toolu_{n:07}","message":{{"id":"m{n}","content":[{{"type":"text","text":"x"}}]}}}}"#
            )
        });
        write(text, |_| {
            r#"{"type":"user","message":{"content":[{"type":"text","text":"on"}]}}"#.to_owned()
        });
    });
    assert_eq!(said, MANY);
}

#[test]
fn codex_with_many_events() {
    for answered in [false, true] {
        let said = count(Format::CodexRollout, false, |text| {
            write(text, |n| {
                format!(
                    r#"{{"type":"event_msg","payload":{{"type":"agent_message","message":"step {n}"}}}}"#
                )
            });
            if answered {
                write(text, |n| {
                    format!(
                        r#"{{"type":"response_item","payload":{{"type":"message","role":"assistant","content":[{{"type":"output_text","text":"step {n}"}}]}}}}"#
                    )
                });
            }
        });
        assert_eq!(said, MANY);
    }
}

#[test]
fn copilot_with_many_deltas() {
    let said = count(Format::Copilot, false, |text| {
        write(text, |n| {
            format!(
                r#"{{"type":"assistant.message_delta","ephemeral":true,"data":{{"messageId":"m{n:07}","deltaContent":"x"}}}}"#
            )
        });
    });
    assert_eq!(said, MANY);
}

#[test]
fn opencode_with_many_parts() {
    let said = count(Format::OpenCode, false, |text| {
        write(text, |n| {
            format!(
                r#"{{"type":"text","part":{{"id":"p{n:07}","messageID":"m","type":"text","text":"x"}}}}"#
            )
        });
    });
    assert_eq!(said, 1);
}

#[test]
fn gemini_with_many_resets_and_rewinds() {
    let record = |id: String| format!(r#"{{"id":"{id}","type":"gemini","content":"x"}}"#);
    for following in [false, true] {
        let said = count(Format::GeminiSession, following, |text| {
            write(text, |n| record(format!("m{n}")));
            write(text, |_| r#"{"$set":{"messages":[]}}"#.to_owned());
        });
        assert_eq!(said, MANY);
        let said = count(Format::GeminiSession, following, |text| {
            write(text, |n| record(format!("m{n}")));
            write(text, |n| format!("{}\n{{\"$rewindTo\":\"r{n}\"}}", record(format!("r{n}"))));
        });
        assert_eq!(said, 2 * MANY);
    }
}
