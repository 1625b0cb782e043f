//! Turns in a channel.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};

use aldis_machine::turns::{Config, Event, MessageReader, Start, State};
use serde_json::Value;

use super::{Dialects, JsonEdge, Members, read};

/// How many readers are kept: as many as channels are usually run differently.
const READERS_MAX: usize = 16;

impl JsonEdge for State {
    fn start_from_json(members: Members, _: &dyn Dialects) -> Result<Start, String> {
        read(members)
    }

    fn event_from_json(&self, mut members: Members, _: &dyn Dialects) -> Result<Event, String> {
        // 0.1.0 named it `said`.
        if members.get("event").is_some_and(|event| event == "message" || event == "said") {
            read_messages(&mut members, &reader(self.config()))?;
        }
        read(members)
    }
}

/// Replaces an agent's `text` or `texts` by what they hold.
fn read_messages(members: &mut Members, reader: &MessageReader) -> Result<(), String> {
    let texts = match (members.remove("text"), members.remove("texts")) {
        (Some(_), Some(_)) => return Err("give `text` or `texts`, not both".to_owned()),
        (Some(text), None) => vec![text],
        (None, Some(Value::Array(texts))) => texts,
        (None, Some(_)) => return Err("`texts` is not an array".to_owned()),
        (None, None) if members.contains_key("messages") => return Ok(()),
        (None, None) => return Err("`text` is missing".to_owned()),
    };
    let mut messages = Vec::with_capacity(texts.len());
    for text in texts {
        let Value::String(text) = text else { return Err("a text is not a string".to_owned()) };
        let message = serde_json::to_value(reader.read(&text));
        messages.push(message.map_err(|error| error.to_string())?);
    }
    members.insert("messages".to_owned(), Value::Array(messages));
    Ok(())
}

/// Returns a reader for this configuration. Making one costs more than reading a message.
fn reader(config: &Config) -> Arc<MessageReader> {
    static READERS: Mutex<VecDeque<(Config, Arc<MessageReader>)>> = Mutex::new(VecDeque::new());
    let mut readers = READERS.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some((_, reader)) = readers.iter().find(|(known, _)| known == config) {
        return Arc::clone(reader);
    }
    let reader = Arc::new(MessageReader::new(config));
    readers.push_back((config.clone(), Arc::clone(&reader)));
    if readers.len() > READERS_MAX {
        readers.pop_front();
    }
    reader
}
