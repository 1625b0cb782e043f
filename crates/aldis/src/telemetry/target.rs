//! Where traces go: the user's settings, else the standard variables of OpenTelemetry.
//!
//! A project's file has no say, as with the store: what is exported is about all projects. Headers may hold
//! keys, and are shown by nobody.

use std::env;
use std::fmt;
use std::time::Duration;

use ureq::http::{HeaderName, HeaderValue, Uri};

use super::export::TelemetryError;
use crate::settings::config::Layered;

/// Below a base address.
const TRACES: &str = "/v1/traces";
/// How long one attempt may take, unless somebody says otherwise.
const TIMEOUT: Duration = Duration::from_secs(10);
/// How long it may be, whatever somebody says.
const TIMEOUT_MAX: Duration = Duration::from_secs(60);
/// How many headers, and how many attributes, are taken over.
const PAIRS_MAX: usize = 64;
/// What we speak.
const PROTOCOL: &str = "http/protobuf";

/// A collector, and what it is told about this program.
#[derive(Clone)]
pub(crate) struct Target {
    pub(super) url: String,
    pub(super) headers: Vec<(HeaderName, HeaderValue)>,
    pub(super) timeout: Duration,
    /// Attributes of the resource, `service.name` first.
    pub(super) resource: Vec<(String, String)>,
    pub(super) bodies: bool,
}

impl Target {
    /// Returns the collector that is set, if there is one.
    ///
    /// # Errors
    ///
    /// Fails if what is set cannot be used.
    pub(crate) fn load() -> Result<Option<Self>, TelemetryError> {
        let layered = Layered::of_user().map_err(|error| TelemetryError::setting(&error))?;
        let telemetry = layered.settings.telemetry;
        let own = telemetry.otlp.map(String::from);
        Self::of(own, telemetry.bodies, &|name| env::var(name).ok())
    }

    /// Returns the collector that a setting or variables name.
    fn of(
        own: Option<String>,
        bodies: bool,
        variable: &dyn Fn(&str) -> Option<String>,
    ) -> Result<Option<Self>, TelemetryError> {
        let said =
            |name: &str| variable(name).map(|it| it.trim().to_owned()).filter(|it| !it.is_empty());
        let of_traces = |name: &str| {
            said(&format!("OTEL_EXPORTER_OTLP_TRACES_{name}"))
                .or_else(|| said(&format!("OTEL_EXPORTER_OTLP_{name}")))
        };
        let is =
            |name: &str, value: &str| said(name).is_some_and(|it| it.eq_ignore_ascii_case(value));
        if is("OTEL_SDK_DISABLED", "true")
            || is("OTEL_TRACES_EXPORTER", "none")
            || is("OTEL_TRACES_SAMPLER", "always_off")
        {
            return Ok(None);
        }
        let base = |url: &String| format!("{}{TRACES}", url.trim_end_matches('/'));
        let url = own.as_ref().map(base);
        let url = url.or_else(|| said("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT"));
        let url = url.or_else(|| said("OTEL_EXPORTER_OTLP_ENDPOINT").as_ref().map(base));
        let Some(url) = url else { return Ok(None) };
        check_url(&url)?;
        // Who sets an address of ours means our protocol.
        if let Some(other) = of_traces("PROTOCOL").filter(|it| own.is_none() && it != PROTOCOL) {
            return Err(TelemetryError::Setting(format!(
                "OTEL_EXPORTER_OTLP_PROTOCOL is `{other}`, and traces are sent as {PROTOCOL} only; \
                 set OTEL_EXPORTER_OTLP_TRACES_PROTOCOL={PROTOCOL} and the address for it"
            )));
        }
        let milliseconds = of_traces("TIMEOUT").and_then(|it| it.parse().ok());
        let timeout = milliseconds.map_or(TIMEOUT, Duration::from_millis).min(TIMEOUT_MAX);
        let mut resource = vec![("service.name".to_owned(), "aldis".to_owned())];
        for (name, value) in pairs(&said("OTEL_RESOURCE_ATTRIBUTES").unwrap_or_default()) {
            put(&mut resource, name, value);
        }
        if let Some(service) = said("OTEL_SERVICE_NAME") {
            put(&mut resource, "service.name".to_owned(), service);
        }
        put(&mut resource, "service.version".to_owned(), env!("CARGO_PKG_VERSION").to_owned());
        let headers = headers(&of_traces("HEADERS").unwrap_or_default())?;
        Ok(Some(Self { url, headers, timeout, resource, bodies }))
    }
}

/// As people may see it: without a password.
impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.url.split_once("://"), self.url.parse::<Uri>().ok()) {
            (Some((scheme, _)), Some(uri)) => {
                let host = uri.host().unwrap_or_default();
                let port = uri.port().map(|port| format!(":{port}")).unwrap_or_default();
                write!(f, "{scheme}://{host}{port}{}", uri.path())
            }
            _ => f.write_str("an address that cannot be read"),
        }
    }
}

impl fmt::Debug for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Target({self})")
    }
}

fn check_url(url: &str) -> Result<(), TelemetryError> {
    let uri = url.parse::<Uri>().ok();
    let fits = uri.is_some_and(|uri| {
        uri.host().is_some_and(|host| !host.is_empty())
            && uri.scheme_str().is_some_and(|scheme| ["http", "https"].contains(&scheme))
    });
    // What was written is not repeated: it may hold a password.
    let wrong = "the address of the collector is none such as `http://127.0.0.1:4318`; \
                 correct telemetry.otlp or OTEL_EXPORTER_OTLP_ENDPOINT";
    if fits { Ok(()) } else { Err(TelemetryError::Setting(wrong.to_owned())) }
}

