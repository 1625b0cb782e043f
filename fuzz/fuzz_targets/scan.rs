//! Any bytes, from anyone, cut anywhere: the same findings, with honest places.
#![no_main]

use aldis_signal::{Origin, Role, Rules, Token};
use aldis_fuzz::{Input, check};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: Input| {
    let origin = match input.choice % 8 {
        0 | 1 => Origin::assistant(),
        2 => Origin::new(Role::Subagent),
        3 => Origin::new(Role::User),
        4 => Origin::new(Role::Tool).with_detail("result of a tool"),
        5 => Origin::assistant().in_sidechain(),
        6 => Origin::assistant().dead("rewound"),
        _ => Origin::new(Role::Subagent).with_agent("helper").in_sidechain(),
    };
    let token = match input.choice / 8 % 4 {
        0 | 1 => Token::Off,
        2 => Token::Accept("k7".to_owned()),
        _ => Token::Require("k7".to_owned()),
    };
    check(Rules::builtin(), &input.text, input.chunks(), &origin, token);
});
