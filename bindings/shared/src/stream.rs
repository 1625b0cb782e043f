//! A scanner that owns its rules, for languages without lifetimes.

use std::sync::Arc;

use aldis_signal::{Rules, Scanner};
use self_cell::self_cell;

use crate::{Found, InputError, ScanOptions};

self_cell!(
    struct Owned {
        owner: Arc<Rules>,
        #[covariant]
        dependent: Scanner,
    }
);

/// A scan of one message that comes in chunks.
pub struct Stream {
    /// None once it has ended.
    scanner: Option<Owned>,
}

impl std::fmt::Debug for Stream {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Stream").field("ended", &self.scanner.is_none()).finish()
    }
}

impl Stream {
    /// Begins a message.
    ///
    /// # Errors
    ///
    /// Fails if the options are wrong.
    pub fn new(rules: Arc<Rules>, options: &ScanOptions) -> Result<Self, InputError> {
        let scanner =
            Owned::try_new(rules, |rules| Ok::<_, InputError>(options.scan(rules)?.stream()))?;
        Ok(Self { scanner: Some(scanner) })
    }

    /// Scans the next chunk and returns what is certain by now.
    ///
    /// # Errors
    ///
    /// Fails if the message has ended.
    pub fn push(&mut self, chunk: &[u8]) -> Result<Vec<Found>, InputError> {
        let scanner = self.scanner.as_mut().ok_or_else(ended)?;
        let mut found = Vec::new();
        scanner.with_dependent_mut(|_, scanner| {
            scanner.push(chunk, &mut |finding| found.push(finding.into()));
        });
        Ok(found)
    }

    /// Ends the message and returns what was still undecided.
    ///
    /// # Errors
    ///
    /// Fails if the message has ended before.
    pub fn finish(&mut self) -> Result<Vec<Found>, InputError> {
        let mut scanner = self.scanner.take().ok_or_else(ended)?;
        let mut found = Vec::new();
        scanner.with_dependent_mut(|rules, scanner| {
            // `finish` takes the scanner by value; nobody pushes into the one left behind.
            let ended = aldis_signal::Scan::new(rules).stream();
            std::mem::replace(scanner, ended).finish(&mut |finding| found.push(finding.into()));
        });
        Ok(found)
    }
}

fn ended() -> InputError {
    "the message has ended; make a new scanner for the next one".to_owned()
}
