//! A decision in the words of the stream: a server-sent event with a CloudEvents envelope.

use aldis_signal::time::Timestamp;
use aldis_store::Decision;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

/// Appends one decision. JSON escapes line ends, so the data are one line.
pub(super) fn append(text: &mut Vec<u8>, decision: &Decision) {
    // Thousands a second are put into words: each is parsed once, and its body copied as it is stored.
    let parsed = serde_json::from_str::<Ruled>(&decision.body);
    let data = match &parsed {
        Ok(_) => decision.body.trim(),
        Err(_) => serde_json::from_str(&decision.body).map_or("null", RawValue::get),
    };
    let rule = parsed.ok().and_then(|ruled| ruled.rule);
    let id = decision.cursor.to_string();
    let envelope = Envelope {
        specversion: "1.0",
        id: &id,
        source: "/v1/runs",
        subject: decision.run.as_str(),
        kind: format!("dev.aldis.{}", rule.as_deref().unwrap_or("decision").replace('/', ".")),
        time: decision.at,
        datacontenttype: "application/json",
    };
    text.extend_from_slice(format!("id: {id}\nevent: decision\ndata: ").as_bytes());
    // Nothing in it can fail to be written.
    serde_json::to_writer(&mut *text, &envelope).ok();
    text.pop();
    text.extend_from_slice(b",\"data\":");
    text.extend_from_slice(data.as_bytes());
    text.extend_from_slice(b"}\n\n");
}

/// A CloudEvents envelope, but for its data.
#[derive(Debug, Serialize)]
struct Envelope<'d> {
    specversion: &'static str,
    id: &'d str,
    source: &'static str,
    subject: &'d str,
    #[serde(rename = "type")]
    kind: String,
    time: Timestamp,
    datacontenttype: &'static str,
}

/// What the envelope says of a decision beside what stands in its row.
#[derive(Deserialize)]
struct Ruled {
    rule: Option<String>,
}

#[cfg(test)]
mod tests {
    //! Whatever is stored, the envelope is JSON on one line and carries it as it is.

    use aldis_store::{Revision, RunId};
    use serde_json::{Value, json};

    use super::*;

    #[test]
    fn every_body_makes_an_envelope() {
        for (body, kind, data) in [
            (
                r#"{"rule":"turns/timeout","n":1}"#,
                "turns.timeout",
                json!({ "rule": "turns/timeout", "n": 1 }),
            ),
            (r#" {"n":"\n"} "#, "decision", json!({ "n": "\n" })),
            (r#"{"rule":7}"#, "decision", json!({ "rule": 7 })),
            ("17", "decision", json!(17)),
            ("{broken", "decision", Value::Null),
            (r#"{"rule":"x"} more"#, "decision", Value::Null),
        ] {
            let (cursor, run) = ("7".parse().unwrap(), RunId::new("c1").unwrap());
            let (revision, at) = (Revision(1), Timestamp::from_millis(0));
            let mut text = Vec::new();
            append(&mut text, &Decision { cursor, run, revision, at, body: body.to_owned() });
            let text = String::from_utf8(text).unwrap();
            let lines: Vec<&str> = text.split('\n').collect();
            let [id, event, envelope, "", ""] = lines[..] else { panic!("{text}") };
            assert_eq!((id, event), ("id: 7", "event: decision"));
            let envelope: Value = serde_json::from_str(&envelope["data: ".len()..]).unwrap();
            let wanted = json!({
                "specversion": "1.0",
                "id": "7",
                "source": "/v1/runs",
                "subject": "c1",
                "type": format!("dev.aldis.{kind}"),
                "time": at,
                "datacontenttype": "application/json",
                "data": data,
            });
            assert_eq!(envelope, wanted, "{body}");
        }
    }
}
