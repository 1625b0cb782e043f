//! Lines that are `KEY: NAME` without the block around them.

use super::draft::{Defect, Draft};
use super::engine::Engine;
use super::fuzzy::{known, meant};
use super::judge::Position;
use super::terminals::Terminal;
use super::text::{is_blank, is_deceptive_text, is_placeholder, lossy};
use super::window::{Line, Window};
use crate::dialect::syntax::block;
use crate::signal::{Reason, Warning};
use crate::visible::sequence::without_sequences;

impl Engine<'_> {
    /// `KEY: NAME` outside a block: the last line of the message, or a near miss.
    pub(super) fn on_key_line(
        &mut self,
        window: &Window<'_>,
        index: usize,
        block: &block::Syntax,
        line: Line<'_>,
    ) {
        let rules = self.rules;
        let dialect = &rules.dialects()[index];
        let text = line.seen;
        if !self.options.near_misses && block.value(text).is_none() {
            return;
        }
        let mut keys = find_keys(&block.key, text);
        let Some(first) = keys.next() else {
            return self.on_hidden_key(window, index, block, line);
        };
        let said = std::iter::once(first)
            .chain(keys)
            .find_map(|(at, name, end)| known(dialect, name).map(|def| (at, name, end, Some(def))));
        let (at, name, end, known) = said.unwrap_or((first.0, first.1, first.2, None));
        let range = (line.start, line.seen_end());
        match (block.value(text).filter(|_| at == 0), known) {
            (Some(value), Some(def)) if value.len() == name.len() => {
                let mut draft = Draft::new(def.name.clone(), range);
                draft.warnings.push(Warning::MissingDelimiters);
                self.bare_terminal(window, index, block, draft);
            }
            (Some(value), None) if !value.is_empty() => {
                let text = lossy(value);
                if let Some((name, reason)) = meant(dialect, &text) {
                    let defect = Defect::new(reason, name, range);
                    return self.report_line(window, index, defect);
                }
                let reason = match () {
                    () if is_deceptive_text(value) || !value.is_ascii() => Reason::Hidden,
                    () if is_placeholder(&text) => Reason::Placeholder,
                    () if text.contains(' ') => return,
                    () => Reason::UnknownName,
                };
                let shown = if name.is_empty() { value } else { name };
                let defect = Defect::new(reason, lossy(shown), range);
                self.report_line(window, index, defect);
            }
            (_, Some(def)) => {
                self.out_of_place(window, index, &def.name, line, (at, end));
            }
            (_, None) => {}
        }
    }

    /// A line that is `KEY: NAME` without the sequences in it.
    fn on_hidden_key(
        &mut self,
        window: &Window<'_>,
        index: usize,
        block: &block::Syntax,
        line: Line<'_>,
    ) {
        if !line.text.contains(&0x1B) {
            return;
        }
        let seen = without_sequences(line.seen);
        let name = block.value(&seen).and_then(|name| known(&self.rules.dialects()[index], name));
        if let Some(def) = name {
            let range = (line.start, line.seen_end());
            let defect = Defect::new(Reason::Hidden, def.name.clone(), range);
            self.report_line(window, index, defect);
        }
    }

    fn bare_terminal(
        &mut self,
        window: &Window<'_>,
        index: usize,
        block: &block::Syntax,
        draft: Draft,
    ) {
        let (start, end) = draft.range;
        let quoted = self.is_quoted(window, start, None);
        if self.is_in_vain(quoted) {
            return;
        }
        let mut candidate = self.candidate(window, index, draft, quoted);
        candidate.doubt = self.doubt(window, &candidate, Position::of_line(start));
        let terminal = Terminal {
            dialect: index,
            candidate,
            otherwise: Reason::NotAtEnd,
            checked: end,
            fenced: false,
            repeats: false,
        };
        if block.bare_terminal && !terminal.candidate.quoted {
            self.await_end(terminal);
        } else {
            self.refuse(terminal);
        }
    }
}

/// Finds every `KEY:` in any case, the word behind it, and where that ends.
pub(super) fn find_keys<'t>(
    key: &str,
    text: &'t [u8],
) -> impl Iterator<Item = (usize, &'t [u8], usize)> {
    memchr::memchr_iter(b':', text).filter_map(move |colon| {
        let at = colon.checked_sub(key.len())?;
        let whole = at == 0 || !(text[at - 1].is_ascii_alphanumeric() || text[at - 1] == b'_');
        if !whole || !text[at..colon].eq_ignore_ascii_case(key.as_bytes()) {
            return None;
        }
        // What makes the key bold ends behind its colon.
        let skipped = |byte: &u8| is_blank(*byte) || at > 0 && matches!(byte, b'*' | b'`');
        let start = text[colon + 1..].iter().position(|byte| !skipped(byte));
        let rest = &text[start.map_or(text.len(), |start| colon + 1 + start)..];
        let length = rest.iter().position(|byte| !(byte.is_ascii_alphanumeric() || *byte == b'_'));
        let name = &rest[..length.unwrap_or(rest.len())];
        Some((at, name, text.len() - rest.len() + name.len()))
    })
}
