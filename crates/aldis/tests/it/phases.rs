//! Phases under a Stop hook, through the real binary with a real state directory.

mod adoption;
mod cases;
mod checks;
mod commands;
#[cfg(target_os = "linux")]
mod crash;
mod crowd;
#[cfg(target_os = "linux")]
mod disk;
#[cfg(target_os = "linux")]
pub(crate) mod fault;
mod hook;
mod hostile;
#[cfg(target_os = "linux")]
mod locks;
pub(crate) mod project;
mod tokens;
mod wake;
