//! Who coordinates a run, in a text that tells whether that process still lives.

use std::fmt;
use std::str::FromStr;

use crate::os;

/// One process of one boot of this machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LeaseHolder {
    pid: i32,
    start: u64,
    boot: String,
}

impl LeaseHolder {
    /// Returns this process.
    pub fn me() -> Self {
        let pid = i32::try_from(std::process::id()).unwrap_or_default();
        Self { pid, start: os::process_start(pid).unwrap_or_default(), boot: os::boot() }
    }

    /// Returns whether the process has certainly gone.
    pub fn is_gone(&self) -> bool {
        self.boot != os::boot() || !os::is_alive(self.pid, self.start)
    }
}

impl fmt::Display for LeaseHolder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "process {} of {}.{}", self.pid, self.boot, self.start)
    }
}

impl FromStr for LeaseHolder {
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
    //! Holders that live, are gone, or never were.

    use super::*;

    #[test]
    fn the_living_and_the_gone_are_told_apart() {
        let me = LeaseHolder::me();
        assert_eq!(me.to_string().parse(), Ok(me.clone()));
        assert!(!me.is_gone());
        assert!(LeaseHolder { start: me.start + 1, ..me.clone() }.is_gone(), "a reused number");
        assert!(LeaseHolder { boot: "before".to_owned(), ..me }.is_gone());
        assert!("somebody".parse::<LeaseHolder>().is_err());
    }
}
