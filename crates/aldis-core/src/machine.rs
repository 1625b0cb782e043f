//! Pure state machines over signals.

pub mod phases;
