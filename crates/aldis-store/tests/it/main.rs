//! The store as its users see it: all backends, many processes, failing disks.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod agreement;
mod child;
#[cfg(all(feature = "postgres", target_os = "linux"))]
#[path = "../../../aldis-testkit/src/postgres.rs"]
#[expect(unreachable_pub, reason = "a file of another crate, where it is reachable")]
mod cluster;
mod conformance;
mod crash;
mod crowd;
mod disk;
mod faults;
mod feed;
mod group;
mod location;
#[cfg(all(feature = "postgres", target_os = "linux"))]
mod postgres;
mod retention;
mod turns;
mod versions;
