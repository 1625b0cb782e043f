//! Tails of sample files, of files of any size, and of files that are none.

use std::cell::Cell;
use std::fs;
use std::path::Path;

use aldis_signal::{Rules, scan};

use super::*;
use crate::hosts::tests::*;

fn testdata() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata")
}

fn read(name: &str) -> Vec<u8> {
    let path = testdata().join(name);
    fs::read(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

fn may_matter(raw: &[u8]) -> bool {
    Rules::builtin().may_match_json(raw)
}

fn look<'a>(session: Option<&'a str>) -> TailOptions<'a> {
    TailOptions {
        roots: &[],
        session,
        of_agent: false,
        may_matter: &may_matter,
        limits: Limits::default(),
    }
}

/// Much of the same and then something else, of any size, and how much of it was read.
struct Large<'a> {
    filler: &'a [u8],
    filler_len: u64,
    end: &'a [u8],
    taken: u64,
}

impl<'a> Large<'a> {
    fn new(filler: &'a [u8], least: u64, end: &'a [u8]) -> Self {
        let filler_len = least.next_multiple_of((filler.len() as u64).max(1));
        let filler_len = if filler.is_empty() { 0 } else { filler_len };
        Self { filler, filler_len, end, taken: 0 }
    }

    fn tail(&mut self, host: Host, from: Option<TailPosition>, look: &TailOptions<'_>) -> Tail {
        let len = self.filler_len + self.end.len() as u64;
        tail_of(self, len, host, from, look).unwrap()
    }
}

impl TailSource for Large<'_> {
    fn read_exact_at(&mut self, buffer: &mut [u8], offset: u64) -> io::Result<()> {
        self.taken += buffer.len() as u64;
        for (at, byte) in (offset..).zip(buffer) {
            let found = match at.checked_sub(self.filler_len) {
                Some(at) => self.end.get(at as usize),
                None => self.filler.get((at % self.filler.len() as u64) as usize),
            };
            *byte = *found.ok_or(io::ErrorKind::UnexpectedEof)?;
        }
        Ok(())
    }
}

fn tail(bytes: &[u8], host: Host, from: Option<TailPosition>) -> Tail {
    Large::new(b"", 0, bytes).tail(host, from, &look(None))
}

/// The texts that signal, by the first line of each.
fn claims(tail: &Tail) -> Vec<String> {
    let mut found = Vec::new();
    for message in &tail.messages {
        let findings = scan(Rules::builtin(), message.text.as_bytes(), &message.origin);
        if findings.iter().any(|finding| finding.signal().is_some()) {
            found.push(message.text.lines().next().unwrap_or_default().to_owned());
        }
    }
    found
}

const DONE: &str = "The retry port is complete: all 61 tests pass and the docs are updated.";

#[test]
fn every_hosts_file_ends_in_its_claim() {
    for (host, name, tools, at) in [
        (CLAUDE_CODE, "claude_code/transcript.jsonl", true, true),
        (CODEX, "codex/rollout.jsonl", true, true),
        (COPILOT, "copilot/events.jsonl", true, true),
        (DROID, "droid/transcript.jsonl", true, true),
        (GEMINI, "gemini/session.jsonl", true, true),
    ] {
        let tail = tail(&read(&format!("hosts/samples/{name}")), host, None);
        assert_eq!(claims(&tail), [DONE], "{name}");
        assert_eq!(tail.tools_ran, tools, "{name}");
        assert!(tail.is_settled() && !tail.asked_user && !tail.truncated, "{name}");
        let last = tail.messages.iter().rfind(|message| message.text.starts_with(DONE)).unwrap();
        assert_eq!(last.at.is_some(), at, "{name}");
        assert_eq!(tail.turn_began.is_some(), at, "{name}");
        assert!(tail.turn_began <= last.at, "{name}");
    }
}

