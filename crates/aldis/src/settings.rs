//! What a command goes by: settings with their lines, trust, dialects, projects, paths, clock, names.

pub(crate) mod catalog;
pub(crate) mod clock;
pub(crate) mod config;
pub(crate) mod home;
pub(crate) mod item_link;
pub(crate) mod notice_kind;
pub(crate) mod project;
pub(crate) mod prompt_by;
pub(crate) mod public_url;
pub(crate) mod remote;
pub(crate) mod secret;
pub(crate) mod store;
pub(crate) mod system;
pub(crate) mod tokens;
pub(crate) mod trust;
pub(crate) mod web_address;
