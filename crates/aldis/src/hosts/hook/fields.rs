//! The members of a payload that any host's hook cares about.
//!
//! Of an object of any size only known members are kept, still as raw JSON. Which host sent it is
//! not known yet, so nothing is read into types here, and a member of the wrong type is as good as
//! missing: a host that changes the type of a detail must not cost the user the loop.

use std::borrow::Cow;
use std::fmt;

use serde::de::{Deserializer, IgnoredAny, MapAccess, Visitor};
use serde_json::value::RawValue;

use super::call::PayloadError;
use crate::hosts::spec::EVENT_NAMES;
use crate::hosts::{ALL, cline};

/// The members of one payload.
#[derive(Debug, Default)]
pub(crate) struct Fields<'a> {
    /// Each known member at most once.
    members: Vec<(&'static str, &'a RawValue)>,
    /// A known member that came twice.
    doubled: Option<&'static str>,
}

impl<'a> Fields<'a> {
    /// Reads a payload.
    pub(crate) fn read(text: &'a str) -> Result<Self, PayloadError> {
        if !text.trim_start().starts_with('{') {
            let error = serde_json::from_str::<IgnoredAny>(text).err();
            return Err(error.map_or(PayloadError::NotAnObject, |error| not_json(&error)));
        }
        let mut deserializer = serde_json::Deserializer::from_str(text);
        let fields =
            deserializer.deserialize_map(CollectFields).map_err(|error| not_json(&error))?;
        deserializer.end().map_err(|error| not_json(&error))?;
        match fields.doubled {
            Some(key) => Err(PayloadError::Ambiguous { key }),
            None => Ok(fields),
        }
    }

    /// Returns a nested object's members.
    pub(crate) fn inside(&self, name: &str) -> Self {
        self.get(name).and_then(|raw| Self::read(raw.get()).ok()).unwrap_or_default()
    }

    /// Returns a member's value; `null` is none.
    pub(crate) fn get(&self, name: &str) -> Option<&'a RawValue> {
        let found = self.members.iter().find(|(key, _)| *key == name)?.1;
        (found.get() != "null").then_some(found)
    }

    /// Returns whether there is such a member, be it `null`.
    pub(crate) fn has(&self, name: &str) -> bool {
        self.members.iter().any(|(key, _)| *key == name)
    }

    /// Returns whether there is any of these members.
    pub(crate) fn has_any(&self, names: &[&str]) -> bool {
        names.iter().any(|name| self.has(name))
    }

    /// Returns the first of these members that is there.
    fn first(&self, names: &[&str]) -> Option<&'a RawValue> {
        names.iter().find_map(|name| self.get(name))
    }

    /// Returns a text member under the first of its names that is there, borrowed where it can be.
    pub(crate) fn cow(&self, names: &[&str]) -> Option<Cow<'a, str>> {
        string(self.first(names)?)
    }

    /// Returns a text member under the first of its names that is there.
    pub(crate) fn text(&self, names: &[&str]) -> Option<String> {
        self.cow(names).map(Cow::into_owned)
    }

    /// As [`text`](Self::text), without those that are blank.
    pub(crate) fn word(&self, names: &[&str]) -> Option<String> {
        self.text(names).filter(|text| !text.trim().is_empty())
    }

    /// Returns a flag; a text that says `true` or `false` is taken at its word.
    pub(crate) fn flag(&self, names: &[&str]) -> Option<bool> {
        let raw = self.first(names)?;
        let text = string(raw).unwrap_or_else(|| Cow::Borrowed(raw.get()));
        text.trim().to_ascii_lowercase().parse().ok()
    }

    /// Returns a count.
    pub(crate) fn count(&self, key: &str) -> Option<u64> {
        self.get(key)?.get().parse().ok()
    }

    /// Returns the elements of a list as objects; those that are none have no members.
    pub(crate) fn list(&self, key: &str) -> Vec<Self> {
        let Some(raw) = self.get(key) else { return Vec::new() };
        if raw.get().len() > LIST_MAX {
            // Too long to look at is not empty.
            return vec![Self::default()];
        }
        let elements = serde_json::from_str::<Vec<&'a RawValue>>(raw.get()).unwrap_or_default();
        elements.into_iter().map(|raw| Self::read(raw.get()).unwrap_or_default()).collect()
    }

    /// Returns the first text of a list.
    pub(crate) fn first_of_list(&self, key: &str) -> Option<String> {
        let elements = serde_json::from_str::<Vec<&'a RawValue>>(self.get(key)?.get()).ok()?;
        Some(string(elements.first()?)?.into_owned())
    }

    /// Returns whether it tells of a stop, in the spelling of most hosts.
    pub(crate) fn is_stop(&self) -> bool {
        let event = self.cow(EVENT_NAMES).unwrap_or_default();
        matches!(&*event, "Stop" | "StopFailure" | "SubagentStop")
    }

    /// Returns whether one thing is said under two names, and differently.
    pub(crate) fn contradicts(&self, names: [&str; 2]) -> bool {
        let [one, other] = names.map(|name| self.cow(&[name]));
        one.is_some() && other.is_some() && one != other
    }
}

