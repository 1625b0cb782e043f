//! Prints what the scanner finds in every text of `testdata`, and what the readers make of every
//! transcript there, as one JSON object per line: what the bindings are compared with.
//!
//! It converts the types of `aldis-signal` by itself: a mistake in the conversion that the bindings
//! share would show.
//!
//! ```sh
//! cargo run --release --example corpus -- ../../testdata
//! ```

use std::env;
use std::error::Error;
use std::fs;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use aldis_signal::{Dialect, Finding, Message, Origin, Role, Rules, Scan};
use aldis_transcript::{Input, Reader};
use serde_json::{Value, json};

type Outcome<T> = Result<T, Box<dyn Error>>;

fn main() -> Outcome<()> {
    let root = PathBuf::from(env::args().nth(1).ok_or("which directory is testdata?")?);
    let mut out = BufWriter::new(io::stdout().lock());
    for (name, dialect, origin, text) in texts(&root)? {
        for (rules, names, strict) in rules_for(&dialect)? {
            let findings = Scan::new(&rules).origin(Origin::new(origin)).run(&text);
            let findings: Vec<Value> = findings.iter().map(finding).collect();
            let text = String::from_utf8(text.clone()).map_or_else(
                |bytes| json!({ "bytes": bytes.into_bytes() }),
                |text| json!({ "text": text }),
            );
            let row = json!({
                "name": name, "dialects": names, "strict": strict, "origin": origin.as_str(),
                "input": text, "findings": findings,
            });
            writeln!(out, "{row}")?;
        }
    }
    for file in transcripts(&root.join("hosts"))? {
        let name = file.strip_prefix(&root)?.to_string_lossy().into_owned();
        writeln!(out, "{}", json!({ "transcript": name, "messages": messages(&fs::read(file)?) }))?;
    }
    Ok(out.flush()?)
}

/// A name, the dialect, who wrote it, the text.
type Text = (String, String, Role, Vec<u8>);

fn texts(root: &Path) -> Outcome<Vec<Text>> {
    let mut texts = Vec::new();
    for row in rows(&root.join("conformance/cases.jsonl"))? {
        let (name, dialect) = (member(&row, "id")?, member(&row, "system")?);
        for earlier in row["given"]["earlier_transcript"].as_array().into_iter().flatten() {
            let role = match (member(earlier, "role")?.as_str(), earlier["tool"].as_str()) {
                ("tool_result", Some("Task")) => Role::Subagent,
                ("tool_result", _) => Role::Tool,
                ("user", _) => Role::User,
                _ => Role::Assistant,
            };
            let text = member(earlier, "text")?.into_bytes();
            texts.push((format!("{name}, earlier"), dialect.clone(), role, text));
        }
        texts.push((name, dialect, Role::Assistant, member(&row, "input")?.into_bytes()));
    }
    for file in ["endings", "endings2"] {
        let rows = rows(&root.join(format!("conformance/{file}.jsonl")))?;
        for (index, row) in (1..).zip(rows) {
            let text = member(&row, "text")?.into_bytes();
            let name = format!("{file}:{index}");
            texts.push((name, member(&row, "dialect")?, Role::Assistant, text));
        }
    }
    for row in rows(&root.join("hostile/scan.jsonl"))? {
        let file = member(&row, "file")?;
        let text = fs::read(root.join("hostile").join(&file))?;
        texts.push((file, member(&row, "dialect")?, Role::Assistant, text));
    }
    Ok(texts)
}

/// The text's own dialect, plain and strict, and all dialects together.
fn rules_for(dialect: &str) -> Outcome<[(Rules, Vec<String>, bool); 3]> {
    let known = Dialect::builtin(dialect).ok_or("no such dialect")?;
    let own = || Rules::new([known.clone()]);
    let all = Rules::new(aldis_signal::dialect::builtins().iter().cloned());
    let name = || vec![dialect.to_owned()];
    Ok([(own(), name(), false), (own().strict(true), name(), true), (all, Vec::new(), false)])
}

fn rows(file: &Path) -> Outcome<Vec<Value>> {
    let text = fs::read_to_string(file)?;
    Ok(text.lines().map(serde_json::from_str).collect::<Result<_, _>>()?)
}

fn member(row: &Value, key: &str) -> Outcome<String> {
    Ok(row[key].as_str().ok_or_else(|| format!("a row without `{key}`: {row}"))?.to_owned())
}

fn transcripts(folder: &Path) -> Outcome<Vec<PathBuf>> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        if path.is_dir() {
            found.extend(transcripts(&path)?);
        } else if path.extension().is_some_and(|it| it == "jsonl") {
            found.push(path);
        }
    }
    found.sort();
    Ok(found)
}

fn messages(bytes: &[u8]) -> Vec<Value> {
    let mut messages = Vec::new();
    let mut sink = |it: Message| messages.push(message(&it));
    let mut reader = Reader::new(Input::Auto.resolve(bytes));
    reader.push(bytes, &mut sink);
    reader.finish(&mut sink);
    messages
}

fn message(it: &Message) -> Value {
    let findings = Scan::new(Rules::builtin()).origin(it.origin.clone()).run(it.text.as_bytes());
    json!({
        "index": it.index, "entry": it.entry, "origin": it.origin.role.as_str(),
        "agent": it.origin.agent, "sidechain": it.origin.sidechain, "live": it.origin.live,
        "may_signal": it.origin.may_signal(), "at": it.at.map(|at| at.to_string()), "id": it.id,
        "text": it.text, "findings": findings.iter().map(finding).collect::<Vec<_>>(),
    })
}

fn finding(finding: &Finding) -> Value {
    match finding {
        Finding::Signal(it) => json!({
            "kind": "signal", "counts": true, "dialect": &*it.dialect, "signal": &*it.name,
            "meaning": it.meaning.as_str(), "subject": it.subject, "payload": it.payload,
            "progress": it.progress, "fields": it.fields,
            "warnings": it.warnings.iter().map(ToString::to_string).collect::<Vec<_>>(),
            "reason": null, "hint": null, "more": 0, "via": it.via.to_string(),
            "origin": it.origin.role.as_str(), "line": it.place.line, "column": it.place.column,
            "start": it.place.span.start, "end": it.place.span.end, "raw": it.raw,
        }),
        Finding::NearMiss(it) => json!({
            "kind": "near_miss", "counts": false, "dialect": &*it.dialect, "signal": &*it.name,
            "meaning": null, "subject": null, "payload": null, "progress": null, "fields": {},
            "warnings": [], "reason": it.reason.as_str(), "hint": it.hint(), "more": it.more,
            "via": null, "origin": it.origin.role.as_str(), "line": it.place.line,
            "column": it.place.column, "start": it.place.span.start, "end": it.place.span.end,
            "raw": it.raw,
        }),
    }
}
