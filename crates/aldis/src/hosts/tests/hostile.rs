//! Payloads that somebody bent.

use super::*;

fn hostile(name: &str) -> Result<HookCall, crate::hosts::PayloadError> {
    let path = testdata().join("hostile").join(name);
    parse(CLAUDE_CODE, &fs::read(path).unwrap(), &env())
}

#[test]
fn every_file_is_refused_or_read() {
    for entry in fs::read_dir(testdata().join("hostile")).unwrap() {
        let name = entry.unwrap().file_name().into_string().unwrap();
        if !name.starts_with("hook_") {
            continue;
        }
        let refused = match &*name {
            "hook_09_not_json.json" => Some("not_json"),
            "hook_11_truncated.json" => Some("truncated"),
            "hook_12_dup_keys.json" => Some("ambiguous"),
            _ => None,
        };
        let read = hostile(&name);
        assert_eq!(read.as_ref().err().map(|error| error.code()), refused, "{name}");
        if let Ok(call) = read {
            assert_eq!(call.host, CLAUDE_CODE, "{name}");
            assert!(call.session.is_some(), "{name}");
        }
    }
}

#[test]
fn what_was_bent_is_seen() {
    let string = hostile("hook_16_active_string.json").unwrap();
    assert_eq!(string.re_entry, Some(true));
    assert_eq!(hostile("hook_02_active_loop.json").unwrap().re_entry, Some(true));
    assert_eq!(hostile("hook_13_wrong_event.json").unwrap().event, Event::SubagentStop);
    assert_eq!(hostile("hook_20_background_tasks.json").unwrap().waiting.len(), 1);
    assert!(hostile("hook_14_huge_message.json").unwrap().final_text.unwrap().len() > 190_000);
    assert_eq!(hostile("hook_19_bom.json").unwrap().event, Event::Stop);
}
