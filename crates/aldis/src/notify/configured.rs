//! The sinks of a server, as people write them in `serve.toml`.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde::Deserialize;

use super::routes::{Routes, SinkKind, SinkRoute};
use super::signature::Secret;
use super::sink::{Address, Sink};
use crate::error::CommandError;
use crate::settings::web_address::check_url;

const NAME_MAX: usize = 32;

/// A sink as people write it.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct SinkConfig {
    name: String,
    kind: SinkKind,
    /// Where to send to.
    url: String,
    /// The file with the signing secret, `whsec_...`; for webhooks.
    #[serde(default)]
    secret_file: Option<PathBuf>,
    #[serde(default)]
    channels: Vec<String>,
    #[serde(default)]
    effects: Vec<String>,
    /// Whether addresses of this machine or a private network are allowed.
    #[serde(default)]
    webhook_private: bool,
}

/// All sinks of a server: what each wants, and how it is reached.
#[derive(Default)]
pub(crate) struct Sinks {
    routes: Vec<SinkRoute>,
    sinks: BTreeMap<String, Sink>,
}

impl std::fmt::Debug for Sinks {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.routes.fmt(f)
    }
}

impl Sinks {
    /// Makes sinks as configured. Secrets are read from files below `directory`.
    ///
    /// # Errors
    ///
    /// Fails with the first one that cannot work.
    pub(crate) fn new(configs: Vec<SinkConfig>, directory: &Path) -> Result<Self, CommandError> {
        let mut all = Self::default();
        for config in configs {
            let wrong = |what: String| CommandError::new(format!("sink `{}`: {what}", config.name));
            let plain = |c: char| c.is_ascii_alphanumeric() || "-_".contains(c);
            if !(1..=NAME_MAX).contains(&config.name.len()) || !config.name.chars().all(plain) {
                return Err(wrong("a name has 1 to 32 letters, digits, `-` or `_`".to_owned()));
            }
            if all.sinks.contains_key(&config.name) {
                return Err(wrong("there are two of that name".to_owned()));
            }
            check_url(&config.url, config.webhook_private).map_err(wrong)?;
            let address = Address::new(&config.url, config.webhook_private);
            let sink = match config.kind {
                SinkKind::Discord => Sink::Discord(address),
                SinkKind::Webhook => {
                    let needed = || wrong("a webhook needs a `secret_file`".to_owned());
                    let file = config.secret_file.as_ref().ok_or_else(needed)?;
                    Sink::Webhook(address, Secret::read(&directory.join(file))?)
                }
            };
            let SinkConfig { name, kind, channels, effects, .. } = config;
            all.sinks.insert(name.clone(), sink);
            all.routes.push(SinkRoute { name, kind, channels, effects });
        }
        Ok(all)
    }

    /// Returns which effects go where, and the sinks by name.
    pub(crate) fn into_parts(self) -> (Routes, BTreeMap<String, Sink>) {
        (Routes::to(self.routes), self.sinks)
    }
}