fn headers(text: &str) -> Result<Vec<(HeaderName, HeaderValue)>, TelemetryError> {
    let wrong = |name: &str| {
        let what = format!("OTEL_EXPORTER_OTLP_HEADERS: `{name}` cannot be sent as a header");
        TelemetryError::Setting(what)
    };
    let header = |(name, value): (String, String)| {
        let key = HeaderName::from_bytes(name.as_bytes()).map_err(|_| wrong(&name))?;
        Ok((key, HeaderValue::from_str(&value).map_err(|_| wrong(&name))?))
    };
    pairs(text).into_iter().map(header).collect()
}

/// Reads `key=value,key=value`, as W3C baggage writes it.
fn pairs(text: &str) -> Vec<(String, String)> {
    let pair = |item: &str| {
        let (name, value) = item.split_once('=')?;
        let name = name.trim();
        (!name.is_empty()).then(|| (name.to_owned(), decoded(value.trim())))
    };
    text.split(',').filter_map(pair).take(PAIRS_MAX).collect()
}

/// Takes back percent encoding; what is none stays.
fn decoded(text: &str) -> String {
    let (bytes, mut out, mut at) = (text.as_bytes(), Vec::new(), 0);
    while let Some(byte) = bytes.get(at) {
        let digits = (*byte == b'%').then(|| text.get(at + 1..at + 3)).flatten();
        match digits.and_then(|digits| u8::from_str_radix(digits, 16).ok()) {
            Some(byte) => {
                out.push(byte);
                at += 3;
            }
            None => {
                out.push(*byte);
                at += 1;
            }
        }
    }
    String::from_utf8_lossy(&out).into_owned()
}

fn put(pairs: &mut Vec<(String, String)>, name: String, value: String) {
    match pairs.iter_mut().find(|(known, _)| *known == name) {
        Some((_, known)) => *known = value,
        None => pairs.push((name, value)),
    }
}

#[cfg(test)]
mod tests {
    //! The standard variables, and what is wrong with them.

    use super::*;

    fn of(own: Option<&str>, variables: &[(&str, &str)]) -> Result<Option<Target>, String> {
        let variable = |name: &str| {
            variables.iter().find(|(known, _)| *known == name).map(|(_, value)| (*value).to_owned())
        };
        Target::of(own.map(str::to_owned), false, &variable).map_err(|error| error.to_string())
    }

    fn url(own: Option<&str>, variables: &[(&str, &str)]) -> Option<String> {
        of(own, variables).unwrap().map(|target| target.url)
    }

    #[test]
    fn addresses_are_found_in_order() {
        let base = ("OTEL_EXPORTER_OTLP_ENDPOINT", "http://base:4318/");
        let traces = ("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "https://traces/x");
        assert_eq!(url(None, &[]), None);
        assert_eq!(url(None, &[base]).as_deref(), Some("http://base:4318/v1/traces"));
        assert_eq!(url(None, &[base, traces]).as_deref(), Some("https://traces/x"));
        let own = Some("http://own:1");
        assert_eq!(url(own, &[base, traces]).as_deref(), Some("http://own:1/v1/traces"));
        for off in [
            ("OTEL_SDK_DISABLED", "TRUE"),
            ("OTEL_TRACES_EXPORTER", "none"),
            ("OTEL_TRACES_SAMPLER", "always_off"),
        ] {
            assert_eq!(url(own, &[base, off]), None, "{off:?}");
        }
    }

    #[test]
    fn headers_and_resources_are_read() {
        let target = of(
            None,
            &[
                ("OTEL_EXPORTER_OTLP_ENDPOINT", "http://me:hunter2@base:4318"),
                ("OTEL_EXPORTER_OTLP_HEADERS", "api-key=a%20b, x=1,=,broken"),
                ("OTEL_RESOURCE_ATTRIBUTES", "service.name=other,host=h%2C1"),
                ("OTEL_SERVICE_NAME", "mine"),
                ("OTEL_EXPORTER_OTLP_TIMEOUT", "250"),
            ],
        );
        let target = target.unwrap().unwrap();
        let headers: Vec<_> = target
            .headers
            .iter()
            .map(|(name, value)| (name.as_str(), value.to_str().unwrap()))
            .collect();
        assert_eq!(headers, [("api-key", "a b"), ("x", "1")]);
        assert_eq!(target.timeout, Duration::from_millis(250));
        let resource: Vec<_> =
            target.resource.iter().map(|(name, value)| (&**name, &**value)).collect();
        assert_eq!(resource[..2], [("service.name", "mine"), ("host", "h,1")]);
        assert_eq!(format!("{target} {target:?}").matches("hunter2").count(), 0);
    }

    #[test]
    fn what_cannot_be_used_is_said() {
        let base = ("OTEL_EXPORTER_OTLP_ENDPOINT", "http://base:4317");
        let error = of(None, &[base, ("OTEL_EXPORTER_OTLP_PROTOCOL", "grpc")]).unwrap_err();
        assert!(error.contains("http/protobuf"), "{error}");
        assert!(of(Some("http://own"), &[("OTEL_EXPORTER_OTLP_PROTOCOL", "grpc")]).is_ok());
        for wrong in ["base:4318", "ftp://base", "http://", "http://me:hunter2@ba se"] {
            let error = of(Some(wrong), &[]).unwrap_err();
            assert!(!error.contains("hunter2"), "{error}");
        }
        let error = of(None, &[base, ("OTEL_EXPORTER_OTLP_HEADERS", "a b=secret")]).unwrap_err();
        assert!(!error.contains("secret"), "{error}");
    }
}
