//! What the items of one entry share.

use crate::item::Wanted;
use crate::out::EntryPos;
use aldis_signal::message::Origin;

/// Where an entry stands.
#[derive(Clone, Copy, Debug)]
pub(super) struct Where {
    pub(super) node: Option<u32>,
    pub(super) pos: EntryPos,
}

/// A line and what the filter says of it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Source<'l> {
    pub(crate) number: u64,
    pub(crate) bytes: &'l [u8],
    pub(crate) wanted: &'l Wanted<'l>,
}

/// What the items of one entry share.
pub(super) struct Context<'e> {
    pub(super) line: &'e [u8],
    pub(super) at: Where,
    pub(super) wanted: &'e Wanted<'e>,
    pub(super) id: Option<&'e str>,
    pub(super) channel: &'e str,
    pub(super) is_side: bool,
    pub(super) agent: Option<&'e str>,
    pub(super) cwd: &'e str,
    /// The entry of which this is a new version.
    pub(super) version_of: Option<u32>,
    /// The index of its message, once it has one.
    pub(super) index: Option<u64>,
}

impl Context<'_> {
    /// Marks an origin with the sub-agent it is in.
    pub(super) fn place(&self, mut origin: Origin) -> Origin {
        if self.is_side {
            origin = origin.in_sidechain();
        }
        if origin.agent.is_none()
            && let Some(agent) = self.agent
        {
            origin = origin.with_agent(agent);
        }
        origin
    }
}
