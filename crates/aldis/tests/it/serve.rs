//! The server as a process: its files, its timers, its stream, its end.

mod browser;
mod client;
mod dashboard;
mod life;
mod load;
mod receiver;
mod sinks;
mod stream;
