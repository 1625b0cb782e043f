//! What commands, requests and calls do, whoever asks.

pub(crate) mod control;
pub(crate) mod explain;
pub mod formats;
pub(crate) mod hearing;
pub(crate) mod output;
pub mod reference;
#[cfg(target_os = "linux")]
pub(crate) mod scripted;
pub(crate) mod selection;
pub(crate) mod source;
