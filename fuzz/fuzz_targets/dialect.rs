//! Any text as a dialect file: it is refused or it works, and then chunks make no difference.
#![no_main]

use std::sync::Arc;

use aldis_signal::dialect::{Syntax, builtins};
use aldis_signal::{Dialect, Origin, Rules, Token};
use aldis_fuzz::{Input, check};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: Input| {
    let Ok(text) = str::from_utf8(&input.text) else { return };
    let dialect = match Dialect::from_toml(text) {
        Ok(dialect) => Arc::new(dialect),
        Err(error) => {
            assert!(!error.to_string().is_empty());
            return;
        }
    };
    let said = speech(&dialect);
    let origin = Origin::assistant();
    // Either alone or among others: the fuzzer chooses, and has twice the time.
    let others = if input.choice % 4 == 0 { builtins() } else { &[] };
    let rules = Rules::new(others.iter().cloned().chain([dialect]));
    check(&rules, &said, input.chunks_of(&said), &origin, Token::Off);
    check(&rules, &input.text, input.chunks(), &origin, Token::Off);
});

/// Speaks the dialect, as far as its file tells how.
fn speech(dialect: &Dialect) -> Vec<u8> {
    let mut said = String::from(FIXED);
    for signal in dialect.signals.iter().take(8) {
        let name = &signal.name;
        said.push_str(&match &dialect.syntax {
            Syntax::Block(block) => {
                let (rule, key) = (&block.delimiter, &block.key);
                format!("{rule}\n{key}: {name}\nSTATUS: complete\n{rule}\n\n")
            }
            Syntax::Fence(fence) => format!("```{}\n{{\"type\":\"{name}\"}}\n```\n", fence.info),
            Syntax::Line(_) => format!("{name}: t-1\nSummary: all of it\n- one\n\n{name}\n"),
            Syntax::Status(status) => format!("{}\n{name}: x\n{}\n", status.open, status.close),
            Syntax::Tag(tag) => {
                format!("It is done. {}{name}: 45{} ", tag.open, tag.close)
            }
            Syntax::Trailer(trailer) => format!("Over to you.\n{}\n", trailer.keyword),
        });
    }
    said.into_bytes()
}

const FIXED: &str = "Done.\n\n<chorus>COMPLETE</chorus>\n\n```text\nREADY_FOR_REVIEW: t-1\n```\n\
    ---\nSIGNAL: QA_COMPLETE\nSTATUS: complete\n---\nREADY_FOR_REVIEW: t-1\nKey: v\n- a\n\n\
    Wait, that is not finished yet.\n";
