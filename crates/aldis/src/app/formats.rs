//! File formats of other programs: read, written, and turned into what our machines know.

pub mod auto_state;
pub mod turn_state;
