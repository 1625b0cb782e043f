//! What the dashboard shows, put together from the store: cards of runs, what needs a person, stories.
//!
//! Runs are read again only when they have taken a step or somebody else supervises them; a card of one
//! that has ended is kept without its state. So an overview of a thousand runs costs one list of rows.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use aldis_engine::{Engine, Snapshot};
use aldis_signal::time::Timestamp;
use aldis_store::{Lease, PageCursor, Revision, RunFilter, RunId, RunSummary, StoreError};
use schemars::JsonSchema;
use serde::Serialize;

use crate::app::dismissed::Dismissed;
use crate::app::story::{Story, StoryForm};
use crate::receipts::chain::{self, Chain};
use crate::receipts::line_of;
use crate::view::inbox;
use crate::view::run_view::RunView;
use crate::view::wire::card::{InboxItem, RunCard};
use crate::view::wire::receipt::ReceiptLine;

/// How many runs that go on are looked at.
const ACTIVE_MAX: usize = 1_000;
/// How many rows of runs that ended are looked at for one page.
const LOOK_MAX: usize = 10_000;
/// How many rows are read at once.
const ROWS: usize = 500;
/// How many runs are remembered, and how many stories.
const KNOWN_MAX: usize = 5_000;
const STORIES_MAX: usize = 8;
/// How many receipts of a run are told, and how many are remembered.
const RECEIPTS_MAX: usize = 50;
const RECEIPTS_KNOWN: usize = 1_000;
/// How many events say how busy a run is, in how many minutes.
const EVENTS_MAX: usize = 400;
const MINUTES: u32 = 30;
const MINUTE: Duration = Duration::from_secs(60);
/// How long something that ended needs a person, and how many runs that ended are looked at for it.
const NEWS: Duration = Duration::from_secs(24 * 60 * 60);
const NEWS_MAX: usize = 1_000;

/// Which runs are wanted.
#[derive(Clone, Debug, Default)]
pub(super) struct RunSelection {
    /// The projects of which nothing else is shown than their own; all where none is named.
    pub(super) only: Vec<String>,
    pub(super) project: Option<String>,
    pub(super) host: Option<String>,
    pub(super) machine: Option<String>,
    pub(super) state: Option<String>,
    /// Words of the title, the id or the project.
    pub(super) words: Option<String>,
    /// Where the page of those that ended begins.
    pub(super) after: Option<PageCursor>,
    pub(super) limit: usize,
}

/// What there is, at a glance.
#[derive(Debug, Default, Serialize, JsonSchema)]
pub(super) struct Overview {
    /// What needs a person, the most urgent first: in all runs, whichever are asked for.
    needs: Vec<InboxItem>,
    /// Runs that go on, the latest begun first.
    active: Vec<RunCard>,
    /// How many go on, shown or not.
    active_count: usize,
    /// Runs that ended, the latest begun first.
    ended: Vec<RunCard>,
    /// Where the next page of those begins; `null` on the last.
    next: Option<String>,
    /// Projects that can be asked for.
    projects: BTreeSet<String>,
    /// Hosts that can be asked for.
    hosts: BTreeSet<String>,
    /// How many workers there are, or were a day ago.
    workers: usize,
}

/// A run with all that is told of it.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct RunDetails {
    /// The run at a glance.
    card: RunCard,
    /// What of it needs a person.
    needs: Vec<InboxItem>,
    /// What happened.
    story: StoryForm,
    /// Its latest receipts in short.
    receipts: Vec<ReceiptLine>,
}

/// What is remembered.
#[derive(Debug, Default)]
pub(super) struct Dashboard {
    known: Mutex<HashMap<RunId, RememberedRun>>,
    stories: Mutex<Vec<(RunId, Arc<Mutex<Story>>)>>,
    receipts: Mutex<HashMap<PathBuf, ReceiptLine>>,
}

/// A run as it was read last.
#[derive(Debug)]
struct RememberedRun {
    revision: Revision,
    lease: Option<Lease>,
    /// Of a run that goes on.
    snapshot: Option<Arc<Snapshot>>,
    /// Of one that ended.
    ended: Option<(RunCard, Vec<InboxItem>)>,
}

impl Dashboard {
    /// Puts an overview together.
    pub(super) fn overview(
        &self,
        engine: &Engine,
        now: Timestamp,
        wanted: &RunSelection,
    ) -> Result<Overview, StoreError> {
        let mut overview = Overview::default();
        let dismissed = Dismissed::read(engine.store())?;
        // The rest of a list needs no more than that.
        if wanted.after.is_none() {
            overview.workers = engine.store().workers()?.len();
            self.active(engine, now, wanted, &mut overview)?;
            overview.needs.extend(self.news(engine, now, wanted)?);
            overview.needs.retain(|item| !dismissed.has(item));
            overview.needs.sort_by_key(|item| (item.need, item.at));
        }
        self.ended(engine, now, wanted, &mut overview)?;
        Ok(overview)
    }

