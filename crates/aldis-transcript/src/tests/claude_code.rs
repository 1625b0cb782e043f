//! Claude Code's transcripts: look-alikes, branches, and lines that are recognised unparsed.

use serde::Deserialize;

use super::*;

#[derive(Deserialize)]
struct Expected {
    final_text: String,
    genuine: Vec<Place>,
    look_alikes: Vec<Place>,
}

#[derive(Deserialize)]
struct Place {
    line: u64,
    kind: String,
}

#[test]
fn claude_transcript_has_each_look_alike_in_its_place() {
    let expected = sample("claude_code/transcript_expected.json");
    let expected: Expected = serde_json::from_slice(&expected).unwrap();
    let messages = read(&sample("claude_code/transcript.jsonl"));
    let at = |line| messages.iter().filter(move |message| message.entry == Some(line));
    for place in &expected.look_alikes {
        let mut here = at(place.line).peekable();
        assert!(here.peek().is_some(), "{} {}: no message", place.line, place.kind);
        let live_text = [174, 206, 270, 271].contains(&place.line);
        for message in here {
            let origin = &message.origin;
            assert_eq!(
                origin.may_signal(),
                live_text,
                "{} {}: {message:?}",
                place.line,
                place.kind
            );
        }
    }
    let line = expected.genuine[0].line;
    let genuine: Vec<_> = at(line).collect();
    assert_eq!(genuine.len(), 1);
    assert_eq!(genuine[0].text, expected.final_text);
    assert!(genuine[0].origin.may_signal());
}

#[test]
fn claude_transcript_details() {
    let messages = read(&sample("claude_code/transcript.jsonl"));
    for (line, role, detail) in [
        (5, Role::Host, "hook record"),
        (6, Role::User, "copy of a prompt"),
        (8, Role::User, "prompt"),
        (12, Role::Tool, "thinking"),
        (16, Role::Tool, "result of Read docs/signals.md"),
        (18, Role::Tool, "result of Grep"),
        (79, Role::Tool, "input of Write"),
        (125, Role::Host, "hook feedback"),
        (126, Role::Host, "stop_hook_summary record"),
        (244, Role::Host, "task-notification"),
        (245, Role::User, "queued prompt"),
        (279, Role::System, "compaction summary"),
        (280, Role::Host, "injected"),
        (284, Role::Host, "API error"),
        (306, Role::Assistant, "rewound branch"),
        (310, Role::Assistant, "aborted message"),
    ] {
        let here: Vec<_> = messages.iter().filter(|message| message.entry == Some(line)).collect();
        assert_eq!(here.len(), 1, "line {line}: {here:#?}");
        let origin = &here[0].origin;
        assert_eq!((origin.role, origin.detail.as_deref()), (role, Some(detail)), "line {line}");
    }
    let side = messages.iter().find(|message| message.entry == Some(220)).unwrap();
    assert!(side.origin.sidechain);
    assert_eq!(side.origin.agent.as_deref(), Some("af43b41427eaa9b3f"));
}

#[test]
fn unfinished_claude_transcripts_hold_no_claim() {
    for path in ["transcript_lagging.jsonl", "transcript_torn_tail.jsonl"] {
        let bytes = sample(&format!("claude_code/{path}"));
        let (messages, skipped) = read_chunks(Format::ClaudeCode, [&*bytes], &marked);
        assert!(signalling(&messages).iter().all(|message| message.text != FINAL), "{path}");
        assert_eq!(skipped, u64::from(path.contains("torn")), "{path}");
        // The last message of the agent comes although nothing in it matters.
        let last = signalling(&messages).into_iter().next_back().unwrap();
        assert!(!last.text.contains("SIGNAL"), "{path}: {last:?}");
    }
}

/// One line of a Claude Code transcript.
fn entry(kind: &str, uuid: &str, parent: &str, content: &str, more: &str) -> String {
    let parent = if parent.is_empty() { "null".into() } else { format!("\"{parent}\"") };
    let content = serde_json::to_string(content).unwrap();
    format!(
        "{{\"parentUuid\":{parent},\"isSidechain\":false,\"type\":\"{kind}\",\"message\":\
         {{\"role\":\"{kind}\",\"content\":{content}}},\"uuid\":\"{uuid}\"{more}}}\n"
    )
}

