//! Who coordinates a run, in words that tell whether it still lives.

use std::fmt;
use std::str::FromStr;

use super::tree::{self, Process};

/// One process of one boot of this machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Holder {
    pid: i32,
    start: u64,
    boot: String,
}

impl Holder {
    /// Returns this process.
    pub fn me() -> Self {
        let pid = i32::try_from(std::process::id()).unwrap_or_default();
        let start = Process::read(pid).map_or(0, |process| process.start);
        Self { pid, start, boot: tree::boot() }
    }

    /// Returns whether the process has certainly gone. Of another machine nothing is certain; a
    /// boot that is not this one is one of this machine's past, as the store is on its disk.
    pub fn is_gone(&self) -> bool {
        let same = || Process::same(self.pid, self.start);
        self.boot != tree::boot() || same().is_none_or(|process| !process.is_alive())
    }
}

impl fmt::Display for Holder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "process {} of {}.{}", self.pid, self.boot, self.start)
    }
}

impl FromStr for Holder {
    type Err = ();

    fn from_str(text: &str) -> Result<Self, ()> {
        let (pid, rest) =
            text.strip_prefix("process ").and_then(|t| t.split_once(" of ")).ok_or(())?;
        let (boot, start) = rest.rsplit_once('.').ok_or(())?;
        let (pid, start) = (pid.parse().map_err(drop)?, start.parse().map_err(drop)?);
        Ok(Self { pid, start, boot: boot.to_owned() })
    }
}

#[cfg(test)]
mod tests {
    //! Holders that live, have gone, or never were.

    use super::*;

    #[test]
    fn the_living_and_the_gone_are_told_apart() {
        let me = Holder::me();
        assert_eq!(me.to_string().parse(), Ok(me.clone()));
        assert!(!me.is_gone());
        assert!(Holder { start: me.start + 1, ..me.clone() }.is_gone(), "a number used again");
        assert!(Holder { boot: "before".to_owned(), ..me }.is_gone());
        assert!("somebody".parse::<Holder>().is_err());
    }
}
