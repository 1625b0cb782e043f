//! From a tree to types, with the path and the place of whatever does not fit.

use std::fmt;

use serde::de::value::StrDeserializer;
use serde::de::{
    self, DeserializeOwned, DeserializeSeed, Expected, IntoDeserializer as _, Unexpected, Visitor,
};
use serde::{Deserialize, forward_to_deserialize_any};

use super::tree::{Node, NodeKind, Origin, guess};
use crate::error::CommandError;

/// How unlike a key may be and still be suggested.
const SUGGEST_DISTANCE: usize = 3;

/// Decodes a tree.
pub(crate) fn decode<'n, T: Deserialize<'n>>(node: &'n Node) -> Result<T, Wrong> {
    T::deserialize(NodeReader(node))
}

/// How many mistakes are said at once.
const MISTAKES_MAX: usize = 10;

/// Reads a tree for its mistakes alone, and says all of them.
///
/// # Errors
///
/// Fails if there is one.
pub(crate) fn check<T: DeserializeOwned>(mut node: Node) -> Result<(), CommandError> {
    let mut mistakes: Vec<CommandError> = Vec::new();
    while let Err(wrong) = decode::<T>(&node) {
        let place = wrong.place();
        mistakes.push(wrong.into());
        // What is wrong hides what comes after it.
        if mistakes.len() == MISTAKES_MAX || !node.remove(&place) {
            break;
        }
    }
    if mistakes.len() < 2 {
        return mistakes.pop().map_or(Ok(()), Err);
    }
    let said = mistakes.into_iter().map(|mistake| match mistake {
        CommandError::Failed { message, help: Some(help) } => format!("{message} ({help})"),
        other => other.to_string(),
    });
    Err(CommandError::new(said.collect::<Vec<_>>().join("\n")))
}

/// What does not fit.
#[derive(Debug)]
pub(crate) struct Wrong {
    what: What,
    /// From the outside in.
    path: Vec<String>,
    origin: Option<Origin>,
}

#[derive(Debug)]
enum What {
    UnknownKey { key: String, known: &'static [&'static str] },
    Other(String),
}

impl Wrong {
    /// Adds what is around it: the key it was found under, and its place if that is not known yet.
    fn under(mut self, key: &str, origin: &Origin) -> Self {
        self.path.insert(0, key.to_owned());
        self.at(origin)
    }

    /// Returns the path of what does not fit.
    fn place(&self) -> Vec<String> {
        let key = match &self.what {
            What::UnknownKey { key, .. } => Some(key.clone()),
            What::Other(_) => None,
        };
        self.path.iter().cloned().chain(key).collect()
    }

    fn at(mut self, origin: &Origin) -> Self {
        self.origin.get_or_insert_with(|| origin.clone());
        self
    }
}

impl From<Wrong> for CommandError {
    fn from(wrong: Wrong) -> Self {
        let place = wrong.origin.as_ref().map(in_words).unwrap_or_default();
        let path = wrong.path.join(".");
        match wrong.what {
            What::UnknownKey { key, known } => {
                let table = if path.is_empty() { String::new() } else { format!(" in [{path}]") };
                let failed = Self::new(format!("{place}unknown key `{key}`{table}"));
                failed.with_help(match nearest(&key, known) {
                    Some(known) => format!("did you mean `{known}`?"),
                    None => format!("the keys are {}", known.join(", ")),
                })
            }
            What::Other(message) => Self::new(format!("{place}`{path}`: {message}")),
        }
    }
}

/// The place of an error, before its words.
pub(crate) fn in_words(origin: &Origin) -> String {
    match origin {
        Origin::Default => String::new(),
        Origin::File { file, line } => format!("`{}` line {line}: ", file.path.display()),
        Origin::Environment(name) => format!("{name}: "),
        Origin::Flag(name) => format!("{name}: "),
    }
}

/// Returns the known name nearest to an unknown one.
pub(crate) fn nearest<'k>(unknown: &str, known: &[&'k str]) -> Option<&'k str> {
    let near = known.iter().map(|known| (strsim::levenshtein(unknown, known), *known)).min();
    // Of a short word that is not much left.
    let most = SUGGEST_DISTANCE.min(unknown.len() / 2);
    near.filter(|(far, _)| *far <= most).map(|(_, known)| known)
}

impl fmt::Display for Wrong {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.what {
            What::UnknownKey { key, .. } => write!(f, "unknown key `{key}`"),
            What::Other(message) => f.write_str(message),
        }
    }
}

impl std::error::Error for Wrong {}

impl de::Error for Wrong {
    fn custom<T: fmt::Display>(message: T) -> Self {
        Self { what: What::Other(message.to_string()), path: Vec::new(), origin: None }
    }