#[test]
fn claude_branches() {
    let rewound = [
        entry("user", "a", "", "go", ""),
        entry("assistant", "b", "a", "SIGNAL old", ""),
        entry("user", "c", "a", "go again", ""),
        entry("assistant", "d", "c", "SIGNAL new", ""),
    ];
    let cleared = [
        entry("user", "a", "", "go", ""),
        entry("assistant", "b", "a", "SIGNAL old", ""),
        entry("user", "c", "", "something new", ""),
        entry("assistant", "d", "c", "SIGNAL new", ""),
    ];
    let compacted = [
        entry("assistant", "b", "", "SIGNAL old", ""),
        entry("system", "c", "", "compacted", ""),
        entry("assistant", "d", "c", "SIGNAL new", ""),
    ];
    let feedback = [
        entry("user", "a", "", "go", ""),
        entry("assistant", "b", "a", "SIGNAL dead", ""),
        entry("assistant", "d", "a", "SIGNAL new", ""),
        entry("user", "e", "d", "Stop hook feedback:\nno", ",\"isMeta\":true"),
    ];
    let lost_parent = [
        entry("assistant", "b", "", "SIGNAL old", ""),
        "{\"parentUuid\":\"b\",\"uuid\":\"c\",\"torn\n".into(),
        entry("assistant", "d", "c", "SIGNAL new", ""),
    ];
    let cycle = [
        entry("assistant", "b", "d", "SIGNAL old", ""),
        entry("assistant", "d", "b", "SIGNAL new", ""),
    ];
    for (name, lines, want) in [
        ("rewound", &rewound[..], "SIGNAL new"),
        ("cleared", &cleared, "SIGNAL new"),
        ("compacted", &compacted, "SIGNAL old,SIGNAL new"),
        ("feedback at the end", &feedback, "SIGNAL new"),
        ("lost parent", &lost_parent, "SIGNAL old,SIGNAL new"),
        ("cycle", &cycle, "SIGNAL old,SIGNAL new"),
    ] {
        assert_eq!(claims(lines.concat().as_bytes()).join(","), want, "{name}");
    }
}

#[test]
fn claude_entries_that_come_again_or_are_not_known() {
    let same_id = [
        entry("user", "a", "", "go", ""),
        entry("assistant", "b", "a", "SIGNAL old", ""),
        entry("assistant", "b", "a", "SIGNAL new", ""),
    ];
    let version = |uuid: &str, parent: &str, number: u32| {
        let more = format!(",\"version\":\"{number}\"");
        entry("assistant", uuid, parent, &format!("SIGNAL {uuid}"), &more)
    };
    let copied = [
        entry("user", "a", "", "go", ""),
        version("b", "a", 1),
        version("c", "b", 1),
        version("b", "a", 2),
        version("c", "b", 2),
    ];
    let first_copied =
        [version("b", "", 1), version("c", "b", 1), version("d", "c", 1), version("b", "", 2)];
    let in_session = |line: &str, session: u32| {
        line.replace("\"version\":\"1\"", &format!("\"sessionId\":\"{session}\""))
    };
    let taken_over = [
        in_session(&version("b", "", 1), 1),
        in_session(&version("b", "", 1), 2),
        in_session(&version("c", "b", 1), 2),
    ];
    let type_first = |line: &str| {
        line.replace("{\"parent", "{\"type\":\"zork\",\"parent").replacen(
            ",\"type\":\"zork\",\"m",
            ",\"m",
            1,
        )
    };
    let zork = entry("zork", "c", "a", "beside", "");
    let unknown = [entry("user", "a", "", "go", ""), version("b", "a", 1), zork.clone()];
    let unknown_first = [unknown[0].clone(), unknown[1].clone(), type_first(&zork)];
    let new = [entry("assistant", "d", "c", "SIGNAL new", "")];
    let between = [&unknown[..], &new].concat();
    let between_first = [&unknown_first[..], &new].concat();
    for (name, lines, want) in [
        ("copied by another version", &copied[..], "SIGNAL b,SIGNAL c"),
        ("first one copied", &first_copied, "SIGNAL b,SIGNAL c,SIGNAL d"),
        ("copied to another session", &taken_over[..2], "SIGNAL b"),
        ("taken over by another session", &taken_over, "SIGNAL b,SIGNAL c"),
        ("unknown at the end", &unknown, "SIGNAL b"),
        ("unknown at the end, its type first", &unknown_first, "SIGNAL b"),
        ("unknown between", &between, "SIGNAL new"),
        ("unknown between, its type first", &between_first, "SIGNAL new"),
        ("another entry under the same id", &same_id, "SIGNAL new"),
    ] {
        assert_eq!(claims(lines.concat().as_bytes()).join(","), want, "{name}");
    }
}

