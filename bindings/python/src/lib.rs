//! The Python module `aldis._native`: the shared plain data as Python objects.
//!
//! Scanning and reading release the global interpreter lock.

use std::sync::{Arc, Mutex, PoisonError};

use aldis_bindings::{Found, InputError, ScanOptions, Stream, TranscriptMessage};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::pybacked::{PyBackedBytes, PyBackedStr};
use pyo3::types::PyString;

/// A set of dialects, compiled once and used for any number of texts.
#[pyclass(frozen, module = "aldis")]
#[derive(Debug)]
struct Rules {
    rules: Arc<aldis_signal::Rules>,
}

#[pymethods]
impl Rules {
    #[new]
    #[pyo3(signature = (*dialects, files = vec![], strict = false))]
    fn new(dialects: Vec<String>, files: Vec<String>, strict: bool) -> PyResult<Self> {
        let rules = aldis_bindings::rules(&dialects, &files, strict).map_err(value_error)?;
        Ok(Self { rules: Arc::new(rules) })
    }

    /// The names of the dialects.
    #[getter]
    fn dialects(&self) -> Vec<String> {
        self.rules.dialects().iter().map(|dialect| dialect.name.to_string()).collect()
    }

    #[pyo3(signature = (text, *, origin = None, token = None, require_token = false))]
    fn scan(
        &self,
        py: Python<'_>,
        text: Text,
        origin: Option<String>,
        token: Option<String>,
        require_token: bool,
    ) -> PyResult<Vec<Finding>> {
        let options = ScanOptions { origin, token, require_token };
        let found = py.detach(|| aldis_bindings::scan(&self.rules, text.bytes(), &options));
        Ok(findings(found.map_err(value_error)?))
    }

    #[pyo3(signature = (*, origin = None, token = None, require_token = false))]
    fn scanner(
        &self,
        origin: Option<String>,
        token: Option<String>,
        require_token: bool,
    ) -> PyResult<Scanner> {
        let options = ScanOptions { origin, token, require_token };
        let stream = Stream::new(Arc::clone(&self.rules), &options).map_err(value_error)?;
        Ok(Scanner { stream: Mutex::new(stream) })
    }

    /// The instructions an agent needs to write signals of these dialects.
    #[pyo3(signature = (token = None))]
    fn instructions(&self, token: Option<&str>) -> String {
        aldis_bindings::instructions(&self.rules, token)
    }

    fn __repr__(&self) -> String {
        format!("Rules({})", self.dialects().join(", "))
    }
}

/// A scan of one message that comes in chunks.
#[pyclass(frozen, module = "aldis")]
#[derive(Debug)]
struct Scanner {
    stream: Mutex<Stream>,
}

#[pymethods]
impl Scanner {
    /// Scans the next chunk and returns what is certain by now.
    fn push(&self, py: Python<'_>, chunk: Text) -> PyResult<Vec<Finding>> {
        let found = py.detach(|| self.lock().push(chunk.bytes()));
        Ok(findings(found.map_err(value_error)?))
    }

    /// Ends the message and returns what was still undecided.
    fn finish(&self, py: Python<'_>) -> PyResult<Vec<Finding>> {
        let found = py.detach(|| self.lock().finish());
        Ok(findings(found.map_err(value_error)?))
    }
}

impl Scanner {
    fn lock(&self) -> std::sync::MutexGuard<'_, Stream> {
        self.stream.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Something that an agent reported, or something that looks like it and does not count.
#[pyclass(frozen, eq, module = "aldis")]
#[derive(Clone, Debug, PartialEq)]
struct Finding {
    found: Found,
}

#[pymethods]
impl Finding {
    /// `signal` or `near_miss`.
    #[getter]
    fn kind(&self) -> &'static str {
        if self.found.counts { "signal" } else { "near_miss" }
    }
    #[getter]
    fn counts(&self) -> bool {
        self.found.counts
    }
    #[getter]
    fn dialect(&self) -> &str {
        &self.found.dialect
    }
    #[getter]
    fn signal(&self) -> &str {
        &self.found.name
    }
    #[getter]
    fn meaning(&self) -> Option<&str> {
        self.found.meaning.as_deref()
    }
    #[getter]
    fn subject(&self) -> Option<&str> {
        self.found.subject.as_deref()
    }
    #[getter]
    fn payload(&self) -> Option<&str> {
        self.found.payload.as_deref()
    }
    #[getter]
    fn progress(&self) -> Option<u8> {
        self.found.progress
    }
    #[getter]
    fn fields<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let text = serde_json::to_string(&self.found.fields)
            .map_err(|error| value_error(error.to_string()))?;
        py.import("json")?.call_method1("loads", (text,))
    }
    #[getter]
    fn warnings(&self) -> Vec<String> {
        self.found.warnings.clone()
    }
    #[getter]
    fn reason(&self) -> Option<&str> {
        self.found.reason.as_deref()
    }
    #[getter]
    fn hint(&self) -> Option<&str> {
        self.found.hint.as_deref()
    }
    #[getter]
    fn more(&self) -> u64 {
        self.found.more
    }
    #[getter]
    fn via(&self) -> Option<&str> {
        self.found.via.as_deref()
    }
    #[getter]
    fn origin(&self) -> &str {
        &self.found.role
    }
    #[getter]
    fn line(&self) -> u64 {
        self.found.line
    }
    #[getter]
    fn column(&self) -> u64 {
        self.found.column
    }
    #[getter]
    fn start(&self) -> u64 {
        self.found.start
    }
    #[getter]
    fn end(&self) -> u64 {
        self.found.end
    }
    #[getter]
    fn raw(&self) -> &str {
        &self.found.raw
    }

    fn __repr__(&self) -> String {
        let Found { dialect, name, line, meaning, reason, .. } = &self.found;
        let what = meaning.as_ref().or(reason.as_ref()).map_or("", String::as_str);
        format!("<{} {dialect} {name} ({what}) in line {line}>", self.kind())
    }
}