#[test]
fn size_makes_no_difference() {
    let filler = [user("u", "old prompt"), speech("a", "old\n<chorus>COMPLETE</chorus>")].concat();
    let turn = [
        user("u1", "Port it"),
        call("a1", "t1", "Bash"),
        result("r1", "t1"),
        speech("a2", "Done.\n\n<chorus>COMPLETE</chorus>"),
    ]
    .concat();
    let mut seen = Vec::new();
    for size in [0, 1 << 20, 64 << 20, 1 << 40] {
        let mut file = Large::new(filler.as_bytes(), size, turn.as_bytes());
        let mut tail = file.tail(CLAUDE_CODE, None, &look(None));
        assert!(file.taken <= (64 << 10) + 1024, "{size}: {} bytes", file.taken);
        tail.position.offset -= file.filler_len;
        seen.push(tail);
    }
    assert_eq!(seen[0].messages.len(), 1);
    assert_eq!(claims(&seen[0]), ["Done."]);
    assert!(seen[0].tools_ran && seen[0].answered);
    seen[0].position.digest = seen[1].position.digest;
    assert!(seen.windows(2).all(|pair| pair[0] == pair[1]), "{seen:#?}");
}

#[test]
fn a_turn_is_found_however_far_it_reaches() {
    let long = format!("{} {{\"x\":1}}", "word ".repeat(5000));
    let before = [user("u0", "old"), speech("a0", "<chorus>COMPLETE</chorus>")].concat();
    for results in [0, 1, 3, 10, 40] {
        let mut turn = user("u1", "Port it");
        for number in 0..results {
            turn.push_str(&call(&format!("c{number}"), "t", "Read"));
            turn.push_str(&text_result(&format!("r{number}"), "t", &long));
        }
        turn.push_str(&speech("end", "Half of it."));
        let mut file = Large::new(before.as_bytes(), 8 << 20, turn.as_bytes());
        let tail = file.tail(CLAUDE_CODE, None, &look(None));
        assert_eq!(claims(&tail), [""; 0], "{results}");
        assert_eq!((tail.tools_ran, tail.truncated), (results > 0, false));
        assert_eq!(tail.turn_began, "2026-03-02T10:00:00Z".parse().ok());
        assert_eq!(tail.messages.last().unwrap().text, "Half of it.");
        let most = 2 * turn.len() as u64 + (64 << 10) + 2048;
        assert!(file.taken <= most, "{results}: {} of {most}", file.taken);
    }
}

#[test]
fn there_is_an_end_to_reading() {
    let filler = call("a", "t", "Read");
    let limits = Limits { piece: 1 << 10, most: 1 << 16 };
    let look = TailOptions { limits, ..look(None) };
    let end = speech("z", "Done.");
    let mut file = Large::new(filler.as_bytes(), 1 << 30, end.as_bytes());
    let tail = file.tail(CLAUDE_CODE, None, &look);
    assert!(tail.truncated && tail.tools_ran && tail.answered);
    assert_eq!(tail.messages.last().unwrap().text, "Done.");
    assert!(file.taken <= (1 << 16) + 1024);

    let from = TailPosition::of(&mut file, 0).unwrap();
    file.taken = 0;
    let tail = file.tail(CLAUDE_CODE, Some(from), &look);
    assert!(tail.truncated && !tail.position_void);
    assert!(file.taken <= (1 << 16) + 2048);

    // One line without an end.
    let mut file = Large::new(b"x", 1 << 30, b"");
    let tail = file.tail(CLAUDE_CODE, None, &look);
    assert!(tail.truncated && tail.torn && tail.messages.is_empty());
}

