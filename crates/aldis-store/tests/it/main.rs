//! The store as its users see it: both backends, many processes, failing disks.

mod conformance;
