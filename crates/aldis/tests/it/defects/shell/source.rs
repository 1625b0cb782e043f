//! Defects that only the source shows.

use super::{pin, seen};
use crate::tidy::{code, is_test, rust_files};

/// What turns a value into JSON.
const SERIALISERS: [&str; 3] = ["to_value(", "to_string(", "to_vec("];

/// What makes nothing of an error.
const SWALLOWING: [&str; 2] = [".unwrap_or", ".ok()"];

/// What only whoever writes to the store may make.
const PARTS_OF_A_STEP: [&str; 4] = ["Step::new(", "PartChange::", "NewEvent {", "NewEffect {"];

#[test]
fn b12_errors_of_serialisation_are_not_swallowed() {
    let mut swallowed = Vec::new();
    let mut looked_at = 0;
    for (file, text) in rust_files() {
        if file.starts_with("crates/") && file.contains("/src/") && !is_test(&file) {
            looked_at += 1;
            let count = swallowing(code(&text));
            swallowed.extend((count > 0).then(|| format!("{file}: {count}")));
        }
    }
    assert!(looked_at > 50, "the sources were not found: {looked_at} files");
    pin("B12", seen(swallowed));
}

/// Counts serialisations whose error becomes an empty text or `null`.
fn swallowing(text: &str) -> usize {
    let dense: String = text.split_whitespace().collect();
    let calls = SERIALISERS.iter().flat_map(|name| dense.match_indices(name));
    // Reading a file to a string is something else.
    let calls = calls.filter(|(at, _)| !dense[..*at].ends_with('_'));
    calls
        .map(|(at, name)| after_call(&dense[at + name.len()..]))
        .filter(|after| SWALLOWING.iter().any(|swallowing| after.starts_with(swallowing)))
        .count()
}

/// Returns what follows the arguments of a call.
fn after_call(arguments: &str) -> &str {
    let mut open = 1;
    for (at, letter) in arguments.char_indices() {
        match letter {
            '(' => open += 1,
            ')' => open -= 1,
            _ => {}
        }
        if open == 0 {
            return &arguments[at + 1..];
        }
    }
    ""
}

#[test]
fn the_counter_of_swallowed_errors_counts() {
    for (text, count) in [
        ("serde_json::to_value(a(b))\n    .unwrap_or_default()", 1),
        ("x.map(|it| serde_json::to_string(it).unwrap_or(None))", 1),
        ("serde_json::to_vec(&a).ok()", 1),
        ("serde_json::to_string(&a)?; b.unwrap_or_default()", 0),
        ("fs::read_to_string(a).unwrap_or_default()", 0),
        ("a.to_string(); f(b.to_string()).unwrap_or_default()", 0),
    ] {
        assert_eq!(swallowing(text), count, "{text}");
    }
}

/// The simulator has to play what writes the steps of a delivery, not to write them itself.
#[test]
fn b13_the_simulator_plays_the_production_code_of_deliveries() {
    let mut own = Vec::new();
    let mut looked_at = 0;
    for (file, text) in rust_files() {
        let simulator = file.starts_with("crates/aldis-testkit/src/sim");
        if simulator && file.contains("deliver") && !file.ends_with("tests.rs") {
            looked_at += 1;
            let parts = PARTS_OF_A_STEP.iter().filter(|part| code(&text).contains(**part));
            own.extend(parts.map(|part| format!("{file} has {part}")));
        }
    }
    assert!(looked_at > 0, "the simulator of deliveries was not found");
    pin("B13", seen(own));
}
