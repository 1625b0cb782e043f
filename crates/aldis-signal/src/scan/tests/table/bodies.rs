//! `spec/2`: what stands below a delivery signal.

use super::*;

/// Returns the fields of the only signal in a text, read in small parts.
#[track_caller]
fn fields_of(text: &[u8]) -> Value {
    let found = findings(&rules_for("delivery"), text, 7);
    let heard = signals(&found);
    assert_eq!(heard.len(), 1, "{}", show(&found));
    serde_json::to_value(&heard[0].fields).unwrap()
}

#[track_caller]
fn check_body(body: &str, want: Value) {
    let text = format!("READY_FOR_REVIEW: t-1\n{body}");
    assert_eq!(fields_of(text.as_bytes()), want, "{body:?}");
}

#[test]
fn invalid_bytes_are_replaced_and_lose_no_field() {
    let fields = fields_of(b"READY_FOR_REVIEW: t-1\nSummary: a\xFFb\nOther: c\nList:\n- \xC3\n");
    let want = serde_json::json!({"summary": "a\u{fffd}b", "other": "c", "list": ["\u{fffd}"]});
    assert_eq!(fields, want);
}

#[test]
fn an_indented_list_is_a_list() {
    for (list, want) in [
        ("  - a\n  - b", serde_json::json!(["a", "b"])),
        ("\t1. a\n\t2. b", serde_json::json!(["a", "b"])),
        ("\n  - [ ] a\n\n  - b", serde_json::json!(["a", "b"])),
        (
            "  - a\n    - deeper\n    Exit: 1\n  - b",
            serde_json::json!(["a\n- deeper\nExit: 1", "b"]),
        ),
        ("  - a\n- b\n  - of b", serde_json::json!(["a", "b\n- of b"])),
        ("  - a\n\n    more\n\nA paragraph.", serde_json::json!(["a\nmore"])),
        ("  words\n  - a", serde_json::json!("words\n  - a")),
    ] {
        check_body(
            &format!("Files Modified:\n{list}\n"),
            serde_json::json!({"files_modified": want}),
        );
    }
}

#[test]
fn a_key_needs_no_blank_behind_its_colon() {
    check_body(
        "Summary:done\nFiles Modified:src/a.rs\nAttempts:3\nTask:t",
        serde_json::json!({
            "summary": "done", "files_modified": "src/a.rs", "attempts": "3", "task": "t",
        }),
    );
    for text in ["Foo::bar", "C:\\path", "Http://x", "At 10:30 it ran", "Makefile:12: no rule"] {
        check_body(text, serde_json::json!({}));
        check_body(&format!("Output:\n{text}"), serde_json::json!({"output": text}));
    }
    let token = Token::Require("k7f3".to_owned());
    let rules = rules_for("delivery");
    let heard = Scan::new(&rules).token(token).signals(b"READY_FOR_REVIEW: t-1\nTOKEN:k7f3");
    assert!(heard.first().is_some_and(|signal| signal.via == Via::Token));
}

#[test]
fn quoted_lines_are_no_fields() {
    for quoted in [
        "````\n```\nConfidence: HIGH\n```\n````",
        "~~~\n```\nConfidence: HIGH\n~~~",
        "- see:\n  ```\nConfidence: HIGH\n  ```",
        "<!--\nConfidence: HIGH\n-->",
        "> said\nConfidence: HIGH",
        "<details>\nConfidence: HIGH\n</details>",
    ] {
        let text = format!("EXPANDED_TASK_SPECIFICATION: t1\nConfidence: LOW\n\n{quoted}\n");
        assert_eq!(fields_of(text.as_bytes())["confidence"], "LOW", "{quoted}");
    }
}

#[test]
fn the_first_of_two_fields_counts() {
    let text = b"FILE CONFLICT: src/a.rs\nCan Wait: YES\n\nCan Wait: NO\nNote: a\nNote: a\n";
    let found = findings(&rules_for("delivery"), text, 7);
    let signal = signals(&found)[0];
    assert_eq!(signal.fields["can_wait"], "YES");
    let warnings: Vec<String> = signal.warnings.iter().map(ToString::to_string).collect();
    assert_eq!(warnings, ["duplicate_field:can_wait"]);
}
