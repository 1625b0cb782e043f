//! Sends spans to a collector: in batches, within bounds, and never at anybody's expense.
//!
//! What a collector cannot take now is tried again, later and later; what it refuses is dropped. When too
//! much waits, the oldest are dropped. Each kind of trouble is recorded once until it is over.

use std::collections::VecDeque;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use aldis_signal::redact::redact;
use aldis_signal::time::Timestamp;
use ureq::Agent;

use super::otlp;
use super::span::TraceSpan;
use super::target::Target;
use crate::error::CommandError;
use crate::failures::{self, Failure};
use crate::settings::clock;
use crate::settings::web_address::tls;
use crate::view::display;

/// How many spans are sent at once.
const BATCH: usize = 256;
/// How many wait.
const WAITING_MAX: usize = 4_096;
/// How long to wait after a failure; twice as long after each further one.
const PAUSE: Duration = Duration::from_secs(1);
const PAUSE_MAX: Duration = Duration::from_secs(60);
/// How much of an answer is read, and shown.
const ANSWER_MAX: u64 = 64 * 1024;
const SHOWN_MAX: usize = 200;
/// The part that failures are recorded under.
const PART: &str = "telemetry";
/// What a collector answers that has no room now.
const BUSY: [u16; 4] = [429, 502, 503, 504];

/// Why traces are not exported.
#[derive(Debug, thiserror::Error)]
pub(crate) enum TelemetryError {
    /// What is set cannot be used.
    #[error("{0}")]
    Setting(String),
    /// The collector cannot be reached, or has no room now.
    #[error("{0} does not take traces now: {1}")]
    Later(String, String),
    /// The collector does not want it.
    #[error("{0} refuses the traces: {1}")]
    Refused(String, String),
}

impl TelemetryError {
    pub(super) fn setting(error: &CommandError) -> Self {
        Self::Setting(error.to_string())
    }
}

impl From<TelemetryError> for CommandError {
    fn from(error: TelemetryError) -> Self {
        let failed = Self::new(error.to_string());
        match error {
            TelemetryError::Setting(_) => failed,
            TelemetryError::Later(..) | TelemetryError::Refused(..) => {
                failed.with_help("look at the collector, and at telemetry.otlp in your settings")
            }
        }
    }
}

/// A connection to a collector.
pub(super) struct Connection {
    agent: Agent,
    pub(super) target: Arc<Target>,
}

/// Spans that wait to be sent.
pub(super) struct Queue {
    connection: Connection,
    /// Where failures are recorded.
    state: PathBuf,
    waiting: VecDeque<TraceSpan>,
    /// How often in a row sending failed, and when to try again.
    failed: u32,
    next: Option<Timestamp>,
    dropped: u64,
}

impl Connection {
    pub(super) fn new(target: Target) -> Self {
        let config = Agent::config_builder()
            .http_status_as_error(false)
            .max_redirects(0)
            .max_redirects_will_error(false)
            .tls_config(tls())
            .timeout_global(Some(target.timeout))
            .user_agent(concat!("aldis/", env!("CARGO_PKG_VERSION")))
            .build();
        Self { agent: config.into(), target: Arc::new(target) }
    }

    /// Sends one batch. Returns what the collector did not take of it, in words.
    ///
    /// # Errors
    ///
    /// Says whether to try again.
    pub(super) fn send(&self, spans: &[TraceSpan]) -> Result<Option<String>, TelemetryError> {
        let body = otlp::encode(&self.target.resource, spans)?;
        let place = || self.target.to_string();
        let mut request =
            self.agent.post(&self.target.url).header("content-type", otlp::CONTENT_TYPE);
        for (name, value) in &self.target.headers {
            request = request.header(name, value);
        }
        // An error may repeat what was sent, headers included.
        let failed = |error: ureq::Error| TelemetryError::Later(place(), in_short(&error));
        let mut answer = request.send(&body[..]).map_err(failed)?;
        let status = answer.status();
        let read = answer.body_mut().with_config().limit(ANSWER_MAX).read_to_vec();
        let text = read.unwrap_or_default();
        match status.as_u16() {
            200..300 => {
                let partial = otlp::rejected(&text);
                Ok(partial
                    .map(|(spans, why)| format!("{spans} spans were refused: {}", shown(&why))))
            }
            busy if BUSY.contains(&busy) => Err(TelemetryError::Later(place(), status.to_string())),
            _ => Err(TelemetryError::Refused(place(), status.to_string())),
        }
    }
}

impl Queue {
    pub(super) fn new(target: Target, state: PathBuf) -> Self {
        let (connection, waiting) = (Connection::new(target), VecDeque::new());
        Self { connection, state, waiting, failed: 0, next: None, dropped: 0 }
    }

    pub(super) fn push(&mut self, spans: Vec<TraceSpan>) {
        self.waiting.extend(spans);
        let surplus = self.waiting.len().saturating_sub(WAITING_MAX);
        self.waiting.drain(..surplus);
        if surplus > 0 && self.dropped == 0 {
            self.record("too many spans wait for the collector; the oldest are dropped");
        }
        self.dropped += surplus as u64;
    }

    pub(super) fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }

    /// Whether anything is to be sent now.
    pub(super) fn is_due(&self) -> bool {
        !self.waiting.is_empty() && self.next.is_none_or(|next| clock::wall() >= next)
    }

    /// Sends what waits, until something goes wrong.
    pub(super) fn flush(&mut self) {
        while !self.waiting.is_empty() {
            let batch = self.waiting.len().min(BATCH);
            let (spans, _) = self.waiting.make_contiguous().split_at(batch);
            match self.connection.send(spans) {
                Ok(partial) => {
                    partial.into_iter().for_each(|what| self.record(&what));
                    (self.failed, self.next, self.dropped) = (0, None, 0);
                }
                Err(error @ TelemetryError::Later(..)) => {
                    if self.failed == 0 {
                        self.record(&error.to_string());
                    }
                    let pause = PAUSE.saturating_mul(1 << self.failed.min(8)).min(PAUSE_MAX);
                    self.failed = self.failed.saturating_add(1);
                    self.next = Some(clock::wall().after(pause));
                    return;
                }
                Err(error) => self.record(&format!("{error}; {batch} spans are dropped")),
            }
            self.waiting.drain(..batch);
        }
    }

    /// Says what will not be sent any more.
    pub(super) fn give_up(&mut self) {
        let left = self.waiting.len() as u64 + self.dropped;
        if left > 0 {
            self.record(&format!(
                "{left} spans were not exported; `aldis log --otlp RUN` exports them"
            ));
        }
        self.waiting.clear();
    }

    fn record(&self, what: &str) {
        tracing::warn!(what, "traces are not exported");
        let (at, part) = (clock::wall(), PART.to_owned());
        failures::record(&self.state, &Failure { at, part, what: what.to_owned() });
    }
}

/// What went wrong, without what was sent.
fn in_short(error: &ureq::Error) -> String {
    match error {
        ureq::Error::Timeout(_) => "it took too long".to_owned(),
        ureq::Error::HostNotFound => "there is no such host".to_owned(),
        ureq::Error::ConnectionFailed => "the connection failed".to_owned(),
        ureq::Error::Io(error) => error.kind().to_string(),
        ureq::Error::Rustls(error) => error.to_string(),
        _ => "the request failed".to_owned(),
    }
}

/// Words of a collector.
fn shown(text: &str) -> String {
    display::excerpt(&redact(text), SHOWN_MAX)
}
