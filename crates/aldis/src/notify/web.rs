//! Connections to web addresses that somebody else may have named.
//!
//! A repository may name the address once its user trusts it, and names may resolve to anything. So
//! the address that is really connected to is checked, redirects are not followed, and proxies, which
//! would resolve the name themselves, are not used.

use std::time::Duration;

use ureq::http::Uri;
use ureq::unversioned::resolver::{DefaultResolver, ResolvedSocketAddrs, Resolver};
use ureq::unversioned::transport::{DefaultConnector, NextTimeout};
use ureq::{Agent, Error};

use crate::settings::web_address::{Reach, tls};

/// How long one attempt may take.
const ATTEMPT: Duration = Duration::from_secs(10);

/// Makes an agent that follows no redirect, uses no proxy and connects only where it may: to public
/// addresses, or also to private ones.
pub(crate) fn agent(private: bool) -> Agent {
    let config = Agent::config_builder()
        .https_only(!private)
        .http_status_as_error(false)
        .max_redirects(0)
        .max_redirects_will_error(false)
        .proxy(None)
        .tls_config(tls())
        .timeout_global(Some(ATTEMPT))
        .user_agent(concat!("aldis/", env!("CARGO_PKG_VERSION")))
        .build();
    let resolver = Guard { reach: Reach::of(private), names: DefaultResolver::default() };
    Agent::with_parts(config, DefaultConnector::default(), resolver)
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
