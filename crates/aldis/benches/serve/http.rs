//! The plainest client: one connection, one request at a time, kept open.

use std::io::{self, BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::time::Duration;

/// Longer than anything that is waited for here.
const PATIENCE: Duration = Duration::from_secs(30);

/// Whom to ask.
#[derive(Clone, Debug, serde::Serialize, serde::Deserialize)]
pub(crate) struct Address {
    pub(crate) host: String,
    pub(crate) token: String,
}

/// A connection that is kept.
pub(crate) struct Connection(BufReader<TcpStream>);

impl Connection {
    pub(crate) fn open(address: &Address) -> io::Result<Self> {
        let stream = TcpStream::connect(&address.host)?;
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(PATIENCE))?;
        stream.set_write_timeout(Some(PATIENCE))?;
        Ok(Self(BufReader::new(stream)))
    }

    /// Gives up reading after this long.
    pub(crate) fn wait_at_most(&self, patience: Duration) -> io::Result<()> {
        // None at all would mean for ever.
        self.0.get_ref().set_read_timeout(Some(patience.max(Duration::from_millis(1))))
    }

    /// Posts JSON and returns the status and the body of the answer.
    pub(crate) fn post(
        &mut self,
        address: &Address,
        path: &str,
        key: &str,
        json: &str,
    ) -> io::Result<(u16, Vec<u8>)> {
        let Address { host, token } = address;
        let length = json.len();
        let request = format!(
            "POST {path} HTTP/1.1\r\nhost: {host}\r\nauthorization: Bearer {token}\r\n\
             content-type: application/json\r\nidempotency-key: {key}\r\n\
             content-length: {length}\r\n\r\n{json}"
        );
        self.0.get_mut().write_all(request.as_bytes())?;
        let (status, length) = self.head()?;
        let mut body = vec![0; length];
        self.0.read_exact(&mut body)?;
        Ok((status, body))
    }

    /// Reads the head of an answer: its status and how long its body is.
    fn head(&mut self) -> io::Result<(u16, usize)> {
        let (mut status, mut length) = (None, 0);
        loop {
            let line = self.line()?;
            if line.is_empty() {
                return status.map(|status| (status, length)).ok_or_else(gone);
            }
            if status.is_none() {
                status = line.split(' ').nth(1).and_then(|code| code.parse().ok());
            }
            if let Some(value) = line.strip_prefix("content-length: ") {
                length = value.parse().map_err(io::Error::other)?;
            }
        }
    }

    /// Reads a line, without its end.
    pub(crate) fn line(&mut self) -> io::Result<String> {
        let mut line = String::new();
        if self.0.read_line(&mut line)? == 0 {
            return Err(gone());
        }
        line.truncate(line.trim_end().len());
        Ok(line)
    }

    /// Asks for the event stream; what follows is read by [`Self::line`].
    pub(crate) fn follow(address: &Address, query: &str, last: Option<u64>) -> io::Result<Self> {
        let Address { host, token } = address;
        let mut connection = Self::open(address)?;
        let last = last.map(|id| format!("last-event-id: {id}\r\n")).unwrap_or_default();
        let request = format!(
            "GET /v1/events{query} HTTP/1.1\r\nhost: {host}\r\n\
             authorization: Bearer {token}\r\n{last}\r\n"
        );
        connection.0.get_mut().write_all(request.as_bytes())?;
        Ok(connection)
    }
}

fn gone() -> io::Error {
    io::ErrorKind::UnexpectedEof.into()
}
