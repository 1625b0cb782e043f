//! The dashboard's files. No build step: they are served as they are written.

/// The page.
pub(super) const PAGE: &str = include_str!("assets/index.html");
/// Its script.
pub(super) const SCRIPT: &str = include_str!("assets/app.js");
/// Its look.
pub(super) const STYLE: &str = include_str!("assets/app.css");
