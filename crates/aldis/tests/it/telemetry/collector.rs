//! A collector that runs as long as the test: it takes OTLP over HTTP as the protocol says, and keeps what
//! it took. Whatever is not as the protocol says it refuses with 400, which the exporter reports.

use std::collections::BTreeMap;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::sync::atomic::{AtomicU16, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;

use opentelemetry_proto::tonic::collector::trace::v1::{
    ExportTraceServiceRequest, ExportTraceServiceResponse,
};
use opentelemetry_proto::tonic::common::v1::any_value::Value;
use opentelemetry_proto::tonic::common::v1::{AnyValue, KeyValue};
use opentelemetry_proto::tonic::trace::v1::Span;
use prost::Message as _;

#[derive(Clone)]
pub(super) struct Collector {
    pub(super) address: String,
    taken: Arc<Mutex<Vec<Taken>>>,
    /// What it answers.
    status: Arc<AtomicU16>,
}

/// One request.
#[derive(Clone)]
pub(super) struct Taken {
    pub(super) headers: BTreeMap<String, String>,
    pub(super) request: ExportTraceServiceRequest,
}

impl Collector {
    pub(super) fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = format!("http://{}", listener.local_addr().unwrap());
        let (taken, status) = (Arc::default(), Arc::new(AtomicU16::new(200)));
        let collector = Self { address, taken, status };
        let own = collector.clone();
        // It ends with the test.
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let own = own.clone();
                thread::spawn(move || own.attend(stream));
            }
        });
        collector
    }

    /// Answers every later request with this.
    pub(super) fn answer(&self, status: u16) {
        self.status.store(status, Ordering::SeqCst);
    }

    pub(super) fn taken(&self) -> Vec<Taken> {
        self.taken.lock().unwrap().clone()
    }

    /// Every span that it took, by name and id; one that was sent twice is there once.
    pub(super) fn spans(&self) -> Vec<Span> {
        let requests = self.taken().into_iter().flat_map(|taken| taken.request.resource_spans);
        let spans = requests.flat_map(|it| it.scope_spans).flat_map(|it| it.spans);
        let by_id: BTreeMap<_, _> = spans.map(|span| (span.span_id.clone(), span)).collect();
        let mut spans: Vec<Span> = by_id.into_values().collect();
        spans.sort_by_key(|span| (span.start_time_unix_nano, span.name.clone()));
        spans
    }

    fn attend(&self, stream: TcpStream) {
        let mut reader = BufReader::new(stream.try_clone().unwrap());
        let mut stream = stream;
        while let Some((first, headers, body)) = read(&mut reader) {
            let status = self.status.load(Ordering::SeqCst);
            let request = ExportTraceServiceRequest::decode(&body[..]);
            let fits = first == "POST /v1/traces HTTP/1.1"
                && headers.get("content-type").is_some_and(|it| it == "application/x-protobuf");
            let (status, answer) = match (request, fits, status) {
                (Ok(request), true, 200) => {
                    self.taken.lock().unwrap().push(Taken { headers, request });
                    (200, ExportTraceServiceResponse::default().encode_to_vec())
                }
                (Ok(_), true, status) => (status, Vec::new()),
                _ => (400, Vec::new()),
            };
            let head = format!(
                "HTTP/1.1 {status} X\r\ncontent-type: application/x-protobuf\r\ncontent-length: {}\r\n\r\n",
                answer.len()
            );
            if stream.write_all(&[head.as_bytes(), &answer].concat()).is_err() {
                return;
            }
        }
    }
}

/// Reads a request; none at the end of the connection.
fn read(reader: &mut BufReader<TcpStream>) -> Option<(String, BTreeMap<String, String>, Vec<u8>)> {
    let mut line = || {
        let mut line = String::new();
        let read = reader.read_line(&mut line).ok()?;
        (read > 0).then(|| line.trim_end().to_owned())
    };
    let first = line()?;
    let mut headers = BTreeMap::new();
    loop {
        let header = line()?;
        let Some((name, value)) = header.split_once(": ") else { break };
        headers.insert(name.to_ascii_lowercase(), value.to_owned());
    }
    let length = headers.get("content-length").and_then(|it| it.parse().ok())?;
    let mut body = vec![0; length];
    reader.read_exact(&mut body).ok()?;
    Some((first, headers, body))
}

/// Numbers as hexadecimal digits.
pub(super) fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// The text of an attribute; lists are joined by a blank.
pub(super) fn text(attributes: &[KeyValue], name: &str) -> Option<String> {
    let one = |value: &AnyValue| match &value.value {
        Some(Value::StringValue(text)) => text.clone(),
        Some(Value::IntValue(number)) => number.to_string(),
        Some(Value::DoubleValue(number)) => number.to_string(),
        other => format!("{other:?}"),
    };
    let found = attributes.iter().find(|it| it.key == name)?.value.as_ref()?;
    match &found.value {
        Some(Value::ArrayValue(list)) => {
            Some(list.values.iter().map(one).collect::<Vec<_>>().join(" "))
        }
        _ => Some(one(found)),
    }
}
