//! The store as its users see it: both backends, many processes, failing disks.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod agreement;
mod child;
mod conformance;
mod crash;
mod crowd;
mod disk;
mod faults;
mod feed;
mod group;
mod location;
mod retention;
mod turns;
mod versions;
