//! Phases under a Stop hook, through the real binary with a real state directory.

mod cases;
mod commands;
mod crash;
mod crowd;
mod hostile;
pub(crate) mod project;
mod tokens;
