//! File formats of other programs: read, written, and turned into what our machines know.

pub(crate) mod personas;
pub(crate) mod plan;
pub mod turn_state;
