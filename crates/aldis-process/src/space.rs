//! Where a process number means something: one PID namespace of one boot of one machine.
//!
//! Stored process numbers may be read after a reboot, in another container that shares the state
//! directory, or on another machine that shares the store. Only in the same space can be said
//! whether a process lives.

use std::fmt;
use std::str::FromStr;

use sha2::{Digest as _, Sha256};

use crate::mark::hex;
use crate::os;

/// The bytes of a machine's digest, before they are written as twice as many digits.
const MACHINE_BYTES: usize = 8;

/// The space of process numbers that a process lives in. What the system does not tell is absent.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct PidSpace {
    /// A digest of what tells this machine from others.
    pub(crate) machine: Option<String>,
    /// The boot of the machine: an identifier that no other boot of any machine has.
    pub(crate) boot: Option<String>,
    /// The PID namespace. [`PidSpace::UNKNOWN`] never equals another one, not even itself.
    pub(crate) namespace: Option<u64>,
}

/// How a stored space relates to ours.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Relation {
    /// The same: process numbers mean the same processes.
    Same,
    /// An earlier boot of this machine: every process of it is gone.
    EarlierBoot,
    /// Another boot, and it is not known of which machine.
    AnotherBoot,
    /// Another machine, or another PID namespace of this one.
    Elsewhere,
}

impl PidSpace {
    /// The system has PID namespaces and does not tell which one is ours.
    pub(crate) const UNKNOWN: u64 = 0;

    /// Returns how this stored space relates to that of this process.
    pub(crate) fn relation(&self) -> Relation {
        self.relation_to(&os::pid_space())
    }

    fn relation_to(&self, here: &Self) -> Relation {
        let same_machine = self.machine.is_some() && self.machine == here.machine;
        match (&self.boot, &here.boot) {
            (Some(stored), Some(ours)) if stored != ours => {
                if same_machine {
                    Relation::EarlierBoot
                } else if self.machine.is_none() || here.machine.is_none() {
                    Relation::AnotherBoot
                } else {
                    Relation::Elsewhere
                }
            }
            // Boots are unique, so the machine need not be compared: its name may have changed.
            (Some(_), Some(_)) => self.same_namespace(here),
            // Start times are by the calendar there, and tell boots apart.
            _ if same_machine => self.same_namespace(here),
            _ => Relation::Elsewhere,
        }
    }

    fn same_namespace(&self, here: &Self) -> Relation {
        match (self.namespace, here.namespace) {
            // Version 0.1.0 did not store it; elsewhere than on Linux there is none.
            (None, _) => Relation::Same,
            (Some(stored), Some(ours)) if stored == ours && ours != Self::UNKNOWN => Relation::Same,
            _ => Relation::Elsewhere,
        }
    }
}

/// Returns the digest of what tells a machine from others. The parts may be confidential, as
/// `/etc/machine-id` is, and the digest is stored and shown.
pub(crate) fn machine_digest(parts: &[&str]) -> String {
    let mut hasher = Sha256::new_with_prefix("aldis machine");
    for part in parts {
        hasher.update([0]);
        hasher.update(part);
    }
    hex(&hasher.finalize()[..MACHINE_BYTES])
}

/// When a process was started. Together with its number it identifies the process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum StartTime {
    /// In clock ticks since the boot: exact, and different for every process with the same number.
    Ticks(u64),
    /// In seconds since 1970, as far as the system rounds alike each time.
    Seconds(u64),
}

impl fmt::Display for StartTime {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Ticks(ticks) => write!(f, "{ticks}"),
            Self::Seconds(seconds) => write!(f, "@{seconds}"),
        }
    }
}

impl FromStr for StartTime {
    type Err = ();

    fn from_str(text: &str) -> Result<Self, ()> {
        match text.strip_prefix('@') {
            Some(seconds) => seconds.parse().map(Self::Seconds).map_err(drop),
            None => text.parse().map(Self::Ticks).map_err(drop),
        }
    }
}

#[cfg(test)]
mod tests {
    //! Spaces seen from others.

    use super::*;

    fn space(machine: &str, boot: &str, namespace: u64) -> PidSpace {
        let known = |text: &str| (!text.is_empty()).then(|| text.to_owned());
        let namespace = (namespace != 9).then_some(namespace);
        PidSpace { machine: known(machine), boot: known(boot), namespace }
    }

    #[test]
    fn stored_spaces_are_judged_from_ours() {
        use Relation::{AnotherBoot, EarlierBoot, Elsewhere, Same};
        // Nine stands for no namespace.
        let table = [
            ("the same", space("m", "b", 1), space("m", "b", 1), Same),
            ("after a reboot", space("m", "a", 1), space("m", "b", 1), EarlierBoot),
            ("another machine", space("n", "a", 1), space("m", "b", 1), Elsewhere),
            ("another container", space("m", "b", 2), space("m", "b", 1), Elsewhere),
            ("renamed since", space("n", "b", 1), space("m", "b", 1), Same),
            ("machines unknown", space("", "a", 1), space("", "b", 1), AnotherBoot),
            ("stored by 0.1.0", space("", "b", 9), space("m", "b", 1), Same),
            ("stored by 0.1.0, another boot", space("", "a", 9), space("m", "b", 1), AnotherBoot),
            ("namespaces unknown", space("m", "b", 0), space("m", "b", 0), Elsewhere),
            ("no boots", space("m", "", 9), space("m", "", 9), Same),
            ("no boots, another machine", space("n", "", 9), space("m", "", 9), Elsewhere),
            ("nothing known", space("", "", 9), space("", "", 9), Elsewhere),
        ];
        for (name, stored, here, expected) in table {
            assert_eq!(stored.relation_to(&here), expected, "{name}");
        }
    }

    #[test]
    fn start_times_are_read_as_written() {
        for start in [StartTime::Ticks(0), StartTime::Ticks(991), StartTime::Seconds(1_763_445_600)]
        {
            assert_eq!(start.to_string().parse(), Ok(start));
        }
        for wrong in ["", "-", "@", "@x", "1.5"] {
            assert_eq!(wrong.parse::<StartTime>(), Err(()), "{wrong}");
        }
    }

    #[test]
    fn digests_depend_on_every_part() {
        assert_eq!(machine_digest(&["a", "b"]), machine_digest(&["a", "b"]));
        assert_ne!(machine_digest(&["a", "b"]), machine_digest(&["ab", ""]));
        assert_eq!(machine_digest(&[]).len(), 2 * MACHINE_BYTES);
    }
}
