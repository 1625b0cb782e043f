//! Where posts and notices go: Discord webhooks, signed webhooks. The event stream needs no sink.
//!
//! A sink says what it wants of an effect and how to send it; the outbox says when, and when again.

mod discord;
mod webhook;

use std::path::Path;
use std::time::Duration;

use aldis_engine::{Direct, OutboundEffect, Route};
use aldis_store::{Driver, RunId};
use serde::Deserialize;
use serde_json::{Value, json};
use ureq::Agent;

use crate::error::CommandError;
use crate::notify::signature::Secret;
use crate::notify::webhook::agent;
use crate::settings::web_address::check_url;

const NAME_MAX: usize = 32;
/// The kind of effects that go to a sink.
pub(super) const SINK: &str = "sink";
/// Effects that answer whoever asked, and nobody else.
pub(super) const ANSWERS: [&str; 2] = ["reply", "warning"];

/// All sinks, and how to reach them.
#[derive(Default)]
pub(crate) struct Sinks {
    sinks: Vec<Sink>,
}

impl std::fmt::Debug for Sinks {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_list().entries(self.sinks.iter().map(|sink| &sink.name)).finish()
    }
}

/// One place where effects go.
struct Sink {
    name: String,
    kind: Kind,
    /// Never shown: the address of a webhook is a secret.
    url: String,
    agent: Agent,
    /// Of these channels only; of all where none is named.
    channels: Vec<String>,
    /// These effects only.
    effects: Vec<String>,
}

enum Kind {
    Discord,
    /// Signed with this secret.
    Webhook(Secret),
}

/// A sink as people write it.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "snake_case")]
pub(crate) struct SinkConfig {
    name: String,
    kind: KindName,
    /// Where to send to.
    url: String,
    /// The file with the signing secret, `whsec_...`; for webhooks.
    #[serde(default)]
    secret_file: Option<std::path::PathBuf>,
    #[serde(default)]
    channels: Vec<String>,
    #[serde(default)]
    effects: Vec<String>,
    /// Whether addresses of this machine or a private network are allowed.
    #[serde(default)]
    webhook_private: bool,
}

#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(rename_all = "snake_case")]
enum KindName {
    Discord,
    Webhook,
}

/// What became of one try.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Delivery {
    /// It arrived.
    Done,
    /// It will never arrive.
    Impossible(String),
    /// Perhaps later; after this long where the receiver says so.
    Later { why: String, after: Option<Duration> },
}

/// What is to be sent.
#[derive(Clone, Copy, Debug)]
pub(super) struct Parcel<'a> {
    /// The same for every try.
    pub(super) key: &'a str,
    /// The channel or run.
    pub(super) run: &'a str,
    pub(super) effect: &'a Value,
    /// When it is sent, in seconds since 1970.
    pub(super) at: i64,
}

impl Sinks {
    /// Makes sinks as configured. Secrets are read from files below `directory`.
    ///
    /// # Errors
    ///
    /// Fails with the first one that cannot work.
    pub(crate) fn new(configs: Vec<SinkConfig>, directory: &Path) -> Result<Self, CommandError> {
        let mut sinks: Vec<Sink> = Vec::new();
        for config in configs {
            let wrong = |what: String| CommandError::new(format!("sink `{}`: {what}", config.name));
            let plain = |c: char| c.is_ascii_alphanumeric() || "-_".contains(c);
            if config.name.is_empty()
                || config.name.len() > NAME_MAX
                || !config.name.chars().all(plain)
            {
                return Err(wrong("a name has 1 to 32 letters, digits, `-` or `_`".to_owned()));
            }
            if sinks.iter().any(|known| known.name == config.name) {
                return Err(wrong("there are two of that name".to_owned()));
            }
            check_url(&config.url, config.webhook_private).map_err(wrong)?;
            let kind = match config.kind {
                KindName::Discord => Kind::Discord,
                KindName::Webhook => {
                    let needed = || wrong("a webhook needs a `secret_file`".to_owned());
                    let file = config.secret_file.as_ref().ok_or_else(needed)?;
                    Kind::Webhook(Secret::read(&directory.join(file))?)
                }
            };
            let agent = agent(config.webhook_private);
            let SinkConfig { name, url, channels, effects, .. } = config;
            sinks.push(Sink { name, kind, url, agent, channels, effects });
        }
        Ok(Self { sinks })
    }

