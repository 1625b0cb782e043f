//! Keyed lines between delimiter lines.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::Value;

use crate::dialect::Dialect;
use crate::scan::diagnose::spelling::meant;
use crate::scan::draft::{Defect, Draft, Read};
use crate::scan::text::{SIGNAL_MAX, is_deceptive_text, is_placeholder, lossy, trim_blanks};
use crate::scan::window::{Line, LineAt, Window};
use crate::signal::{Reason, Warning};
use crate::visible::trim_line_end;

/// How a block dialect is written.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct Syntax {
    #[serde(rename = "family")]
    _family: IgnoredAny,
    /// The line that opens and closes a block.
    pub delimiter: String,
    /// The key of the first line, whose value is the signal's name.
    pub key: String,
    /// The other keys. `TOKEN` is always allowed.
    pub keys: Vec<String>,
    /// Keys whose values are free text for people.
    #[serde(default)]
    pub text_keys: Vec<String>,
    /// Whether a bare fence that holds one block and ends the message counts.
    #[serde(default)]
    pub fenced_terminal: bool,
    /// Whether `KEY: NAME` as the last line counts without delimiters.
    #[serde(default)]
    pub bare_terminal: bool,
    /// What a claim must say beside its name, such as `STATUS: complete`.
    #[serde(default)]
    pub claim_needs: BTreeMap<String, String>,
}

impl Syntax {
    /// Returns whether a line is a delimiter and nothing else.
    fn is_delimiter(&self, line: Line<'_>) -> bool {
        line.seen == self.delimiter.as_bytes()
    }

    /// Reads `KEY: value`, in any case; the key is returned as the dialect spells it.
    fn key_line<'a>(&self, line: &'a [u8]) -> Option<(&str, &'a [u8])> {
        let line = trim_line_end(line);
        let colon = line.iter().position(|byte| *byte == b':')?;
        let key = &line[..colon];
        let known = std::iter::once(self.key.as_str())
            .chain(self.keys.iter().map(String::as_str))
            .chain(std::iter::once("TOKEN"))
            .find(|known| known.as_bytes().eq_ignore_ascii_case(key))?;
        Some((known, trim_blanks(&line[colon + 1..])))
    }

    /// Returns what a line says behind the key that names signals, in any case.
    pub(crate) fn value<'a>(&self, seen: &'a [u8]) -> Option<&'a [u8]> {
        let (key, rest) = seen.split_at_checked(self.key.len())?;
        let is_key = key.eq_ignore_ascii_case(self.key.as_bytes()) && !key.contains(&b':');
        rest.strip_prefix(b":").filter(|_| is_key).map(trim_blanks)
    }

    /// Reads the block whose delimiter line is `opening`.
    pub(crate) fn read(&self, dialect: &Dialect, window: &Window<'_>, opening: Line<'_>) -> Read {
        let first = match window.line(opening.next) {
            LineAt::Line(line) => line,
            LineAt::Wait => return Read::NeedMore,
            LineAt::Nothing | LineAt::TooLong => return Read::NotMine,
        };
        match self.value(first.seen) {
            Some(name) => BlockReading::new(self, dialect, opening, first, name).read(window),
            None => Read::NotMine,
        }
    }
}

/// A block being read.
struct BlockReading<'a> {
    syntax: &'a Syntax,
    dialect: &'a Dialect,
    draft: Draft,
    /// The name as written.
    written: String,
    defect: Option<Reason>,
    about: Option<String>,
    next: u64,
    end: u64,
}

impl<'a> BlockReading<'a> {
    fn new(
        syntax: &'a Syntax,
        dialect: &'a Dialect,
        opening: Line<'_>,
        first: Line<'_>,
        name: &[u8],
    ) -> Self {
        let written = lossy(name).into_owned();
        let mut draft = Draft { range: (opening.start, first.seen_end()), ..Draft::default() };
        let known = dialect.signals.iter().find(|def| def.name.eq_ignore_ascii_case(&written));
        let mut defect = None;
        let close = if known.is_none() { meant(dialect, &written) } else { None };
        match known {
            Some(def) => draft.name = def.name.clone(),
            None if close.is_some() => defect = close.map(|(_, reason)| reason),
            None if is_deceptive_text(name) || !name.is_ascii() => defect = Some(Reason::Hidden),
            None if is_placeholder(&written) => defect = Some(Reason::Placeholder),
            None => defect = Some(Reason::UnknownName),
        }
        Self {
            syntax,
            dialect,
            draft,
            written: close.map_or(written, |(name, _)| name.to_owned()),
            defect,
            about: None,
            next: first.next,
            end: first.seen_end(),
        }
    }

