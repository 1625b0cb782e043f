//! Where notices may be sent: what can be known of an address before it is used.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::sync::Arc;

use ureq::http::Uri;
use ureq::tls::{RootCerts, TlsConfig};

use super::config::Notify;

/// Checks what can be known of an address before it is used.
///
/// # Errors
///
/// Fails with what is wrong.
pub(crate) fn check_target(settings: &Notify) -> Result<(), String> {
    let Some(url) = &settings.webhook else { return Ok(()) };
    check_url(url, settings.webhook_private)?;
    if settings.webhook_secret_file.is_none() {
        return Err("a webhook needs `webhook_secret_file`: notices are signed".to_owned());
    }
    Ok(())
}

/// Checks what can be known of an address before it is resolved.
///
/// # Errors
///
/// Fails with what is wrong.
pub(crate) fn check_url(url: &str, private: bool) -> Result<(), String> {
    let uri: Uri = url.parse().map_err(|_| format!("`{url}` is no web address"))?;
    match uri.scheme_str() {
        Some("https") => {}
        Some("http") if private => {}
        Some("http") => {
            return Err("only https is allowed; http to this machine needs \
                        `webhook_private = true`"
                .to_owned());
        }
        _ => return Err(format!("`{url}` is no https address")),
    }
    let Some(authority) = uri.authority() else { return Err(format!("`{url}` names no host")) };
    if authority.as_str().contains('@') {
        return Err(
            "credentials in the URL are not supported; requests are signed with the secret"
                .to_owned(),
        );
    }
    let reach = Reach::of(private);
    let literal = authority.host().trim_start_matches('[').trim_end_matches(']');
    if let Ok(address) = literal.parse::<IpAddr>() {
        reach
            .check(address, uri.scheme_str() == Some("http"))
            .map_err(|error| error.to_string())?;
    }
    Ok(())
}

/// Certificates are checked against those that the system trusts.
pub(crate) fn tls() -> TlsConfig {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    TlsConfig::builder()
        .root_certs(RootCerts::PlatformVerifier)
        .unversioned_rustls_crypto_provider(provider)
        .build()
}

/// How near an address may be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Reach {
    Public,
    /// Also this machine and the local network.
    Private,
}

/// An address that may not be connected to.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Refused {
    #[error("{0} is an address of this machine or network; allow it with `webhook_private = true`")]
    Private(IpAddr),
    #[error("notices cannot be sent to {0}")]
    Special(IpAddr),
    #[error("{0} is not this machine; use https")]
    Plain(IpAddr),
}

impl Reach {
    pub(crate) fn of(private: bool) -> Self {
        if private { Self::Private } else { Self::Public }
    }

    pub(crate) fn check(self, address: IpAddr, plain: bool) -> Result<(), Refused> {
        let address = address.to_canonical();
        let (special, private) = match address {
            IpAddr::V4(v4) => (is_special_v4(v4), is_private_v4(v4)),
            IpAddr::V6(v6) => (is_special_v6(v6), v6.is_loopback() || v6.is_unique_local()),
        };
        if special {
            Err(Refused::Special(address))
        } else if private && self == Self::Public {
            Err(Refused::Private(address))
        } else if plain && !address.is_loopback() {
            Err(Refused::Plain(address))
        } else {
            Ok(())
        }
    }
}

/// Addresses that are nobody's: among them the one where clouds keep credentials.
fn is_special_v4(v4: Ipv4Addr) -> bool {
    let [first, ..] = v4.octets();
    v4.is_link_local()
        || v4.is_multicast()
        || v4.is_documentation()
        || first == 0
        || first >= 240
        || matches!(v4.octets(), [192, 0, 0, _] | [198, 18 | 19, ..])
}

fn is_private_v4(v4: Ipv4Addr) -> bool {
    v4.is_private() || v4.is_loopback() || matches!(v4.octets(), [100, 64..=127, ..])
}

/// Also those that hide an address of the other kind.
fn is_special_v6(v6: Ipv6Addr) -> bool {
    let [first, second, ..] = v6.segments();
    let hides =
        first == 0x2002 || (first, second) == (0x2001, 0) || (first, second) == (0x64, 0xff9b);
    let compatible = v6.to_bits() >> 32 == 0 && !v6.is_loopback();
    v6.is_unicast_link_local()
        || v6.is_multicast()
        || compatible
        || hides
        || (first, second) == (0x2001, 0xdb8)
        || first & 0xffc0 == 0xfec0
}

#[cfg(test)]
mod tests {
    //! Where notices may go.

    use super::*;

    fn settings(url: &str, private: bool) -> Notify {
        Notify {
            webhook: Some(url.to_owned()),
            webhook_secret_file: Some("secret".into()),
            webhook_private: private,
            ..Notify::default()
        }
    }

    #[test]
    fn addresses_are_public_unless_one_says_otherwise() {
        for (address, public, private) in [
            ("93.184.215.14", true, true),
            ("2606:2800:21f:cb07:6820:80da:af6b:8b2c", true, true),
            ("127.0.0.1", false, true),
            ("127.8.8.8", false, true),
            ("::1", false, true),
            ("10.1.2.3", false, true),
            ("172.16.0.1", false, true),
            ("172.32.0.1", true, true),
            ("192.168.1.1", false, true),
            ("100.64.0.1", false, true),
            ("fd00::1", false, true),
            ("::ffff:127.0.0.1", false, true),
            ("::ffff:169.254.169.254", false, false),
            ("169.254.169.254", false, false),
            ("fe80::1", false, false),
            ("0.0.0.0", false, false),
            ("::", false, false),
            ("::127.0.0.1", false, false),
            ("255.255.255.255", false, false),
            ("224.0.0.1", false, false),
            ("ff02::1", false, false),
            ("64:ff9b::7f00:1", false, false),
            ("2002:7f00:1::", false, false),
            ("198.18.0.1", false, false),
        ] {
            let address: IpAddr = address.parse().unwrap();
            assert_eq!(Reach::Public.check(address, false).is_ok(), public, "{address}");
            assert_eq!(Reach::Private.check(address, false).is_ok(), private, "{address}");
            let local = private && address.to_canonical().is_loopback();
            assert_eq!(Reach::Private.check(address, true).is_ok(), local, "{address}, plain");
        }
    }

    #[test]
    fn targets_are_https() {
        for (url, public, private) in [
            ("https://example.org/hook?x=1", true, true),
            ("https://[::1]:8443/", false, true),
            ("http://127.0.0.1:80/", false, true),
            ("http://example.org/", false, true),
            ("http://10.0.0.1/", false, false),
            ("https://user:pass@example.org/", false, false),
            ("ftp://example.org/", false, false),
            ("example.org/hook", false, false),
            ("https://", false, false),
            ("", false, false),
        ] {
            assert_eq!(check_target(&settings(url, false)).is_ok(), public, "{url}");
            assert_eq!(check_target(&settings(url, true)).is_ok(), private, "{url}, private");
        }
        let unsigned =
            Notify { webhook_secret_file: None, ..settings("https://example.org", false) };
        assert!(check_target(&unsigned).unwrap_err().contains("webhook_secret_file"));
    }

    #[test]
    fn hostile_targets_are_refused() {
        for text in [
            include_str!("../../../../testdata/hostile/config_09_webhook_ssrf.toml"),
            include_str!("../../../../testdata/hostile/config_10_webhook_file.toml"),
        ] {
            let url = text.split('"').nth(1).unwrap();
            assert!(check_target(&settings(url, false)).is_err(), "{url}");
            assert!(check_target(&settings(url, true)).is_err(), "{url}");
        }
    }
}
