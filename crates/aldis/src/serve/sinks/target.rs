//! An address to send to, and whether that is allowed.
//!
//! Names are resolved at the moment of sending, and every address they lead to is checked then: a
//! name that led elsewhere when it was checked would let an agent's words reach the inside of a
//! network.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, ToSocketAddrs as _};
use std::sync::{Arc, Once};
use std::time::Duration;

use reqwest::dns::{Addrs, Name, Resolve, Resolving};
use reqwest::{Client, Url, redirect};

/// An address to send to. Shown without its path, which may be a secret.
pub(crate) struct Target {
    url: Url,
    allow_private: bool,
}

impl std::fmt::Debug for Target {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Target").field("host", &self.url.host_str()).finish_non_exhaustive()
    }
}

impl Target {
    /// Checks an address as far as that is possible without resolving it.
    pub(super) fn new(url: &str, allow_private: bool) -> Result<Self, String> {
        let url: Url = url.parse().map_err(|_| "its `url` is none".to_owned())?;
        match url.scheme() {
            "https" => {}
            "http" if allow_private => {}
            _ => return Err("its `url` must begin with https://".to_owned()),
        }
        let host = url.host_str().ok_or("its `url` names no host")?;
        let literal: Option<IpAddr> = host.trim_matches(['[', ']']).parse().ok();
        if !allow_private && literal.is_some_and(is_private) {
            return Err("its `url` leads into a private network; set `allow_private = true` if \
                        that is meant"
                .to_owned());
        }
        Ok(Self { url, allow_private })
    }

    pub(super) fn url(&self) -> Url {
        self.url.clone()
    }

    /// Makes a client that goes nowhere else.
    pub(super) fn client(&self, timeout: Duration) -> Result<Client, String> {
        static PROVIDER: Once = Once::new();
        PROVIDER.call_once(|| {
            // Fails only if somebody has chosen another one, which is as good.
            rustls::crypto::ring::default_provider().install_default().ok();
        });
        Client::builder()
            .redirect(redirect::Policy::none())
            .no_proxy()
            .timeout(timeout)
            .user_agent(concat!("aldis/", env!("CARGO_PKG_VERSION")))
            .dns_resolver(Arc::new(Resolver { allow_private: self.allow_private }))
            .build()
            .map_err(|_| "no client could be made".to_owned())
    }
}

/// Resolves names to addresses that are allowed.
struct Resolver {
    allow_private: bool,
}

impl Resolve for Resolver {
    fn resolve(&self, name: Name) -> Resolving {
        let allow_private = self.allow_private;
        Box::pin(async move {
            let host = name.as_str().to_owned();
            let found = tokio::task::spawn_blocking(move || (host.as_str(), 0).to_socket_addrs());
            let found: Vec<SocketAddr> = found.await??.collect();
            let allowed: Vec<SocketAddr> = found
                .into_iter()
                .filter(|address| allow_private || !is_private(address.ip()))
                .collect();
            if allowed.is_empty() {
                return Err("it leads nowhere that is allowed".into());
            }
            Ok(Box::new(allowed.into_iter()) as Addrs)
        })
    }
}

/// Returns whether an address is not one of the public internet.
fn is_private(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(address) => is_private_v4(address),
        IpAddr::V6(address) => match address.to_ipv4_mapped() {
            Some(mapped) => is_private_v4(mapped),
            None => is_private_v6(address),
        },
    }
}

fn is_private_v4(address: Ipv4Addr) -> bool {
    let [first, second, third, _] = address.octets();
    address.is_private()
        || address.is_loopback()
        || address.is_link_local()
        || address.is_multicast()
        || address.is_broadcast()
        || first == 0
        || first >= 240
        || (first == 100 && (64..128).contains(&second))
        || (first == 198 && (18..20).contains(&second))
        || (first == 192 && second == 0 && (third == 0 || third == 2))
}

fn is_private_v6(address: Ipv6Addr) -> bool {
    let [first, second, ..] = address.segments();
    address.is_loopback()
        || address.is_unspecified()
        || address.is_multicast()
        || first & 0xfe00 == 0xfc00
        || first & 0xffc0 == 0xfe80
        // Addresses that carry another one inside: 6to4, Teredo, NAT64.
        || first == 0x2002
        || (first == 0x2001 && second == 0)
        || (first == 0x0064 && second == 0xff9b)
}

#[cfg(test)]
mod tests {
    //! Which addresses are whose.

    use super::*;

    #[test]
    fn private_addresses_are_known() {
        for private in [
            "127.0.0.1",
            "10.1.2.3",
            "172.16.0.1",
            "192.168.1.1",
            "169.254.169.254",
            "0.0.0.0",
            "100.64.0.1",
            "198.18.0.1",
            "224.0.0.1",
            "255.255.255.255",
            "::1",
            "::",
            "fe80::1",
            "fc00::1",
            "fd12::1",
            "::ffff:127.0.0.1",
            "::ffff:10.0.0.1",
            "64:ff9b::7f00:1",
            "2002:7f00:1::",
        ] {
            assert!(is_private(private.parse().unwrap()), "{private}");
        }
        for public in ["1.1.1.1", "100.128.0.1", "198.20.0.1", "2606:4700::1111", "::ffff:1.1.1.1"]
        {
            assert!(!is_private(public.parse().unwrap()), "{public}");
        }
    }

    #[test]
    fn urls_are_checked() {
        for (url, allow, good) in [
            ("https://example.org/hook", false, true),
            ("http://example.org/hook", false, false),
            ("http://127.0.0.1:1/hook", true, true),
            ("https://127.0.0.1/hook", false, false),
            ("https://[::1]/hook", false, false),
            ("https://[::ffff:10.0.0.1]/hook", false, false),
            ("https://2130706433/hook", false, false),
            ("file:///etc/passwd", true, false),
            ("nonsense", true, false),
        ] {
            assert_eq!(Target::new(url, allow).is_ok(), good, "{url}");
        }
        let target = Target::new("https://example.org/secret", false).unwrap();
        assert!(!format!("{target:?}").contains("secret"));
    }
}
