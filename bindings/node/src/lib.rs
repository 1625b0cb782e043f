//! The native part of the Node package: the shared plain data as JavaScript objects. `index.js` adds
//! what JavaScript says better: streams, files, defaults.

use std::sync::Arc;

use aldis_bindings::{Found, InputError, Stream, TranscriptMessage};
use napi::bindgen_prelude::{AsyncTask, Either, Uint8Array};
use napi::{Env, Error, Result, Status, Task};
use napi_derive::napi;
use serde_json::{Map, Value};

/// A text as JavaScript has it.
type Text = Either<String, Uint8Array>;

/// Who wrote a text, and how its token is treated.
#[napi(object)]
#[derive(Debug, Default)]
pub struct ScanOptions {
    /// `assistant` by default.
    pub origin: Option<String>,
    /// The run token.
    pub token: Option<String>,
    /// Refuse signals without the token.
    pub require_token: Option<bool>,
}

/// A signal or a near miss. `index.d.ts` describes the members, and those of the other types.
#[expect(missing_docs, reason = "index.d.ts has them, where the users of the package look")]
#[napi(object)]
#[derive(Debug)]
pub struct Finding {
    pub kind: String,
    pub counts: bool,
    pub dialect: String,
    pub signal: String,
    pub meaning: Option<String>,
    pub subject: Option<String>,
    pub payload: Option<String>,
    pub progress: Option<u8>,
    pub fields: Map<String, Value>,
    pub warnings: Vec<String>,
    pub reason: Option<String>,
    pub hint: Option<String>,
    pub more: f64,
    pub via: Option<String>,
    pub origin: String,
    pub line: f64,
    pub column: f64,
    pub start: f64,
    pub end: f64,
    pub raw: String,
}

/// A message of a transcript.
#[expect(missing_docs, reason = "index.d.ts has them, where the users of the package look")]
#[napi(object)]
#[derive(Debug)]
pub struct Message {
    pub index: f64,
    pub entry: Option<f64>,
    pub origin: String,
    pub agent: Option<String>,
    pub sidechain: bool,
    pub live: bool,
    pub may_signal: bool,
    pub at: Option<String>,
    pub id: Option<String>,
    pub text: String,
    pub findings: Vec<Finding>,
}

/// A set of dialects, compiled once.
#[napi]
#[derive(Debug)]
pub struct NativeRules {
    rules: Arc<aldis_signal::Rules>,
}

#[napi]
impl NativeRules {
    /// Compiles dialects by name, and the texts of dialect files.
    #[napi(constructor)]
    pub fn new(dialects: Vec<String>, files: Vec<String>, strict: bool) -> Result<Self> {
        let rules = aldis_bindings::rules(&dialects, &files, strict).map_err(invalid_argument)?;
        Ok(Self { rules: Arc::new(rules) })
    }

    /// The names of the dialects.
    #[napi(getter)]
    pub fn dialects(&self) -> Vec<String> {
        self.rules.dialects().iter().map(|dialect| dialect.name.to_string()).collect()
    }

    /// Scans a whole message.
    #[napi]
    pub fn scan(&self, text: Text, options: Option<ScanOptions>) -> Result<Vec<Finding>> {
        let found = aldis_bindings::scan(&self.rules, bytes(&text), &options.into_shared());
        Ok(findings(found.map_err(invalid_argument)?))
    }

    /// Begins a message that comes in chunks.
    #[napi]
    pub fn scanner(&self, options: Option<ScanOptions>) -> Result<Scanner> {
        let stream = Stream::new(Arc::clone(&self.rules), &options.into_shared());
        Ok(Scanner { stream: stream.map_err(invalid_argument)? })
    }

    /// The instructions an agent needs to write signals of these dialects.
    #[napi]
    pub fn instructions(&self, token: Option<String>) -> String {
        aldis_bindings::instructions(&self.rules, token.as_deref())
    }

    /// Describes each signal and near miss in a text.
    #[napi]
    pub fn explain(&self, text: Text, options: Option<ScanOptions>) -> Result<String> {
        let found = aldis_bindings::scan(&self.rules, bytes(&text), &options.into_shared());
        Ok(aldis_bindings::explain(&found.map_err(invalid_argument)?))
    }
}

