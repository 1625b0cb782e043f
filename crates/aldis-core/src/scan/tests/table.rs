//! Rules of the specification, one row each.