#[test]
fn a_position_is_gone_on_from() {
    let first = [user("u1", "Port it"), speech("a1", "One.\n\n<chorus>COMPLETE</chorus>")].concat();
    let known = tail(first.as_bytes(), CLAUDE_CODE, None);
    assert_eq!(claims(&known), ["One."]);
    assert_eq!(known.position.offset, first.len() as u64);

    let nothing = tail(first.as_bytes(), CLAUDE_CODE, Some(known.position));
    assert!(nothing.messages.is_empty() && !nothing.answered && !nothing.tools_ran);
    assert_eq!(nothing.position, known.position);

    let feedback = meta("f1", "a1", "Stop hook feedback:\ngo on with <chorus>COMPLETE</chorus>");
    let more = format!("{first}{feedback}{}", speech("a2", "Two.\n\n<chorus>COMPLETE</chorus>"));
    let next = tail(more.as_bytes(), CLAUDE_CODE, Some(known.position));
    assert_eq!(claims(&next), ["Two."]);
    assert!(next.answered && !next.position_void && next.turn_began.is_none());
    // Without the position the turn counts from its prompt.
    assert_eq!(claims(&tail(more.as_bytes(), CLAUDE_CODE, None)), ["One.", "Two."]);

    // A new file in the place of the old one, and a shorter one.
    let anew = more.replace("Port it", "Send it");
    for bytes in [anew.as_bytes(), &more.as_bytes()[..first.len() - 10]] {
        let void = tail(bytes, CLAUDE_CODE, Some(known.position));
        assert!(void.position_void);
        let without = tail(bytes, CLAUDE_CODE, None);
        assert_eq!(Tail { position_void: false, ..void }, without);
    }
}

#[test]
fn a_torn_line_is_left_for_later() {
    let whole = [user("u1", "Port it"), speech("a1", "Half.")].concat();
    let last = speech("a2", "All.\n\n<chorus>COMPLETE</chorus>");
    for cut in [1, last.len() / 2, last.len() - 3] {
        let torn = tail(format!("{whole}{}", &last[..cut]).as_bytes(), CLAUDE_CODE, None);
        assert!(torn.torn && torn.answered && !torn.is_settled());
        assert_eq!(torn.position.offset, whole.len() as u64, "{cut}");
        let full = format!("{whole}{last}");
        let next = tail(full.as_bytes(), CLAUDE_CODE, Some(torn.position));
        assert_eq!(claims(&next), ["All."], "{cut}");
        // From the position on there is nothing but a torn line.
        let start = &full.as_bytes()[..whole.len() + cut];
        let again = tail(start, CLAUDE_CODE, Some(torn.position));
        assert!(again.torn && again.messages.is_empty());
        assert_eq!(again.position, torn.position);
    }
    // A line that only lacks its newline is whole.
    let bytes = format!("{whole}{}", last.trim_end());
    let unended = tail(bytes.as_bytes(), CLAUDE_CODE, None);
    assert!(!unended.torn && unended.is_settled());
    assert_eq!(unended.position.offset, bytes.len() as u64);
    let next = tail(format!("{bytes}\n").as_bytes(), CLAUDE_CODE, Some(unended.position));
    assert!(next.messages.is_empty() && !next.position_void);
    for name in ["transcript_torn_tail", "transcript_lagging"] {
        let bytes = read(&format!("hosts/samples/claude_code/{name}.jsonl"));
        let tail = tail(&bytes, CLAUDE_CODE, None);
        assert_eq!(claims(&tail), [""; 0], "{name}");
        assert!(!tail.is_settled(), "{name}");
    }
}

#[test]
fn questions_to_the_user_are_seen() {
    let ask = [user("u1", "Port it"), call("a1", "t1", "AskUserQuestion")].concat();
    let asked = |bytes: &str| tail(bytes.as_bytes(), CLAUDE_CODE, None).asked_user;
    assert!(asked(&ask));
    assert!(!asked(&format!("{ask}{}", result("r1", "t1"))));
    assert!(asked(&format!("{ask}{}", result("r1", "t2"))));
    assert!(!asked(&format!("{ask}{}", user("u2", "never mind"))));
    assert!(asked(&[user("u1", "Plan"), call("a1", "t1", "ExitPlanMode")].concat()));
}

