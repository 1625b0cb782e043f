//! Files read from somewhere in the middle, lines seen alone, and times.

use super::*;

fn read_late(format: Format, text: &[u8], session: Option<&str>) -> Vec<Message> {
    let mut messages = Vec::new();
    let mut reader = Reader::new(format).with_filter(&marked).late(session);
    reader.push(text, &mut |message| messages.push(message));
    reader.finish(&mut |message| messages.push(message));
    messages
}

fn heard(messages: &[Message]) -> Vec<&str> {
    let said = messages.iter().filter(|message| message.origin.may_signal());
    said.map(|message| &*message.text).collect()
}

#[test]
fn the_end_of_a_transcript_says_what_it_says_in_the_whole() {
    let text = sample("claude_code/transcript.jsonl");
    let genuine = |messages: &[Message]| {
        let said = heard(messages).into_iter().filter(|text| *text == FINAL);
        said.count()
    };
    let starts = memchr::memchr_iter(b'\n', &text).map(|newline| newline + 1);
    for start in starts.step_by(9).take_while(|start| text.len() - start > 30_000) {
        let late = read_late(Format::ClaudeCode, &text[start..], None);
        assert_eq!(genuine(&late), 1, "from byte {start}");
    }
}

#[test]
fn what_hangs_on_entries_before_the_end_is_live_unless_a_prompt_went_back() {
    let line = |uuid: &str, parent: &str, kind: &str, text: &str| {
        format!(
            r#"{{"parentUuid":"{parent}","uuid":"{uuid}","type":"{kind}","sessionId":"S1",
            "message":{{"role":"{kind}","content":[{{"type":"text","text":"{text}"}}]}}}}"#
        )
        .replace('\n', "")
            + "\n"
    };
    let first = line("a1", "before", "assistant", "SIGNAL one");
    let second = line("a2", "a1", "assistant", "SIGNAL two");
    let side_by_side = line("r2", "also-before", "assistant", "SIGNAL three");
    let all = [&*first, &second, &side_by_side].concat();
    let late = read_late(Format::ClaudeCode, all.as_bytes(), None);
    assert_eq!(heard(&late), ["SIGNAL one", "SIGNAL two", "SIGNAL three"]);

    let back = line("u2", "long-before", "user", "again");
    let anew = line("a3", "u2", "assistant", "SIGNAL four");
    let all = [&*first, &second, &back, &anew].concat();
    assert_eq!(heard(&read_late(Format::ClaudeCode, all.as_bytes(), None)), ["SIGNAL four"]);

    // Entries of another session, be they the last ones, change nothing.
    let foreign = line("x1", "y", "assistant", "SIGNAL five").replace("S1", "S2");
    let all = [&*first, &second, &foreign].concat();
    let late = read_late(Format::ClaudeCode, all.as_bytes(), Some("S1"));
    assert_eq!(heard(&late), ["SIGNAL one", "SIGNAL two"]);
}

#[test]
fn gemini_goes_back_to_before_the_end() {
    let text = br#"{"id":"m3","type":"gemini","content":"SIGNAL"}
{"$rewindTo":"m1"}
{"id":"m4","type":"gemini","content":"SIGNAL again"}"#;
    assert_eq!(heard(&read_late(Format::GeminiSession, text, None)), ["SIGNAL again"]);
}

#[test]
fn codex_ends_a_turn_with_words_that_were_heard_before() {
    let end =
        br#"{"type":"event_msg","payload":{"type":"task_complete","last_agent_message":"SIGNAL"}}
{"type":"event_msg","payload":{"type":"task_started"}}
{"type":"event_msg","payload":{"type":"task_complete","last_agent_message":"SIGNAL new"}}"#;
    assert_eq!(heard(&read_late(Format::CodexRollout, end, None)), ["SIGNAL new"]);
    let whole = read(end);
    assert_eq!(heard(&whole), ["SIGNAL", "SIGNAL new"]);
}

#[test]
fn times_are_read_where_there_are_any() {
    for (name, format) in SAMPLES {
        let timeless = [
            "acp/v1_turn.jsonl",
            "acp/v2_draft_turn.jsonl",
            "amp/stream.jsonl",
            "antigravity/stream.jsonl",
            "claude_code/stream.jsonl",
            "cline/run_stream.jsonl",
            "codex/exec_stream.jsonl",
            "cursor/stream.jsonl",
            "droid/exec_result.json",
            "kimi/stream.jsonl",
            "kiro/session.jsonl",
        ];
        let messages = read_chunks(format, [&*sample(name)], &marked).0;
        let last = messages.iter().rfind(|message| message.text == FINAL).unwrap();
        assert_eq!(last.at.is_none(), timeless.contains(&name), "{name}: {:?}", last.at);
        let year = last.at.map(|at| at.to_string()[..4].to_owned());
        assert!(year.is_none_or(|year| year == "2026"), "{name}: {:?}", last.at);
    }
}

