//! Tests of the real binary, in a directory of its own and without an environment.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod dialects;
mod examples;
mod explain;
mod follow;
mod help;
mod hosts;
mod install;
mod phases;
mod plugins;
mod real_hosts;
mod sandbox;
mod scan;
mod schema;
mod serve;
mod tidy;
mod turns;