    fn read(&mut self, window: &Window<'_>) -> Read {
        let start = self.draft.range.0;
        loop {
            let line = match window.line(self.next) {
                LineAt::Line(line) => line,
                LineAt::Wait => return Read::NeedMore,
                LineAt::Nothing => {
                    self.draft.warnings.push(Warning::MissingClosingDelimiter);
                    break;
                }
                LineAt::TooLong => {
                    self.fail(Reason::TooLong, None);
                    break;
                }
            };
            let closes = self.syntax.is_delimiter(line);
            if closes {
                self.step(line);
            }
            if closes && self.end - start > SIGNAL_MAX || !closes && line.next - start > SIGNAL_MAX
            {
                self.fail(Reason::TooLong, None);
            } else if !closes && line.seen.is_empty() {
                match only_blank_lines_follow(window, start, line.next) {
                    Some(true) => self.draft.warnings.push(Warning::MissingClosingDelimiter),
                    Some(false) => self.fail(Reason::Unclosed, Some("a blank line".to_owned())),
                    None => return Read::NeedMore,
                }
            } else if !closes && self.field(line) {
                continue;
            }
            break;
        }
        self.found()
    }

    /// Takes one field line; returns whether the block can go on.
    fn field(&mut self, line: Line<'_>) -> bool {
        let Some((key, value)) = self.syntax.key_line(line.text) else {
            let text = lossy(line.seen).into_owned();
            let key = text.split_once(':').map(|(key, _)| key);
            let key = key.filter(|key| !key.is_empty() && !key.contains(' '));
            let looks_like_key = key.is_some();
            // A key with other letters may look like a known one.
            let hidden = is_deceptive_text(line.seen) || key.is_some_and(|key| !key.is_ascii());
            let reason = match (hidden, looks_like_key) {
                (true, _) => Reason::Hidden,
                (_, true) => Reason::UnknownField,
                _ => Reason::Unclosed,
            };
            self.fail(reason, Some(text.split(':').next().unwrap_or_default().to_owned()));
            return looks_like_key && self.step(line);
        };
        let member = key.to_ascii_lowercase();
        let text = lossy(value).into_owned();
        if key == self.syntax.key || self.draft.fields.contains_key(&member) {
            self.fail(Reason::DuplicateField, Some(key.to_owned()));
        } else if is_placeholder(&text) {
            self.fail(Reason::Placeholder, Some(key.to_owned()));
        } else if !self.syntax.text_keys.iter().any(|free| free == key) && is_deceptive_text(value)
        {
            self.fail(Reason::Hidden, Some(key.to_owned()));
        }
        if key == "TOKEN" {
            self.draft.token = Some(text.clone());
        }
        self.draft.fields.insert(member, Value::String(text));
        self.step(line)
    }

    fn step(&mut self, line: Line<'_>) -> bool {
        self.end = line.seen_end();
        self.next = line.next;
        true
    }

    fn fail(&mut self, reason: Reason, about: Option<String>) {
        if self.defect.is_none() {
            self.defect = Some(reason);
            self.about = about;
        }
    }

    fn found(&mut self) -> Read {
        self.draft.range.1 = self.end;
        self.check_claim();
        let result = match self.defect {
            Some(reason) => {
                let mut name = self.written.clone();
                if !self.draft.name.is_empty() {
                    name = self.draft.name.to_string();
                }
                let mut defect = Defect::new(reason, name, self.draft.range);
                defect.about = self.about.take();
                Err(defect)
            }
            None => Ok(std::mem::take(&mut self.draft)),
        };
        Read::new(result, self.next)
    }

    fn check_claim(&mut self) {
        let Some(def) = self.dialect.signal(&self.draft.name) else { return };
        self.draft.fields.remove("token");
        self.draft.check_expected(def);
        if !def.meaning.is_claim() {
            return;
        }
        for (key, value) in &self.syntax.claim_needs {
            let said = self.draft.fields.get(&key.to_ascii_lowercase()).and_then(Value::as_str);
            if let Some(said) = said.filter(|said| !said.eq_ignore_ascii_case(value)) {
                let about = format!("{key}: {said}");
                self.fail(Reason::StatusNotComplete, Some(about));
            }
        }
    }
}

/// Returns whether nothing but blank lines follows, or `None` if that is not known yet.
fn only_blank_lines_follow(window: &Window<'_>, block: u64, mut start: u64) -> Option<bool> {
    while start - block <= SIGNAL_MAX {
        match window.line(start) {
            LineAt::Nothing => return Some(true),
            LineAt::Line(line) if line.seen.is_empty() => {
                if line.next == start {
                    return Some(true);
                }
                start = line.next;
            }
            LineAt::Line(_) | LineAt::TooLong => return Some(false),
            // A line that has begun to show something will not become blank.
            LineAt::Wait if window.from(start).iter().any(u8::is_ascii_graphic) => {
                return Some(false);
            }
            LineAt::Wait => return None,
        }
    }
    Some(false)
}
