//! Files of personas: what other turn managers know about their agents.

use std::collections::BTreeMap;

use aldis_machine::turns::{Persona, is_name};
use serde_json::{Map, Value};

/// The longest name that is shown.
const NAME_MAX: usize = 80;
/// The longest address of a picture.
const URL_MAX: usize = 2_048;

/// Reads a file of personas: `{"personas": {"pm": {..}}}`, `{"pm": {..}}`, or a single persona with
/// an `id`, for which `name` stands in where there is none.
///
/// # Errors
///
/// Says what is wrong with the file, or with the first persona that cannot be used.
pub(crate) fn read_personas(
    text: &str,
    name: Option<&str>,
) -> Result<BTreeMap<String, Persona>, String> {
    let mut members: Map<String, Value> =
        serde_json::from_str(text).map_err(|error| format!("not valid JSON: {error}"))?;
    if let Some(Value::Object(inner)) = members.remove("personas") {
        members = inner;
    } else if let Some(id) = single(&members, name) {
        members = Map::from_iter([(id, Value::Object(members))]);
    }
    members.into_iter().map(|(agent, value)| read(agent, value)).collect()
}

/// The name of the only persona in a file, if it is such a file.
fn single(members: &Map<String, Value>, name: Option<&str>) -> Option<String> {
    let own = members.get("id").or_else(|| members.get("agentId")).and_then(Value::as_str);
    let known = ["turnBehavior", "displayName", "avatarUrl"];
    let is_persona = known.iter().any(|member| members.contains_key(*member));
    own.or_else(|| name.filter(|_| is_persona)).map(str::to_owned)
}

fn read(agent: String, value: Value) -> Result<(String, Persona), String> {
    if !is_name(&agent) {
        let use_this = "use 1 to 64 letters, digits, `.`, `_` or `-`";
        return Err(format!("`{agent}` cannot name an agent; {use_this}"));
    }
    let mut persona: Persona =
        serde_json::from_value(value).map_err(|error| format!("persona `{agent}`: {error}"))?;
    // What would be too long to show is cut.
    persona.display_name = persona.display_name.map(|name| name.chars().take(NAME_MAX).collect());
    persona.avatar_url = persona.avatar_url.filter(|url| url.len() <= URL_MAX);
    Ok((agent, persona))
}

#[cfg(test)]
mod tests {
    //! The kinds of files that there are.

    use aldis_machine::turns::TurnBehavior;

    use super::*;

    #[test]
    fn personas_are_read_from_three_kinds_of_files() {
        let pm = Persona {
            display_name: Some("Product".to_owned()),
            avatar_url: Some("https://example.org/pm.png".to_owned()),
            priority: 2,
            turn_behavior: TurnBehavior { timeout_seconds: Some(90) },
        };
        let body = r#"{"displayName":"Product","avatarUrl":"https://example.org/pm.png","priority":2,
                       "turnBehavior":{"timeoutSeconds":90},"systemPrompt":"..."}"#;
        let own = body.replacen('{', r#"{"id":"pm","#, 1);
        for text in [
            format!(r#"{{"personas":{{"pm":{body}}}}}"#),
            format!(r#"{{"pm":{body}}}"#),
            own,
            body.to_owned(),
        ] {
            let read = read_personas(&text, Some("pm")).unwrap();
            assert_eq!(read.into_iter().collect::<Vec<_>>(), [("pm".to_owned(), pm.clone())]);
        }
        for (text, want) in [
            ("[]", "not valid JSON"),
            (r#"{"../x":{}}"#, "cannot name"),
            (r#"{"pm":{"turnBehavior":{"timeoutSeconds":"90"}}}"#, "persona `pm`"),
        ] {
            let error = read_personas(text, None).unwrap_err();
            assert!(error.contains(want), "{text}: {error}");
        }
    }
}
