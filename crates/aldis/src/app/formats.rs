//! File formats of other programs: read, written, and turned into what our machines know.

pub mod turn_state;
