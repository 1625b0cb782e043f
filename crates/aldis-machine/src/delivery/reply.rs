//! What an agent wrote, as far as the machine needs it: signals, near misses, and a question that is
//! written in the wrong form.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::signal::{DIALECT, SignalKind};
use crate::Miss;
use crate::calls;
use crate::evidence::beginning;
use aldis_signal::redact::{redact, redact_value};
use aldis_signal::scan::{Rules, Scan, Token};
use aldis_signal::signal::{Fields, Finding, NearMiss, Reason, Signal, Via};

/// How much of an agent's text is quoted as evidence, and shown in logs.
pub(super) const PREVIEW_MAX: usize = 200;
/// How many signals, and how many near misses, of one reply are kept.
const FINDINGS_MAX: usize = 64;
/// How many headings of one signal are kept, and how much text without a heading.
const HEADINGS_MAX: usize = 64;
const PROSE_MAX: usize = 4_000;
/// No heading is longer.
const HEADING_LENGTH_MAX: usize = 120;

/// What a reply holds.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct AgentReply {
    /// Its signals, in order.
    #[serde(default)]
    pub signals: Vec<ReportedSignal>,
    /// What looked like a signal and was none.
    #[serde(default, alias = "misses", skip_serializing_if = "Vec::is_empty")]
    pub near_misses: Vec<Miss>,
    /// A question to a human whose signal is a near miss: what stands behind and below the name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub misread_question: Option<String>,
    /// The beginning of the reply, for people who ask.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub preview: String,
}

impl AgentReply {
    /// Reads a reply. `token` is what [`State::expected_token`](super::State::expected_token) says
    /// about the agent.
    pub fn read(rules: &Rules, token: &Token, text: &str) -> Self {
        let preview = beginning(text.trim_start(), PREVIEW_MAX, token);
        let mut reply = Self { preview, ..Self::default() };
        for finding in Scan::new(rules).token(token.clone()).run(text.as_bytes()) {
            match finding {
                Finding::Signal(signal) if &*signal.dialect == DIALECT => {
                    reply.signals.push(ReportedSignal::new(&signal, token, text));
                }
                Finding::NearMiss(miss) if &*miss.dialect == DIALECT => {
                    if let Some(question) = misread_question(&miss, text) {
                        reply.misread_question = Some(beginning(&question, PROSE_MAX, token));
                    }
                    reply.near_misses.push(Miss::new(&miss, PREVIEW_MAX, token));
                }
                _ => {}
            }
        }
        // What stands last is what the agent meant.
        reply.signals.drain(..reply.signals.len().saturating_sub(FINDINGS_MAX));
        reply.near_misses.drain(..reply.near_misses.len().saturating_sub(FINDINGS_MAX));
        reply
    }
}

impl AgentReply {
    /// Adds what the agent reported by a call. What its text reports stands before it.
    pub fn add_call(&mut self, signal: &Signal) {
        self.signals.push(ReportedSignal::new(signal, &Token::Off, ""));
        self.signals.drain(..self.signals.len().saturating_sub(FINDINGS_MAX));
    }
}

impl AgentReply {
    /// Turns signals that came in a way that is not enough into near misses. What no tool reports
    /// stays as it is.
    pub fn demand(&mut self, accept: Via, hint: impl Fn(&str, Via) -> String) {
        let counts = |signal: &ReportedSignal| {
            signal.via >= accept
                || signal.name == SignalKind::Checkpoint.as_str()
                || !calls::has_tool(&signal.name)
        };
        let (kept, refused) = std::mem::take(&mut self.signals).into_iter().partition(counts);
        self.signals = kept;
        let refused: Vec<ReportedSignal> = refused;
        self.near_misses.extend(refused.into_iter().map(|signal| Miss {
            hint: hint(&signal.name, signal.via),
            name: signal.name,
            reason: calls::UNATTESTED.to_owned(),
            line: signal.line,
            quote: signal.quote,
        }));
    }
}

