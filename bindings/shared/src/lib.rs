//! What the bindings share: rules by name, findings and messages as plain data, and a scanner that
//! owns its rules. Each binding only turns these into the objects of its language.

#![forbid(unsafe_code)]

mod explain;
mod stream;

use std::sync::Arc;

use aldis_signal::{
    Dialect, Fields, Finding, Message, NearMiss, Origin, Place, Role, Rules, Scan, Signal, Token,
    prompt,
};
use aldis_transcript::{Input, Reader};

pub use explain::explain;
pub use stream::Stream;

/// What is wrong with what the caller passed, in words.
pub type InputError = String;

/// Makes rules of dialects by name, `promise=TEXT` and `turn=KEYWORD` included, and of the texts of
/// dialect files; all built-in dialects where neither is given.
///
/// # Errors
///
/// Names the unknown dialect, or what is wrong in which line of a dialect file.
pub fn rules(names: &[String], files: &[String], strict: bool) -> Result<Rules, InputError> {
    let mut dialects = names.iter().map(|name| named(name)).collect::<Result<Vec<_>, _>>()?;
    for text in files {
        dialects.push(Arc::new(Dialect::from_toml(text).map_err(|error| error.to_string())?));
    }
    if dialects.is_empty() {
        dialects.extend(aldis_signal::dialect::builtins().iter().cloned());
    }
    Ok(Rules::new(dialects).strict(strict))
}

fn named(choice: &str) -> Result<Arc<Dialect>, InputError> {
    let (name, word) = match choice.split_once('=') {
        Some((name, word)) => (name, Some(word)),
        None => (choice, None),
    };
    let Some(dialect) = Dialect::builtin(name) else {
        let all = aldis_signal::dialect::builtins().iter().map(|it| &*it.name);
        let all = all.collect::<Vec<_>>().join(", ");
        return Err(format!("no dialect is named `{name}`; there are {all}"));
    };
    match word {
        None => Ok(Arc::clone(dialect)),
        Some(word) => dialect.with_word(word).map(Arc::new).map_err(|error| error.to_string()),
    }
}

/// The instructions an agent needs to write signals of these dialects.
pub fn instructions(rules: &Rules, token: Option<&str>) -> String {
    let of = |dialect: &Arc<Dialect>| match token {
        Some(token) => prompt::instructions_with_token(dialect, token),
        None => prompt::instructions(dialect),
    };
    rules.dialects().iter().map(of).collect::<Vec<_>>().join("\n\n")
}

/// Who wrote a text, and how its token is treated.
#[derive(Clone, Debug, Default)]
pub struct ScanOptions {
    /// `assistant`, `host`, `subagent`, `system`, `tool` or `user`; `assistant` by default.
    pub origin: Option<String>,
    /// The run token.
    pub token: Option<String>,
    /// Refuse signals without the token.
    pub require_token: bool,
}

impl ScanOptions {
    /// Returns a scan with these options.
    ///
    /// # Errors
    ///
    /// Fails if there is no such origin, or a token is missing.
    pub fn scan<'r>(&self, rules: &'r Rules) -> Result<Scan<'r>, InputError> {
        let token = match (&self.token, self.require_token) {
            (None, true) => return Err("`require_token` needs a `token`".to_owned()),
            (None, false) => Token::Off,
            (Some(token), _) if token.is_empty() => {
                return Err("an empty run token protects nothing".to_owned());
            }
            (Some(token), true) => Token::Require(token.clone()),
            (Some(token), false) => Token::Accept(token.clone()),
        };
        let name = self.origin.as_deref().unwrap_or("assistant");
        let role = ROLES.into_iter().find(|role| role.as_str() == name).ok_or_else(|| {
            let all = ROLES.map(Role::as_str).join(", ");
            format!("no origin is named `{name}`; there are {all}")
        })?;
        Ok(Scan::new(rules).origin(Origin::new(role)).token(token))
    }
}

/// A finding without lifetimes or enums.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Found {
    /// Whether it counts; otherwise it is a near miss.
    pub counts: bool,
    /// The dialect it is written in, or resembles.
    pub dialect: String,
    /// Canonical name.
    pub name: String,
    /// What a signal says in any dialect: `done`, `blocked`, ...
    pub meaning: Option<String>,
    /// What a signal is about.
    pub subject: Option<String>,
    /// The free text of a signal.
    pub payload: Option<String>,
    /// Percentage.
    pub progress: Option<u8>,
    /// Further members, as JSON.
    pub fields: Fields,
    /// What was odd about a signal and tolerated.
    pub warnings: Vec<String>,
    /// Why a near miss does not count: a stable code.
    pub reason: Option<String>,
    /// What to write instead of a near miss.
    pub hint: Option<String>,
    /// ScanOptions many later near misses of its kind it stands for.
    pub more: u64,
    /// How a signal came: `said`, or `token` with the run token.
    pub via: Option<String>,
    /// Who wrote it.
    pub role: String,
    /// Line and column, from 1; the column counts bytes.
    pub line: u64,
    /// See `line`.
    pub column: u64,
    /// First byte in the text.
    pub start: u64,
    /// One past the last byte.
    pub end: u64,
    /// What was written.
    pub raw: String,
}

