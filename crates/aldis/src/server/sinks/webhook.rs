//! Signed webhooks, as Standard Webhooks has them: id, time and body under one signature.

use serde_json::json;
use ureq::Agent;

use super::{Delivery, Parcel, failed, sorted};
use crate::notify::signature::Secret;

pub(super) fn send(agent: &Agent, url: &str, secret: &Secret, parcel: Parcel<'_>) -> Delivery {
    let kind = parcel.effect.get("effect").and_then(|kind| kind.as_str()).unwrap_or("effect");
    let body = json!({
        "type": format!("dev.aldis.{kind}"),
        "timestamp": parcel.at,
        "data": { "run": parcel.run, "effect": parcel.effect },
    })
    .to_string();
    let sent = agent
        .post(url)
        .header("content-type", "application/json")
        .header("webhook-id", parcel.key)
        .header("webhook-timestamp", parcel.at.to_string())
        .header("webhook-signature", secret.sign(parcel.key, parcel.at, body.as_bytes()))
        .send(body.as_bytes());
    match sent {
        Ok(response) => sorted(response.status().as_u16(), None),
        Err(error) => failed(&error),
    }
}
