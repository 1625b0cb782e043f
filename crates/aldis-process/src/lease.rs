//! Who coordinates a run, in a text that tells whether that process still lives.

use std::fmt;
use std::str::FromStr;

use crate::os;
use crate::space::{PidSpace, Relation, StartTime};

/// Stands for what the system does not tell.
const ABSENT: &str = "-";

/// One process of one boot of one machine, as the holder of a lease.
///
/// Its text names the process for people, and in brackets what identifies it:
/// `process 4711 on buildbox [MACHINE BOOT NAMESPACE START]`. The text of version 0.1.0,
/// `process 4711 of BOOT.START`, is understood as well.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LeaseHolder {
    pid: i32,
    /// The name of the machine, for people. Version 0.1.0 did not write it.
    host: Option<String>,
    space: PidSpace,
    start: Option<StartTime>,
}

/// What is known about a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Liveness {
    /// It has certainly exited.
    Gone,
    /// It certainly runs.
    Alive,
    /// It cannot be seen from here: it is one of another machine or of another PID namespace. Only
    /// the time of its lease decides.
    Unknown,
}

impl LeaseHolder {
    /// Returns this process.
    pub fn me() -> Self {
        let pid = i32::try_from(std::process::id()).unwrap_or_default();
        let (host, space) = (Some(printable(&os::host_name())), os::pid_space());
        Self { pid, host, space, start: os::start_time(pid) }
    }

    /// Returns whether the process still lives.
    pub fn liveness(&self) -> Liveness {
        let seen = match self.space.relation() {
            Relation::Same => os::liveness(self.pid, self.start),
            Relation::EarlierBoot => Liveness::Gone,
            // Should it be an earlier boot of this machine, then its lease ran out long ago.
            Relation::AnotherBoot | Relation::Elsewhere => Liveness::Unknown,
        };
        match seen {
            // Version 0.1.0 did not write the namespace, so it may be one that we cannot see.
            Liveness::Gone if self.host.is_none() => Liveness::Unknown,
            seen => seen,
        }
    }
}

/// Makes a host name fit for a word of the text.
pub(crate) fn printable(host: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '_');
    let host: String = host.chars().map(|c| if plain(c) { c } else { '_' }).take(64).collect();
    if host.is_empty() { ABSENT.to_owned() } else { host }
}

impl fmt::Display for LeaseHolder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let PidSpace { machine, boot, namespace } = &self.space;
        let start = self.start.map(|start| start.to_string());
        let boot = boot.as_deref().unwrap_or(ABSENT);
        let Some(host) = &self.host else {
            return write!(f, "process {} of {boot}.{}", self.pid, start.unwrap_or_default());
        };
        let namespace = namespace.map(|namespace| namespace.to_string());
        let [machine, namespace, start] =
            [machine, &namespace, &start].map(|member| member.as_deref().unwrap_or(ABSENT));
        write!(f, "process {} on {host} [{machine} {boot} {namespace} {start}]", self.pid)
    }
}

impl FromStr for LeaseHolder {
    type Err = NotALeaseHolder;

    fn from_str(text: &str) -> Result<Self, NotALeaseHolder> {
        parse(text).or_else(|| parse_old(text)).ok_or(NotALeaseHolder)
    }
}

fn parse(text: &str) -> Option<LeaseHolder> {
    let (pid, rest) = text.strip_prefix("process ")?.split_once(" on ")?;
    let (host, members) = rest.strip_suffix(']')?.split_once(" [")?;
    let members: Vec<Option<&str>> =
        members.split(' ').map(|member| (member != ABSENT).then_some(member)).collect();
    let [machine, boot, namespace, start] = members[..] else { return None };
    let space = PidSpace {
        machine: machine.map(str::to_owned),
        boot: boot.map(str::to_owned),
        namespace: namespace.map(str::parse).transpose().ok()?,
    };
    let start = start.map(str::parse).transpose().ok()?;
    Some(LeaseHolder { pid: pid.parse().ok()?, host: Some(host.to_owned()), space, start })
}

/// Reads the text of version 0.1.0.
fn parse_old(text: &str) -> Option<LeaseHolder> {
    let (pid, rest) = text.strip_prefix("process ")?.split_once(" of ")?;
    let (boot, start) = rest.rsplit_once('.')?;
    let space = PidSpace { boot: Some(boot.to_owned()), ..PidSpace::default() };
    let start = Some(StartTime::Ticks(start.parse().ok()?));
    Some(LeaseHolder { pid: pid.parse().ok()?, host: None, space, start })
}

