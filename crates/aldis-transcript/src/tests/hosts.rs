//! What is particular to one host, in as few lines as show it.

use super::*;

/// One word per message: who spoke (`!` if it may not signal), and the text.
pub(super) fn render(format: Format, lines: &[&str]) -> String {
    let (messages, _) = read_chunks(format, [lines.join("\n").as_bytes()], &|_| true);
    let word = |message: &Message| {
        let mark = if message.origin.may_signal() { "" } else { "!" };
        format!("{mark}{}:{}", message.origin.role, message.text.replace('\n', "/"))
    };
    messages.iter().map(word).collect::<Vec<_>>().join(" ")
}

#[track_caller]
pub(super) fn check(name: &str, format: Format, lines: &[&str], want: &str) {
    assert_eq!(render(format, lines), want, "{name}");
}

#[test]
fn gemini_sessions_are_journals() {
    let (one, two) = (
        r#"{"id":"1","type":"gemini","content":"a"}"#,
        r#"{"id":"2","type":"gemini","content":[{"text":"b"},{"text":"c"}]}"#,
    );
    let again = r#"{"id":"1","type":"gemini","content":"d"}"#;
    let set = r#"{"$set":{"messages":[{"id":"3","type":"gemini","content":"e"}]}}"#;
    let rewind = r#"{"$rewindTo":"1"}"#;
    let format = Format::GeminiSession;
    check("replace", format, &[one, two, again], "assistant:d assistant:b/c");
    check("reset", format, &[one, set], "!assistant:a assistant:e");
    check("rewind", format, &[one, two, rewind, again], "!assistant:a !assistant:b/c assistant:d");
    check("unknown rewind", format, &[two, rewind], "assistant:b/c");
}

