//! The table, row by row.

use super::*;
use crate::tests::{SAMPLES, sample};

/// Lines of formats that no sample shows.
const OTHERS: &[(Format, &str)] = &[
    (Format::Acp, r#"{"jsonrpc":"2.0","type":"x"}"#),
    (Format::GeminiSession, r#"{"sessionId":"s","messages":[]}"#),
    (Format::ClaudeCode, r#"{"parentUuid":"u","message":{}}"#),
    (Format::CursorTranscript, r#"{"role":"user","message":{"content":[]}}"#),
    (Format::Cline, r#"{"type":"team_event"}"#),
    (Format::Cline, r#"{"type":"say","say":"text","text":"a"}"#),
    (Format::Cline, r#"{"type":"ask","ask":"followup","text":"a"}"#),
    (Format::OpenCode, r#"{"type":"session.idle","properties":{}}"#),
    (Format::GeminiSession, r#"{"id":"1","type":"warning","content":"a"}"#),
    (Format::ClaudeCode, r#"{"type":"x","isSidechain":false}"#),
    (Format::ClaudeCode, r#"{"type":"summary","leafUuid":"u"}"#),
    (Format::ClaudeCode, r#"{"type":"summary","summary":"a"}"#),
    (Format::ClaudeStream, r#"{"type":"stream_event","event":{}}"#),
    (Format::DroidStream, r#"{"type":"system","tools":[]}"#),
    (Format::ClaudeCode, r#"{"type":"assistant","message":{}}"#),
    (Format::CursorStream, r#"{"type":"result","request_id":"r"}"#),
    (Format::ClaudeStream, r#"{"type":"keep_alive","session_id":"s"}"#),
    (Format::AntigravityStream, r#"{"type":"step_update","step_type":"agent_response"}"#),
];

/// Beginnings of lines that no whole line's row knows.
const BEGINNINGS: &[(Format, &str)] = &[
    (Format::GeminiSession, r#"{"type":"user","content":"a"#),
    (Format::ClaudeStream, r#"{"type":"user","message":{"a"#),
    (Format::ClaudeStream, r#"{"type":"result","result":"a"#),
    (Format::ClaudeStream, r#"{"type":"system","subtype":"init","cwd":"a"#),
    (Format::ClaudeStream, r#"{"type":"user","uuid":"u","content_":"a"#),
    (Format::DroidStream, r#"{"type":"completion","finalText":"a"#),
    (Format::DroidStream, r#"{"type":"tool_result","messageId":"m","value":"a"#),
    (Format::DroidStream, r#"{"type":"tool_call","toolId":"t","x":"a"#),
    (Format::DroidStream, r#"{"type":"tool_call","toolName":"t","x":"a"#),
    (Format::Acp, r#"{"method":"session/prompt","params":{"a"#),
    (Format::ClaudeCode, r#"{"isSidechain":false,"x":"a"#),
    (Format::GeminiSession, r#"{"id":"1","content":"a"#),
    (Format::ClaudeStream, r#"{"message":{"a"#),
];

/// Returns which row knows a line.
fn row_of(rows: &[Row], members: &Members<'_>) -> Option<usize> {
    let kind = members.text("type");
    rows.iter().position(|row| row.fits(kind.as_deref(), members))
}

#[test]
fn every_row_knows_lines_of_its_format_and_no_others() {
    let mut reached = vec![false; LINES.len()];
    let mut check = |format: Format, line: &str| {
        let Ok(members) = Members::of_bytes(line.as_bytes()) else { return };
        let Some(row) = row_of(LINES, &members) else { return };
        // Pi's messages have Droid's envelope; the line before them has told.
        if (format, LINES[row].format) == (Format::Pi, Format::Droid) {
            return;
        }
        assert_eq!(LINES[row].format, format, "{line:.200} fits {:?}", LINES[row]);
        reached[row] = true;
    };
    for (path, format) in SAMPLES {
        let text = String::from_utf8(sample(path)).unwrap();
        text.lines().for_each(|line| check(format, line));
    }
    OTHERS.iter().for_each(|(format, line)| check(*format, line));
    let unreached = LINES.iter().zip(reached).filter(|(_, reached)| !reached);
    let unreached: Vec<_> = unreached.map(|(row, _)| row).collect();
    assert!(unreached.is_empty(), "{unreached:#?}");
}

#[test]
fn every_row_of_cut_lines_is_needed() {
    let mut reached = vec![false; CUT.len()];
    for (format, line) in BEGINNINGS {
        assert_eq!(of_value(line.as_bytes(), true), Some(*format), "{line}");
        assert_eq!(of_value(line.as_bytes(), false), None, "{line}");
        if let Some(row) = row_of(CUT, &Members::before_cut(line.as_bytes())) {
            reached[row] = true;
        }
    }
    let unreached = CUT.iter().zip(reached).filter(|(_, reached)| !reached);
    let unreached: Vec<_> = unreached.map(|(row, _)| row).collect();
    assert!(unreached.is_empty(), "{unreached:#?}");
}