    /// Returns who gets an effect, and what each gets of it.
    fn parcels(&self, run: &str, effect: &Value) -> Vec<(String, Value)> {
        let kind = effect.get("effect").and_then(Value::as_str).unwrap_or_default();
        let wants = |sink: &&Sink| {
            let here =
                sink.channels.is_empty() || sink.channels.iter().any(|channel| channel == run);
            here && sink.takes(kind)
        };
        let cut = |sink: &Sink| {
            let pieces = match &sink.kind {
                Kind::Discord => discord::pieces(effect),
                Kind::Webhook(_) => vec![effect.clone()],
            };
            let name = sink.name.clone();
            pieces.into_iter().map(move |piece| (name.clone(), piece))
        };
        self.sinks.iter().filter(wants).flat_map(cut).collect()
    }

    /// Sends an effect, and waits for the answer.
    pub(super) fn send(&self, name: &str, parcel: Parcel<'_>) -> Delivery {
        let Some(sink) = self.sinks.iter().find(|sink| sink.name == name) else {
            return Delivery::Impossible(format!("there is no sink `{name}` any more"));
        };
        match &sink.kind {
            Kind::Discord => discord::send(&sink.agent, &sink.url, parcel),
            Kind::Webhook(secret) => webhook::send(&sink.agent, &sink.url, secret, parcel),
        }
    }
}

impl Route for Sinks {
    fn route(&self, run: &RunId, driver: Driver, effect: &Value) -> Vec<OutboundEffect> {
        if driver != Driver::Server {
            return Direct.route(run, driver, effect);
        }
        let parcels = self.parcels(run.as_str(), effect).into_iter();
        let outbound = |(sink, effect): (String, Value)| OutboundEffect {
            kind: SINK,
            // What one run sends to one sink keeps its order.
            lane: format!("{run}/{sink}"),
            requires: Vec::new(),
            body: json!({ "sink": sink, "effect": effect }),
        };
        parcels.map(outbound).collect()
    }
}

impl Sink {
    fn takes(&self, kind: &str) -> bool {
        match &self.kind {
            // A channel of people gets what is said; everything else is for programs.
            Kind::Discord => kind == "post",
            Kind::Webhook(_) => {
                let is_wanted = self.effects.iter().any(|wanted| wanted == kind);
                is_wanted || self.effects.is_empty() && !ANSWERS.contains(&kind)
            }
        }
    }
}

/// Sorts the answer of a receiver.
fn sorted(status: u16, retry_after: Option<Duration>) -> Delivery {
    let why = format!("it answered {status}");
    match status {
        200..300 => Delivery::Done,
        // Redirections are not followed: they could lead to an address that is not allowed.
        300..400 => Delivery::Impossible(why),
        408 | 425 | 429 | 500.. => Delivery::Later { why, after: retry_after },
        _ => Delivery::Impossible(why),
    }
}

/// Sorts a failure on the way.
fn failed(error: &ureq::Error) -> Delivery {
    // Not the words of the error: they may repeat the address, and that of a webhook is a secret.
    let why = match error {
        ureq::Error::Other(_) => {
            return Delivery::Impossible("its address is not one to send to".to_owned());
        }
        ureq::Error::Timeout(_) => "it did not answer in time",
        ureq::Error::HostNotFound | ureq::Error::ConnectionFailed => "it cannot be reached",
        _ => "the connection broke off",
    };
    Delivery::Later { why: why.to_owned(), after: None }
}
