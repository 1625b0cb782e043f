//! Keeps secrets out of what is stored.

use std::borrow::Cow;

use aldis_core::redact::redact;
use serde_json::Value;

use crate::machines::Members;

/// Takes secrets out of whatever was said, before anything is decided, kept or posted.
pub(super) fn without_secrets(mut members: Members) -> Members {
    members.values_mut().for_each(forget_secrets);
    members
}

fn forget_secrets(value: &mut Value) {
    match value {
        Value::String(text) => {
            if let Cow::Owned(clean) = redact(text) {
                *text = clean;
            }
        }
        Value::Array(items) => items.iter_mut().for_each(forget_secrets),
        Value::Object(members) => members.values_mut().for_each(forget_secrets),
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}