    fn unknown_field(key: &str, known: &'static [&'static str]) -> Self {
        let what = What::UnknownKey { key: key.to_owned(), known };
        Self { what, path: Vec::new(), origin: None }
    }

    /// Where names are a list of words, as those of roles are.
    fn unknown_variant(key: &str, known: &'static [&'static str]) -> Self {
        Self::unknown_field(key, known)
    }

    fn invalid_type(found: Unexpected<'_>, expected: &dyn Expected) -> Self {
        Self::custom(format!("expected {expected}, found {found}"))
    }

    fn invalid_value(found: Unexpected<'_>, expected: &dyn Expected) -> Self {
        Self::custom(format!("expected {expected}, found {found}"))
    }
}

/// Reads one value.
struct NodeReader<'n>(&'n Node);

impl<'n> de::Deserializer<'n> for NodeReader<'n> {
    type Error = Wrong;

    fn deserialize_any<V: Visitor<'n>>(self, visitor: V) -> Result<V::Value, Wrong> {
        let visited = match &self.0.kind {
            NodeKind::Unset => visitor.visit_unit(),
            NodeKind::Bool(value) => visitor.visit_bool(*value),
            NodeKind::Integer(value) => visitor.visit_i64(*value),
            NodeKind::Float(value) => visitor.visit_f64(*value),
            NodeKind::Text(text) => visitor.visit_str(text),
            NodeKind::Word(word) => match guess(word) {
                NodeKind::Bool(value) => visitor.visit_bool(value),
                NodeKind::Integer(value) => visitor.visit_i64(value),
                NodeKind::Float(value) => visitor.visit_f64(value),
                _ => visitor.visit_str(word),
            },
            NodeKind::List(items) => visitor.visit_seq(Items(items.iter())),
            NodeKind::Table(members) => {
                visitor.visit_map(NodeMembers { rest: members.iter(), now: None })
            }
        };
        visited.map_err(|wrong: Wrong| wrong.at(&self.0.origin))
    }

    fn deserialize_option<V: Visitor<'n>>(self, visitor: V) -> Result<V::Value, Wrong> {
        match self.0.kind {
            NodeKind::Unset => visitor.visit_none(),
            _ => visitor.visit_some(self),
        }
    }

    fn deserialize_str<V: Visitor<'n>>(self, visitor: V) -> Result<V::Value, Wrong> {
        match &self.0.kind {
            // Whatever it looks like, text was asked for.
            NodeKind::Word(word) => {
                visitor.visit_str(word).map_err(|wrong: Wrong| wrong.at(&self.0.origin))
            }
            _ => self.deserialize_any(visitor),
        }
    }

    fn deserialize_string<V: Visitor<'n>>(self, visitor: V) -> Result<V::Value, Wrong> {
        self.deserialize_str(visitor)
    }

    fn deserialize_enum<V: Visitor<'n>>(
        self,
        _name: &'static str,
        known: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Wrong> {
        let (NodeKind::Text(text) | NodeKind::Word(text)) = &self.0.kind else {
            return Err(<Wrong as de::Error>::custom(format!("expected {}", known.join(" or ")))
                .at(&self.0.origin));
        };
        let text: StrDeserializer<'_, Wrong> = text.as_str().into_deserializer();
        visitor.visit_enum(text).map_err(|_: Wrong| {
            <Wrong as de::Error>::custom(format!("expected {}", known.join(" or ")))
                .at(&self.0.origin)
        })
    }

    fn deserialize_newtype_struct<V: Visitor<'n>>(
        self,
        _name: &'static str,
        visitor: V,
    ) -> Result<V::Value, Wrong> {
        visitor.visit_newtype_struct(self)
    }

    forward_to_deserialize_any! {
        <V: Visitor<'n>>
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char bytes byte_buf unit unit_struct
        seq tuple tuple_struct map struct identifier ignored_any
    }
}

struct Items<'n>(std::slice::Iter<'n, Node>);

impl<'n> de::SeqAccess<'n> for Items<'n> {
    type Error = Wrong;

    fn next_element_seed<T: DeserializeSeed<'n>>(
        &mut self,
        seed: T,
    ) -> Result<Option<T::Value>, Wrong> {
        self.0.next().map(|item| seed.deserialize(NodeReader(item))).transpose()
    }
}

struct NodeMembers<'n> {
    rest: std::slice::Iter<'n, (String, Node)>,
    now: Option<&'n (String, Node)>,
}

impl<'n> de::MapAccess<'n> for NodeMembers<'n> {
    type Error = Wrong;

    fn next_key_seed<K: DeserializeSeed<'n>>(
        &mut self,
        seed: K,
    ) -> Result<Option<K::Value>, Wrong> {
        self.now = self.rest.next();
        let Some((key, node)) = self.now else { return Ok(None) };
        let text: StrDeserializer<'_, Wrong> = key.as_str().into_deserializer();
        seed.deserialize(text).map(Some).map_err(|wrong| wrong.at(&node.origin))
    }

    fn next_value_seed<V: DeserializeSeed<'n>>(&mut self, seed: V) -> Result<V::Value, Wrong> {
        let Some((key, node)) = self.now else {
            return Err(de::Error::custom("a value without a key"));
        };
        seed.deserialize(NodeReader(node)).map_err(|wrong| wrong.under(key, &node.origin))
    }
}
