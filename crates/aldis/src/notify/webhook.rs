//! Notices to a web address, signed.
//!
//! A repository may name the address once its user trusts it, and names may resolve to anything. So
//! the address that is really connected to is checked, redirects are not followed, and proxies, which
//! would resolve the name themselves, are not used.

use std::io;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use ureq::http::Uri;
use ureq::tls::{RootCerts, TlsConfig};
use ureq::unversioned::resolver::{DefaultResolver, ResolvedSocketAddrs, Resolver};
use ureq::unversioned::transport::{DefaultConnector, NextTimeout};
use ureq::{Agent, Error};

use super::signature::Secret;
use super::{Deliver, Message};
use crate::error::CommandError;
use crate::settings::clock;
use crate::settings::config::Notify;
use crate::settings::web_address::{Reach, check_target};
use crate::view::wire::notice::{NoticeBody, NoticeData};

/// How long one attempt may take.
const ATTEMPT: Duration = Duration::from_secs(10);
/// How long to wait before each further attempt.
const PAUSES: [Duration; 2] = [Duration::from_secs(1), Duration::from_secs(5)];

/// A web address and the secret shared with it.
pub(super) struct Webhook {
    url: String,
    secret: Secret,
    agent: Agent,
}

impl Webhook {
    /// Returns the webhook that is set, if one is.
    ///
    /// # Errors
    ///
    /// Fails if the address may not be used, or its secret not be read.
    pub(super) fn new(settings: &Notify) -> Result<Option<Self>, CommandError> {
        let Some(url) = &settings.webhook else { return Ok(None) };
        check_target(settings).map_err(CommandError::new)?;
        let Some(secret) = &settings.webhook_secret_file else { return Ok(None) };
        let agent = agent(settings.webhook_private);
        Ok(Some(Self { url: url.clone(), secret: Secret::read(secret)?, agent }))
    }

    /// Tries once. The answer says whether to try again.
    fn attempt(&self, id: &str, body: &[u8]) -> Result<(), Failed> {
        // Receivers refuse what is old, so each attempt says its own time.
        let seconds = clock::wall().as_millis().div_euclid(1000);
        let sent = self
            .agent
            .post(&self.url)
            .header("content-type", "application/json")
            .header("webhook-id", id)
            .header("webhook-timestamp", seconds.to_string())
            .header("webhook-signature", self.secret.sign(id, seconds, body))
            .send(body);
        let failed = |what: String, again: bool| Err(Failed { what, again });
        match sent.map(|answer| answer.status().as_u16()) {
            Ok(200..=299) => Ok(()),
            Ok(code @ 300..=399) => {
                failed(format!("answered {code}; redirects are not followed"), false)
            }
            Ok(code) => {
                failed(format!("answered {code}"), code >= 500 || code == 408 || code == 429)
            }
            Err(Error::Other(refused)) => failed(refused.to_string(), false),
            // A certificate that is not believed will not be a moment later.
            Err(Error::Io(error)) if error.kind() == io::ErrorKind::InvalidData => {
                failed(error.to_string(), false)
            }
            Err(error @ (Error::Rustls(_) | Error::Tls(_))) => failed(error.to_string(), false),
            Err(error) => failed(error.to_string(), true),
        }
    }
}

/// Makes an agent that follows no redirect, uses no proxy and connects only where it may: to public
/// addresses, or also to private ones.
pub(crate) fn agent(private: bool) -> Agent {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let tls = TlsConfig::builder()
        .root_certs(RootCerts::PlatformVerifier)
        .unversioned_rustls_crypto_provider(provider)
        .build();
    let config = Agent::config_builder()
        .https_only(!private)
        .http_status_as_error(false)
        .max_redirects(0)
        .max_redirects_will_error(false)
        .proxy(None)
        .tls_config(tls)
        .timeout_global(Some(ATTEMPT))
        .user_agent(concat!("aldis/", env!("CARGO_PKG_VERSION")))
        .build();
    let resolver = Guard { reach: Reach::of(private), names: DefaultResolver::default() };
    Agent::with_parts(config, DefaultConnector::default(), resolver)
}

struct Failed {
    what: String,
    again: bool,
}

impl Deliver for Webhook {
    fn deliver(&self, message: &Message) -> Result<(), String> {
        let body = serde_json::to_vec(&form(message)).map_err(|error| error.to_string())?;
        let mut pauses = PAUSES.iter();
        loop {
            match (self.attempt(&message.id, &body), pauses.next()) {
                (Ok(()), _) => return Ok(()),
                (Err(Failed { again: true, what }), Some(pause)) => {
                    tracing::info!(run = message.run, sink = "webhook", what, ?pause, "retrying");
                    thread::sleep(*pause);
                }
                (Err(Failed { what, .. }), _) => return Err(what),
            }
        }
    }
}

/// What a receiver gets.
fn form(message: &Message) -> NoticeBody {
    let Message { at, run, project, kind, text, .. } = message;
    let data = NoticeData { run: run.clone(), project: project.clone(), text: text.clone() };
    NoticeBody { v: 1, kind: kind.as_str().to_owned(), timestamp: at.to_string(), data }
}

/// Resolves names, and passes on only addresses that may be connected to.
#[derive(Debug)]
struct Guard {
    reach: Reach,
    names: DefaultResolver,
}

impl Resolver for Guard {
    fn resolve(
        &self,
        uri: &Uri,
        config: &ureq::config::Config,
        timeout: NextTimeout,
    ) -> Result<ResolvedSocketAddrs, Error> {
        let plain = uri.scheme_str() != Some("https");
        let found = self.names.resolve(uri, config, timeout)?;
        for address in found.iter() {
            // One bad address among good ones is reason enough not to trust the name.
            let checked = self.reach.check(address.ip(), plain);
            checked.map_err(|refused| Error::Other(Box::new(refused)))?;
        }
        Ok(found)
    }
}
