//! Settings before they have types: values with the place each one comes from.
//!
//! Every source of settings becomes a tree: a file in either format, the environment, the command
//! line, the defaults. Trees are laid over each other, so whatever wins still knows its origin.

use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;

use serde::de::{self, Deserializer, MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// Where a value comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Origin {
    /// Nobody said anything.
    Default,
    /// A line of a file.
    File {
        /// The file.
        file: Arc<SourceFile>,
        /// The line, from 1.
        line: usize,
    },
    /// A variable of the environment.
    Environment(String),
    /// An option of the command line.
    Flag(&'static str),
}

/// A file with settings.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct SourceFile {
    /// Where it is.
    pub(crate) path: PathBuf,
    /// Whether it belongs to a project, and not to the user.
    pub(crate) of_project: bool,
    /// The digest of its place and content, which is what a user trusts.
    pub(crate) digest: String,
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Default => f.write_str("default"),
            Self::File { file, line } => write!(f, "{}:{line}", file.path.display()),
            Self::Environment(name) => write!(f, "environment {name}"),
            Self::Flag(name) => write!(f, "command line {name}"),
        }
    }
}

/// A value and its origin.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Node {
    pub(crate) origin: Origin,
    pub(crate) kind: NodeKind,
}

/// What a value is.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum NodeKind {
    /// There is none.
    Unset,
    Bool(bool),
    Integer(i64),
    Float(f64),
    Text(String),
    /// Text that may stand for anything: whoever reads it knows what it should be.
    Word(String),
    List(Vec<Node>),
    /// In the order of the file.
    Table(Vec<(String, Node)>),
}

impl Node {
    /// Makes a tree of a value that has no origin but us, in the order of its members.
    ///
    /// # Errors
    ///
    /// Fails if the value cannot be written as JSON.
    pub(crate) fn of(value: &impl Serialize) -> serde_json::Result<Self> {
        serde_json::from_str(&serde_json::to_string(value)?)
    }

    /// Makes a table with nothing in it.
    pub(crate) fn empty(origin: Origin) -> Self {
        Self { origin, kind: NodeKind::Table(Vec::new()) }
    }

    /// Returns the member of a table.
    pub(crate) fn get(&self, key: &str) -> Option<&Self> {
        let NodeKind::Table(members) = &self.kind else { return None };
        members.iter().find(|(name, _)| name == key).map(|(_, node)| node)
    }

    /// Returns what lies at a path such as `run.timeout`.
    pub(crate) fn at(&self, path: &str) -> Option<&Self> {
        path.split('.').try_fold(self, |node, key| node.get(key))
    }

    /// Puts a value at a path, making the tables on the way.
    pub(crate) fn put(&mut self, path: &str, value: Self) {
        let NodeKind::Table(members) = &mut self.kind else { return };
        let (key, rest) =
            path.split_once('.').map_or((path, None), |(key, rest)| (key, Some(rest)));
        let place = members.iter().position(|(name, _)| name == key);
        let Some(rest) = rest else {
            match place.and_then(|place| members.get_mut(place)) {
                Some((_, old)) => *old = value,
                None => members.push((key.to_owned(), value)),
            }
            return;
        };
        if place.is_none() {
            members.push((key.to_owned(), Self::empty(value.origin.clone())));
        }
        let place = place.unwrap_or(members.len() - 1);
        if let Some((_, table)) = members.get_mut(place) {
            table.put(rest, value);
        }
    }

    /// Takes out what is at a path. Returns whether there was anything.
    pub(crate) fn remove(&mut self, path: &[String]) -> bool {
        let (NodeKind::Table(members), Some((key, rest))) = (&mut self.kind, path.split_first())
        else {
            return false;
        };
        let Some(at) = members.iter().position(|(name, _)| name == key) else { return false };
        match (rest, members.get_mut(at)) {
            ([], _) => drop(members.remove(at)),
            (rest, Some((_, node))) => return node.remove(rest),
            (_, None) => return false,
        }
        true
    }

