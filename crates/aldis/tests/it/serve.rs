//! The server as a process: its files, its timers, its stream, its end.

mod browser;
pub(crate) mod client;
mod dashboard;
mod generated;
mod hostile;
mod life;
mod load;
mod output;
mod races;
pub(crate) mod receiver;
pub(crate) mod sinks;
mod stream;
