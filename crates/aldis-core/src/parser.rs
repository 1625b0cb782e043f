//! The interface for programs that only want to ask.
pub use crate::scan::Rules as Parser;