/// Returns the question of a near miss that only has the wrong form: bold, in another case, with a
/// task's id behind it. One that is quoted, indented or part of a sentence is none.
fn misread_question(miss: &NearMiss, text: &str) -> Option<String> {
    let form = matches!(
        miss.reason,
        Reason::Decorated | Reason::Misspelled | Reason::NotWholeLine | Reason::WrongCase
    );
    if &*miss.name != SignalKind::SeekingClarification.as_str() || !form {
        return None;
    }
    let number = usize::try_from(miss.place.line).ok()?.checked_sub(1)?;
    let line = text.lines().nth(number)?;
    let end = usize::try_from(miss.place.column).ok()?.checked_sub(1)?;
    // A name of another case or spelling is as long as the line has it.
    let rest =
        line.get(end..)?.trim_start_matches(|c: char| c.is_alphanumeric() || "_ ".contains(c));
    let behind = rest.trim_start_matches(['*', '_', '`', '#', ' ']);
    let (alone, behind) = match behind.strip_prefix(':') {
        Some(behind) => (true, behind.trim().trim_end_matches(['*', '_'])),
        None => (behind.trim().is_empty(), ""),
    };
    // A sentence that begins with the name is about it.
    let named = line.get(end..)?.split(':').next()?.split_whitespace().count() <= 3;
    if !alone || !named {
        return None;
    }
    let below: Vec<&str> = text.lines().skip(number + 1).collect();
    let question = format!("{behind}\n{}", below.join("\n"));
    Some(question.trim().to_owned()).filter(|question| !question.is_empty())
}

/// A signal, as far as the machine needs it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReportedSignal {
    /// Its name.
    pub name: String,
    /// What it is about.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub subject: Option<String>,
    /// What stands below it, by key.
    #[serde(default, skip_serializing_if = "Fields::is_empty")]
    pub fields: Fields,
    /// The keys as the agent wrote them, in its order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub headings: Vec<String>,
    /// What stands below it without a key.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub prose: String,
    /// The line in the reply.
    #[serde(default)]
    pub line: u64,
    /// The text, cut to a reasonable length.
    #[serde(default)]
    pub quote: String,
    /// How it came.
    #[serde(default, skip_serializing_if = "Via::is_said")]
    pub via: Via,
}

impl ReportedSignal {
    /// Takes over what a signal says, without its secrets.
    fn new(signal: &Signal, token: &Token, text: &str) -> Self {
        let mut fields = signal.fields.clone();
        fields.values_mut().for_each(redact_value);
        let start = usize::try_from(signal.place.span.end).unwrap_or(usize::MAX);
        let end = signal.body_end.map_or(0, |end| usize::try_from(end).unwrap_or(usize::MAX));
        let (headings, prose) = outline(text.get(start..end).unwrap_or_default(), &fields);
        let mut reported = Self {
            name: signal.name.to_string(),
            subject: signal.subject.as_deref().map(|subject| redact(subject).into_owned()),
            fields,
            headings,
            prose: beginning(&prose, PROSE_MAX, token),
            line: signal.place.line,
            quote: String::new(),
            via: signal.via,
        };
        reported.quote = beginning(&reported.in_one_line(&signal.raw), PREVIEW_MAX, token);
        reported
    }

    /// The signal and what stands below it in one line, for whoever asks why.
    fn in_one_line(&self, raw: &str) -> String {
        let mut line = raw.to_owned();
        for (index, word) in self.body().split_whitespace().enumerate() {
            line.push_str(if index == 0 { " · " } else { " " });
            line.push_str(word);
        }
        line
    }

    /// Returns what stands below it as text, in the agent's order.
    pub(super) fn body(&self) -> String {
        self.body_without(&[])
    }