#[test]
fn gemini_sessions_are_told_once_while_they_grow() {
    let record = |id: &str, text: &str, more: &str| {
        format!(r#"{{"id":"{id}","type":"gemini","content":"SIGNAL {text}"{more}}}"#)
    };
    let told = |lines: &[&str]| {
        let messages = follow(Format::GeminiSession, (lines.join("\n") + "\n").as_bytes());
        let word = |(line, message): &(usize, Message)| {
            format!("{line}:{}:{}", message.index, message.text.replace("SIGNAL ", ""))
        };
        messages.iter().map(word).collect::<Vec<_>>().join(" ")
    };
    let (one, two) = (record("1", "a", ""), record("2", "b", ""));
    let again = record("2", "b", r#","tokens":{"total":3}"#);
    let changed = record("2", "c", "");
    let thought = record("2", "b", r#","thoughts":[{"description":"SIGNAL b"}]"#);
    let set = format!(r#"{{"$set":{{"messages":[{one},{}]}}}}"#, record("3", "d", ""));
    assert_eq!(told(&[&one, &two, &again]), "1:0:a 2:1:b");
    assert_eq!(told(&[&one, &two, &again, &changed, &changed]), "1:0:a 2:1:b 4:1:c");
    assert_eq!(told(&[&two, &thought, &again]), "1:0:b 2:0:b");
    assert_eq!(told(&[&one, &two, &set]), "1:0:a 2:1:b 3:2:d");
    let rewind = r#"{"$rewindTo":"2"}"#;
    assert_eq!(told(&[&one, &two, rewind, &two, &one]), "1:0:a 2:1:b 4:2:b");
}

#[test]
fn gemini_resets_and_rewinds_take_turns() {
    let record = |id: &str| format!(r#"{{"id":"{id}","type":"gemini","content":"{id}"}}"#);
    let (a, b, c) = (record("a"), record("b"), record("c"));
    let set = format!(r#"{{"$set":{{"messages":[{b}]}}}}"#);
    let rewind = |id: &str| format!(r#"{{"$rewindTo":"{id}"}}"#);
    let format = Format::GeminiSession;
    check("kept", format, &[&a, &b, &c, &set], "!assistant:a assistant:b !assistant:c");
    let lines = [&*a, &b, &set, &c, &rewind("b"), &c];
    check("rewound", format, &lines, "!assistant:a !assistant:b !assistant:c assistant:c");
    let lines = [&*a, &b, &rewind("b"), &c, &rewind("b"), &rewind("a"), &b];
    check("twice", format, &lines, "!assistant:a !assistant:b !assistant:c assistant:b");
}

#[test]
fn gemini_streams_are_joined_across_what_is_not_known() {
    let delta = |text: &str| {
        format!(r#"{{"type":"message","role":"assistant","content":"{text}","delta":true}}"#)
    };
    let (a, b) = (delta("a"), delta("b"));
    let format = Format::GeminiStream;
    check("unknown", format, &[&a, r#"{"type":"z","x":"zork"}"#, &b], "!host:zork assistant:ab");
    for kind in ["tool_use", "error"] {
        let line = format!(r#"{{"type":"{kind}","message":"x","parameters":"x"}}"#);
        let words = render(format, &[&a, &line, &b]);
        assert!(words.starts_with("assistant:a !") && words.ends_with(" assistant:b"), "{words}");
    }
}

#[test]
fn claude_streams() {
    let line = |id: &str, text: &str, more: &str| {
        format!(
            r#"{{"type":"assistant","message":{{"id":"{id}","role":"assistant","content":[{{"type":"text","text":"{text}"}}]}}{more}}}"#
        )
    };
    let main = ",\"parent_tool_use_id\":null";
    let (a, b) = (line("1", "a", main), line("1", "b", main));
    let side = line("2", "s", ",\"parent_tool_use_id\":\"t\"");
    let result = r#"{"type":"result","is_error":false,"result":"b"}"#;
    let start = r#"{"type":"stream_event","event":{"type":"message_start","message":{"id":"1"}}}"#;
    let delta = |text: &str| {
        format!(
            r#"{{"type":"stream_event","event":{{"type":"content_block_delta","index":0,"delta":{{"type":"text_delta","text":"{text}"}}}}}}"#
        )
    };
    let (x, y) = (delta("x"), delta("y"));
    let think = x.replace("text_delta", "thinking_delta");
    let cut = line("1", "a", ",\"aborted\":true");
    let error = line("1", "a", ",\"error\":\"overloaded\"");
    let synthetic = line("1", "b", main).replace("\"role\"", "\"model\":\"<synthetic>\",\"role\"");
    let cut_call = r#"{"type":"assistant","aborted":true,"message":{"id":"1","content":[{"type":"tool_use","id":"t","name":"Bash"}]}}"#;
    let stop = r#"{"type":"stream_event","event":{"type":"message_stop"}}"#;
    let abort =
        r#"{"type":"result","is_error":false,"terminal_reason":"aborted_streaming","result":"b"}"#;
    for (name, lines, want) in [
        ("deltas cut off", vec![start, &*x, abort], "!assistant:x"),
        ("deltas cut off without a start", vec![&*x, abort], "!assistant:x"),
        ("aborted after the message", vec![start, &*x, stop, abort], "assistant:x"),
        (
            "the second message cut off",
            vec![start, &*x, start, &y, abort],
            "assistant:x !assistant:y",
        ),
        ("whole line of a message cut off", vec![start, &*x, &a, &y, abort], "!assistant:a"),
        ("aborted later than the message", vec![start, &*x, &a, stop, abort], "assistant:a"),
        ("result of what was cut off", vec![abort], "!assistant:b"),
        ("joined by id", vec![&*a, &b, result], "assistant:a/b"),
        ("around a sub-agent", vec![&*a, &side, &b], "assistant:a/b !assistant:s"),
        ("result alone", vec![result], "assistant:b"),
        ("deltas alone", vec![start, &x, &y, result], "assistant:xy"),
        ("deltas and whole", vec![start, &x, &a, &y, result], "assistant:a"),
        ("two messages of deltas", vec![start, &x, start, &y], "assistant:x assistant:y"),
        ("thoughts", vec![start, &think], ""),
        ("aborted", vec![&*cut], "!assistant:a"),
        ("API error", vec![&*error], "!host:a"),
        ("aborted half-way", vec![&*b, &cut], "!assistant:b/a"),
        ("aborted in a call", vec![&*b, cut_call], "!assistant:b"),
        ("error half-way", vec![&*b, &error], "!host:b/a"),
        ("host's words as the result", vec![&*synthetic, result], "!host:b"),
    ] {
        check(name, Format::ClaudeStream, &lines, want);
    }
}

#[test]
fn a_sub_agent_ends_with_the_result_of_its_call() {
    let side = |text: &str| {
        format!(
            r#"{{"type":"assistant","parent_tool_use_id":"toolu_1","message":{{"id":"m","content":[{{"type":"text","text":"{text}"}}]}}}}"#
        )
    };
    let result = |id: &str, text: &str| {
        format!(
            r#"{{"type":"user","message":{{"content":[{{"type":"tool_result","tool_use_id":"toolu_0","content":"x"}},{{"tool_use_id":"{id}","type":"tool_result","content":"{text}"}}]}}}}"#
        )
    };
    let (a, b) = (side("a"), side("b"));
    let quoted = result("toolu_2", "toolu_1");
    check(
        "quoted",
        Format::ClaudeStream,
        &[&a, &quoted, &b],
        "!tool:x !tool:toolu_1 !assistant:a/b",
    );
    let ended = result("toolu_1", "y");
    let want = "!assistant:a !tool:x !tool:y !assistant:b";
    check("ended", Format::ClaudeStream, &[&a, &ended, &b], want);
}

#[test]
fn acp_chunks_end_where_the_agent_does_something_else() {
    let update = |kind: &str, text: &str| {
        format!(
            r#"{{"jsonrpc":"2.0","method":"session/update","params":{{"sessionId":"s","update":{{"sessionUpdate":"{kind}","content":{{"type":"text","text":"{text}"}}}}}}}}"#
        )
    };
    let (a, b) = (update("agent_message_chunk", "a"), update("agent_message_chunk", "b"));
    let usage = r#"{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"s","update":{"sessionUpdate":"usage_update","used":1}}}"#;
    let tool = update("tool_call_update", "t");
    let end = r#"{"jsonrpc":"2.0","id":1,"result":{"stopReason":"end_turn"}}"#;
    let render = |lines: &[&str]| render(Format::Acp, lines);
    assert_eq!(render(&[&a, usage, &b]), "assistant:ab");
    assert_eq!(render(&[&a, &tool, &b]), "assistant:a !tool:t assistant:b");
    assert_eq!(render(&[&a, end, &b]), "assistant:a !tool:2.0/end_turn assistant:b");
}

#[test]
fn what_was_being_said_at_an_abort_is_dead() {
    let chunk = |session: &str| {
        format!(
            r#"{{"method":"session/update","params":{{"sessionId":"{session}","update":{{"sessionUpdate":"agent_message_chunk","content":{{"type":"text","text":"{session}"}}}}}}}}"#
        )
    };
    let (s, t) = (chunk("s"), chunk("t"));
    let call = r#"{"method":"session/update","params":{"sessionId":"s","update":{"sessionUpdate":"tool_call","title":"x"}}}"#;
    let prompt = r#"{"id":7,"method":"session/prompt","params":{"sessionId":"s","prompt":[]}}"#;
    let answer = r#"{"id":7,"result":{"stopReason":"cancelled"}}"#;
    let idle = r#"{"method":"session/update","params":{"sessionId":"s","update":{"sessionUpdate":"state_update","state":"idle","stopReason":"cancelled"}}}"#;
    let text = r#"{"type":"agent_event","event":{"type":"content_start","contentType":"text","text":"s"}}"#;
    let end =
        r#"{"type":"agent_event","event":{"type":"content_end","contentType":"text","text":"s"}}"#;
    let result = r#"{"type":"run_result","finishReason":"aborted","text":"s"}"#;
    let aborted = r#"{"type":"run_aborted","reason":"x"}"#;
    let part = r#"{"type":"message.part.updated","properties":{"part":{"id":"1","messageID":"m","type":"text","text":"s"}}}"#;
    let info = r#"{"type":"message.updated","properties":{"info":{"id":"m","role":"assistant"}}}"#;
    let failed = info.replace("}}}", r#","error":{"name":"MessageAbortedError"}}}}"#);
    let other = info.replace("}}}", r#","error":{"name":"APIError"}}}}"#);
    for (name, format, lines, want) in [
        ("acp", Format::Acp, vec![&*s, answer], "!s"),
        ("another session goes on", Format::Acp, vec![prompt, &s, &t, answer], "!s t"),
        ("said before a call", Format::Acp, vec![&*s, call, answer], "s"),
        ("second version", Format::Acp, vec![&*s, &t, idle], "!s t"),
        ("cline", Format::Cline, vec![text, aborted], "!s"),
        ("cline's result", Format::Cline, vec![text, result], "!s"),
        ("cline's result alone", Format::Cline, vec![result], "!s"),
        ("cline's whole text", Format::Cline, vec![text, end, result], "s"),
        ("opencode", Format::OpenCode, vec![info, part, &failed], "!s"),
        ("opencode's other errors", Format::OpenCode, vec![info, part, &other], "s"),
    ] {
        for following in [false, true] {
            let mut words = Vec::new();
            let mut hear = |message: Message| {
                let mark = if message.origin.may_signal() { "" } else { "!" };
                if message.origin.role == Role::Assistant {
                    words.push(format!("{mark}{}", message.text));
                }
            };
            let mut reader = Reader::new(format);
            if following {
                reader = reader.following();
            }
            reader.push(lines.join("\n").as_bytes(), &mut hear);
            reader.finish(&mut hear);
            assert_eq!(words.join(" "), want, "{name}");
        }
    }
}

#[test]
fn small_hosts() {
    let goose = |id: &str, text: &str| {
        format!(
            r#"{{"type":"message","message":{{"id":"{id}","role":"assistant","content":[{{"type":"text","text":"{text}"}}]}}}}"#
        )
    };
    let pieces = [goose("1", "a"), goose("1", "b"), goose("2", "c")];
    let pieces: Vec<_> = pieces.iter().map(String::as_str).collect();
    check("goose pieces", Format::Goose, &pieces, "assistant:ab assistant:c");
    let said = r#"{"type":"say","say":"text","text":"a","ts":1}"#;
    let partial = r#"{"type":"say","say":"text","text":"a","ts":1,"partial":true}"#;
    let done = r#"{"type":"say","say":"completion_result","text":"b","ts":1}"#;
    let output = r#"{"type":"say","say":"command_output","text":"c","ts":1}"#;
    let cline = [partial, said, output, done];
    check("older cline", Format::Cline, &cline, "assistant:a !tool:c assistant:b");
    assert_eq!(detect(said.as_bytes()), Format::Cline);
    let cursor = [
        r#"{"role":"user","message":{"content":[{"type":"text","text":"a"}]}}"#,
        r#"{"role":"assistant","message":{"content":[{"type":"text","text":"b"},{"type":"text","text":"c"}]}}"#,
    ];
    check("cursor file", Format::CursorTranscript, &cursor, "!user:a assistant:b/c");
    assert_eq!(detect(cursor[0].as_bytes()), Format::CursorTranscript);
    let opencode = |part: &str, text: &str| {
        format!(
            r#"{{"type":"text","sessionID":"s","part":{{"id":"{part}","sessionID":"s","messageID":"m","type":"text","text":"{text}"}}}}"#
        )
    };
    let parts = [opencode("1", "a"), opencode("2", "b"), opencode("1", "c")];
    let parts: Vec<_> = parts.iter().map(String::as_str).collect();
    check("opencode parts", Format::OpenCode, &parts, "assistant:c/b");
    let bus = [
        r#"{"type":"message.updated","properties":{"info":{"id":"m","role":"assistant"}}}"#,
        r#"{"type":"message.part.updated","properties":{"part":{"id":"1","sessionID":"s","messageID":"m","type":"text","text":"a"}}}"#,
        r#"{"type":"message.part.updated","properties":{"part":{"id":"2","sessionID":"s","messageID":"n","type":"text","text":"b"}}}"#,
    ];
    check("opencode bus", Format::OpenCode, &bus, "assistant:a !user:b");
    let droid = [
        r#"{"type":"message","role":"assistant","id":"m","text":"a\n"}"#,
        r#"{"type":"completion","finalText":"a"}"#,
    ];
    check("droid's end", Format::DroidStream, &droid, "assistant:a/");
    let text = "  as it is\n\n";
    check("text", Format::Text, &[text], "assistant:  as it is//");
    let qwen = [
        r#"{"uuid":"a","parentUuid":null,"sessionId":"s","type":"user","message":{"role":"user","parts":[{"text":"p"}]}}"#,
        r#"{"uuid":"b","parentUuid":"a","sessionId":"s","type":"assistant","message":{"role":"model","parts":[{"text":"t","thought":true},{"text":"q"}]}}"#,
    ];
    check("qwen file", Format::ClaudeCode, &qwen, "!user:p !tool:t assistant:q");
}

#[test]
fn what_hangs_on_another_entry_is_dead() {
    let droid = |id: &str, parent: &str, role: &str, text: &str| {
        format!(
            r#"{{"type":"message","id":"{id}"{parent},"message":{{"role":"{role}","content":[{{"type":"text","text":"{text}"}}]}}}}"#
        )
    };
    let copilot = |id: &str, parent: &str, role: &str, text: &str| {
        format!(
            r#"{{"id":"{id}"{parent},"type":"{role}.message","data":{{"messageId":"{id}","content":"{text}"}}}}"#
        )
    };
    let on = |id: &str| format!(r#","parentId":"{id}""#);
    for (format, line) in [
        (Format::Droid, &droid as &dyn Fn(&str, &str, &str, &str) -> String),
        (Format::Copilot, &copilot),
    ] {
        let go = line("1", "", "user", "go");
        let old = line("2", &on("1"), "assistant", "old");
        let no = line("3", &on("1"), "user", "no");
        let new = line("4", &on("3"), "assistant", "new");
        let rewound = "!user:go !assistant:old !user:no assistant:new";
        check("rewound", format, &[&go, &old, &no, &new], rewound);
        // Without a parent an entry follows the one before it, whichever that is.
        let after = line("5", "", "assistant", "after");
        let want = "!user:go !assistant:old assistant:new assistant:after";
        check(
            "no parent",
            format,
            &[&go, &old, &line("4", &on("1"), "assistant", "new"), &after],
            want,
        );
        let lost = line("5", &on("x"), "assistant", "after");
        check("lost parent", format, &[&go, &old, &lost], "!user:go assistant:old assistant:after");
        check("copied", format, &[&go, &old, &go, &old], "!user:go assistant:old");
    }
    // Hooks and sub-agents write beside the conversation.
    let go = copilot("1", "", "user", "go");
    let old = copilot("2", &on("1"), "assistant", "old");
    let new = copilot("3", &on("1"), "assistant", "new");
    let hook = format!(r#"{{"id":"4"{},"type":"hook.end","data":{{}}}}"#, on("2"));
    let side = copilot("5", &on("2"), "assistant", "side")
        .replace("\"data\"", "\"agentId\":\"a\",\"data\"");
    let words = render(Format::Copilot, &[&go, &old, &new, &hook, &side]);
    assert!(words.contains("!assistant:old assistant:new"), "{words}");
}

#[test]
fn codex_events_count_where_no_item_came() {
    let event = |text: &str| {
        format!(r#"{{"type":"event_msg","payload":{{"type":"agent_message","message":"{text}"}}}}"#)
    };
    let item = r#"{"type":"response_item","payload":{"type":"message","role":"assistant","content":[{"type":"output_text","text":"a"}]}}"#;
    let started = r#"{"type":"event_msg","payload":{"type":"task_started","turn_id":"1"}}"#;
    let done =
        r#"{"type":"event_msg","payload":{"type":"task_complete","last_agent_message":"a"}}"#;
    let (a, b) = (event("a"), event("b"));
    let format = Format::CodexRollout;
    check("item first", format, &[item, &a, done], "assistant:a");
    check("event first", format, &[&a, item, done], "assistant:a");
    check("event alone", format, &[started, &b, done], "assistant:b assistant:a");
    let blank = event("a\\n");
    check("blanks at the end", format, &[&blank, done], "assistant:a/");
    check("blanks at the end of an event", format, &[item, &blank, done], "assistant:a");
    let completed = r#"{"type":"event_msg","payload":{"type":"item_completed","item":{"type":"AgentMessage","id":"i","content":[{"type":"Text","text":"a"}]}}}"#;
    check("completed item", format, &[started, completed, done], "assistant:a");
    let plain = r#"{"type":"event_msg","payload":{"type":"item_completed","item":{"type":"agent_message","text":"a"}}}"#;
    check("completed item with its text", format, &[started, plain], "assistant:a");
    check("said again", format, &[item, done, started, item, done], "assistant:a assistant:a");
}

#[test]
fn what_a_host_takes_back_is_dead() {
    let rollout = |role: &str, text: &str| {
        format!(
            r#"{{"type":"response_item","payload":{{"type":"message","role":"{role}","content":[{{"type":"output_text","text":"{text}"}}]}}}}"#
        )
    };
    let back = |turns: u32| {
        format!(
            r#"{{"type":"event_msg","payload":{{"type":"thread_rolled_back","num_turns":{turns}}}}}"#
        )
    };
    let (go, a) = (rollout("user", "go"), rollout("assistant", "a"));
    let (on, b) = (rollout("user", "on"), rollout("assistant", "b"));
    let hook = rollout("user", "<hook_prompt>no</hook_prompt>");
    let (once, twice) = (back(1), back(2));
    let format = Format::CodexRollout;
    let lines = [&*go, &a, &on, &b, &once];
    check("one turn", format, &lines, "!user:go assistant:a !user:on !assistant:b");
    let none = back(0);
    let lines = [&*go, &a, &none];
    check("no turn", format, &lines, "!user:go assistant:a");
    let lines = [&*go, &a, &on, &b, &twice, &go, &b];
    let want = "!user:go !assistant:a !user:on !assistant:b !user:go assistant:b";
    check("two turns", format, &lines, want);
    let lines = [&*go, &a, &hook, &b, &once, &on, &b];
    let want = "!user:go !assistant:a !host:<hook_prompt>no</hook_prompt> !assistant:b !user:on assistant:b";
    check("feedback is no turn", format, &lines, want);

    let event = |id: &str, parent: &str, kind: &str, data: &str| {
        format!(r#"{{"id":"{id}","parentId":"{parent}","type":"{kind}","data":{data}}}"#)
    };
    let go = event("1", "0", "user.message", r#"{"content":"go"}"#);
    let a = event("2", "1", "assistant.message", r#"{"messageId":"m2","content":"a"}"#);
    let on = event("3", "2", "user.message", r#"{"content":"on"}"#);
    let b = event("4", "3", "assistant.message", r#"{"messageId":"m4","content":"b"}"#);
    let rewind = r#"{"ephemeral":true,"type":"session.snapshot_rewind","data":{"upToEventId":"3","eventsRemoved":2}}"#;
    let format = Format::Copilot;
    let want = "!user:go assistant:a !user:on !assistant:b !host:3";
    check("rewound", format, &[&go, &a, &on, &b, rewind], want);

    let part = |message: &str, text: &str| {
        format!(
            r#"{{"type":"message.part.updated","properties":{{"part":{{"id":"{message}1","sessionID":"s","messageID":"{message}","type":"text","text":"{text}"}}}}}}"#
        )
    };
    let info = |message: &str| {
        format!(
            r#"{{"type":"message.updated","properties":{{"info":{{"id":"{message}","sessionID":"s","role":"assistant"}}}}}}"#
        )
    };
    let (one, two, a, b) = (info("m"), info("n"), part("m", "a"), part("n", "b"));
    let removed = r#"{"type":"message.removed","properties":{"sessionID":"s","messageID":"m"}}"#;
    let format = Format::OpenCode;
    let words = render(format, &[&one, &a, &two, &b, removed]);
    assert!(words.starts_with("!assistant:a assistant:b"), "{words}");
    let words = render(format, &[&one, &a, removed]);
    assert!(words.starts_with("!assistant:a"), "{words}");
    let gone = r#"{"type":"message.part.removed","properties":{"sessionID":"s","messageID":"m","partID":"m1"}}"#;
    let words = render(format, &[&one, &a, gone, &two, &b]);
    assert!(!words.contains("assistant:a") && words.contains("assistant:b"), "{words}");
}

#[test]
fn kimi_journals_keep_what_the_host_keeps() {
    let event = |kind: &str, more: &str| {
        format!(
            r#"{{"type":"context.append_loop_event","agentId":"main","event":{{"type":"{kind}",{more}}}}}"#
        )
    };
    let text = |step: &str, text: &str| {
        let part = format!(r#""stepUuid":"{step}","part":{{"type":"text","text":"{text}"}}"#);
        event("content.part", &part)
    };
    let end = |reason: &str| event("step.end", &format!(r#""uuid":"1","finishReason":"{reason}""#));
    let said = |kind: &str, text: &str| {
        format!(
            r#"{{"type":"context.append_message","agentId":"main","message":{{"role":"user","content":[{{"type":"text","text":"{text}"}}],"origin":{{"kind":"{kind}","name":"stop_hook"}}}}}}"#
        )
    };
    let line = |kind: &str, more: &str| format!(r#"{{"type":"{kind}","agentId":"main"{more}}}"#);
    let (a, b, done, failed) = (text("1", "a"), text("1", "b"), end("end_turn"), end("error"));
    let c = text("2", "c");
    let (user, hook) = (said("user", "u"), said("system_trigger", "h"));
    let side = a.replace("\"main\"", "\"agent-0\"");
    let copy = r#"{"type":"agent.message.appended","message":{"message":{"role":"assistant","content":[{"type":"text","text":"a"}]}}}"#;
    let (undo, clear) = (line("context.undo", ",\"count\":1"), line("context.clear", ""));
    let compacted = line("context.apply_compaction", ",\"summary\":\"s\"");
    let format = Format::KimiWire;
    for (name, lines, want) in [
        ("blocks of a step", vec![&*a, &b, &done], "assistant:a/b"),
        ("steps", vec![&*a, &done, &c, &done], "assistant:a assistant:c"),
        (
            "a step that failed",
            vec![&*user, &a, &failed, &c, &done],
            "!user:u !assistant:a assistant:c",
        ),
        ("who speaks", vec![&*user, &a, &done, &hook], "!user:u assistant:a !host:h"),
        ("a sub-agent's", vec![&*side, &done], "!assistant:a"),
        ("copies", vec![&*a, &done, copy], "assistant:a"),
        ("undone", vec![&*user, &a, &done, &undo, &c, &done], "!user:u !assistant:a assistant:c"),
        ("cleared", vec![&*a, &done, &clear, &c, &done], "!assistant:a assistant:c"),
        ("compacted", vec![&*a, &done, &compacted], "assistant:a !system:s"),
    ] {
        check(name, format, &lines, want);
    }
}

#[test]
fn kimi_streams() {
    let says = r#"{"role":"assistant","content":"a","tool_calls":[{"type":"function","id":"1","function":{"name":"Bash","arguments":"{\"command\":\"ls\"}"}}]}"#;
    let result = r#"{"role":"tool","tool_call_id":"1","content":"r"}"#;
    let hint = r#"{"role":"meta","type":"session.resume_hint","session_id":"s","content":"x"}"#;
    let format = Format::KimiStream;
    for (name, lines, want) in [
        ("a call", vec![says, result], "assistant:a !tool:{\"command\":\"ls\"} !tool:r"),
        ("the end", vec![r#"{"role":"assistant","content":"b"}"#, hint], "assistant:b"),
    ] {
        check(name, format, &lines, want);
    }
}
