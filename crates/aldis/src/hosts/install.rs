//! Registering the hook and the MCP server with a host, and checking that they work.
//!
//! A host is told in its own settings to run `aldis hook HOST`. [`locations`] knows where they are,
//! [`hooks_file`], [`server`] and [`edit`] change
//! them, [`plan`] decides everything before [`write`] writes the
//! first byte, [`doctor`] examines the result.

pub(crate) mod doctor;
pub(crate) mod edit;
pub(crate) mod hooks_file;
pub(crate) mod invocation;
pub(crate) mod locations;
pub(crate) mod plan;
pub(crate) mod probe;
pub(crate) mod server;
pub(crate) mod trust;
pub(crate) mod write;

pub(crate) use crate::hosts::Host;
