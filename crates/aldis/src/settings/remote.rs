//! A server elsewhere that keeps the runs: `ALDIS_SERVER` names it, `ALDIS_TOKEN` opens it.
//!
//! Hooks, `aldis mcp` and `aldis signal` then send what happens there instead of opening a store here.
//! What cannot be sent waits in a [`spool`] and is delivered later.

pub(crate) mod spool;

use std::env;
use std::fmt;
use std::net::{IpAddr, ToSocketAddrs as _};
use std::time::Duration;

use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use ureq::http::Uri;
use ureq::{Agent, Error};

use crate::error::CommandError;
use crate::settings::web_address;

/// Where the server is, and what opens it.
pub(crate) const SERVER: &str = "ALDIS_SERVER";
pub(crate) const TOKEN: &str = "ALDIS_TOKEN";
/// How long a report may take: a server may run the check of a claim first.
pub(crate) const CALL_PATIENCE: Duration = Duration::from_secs(100);
/// The longest answer that is read.
const ANSWER_MAX: u64 = 8 << 20;

/// A server elsewhere.
#[derive(Clone)]
pub(crate) struct Remote {
    base: String,
    token: String,
}

/// Why a server did not do what it was asked.
#[derive(Debug, thiserror::Error)]
pub(crate) enum RemoteError {
    /// It did not answer, or not in time: whether it did what was asked is unknown.
    #[error("{server} did not answer: {why}")]
    Silent {
        /// Where it is.
        server: String,
        /// What went wrong.
        why: String,
    },
    /// It said no, and will say so again.
    #[error("{server} refused it ({status}): {message}")]
    Refused {
        /// Where it is.
        server: String,
        /// The status of its answer.
        status: u16,
        /// What it said.
        message: String,
    },
    /// It answered something else than a server of ours does.
    #[error("{server} is no Aldis server of this version: {why}")]
    Strange {
        /// Where it is.
        server: String,
        /// What is wrong with the answer.
        why: String,
    },
}

impl RemoteError {
    /// Whether it may work later: the server is away, busy or too slow.
    pub(crate) fn passes(&self) -> bool {
        match self {
            Self::Silent { .. } => true,
            Self::Refused { status, .. } => *status >= 500 || [408, 429].contains(status),
            Self::Strange { .. } => false,
        }
    }
}

/// What a server says when it refuses something.
#[derive(Deserialize)]
struct Refusal {
    error: RefusalBody,
}

#[derive(Deserialize)]
struct RefusalBody {
    message: String,
}

impl Remote {
    /// Returns the server that the environment names, if it names one.
    ///
    /// # Errors
    ///
    /// Fails if the address is none, would send the token in the clear, or there is no token.
    pub(crate) fn of_environment() -> Result<Option<Self>, CommandError> {
        let variable = |name: &str| env::var(name).ok().filter(|value| !value.is_empty());
        let Some(address) = variable(SERVER) else { return Ok(None) };
        let token = variable(TOKEN).ok_or_else(|| {
            CommandError::new(format!("{SERVER} is set, and {TOKEN} is not"))
                .with_help("set it to a token of `aldis token new --scope work` at the server")
        })?;
        Self::new(&address, token).map(Some)
    }

    fn new(address: &str, token: String) -> Result<Self, CommandError> {
        let wrong = |why: &str| {
            CommandError::new(format!("{SERVER}: `{address}` {why}"))
                .with_help("name a server, as https://aldis.example.org")
        };
        let uri: Uri = address.parse().map_err(|_| wrong("is no web address"))?;
        let authority = uri.authority().ok_or_else(|| wrong("names no host"))?;
        if authority.as_str().contains('@') || !["", "/"].contains(&uri.path()) {
            return Err(wrong("has more than a scheme, a host and a port"));
        }
        match uri.scheme_str() {
            Some("https") => {}
            Some("http") if is_here(authority.host()) => {}
            _ => return Err(wrong("is not https, and would show the token on the way")),
        }
        if token.chars().any(|char| char.is_control() || char.is_whitespace()) {
            return Err(CommandError::new(format!("{TOKEN} holds no token")));
        }
        let base = address.trim_end_matches('/').to_owned();
        Ok(Self { base, token })
    }

