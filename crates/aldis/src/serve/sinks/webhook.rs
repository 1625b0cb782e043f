//! Signed webhooks, as Standard Webhooks has them: id, time and body under one signature.

use std::path::Path;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use hmac::{Hmac, KeyInit as _, Mac as _};
use reqwest::Client;
use serde_json::json;
use sha2::Sha256;

use super::{Delivery, Parcel, Target, failed, sorted};

/// The shortest key, in bytes.
const KEY_MIN: usize = 24;

/// Reads a signing secret.
pub(super) fn secret(file: Option<&Path>) -> Result<Vec<u8>, String> {
    let file = file.ok_or("a webhook needs a `secret_file`")?;
    let shown = file.display();
    let text = std::fs::read_to_string(file).map_err(|error| format!("`{shown}`: {error}"))?;
    let text = text.trim();
    let key = STANDARD
        .decode(text.strip_prefix("whsec_").unwrap_or(text))
        .map_err(|_| format!("`{shown}` holds no secret; it is `whsec_` and base64"))?;
    if key.len() < KEY_MIN {
        return Err(format!("`{shown}`: the secret is shorter than {KEY_MIN} bytes"));
    }
    Ok(key)
}

pub(super) async fn send(
    client: &Client,
    target: &Target,
    secret: &[u8],
    parcel: Parcel<'_>,
) -> Delivery {
    let kind = parcel.effect.get("effect").and_then(|kind| kind.as_str()).unwrap_or("effect");
    let body = json!({
        "type": format!("dev.aldis.{kind}"),
        "timestamp": parcel.at,
        "data": { "run": parcel.run, "effect": parcel.effect },
    })
    .to_string();
    let signature = sign(secret, parcel.key, parcel.at, &body);
    let request = client
        .post(target.url())
        .header("content-type", "application/json")
        .header("webhook-id", parcel.key)
        .header("webhook-timestamp", parcel.at.to_string())
        .header("webhook-signature", signature)
        .body(body);
    match request.send().await {
        Ok(response) => sorted(response.status().as_u16(), None),
        Err(error) => failed(&error),
    }
}

/// Signs the id, the time and the body.
fn sign(secret: &[u8], id: &str, at: i64, body: &str) -> String {
    // A key of any length will do.
    let Ok(mut mac) = Hmac::<Sha256>::new_from_slice(secret) else { return String::new() };
    mac.update(format!("{id}.{at}.{body}").as_bytes());
    format!("v1,{}", STANDARD.encode(mac.finalize().into_bytes()))
}

#[cfg(test)]
mod tests {
    //! The signature, compared with the example of the standard.

    use super::*;

    #[test]
    fn signatures_are_those_of_the_standard() {
        let secret = STANDARD.decode("MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw").unwrap();
        let signed =
            sign(&secret, "msg_p5jXN8AQM9LWM0D4loKWxJek", 1_614_265_330, r#"{"test": 2432232314}"#);
        assert_eq!(signed, "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=");
    }
}