    /// Returns what stands below it as text, but for some keys.
    pub(super) fn body_without(&self, keys: &[&str]) -> String {
        let mut text = self.prose.trim().to_owned();
        if !text.is_empty() {
            text.push('\n');
        }
        for (heading, key, value) in self.sections() {
            if !keys.contains(&key) {
                text.push_str(&heading);
                text.push(':');
                push_value(&mut text, value);
                text.push('\n');
            }
        }
        text
    }

    /// The fields with their headings: those that the agent wrote first, in its order.
    fn sections(&self) -> Vec<(String, &str, &Value)> {
        let mut sections = Vec::new();
        for heading in &self.headings {
            if let Some((key, value)) = self.fields.get_key_value(&field_key(heading)) {
                sections.push((heading.clone(), key.as_str(), value));
            }
        }
        // Replies of 0.1.0 were stored without their headings, and a delegated prompt has none.
        for (key, value) in &self.fields {
            if !sections.iter().any(|(_, known, _)| known == key) {
                sections.push((heading_of(key), key, value));
            }
        }
        sections
    }

    /// Returns the first of these fields that says something, else everything.
    pub(super) fn first_field(&self, keys: &[&str]) -> String {
        let found = keys.iter().map(|key| self.field(key)).find(|text| !text.is_empty());
        found.unwrap_or_else(|| self.body())
    }

    /// Returns a field as text; empty when it is missing.
    pub(super) fn field(&self, name: &str) -> String {
        self.fields.get(name).map(|value| lines(value).join("\n")).unwrap_or_default()
    }

    /// Returns a field as a list; empty when it is missing.
    pub(super) fn list(&self, name: &str) -> Vec<String> {
        list(&self.fields, name)
    }
}

/// A field as a list; empty when it is missing.
pub(super) fn list(fields: &Fields, name: &str) -> Vec<String> {
    let all = fields.get(name).map(lines).unwrap_or_default();
    all.into_iter().filter(|item| !item.trim().is_empty()).collect()
}

/// The lines of a field: its items, or its text.
fn lines(value: &Value) -> Vec<String> {
    match value {
        Value::Array(items) => items.iter().map(item).collect(),
        value => vec![item(value)],
    }
}

fn push_value(text: &mut String, value: &Value) {
    for line in lines(value) {
        text.push_str(match (value.is_array(), line.contains('\n')) {
            (true, _) => "\n- ",
            (false, true) => "\n",
            (false, false) => " ",
        });
        text.push_str(&line);
    }
}

fn item(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Object(place) => {
            let part = |key: &str| place.get(key).map(item).unwrap_or_default();
            format!("{}:{}: {}", part("file"), part("line"), part("text"))
        }
        value => value.to_string(),
    }
}

/// Returns the headings in a body, and the text before the first of them.
fn outline(body: &str, fields: &Fields) -> (Vec<String>, String) {
    let (mut headings, mut prose) = (Vec::<String>::new(), String::new());
    for line in body.lines() {
        match heading(line) {
            Some("TOKEN") => {}
            Some(name) if fields.contains_key(&field_key(name)) => {
                let known = headings.iter().any(|known| field_key(known) == field_key(name));
                if !known && headings.len() < HEADINGS_MAX {
                    headings.push(name.to_owned());
                }
            }
            // A delegated prompt is a field of its own.
            _ if line.starts_with("---DELEGATION PROMPT") => break,
            _ if headings.is_empty() => {
                prose.push_str(line);
                prose.push('\n');
            }
            _ => {}
        }
    }
    (headings, prose.trim().to_owned())
}

/// What stands before the colon of a line that may begin a field, without a remark in parentheses.
fn heading(line: &str) -> Option<&str> {
    let (name, _) = line.split_once(':')?;
    let name = name.split_once('(').map_or(name, |(name, _)| name).trim_end();
    let fits =
        name.len() <= HEADING_LENGTH_MAX && name.starts_with(|c: char| c.is_ascii_uppercase());
    fits.then_some(name)
}

