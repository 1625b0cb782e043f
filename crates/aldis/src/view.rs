//! What people and programs see: runs and decisions as text and as JSON, and whatever passes before a terminal.

pub(crate) mod display;
pub(crate) mod json;
pub(crate) mod known;
pub(crate) mod live;
pub(crate) mod paint;
pub(crate) mod show;
pub(crate) mod snippet;
pub mod wire;
