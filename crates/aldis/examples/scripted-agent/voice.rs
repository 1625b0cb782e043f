//! How a host writes what happens. The forms are data: `voices.toml`.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use serde::Deserialize;
use serde_json::Value;

/// The lines of every voice, by what happens.
static VOICES: LazyLock<BTreeMap<String, Lines>> =
    LazyLock::new(|| toml::from_str(include_str!("voices.toml")).unwrap_or_default());

/// The form in which an agent writes.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(try_from = "String")]
pub(crate) struct Voice(String);

impl Default for Voice {
    fn default() -> Self {
        Self("text".to_owned())
    }
}

impl TryFrom<String> for Voice {
    type Error = String;

    fn try_from(name: String) -> Result<Self, String> {
        if VOICES.contains_key(&name) {
            return Ok(Self(name));
        }
        let known: Vec<&str> = VOICES.keys().map(String::as_str).collect();
        Err(format!("there is no voice `{name}`; there are {}", known.join(", ")))
    }
}

/// What a host writes, one template a line.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct Lines {
    open: Vec<String>,
    say: Vec<String>,
    tool: Vec<String>,
    retry: Vec<String>,
    limit: Vec<String>,
    fail: Vec<String>,
    close: Vec<String>,
}

/// What happens. Exhaustive: every voice has words for each.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Moment {
    Open,
    Say,
    Tool,
    Retry,
    Limit,
    Fail,
    Close,
}

impl Voice {
    /// Writes a moment, each line with its end. A `$name` stands for the value of that name.
    pub(crate) fn render(&self, moment: Moment, values: &[(&str, Value)]) -> String {
        let Some(lines) = VOICES.get(&self.0) else { return String::new() };
        let templates = match moment {
            Moment::Open => &lines.open,
            Moment::Say => &lines.say,
            Moment::Tool => &lines.tool,
            Moment::Retry => &lines.retry,
            Moment::Limit => &lines.limit,
            Moment::Fail => &lines.fail,
            Moment::Close => &lines.close,
        };
        templates.iter().map(|template| filled(template, values) + "\n").collect()
    }
}

/// A template that is JSON is filled as JSON, so that no value can leave its place.
fn filled(template: &str, values: &[(&str, Value)]) -> String {
    if let Ok(mut line) = serde_json::from_str(template) {
        fill(&mut line, values);
        return line.to_string();
    }
    replaced(template, values)
}

fn fill(place: &mut Value, values: &[(&str, Value)]) {
    match place {
        Value::String(text) => {
            let whole = values.iter().find(|(name, _)| text.strip_prefix('$') == Some(name));
            *place = match whole {
                Some((_, value)) => value.clone(),
                None => Value::String(replaced(text, values)),
            };
        }
        Value::Array(elements) => elements.iter_mut().for_each(|element| fill(element, values)),
        Value::Object(members) => members.values_mut().for_each(|member| fill(member, values)),
        _ => {}
    }
}

fn replaced(text: &str, values: &[(&str, Value)]) -> String {
    values.iter().fold(text.to_owned(), |text, (name, value)| {
        let value = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
        text.replace(&format!("${name}"), &value)
    })
}
