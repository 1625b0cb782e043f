//! Finding an agent again after its supervisor was killed.
//!
//! Process numbers are reused, so a number alone names another process sooner or later. An
//! [`Identity`] also has the start time and the boot of the machine, a random mark that every
//! process of the agent carries in its environment, and the control group.

use std::path::PathBuf;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::{Survivor, os};

/// How to recognise an agent, in a form that can be stored.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Identity {
    /// The agent's process.
    pub pid: i32,
    /// When it was started, in clock ticks since the boot.
    pub start: u64,
    /// Its reaper.
    #[serde(alias = "keeper_pid")]
    pub reaper_pid: i32,
    /// When the reaper was started.
    #[serde(alias = "keeper_start")]
    pub reaper_start: u64,
    /// The boot of the machine.
    pub boot: String,
    /// The mark in the environment of every process of the agent.
    pub mark: String,
    /// The agent's control group, if it has one.
    #[serde(default)]
    pub cgroup: Option<PathBuf>,
}

/// What is left of an agent.
#[derive(Debug)]
pub enum Found {
    /// Nothing.
    Gone,
    /// At least one process.
    Alive(Orphan),
}

/// The remaining processes of an agent whose supervisor is gone.
#[derive(Debug)]
pub struct Orphan {
    pub(crate) remains: Box<dyn os::Remains>,
}

/// Looks for what is left of an agent, and removes its control group if nothing is.
///
/// The caller must know that nobody supervises it any more.
pub fn find(identity: &Identity) -> Found {
    os::find(identity)
}

impl Orphan {
    /// Ends it: asks every process to stop (`SIGTERM`), and kills what is left after the grace
    /// period. Returns the survivors; normally none.
    pub fn end(self, grace: Duration) -> Vec<Survivor> {
        self.remains.end(grace)
    }
}
