//! JSON files with comments, read and changed without losing what else stands in them.
//!
//! The syntax tree of `jsonc-parser` keeps every comment and blank; what is added takes on the
//! file's own line ends and indentation.

use jsonc_parser::ParseOptions;
use jsonc_parser::cst::{CstNode, CstObject, CstRootNode};
use serde_json::Value;

/// Why a file is not changed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("line {line}: {message}")]
pub(crate) struct EditError {
    /// From 1.
    pub(crate) line: usize,
    /// What is wrong there.
    pub(crate) message: String,
}

impl EditError {
    /// Creates an error about a value of a document.
    pub(crate) fn at(node: &CstNode, message: impl Into<String>) -> Self {
        Self { line: line_of(node), message: message.into() }
    }
}

/// A file that holds one JSON object.
#[derive(Debug)]
pub(crate) struct Document {
    mark: &'static str,
    root: CstRootNode,
    /// The object.
    pub(crate) object: CstObject,
}

impl Document {
    /// Reads a file. A blank one counts as an empty object.
    pub(crate) fn parse(bytes: &[u8]) -> Result<Self, EditError> {
        let text = str::from_utf8(bytes).map_err(|error| {
            let before = bytes.get(..error.valid_up_to()).unwrap_or_default();
            let line = 1 + before.iter().filter(|byte| **byte == b'\n').count();
            EditError { line, message: "not UTF-8".to_owned() }
        })?;
        let (mark, text) = match text.strip_prefix(BYTE_ORDER_MARK) {
            Some(rest) => (BYTE_ORDER_MARK, rest),
            None => ("", text),
        };
        let text = if text.trim().is_empty() { EMPTY } else { text };
        let root = CstRootNode::parse(text, &JSON_WITH_COMMENTS).map_err(|error| EditError {
            line: error.line_display(),
            message: format!("not valid JSON: {}", lower_case(&error.kind().to_string())),
        })?;
        let Some(value) = root.value() else {
            return Err(EditError { line: 1, message: "the file holds only comments".to_owned() });
        };
        let Some(object) = value.as_object() else {
            return Err(EditError::at(&value, "the file is not a JSON object"));
        };
        Ok(Self { mark, root, object })
    }

    /// Returns the text to write.
    pub(crate) fn text(&self) -> String {
        format!("{}{}", self.mark, self.root)
    }

    /// Removes a value with its comma. Comments beside it stay.
    ///
    /// # Errors
    ///
    /// Never: what was read before can be read again.
    pub(crate) fn without(
        self,
        find: impl Fn(&Self) -> Option<CstNode>,
    ) -> Result<Self, EditError> {
        let mut document = self;
        if find(&document).is_some_and(|node| free_comments(&node)) {
            document = Self::parse(document.text().as_bytes())?;
        }
        if let Some(node) = find(&document) {
            node.remove();
        }
        Ok(document)
    }
}

/// Returns a file after a change. A blank file stays blank where nothing was added.
///
/// # Errors
///
/// When the file cannot be read, or the change fails.
pub(crate) fn changed(
    before: Option<&[u8]>,
    change: impl FnOnce(&Document) -> Result<(), EditError>,
) -> Result<Vec<u8>, EditError> {
    let document = Document::parse(before.unwrap_or(EMPTY.as_bytes()))?;
    let untouched = document.text();
    change(&document)?;
    let text = document.text();
    Ok(before.filter(|_| text == untouched).map_or_else(|| text.into_bytes(), <[u8]>::to_owned))
}

/// Returns a member that holds nothing any more.
pub(crate) fn empty(object: &CstObject, name: &str) -> Option<CstNode> {
    let property = object.get(name)?;
    property.value().is_some_and(|value| is_blank(&value)).then(|| property.into())
}

/// Moves comments that stand beside a value to lines of their own: the tree removes with a value
/// what stands on its line. The text must be parsed again where this returns `true`.
fn free_comments(node: &CstNode) -> bool {
    let on_line = node.previous_siblings().take_while(|it| it.is_trivia() && !it.is_newline());
    let before = on_line.filter_map(|sibling| sibling.as_comment()).next();
    if let Some(comment) = &before {
        comment.set_raw_value(format!("{}\n", comment.raw_value()));
    }
    let mut comma = node.trailing_comma();
    for sibling in node.next_siblings() {
        if let Some(comment) = sibling.as_comment() {
            // The comma of the value goes in front of the comment, so that it can go with the value.
            let lead = comma.take().map_or("", |comma| {
                comma.remove();
                ","
            });
            comment.set_raw_value(format!("{lead}\n{}", comment.raw_value()));
            return true;
        }
        if sibling.is_comma() {
            comma = None;
        } else if !sibling.is_trivia() || comma.is_none() && sibling.is_newline() {
            break;
        }
    }
    before.is_some()
}

/// Reads a file whose text will not be changed; `None` if it is not JSON.
pub(crate) fn read_json(bytes: &[u8]) -> Option<Value> {
    let text = str::from_utf8(bytes).ok()?;
    let text = text.strip_prefix(BYTE_ORDER_MARK).unwrap_or(text);
    CstRootNode::parse(text, &JSON_WITH_COMMENTS).ok()?.to_serde_value()
}

/// Returns what a path of names leads to.
pub(crate) fn find<'v>(value: &'v Value, path: &[&str]) -> Option<&'v Value> {
    path.iter().try_fold(value, |value, name| value.get(name))
}

/// Refuses an object in which a name stands twice: hosts differ in which of them counts.
pub(crate) fn check_names(object: &CstObject) -> Result<(), EditError> {
    let properties = object.properties();
    for (index, property) in properties.iter().enumerate() {
        let name = property.decoded_name().unwrap_or_default();
        let earlier = properties.iter().take(index);
        if earlier.filter_map(|other| other.decoded_name()).any(|other| other == name) {
            let message = format!("`{}` is there twice", crate::view::display::excerpt(&name, 40));
            return Err(EditError::at(&property.clone().into(), message));
        }
    }
    Ok(())
}

/// Whether an object or array holds nothing, not even a comment.
pub(crate) fn is_blank(container: &CstNode) -> bool {
    container
        .children()
        .iter()
        .all(|child| child.is_token() || child.is_whitespace() || child.is_newline())
}

/// Returns the line on which a value starts, from 1.
pub(crate) fn line_of(node: &CstNode) -> usize {
    let lines = |node: CstNode| node.to_string().matches('\n').count();
    let before: usize = node.previous_siblings().map(lines).sum();
    before + node.parent().map_or(1, |parent| line_of(&parent.into()))
}

fn lower_case(message: &str) -> String {
    let mut letters = message.chars();
    letters.next().map(|first| first.to_ascii_lowercase()).into_iter().chain(letters).collect()
}

/// What all hosts understand, and comments and trailing commas, which some do.
const JSON_WITH_COMMENTS: ParseOptions = ParseOptions {
    allow_comments: true,
    allow_loose_object_property_names: false,
    allow_trailing_commas: true,
    allow_missing_commas: false,
    allow_single_quoted_strings: false,
    allow_hexadecimal_numbers: false,
    allow_unary_plus_numbers: false,
    allow_bare_decimal_point_numbers: false,
    allow_non_finite_numbers: false,
    allow_extended_string_escapes: false,
};

const BYTE_ORDER_MARK: &str = "\u{feff}";
/// A new file.
pub(crate) const EMPTY: &str = "{}\n";

#[cfg(test)]
mod tests;
