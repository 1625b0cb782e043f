//! The one way in which a receipt is written: what is signed must not depend on who wrote it.
//!
//! JSON without white space; the members of an object in the order of their names' bytes; integers
//! without a fraction or an exponent; in strings `"`, `\` and all characters but the printable ones of
//! ASCII are escaped, as `\"`, `\\`, `\b`, `\t`, `\n`, `\f`, `\r` or `\uxxxx` in lower case. This is what
//! `json.dumps(receipt, sort_keys=True, separators=(",", ":"))` of Python writes, and nothing in it can
//! disturb a terminal.

use std::fmt::Write as _;

use serde::Serialize;
use serde_json::Value;
use sha2::{Digest as _, Sha256};

/// Writes a value in the canonical form.
pub(crate) fn canonical(value: &impl Serialize) -> Result<String, serde_json::Error> {
    let mut text = String::new();
    write(&serde_json::to_value(value)?, &mut text);
    Ok(text)
}

fn write(value: &Value, out: &mut String) {
    match value {
        Value::Array(items) => {
            out.push('[');
            for (at, item) in items.iter().enumerate() {
                if at > 0 {
                    out.push(',');
                }
                write(item, out);
            }
            out.push(']');
        }
        Value::Object(members) => {
            let mut members: Vec<_> = members.iter().collect();
            members.sort_unstable_by_key(|(name, _)| *name);
            out.push('{');
            for (at, (name, member)) in members.into_iter().enumerate() {
                if at > 0 {
                    out.push(',');
                }
                string(name, out);
                out.push(':');
                write(member, out);
            }
            out.push('}');
        }
        Value::String(text) => string(text, out),
        // Others have one form.
        Value::Null | Value::Bool(_) | Value::Number(_) => out.push_str(&value.to_string()),
    }
}

fn string(text: &str, out: &mut String) {
    out.push('"');
    for c in text.chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\u{8}' => out.push_str("\\b"),
            '\t' => out.push_str("\\t"),
            '\n' => out.push_str("\\n"),
            '\u{c}' => out.push_str("\\f"),
            '\r' => out.push_str("\\r"),
            ' '..='~' => out.push(c),
            _ => {
                for unit in c.encode_utf16(&mut [0; 2]) {
                    let _written = write!(out, "\\u{unit:04x}");
                }
            }
        }
    }
    out.push('"');
}

/// SHA-256 in hexadecimal.
pub(crate) fn sha256(bytes: &[u8]) -> String {
    hex(&Sha256::digest(bytes))
}

/// Bytes in hexadecimal.
pub(crate) fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    //! One value, one text.

    use serde_json::json;

    use super::*;

    #[test]
    fn members_are_sorted_and_nothing_is_left_to_taste() {
        let value =
            json!({ "b": [1, -2, null, true], "a": "ü\"\\\u{1}\u{7f}\n/😀", "ä": {}, "B": [] });
        let text = r#"{"B":[],"a":"\u00fc\"\\\u0001\u007f\n/\ud83d\ude00","b":[1,-2,null,true],"\u00e4":{}}"#;
        assert_eq!(canonical(&value).unwrap(), text);
        assert_eq!(canonical(&serde_json::from_str::<Value>(text).unwrap()).unwrap(), text);
        assert_eq!(sha256(b""), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
    }
}
