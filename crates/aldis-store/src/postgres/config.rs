//! Where the database is and how it is reached. Nothing here ever shows a password.

use std::fmt;
use std::net::IpAddr;
use std::path::PathBuf;
use std::time::Duration;

use tokio_postgres::Config;
use tokio_postgres::config::{Host, SslMode};

use crate::error::StoreError;

/// The schema that holds the tables unless the address names another.
const SCHEMA: &str = "aldis";
/// How many connections are used at most unless the address says so.
const CONNECTIONS: usize = 16;
const CONNECTIONS_MAX: usize = 1_000;
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);

/// The address of a PostgreSQL database, `postgres://USER@HOST/DATABASE`, understood.
///
/// Beside the parameters of `tokio-postgres` the address takes `schema` (default: `aldis`),
/// `connections` (default: 16) and `sslrootcert` (a file of certificates to trust beside those of the
/// system). TLS with a checked certificate is used unless the server is this machine or the address says
/// `sslmode=disable`.
///
/// Its `Display` and `Debug` leave the password out.
#[derive(Clone)]
pub struct PostgresAddress {
    pub(super) main: Config,
    /// For what a pooler cannot do: listening.
    pub(super) direct: Config,
    pub(super) schema: String,
    pub(super) connections: usize,
    pub(super) root_certificates: Option<PathBuf>,
    pub(super) location: String,
    /// Whether callers' times count instead of the database's clock.
    pub(super) callers_clock: bool,
}

impl PostgresAddress {
    /// Returns whether this text is the address of a PostgreSQL database, right or wrong.
    pub fn is_one(text: &str) -> bool {
        ["postgres://", "postgresql://"].iter().any(|scheme| text.starts_with(scheme))
    }

    /// Understands an address.
    ///
    /// # Errors
    ///
    /// [`StoreError::BadAddress`] with what is wrong with it. The address itself is not repeated: it may
    /// hold a password.
    pub fn parse(text: &str) -> Result<Self, StoreError> {
        let bad = |why: String| StoreError::BadAddress { why };
        if !Self::is_one(text) {
            return Err(bad("it does not begin with postgres://".to_owned()));
        }
        let (address, own) = Own::split(text).map_err(bad)?;
        let mut main: Config =
            address.parse().map_err(|error: tokio_postgres::Error| bad(cause(&error)))?;
        if main.get_hosts().is_empty() && main.get_hostaddrs().is_empty() {
            return Err(bad("it names no host".to_owned()));
        }
        let mode = own.ssl_mode(&main).map_err(bad)?;
        main.ssl_mode(mode);
        if main.get_connect_timeout().is_none() {
            main.connect_timeout(CONNECT_TIMEOUT);
        }
        if main.get_application_name().is_none() {
            main.application_name("aldis");
        }
        let schema = own.schema.unwrap_or_else(|| SCHEMA.to_owned());
        let location = location(&main, &schema);
        let (direct, connections) = (main.clone(), own.connections.unwrap_or(CONNECTIONS));
        let (root_certificates, callers_clock) = (own.root_certificates, false);
        Ok(Self { main, direct, schema, connections, root_certificates, location, callers_clock })
    }

    /// Uses this password where the address names none.
    #[must_use]
    pub fn with_password(mut self, password: &str) -> Self {
        for config in [&mut self.main, &mut self.direct] {
            if config.get_password().is_none() {
                config.password(password);
            }
        }
        self
    }

    /// Listens at this address instead, which leads to the same database without a pooler.
    #[must_use]
    pub fn with_direct(mut self, direct: Self) -> Self {
        self.direct = direct.main;
        self
    }

    /// Goes by the times that callers bring instead of the database's clock, for whoever plays with
    /// time: tests and simulators.
    #[must_use]
    pub fn with_callers_clock(mut self) -> Self {
        self.callers_clock = true;
        self
    }
}

impl fmt::Display for PostgresAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.location)
    }
}

impl fmt::Debug for PostgresAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("PostgresAddress").field(&self.location).finish()
    }
}

/// The parameters that are ours.
#[derive(Default)]
struct Own {
    schema: Option<String>,
    connections: Option<usize>,
    root_certificates: Option<PathBuf>,
    ssl_mode: Option<String>,
}

impl Own {
    /// Takes our parameters out of an address.
    fn split(text: &str) -> Result<(String, Self), String> {
        let mut own = Self::default();
        let Some((address, query)) = text.split_once('?') else {
            return Ok((text.to_owned(), own));
        };
        let mut others = Vec::new();
        for pair in query.split('&') {
            match pair.split_once('=') {
                Some(("schema", name)) => own.schema = Some(schema(name)?),
                Some(("connections", number)) => own.connections = Some(connections(number)?),
                Some(("sslrootcert", file)) => own.root_certificates = Some(file.into()),
                Some(("sslmode", mode)) => own.ssl_mode = Some(mode.to_owned()),
                _ => others.push(pair),
            }
        }
        let address = match others.is_empty() {
            true => address.to_owned(),
            false => format!("{address}?{}", others.join("&")),
        };
        Ok((address, own))
    }

    fn ssl_mode(&self, config: &Config) -> Result<SslMode, String> {
        match self.ssl_mode.as_deref() {
            Some("disable") => Ok(SslMode::Disable),
            // What libpq calls `require` checks no certificate. Ours are always checked.
            Some("require" | "verify-ca" | "verify-full") => Ok(SslMode::Require),
            Some(_) => Err("`sslmode` is disable, require or verify-full".to_owned()),
            None if self.root_certificates.is_none() && is_here(config) => Ok(SslMode::Disable),
            None => Ok(SslMode::Require),
        }
    }
}

