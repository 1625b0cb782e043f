//! Tests of the real binary, in a directory of its own and without an environment.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod config;
mod defects;
mod deliver;
mod dialects;
mod docs;
mod examples;
mod explain;
mod first_use;
#[cfg(target_os = "linux")]
mod fleet;
mod follow;
mod help;
mod histories;
mod hosts;
mod init;
mod install;
#[cfg(target_os = "linux")]
mod live;
mod logging;
mod mcp;
mod notices;
mod output;
mod phases;
mod plans;
mod plugins;
mod postmortem;
mod proof;
mod real_hosts;
mod receipts;
mod recipes;
mod report;
mod run;
mod sandbox;
mod scan;
mod schema;
mod serve;
#[cfg(target_os = "linux")]
mod shared;
mod store;
#[cfg(target_os = "linux")]
mod telemetry;
#[cfg(target_os = "linux")]
mod tidy;
mod turns;
#[cfg(target_os = "linux")]
mod watch;
