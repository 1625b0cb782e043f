//! Tells hosts apart by what they send.
//!
//! Some hosts run the hooks they find in another's settings, each with its own payload, and several
//! set the same environment variables. So the registration is only the first guess: a payload that
//! is plainly another host's is that host's.

use super::call::PayloadError;
use super::fields::Fields;
use crate::hosts::spec::Marked;
use crate::hosts::{ALL, Host, cline};

/// Returns who sent a payload.
pub(super) fn host(registered: Host, fields: &Fields<'_>) -> Result<Host, PayloadError> {
    if cline::is_sender(fields) {
        return Err(PayloadError::Unsupported(cline::TITLE));
    }
    let by = |is_marked: fn(Host) -> fn(&Fields<'_>) -> bool| {
        ALL.into_iter().find(|host| is_marked(*host)(fields))
    };
    let found = by(|host| host.spec().payload.is_marked)
        .or_else(|| by_path(fields))
        .or_else(|| by(|host| host.spec().payload.is_faintly_marked));
    Ok(found.unwrap_or_else(|| {
        let plain = fields.get("hook_event_name").is_some() && fields.get("session_id").is_some();
        if plain && always_marked(registered, fields) { Host::original() } else { registered }
    }))
}

/// Transcripts lie in their host's own directory.
fn by_path(fields: &Fields<'_>) -> Option<Host> {
    let path = fields.cow(&["transcript_path", "transcriptPath"])?;
    let folders = path.split(['/', '\\']);
    let owner =
        |folder: &str| ALL.into_iter().find(|host| host.spec().transcripts.folder == Some(folder));
    folders.rev().skip(1).find_map(owner)
}

/// Returns whether this event would have been recognised had this host sent it.
fn always_marked(host: Host, fields: &Fields<'_>) -> bool {
    match host.spec().payload.marked {
        Marked::Always => true,
        Marked::AtStops => fields.is_stop(),
        Marked::Sometimes => false,
    }
}
