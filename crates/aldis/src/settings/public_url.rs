//! Where browsers elsewhere find the server: the address of a tunnel or a proxy that leads to it.

use std::borrow::Cow;
use std::fmt;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};
use ureq::http::Uri;

/// `https://aldis.example.org`: a scheme and a host, nothing else.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub(crate) struct PublicUrl(String);

impl PublicUrl {
    /// Returns what browsers send as `Host`.
    pub(crate) fn host(&self) -> &str {
        self.0.split_once("://").map_or(&self.0, |(_, host)| host)
    }

    /// Whether what is sent is encrypted until the tunnel.
    pub(crate) fn is_https(&self) -> bool {
        self.0.starts_with("https://")
    }
}

impl TryFrom<String> for PublicUrl {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        let wrong =
            || format!("`{text}` is no address of a server, such as `https://aldis.example.org`");
        let uri: Uri = text.trim().parse().map_err(|_| wrong())?;
        let scheme = uri.scheme_str().filter(|scheme| ["http", "https"].contains(scheme));
        let (scheme, authority) = scheme.zip(uri.authority()).ok_or_else(wrong)?;
        let has_more = uri.query().is_some() || !["", "/"].contains(&uri.path());
        if has_more || authority.as_str().contains('@') || text.contains('#') {
            return Err(wrong());
        }
        Ok(Self(format!("{scheme}://{}", authority.as_str().to_ascii_lowercase())))
    }
}

impl From<PublicUrl> for String {
    fn from(url: PublicUrl) -> Self {
        url.0
    }
}

impl fmt::Display for PublicUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl JsonSchema for PublicUrl {
    fn schema_name() -> Cow<'static, str> {
        "PublicUrl".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "string", "pattern": "^https?://[^/@?#]+/?$" })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_scheme_and_a_host_are_taken() {
        for (text, want) in [
            ("https://aldis.example.org", Some("https://aldis.example.org")),
            ("https://Aldis.Example.org/", Some("https://aldis.example.org")),
            ("http://10.0.0.2:8080", Some("http://10.0.0.2:8080")),
            ("https://aldis.example.org/path", None),
            ("https://aldis.example.org?x", None),
            ("https://aldis.example.org#x", None),
            ("https://me@aldis.example.org", None),
            ("ftp://aldis.example.org", None),
            ("aldis.example.org", None),
            ("", None),
        ] {
            let url = PublicUrl::try_from(text.to_owned()).ok();
            assert_eq!(url.map(|url| url.to_string()).as_deref(), want, "{text}");
        }
        let url = PublicUrl::try_from("https://a.example:8443".to_owned()).unwrap();
        assert_eq!((url.host(), url.is_https()), ("a.example:8443", true));
    }
}
