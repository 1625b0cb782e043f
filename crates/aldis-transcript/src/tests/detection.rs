//! What must not be taken for text, and what must not be taken for a transcript.

use super::*;

const STARTED: &str = r#"{"type":"thread.started","thread_id":"x"}"#;
const SAID: &str =
    r#"{"type":"item.completed","item":{"id":"i","type":"agent_message","text":"SIGNAL a"}}"#;

#[test]
fn a_first_line_that_is_cut_is_a_hosts() {
    let long = "z".repeat(1 << 18);
    for (line, format) in [
        (
            r#"{"type":"user","message":{"role":"user","content":[{"type":"text","text":"#,
            "claude-stream",
        ),
        (
            r#"{"type":"assistant","message":{"id":"m","content":[{"type":"text","text":"#,
            "claude-stream",
        ),
        (r#"{"type":"user","uuid":"u","message":{"role":"user","content":"#, "claude-stream"),
        (r#"{"type":"user","session_id":"s","message":{"role":"user","content":"#, "claude-stream"),
        (r#"{"type":"system","subtype":"init","cwd":"#, "claude-stream"),
        (r#"{"type":"result","subtype":"success","result":"#, "claude-stream"),
        (r#"{"message":{"role":"user","content":"#, "claude-stream"),
        (
            r#"{"uuid":"u","parentUuid":null,"sessionId":"s","type":"user","message":{"a":"#,
            "claude-code",
        ),
        (r#"{"isSidechain":false,"message":{"a":"#, "claude-code"),
        (r#"{"id":"1","timestamp":"t","type":"user","content":[{"text":"#, "gemini-session"),
        (r#"{"type":"user","content":"#, "gemini-session"),
        (r#"{"type":"tool_result","id":"i","messageId":"m","toolId":"t","value":"#, "droid-stream"),
        (r#"{"method":"session/prompt","params":{"prompt":[{"text":"#, "acp"),
        (r#"{"role":"user","message":{"content":[{"type":"text","text":"#, "cursor-transcript"),
    ] {
        for (before, after) in
            [("", ""), ("npm warn old\n", ""), ("{\n", ""), ("[\n", ""), ("[", "")]
        {
            // A document for people has its first bracket on a line of its own.
            let line = if before == "{\n" { &line[1..] } else { line };
            let head = format!("{before}{line}\"{long}{after}");
            assert_eq!(detect(head.as_bytes()).as_str(), format, "{before}{line}");
        }
    }
    for text in [r#"{"name":""#, r#"{"type":"user","#, r#"{"type":"user","message":"hi"} came."#] {
        assert_eq!(detect(text.as_bytes()), Format::Text, "{text}");
    }
}

#[test]
fn a_list_that_is_cut_is_told_by_its_elements() {
    for (path, format) in SAMPLES {
        let lines = String::from_utf8(sample(path)).unwrap();
        if path.ends_with(".json") {
            continue;
        }
        let lines: Vec<&str> = lines.lines().collect();
        for (open, comma) in [("[", ","), ("[\n", ",\n"), ("[\n  ", ",\n  ")] {
            let list = format!("{open}{}{comma}{{\"text\":\"zzz", lines.join(comma));
            assert_eq!(detect(list.as_bytes()), format, "{path}");
            let whole = format!("{open}{}\n]\n", lines.join(comma));
            assert_eq!(detect(whole.as_bytes()), format, "{path}");
        }
        let pretty = format!("[\n{}", lines[0].replace("\":", "\" :\n"));
        let cut = detect(pretty.as_bytes());
        assert_eq!(cut, format, "{path}");
    }
    for text in ["[1, 2", "[x] done\n", "[{", "[{\"a\":1},", "[link](x)\n"] {
        assert_eq!(detect(text.as_bytes()), Format::Text, "{text}");
    }
}

#[test]
fn noise_before_a_transcript_hides_nothing() {
    for (path, format) in SAMPLES {
        if path.ends_with(".json") {
            continue;
        }
        for (count, want) in [(1, format), (9, format), (99, format), (100, Format::Text)] {
            let noise = "npm warn deprecated x\n".repeat(count).into_bytes();
            let bytes = [noise, sample(path)].concat();
            assert_eq!(detect(&bytes), want, "{path} after {count} lines");
            if want != Format::Text {
                assert_eq!(claims(&bytes), claims(&sample(path)), "{path}");
            }
        }
    }
    let mixed = format!("npm warn\n{STARTED}\nwarning: slow\n{SAID}\n{SAID}\n");
    assert_eq!(detect(mixed.as_bytes()), Format::CodexExec);
}

#[test]
fn text_that_shows_a_hosts_line_is_text() {
    let bare = r#"{"type":"message","text":"hi"}"#;
    for (text, format) in [
        (format!("It starts with:\n```json\n{STARTED}\n```\nDone.\n\nSIGNAL a"), "text"),
        (format!("It starts with:\n```json\n{STARTED}\n{SAID}\n```\nSIGNAL a\n"), "text"),
        (format!("```json\n{STARTED}\n{SAID}\n"), "text"),
        (format!("It starts with:\n{STARTED}\nDone.\n"), "text"),
        (format!("It starts with:\n{STARTED}\n{SAID}\nDone.\n\nAll is well.\nSIGNAL a\n"), "text"),
        (format!("{STARTED} is the first line.\nSIGNAL a\n"), "text"),
        (format!("{bare}\nSIGNAL a\n"), "text"),
        (format!("{bare}\n\n"), "droid-stream"),
        (format!("{bare}\nwarning\n{bare}\n"), "droid-stream"),
        (format!("{STARTED}\nerror: no network\n"), "codex-exec"),
        (format!("warning: x\n{STARTED}\n"), "codex-exec"),
        // Words are shown where other words stand beside them.
        (format!("{SAID}\n"), "codex-exec"),
        (format!("{SAID}\nis the line I found. Not done.\n"), "text"),
        (format!("{SAID}\n{SAID}\nare the lines I found. Not done.\n"), "text"),
        (format!("$ cat session.jsonl\n{SAID}\n"), "text"),
        (format!("$ cat session.jsonl\n{SAID}\nNot done.\n"), "text"),
        (format!("{SAID}\nwarning: slow\n{SAID}\n"), "codex-exec"),
    ] {
        assert_eq!(detect(text.as_bytes()).as_str(), format, "{text}");
    }
}

#[test]
fn what_still_comes_is_waited_for() {
    let noise = "npm warn\n";
    let (first, second) = (format!("{STARTED}\n"), format!("{SAID}\n"));
    let name = |format: Option<Format>| format.map_or("-", Format::as_str);
    for (head, want, silent) in [
        (String::new(), ("-", 0), ("-", 0)),
        ("npm wa".into(), ("-", 6), ("-", 6)),
        (noise.into(), ("-", 9), ("-", 9)),
        (format!("{noise}{{\"type\":"), ("-", 9), ("-", 9)),
        (format!("{noise}{first}"), ("-", 9), ("codex-exec", 9)),
        (format!("{noise}{first}{{\"ty"), ("codex-exec", 9), ("codex-exec", 9)),
        (format!("{noise}{first}{second}"), ("codex-exec", 9), ("codex-exec", 9)),
        (format!("{noise}{first}Done"), ("-", 55), ("-", 55)),
        (format!("{noise}```\n{first}{second}"), ("-", 140), ("-", 140)),
        (first.clone(), ("codex-exec", 0), ("codex-exec", 0)),
        (second.clone(), ("-", 0), ("codex-exec", 0)),
        (format!("{second}{second}"), ("codex-exec", 0), ("codex-exec", 0)),
        (format!("{second}Not done.\n"), ("-", 95), ("-", 95)),
        ("{\"type\":\"message\",\"text\":\"hi\"}\n".into(), ("-", 0), ("droid-stream", 0)),
        ("{\"a\":1}\n".into(), ("-", 8), ("-", 8)),
        ("{".into(), ("-", 0), ("-", 0)),
        ("[x".into(), ("-", 2), ("-", 2)),
        (noise.repeat(101), ("text", 909), ("text", 909)),
    ] {
        let so_far = |silent| Input::Auto.resolve_so_far(head.as_bytes(), silent);
        let got = [false, true].map(so_far).map(|(format, text)| (name(format), text));
        assert_eq!(got, [want, silent], "{head:?}");
    }
    let codex = Input::from_name("codex").unwrap();
    assert_eq!(codex.resolve_so_far(noise.as_bytes(), true), (None, 0));
    let bytes = format!("{noise}{first}{second}");
    assert_eq!(codex.resolve_so_far(bytes.as_bytes(), false), (Some(Format::CodexExec), 0));
}
