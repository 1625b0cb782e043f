//! Signals in text: what `scan` and `explain` say.

use std::io::{self, Cursor, Write};
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use schemars::JsonSchema;
use serde::Deserialize;

use super::forms::{Answer, Explanation, Findings};
use super::request::Sent;
use crate::app::explain;
use crate::app::scan::{ScanOptions, Stopped};
use crate::app::selection::Selection;
use crate::app::source::InputSource;
use crate::error::CommandError;
use crate::io::Io;
use crate::server::error::ApiError;
use crate::view::wire::ScanLine;

/// A text and what to look for in it.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct ScanRequest {
    /// The text, or the lines of a transcript.
    text: String,
    /// The dialects to look for; all where none is named.
    #[serde(default)]
    dialects: Vec<String>,
    /// The form of the text: `auto`, `text` or a host.
    #[serde(default)]
    input: Option<String>,
    /// Whether to report what only looked like a signal.
    #[serde(default)]
    near_misses: bool,
}

pub(super) async fn scan(
    Sent { body: text, .. }: Sent<ScanRequest>,
) -> Result<Answer<Findings>, ApiError> {
    let findings = read(text, |io, selection, near_misses| {
        let options = ScanOptions { selection, near_misses, follow: false, keep_text: false };
        let mut findings = Vec::new();
        let mut source = InputSource::open(io, Path::new("-"), false)?;
        let scanned = options.read(&mut source, &mut |found| {
            let line = |finding| ScanLine::new("-", found.message, found.entry, finding);
            findings.extend(found.findings.iter().map(line));
            Ok(())
        });
        match scanned {
            Ok(_) => Ok(findings),
            Err(Stopped::Reading(error) | Stopped::Showing(error)) => Err(error),
        }
    });
    Ok(Findings { findings: findings.await? }.into())
}

pub(super) async fn explain(
    Sent { body: text, .. }: Sent<ScanRequest>,
) -> Result<Answer<Explanation>, ApiError> {
    let text = read(text, |io, selection, _| {
        let output = Buffer::default();
        io.stdout = Box::new(output.clone());
        explain::explain(io, selection, false, |_, _| {})?;
        Ok(output.text())
    });
    Ok(Explanation { text: text.await? }.into())
}

/// Reads a text where that may take its time.
async fn read<T: Send + 'static>(
    text: ScanRequest,
    act: impl FnOnce(&mut Io, &Selection, bool) -> Result<T, CommandError> + Send + 'static,
) -> Result<T, ApiError> {
    let work = move || {
        let selection = Selection::of_text(&text.dialects, text.input.as_deref())?;
        let mut io = Io {
            stdin: Box::new(Cursor::new(text.text.into_bytes())),
            stdout: Box::new(io::sink()),
            stderr: Box::new(io::sink()),
            color_stdout: false,
            color_stderr: false,
            verbose: false,
            state_dir: None,
        };
        act(&mut io, &selection, text.near_misses)
    };
    let done = tokio::task::spawn_blocking(work).await;
    let done = done.map_err(|_| ApiError::internal("the text could not be read"))?;
    done.map_err(|error: CommandError| ApiError::bad(error.to_string()))
}

/// A stream into memory.
#[derive(Clone, Default)]
struct Buffer(Arc<Mutex<Vec<u8>>>);

impl Buffer {
    fn text(&self) -> String {
        let bytes = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        String::from_utf8_lossy(&bytes).into_owned()
    }
}

impl Write for Buffer {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
