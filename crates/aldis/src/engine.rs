//! Takes steps: decide, commit, then act.

pub mod channel_log;
pub mod delivery_log;
pub mod driver;
pub(crate) mod journal;
pub(crate) mod keeper;
pub(crate) mod machines;
pub mod run_log;
pub(crate) mod stored;
