//! The hashes that Codex 0.166.0 itself reports for these entries (`hooks/list`).

use super::*;
use crate::hosts::install::edit::Document;
use crate::hosts::install::hooks_file::find;

#[test]
fn computes_the_hash_of_codex() {
    let file = r#"{"hooks": {
        "Stop": [{"hooks": [{"type": "command", "command": "aldis hook codex", "timeout": 10}]}],
        "SubagentStop": [{"hooks": [{"type": "command", "command": "aldis hook codex", "timeout": 10}]}],
        "UserPromptSubmit": [{"hooks": [{"type": "command", "command": "aldis hook codex", "timeout": 10}]}],
        "SessionStart": [{"hooks": [{"type": "command", "command": "aldis hook codex", "timeout": 10}]}],
        "SessionEnd": [{"hooks": [{"type": "command", "command": "aldis hook codex", "timeout": 10}]}]
    }}"#;
    let document = Document::parse(file.as_bytes()).unwrap();
    let entries = find(SPEC.name, &document).unwrap().current;
    let hashes: Vec<String> = entries.iter().map(hash).collect();
    assert_eq!(
        hashes,
        [
            "sha256:123ed81f1bba191be1f11f1dad1275bc4a103ee4cdeed629ef8e6ad0d06a1af7",
            "sha256:19a569ae9bc804987973f5216dea5e1f967989926822e20c17a486b4cb05c823",
            "sha256:2b6173f7792d324de432f356de7642d9906b48aab90340f94204e6885e5bb737",
            "sha256:26e8aa20863384d4e45f330b0a8d6df677453115815ebb40a53ffcab8dc99fbb",
            // Codex cuts the time to 3 seconds before it computes.
            "sha256:4a16034e3ff8e0dd9e0ef39d93c4cd58570b061e8b4b0a5c418e6afd46461361",
        ]
    );
}