#[test]
fn what_is_not_of_this_conversation_is_not_live() {
    let other = speech("x1", "<chorus>COMPLETE</chorus>").replace("\"S1\"", "\"S2\"");
    let file = [user("u1", "Port it"), speech("a1", "Working."), other].concat();
    let tail = Large::new(b"", 0, file.as_bytes()).tail(CLAUDE_CODE, None, &look(Some("S1")));
    assert_eq!(claims(&tail), [""; 0]);
    assert!(tail.messages.iter().any(|message| !message.origin.live));
    assert!(tail.answered, "an entry of another session is no entry of this one");

    // A tool of a sub-agent is not a tool of the agent.
    let side = call("s1", "t9", "Bash").replace("\"isSidechain\":false", "\"isSidechain\":true");
    let file = [user("u1", "Port it"), side, speech("a1", "Working.")].concat();
    let tail = self::tail(file.as_bytes(), CLAUDE_CODE, None);
    assert!(!tail.tools_ran && tail.answered);
}

#[test]
fn hostile_transcripts_are_heard_as_labelled() {
    let labels = String::from_utf8(read("hostile/other.jsonl")).unwrap();
    let mut checked = 0;
    for label in labels.lines() {
        let label: serde_json::Value = serde_json::from_str(label).unwrap();
        let name = label["file"].as_str().unwrap();
        // Streams are no files, and one file waits for its payload.
        let skipped = ["_18_", "_19_", "_10_"].iter().any(|part| name.contains(part));
        if label["dialect"] != "transcript" || skipped {
            continue;
        }
        let accepted = label["expected"].as_str().unwrap().starts_with("accept");
        let bytes = read(&format!("hostile/{name}"));
        let mut file = Large::new(b"", 0, &bytes);
        let tail = file.tail(CLAUDE_CODE, None, &look(Some("S1")));
        assert_eq!(claims(&tail).len(), usize::from(accepted), "{name}: {tail:#?}");
        checked += 1;
    }
    assert!(checked > 12, "the labels were not found");
}

fn is_settled(tail: Option<&Tail>) -> bool {
    tail.is_some_and(Tail::is_settled)
}

#[test]
fn late_lines_are_waited_for() {
    let before = user("u1", "Port it");
    let after = format!("{before}{}", speech("a1", "Done."));
    // When the last words come, in pauses, and how often the file is read; whether there is one before.
    for (late_by, reads, exists) in [
        (0, 1, true),
        (3, 2, true),
        (30, 2, true),
        (1000, 1, true),
        (3, 2, false),
        (30, 2, false),
        (1000, 1, false),
    ] {
        let (pauses, asked) = (Cell::new(0), Cell::new(0));
        let before = exists.then_some(&before);
        let bytes = || if pauses.get() < late_by { before } else { Some(&after) };
        let read = || {
            asked.set(asked.get() + 1);
            Ok::<_, TailError>(bytes().map(|text| tail(text.as_bytes(), CLAUDE_CODE, None)))
        };
        let sleep = |pause| {
            assert_eq!(pause, SETTLE_PAUSE);
            pauses.set(pauses.get() + 1);
        };
        let length = || bytes().map_or(0, |text| text.len() as u64);
        let settled = settle(read, is_settled, length, sleep).unwrap();
        assert_eq!(asked.get(), reads, "{late_by}");
        assert_eq!(is_settled(settled.as_ref()), late_by < 31);
        assert_eq!(pauses.get(), late_by.min(30));
    }
}

#[test]
fn a_file_that_keeps_growing_is_read_a_few_times() {
    let (length, reads) = (Cell::new(0_u64), Cell::new(0));
    let growing = user("u1", "Port it");
    let read = || {
        reads.set(reads.get() + 1);
        Ok::<_, TailError>(Some(tail(growing.as_bytes(), CLAUDE_CODE, None)))
    };
    let settled =
        settle(read, is_settled, || length.get(), |_| length.set(length.get() + 1)).unwrap();
    assert!(!is_settled(settled.as_ref()));
    assert_eq!(reads.get(), 5, "four times while it grows, and once when the time is over");
}