/// Whether every host is this machine.
fn is_here(config: &Config) -> bool {
    let by_name = config.get_hosts().iter().all(|host| match host {
        Host::Tcp(name) => {
            name == "localhost" || name.parse().is_ok_and(|it: IpAddr| it.is_loopback())
        }
        #[cfg(not(windows))]
        Host::Unix(_) => true,
    });
    by_name && config.get_hostaddrs().iter().all(IpAddr::is_loopback)
}

fn schema(name: &str) -> Result<String, String> {
    let first = |byte: u8| byte.is_ascii_lowercase() || byte == b'_';
    let fits = name.bytes().next().is_some_and(first)
        && name.bytes().all(|byte| first(byte) || byte.is_ascii_digit())
        && name.len() <= 48
        && !name.starts_with("pg_");
    if fits { Ok(name.to_owned()) } else { Err("`schema` is 1 to 48 of a-z, 0-9 and _".to_owned()) }
}

fn connections(number: &str) -> Result<usize, String> {
    let number = number.parse().ok().filter(|number| (1..=CONNECTIONS_MAX).contains(number));
    number.ok_or_else(|| format!("`connections` is a number from 1 to {CONNECTIONS_MAX}"))
}

/// The address as people may see it.
fn location(config: &Config, schema: &str) -> String {
    let user = config.get_user().map(|user| format!("{user}@")).unwrap_or_default();
    let mut hosts: Vec<String> = Vec::new();
    for (number, host) in config.get_hosts().iter().enumerate() {
        let ports = config.get_ports();
        let port = ports.get(number).or_else(|| ports.first()).filter(|port| **port != 5432);
        let port = port.map(|port| format!(":{port}")).unwrap_or_default();
        hosts.push(match host {
            Host::Tcp(name) => format!("{name}{port}"),
            #[cfg(not(windows))]
            Host::Unix(path) => format!("{}{port}", path.display()),
        });
    }
    if hosts.is_empty() {
        hosts.extend(config.get_hostaddrs().iter().map(ToString::to_string));
    }
    let database = config.get_dbname().or_else(|| config.get_user()).unwrap_or_default();
    let schema = if schema == SCHEMA { String::new() } else { format!("?schema={schema}") };
    format!("postgres://{user}{}/{database}{schema}", hosts.join(","))
}

/// The innermost words of an error: the outer ones only say that the address is wrong.
fn cause(error: &tokio_postgres::Error) -> String {
    std::error::Error::source(error).map_or_else(|| error.to_string(), ToString::to_string)
}

#[cfg(test)]
mod tests {
    //! What an address may say, what is shown of it, and when TLS is used.

    use super::*;

    fn address(text: &str) -> PostgresAddress {
        PostgresAddress::parse(text).unwrap()
    }

    #[test]
    fn an_address_is_shown_without_its_password() {
        for (text, shown) in [
            ("postgres://me:geheim@db.example/work", "postgres://me@db.example/work"),
            ("postgresql://me:geheim@db:5433/work", "postgres://me@db:5433/work"),
            ("postgres://me:geheim@db", "postgres://me@db/me"),
            ("postgres://db/work?user=me&password=geheim", "postgres://me@db/work"),
            ("postgres://me@db/work?schema=two", "postgres://me@db/work?schema=two"),
            ("postgres://me@/work?host=/run/pg&password=geheim", "postgres://me@/run/pg/work"),
            ("postgres://me:geheim@a,b:1/work", "postgres://me@a,b:1/work"),
        ] {
            let address = address(text).with_password("geheim");
            assert_eq!(address.to_string(), shown);
            assert!(!format!("{address:?}").contains("geheim"));
        }
    }

    #[test]
    fn an_error_does_not_repeat_the_address() {
        for bad in [
            "mysql://me:geheim@db/work",
            "postgres://me:geheim@db:port/work",
            "postgres://me:geheim@db/work?geheim=1&sslmode",
            "postgres://me:geheim@/work",
            "postgres://me:geheim@db/work?schema=x;drop",
            "postgres://me:geheim@db/work?schema=pg_catalog",
            "postgres://me:geheim@db/work?connections=0",
            "postgres://me:geheim@db/work?sslmode=prefer",
        ] {
            let error = PostgresAddress::parse(bad).unwrap_err();
            let words = format!("{error} {error:?}").replace("`geheim`", "");
            assert!(!words.contains("geheim"), "{words}");
        }
    }

    #[test]
    fn other_machines_are_reached_with_tls() {
        for (text, expected) in [
            ("postgres://db.example/work", SslMode::Require),
            ("postgres://db.example/work?sslmode=disable", SslMode::Disable),
            ("postgres://localhost/work", SslMode::Disable),
            ("postgres://127.0.0.1/work", SslMode::Disable),
            ("postgres://me@/work?host=/run/pg", SslMode::Disable),
            ("postgres://127.0.0.1,db.example/work", SslMode::Require),
            ("postgres://localhost/work?sslmode=verify-full", SslMode::Require),
            ("postgres://localhost/work?sslrootcert=/ca.pem", SslMode::Require),
            ("postgres://localhost/work?hostaddr=10.0.0.1", SslMode::Require),
        ] {
            assert_eq!(address(text).main.get_ssl_mode(), expected, "{text}");
        }
    }
}
