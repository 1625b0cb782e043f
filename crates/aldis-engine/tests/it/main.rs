//! The engine over real machines and real stores.

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