/// A scan of one message that comes in chunks.
#[napi]
#[derive(Debug)]
pub struct Scanner {
    stream: Stream,
}

#[napi]
impl Scanner {
    /// Scans the next chunk and returns what is certain by now.
    #[napi]
    pub fn push(&mut self, chunk: Text) -> Result<Vec<Finding>> {
        Ok(findings(self.stream.push(bytes(&chunk)).map_err(invalid_argument)?))
    }

    /// Ends the message and returns what was still undecided.
    #[napi]
    pub fn finish(&mut self) -> Result<Vec<Finding>> {
        Ok(findings(self.stream.finish().map_err(invalid_argument)?))
    }
}

/// Reads a transcript on a thread of Node's pool. The bytes are copied: JavaScript may change its own
/// meanwhile.
#[napi(ts_return_type = "Promise<Message[]>")]
pub fn read_transcript(
    data: Uint8Array,
    format: String,
    agent: Option<String>,
    rules: Option<&NativeRules>,
    options: Option<ScanOptions>,
) -> AsyncTask<ReadTranscript> {
    let rules = rules.map(|rules| Arc::clone(&rules.rules));
    let options = options.into_shared();
    AsyncTask::new(ReadTranscript { data: data.to_vec(), format, agent, rules, options })
}

/// A transcript that is read in the background.
#[derive(Debug)]
pub struct ReadTranscript {
    data: Vec<u8>,
    format: String,
    agent: Option<String>,
    rules: Option<Arc<aldis_signal::Rules>>,
    options: aldis_bindings::ScanOptions,
}

impl Task for ReadTranscript {
    type Output = Vec<TranscriptMessage>;
    type JsValue = Vec<Message>;

    fn compute(&mut self) -> Result<Self::Output> {
        let rules = self.rules.as_deref().map(|rules| (rules, &self.options));
        aldis_bindings::read_transcript(&self.data, &self.format, self.agent.as_deref(), rules)
            .map_err(invalid_argument)
    }

    fn resolve(&mut self, _: Env, messages: Self::Output) -> Result<Self::JsValue> {
        Ok(messages.into_iter().map(Message::from).collect())
    }
}

trait IntoShared {
    fn into_shared(self) -> aldis_bindings::ScanOptions;
}

impl IntoShared for Option<ScanOptions> {
    fn into_shared(self) -> aldis_bindings::ScanOptions {
        let ScanOptions { origin, token, require_token } = self.unwrap_or_default();
        aldis_bindings::ScanOptions {
            origin,
            token,
            require_token: require_token.unwrap_or_default(),
        }
    }
}

impl From<Found> for Finding {
    fn from(found: Found) -> Self {
        Self {
            kind: if found.counts { "signal" } else { "near_miss" }.to_owned(),
            counts: found.counts,
            dialect: found.dialect,
            signal: found.name,
            meaning: found.meaning,
            subject: found.subject,
            payload: found.payload,
            progress: found.progress,
            fields: found.fields,
            warnings: found.warnings,
            reason: found.reason,
            hint: found.hint,
            more: number(found.more),
            via: found.via,
            origin: found.role,
            line: number(found.line),
            column: number(found.column),
            start: number(found.start),
            end: number(found.end),
            raw: found.raw,
        }
    }
}

impl From<TranscriptMessage> for Message {
    fn from(message: TranscriptMessage) -> Self {
        Self {
            index: number(message.index),
            entry: message.entry.map(number),
            origin: message.role,
            agent: message.agent,
            sidechain: message.sidechain,
            live: message.live,
            may_signal: message.may_signal,
            at: message.at,
            id: message.id,
            text: message.text,
            findings: findings(message.findings),
        }
    }
}

fn findings(found: Vec<Found>) -> Vec<Finding> {
    found.into_iter().map(Finding::from).collect()
}

/// As JavaScript counts: exact up to 2^53.
fn number(count: u64) -> f64 {
    count as f64
}

fn bytes(text: &Text) -> &[u8] {
    match text {
        Either::A(text) => text.as_bytes(),
        Either::B(bytes) => bytes,
    }
}

fn invalid_argument(error: InputError) -> Error {
    Error::new(Status::InvalidArg, error)
}
