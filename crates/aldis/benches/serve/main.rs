//! How much `aldis serve` takes: a real server, the load from a second process on loopback.
//!
//! `cargo bench -p aldis --bench serve [-- PART.. --check]`, with the parts `messages`, `timeouts`,
//! `streams`, `kills` and `replicas` (where PostgreSQL is installed); all of them unless one is named. With `--check` a bar that is not met is a
//! failure. What the store takes alone is `cargo bench -p aldis-testkit --bench store`.

#![expect(clippy::unwrap_used, clippy::print_stdout, reason = "a bench is for reading")]

#[cfg(target_os = "linux")]
mod follow;
#[cfg(target_os = "linux")]
mod http;
#[cfg(target_os = "linux")]
mod kills;
#[cfg(target_os = "linux")]
mod load;
#[cfg(target_os = "linux")]
mod parts;
#[cfg(target_os = "linux")]
mod replicas;
#[cfg(target_os = "linux")]
mod server;
#[cfg(target_os = "linux")]
mod streams;

#[cfg(target_os = "linux")]
fn main() -> std::io::Result<std::process::ExitCode> {
    parts::main()
}

#[cfg(not(target_os = "linux"))]
fn main() {}