/// The key under which the scanner keeps a heading's value.
fn field_key(heading: &str) -> String {
    let mut key = String::with_capacity(heading.len());
    for letter in heading.trim().chars() {
        match letter {
            ' ' | '-' | '_' if key.ends_with('_') => {}
            ' ' | '-' | '_' => key.push('_'),
            letter => key.extend(letter.to_lowercase()),
        }
    }
    key
}

fn heading_of(key: &str) -> String {
    let mut letters = key.chars();
    let first = letters.next().map(|first| first.to_ascii_uppercase());
    first.into_iter().collect::<String>() + &letters.as_str().replace('_', " ")
}

/// The beginning of a text, as far as logs show it.
pub(super) fn preview(text: &str) -> String {
    crate::words::cut(text.trim_start(), PREVIEW_MAX).to_owned()
}

#[cfg(test)]
mod tests {
    //! What is kept of a reply.

    use super::*;

    fn read(text: &str) -> AgentReply {
        AgentReply::read(Rules::builtin(), &Token::Off, text)
    }

    #[test]
    fn fields_keep_their_order_and_their_spelling() {
        let text = "AUDIT_BLOCKED: t1\n\nThe suite is red.\n\nPre-existing Failures (main):\n\
            - 4 tests fail\nEnvironment: Mac\nCommand: make test\n\nOutput:\nline 1\nline 2\n";
        let signal = &read(text).signals[0];
        assert_eq!(
            signal.body(),
            "The suite is red.\nPre-existing Failures:\n- 4 tests fail\nEnvironment: Mac\n\
             Command: make test\nOutput:\nline 1\nline 2\n"
        );
        assert_eq!(
            signal.body_without(&["output", "command", "pre_existing_failures"]),
            "The suite is red.\nEnvironment: Mac\n"
        );
        assert_eq!(signal.field("pre_existing_failures"), "4 tests fail");
        let begins = "AUDIT_BLOCKED: t1 · The suite is red. Pre-existing Failures: - 4 tests";
        assert!(signal.quote.starts_with(begins), "{}", signal.quote);
    }

    #[test]
    fn replies_that_were_stored_without_headings_are_still_shown() {
        let mut signal =
            read("TASK_INCOMPLETE: t1\nNeeded: a key\nBlocker: none").signals.remove(0);
        signal.headings.clear();
        assert_eq!(signal.body(), "Blocker: none\nNeeded: a key\n");
    }

    #[test]
    fn a_question_in_the_wrong_form_is_kept() {
        let below = "\n\nQuestion: keep or drop?\nContext: two clients";
        let kept = Some("Question: keep or drop?\nContext: two clients");
        for (line, question) in [
            (
                "SEEKING_DIVINE_CLARIFICATION: bye",
                Some("bye\n\nQuestion: keep or drop?\nContext: two clients"),
            ),
            ("SEEKING_DIVINE_CLARIFICATION:", kept),
            ("**SEEKING_DIVINE_CLARIFICATION**", kept),
            ("## SEEKING_DIVINE_CLARIFICATION", kept),
            ("- SEEKING_DIVINE_CLARIFICATION", kept),
            ("Seeking_Divine_Clarification", kept),
            ("SEEKING DIVINE CLARIFICATION", kept),
            ("SEEKING_DIVINE_CLARIFICATIONS", kept),
            // Talk about it, quotations and echoes of a prompt are no questions.
            ("SEEKING_DIVINE_CLARIFICATION is not needed.", None),
            ("Seeking divine clarification would be premature here.", None),
            ("> SEEKING_DIVINE_CLARIFICATION", None),
            ("`SEEKING_DIVINE_CLARIFICATION`", None),
            ("    SEEKING_DIVINE_CLARIFICATION", None),
            ("READY_FOR_REVIEW: [task_id]", None),
        ] {
            let reply = read(&format!("I looked.\n\n{line}{below}"));
            assert_eq!(reply.misread_question.as_deref(), question, "{line}");
        }
        assert_eq!(read("SEEKING_DIVINE_CLARIFICATION:").misread_question, None, "it asks nothing");
    }
}
