//! Pure state machines.

pub mod phases;
