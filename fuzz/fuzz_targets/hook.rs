//! Any bytes from any host on a hook's standard input: refused or understood, and every answer to it
//! is one JSON object or nothing.
#![no_main]

use aldis::hosts::{Answer, Env, Host, answer, parse};
use aldis_fuzz::Input;
use libfuzzer_sys::fuzz_target;
use serde_json::Value;

fuzz_target!(|input: Input| {
    let registered = Host::all()[usize::from(input.choice) % Host::all().len()];
    let env = Env::from_lookup(|name| (name == "HOME").then(|| "/home/dev".into()));
    let call = match parse(registered, &input.text, &env) {
        Ok(call) => call,
        Err(error) => {
            assert!(!error.code().is_empty() && !error.to_string().is_empty());
            return;
        }
    };
    assert!(call.session.as_ref().is_none_or(|session| !session.trim().is_empty()));
    assert!(call.final_text.as_ref().is_none_or(|text| !text.trim().is_empty()));
    assert!(call.cwd.as_ref().is_none_or(|cwd| cwd.is_absolute()));
    let text = call.final_text.clone().unwrap_or_default();
    for said in [
        Answer::Allow,
        Answer::Block { reason: text.clone(), notice: None },
        Answer::Block { reason: text.clone(), notice: Some(text.clone()) },
        Answer::Notice { text: text.clone() },
        Answer::Context { text: text.clone(), notice: Some(text) },
    ] {
        let bytes = answer(call.answer_host(), &call.event, &said);
        let object = |bytes| serde_json::from_slice::<Value>(bytes).is_ok_and(|v| v.is_object());
        assert!(bytes.is_empty() || object(&bytes), "{}", bytes.escape_ascii());
    }
});
