//! Who follows what, and what is new for them.
//!
//! Each run that is followed has its own news and its own bell, so that nobody is woken for the others
//! or looks through them. For followers who leave what they got unread nothing is put into words: they
//! read the store once they go on.

use std::collections::{BTreeSet, HashMap};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use aldis_store::{Cursor, Decision, RunId};
use tokio::sync::watch;

use super::recent::{Piece, Recent};

/// How much is kept for those who are a little behind: of everything, and of one run.
const KEPT_MAX: usize = 8 << 20;
const KEPT_OF_RUN_MAX: usize = 64 << 10;

/// What is new, and a bell for everybody who follows.
#[derive(Debug, Default)]
pub(in crate::server) struct Bus(Mutex<Topics>);

#[derive(Debug)]
struct Topics {
    /// The last decision that was read for them.
    newest: Cursor,
    /// How many were read: cursors have no order, these numbers do.
    read: u64,
    all: Topic,
    runs: HashMap<RunId, Topic>,
}

/// What can be followed: everything, or one run.
#[derive(Debug, Default)]
struct Topic {
    bell: watch::Sender<()>,
    /// How many of its followers wait until their clients read.
    stalled: Arc<AtomicUsize>,
    /// The latest, while there is somebody to tell.
    recent: Option<Recent>,
}

/// A follower's end of a topic.
pub(super) struct Seat {
    /// Rings when there is something new.
    pub(super) bell: watch::Receiver<()>,
    stalled: Arc<AtomicUsize>,
}

/// A follower whose client does not read, until this is dropped.
pub(super) struct Stalled<'s>(&'s AtomicUsize);

impl Bus {
    fn topics(&self) -> MutexGuard<'_, Topics> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Follows a run, or everything.
    pub(super) fn follow(&self, run: Option<&RunId>) -> Seat {
        let mut topics = self.topics();
        let topic = match run {
            Some(run) => topics.runs.entry(run.clone()).or_default(),
            None => &mut topics.all,
        };
        Seat { bell: topic.bell.subscribe(), stalled: topic.stalled.clone() }
    }

    /// Returns whether there is anybody to tell. What nobody wants is forgotten.
    pub(super) fn is_wanted(&self) -> bool {
        let mut topics = self.topics();
        topics.runs.retain(|_, topic| topic.bell.receiver_count() > 0);
        for topic in topics.each().filter(|topic| !topic.is_wanted()) {
            topic.recent = None;
        }
        topics.each().any(|topic| topic.is_wanted())
    }

    /// Leaves out what was decided up to now.
    pub(super) fn skip_to(&self, newest: Cursor) {
        let mut topics = self.topics();
        topics.newest = newest;
        // Whoever has got everything up to here has not got what is left out.
        topics.read += 1;
        topics.each().for_each(|topic| topic.recent = None);
    }

    /// Begins with the topics that have become wanted, and returns behind which decision.
    pub(super) fn begin(&self) -> Cursor {
        let mut topics = self.topics();
        let read = topics.read;
        topics.each().for_each(|topic| topic.begin(read));
        topics.newest
    }

    /// Numbers what was read, and returns those that somebody is to be told.
    pub(super) fn wanted(&self, decisions: Vec<Decision>) -> Vec<(u64, Decision)> {
        let topics = self.topics();
        let wanted = |decision: &Decision| {
            topics.all.recent.is_some()
                || topics.runs.get(&decision.run).is_some_and(|topic| topic.recent.is_some())
        };
        let numbered = (topics.read + 1..).zip(decisions);
        numbered.filter(|(_, decision)| wanted(decision)).collect()
    }

    /// Keeps what is new, the `count` decisions up to this one, and rings for those who want it.
    pub(super) fn tell(&self, pieces: Vec<Arc<Piece>>, newest: Cursor, count: usize) {
        let mut topics = self.topics();
        topics.newest = newest;
        topics.read += count as u64;
        for piece in pieces {
            for run in piece.runs().collect::<BTreeSet<_>>() {
                if let Some(topic) = topics.runs.get_mut(run) {
                    topic.tell(|| Arc::new(piece.only(run)), KEPT_OF_RUN_MAX);
                }
            }
            topics.all.tell(|| piece, KEPT_MAX);
        }
    }

    /// Returns what was read of a run, or of everything, after this number; nothing if some of it may
    /// only be in the store.
    pub(super) fn after(&self, run: Option<&RunId>, after: u64) -> Option<Vec<Arc<Piece>>> {
        let topics = self.topics();
        let topic = run.map_or(Some(&topics.all), |run| topics.runs.get(run))?;
        topic.recent.as_ref()?.after(after)
    }

    /// Returns the number of the last decision that was read: everything up to it is in the store.
    pub(super) fn read(&self) -> u64 {
        self.topics().read
    }
}

