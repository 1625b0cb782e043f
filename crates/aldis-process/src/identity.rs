//! Finding an agent again after its supervisor was killed.
//!
//! Process numbers are reused, so a number alone names another process sooner or later. An
//! [`Identity`] also has the start time, the space in which the number means something, the mark in
//! the environment of every process of the agent, and the control group.

use std::path::PathBuf;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::mark::Mark;
use crate::space::{PidSpace, Relation, StartTime};
use crate::{Survivor, os};

/// How to recognise an agent, in a form that can be stored. What a system does not have is absent.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Identity {
    /// The agent's process.
    pub pid: i32,
    /// When it was started, in clock ticks since the boot (Linux).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub start: Option<u64>,
    /// When it was started, in seconds since 1970 (elsewhere).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub started_at: Option<u64>,
    /// Its reaper (Linux).
    #[serde(default, alias = "keeper_pid", skip_serializing_if = "Option::is_none")]
    pub reaper_pid: Option<i32>,
    /// When the reaper was started, in clock ticks since the boot.
    #[serde(default, alias = "keeper_start", skip_serializing_if = "Option::is_none")]
    pub reaper_start: Option<u64>,
    /// The mark in the environment of every process of the agent.
    pub mark: Mark,
    /// The agent's control group (Linux).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cgroup: Option<PathBuf>,
    /// A digest of what tells the machine from others.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub machine: Option<String>,
    /// The boot of the machine.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub boot: Option<String>,
    /// The PID namespace (Linux).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub namespace: Option<u64>,
}

impl Identity {
    /// Describes an agent of our own space, of which only process and mark are known.
    pub(crate) fn here(pid: i32, start: Option<StartTime>, mark: Mark) -> Self {
        let PidSpace { machine, boot, namespace } = os::pid_space();
        let (start, started_at) = match start {
            Some(StartTime::Ticks(ticks)) => (Some(ticks), None),
            Some(StartTime::Seconds(seconds)) => (None, Some(seconds)),
            None => (None, None),
        };
        let (reaper_pid, reaper_start, cgroup) = (None, None, None);
        Self {
            pid,
            start,
            started_at,
            reaper_pid,
            reaper_start,
            mark,
            cgroup,
            machine,
            boot,
            namespace,
        }
    }

    fn relation(&self) -> Relation {
        let (machine, boot) = (self.machine.clone(), self.boot.clone());
        let space = PidSpace { machine, boot, namespace: self.namespace };
        match space.relation() {
            // Version 0.1.0 stored no namespace, and its store was always that of one machine.
            Relation::AnotherBoot if self.namespace.is_none() => Relation::EarlierBoot,
            relation => relation,
        }
    }
}

/// What is left of an agent.
#[derive(Debug)]
pub enum Found {
    /// Nothing.
    Gone,
    /// At least one process.
    Alive(Orphan),
    /// It cannot be seen from here: it was started on another machine or in another PID namespace,
    /// or the system does not tell.
    Unknown,
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
    match identity.relation() {
        Relation::Same => os::find(identity),
        Relation::EarlierBoot => Found::Gone,
        Relation::AnotherBoot | Relation::Elsewhere => Found::Unknown,
    }
}

/// Looks for processes that carry a mark: an agent that was started with
/// [`Launch::mark`](crate::Launch::mark), and of which nothing else is known.
///
/// Only processes of this machine and PID namespace are seen; [`Found::Gone`] says nothing about
/// others. The caller must know that nobody supervises it any more.
pub fn find_marked(mark: &Mark) -> Found {
    os::find_marked(mark)
}

impl Orphan {
    /// Ends it: asks every process to stop (`SIGTERM`), and kills what is left after the grace
    /// period. Returns the survivors; normally none.
    pub fn end(self, grace: Duration) -> Vec<Survivor> {
        let survivors = self.remains.end(grace);
        tracing::info!(?survivors, "ended what a supervisor left behind");
        survivors
    }
}

#[cfg(test)]
mod tests {
    //! Identities as they are stored.

    use super::*;

    /// As version 0.1.0 wrote it.
    const OLD: &str = r#"{"pid":812,"start":99123,"keeper_pid":811,"keeper_start":99122,
        "boot":"4b1c0f8a-0000-4000-8000-0123456789ab",
        "mark":"0123456789abcdef0123456789abcdef","cgroup":null}"#;

    #[test]
    fn identities_of_the_first_version_are_understood() {
        let identity: Identity = serde_json::from_str(OLD).unwrap();
        assert_eq!((identity.pid, identity.start), (812, Some(99123)));
        assert_eq!((identity.reaper_pid, identity.reaper_start), (Some(811), Some(99122)));
        let earlier = os::pid_space().boot.is_some();
        assert_eq!(matches!(find(&identity), Found::Gone), earlier, "an earlier boot");
        let again = serde_json::to_string(&identity).unwrap();
        assert_eq!(serde_json::from_str::<Identity>(&again).unwrap(), identity);
        assert!(!again.contains("keeper"));
    }

    #[test]
    fn agents_elsewhere_cannot_be_seen() {
        let own = i32::try_from(std::process::id()).unwrap();
        let mark = Mark::random().unwrap();
        let here = Identity::here(own, os::start_time(own), mark);
        assert!(matches!(find(&here), Found::Gone), "whoever looks is not what is left");
        let container = Identity { namespace: here.namespace.map(|it| it + 1), ..here.clone() };
        assert!(here.namespace.is_none() || matches!(find(&container), Found::Unknown));
        let other = Some("another".to_owned());
        let machine = Identity { machine: other.clone(), boot: other.clone(), ..here.clone() };
        assert!(matches!(find(&machine), Found::Unknown));
        let unknown = Identity { machine: None, boot: other, ..here };
        assert!(matches!(find(&unknown), Found::Unknown));
    }

    #[test]
    fn an_identity_without_a_mark_is_none() {
        assert!(serde_json::from_str::<Identity>(r#"{"pid":1,"mark":""}"#).is_err());
    }
}