impl From<Finding> for Found {
    fn from(finding: Finding) -> Self {
        match finding {
            Finding::Signal(signal) => (*signal).into(),
            Finding::NearMiss(miss) => (*miss).into(),
        }
    }
}

impl From<Signal> for Found {
    fn from(signal: Signal) -> Self {
        Self {
            counts: true,
            dialect: signal.dialect.to_string(),
            name: signal.name.to_string(),
            meaning: Some(signal.meaning.to_string()),
            progress: signal.progress,
            fields: signal.fields,
            warnings: signal.warnings.iter().map(ToString::to_string).collect(),
            via: Some(signal.via.to_string()),
            role: signal.origin.role.to_string(),
            subject: signal.subject,
            payload: signal.payload,
            raw: signal.raw,
            ..Self::at(&signal.place)
        }
    }
}

impl From<NearMiss> for Found {
    fn from(miss: NearMiss) -> Self {
        Self {
            dialect: miss.dialect.to_string(),
            name: miss.name.to_string(),
            reason: Some(miss.reason.to_string()),
            hint: Some(miss.hint()),
            more: miss.more,
            role: miss.origin.role.to_string(),
            raw: miss.raw,
            ..Self::at(&miss.place)
        }
    }
}

impl Found {
    fn at(place: &Place) -> Self {
        let (line, column) = (place.line, place.column);
        Self { line, column, start: place.span.start, end: place.span.end, ..Self::default() }
    }
}

/// Scans a whole text.
///
/// # Errors
///
/// Fails if the options are wrong.
pub fn scan(rules: &Rules, text: &[u8], options: &ScanOptions) -> Result<Vec<Found>, InputError> {
    Ok(options.scan(rules)?.run(text).into_iter().map(Found::from).collect())
}

/// A message of a transcript.
#[derive(Clone, Debug, PartialEq)]
pub struct TranscriptMessage {
    /// Counts messages from 0.
    pub index: u64,
    /// The line of the file, from 1.
    pub entry: Option<u64>,
    /// Who wrote it.
    pub role: String,
    /// The agent, where the host names one.
    pub agent: Option<String>,
    /// Whether it was written inside a sub-agent's own conversation.
    pub sidechain: bool,
    /// Whether it is part of the conversation as it stands: not rewound, not of another session.
    pub live: bool,
    /// Whether a signal in it can count.
    pub may_signal: bool,
    /// When, as RFC 3339.
    pub at: Option<String>,
    /// The host's id of the message.
    pub id: Option<String>,
    /// Its text.
    pub text: String,
    /// What was found in it; empty without rules.
    pub findings: Vec<Found>,
}

/// Reads the bytes of a transcript, and scans each message where there are rules.
///
/// # Errors
///
/// Fails if there is no such format, or the options are wrong.
pub fn read_transcript(
    bytes: &[u8],
    format: &str,
    agent: Option<&str>,
    rules: Option<(&Rules, &ScanOptions)>,
) -> Result<Vec<TranscriptMessage>, InputError> {
    let input = Input::from_name(format)
        .ok_or_else(|| format!("no format is named `{format}`; `auto` recognises it"))?;
    let scan = rules.map(|(rules, options)| options.scan(rules)).transpose()?;
    let mut messages = Vec::new();
    let mut sink = |message: Message| messages.push(TranscriptMessage::new(message, scan.as_ref()));
    let mut reader = Reader::new(input.resolve(bytes));
    if let Some(agent) = agent {
        reader = reader.of_agent(agent);
    }
    reader.push(bytes, &mut sink);
    reader.finish(&mut sink);
    Ok(messages)
}

impl TranscriptMessage {
    fn new(message: Message, scan: Option<&Scan<'_>>) -> Self {
        let found = |scan: &Scan<'_>| {
            scan.clone().origin(message.origin.clone()).run(message.text.as_bytes())
        };
        let findings = scan.map(found).unwrap_or_default().into_iter().map(Found::from).collect();
        Self {
            index: message.index,
            entry: message.entry,
            role: message.origin.role.to_string(),
            sidechain: message.origin.sidechain,
            live: message.origin.live,
            may_signal: message.origin.may_signal(),
            agent: message.origin.agent,
            at: message.at.map(|at| at.to_string()),
            id: message.id,
            text: message.text,
            findings,
        }
    }
}

const ROLES: [Role; 6] =
    [Role::Assistant, Role::Host, Role::Subagent, Role::System, Role::Tool, Role::User];