/// Reads a string. Half of a surrogate pair, which a host leaves behind when it cuts a text, is
/// replaced.
fn string(raw: &RawValue) -> Option<Cow<'_, str>> {
    struct Text;
    impl<'de> Visitor<'de> for Text {
        type Value = Cow<'de, [u8]>;

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("a string")
        }

        fn visit_borrowed_bytes<E>(self, bytes: &'de [u8]) -> Result<Self::Value, E> {
            Ok(Cow::Borrowed(bytes))
        }

        fn visit_bytes<E>(self, bytes: &[u8]) -> Result<Self::Value, E> {
            Ok(Cow::Owned(bytes.to_vec()))
        }
    }
    if !raw.get().starts_with('"') {
        return None;
    }
    let mut deserializer = serde_json::Deserializer::from_str(raw.get());
    Some(match deserializer.deserialize_bytes(Text).ok()? {
        Cow::Borrowed(bytes) => String::from_utf8_lossy(bytes),
        Cow::Owned(bytes) => Cow::Owned(String::from_utf8_lossy(&bytes).into_owned()),
    })
}

fn not_json(error: &serde_json::Error) -> PayloadError {
    if error.is_eof() { PayloadError::Truncated } else { PayloadError::NotJson }
}

struct CollectFields;

impl<'de> Visitor<'de> for CollectFields {
    type Value = Fields<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Fields<'de>, A::Error> {
        let mut fields = Fields::default();
        while let Some(key) = map.next_key::<KnownMember>()? {
            let KnownMember(Some(key)) = key else {
                map.next_value::<IgnoredAny>()?;
                continue;
            };
            if fields.has(key) {
                fields.doubled = Some(key);
                map.next_value::<IgnoredAny>()?;
                continue;
            }
            fields.members.push((key, map.next_value()?));
        }
        Ok(fields)
    }
}

/// The name of a member, if it is a known one.
struct KnownMember(Option<&'static str>);

impl<'de> serde::Deserialize<'de> for KnownMember {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Name;
        impl Visitor<'_> for Name {
            type Value = KnownMember;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a name")
            }

            fn visit_str<E>(self, name: &str) -> Result<KnownMember, E> {
                Ok(KnownMember(known(name)))
            }
        }
        deserializer.deserialize_str(Name)
    }
}

/// Returns the name of a member that is looked at.
fn known(name: &str) -> Option<&'static str> {
    let special = ALL.iter().flat_map(|host| host.spec().payload.members).chain(cline::MEMBERS);
    COMMON.split(' ').chain(special.copied()).find(|known| *known == name)
}

/// No host has a list of tasks this long, in bytes.
const LIST_MAX: usize = 1 << 20;

/// The members that several hosts send, of payloads and of the objects inside them.
const COMMON: &str = "agent_id agentId agentName agent_transcript_path agentTranscriptPath background_tasks \
    command cwd description error hook_event_name hookEventName id lastAssistantMessage \
    last_assistant_message loop_count model name prompt prompt_id promptId reason schedule \
    session_crons session_id sessionId source status stop_hook_active stopHookActive summary \
    text timestamp transcript_path transcriptPath turn_id turnId type";
