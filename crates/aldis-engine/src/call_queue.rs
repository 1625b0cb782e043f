//! Calls for one run that come at the same time are written together.
//!
//! A durable write costs a flush of the disk, whatever is in it. Whoever comes first writes for all who
//! wait, and then hands that over to one of the next, so that nobody waits for more than two writes.

use std::collections::BTreeMap;
use std::sync::mpsc::{self, Receiver, SyncSender};
use std::sync::{Mutex, PoisonError};

use aldis_store::RunId;

use crate::calls::CallRecord;
use crate::error::EngineError;

/// What comes of a call: the earlier record if it was delivered before.
pub(crate) type Kept = Result<Option<CallRecord>, EngineError>;

/// The calls that wait, by run. A run is listed while somebody writes.
#[derive(Debug, Default)]
pub(crate) struct CallQueue {
    runs: Mutex<BTreeMap<RunId, Vec<WaitingCall>>>,
}

/// A call that waits to be written.
#[derive(Debug)]
struct WaitingCall {
    record: CallRecord,
    reply: SyncSender<QueueReply>,
}

/// What somebody who waits is told.
#[derive(Debug)]
enum QueueReply {
    /// What came of the call.
    Kept(Box<Kept>),
    /// To write what waits, the own call first.
    Write,
}

impl CallQueue {
    /// Has a call written, by this thread or by another one that writes for this run already. `write`
    /// returns what came of each, in order.
    pub(crate) fn keep(
        &self,
        run: &RunId,
        record: &CallRecord,
        write: impl Fn(&[CallRecord]) -> Vec<Kept>,
    ) -> Kept {
        // QueueReply at most to write, and then what came of it.
        let (reply, told) = mpsc::sync_channel(2);
        let waiting = WaitingCall { record: record.clone(), reply };
        let is_first = {
            let mut runs = self.runs.lock().unwrap_or_else(PoisonError::into_inner);
            let is_first = !runs.contains_key(run);
            runs.entry(run.clone()).or_default().push(waiting);
            is_first
        };
        if is_first {
            self.write_all(run, &write);
        }
        self.wait(run, &told, &write)
    }

    fn wait(
        &self,
        run: &RunId,
        told: &Receiver<QueueReply>,
        write: &impl Fn(&[CallRecord]) -> Vec<Kept>,
    ) -> Kept {
        loop {
            match told.recv() {
                Ok(QueueReply::Kept(kept)) => return *kept,
                Ok(QueueReply::Write) => self.write_all(run, write),
                Err(_) => {
                    return Err(EngineError::Invalid(
                        "whoever wrote the call broke off".to_owned(),
                    ));
                }
            }
        }
    }

    /// Writes all that wait for this run, and has the next one write what came meanwhile.
    fn write_all(&self, run: &RunId, write: &impl Fn(&[CallRecord]) -> Vec<Kept>) {
        let handover = Handover { queue: self, run };
        let waiting = handover.take();
        let (records, replies): (Vec<_>, Vec<_>) =
            waiting.into_iter().map(|it| (it.record, it.reply)).unzip();
        for (reply, kept) in replies.into_iter().zip(write(&records)) {
            // Whoever waits lives until it is told.
            let _told = reply.send(QueueReply::Kept(Box::new(kept)));
        }
    }
}

/// Hands the writing over when it goes, also if the writer panics: nobody waits for ever.
struct Handover<'q> {
    queue: &'q CallQueue,
    run: &'q RunId,
}

impl Handover<'_> {
    fn take(&self) -> Vec<WaitingCall> {
        let mut runs = self.queue.runs.lock().unwrap_or_else(PoisonError::into_inner);
        runs.get_mut(self.run).map(std::mem::take).unwrap_or_default()
    }
}

impl Drop for Handover<'_> {
    fn drop(&mut self) {
        let mut runs = self.queue.runs.lock().unwrap_or_else(PoisonError::into_inner);
        let next = runs.get(self.run).and_then(|waiting| waiting.first());
        match next {
            Some(next) => drop(next.reply.send(QueueReply::Write)),
            None => drop(runs.remove(self.run)),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Barrier;
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::thread;

    use aldis_machine::calls::Call;
    use aldis_signal::signal::Via;
    use aldis_signal::time::Timestamp;

    use super::*;

    fn record(summary: &str) -> CallRecord {
        let summary = summary.to_owned();
        let call = Call::Progress { percent: None, summary, remaining: None, task: None };
        CallRecord::new(Timestamp::from_millis(0), Via::Call, call).unwrap()
    }

    #[test]
    fn calls_that_wait_are_written_together_and_each_once() {
        let (queue, run) = (CallQueue::default(), RunId::new("r1").unwrap());
        let (writes, written) = (AtomicUsize::new(0), Mutex::new(Vec::new()));
        let (inside, all_wait) = (Barrier::new(2), Barrier::new(2));
        let write = |records: &[CallRecord]| {
            if writes.fetch_add(1, Ordering::SeqCst) == 0 {
                inside.wait();
                all_wait.wait();
            }
            written.lock().unwrap().extend(records.iter().map(|it| it.id.clone()));
            // Each gets its own answer.
            records.iter().map(|it| Ok(Some(it.clone()))).collect()
        };
        let keep = |name: &str| {
            let own = record(name);
            assert_eq!(queue.keep(&run, &own, write).unwrap(), Some(own));
        };
        thread::scope(|scope| {
            scope.spawn(|| keep("the first"));
            inside.wait();
            for number in 0..20 {
                let keep = &keep;
                scope.spawn(move || keep(&format!("{number}")));
            }
            while queue.runs.lock().unwrap()[&run].len() < 20 {
                thread::yield_now();
            }
            all_wait.wait();
        });
        assert_eq!(writes.into_inner(), 2, "one write for the first, one for all others");
        let mut written = written.into_inner().unwrap();
        written.sort();
        written.dedup();
        assert_eq!(written.len(), 21);
        assert!(queue.runs.lock().unwrap().is_empty());
    }

    #[test]
    fn a_writer_that_breaks_off_holds_up_nobody() {
        let (queue, run) = (CallQueue::default(), RunId::new("r1").unwrap());
        let broken = thread::scope(|scope| {
            scope.spawn(|| queue.keep(&run, &record("a"), |_| panic!("planted"))).join()
        });
        assert!(broken.is_err());
        let kept =
            queue.keep(&run, &record("b"), |records| records.iter().map(|_| Ok(None)).collect());
        assert_eq!(kept.unwrap(), None);
    }
}
