//! Signals in text: what the commands `scan` and `explain` say.

use std::ffi::OsString;
use std::io::{self, Cursor, Write};
use std::sync::{Arc, Mutex, PoisonError};

use axum::Json;
use axum::routing::post;
use serde::Deserialize;
use serde_json::{Value, json};

use super::Route;
use super::request::Sent;
use crate::cli;
use crate::io::Io;
use crate::server::error::ApiError;

pub(super) const ROUTES: &[Route] = &[
    Route {
        method: "post",
        path: "/v1/scan",
        summary: "Find the signals in a text or transcript",
        body: BODY,
        query: &[],
        handler: || post(scan),
    },
    Route {
        method: "post",
        path: "/v1/explain",
        summary: "Explain the signals and near misses in a text or transcript",
        body: BODY,
        query: &[],
        handler: || post(explain),
    },
];

const BODY: &[(&str, &str)] = &[
    ("text", "the text, or the lines of a transcript"),
    ("dialects?", "the dialects to look for; all where none is named"),
    ("input?", "the form of the text: `auto`, `text` or a host"),
    ("near_misses?", "whether to report what only looked like a signal"),
];

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Text {
    text: String,
    #[serde(default)]
    dialects: Vec<String>,
    #[serde(default)]
    input: Option<String>,
    #[serde(default)]
    near_misses: bool,
}

async fn scan(Sent { body: text, .. }: Sent<Text>) -> Result<Json<Value>, ApiError> {
    let mut extra = vec!["--json"];
    if text.near_misses {
        extra.push("--near-misses");
    }
    let output = command("scan", &extra, text).await?;
    let lines = output.lines().map(serde_json::from_str);
    let findings: Result<Vec<Value>, _> = lines.collect();
    let findings = findings.map_err(|error| ApiError::internal(error.to_string()))?;
    Ok(Json(json!({ "v": 1, "findings": findings })))
}

async fn explain(Sent { body: text, .. }: Sent<Text>) -> Result<Json<Value>, ApiError> {
    let output = command("explain", &[], text).await?;
    Ok(Json(json!({ "v": 1, "text": output })))
}

/// Runs a command on the text and returns what it prints.
async fn command(name: &str, extra: &[&str], text: Text) -> Result<String, ApiError> {
    let plain =
        |word: &String| word.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-');
    let words = text.dialects.iter().chain(&text.input);
    // A word that looked like an option would be one.
    if !words.into_iter().all(|word| plain(word) && !word.starts_with('-')) {
        return Err(ApiError::bad("dialects and inputs have letters, digits and `-`"));
    }
    let mut args: Vec<OsString> = ["aldis", "--color", "never", name].map(OsString::from).to_vec();
    args.extend(extra.iter().map(OsString::from));
    for dialect in &text.dialects {
        args.extend(["--dialect".into(), dialect.into()]);
    }
    if let Some(input) = &text.input {
        args.extend(["--input".into(), input.into()]);
    }
    let work = move || {
        let (output, errors) = (Buffer::default(), Buffer::default());
        let mut io = Io {
            stdin: Box::new(Cursor::new(text.text.into_bytes())),
            stdout: Box::new(output.clone()),
            stderr: Box::new(errors.clone()),
            color_stdout: false,
            color_stderr: false,
            state_dir: None,
        };
        let code = cli::run(args, &mut io);
        if code < 2 { Ok(output.text()) } else { Err(ApiError::bad(errors.text())) }
    };
    let done = tokio::task::spawn_blocking(work).await;
    done.map_err(|_| ApiError::internal("the text could not be read"))?
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
