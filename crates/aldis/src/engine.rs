//! Takes steps: decide, commit, then act.

pub mod delivery_log;
pub mod driver;
pub(crate) mod journal;
pub mod run_log;
pub(crate) mod stored;
