//! Takes steps: decide, commit, then act.

pub(crate) mod book;
pub mod channel_log;
pub mod driver;
pub(crate) mod journal;
pub(crate) mod keeper;
pub(crate) mod machines;
pub(crate) mod stored;
