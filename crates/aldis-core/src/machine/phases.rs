//! The order of phases.