/// A message of a transcript.
#[pyclass(frozen, get_all, module = "aldis")]
#[derive(Debug)]
struct Message {
    index: u64,
    entry: Option<u64>,
    origin: String,
    agent: Option<String>,
    sidechain: bool,
    live: bool,
    may_signal: bool,
    at: Option<String>,
    id: Option<String>,
    text: String,
    findings: Vec<Py<Finding>>,
}

#[pymethods]
impl Message {
    fn __repr__(&self) -> String {
        format!("<message {} by {}>", self.index, self.origin)
    }
}

impl Message {
    fn new(py: Python<'_>, message: TranscriptMessage) -> PyResult<Self> {
        let findings = message.findings.into_iter().map(|found| Py::new(py, Finding { found }));
        Ok(Self {
            index: message.index,
            entry: message.entry,
            origin: message.role,
            agent: message.agent,
            sidechain: message.sidechain,
            live: message.live,
            may_signal: message.may_signal,
            at: message.at,
            id: message.id,
            text: message.text,
            findings: findings.collect::<PyResult<_>>()?,
        })
    }
}

#[pyfunction]
#[pyo3(signature = (data, format, agent, rules, token, require_token))]
fn read_transcript(
    py: Python<'_>,
    data: Text,
    format: &str,
    agent: Option<&str>,
    rules: Option<&Rules>,
    token: Option<String>,
    require_token: bool,
) -> PyResult<Vec<Message>> {
    let options = ScanOptions { origin: None, token, require_token };
    let rules = rules.map(|rules| &*rules.rules);
    let messages = py.detach(|| {
        let rules = rules.map(|rules| (rules, &options));
        aldis_bindings::read_transcript(data.bytes(), format, agent, rules)
    });
    messages.map_err(value_error)?.into_iter().map(|it| Message::new(py, it)).collect()
}

#[pyfunction]
fn explain(findings: Vec<PyRef<'_, Finding>>) -> String {
    let found = findings.iter().map(|finding| finding.found.clone()).collect::<Vec<_>>();
    aldis_bindings::explain(&found)
}

#[pymodule]
fn _native(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<Rules>()?;
    module.add_class::<Scanner>()?;
    module.add_class::<Finding>()?;
    module.add_class::<Message>()?;
    module.add_function(wrap_pyfunction!(read_transcript, module)?)?;
    module.add_function(wrap_pyfunction!(explain, module)?)
}

/// A text as Python has it. Bytes are borrowed; the stable interface of Python 3.9 cannot lend the
/// bytes of a `str`, so these are copied once.
enum Text {
    Str(PyBackedStr),
    Bytes(PyBackedBytes),
}

impl<'py> FromPyObject<'_, 'py> for Text {
    type Error = PyErr;

    fn extract(text: Borrowed<'_, 'py, PyAny>) -> PyResult<Self> {
        if let Ok(bytes) = text.extract() {
            return Ok(Self::Bytes(bytes));
        }
        if !text.is_instance_of::<PyString>() {
            return Err(PyTypeError::new_err("expected str or bytes"));
        }
        if let Ok(text) = text.extract() {
            return Ok(Self::Str(text));
        }
        // Half an emoji, as it comes out of a JSON stream that was cut: three bytes that are no UTF-8,
        // which the scanner takes as any others.
        let bytes = text.call_method1("encode", ("utf-8", "surrogatepass"))?;
        Ok(Self::Bytes(bytes.extract()?))
    }
}

impl Text {
    fn bytes(&self) -> &[u8] {
        match self {
            Self::Str(text) => text.as_bytes(),
            Self::Bytes(bytes) => bytes,
        }
    }
}

fn findings(found: Vec<Found>) -> Vec<Finding> {
    found.into_iter().map(|found| Finding { found }).collect()
}

fn value_error(error: InputError) -> PyErr {
    PyValueError::new_err(error)
}