#[test]
fn single_lines_are_understood() {
    use Mark::{Notice, Prompt};
    let call =
        |id: &str, name: &str| Mark::Call { id: id.into(), name: name.into(), reports: false };
    let result = |id: &str| Mark::Result { id: id.into(), ids: Vec::new(), receipt: None };
    let claude = |rest: &str| format!(r#"{{"sessionId":"S1","uuid":"u",{rest}}}"#);
    let user =
        |content: &str| format!(r#""type":"user","message":{{"role":"user","content":{content}}}"#);
    let agent = |content: &str| {
        format!(r#""type":"assistant","message":{{"role":"assistant","content":{content}}}"#)
    };
    let result_block =
        r#"[{"type":"tool_result","tool_use_id":"t"},{"type":"text","text":"note"}]"#;
    let call_block = r#"[{"type":"text","text":"ok"},{"type":"tool_use","id":"t","name":"Bash"}]"#;
    for (line, marks) in [
        (claude(&user("\"go\"")), vec![Prompt]),
        (claude(&user(r#"[{"type":"text","text":"go"},{"type":"image"}]"#)), vec![Prompt]),
        (
            claude(&user(
                r#"[{"type":"text","text":"<system-reminder>x</system-reminder>"},{"type":"text","text":"go"}]"#,
            )),
            vec![Notice, Prompt],
        ),
        (claude(&user("\"Stop hook feedback:\\nno\"")), vec![Notice]),
        (claude(&user("\"[Request interrupted by user]\"")), vec![Notice]),
        (claude(&format!(r#""isMeta":true,{}"#, user("\"go\""))), vec![Notice]),
        (claude(&format!(r#""isCompactSummary":true,{}"#, user("\"go\""))), vec![Notice]),
        (claude(&format!(r#""origin":{{"kind":"peer"}},{}"#, user("\"go\""))), vec![Notice]),
        (claude(&format!(r#""origin":{{"kind":"human"}},{}"#, user("\"go\""))), vec![Prompt]),
        (claude(&format!(r#""isSidechain":true,{}"#, user("\"go\""))), vec![]),
        (claude(&user("\"go\"")).replace("S1", "S2"), vec![]),
        (claude(&user("\" \"")), vec![]),
        (claude(&user(result_block)), vec![result("t")]),
        (claude(&format!(r#""toolUseResult":"x",{}"#, user("\"go\""))), vec![result("")]),
        (claude(&agent(call_block)), vec![Mark::Text, call("t", "Bash")]),
        (claude(&agent(r#"[{"type":"thinking","thinking":"hm"}]"#)), vec![]),
        (claude(&format!(r#""isApiErrorMessage":true,{}"#, agent("\"x\""))), vec![]),
        (claude(&format!(r#""error":"overloaded",{}"#, agent("\"x\""))), vec![]),
        (claude(&agent("\"x\"")).replace("\"role\"", "\"model\":\"<synthetic>\",\"role\""), vec![]),
        (claude(r#""type":"system","content":"x""#), vec![]),
        ("{\"type\":\"mode\"}".to_owned(), vec![]),
        ("not json".to_owned(), vec![]),
        (String::new(), vec![]),
        // Qwen's parts.
        (
            claude(
                r#""type":"assistant","message":{"role":"model","parts":[{"text":"hm","thought":true},{"text":"ok"},{"functionCall":{"id":"t","name":"shell"}}]}"#,
            ),
            vec![Mark::Text, call("t", "shell")],
        ),
        (
            claude(
                r#""type":"tool_result","message":{"role":"user","parts":[{"functionResponse":{"id":"t"}}]}"#,
            ),
            vec![result("t")],
        ),
    ] {
        let found = summarize(Format::ClaudeCode, line.as_bytes(), Some("S1"));
        assert_eq!(found.marks, marks, "{line}");
    }
    let reset = br#"{"$set":{"messages":[{"id":"1","type":"user","content":"go"}]}}"#;
    assert_eq!(summarize(Format::GeminiSession, reset, None).marks, []);
    let broken = [claude(&user("\"go\"")).as_bytes(), b"\xff"].concat();
    assert_eq!(summarize(Format::ClaudeCode, &broken, None).marks, []);
    let bent = claude(&user("\"go?\"")).into_bytes();
    let bent: Vec<u8> = bent.iter().map(|byte| if *byte == b'?' { 0xff } else { *byte }).collect();
    assert_eq!(summarize(Format::ClaudeCode, &bent, None).marks, [Prompt]);
}

#[test]
fn each_sample_has_its_turns_calls_and_answers() {
    for (name, format, prompts) in [
        ("codex/rollout.jsonl", Format::CodexRollout, 1),
        ("copilot/events.jsonl", Format::Copilot, 1),
        ("droid/transcript.jsonl", Format::Droid, 1),
        ("gemini/session.jsonl", Format::GeminiSession, 1),
    ] {
        let text = sample(name);
        let lines = text.split(|byte| *byte == b'\n');
        let marks: Vec<Mark> = lines.flat_map(|line| summarize(format, line, None).marks).collect();
        let count =
            |wanted: &dyn Fn(&Mark) -> bool| marks.iter().filter(|mark| wanted(mark)).count();
        assert_eq!(count(&|mark| *mark == Mark::Prompt), prompts, "{name}");
        assert_eq!(count(&|mark| matches!(mark, Mark::Call { .. })), 1, "{name}");
        assert_eq!(count(&|mark| matches!(mark, Mark::Result { .. })), 1, "{name}");
        assert_eq!(marks.last(), Some(&Mark::Text), "{name}");
    }
}

proptest! {
    #[test]
    fn any_line_can_be_looked_at(line: Vec<u8>) {
        for format in Format::ALL.iter().copied() {
            let _seen = summarize(format, &line, Some("S1"));
        }
    }
}
