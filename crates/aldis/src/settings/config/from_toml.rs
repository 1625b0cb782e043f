//! TOML as a tree with lines.

use toml::Spanned;
use toml::de::{DeInteger, DeTable, DeValue};

use super::read::{Malformed, NumberedText};
use super::tree::{Node, NodeKind};

/// Reads a document.
pub(super) fn parse(lines: &NumberedText<'_>) -> Result<Node, Malformed> {
    let malformed = |error: toml::de::Error| Malformed {
        line: error.span().map_or(1, |span| lines.of_byte(span.start)),
        message: error.message().lines().next().unwrap_or_default().to_owned(),
    };
    let document = DeTable::parse(lines.text).map_err(malformed)?;
    Ok(Node { origin: lines.origin(1), kind: table(lines, document.get_ref())? })
}

fn table(lines: &NumberedText<'_>, table: &DeTable<'_>) -> Result<NodeKind, Malformed> {
    let mut members = Vec::with_capacity(table.len());
    for (key, value) in table {
        let line = lines.of_byte(key.span().start);
        let kind = kind(lines, line, value.get_ref())?;
        let member = Node { origin: lines.origin(line), kind };
        members.push((line, key.get_ref().clone().into_owned(), member));
    }
    // The parser sorts by name; people read in the order of the file.
    members.sort_by_key(|(line, ..)| *line);
    Ok(NodeKind::Table(members.into_iter().map(|(_, key, member)| (key, member)).collect()))
}

fn kind(lines: &NumberedText<'_>, line: usize, value: &DeValue<'_>) -> Result<NodeKind, Malformed> {
    let number = |what: &str| Malformed { line, message: format!("`{what}` is no usable number") };
    Ok(match value {
        DeValue::String(text) => NodeKind::Text(text.clone().into_owned()),
        DeValue::Integer(text) => {
            NodeKind::Integer(integer(text).ok_or_else(|| number(text.as_str()))?)
        }
        DeValue::Float(text) => {
            NodeKind::Float(text.as_str().parse().map_err(|_| number(text.as_str()))?)
        }
        DeValue::Boolean(value) => NodeKind::Bool(*value),
        DeValue::Datetime(moment) => NodeKind::Text(moment.to_string()),
        DeValue::Array(items) => {
            let item = |item: &Spanned<DeValue<'_>>| {
                let line = lines.of_byte(item.span().start);
                Ok(Node { origin: lines.origin(line), kind: kind(lines, line, item.get_ref())? })
            };
            NodeKind::List(items.iter().map(item).collect::<Result<_, _>>()?)
        }
        DeValue::Table(inner) => table(lines, inner)?,
    })
}

fn integer(text: &DeInteger<'_>) -> Option<i64> {
    i64::from_str_radix(text.as_str(), text.radix()).ok()
}
