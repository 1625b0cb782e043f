//! The server as a process: its files, its timers, its stream, its end.

mod browser;
pub(crate) mod client;
mod dashboard;
mod elsewhere;
mod encrypted;
mod generated;
mod hostile;
mod life;
mod load;
mod output;
mod races;
pub(crate) mod receiver;
mod replicas;
pub(crate) mod sinks;
mod stream;