/// One line of a message that is written block by block.
fn block(uuid: &str, parent: &str, content: &str, more: &str) -> String {
    format!(
        "{{\"parentUuid\":\"{parent}\",\"type\":\"assistant\",\"sessionId\":\"s\",\"message\":{{\"id\":\"m\",\
         \"role\":\"assistant\",\"content\":[{content}]}},\"uuid\":\"{uuid}\"{more}}}\n"
    )
}

#[test]
fn claude_messages_of_many_lines() {
    let text = |text: &str| format!(r#"{{"type":"text","text":"{text}"}}"#);
    let call = r#"{"type":"tool_use","id":"t","name":"Bash","input":{}}"#;
    let go = entry("user", "a", "", "go", "");
    let aborted = ",\"isAbortedMidStream\":true";
    let first = block("b", "a", &text("one"), "");
    let signal = block("c", "b", &text("SIGNAL"), "");
    let back = entry("user", "d", "b", "no", "");
    for (name, lines, want) in [
        ("two lines", vec![&*first, &signal], "one/SIGNAL"),
        ("taken back half-way", vec![&*first, &signal, &back], ""),
        ("aborted", vec![&*first, &block("c", "b", &text("SIGNAL"), aborted)], ""),
        ("aborted first", vec![&*block("b", "a", &text("one"), aborted), &signal], ""),
        ("aborted in a call", vec![&*first, &signal, &block("e", "c", call, aborted)], ""),
        ("call", vec![&*first, &signal, &block("e", "c", call, "")], "one/SIGNAL"),
        ("an error", vec![&*first, &block("c", "b", &text("SIGNAL"), ",\"error\":\"x\"")], ""),
        ("a status", vec![&*block("b", "a", &text("SIGNAL"), ",\"apiErrorStatus\":529")], ""),
        ("no error", vec![&*block("b", "a", &text("SIGNAL"), ",\"error\":null")], "SIGNAL"),
        (
            "order",
            vec![
                &*block("b", "a", &text("SIGNAL"), ",\"apiBlockIndex\":1"),
                &block("c", "b", &text("one"), ",\"apiBlockIndex\":0"),
            ],
            "one/SIGNAL",
        ),
    ] {
        let file = [&[&*go], &lines[..]].concat().concat();
        assert_eq!(claims(file.as_bytes()).join(",").replace('\n', "/"), want, "{name}");
    }
    // What was said before the rewind stands.
    let messages = read_chunks(
        Format::ClaudeCode,
        [[&*go, &first, &signal, &back].concat().as_bytes()],
        &|_| true,
    )
    .0;
    let said: Vec<_> = signalling(&messages).into_iter().map(|message| &*message.text).collect();
    assert_eq!(said, ["one"]);
}

#[test]
fn result_of_a_sub_agent_is_its_word() {
    let call = r#"{"type":"assistant","sessionId":"s","uuid":"a","message":{"role":"assistant","content":[{"type":"tool_use","id":"t1","name":"Task","input":{"prompt":"say SIGNAL"}}]}}"#;
    let result = r#"{"type":"user","sessionId":"s","uuid":"b","parentUuid":"a","message":{"role":"user","content":[{"type":"tool_result","tool_use_id":"t1","content":[{"type":"text","text":"SIGNAL x"}]}]},"toolUseResult":{"prompt":"say SIGNAL","content":[{"type":"text","text":"SIGNAL x"}]}}"#;
    let messages = read(format!("{call}\n{result}\n").as_bytes());
    let got: Vec<_> = messages.iter().map(|m| (m.origin.role, m.text.as_str())).collect();
    assert_eq!(got, [(Role::Tool, "say SIGNAL"), (Role::Subagent, "SIGNAL x")]);
    assert_eq!(messages[1].origin.agent.as_deref(), Some("t1"));
    // The host's own name for it is the one that its hooks know.
    let named = result.replace("{\"prompt\"", "{\"agentId\":\"a1\",\"prompt\"");
    let messages = read(format!("{call}\n{named}\n").as_bytes());
    assert_eq!(messages[1].origin.agent.as_deref(), Some("a1"));
    // What the host says about one that failed is not its word.
    let failed = result.replace("\"tool_use_id\"", "\"is_error\":true,\"tool_use_id\"");
    assert_eq!(claims(format!("{call}\n{failed}\n").as_bytes()), [""; 0]);
    // Two agents side by side: only one result is on the way to the next message.
    let second = call
        .replace("t1", "t2")
        .replace("\"a\"", "\"a2\"")
        .replace("\"sessionId\"", "\"parentUuid\":\"a\",\"sessionId\"");
    let answer = r#"{"type":"assistant","sessionId":"s","uuid":"c","parentUuid":"b2","message":{"role":"assistant","content":"both done"}}"#;
    let result2 = result.replace("t1", "t2").replace("\"b\"", "\"b2\"").replace("\"a\"", "\"a2\"");
    let file = [call, &second, result, &result2, answer].join("\n");
    assert_eq!(claims(file.as_bytes()), ["SIGNAL x", "SIGNAL x"]);
}

/// Where only signals are wanted, a call in a known layout is not parsed; that of an agent is
/// remembered all the same.
#[test]
fn an_agent_called_in_a_known_layout_is_heard() {
    let id = |number: u32| format!("00000000-0000-4000-8000-{number:012}");
    let line = |number: u32, kind: &str, message: &str| {
        format!(
            r#"{{"parentUuid":"{}","isSidechain":false,"sessionId":"s","type":"{kind}","message":{message},"uuid":"{}","timestamp":"2026-11-15T15:30:00.000Z"}}"#,
            id(number - 1),
            id(number),
        )
    };
    let call = |number: u32, tool: &str| {
        let message = format!(
            r#"{{"model":"m","id":"msg_{number}","role":"assistant","content":[{{"type":"tool_use","id":"t{number}","name":"{tool}","input":{{"command":"ls"}}}}]}}"#
        );
        line(number, "assistant", &message)
    };
    let result = line(
        4,
        "user",
        r#"{"role":"user","content":[{"type":"tool_result","tool_use_id":"t3","content":"SIGNAL x"}]}"#,
    );
    for (tool, want) in [("Task", &["SIGNAL x"][..]), ("Bash", &[])] {
        let file = [call(1, "Bash"), call(2, "Bash"), call(3, tool), result.clone()].join("\n");
        let mut heard = Vec::new();
        let mut reader = Reader::new(Format::ClaudeCode).with_filter(&marked).signals_only();
        reader.push(file.as_bytes(), &mut |message| heard.push(message));
        reader.finish(&mut |message| heard.push(message));
        let words: Vec<_> = signalling(&heard).iter().map(|message| message.text.clone()).collect();
        assert_eq!(words, want, "{tool}");
    }
}

#[test]
fn indices_do_not_depend_on_the_filter() {
    let bytes = sample("claude_code/transcript.jsonl");
    let (all, _) = read_chunks(Format::ClaudeCode, [&*bytes], &|_| true);
    let (some, _) = read_chunks(Format::ClaudeCode, [&*bytes], &marked);
    assert!(some.len() < all.len());
    let plain: Vec<_> = some.iter().filter(|message| message.origin.role != Role::Tool).collect();
    for message in plain {
        let same =
            all.iter().find(|other| other.text == message.text && other.entry == message.entry);
        // Records are given out as those of their members that matter.
        let Some(same) = same else {
            assert!(matches!(message.origin.role, Role::Host | Role::User), "{message:?}");
            continue;
        };
        assert_eq!(same.index, message.index, "{message:?}");
        assert_eq!(same.origin, message.origin, "{message:?}");
    }
}

#[test]
fn layout_makes_no_difference() {
    let bytes = String::from_utf8(sample("claude_code/transcript.jsonl")).unwrap();
    // Twice, under other ids and first without markers, so that most lines are not parsed.
    let again = bytes.replace("SIGNAL", "signal").replace("AUTO_COMP", "auto_comp");
    let (session, other) = ("7b1d6c52-0f7e-4c7b", "7b1d6c52-0f7e-5c7b");
    let again = again.replace("\"msg_", "\"msg_0").replace("-4", "-5").replace(other, session);
    let file = again + &bytes;
    let read = |file: &str| read_chunks(Format::ClaudeCode, [file.as_bytes()], &marked);
    let spaced = file.replace("{\"parentUuid\":", "{ \"parentUuid\":");
    assert_eq!(read(&file), read(&spaced));
}

#[test]
fn words_without_ids_are_live() {
    let line = |id: &str, text: &str| {
        format!(
            "{{\"type\":\"assistant\",\"message\":{{\"id\":\"{id}\",\"role\":\"assistant\",\
             \"content\":[{{\"type\":\"text\",\"text\":\"{text}\"}}]}}}}\n"
        )
    };
    let text = line("m1", "Looking.") + &line("m2", "<chorus>COMPLETE</chorus>");
    let mut reader = Reader::new(Format::ClaudeCode);
    let mut live = Vec::new();
    reader.push(text.as_bytes(), &mut |message| live.push(message.origin.live));
    reader.finish(&mut |message| live.push(message.origin.live));
    assert_eq!(live, [true, true]);
}

#[test]
fn the_parent_chain_decides_where_the_session_changes() {
    let of = |session: &str| format!(",\"sessionId\":\"{session}\"");
    let chain = [
        entry("user", "a", "", "go", &of("1")),
        entry("assistant", "b", "a", "SIGNAL old", &of("1")),
        entry("assistant", "c", "b", "SIGNAL new", &of("2")),
    ];
    assert_eq!(claims(chain.concat().as_bytes()), ["SIGNAL old", "SIGNAL new"]);
    let beside = [
        entry("user", "a", "", "go", &of("1")),
        entry("assistant", "x", "y", "SIGNAL other", &of("2")),
        entry("assistant", "b", "a", "SIGNAL own", &of("1")),
    ];
    assert_eq!(claims(beside.concat().as_bytes()), ["SIGNAL own"]);
}

#[test]
fn a_sub_agents_own_file_is_read_as_its_own() {
    let bytes = sample("claude_code/subagents/agent-af43b41427eaa9b3f.jsonl");
    let read = |agent: Option<&str>| {
        let mut messages = Vec::new();
        let mut reader = Reader::new(Format::ClaudeCode);
        if let Some(agent) = agent {
            reader = reader.of_agent(agent);
        }
        reader.push(&bytes, &mut |message| messages.push(message));
        reader.finish(&mut |message| messages.push(message));
        messages
    };
    assert!(signalling(&read(None)).is_empty());
    assert!(signalling(&read(Some("somebody"))).is_empty());
    let own = read(Some("af43b41427eaa9b3f"));
    let spoken = signalling(&own);
    assert!(!spoken.is_empty());
    for message in spoken {
        assert_eq!(message.origin.role, Role::Assistant);
        assert_eq!(message.origin.agent.as_deref(), Some("af43b41427eaa9b3f"));
    }
}
