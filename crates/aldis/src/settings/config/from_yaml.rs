//! YAML as a tree with lines.
//!
//! Only what settings need is taken. Aliases, anchors and tags are refused: a few lines of them can
//! stand for gigabytes or for objects of some language. Plain words stay words until a type asks,
//! so `no` is never a boolean and `1.10` never loses its zero.

use std::borrow::Cow;

use granit_parser::{Event, Options, Parser, ScalarStyle, ScanError, Tag};

use super::read::{Malformed, NumberedText};
use super::tree::{Node, NodeKind};

/// How deep values may be nested.
const DEPTH_MAX: usize = 32;

/// Reads a document.
pub(super) fn parse(lines: &NumberedText<'_>) -> Result<Node, Malformed> {
    let mut builder = Builder { lines, open: Vec::new(), root: None, documents: 0 };
    let mut options = Options::default();
    options.flow_nesting_limit = DEPTH_MAX;
    options.block_nesting_limit = DEPTH_MAX;
    options.emit_comments = false;
    for event in Parser::new_from_str_with_options(lines.text, options) {
        let (event, span) = event.map_err(|error| scan_error(&error))?;
        builder.take(event, span.start.line())?;
    }
    let root = builder.root.unwrap_or_else(|| Node::empty(lines.origin(1)));
    match root.kind {
        NodeKind::Unset => Ok(Node::empty(lines.origin(1))),
        NodeKind::Table(_) => Ok(root),
        _ => Err(Malformed { line: 1, message: "expected keys and values".to_owned() }),
    }
}

/// A collection that is not complete yet.
struct Open {
    line: usize,
    items: Items,
}

enum Items {
    List(Vec<Node>),
    Table {
        members: Vec<(String, Node)>,
        /// The key that waits for its value, and its line.
        key: Option<(String, usize)>,
    },
}

struct Builder<'l> {
    lines: &'l NumberedText<'l>,
    open: Vec<Open>,
    root: Option<Node>,
    documents: usize,
}

impl Builder<'_> {
    fn take(&mut self, event: Event<'_>, line: usize) -> Result<(), Malformed> {
        match event {
            Event::DocumentStart(..) => {
                self.documents += 1;
                if self.documents > 1 {
                    return refuse(line, "a second document is not read");
                }
            }
            Event::Alias(_) | Event::UnresolvedAlias(_) | Event::Anchor(..) => {
                return refuse(line, "aliases are not taken; write the value out");
            }
            Event::Scalar(text, style, anchor, tag) => {
                plain(line, anchor, tag.as_ref())?;
                self.scalar(text, style, line)?;
            }
            Event::SequenceStart(_, anchor, tag) => {
                plain(line, anchor, tag.as_ref())?;
                self.open.push(Open { line, items: Items::List(Vec::new()) });
            }
            Event::MappingStart(_, anchor, tag) => {
                plain(line, anchor, tag.as_ref())?;
                let items = Items::Table { members: Vec::new(), key: None };
                self.open.push(Open { line, items });
            }
            Event::SequenceEnd | Event::MappingEnd => {
                if let Some(open) = self.open.pop() {
                    let kind = match open.items {
                        Items::List(items) => NodeKind::List(items),
                        Items::Table { members, .. } => NodeKind::Table(members),
                    };
                    self.place(kind, open.line)?;
                }
            }
            _ => {}
        }
        Ok(())
    }

    fn scalar(
        &mut self,
        text: Cow<'_, str>,
        style: ScalarStyle,
        line: usize,
    ) -> Result<(), Malformed> {
        if let Some(Open { items: Items::Table { members, key: key @ None }, .. }) =
            self.open.last_mut()
        {
            if let Some((_, first)) = members.iter().find(|(name, _)| *name == text) {
                return refuse(line, &format!("`{text}` is already set ({})", first.origin));
            }
            *key = Some((text.into_owned(), line));
            return Ok(());
        }
        let kind = match style {
            ScalarStyle::Plain if matches!(&*text, "" | "~" | "null") => NodeKind::Unset,
            ScalarStyle::Plain => NodeKind::Word(text.into_owned()),
            _ => NodeKind::Text(text.into_owned()),
        };
        self.place(kind, line)
    }

    /// Puts a complete value where it belongs.
    fn place(&mut self, kind: NodeKind, line: usize) -> Result<(), Malformed> {
        match self.open.last_mut().map(|open| &mut open.items) {
            None => self.root = Some(Node { origin: self.lines.origin(line), kind }),
            Some(Items::List(items)) => {
                items.push(Node { origin: self.lines.origin(line), kind });
            }
            Some(Items::Table { members, key }) => match key.take() {
                // A value is where its key is.
                Some((key, line)) => {
                    members.push((key, Node { origin: self.lines.origin(line), kind }));
                }
                None => return refuse(line, "a key must be a word"),
            },
        }
        Ok(())
    }
}

fn plain(line: usize, anchor: usize, tag: Option<&Cow<'_, Tag>>) -> Result<(), Malformed> {
    if anchor != 0 {
        return refuse(line, "anchors are not taken; write the value out where it is meant");
    }
    match tag {
        Some(tag) => refuse(line, &format!("the tag `{}` is not taken", tag.original())),
        None => Ok(()),
    }
}

fn refuse(line: usize, message: &str) -> Result<(), Malformed> {
    Err(Malformed { line, message: message.to_owned() })
}

fn scan_error(error: &ScanError) -> Malformed {
    Malformed { line: error.marker().line(), message: error.info() }
}
