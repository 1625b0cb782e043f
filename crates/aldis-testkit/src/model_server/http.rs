//! As much of HTTP/1.1 as two hosts need: one request, one response, then the connection closes.

use std::io::{self, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::time::Duration;

use serde_json::Value;

/// What was asked.
#[derive(Debug)]
pub(super) struct HttpRequest {
    pub(super) method: String,
    /// With the query.
    pub(super) path: String,
    /// Names in lower case.
    pub(super) headers: Vec<(String, String)>,
    pub(super) body: Vec<u8>,
}

impl HttpRequest {
    /// Reads one request.
    pub(super) fn read(mut stream: &TcpStream) -> io::Result<Self> {
        stream.set_read_timeout(Some(TIME_MAX))?;
        stream.set_write_timeout(Some(TIME_MAX))?;
        let mut reader = BufReader::new(stream);
        let mut head = (&mut reader).take(HEAD_MAX);
        let first = line(&mut head)?;
        let mut words = first.split(' ');
        let (Some(method), Some(path)) = (words.next(), words.next()) else {
            return Err(io::ErrorKind::InvalidData.into());
        };
        let (method, path) = (method.to_owned(), path.to_owned());
        let mut headers = Vec::new();
        loop {
            let line = line(&mut head)?;
            if line.is_empty() {
                break;
            }
            let (name, value) = line.split_once(':').ok_or(io::ErrorKind::InvalidData)?;
            headers.push((name.to_ascii_lowercase(), value.trim().to_owned()));
        }
        let mut request = Self { method, path, headers, body: Vec::new() };
        if request.header("expect").is_some() {
            stream.write_all(b"HTTP/1.1 100 Continue\r\n\r\n")?;
        }
        let length = request.header("content-length").unwrap_or("0").parse::<u64>();
        let length = length.map_err(|_| io::ErrorKind::InvalidData)?;
        if length > BODY_MAX || request.header("transfer-encoding").is_some() {
            return Err(io::ErrorKind::Unsupported.into());
        }
        reader.take(length).read_to_end(&mut request.body)?;
        Ok(request)
    }

    /// The value of a header.
    pub(super) fn header(&self, name: &str) -> Option<&str> {
        let found = self.headers.iter().find(|(header, _)| header == name)?;
        Some(&found.1)
    }
}

/// Reads up to the end of a line, without it. A head that is longer than allowed, or ends in the
/// middle, has a line without an end.
fn line(head: &mut impl io::BufRead) -> io::Result<String> {
    let mut line = String::new();
    head.read_line(&mut line)?;
    let line = line.strip_suffix('\n').ok_or(io::ErrorKind::InvalidData)?;
    Ok(line.strip_suffix('\r').unwrap_or(line).to_owned())
}

/// What is answered.
#[derive(Debug)]
pub(super) struct Response {
    status: u16,
    content_type: &'static str,
    body: Vec<u8>,
}

impl Response {
    /// One JSON value.
    pub(super) fn json(status: u16, body: &Value) -> Self {
        let body = body.to_string().into_bytes();
        Self { status, content_type: "application/json", body }
    }

    /// A stream of events; each names its kind in its member `type`.
    pub(super) fn events(events: &[Value]) -> Self {
        let event = |event: &Value| {
            format!("event: {}\ndata: {event}\n\n", event["type"].as_str().unwrap_or_default())
        };
        let body = events.iter().map(event).collect::<String>().into_bytes();
        Self { status: 200, content_type: "text/event-stream", body }
    }

    /// Sends it, or only its head.
    pub(super) fn write(&self, stream: &mut TcpStream, head_only: bool) -> io::Result<()> {
        let Self { status, content_type, body } = self;
        let length = body.len();
        write!(
            stream,
            "HTTP/1.1 {status} Scripted\r\ncontent-type: {content_type}\r\n\
             content-length: {length}\r\nconnection: close\r\n\r\n"
        )?;
        if !head_only {
            stream.write_all(body)?;
        }
        stream.flush()
    }
}

const HEAD_MAX: u64 = 256 * 1024;
const BODY_MAX: u64 = 64 * 1024 * 1024;
const TIME_MAX: Duration = Duration::from_secs(30);