    /// Sends something, and reads the answer within a time.
    ///
    /// # Errors
    ///
    /// Says why nothing came of it, as far as that is known.
    pub(crate) fn post<T: DeserializeOwned>(
        &self,
        path: &str,
        body: &Value,
        patience: Duration,
    ) -> Result<T, RemoteError> {
        let server = || self.base.clone();
        let silent =
            |error: Error| RemoteError::Silent { server: server(), why: error.to_string() };
        let request = agent(patience)
            .post(format!("{}{path}", self.base))
            .header("authorization", format!("Bearer {}", self.token))
            .header("content-type", "application/json");
        let mut response = request.send(body.to_string()).map_err(silent)?;
        let status = response.status().as_u16();
        let text = response.body_mut().with_config().limit(ANSWER_MAX).read_to_vec();
        let text = text.map_err(silent)?;
        if (200..300).contains(&status) {
            return serde_json::from_slice(&text).map_err(|error| RemoteError::Strange {
                server: server(),
                why: error.to_string(),
            });
        }
        let message = serde_json::from_slice(&text).map(|refusal: Refusal| refusal.error.message);
        let message = message.unwrap_or_else(|_| "no reason was given".to_owned());
        Err(RemoteError::Refused { server: server(), status, message })
    }
}

impl fmt::Display for Remote {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.base)
    }
}

impl fmt::Debug for Remote {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Remote").field("base", &self.base).finish_non_exhaustive()
    }
}

/// Whether a host is this machine, whatever it is called.
fn is_here(host: &str) -> bool {
    let literal = host.trim_start_matches('[').trim_end_matches(']');
    if let Ok(address) = literal.parse::<IpAddr>() {
        return address.is_loopback();
    }
    host == "localhost"
        && (host, 0)
            .to_socket_addrs()
            .is_ok_and(|mut found| found.all(|address| address.ip().is_loopback()))
}

/// No redirects, which would take the token elsewhere, and no proxy that nobody named.
fn agent(patience: Duration) -> Agent {
    let config = Agent::config_builder()
        .http_status_as_error(false)
        .max_redirects(0)
        .max_redirects_will_error(false)
        .proxy(None)
        .tls_config(web_address::tls())
        .timeout_global(Some(patience))
        .user_agent(concat!("aldis/", env!("CARGO_PKG_VERSION")))
        .build();
    config.into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tokens_travel_encrypted_or_not_at_all() {
        for (address, good) in [
            ("https://aldis.example.org", true),
            ("https://aldis.example.org:7373/", true),
            ("http://127.0.0.1:7373", true),
            ("http://[::1]:7373", true),
            ("http://localhost:7373", true),
            ("http://aldis.example.org", false),
            ("http://10.0.0.7:7373", false),
            ("http://localhost.example.org", false),
            ("https://me:secret@aldis.example.org", false),
            ("https://aldis.example.org/path", false),
            ("ftp://127.0.0.1", false),
            ("aldis.example.org", false),
            ("", false),
        ] {
            let made = Remote::new(address, "t0ken".to_owned());
            assert_eq!(made.is_ok(), good, "{address}: {made:?}");
            if let Ok(remote) = made {
                assert!(!format!("{remote:?}{remote}").contains("t0ken"));
            }
        }
        assert!(Remote::new("https://a.example", "two words".to_owned()).is_err());
    }

    #[test]
    fn what_passes_is_tried_again() {
        let refused = |status| {
            let (server, message) = (String::new(), String::new());
            RemoteError::Refused { server, status, message }
        };
        for (status, passes) in [(401, false), (404, false), (408, true), (429, true), (503, true)]
        {
            assert_eq!(refused(status).passes(), passes, "{status}");
        }
    }
}
