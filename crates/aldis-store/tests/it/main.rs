//! The store as its users see it: both backends, many processes, failing disks.

mod agreement;
mod child;
mod conformance;
mod crash;
mod crowd;
mod disk;
mod faults;
mod place;
mod versions;