    fn active(
        &self,
        engine: &Engine,
        now: Timestamp,
        wanted: &RunSelection,
        overview: &mut Overview,
    ) -> Result<(), StoreError> {
        let projects = wanted.only.clone();
        let (active, limit) = (Some(true), ACTIVE_MAX);
        let filter = RunFilter { projects, active, limit, ..RunFilter::default() };
        for row in engine.store().list(&filter)? {
            let Some((card, needs)) = self.look(engine, &row, now)? else { continue };
            overview.projects.insert(card.project.clone());
            overview.hosts.extend(card.host.clone());
            overview.needs.extend(needs);
            if !wanted.wants(&card) {
                continue;
            }
            overview.active_count += 1;
            if overview.active.len() < wanted.limit {
                let activity = activity(engine, &row, now)?;
                overview.active.push(RunCard { activity, ..card });
            }
        }
        Ok(())
    }

    /// Returns what needs a person in runs that ended, whichever of them are shown.
    fn news(
        &self,
        engine: &Engine,
        now: Timestamp,
        wanted: &RunSelection,
    ) -> Result<Vec<InboxItem>, StoreError> {
        let (active, projects) = (Some(false), wanted.only.clone());
        let filter = RunFilter { projects, active, limit: NEWS_MAX, ..RunFilter::default() };
        let mut needs = Vec::new();
        for row in engine.store().list(&filter)? {
            if now.since(row.updated) < NEWS {
                needs
                    .extend(self.look(engine, &row, now)?.into_iter().flat_map(|(_, needs)| needs));
            }
        }
        Ok(needs)
    }

    fn ended(
        &self,
        engine: &Engine,
        now: Timestamp,
        wanted: &RunSelection,
        overview: &mut Overview,
    ) -> Result<(), StoreError> {
        let (mut after, mut looked) = (wanted.after, 0);
        loop {
            let machine = wanted.machine.clone();
            let limit = ROWS.min(wanted.limit + 1);
            let (active, projects) = (Some(false), wanted.only.clone());
            let filter =
                RunFilter { projects, active, machine, after, limit, ..RunFilter::default() };
            let rows = engine.store().list(&filter)?;
            looked += rows.len();
            let is_last = rows.len() < limit;
            for row in rows {
                if overview.ended.len() == wanted.limit {
                    overview.next = after.map(|after| after.to_string());
                    return Ok(());
                }
                after = Some(row.page);
                if !wanted.may_want(&row) {
                    continue;
                }
                let Some((card, _)) = self.look(engine, &row, now)? else { continue };
                overview.projects.insert(card.project.clone());
                overview.hosts.extend(card.host.clone());
                if wanted.wants(&card) {
                    overview.ended.push(card);
                }
            }
            if is_last || looked >= LOOK_MAX {
                overview.next = after.filter(|_| !is_last).map(|after| after.to_string());
                return Ok(());
            }
        }
    }

    /// Returns the card of a run and what of it needs a person; nothing if it was pruned meanwhile.
    fn look(
        &self,
        engine: &Engine,
        row: &RunSummary,
        now: Timestamp,
    ) -> Result<Option<(RunCard, Vec<InboxItem>)>, StoreError> {
        {
            let known = self.known();
            let known = known.get(&row.id);
            let known = known.filter(|it| it.revision == row.revision && it.lease == row.lease);
            match known {
                Some(RememberedRun { ended: Some(ended), .. }) => return Ok(Some(ended.clone())),
                Some(RememberedRun { snapshot: Some(snapshot), .. }) => {
                    return Ok(Some(shown(snapshot, now)));
                }
                _ => {}
            }
        }
        let Some(snapshot) = engine.snapshot(&row.id)? else { return Ok(None) };
        let shown = shown(&snapshot, now);
        let mut entry = RememberedRun {
            revision: snapshot.run.revision,
            lease: snapshot.run.lease.clone(),
            snapshot: None,
            ended: None,
        };
        if shown.0.active {
            entry.snapshot = Some(Arc::new(snapshot));
        } else {
            entry.ended = Some(shown.clone());
        }
        let mut known = self.known();
        if known.len() >= KNOWN_MAX {
            known.clear();
        }
        known.insert(row.id.clone(), entry);
        Ok(Some(shown))
    }

    /// Returns a run that goes on, read again if it has changed; nothing if it was pruned meanwhile.
    pub(super) fn active_run(
        &self,
        engine: &Engine,
        row: &RunSummary,
        now: Timestamp,
    ) -> Result<Option<Arc<Snapshot>>, StoreError> {
        self.look(engine, row, now)?;
        Ok(self.known().get(&row.id).and_then(|known| known.snapshot.clone()))
    }

