//! Coordinates agents: takes a run over, performs what was decided, and reports what happens.

pub(crate) mod delivering;
pub(crate) mod person;
pub(crate) mod running;
pub(crate) mod taking;
