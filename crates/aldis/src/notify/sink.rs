//! Where notices go, and one attempt to get them there.

use std::io;
use std::path::Path;
use std::time::Duration;

use serde_json::Value;
use ureq::http::Response;
use ureq::{Agent, Body, Error};

use super::discord;
use super::processes::{self, Command};
use super::signature::Secret;
use super::web;
use crate::error::CommandError;
use crate::settings::clock;
use crate::settings::config::{Notify, Sink as SinkName};
use crate::settings::web_address::check_target;
use crate::view::wire::notice::Notice;

/// How much of an answer is read.
const ANSWER_MAX: u64 = 16 * 1024;

/// One place where notices go.
pub(crate) enum Sink {
    /// The user's own command.
    Command(Command),
    /// The notices of a desktop.
    Desktop,
    /// A Discord webhook.
    Discord(Address),
    /// A web address that is sent signed notices.
    Webhook(Address, Secret),
}

/// A web address. Never shown: that of a webhook is a secret.
pub(crate) struct Address {
    pub(super) url: String,
    pub(super) agent: Agent,
}

/// What became of one attempt.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Delivery {
    /// It arrived.
    Done,
    /// It will never arrive.
    Impossible(String),
    /// Perhaps later; after this long where the receiver says so.
    Later { why: String, after: Option<Duration> },
    /// Perhaps later: the receiver answered, and not that it has too much to do.
    Refused { why: String, after: Option<Duration> },
}

impl Delivery {
    pub(super) fn later(why: impl Into<String>) -> Self {
        Self::Later { why: why.into(), after: None }
    }
}

impl Address {
    /// `private` allows addresses of this machine and network.
    pub(super) fn new(url: &str, private: bool) -> Self {
        Self { url: url.to_owned(), agent: web::agent(private) }
    }
}

impl Sink {
    /// Returns the sink that a run's settings describe; nothing if it is switched off. Commands run in
    /// `directory`.
    ///
    /// # Errors
    ///
    /// Fails if it cannot work as it is set.
    pub(super) fn of_run(
        settings: &Notify,
        name: SinkName,
        directory: &Path,
    ) -> Result<Option<Self>, CommandError> {
        Ok(match name {
            SinkName::Terminal => None,
            SinkName::Desktop => settings.desktop.then_some(Self::Desktop),
            SinkName::Command => settings
                .command
                .clone()
                .map(|command| Self::Command(Command { command, directory: directory.to_owned() })),
            SinkName::Webhook => {
                check_target(settings).map_err(CommandError::new)?;
                let (Some(url), Some(secret)) = (&settings.webhook, &settings.webhook_secret_file)
                else {
                    return Ok(None);
                };
                let address = Address::new(url, settings.webhook_private);
                Some(Self::Webhook(address, Secret::read(secret)?))
            }
        })
    }

    /// Tries once, within a bounded time.
    pub(super) fn send(&self, notice: &Notice) -> Delivery {
        match self {
            Self::Command(command) => command.run(notice),
            Self::Desktop => processes::desktop(notice),
            Self::Discord(address) => discord::send(address, notice),
            Self::Webhook(address, secret) => webhook(address, secret, notice),
        }
    }
}

/// Sends a notice as Standard Webhooks has it: id, time and body under one signature.
fn webhook(address: &Address, secret: &Secret, notice: &Notice) -> Delivery {
    let body = match serde_json::to_vec(notice) {
        Ok(body) => body,
        Err(error) => return Delivery::Impossible(error.to_string()),
    };
    // Receivers refuse what is old, so each attempt says its own time.
    let seconds = clock::wall().as_millis().div_euclid(1_000);
    let request = address
        .agent
        .post(&address.url)
        .header("content-type", "application/json")
        .header("webhook-id", &notice.id)
        .header("webhook-timestamp", seconds.to_string())
        .header("webhook-signature", secret.sign(&notice.id, seconds, &body));
    answered(request.send(&body))
}

/// Says what an answer means, or that there is none.
pub(super) fn answered(sent: Result<Response<Body>, Error>) -> Delivery {
    let mut response = match sent {
        Ok(response) => response,
        Err(error) => return failed(&error),
    };
    let status = response.status().as_u16();
    let why = format!("answered {status}");
    match status {
        200..300 => Delivery::Done,
        // They could lead to an address that is not allowed.
        300..400 => Delivery::Impossible(format!("{why}; redirects are not followed")),
        408 | 425 | 429 => Delivery::Later { why, after: retry_after(&mut response) },
        500.. => Delivery::Refused { why, after: retry_after(&mut response) },
        _ => Delivery::Impossible(why),
    }
}

/// Returns how long the receiver wants to be left alone. Discord's body is more exact than its header.
fn retry_after(response: &mut Response<Body>) -> Option<Duration> {
    let body = response.body_mut().with_config().limit(ANSWER_MAX).read_to_string();
    let body: Option<Value> = serde_json::from_str(&body.unwrap_or_default()).ok();
    let exact = body.and_then(|body| body.get("retry_after")?.as_f64());
    let header = response.headers().get("retry-after").and_then(|value| value.to_str().ok());
    let seconds = exact.or_else(|| {
        let header = header?.trim();
        let date = || {
            let at = httpdate::parse_http_date(header).ok()?;
            let at = at.duration_since(std::time::UNIX_EPOCH).ok()?.as_secs_f64();
            Some((at - clock::wall().as_millis() as f64 / 1_000.0).max(0.0))
        };
        header.parse().ok().or_else(date)
    });
    Duration::try_from_secs_f64(seconds?).ok()
}

/// Says why there is no answer. Not in the words of the error: they may repeat the address.
fn failed(error: &Error) -> Delivery {
    let kind = if let Error::Io(error) = error { Some(error.kind()) } else { None };
    match (error, kind) {
        // The one of ours, which names nothing but the address that a name leads to.
        (Error::Other(refused), _) => Delivery::Impossible(refused.to_string()),
        // A certificate that is not believed will not be a moment later.
        (Error::Rustls(_) | Error::Tls(_), _) | (_, Some(io::ErrorKind::InvalidData)) => {
            Delivery::Impossible("its certificate is not trusted".to_owned())
        }
        (Error::Timeout(_), _) => Delivery::later("did not answer in time"),
        (Error::HostNotFound | Error::ConnectionFailed, _)
        | (_, Some(io::ErrorKind::ConnectionRefused)) => Delivery::later("cannot be reached"),
        _ => Delivery::later("the connection broke off"),
    }
}
