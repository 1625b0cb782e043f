//! Coordinates agents: one loop takes a run over, performs what was decided, and reports what happens.
//!
//! `coordinator` is the loop, `conduct` what differs between machines, `world` what it needs of the world, `real` that world as it is. `run`
//! and `delivery` say what effects and happenings mean for the two machines that have agents.

pub(crate) mod calls;
mod checking;
pub(crate) mod conduct;
pub(crate) mod coordinator;
pub(crate) mod delivery;
mod hold;
pub(crate) mod judge;
pub(crate) mod lease;
pub(crate) mod plan_box;
pub(crate) mod real;
pub(crate) mod remote;
pub(crate) mod repository;
pub(crate) mod run;
pub mod simulated;
pub(crate) mod terminal_prompt;
pub(crate) mod worker;
pub(crate) mod world;
