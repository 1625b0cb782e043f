//! What commands, requests and calls do, whoever asks.

pub(crate) mod calls;
pub(crate) mod control;
pub(crate) mod dismissed;
pub(crate) mod explain;
pub(crate) mod fleet;
pub mod formats;
pub(crate) mod output;
pub(crate) mod phase_checks;
pub(crate) mod postmortem;
pub(crate) mod project_facts;
pub mod reference;
pub(crate) mod report;
pub(crate) mod retention;
pub(crate) mod scan;
pub(crate) mod selection;
pub(crate) mod source;
pub(crate) mod story;
pub(crate) mod transfer;
