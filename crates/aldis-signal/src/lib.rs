//! Reads what coding agents say.
//!
//! Agents report in their output that they are done, blocked, waiting or 45 % along. This crate
//! turns such output into [`Signal`]s without mistaking a quoted, echoed, announced or taken-back
//! signal for a genuine one, and reports everything that looked like a signal and was not as a
//! [`NearMiss`] with its reason.
//!
//! It is pure: it reads no clock, file or environment, starts nothing, and cannot fail on any input.
//!
//! * [`dialect`]: how signals are written, as data over six grammar families.
//! * [`mod@scan`]: the streaming [`Scanner`], the same result for any chunking.
//! * [`parser`]: the small interface for programs that only want to ask "is it complete?".
//! * [`prompt`]: what to tell an agent so that it speaks a dialect.
//! * [`mod@redact`]: secrets taken out of text that is kept, shown or sent.

#![forbid(unsafe_code)]

/// The example of the README is run as a test.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
mod readme {}

mod codes;
pub mod dialect;
mod find;
pub mod message;
pub mod parser;
pub mod prompt;
#[cfg(feature = "redact")]
pub mod redact;
pub mod scan;
pub mod signal;
mod structure;
pub mod time;
pub mod visible;
mod words;

pub use dialect::{Dialect, DialectError};
pub use message::{Message, Origin, Role};
pub use parser::{Parser, Reply};
pub use scan::{Rules, Scan, Scanner, Token, scan};
pub use signal::{Fields, Finding, Meaning, NearMiss, Place, Reason, Signal, Span, Via, Warning};