/// A text does not name a holder that this crate knows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("not the holder of a lease")]
pub struct NotALeaseHolder;

#[cfg(test)]
mod tests {
    //! Holders that live, are gone, or cannot be seen.

    use super::*;

    #[test]
    fn the_living_and_the_gone_are_told_apart() {
        let me = LeaseHolder::me();
        assert_eq!(me.to_string().parse(), Ok(me.clone()));
        assert_eq!(me.liveness(), Liveness::Alive);
        let earlier = match me.start.unwrap() {
            StartTime::Ticks(ticks) => StartTime::Ticks(ticks - 1),
            StartTime::Seconds(seconds) => StartTime::Seconds(seconds - 60),
        };
        let reused = LeaseHolder { start: Some(earlier), ..me.clone() };
        assert_eq!(reused.liveness(), Liveness::Gone);
        let nobody = LeaseHolder { pid: i32::MAX, start: None, ..me.clone() };
        assert_eq!(nobody.liveness(), Liveness::Gone);
        let absent = LeaseHolder { start: None, ..me };
        assert_eq!(absent.liveness(), Liveness::Unknown, "the number alone does not tell");
    }

    #[test]
    fn other_spaces_cannot_be_seen() {
        let me = LeaseHolder::me();
        let PidSpace { machine, boot, namespace } = me.space.clone();
        let machine = machine.or_else(|| Some("m".to_owned()));
        let of = |machine: &str, boot: &Option<String>, namespace: Option<u64>| LeaseHolder {
            space: PidSpace { machine: Some(machine.to_owned()), boot: boot.clone(), namespace },
            ..me.clone()
        };
        let other_boot = Some("00000000-0000-0000-0000-000000000000".to_owned());
        let container = of(machine.as_deref().unwrap(), &boot, namespace.map(|it| it + 1));
        assert!(namespace.is_none() || container.liveness() == Liveness::Unknown);
        assert_eq!(of("another", &other_boot, namespace).liveness(), Liveness::Unknown);
        if me.space.machine.is_some() && boot.is_some() {
            let before = of(machine.as_deref().unwrap(), &other_boot, namespace);
            assert_eq!(before.liveness(), Liveness::Gone, "this machine was rebooted");
        }
    }

    #[test]
    fn holders_of_the_first_version_are_understood() {
        let me = LeaseHolder::me();
        // There was no first version for systems that do not tell their boot.
        let (Some(boot), Some(start)) = (&me.space.boot, me.start) else { return };
        let old = |text: String| {
            let holder: LeaseHolder = text.parse().unwrap();
            // The store releases a lease under the text that it was acquired with.
            assert_eq!(holder.to_string(), text);
            holder.liveness()
        };
        assert_eq!(old(format!("process {} of {boot}.{start}", me.pid)), Liveness::Alive);
        // It may be in another container: the text does not tell.
        assert_eq!(old(format!("process {} of {boot}.1", me.pid)), Liveness::Unknown);
        let past = "process 77 of 4b1c0f8a-0000-4000-8000-0123456789ab.991";
        assert_eq!(old(past.to_owned()), Liveness::Unknown);
    }

    #[test]
    fn other_texts_are_no_holders() {
        for text in [
            "",
            "somebody",
            "process 1 of 2",
            "process x of b.1",
            "process 1 on host",
            "process 1 on host [m b 1]",
            "process 1 on host [m b x 1]",
            "process 1 on host [m b 1 1 1]",
        ] {
            assert_eq!(text.parse::<LeaseHolder>(), Err(NotALeaseHolder), "{text}");
        }
        let absent = "process 1 on - [- - - -]";
        assert_eq!(absent.parse::<LeaseHolder>().unwrap().to_string(), absent);
        assert_eq!(absent.parse::<LeaseHolder>().unwrap().liveness(), Liveness::Unknown);
    }

    #[test]
    fn host_names_are_one_word() {
        for (name, expected) in
            [("box-1.lan", "box-1.lan"), ("my box] [", "my_box___"), ("", "-"), ("ö", "_")]
        {
            assert_eq!(printable(name), expected);
        }
    }
}
