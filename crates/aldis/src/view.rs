//! What people and programs see: runs and decisions as text and as JSON, and whatever passes before a terminal.

pub(crate) mod claim_proof;
pub(crate) mod display;
pub(crate) mod ending;
mod fleet;
pub(crate) mod inbox;
pub(crate) mod json;
pub(crate) mod live;
pub(crate) mod page;
pub(crate) mod paint;
pub(crate) mod plan;
pub(crate) mod postmortem;
pub(crate) mod progress;
pub(crate) mod receipt;
pub(crate) mod report;
pub(crate) mod run_view;
pub(crate) mod series;
pub(crate) mod show;
pub(crate) mod snippet;
pub(crate) mod time;
pub(crate) mod timeline;
pub mod wire;
pub(crate) mod wrap;
