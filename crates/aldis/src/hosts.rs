//! The programs that run agents, and how each of them talks to its hooks.
//!
//! [`parse`] brings what a host told its hook into one shape, [`answer`] brings what we say into the
//! host's, and `hook/tail` reads what was said last out of a transcript of any size. What to answer is
//! decided elsewhere: nothing here knows of phases or signals.

mod adapter;
mod cap;
mod claude_code;
mod codex;
mod copilot;
mod cursor;
mod droid;
mod env;
mod gemini;
mod goose;
mod host;
mod openclaw;
mod opencode;
mod qwen;

pub use cap::BlockCap;
pub use env::Env;
pub use hook::answer::{Answer, TEXT_MAX, answer};
pub use hook::call::{
    CutShort, Event, HookCall, PAYLOAD_MAX, PayloadError, Remark, Waiting, WaitingFor, parse,
};
pub use hook::state_file;
pub use host::{Host, UnknownHost};

pub(crate) mod hook;
pub(crate) mod install;
#[cfg(test)]
mod tests;
