//! What clients are shown.