impl Seat {
    /// Wants nothing new for as long as its client does not read.
    pub(super) fn stall(&self) -> Stalled<'_> {
        self.stalled.fetch_add(1, Ordering::Relaxed);
        Stalled(&self.stalled)
    }
}

impl Drop for Stalled<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Default for Topics {
    fn default() -> Self {
        Self { newest: Cursor::START, read: 0, all: Topic::default(), runs: HashMap::new() }
    }
}

impl Topics {
    fn each(&mut self) -> impl Iterator<Item = &mut Topic> {
        self.runs.values_mut().chain([&mut self.all])
    }
}

impl Topic {
    fn is_wanted(&self) -> bool {
        self.bell.receiver_count() > self.stalled.load(Ordering::Relaxed)
    }

    /// Begins behind this number if somebody has come. Something may have been decided before that, so
    /// they look.
    fn begin(&mut self, read: u64) {
        if self.recent.is_none() && self.is_wanted() {
            self.recent = Some(Recent::behind(read));
            self.bell.send_replace(());
        }
    }

    fn tell(&mut self, piece: impl FnOnce() -> Arc<Piece>, kept_max: usize) {
        if let Some(recent) = &mut self.recent {
            recent.push(piece(), kept_max);
            self.bell.send_replace(());
        }
    }
}

#[cfg(test)]
mod tests {
    //! Everybody is told what they follow, and nothing is made for those who do not read.

    use aldis_signal::time::Timestamp;
    use aldis_store::Revision;

    use super::super::recent;
    use super::*;

    fn run(name: &str) -> RunId {
        RunId::new(name).unwrap()
    }

    /// The decision that is read as number `read`, unless others are left out.
    fn decided(read: u64, name: &str) -> Decision {
        let cursor = (100 - read).to_string().parse().unwrap();
        let (revision, at) = (Revision(read), Timestamp::from_millis(0));
        Decision { cursor, run: run(name), revision, at, body: "{}".to_owned() }
    }

    /// Does what the reader of the store does with a page; returns how much is put into words.
    fn publish(bus: &Bus, page: Vec<Decision>) -> usize {
        assert!(bus.is_wanted());
        bus.begin();
        let (newest, count) = (page.last().unwrap().cursor, page.len());
        let wanted = bus.wanted(page);
        let made = wanted.len();
        bus.tell(recent::pieces(wanted), newest, count);
        made
    }

    /// How many decisions there are for a follower behind this number.
    fn told(bus: &Bus, run: Option<&RunId>, after: u64) -> Option<usize> {
        let pieces = bus.after(run, after)?;
        Some(pieces.iter().map(|piece| piece.runs().count()).sum())
    }

    #[test]
    fn a_run_is_told_to_those_who_follow_it_alone() {
        let bus = Bus::default();
        for _ in 0..4 {
            bus.skip_to(Cursor::START);
        }
        let (a, b) = (run("a"), run("b"));
        let (mut seat_a, mut seat_b) = (bus.follow(Some(&a)), bus.follow(Some(&b)));
        assert_eq!(told(&bus, Some(&a), 4), None, "nobody reads for it yet");
        assert_eq!(publish(&bus, vec![decided(5, "a"), decided(6, "c"), decided(7, "a")]), 2);
        assert_eq!(told(&bus, Some(&a), 4), Some(2));
        assert_eq!(told(&bus, Some(&b), 4), Some(0));
        assert_eq!(told(&bus, Some(&a), 3), None, "what was before is only in the store");
        assert!(seat_a.bell.has_changed().unwrap() && seat_b.bell.has_changed().unwrap());
        seat_a.bell.mark_unchanged();
        seat_b.bell.mark_unchanged();
        publish(&bus, vec![decided(8, "a")]);
        assert!(seat_a.bell.has_changed().unwrap() && !seat_b.bell.has_changed().unwrap());
    }

    #[test]
    fn those_who_do_not_read_cost_nothing_and_are_sent_to_the_store() {
        let bus = Bus::default();
        let mut seat = bus.follow(None);
        let other = bus.follow(Some(&run("a")));
        assert_eq!(publish(&bus, vec![decided(1, "a"), decided(2, "b")]), 2);
        let stalled = seat.stall();
        assert_eq!(publish(&bus, vec![decided(3, "a"), decided(4, "b")]), 1);
        assert_eq!(told(&bus, None, 2), None);
        drop(stalled);
        seat.bell.mark_unchanged();
        publish(&bus, vec![decided(5, "b")]);
        assert!(seat.bell.has_changed().unwrap());
        assert_eq!(told(&bus, None, 2), None, "some of it was never put into words");
        assert_eq!(told(&bus, None, 4), Some(1));
        drop((seat, other));
        assert!(!bus.is_wanted());
    }
}
