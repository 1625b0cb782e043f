//! A transcript in the shape of Claude Code's: one JSON object a line, most bytes in tool results.

use std::fmt::Write as _;

use super::{BAIT, Expected, Rng, claims, filler};

/// A transcript and what the agent says in it.
#[derive(Clone, Debug)]
pub struct BulkTranscript {
    /// The JSON lines.
    pub text: String,
    /// The signals of the assistant's own text, in order, each with its dialect.
    pub signals: Vec<(&'static str, Expected)>,
}

/// Writes entries that each name their predecessor, in the host's key order.
#[derive(Debug)]
struct TranscriptWriter {
    rng: Rng,
    text: String,
    parent: Option<String>,
    seconds: u64,
}

impl TranscriptWriter {
    fn uuid(&mut self) -> String {
        let (a, b) = (self.rng.bits(), self.rng.bits());
        format!(
            "{:08x}-{:04x}-4{:03x}-a{:03x}-{:012x}",
            a >> 32,
            (a >> 16) & 0xffff,
            a & 0xfff,
            b >> 52,
            b & 0xffff_ffff_ffff
        )
    }

    /// Writes one entry around its own members.
    fn entry(&mut self, members: &str) {
        let uuid = self.uuid();
        self.seconds += 1 + self.rng.below(40) as u64;
        let (hour, minute, second) =
            (self.seconds / 3600 % 24, self.seconds / 60 % 60, self.seconds % 60);
        let parent =
            self.parent.as_ref().map_or_else(|| "null".to_owned(), |known| format!("\"{known}\""));
        // Writing to a string cannot fail.
        let _ = writeln!(
            self.text,
            "{{\"parentUuid\":{parent},\"isSidechain\":false,{members},\"uuid\":\"{uuid}\",\
             \"timestamp\":\"2026-09-14T{hour:02}:{minute:02}:{second:02}.950Z\",\
             \"userType\":\"external\",\"entrypoint\":\"cli\",\"cwd\":\"/srv/widget\",\
             \"sessionId\":\"7b1d6c52-0f7e-4c7b-9a35-3f3f0c9d8a11\",\"version\":\"2.1.270\",\
             \"gitBranch\":\"feat/retry\"}}"
        );
        self.parent = Some(uuid);
    }

    fn prompt(&mut self, text: &str) {
        let text = quoted(text);
        self.entry(&format!(
            "\"promptId\":\"p\",\"type\":\"user\",\"message\":{{\"role\":\"user\",\"content\":{text}}},\
             \"permissionMode\":\"acceptEdits\""
        ));
    }

    fn assistant(&mut self, block: &str) {
        let id = self.rng.bits();
        self.entry(&format!(
            "\"message\":{{\"model\":\"claude-opus-4-8\",\"id\":\"msg_{id:016x}\",\"type\":\"message\",\
             \"role\":\"assistant\",\"content\":[{block}],\"stop_reason\":null,\
             \"stop_sequence\":null,\"usage\":{{\"input_tokens\":4,\"output_tokens\":212}}}},\
             \"requestId\":\"req_{id:016x}\",\"type\":\"assistant\",\"apiBlockIndex\":0"
        ));
    }

    fn say(&mut self, text: &str) {
        let text = quoted(text);
        self.assistant(&format!("{{\"type\":\"text\",\"text\":{text}}}"));
    }

    /// A tool call and its result; the host repeats the result's text for its own display.
    fn tool(&mut self, result: &str) {
        let id = self.rng.bits();
        self.assistant(&format!(
            "{{\"type\":\"tool_use\",\"id\":\"toolu_{id:016x}\",\"name\":\"Bash\",\
             \"input\":{{\"command\":\"rg -n limits docs src\"}}}}"
        ));
        let result = quoted(result);
        let display = if self.rng.chance(50) { result.as_str() } else { "\"...\"" };
        self.entry(&format!(
            "\"promptId\":\"p\",\"type\":\"user\",\"message\":{{\"role\":\"user\",\"content\":[\
             {{\"tool_use_id\":\"toolu_{id:016x}\",\"type\":\"tool_result\",\"content\":{result}}}]}},\
             \"toolUseResult\":{{\"stdout\":{display},\"stderr\":\"\",\"interrupted\":false}}"
        ));
    }
}

fn quoted(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}

/// What a tool printed: code, logs, search hits, and in one of twenty results signals that are not
/// the agent's.
fn tool_output(rng: &mut Rng, bytes: usize) -> String {
    let mut text = String::with_capacity(bytes + 1024);
    if rng.chance(5) {
        let dialect = rng.pick(claims::ALL);
        text.push_str(&claims::any(rng, dialect).text);
        text.push('\n');
        text.push_str(rng.pick(BAIT));
        text.push('\n');
    }
    while text.len() < bytes {
        text.push_str(&filler::piece(rng));
        text.push('\n');
    }
    text
}

/// Mostly some kilobytes, sometimes a file of a megabyte.
fn result_size(rng: &mut Rng) -> usize {
    match rng.below(800) {
        0 => rng.between(400_000, 1_000_000),
        1..=20 => rng.between(40_000, 120_000),
        _ => rng.between(500, 9_000),
    }
}

/// Makes a transcript of about `bytes` bytes: 89 % of them in tool results, lines up to about a
/// megabyte (two where the host repeats the text), so many percent of the agent's messages signalled.
pub fn claude_transcript(bytes: usize, signalled: usize, seed: u64) -> BulkTranscript {
    let writer_rng = Rng::new(seed ^ 0x5eed);
    let mut rng = Rng::new(seed);
    let text = String::with_capacity(bytes + (2 << 20));
    let mut writer = TranscriptWriter { rng: writer_rng, text, parent: None, seconds: 32_400 };
    let mut signals = Vec::new();
    let asked = "Port the retry module. When it is finished, say:\n\n<promise>COMPLETE</promise>";
    writer.prompt(asked);
    while writer.text.len() < bytes {
        if rng.chance(signalled) {
            let dialect = claims::ALL[signals.len() % claims::ALL.len()];
            let claim = claims::done(&mut rng, dialect);
            writer.say(&filler::around(&mut rng, dialect, &claim.text));
            signals.push((dialect, claim.expected));
        } else {
            writer.say(&filler::paragraph(&mut rng));
        }
        if rng.chance(2) {
            writer.prompt("Go on.");
        }
        let size = result_size(&mut rng);
        writer.tool(&tool_output(&mut rng, size));
    }
    BulkTranscript { text: writer.text, signals }
}