    /// Lays another tree over this one. Tables of ours are merged key by key; a table whose name
    /// the user chose is replaced whole, or it would be half of one definition and half of another.
    pub(crate) fn overlay(&mut self, over: Self) {
        match (&mut self.kind, over.kind) {
            (NodeKind::Table(members), NodeKind::Table(others))
                if self.origin == Origin::Default =>
            {
                for (key, other) in others {
                    match members.iter_mut().find(|(name, _)| *name == key) {
                        Some((_, member)) => member.overlay(other),
                        None => members.push((key, other)),
                    }
                }
            }
            (kind, over_kind) => {
                *kind = over_kind;
                self.origin = over.origin;
            }
        }
    }

    /// Returns every value that is no table of ours, with its path.
    pub(crate) fn leaves(&self) -> Vec<(String, &Self)> {
        let mut found = Vec::new();
        self.collect("", &mut found);
        found
    }

    fn collect<'n>(&'n self, path: &str, found: &mut Vec<(String, &'n Self)>) {
        match &self.kind {
            NodeKind::Table(members) if self.origin == Origin::Default => {
                for (key, member) in members {
                    let dot = if path.is_empty() { "" } else { "." };
                    member.collect(&format!("{path}{dot}{key}"), found);
                }
            }
            _ => found.push((path.to_owned(), self)),
        }
    }

    /// Returns the value as JSON has it.
    pub(crate) fn to_json(&self) -> Value {
        self.kind.to_json()
    }
}

impl NodeKind {
    fn to_json(&self) -> Value {
        match self {
            Self::Unset => Value::Null,
            Self::Bool(value) => (*value).into(),
            Self::Integer(value) => (*value).into(),
            Self::Float(value) => (*value).into(),
            Self::Text(text) => text.clone().into(),
            Self::Word(word) => guess(word).to_json(),
            Self::List(items) => items.iter().map(Node::to_json).collect(),
            Self::Table(members) => {
                members.iter().map(|(key, member)| (key.clone(), member.to_json())).collect()
            }
        }
    }
}

impl<'de> Deserialize<'de> for Node {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let kind = deserializer.deserialize_any(PlainValue)?;
        Ok(Self { origin: Origin::Default, kind })
    }
}

/// Takes whatever a format has.
struct PlainValue;

impl<'de> Visitor<'de> for PlainValue {
    type Value = NodeKind;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a value")
    }

    fn visit_unit<E>(self) -> Result<NodeKind, E> {
        Ok(NodeKind::Unset)
    }

    fn visit_bool<E>(self, value: bool) -> Result<NodeKind, E> {
        Ok(NodeKind::Bool(value))
    }

    fn visit_i64<E>(self, value: i64) -> Result<NodeKind, E> {
        Ok(NodeKind::Integer(value))
    }

    fn visit_u64<E: de::Error>(self, value: u64) -> Result<NodeKind, E> {
        i64::try_from(value).map(NodeKind::Integer).map_err(E::custom)
    }

    fn visit_f64<E>(self, value: f64) -> Result<NodeKind, E> {
        Ok(NodeKind::Float(value))
    }

    fn visit_str<E>(self, text: &str) -> Result<NodeKind, E> {
        Ok(NodeKind::Text(text.to_owned()))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<NodeKind, A::Error> {
        let mut items = Vec::new();
        while let Some(item) = seq.next_element()? {
            items.push(item);
        }
        Ok(NodeKind::List(items))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<NodeKind, A::Error> {
        let mut members = Vec::new();
        while let Some(member) = map.next_entry()? {
            members.push(member);
        }
        Ok(NodeKind::Table(members))
    }
}

/// What a word is where nobody knows what it should be.
pub(crate) fn guess(word: &str) -> NodeKind {
    match word {
        "true" => NodeKind::Bool(true),
        "false" => NodeKind::Bool(false),
        _ => {
            let integer = word.parse().map(NodeKind::Integer).ok();
            let numeric = word.starts_with(|c: char| c.is_ascii_digit() || "+-.".contains(c));
            let float = || word.parse().map(NodeKind::Float).ok().filter(|_| numeric);
            integer.or_else(float).unwrap_or_else(|| NodeKind::Text(word.to_owned()))
        }
    }
}