#[test]
#[cfg(unix)]
fn only_plain_files_in_their_place_are_read() {
    let place = tempfile::tempdir().unwrap();
    let inside = place.path().join("inside");
    fs::create_dir(&inside).unwrap();
    let file = inside.join("t.jsonl");
    fs::write(&file, speech("a1", "Done.")).unwrap();
    let fifo = inside.join("fifo");
    let made = std::process::Command::new("mkfifo").arg(&fifo).status().unwrap();
    assert!(made.success());
    std::os::unix::fs::symlink(&file, inside.join("link")).unwrap();
    std::os::unix::fs::symlink(&inside, place.path().join("folder-link")).unwrap();
    std::os::unix::fs::symlink("/etc", inside.join("etc")).unwrap();
    let outside = place.path().join("outside.jsonl");
    fs::write(&outside, "").unwrap();
    let socket = inside.join("socket");
    let _listener = std::os::unix::net::UnixListener::bind(&socket).unwrap();
    let roots = [inside.clone(), "relative".into(), "/".into()];
    let look = TailOptions { roots: &roots, ..look(None) };
    let code =
        |path: &Path| read_tail(path, CLAUDE_CODE, None, &look).err().map(|error| error.code());
    assert_eq!(code(&file), None);
    assert_eq!(code(&inside.join("../inside/t.jsonl")), None);
    assert_eq!(code(&place.path().join("folder-link/t.jsonl")), None);
    for (path, expected) in [
        (fifo, "transcript_not_a_file"),
        (socket, "transcript_not_a_file"),
        (inside.join("link"), "transcript_symlink"),
        (inside.join("none.jsonl"), "transcript_missing"),
        (inside.join("t.jsonl/x"), "transcript_not_a_file"),
        (inside.join("etc/passwd"), "transcript_outside"),
        (inside.join("../outside.jsonl"), "transcript_outside"),
        (outside, "transcript_outside"),
        (inside.clone(), "transcript_outside"),
        (inside.join(".."), "transcript_not_a_file"),
        (inside.join("t.jsonl.zst"), "transcript_compressed"),
        ("/dev/zero".into(), "transcript_outside"),
        ("t.jsonl".into(), "transcript_missing"),
    ] {
        assert_eq!(code(&path), Some(expected), "{}", path.display());
    }
    fs::create_dir(inside.join("folder")).unwrap();
    assert_eq!(code(&inside.join("folder")), Some("transcript_not_a_file"));
}

fn entry(uuid: &str, kind: &str, message: &serde_json::Value) -> String {
    // Entries without a parent follow the one before them.
    let entry = serde_json::json!({
        "type": kind, "uuid": uuid, "sessionId": "S1", "isSidechain": false, "message": message,
        "timestamp": "2026-03-02T10:00:00Z",
    });
    format!("{entry}\n")
}

fn user(uuid: &str, text: &str) -> String {
    entry(uuid, "user", &serde_json::json!({"role": "user", "content": text}))
}

fn meta(uuid: &str, parent: &str, text: &str) -> String {
    let parent = format!("{{\"parentUuid\":\"{parent}\",\"isMeta\":true,");
    user(uuid, text).replacen('{', &parent, 1)
}

fn blocks(uuid: &str, role: &str, block: &serde_json::Value) -> String {
    entry(uuid, role, &serde_json::json!({"role": role, "content": [block]}))
}

fn speech(uuid: &str, text: &str) -> String {
    blocks(uuid, "assistant", &serde_json::json!({"type": "text", "text": text}))
}

fn call(uuid: &str, id: &str, name: &str) -> String {
    let block = serde_json::json!({"type": "tool_use", "id": id, "name": name, "input": {}});
    blocks(uuid, "assistant", &block)
}

fn result(uuid: &str, id: &str) -> String {
    text_result(uuid, id, "ok")
}

fn text_result(uuid: &str, id: &str, text: &str) -> String {
    let block = serde_json::json!({"type": "tool_result", "tool_use_id": id, "content": text});
    blocks(uuid, "user", &block)
}
