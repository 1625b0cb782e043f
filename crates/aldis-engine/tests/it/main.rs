//! The engine over real machines and real stores.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod beginning;
mod commands;
mod effects;
mod histories;
mod preparing;
mod properties;
mod requests;
mod settling;
mod snapshots;
mod stepping;
mod support;
mod timers;
