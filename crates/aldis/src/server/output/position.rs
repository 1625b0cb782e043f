//! How far a client has read the output of a run, so that one that comes back gets the rest.
//!
//! A position counts the bytes of text that were told of each agent, and holds a digest of them: old
//! logs give way to newer ones, and then the count alone would skip what nobody has read. Where the
//! digest differs, the agent is told again from the beginning of what is left.

use std::collections::BTreeMap;
use std::fmt::{self, Write as _};

use sha2::{Digest as _, Sha256};

/// How many agents an id names, the latest first: of others all is told again.
const AGENTS_MAX: usize = 64;
/// How many bytes of a digest are shown.
const DIGEST_BYTES: usize = 8;

/// The number of an agent; a run with one agent has none.
type AgentNumber = Option<u64>;

/// What was told before is not what is there now: begin again.
#[derive(Debug)]
pub(super) struct BeginAgain;

/// What a client has got of each agent. Shown, it is the id of an event.
#[derive(Debug, Default)]
pub(super) struct OutputPosition {
    told: BTreeMap<AgentNumber, SentSoFar>,
    /// What the client got before, and which is not told again.
    before: BTreeMap<AgentNumber, ToldBefore>,
}

#[derive(Clone, Debug, Default)]
struct SentSoFar {
    bytes: u64,
    digest: Sha256,
}

#[derive(Debug)]
struct ToldBefore {
    bytes: u64,
    digest: String,
}

impl SentSoFar {
    fn add(&mut self, text: &str) {
        self.bytes += text.len() as u64;
        self.digest.update(text);
    }

    fn digest(&self) -> String {
        let mut shown = String::new();
        for byte in &self.digest.clone().finalize()[..DIGEST_BYTES] {
            let _written = write!(shown, "{byte:02x}");
        }
        shown
    }
}

impl OutputPosition {
    /// Reads the id of an event. Nothing if it is none of ours.
    pub(super) fn parse(id: &str) -> Option<Self> {
        let agent = |part: &str| {
            let mut members = part.splitn(3, '.');
            let (agent, bytes) = (members.next()?, members.next()?.parse().ok()?);
            let agent = if agent.is_empty() { None } else { Some(agent.parse().ok()?) };
            let digest = members.next()?.to_owned();
            let is_digest = digest.len() == 2 * DIGEST_BYTES && bytes > 0;
            is_digest.then_some((agent, ToldBefore { bytes, digest }))
        };
        let before: Option<BTreeMap<_, _>> = id.split(',').map(agent).collect();
        Some(Self { told: BTreeMap::new(), before: before? })
    }

    /// Returns what the client has not got of the next text of an agent.
    pub(super) fn take<'t>(
        &mut self,
        agent: AgentNumber,
        text: &'t str,
    ) -> Result<&'t str, BeginAgain> {
        let told = self.told.entry(agent).or_default();
        let Some(before) = self.before.get(&agent) else {
            told.add(text);
            return Ok(text);
        };
        let left = usize::try_from(before.bytes - told.bytes).unwrap_or(usize::MAX);
        if text.len() < left {
            told.add(text);
            return Ok("");
        }
        let known = text.split_at_checked(left);
        let rest = known.filter(|(known, _)| {
            told.add(known);
            told.digest() == before.digest
        });
        self.before.remove(&agent);
        let Some((_, rest)) = rest else {
            self.told.remove(&agent);
            return Err(self.begin_again());
        };
        told.add(rest);
        Ok(rest)
    }

    /// All that is there was read: what the client got before must have been in it.
    pub(super) fn check_complete(&mut self) -> Result<(), BeginAgain> {
        if self.before.is_empty() {
            return Ok(());
        }
        for agent in std::mem::take(&mut self.before).into_keys() {
            self.told.remove(&agent);
        }
        Err(self.begin_again())
    }

    /// What was told by now is told before when everything is read again.
    fn begin_again(&mut self) -> BeginAgain {
        for (agent, told) in std::mem::take(&mut self.told) {
            let before = ToldBefore { bytes: told.bytes, digest: told.digest() };
            // One that has not caught up yet has got no more than before.
            if told.bytes > 0 {
                self.before.entry(agent).or_insert(before);
            }
        }
        BeginAgain
    }
}

impl fmt::Display for OutputPosition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let told = self
            .told
            .iter()
            .filter(|(agent, told)| told.bytes > 0 && !self.before.contains_key(agent));
        for (at, (agent, told)) in told.rev().take(AGENTS_MAX).enumerate() {
            let agent = agent.map(|agent| agent.to_string()).unwrap_or_default();
            let comma = if at == 0 { "" } else { "," };
            write!(f, "{comma}{agent}.{}.{}", told.bytes, told.digest())?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    //! What a client gets that comes back.

    use super::*;

    fn after(texts: &[(AgentNumber, &str)]) -> OutputPosition {
        let mut position = OutputPosition::default();
        for (agent, text) in texts {
            assert_eq!(position.take(*agent, text).unwrap(), *text);
        }
        OutputPosition::parse(&position.to_string()).unwrap()
    }

    #[test]
    fn the_rest_is_told_whatever_the_pieces() {
        let mut position = after(&[(Some(1), "one\ntwo\n"), (Some(2), "other\n")]);
        assert_eq!(position.take(Some(1), "one\n").unwrap(), "");
        assert_eq!(position.take(Some(2), "other\nmore\n").unwrap(), "more\n");
        assert_eq!(position.take(Some(1), "two\nthree\n").unwrap(), "three\n");
        assert_eq!(position.take(None, "new\n").unwrap(), "new\n");
        position.check_complete().unwrap();
        let mut again = OutputPosition::parse(&position.to_string()).unwrap();
        assert_eq!(again.take(None, "new\n").unwrap(), "");
    }

    #[test]
    fn what_is_not_there_any_more_is_no_reason_to_leave_out_what_is() {
        let mut position = after(&[(None, "one\ntwo\n"), (Some(3), "other\n")]);
        assert_eq!(position.take(Some(3), "other\n").unwrap(), "");
        // Its first file is gone.
        position.take(None, "two\nthree\n").unwrap_err();
        assert_eq!(position.take(Some(3), "other\n").unwrap(), "", "it was told before");
        assert_eq!(position.take(None, "two\nthree\n").unwrap(), "two\nthree\n");
        position.check_complete().unwrap();
        // Nothing is left that is as long.
        let mut position = after(&[(None, "one\ntwo\n")]);
        assert_eq!(position.take(None, "x\n").unwrap(), "");
        position.check_complete().unwrap_err();
        assert_eq!(position.take(None, "x\n").unwrap(), "x\n");
    }

    #[test]
    fn foreign_ids_are_refused() {
        for id in ["", "7", ".0.0011223344556677", "x.1.0011223344556677", ".1.00", ".1"] {
            assert!(OutputPosition::parse(id).is_none(), "{id}");
        }
    }
}