    /// Tells everything about a run; nothing if there is none of this name.
    pub(super) fn details(
        &self,
        engine: &Engine,
        state: &Path,
        id: &RunId,
        now: Timestamp,
    ) -> Result<Option<RunDetails>, StoreError> {
        let store = engine.store();
        let Some(snapshot) = engine.snapshot(id)? else { return Ok(None) };
        let story = self.story(id);
        let mut story = story.lock().unwrap_or_else(PoisonError::into_inner);
        story.read(store, &snapshot.run.record.machine)?;
        let view = RunView::new(&snapshot, now);
        let story = story.tell(&snapshot, &view, now);
        let (mut card, mut needs) = shown(&snapshot, now);
        let dismissed = Dismissed::read(engine.store())?;
        needs.retain(|item| !dismissed.has(item));
        let rows = store.find(id.as_str(), 1)?;
        if let Some(row) = rows.iter().find(|row| row.id == *id) {
            card.activity = activity(engine, row, now)?;
        }
        Ok(Some(RunDetails { card, needs, story, receipts: self.receipts(state, id) }))
    }

    /// Returns the latest receipts of a run, the first one first. A receipt never changes, so each is read
    /// once. What cannot be read is left out here: `aldis proof verify` says what is wrong with it.
    fn receipts(&self, state: &Path, id: &RunId) -> Vec<ReceiptLine> {
        let entries = Chain::of(state, id).entries().unwrap_or_default();
        let latest = entries.into_iter().rev().take(RECEIPTS_MAX);
        let mut known = self.receipts.lock().unwrap_or_else(PoisonError::into_inner);
        if known.len() > RECEIPTS_KNOWN {
            known.clear();
        }
        let lines = latest.filter_map(|entry| match known.get(&entry.path) {
            Some(line) => Some(line.clone()),
            None => {
                let line = line_of(&chain::parse(&entry.path).ok()?.receipt, &entry.path);
                known.insert(entry.path, line.clone());
                Some(line)
            }
        });
        let mut lines: Vec<ReceiptLine> = lines.collect();
        lines.reverse();
        lines
    }

    /// Returns the story of a run, as far as it was read; the one that was asked for longest ago is
    /// forgotten.
    fn story(&self, id: &RunId) -> Arc<Mutex<Story>> {
        let mut stories = self.stories.lock().unwrap_or_else(PoisonError::into_inner);
        let found = stories.iter().position(|(run, _)| run == id);
        let entry = match found {
            Some(at) => stories.remove(at),
            None => (id.clone(), Arc::new(Mutex::new(Story::new(id.clone())))),
        };
        let story = Arc::clone(&entry.1);
        stories.push(entry);
        if stories.len() > STORIES_MAX {
            stories.remove(0);
        }
        story
    }

    fn known(&self) -> MutexGuard<'_, HashMap<RunId, RememberedRun>> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Returns what of a run needs a person.
pub(super) fn needs(snapshot: &Snapshot, now: Timestamp) -> Vec<InboxItem> {
    inbox::items(snapshot, &RunView::new(snapshot, now), now)
}

fn shown(snapshot: &Snapshot, now: Timestamp) -> (RunCard, Vec<InboxItem>) {
    let view = RunView::new(snapshot, now);
    let needs = inbox::items(snapshot, &view, now);
    (RunCard::new(snapshot, &view, needs.len()), needs)
}

/// Returns how much happened in each of the last minutes, the oldest first.
fn activity(engine: &Engine, row: &RunSummary, now: Timestamp) -> Result<Vec<u32>, StoreError> {
    let after = row.last_event.saturating_sub(EVENTS_MAX as u64);
    let events = engine.store().events(&row.id, after, EVENTS_MAX)?;
    let mut minutes: BTreeMap<u32, u32> = BTreeMap::new();
    for event in &events {
        let ago = now.since(event.at).as_millis() / MINUTE.as_millis();
        if let Ok(ago) = u32::try_from(ago) {
            *minutes.entry(ago).or_default() += 1;
        }
    }
    Ok((0..MINUTES).rev().map(|ago| minutes.get(&ago).copied().unwrap_or(0)).collect())
}

impl RunSelection {
    /// Whether a run may be wanted, as far as its row tells.
    fn may_want(&self, row: &RunSummary) -> bool {
        self.project.as_ref().is_none_or(|project| *project == row.project)
            && self.machine.as_ref().is_none_or(|machine| *machine == row.machine)
    }

    fn wants(&self, card: &RunCard) -> bool {
        let is =
            |wanted: &Option<String>, found: &str| wanted.as_ref().is_none_or(|it| it == found);
        is(&self.project, &card.project)
            && is(&self.machine, &card.machine)
            && is(&self.host, card.host.as_deref().unwrap_or_default())
            && is(&self.state, &card.state)
            && self.words.as_ref().is_none_or(|words| has_words(card, words))
    }
}

/// Whether each word occurs in what people call a run, its id or its project.
fn has_words(card: &RunCard, words: &str) -> bool {
    let text = format!("{} {} {}", card.title, card.run, card.project).to_lowercase();
    words.to_lowercase().split_whitespace().all(|word| text.contains(word))
}
