//! A decision in the words of the stream: a server-sent event with a CloudEvents envelope.

use aldis_engine::Members;
use aldis_signal::time::Timestamp;
use aldis_store::Decision;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

/// Appends one decision. JSON escapes line ends, so the data are one line.
pub(super) fn append(text: &mut Vec<u8>, decision: &Decision) {
    let rule = serde_json::from_str(&decision.body).ok().and_then(|Ruled { rule }| rule);
    let id = decision.cursor.to_string();
    let event = CloudEvent {
        specversion: "1.0",
        id: &id,
        source: "/v1/runs",
        subject: decision.run.as_str(),
        kind: format!("dev.aldis.{}", rule.as_deref().unwrap_or("decision").replace('/', ".")),
        time: decision.at,
        datacontenttype: "application/json",
        // Thousands a second are put into words: a body is copied as it is stored.
        data: serde_json::from_str(&decision.body).unwrap_or(RawValue::NULL),
    };
    text.extend_from_slice(format!("id: {id}\nevent: decision\ndata: ").as_bytes());
    // Nothing in it can fail to be written.
    serde_json::to_writer(&mut *text, &event).ok();
    text.extend_from_slice(b"\n\n");
}

/// An event `decision`: a CloudEvents envelope.
#[derive(Debug, Serialize, JsonSchema)]
pub(in crate::server) struct CloudEvent<'d> {
    /// Of CloudEvents.
    specversion: &'static str,
    /// Its position: keep it as text, and pass it as `after` or `Last-Event-ID`.
    id: &'d str,
    /// Where runs are.
    source: &'static str,
    /// The run or channel.
    subject: &'d str,
    /// `dev.aldis.` and the rule.
    #[serde(rename = "type")]
    kind: String,
    /// When it was decided.
    #[schemars(with = "String")]
    time: Timestamp,
    /// Of `data`.
    datacontenttype: &'static str,
    /// The decision, as it is stored.
    #[schemars(with = "Option<Members>")]
    data: &'d RawValue,
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
