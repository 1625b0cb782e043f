//! What every backend must do, as checks that anybody with a backend can run.
//!
//! Each check takes a store that nobody else uses and panics with what it found. Run them all
//! with [`check`], or one by one from [`CHECKS`] to see them by name.

mod claims;
mod coordination;
mod effects;
mod feed;
mod listing;
mod parts;
mod retention;
mod steps;
mod text;
mod tickets;
mod workers;

use std::fmt::Debug;

use aldis_signal::time::Timestamp;

use crate::error::CommitError;
use crate::record::Run;
use crate::step::{
    Committed, Driver, NewDecision, NewEffect, NewEvent, PartChange, Revision, RunId, RunRecord,
    Source, Step, TimerChange,
};
use crate::store::Store;

/// One thing a backend must do.
#[derive(Clone, Copy, Debug)]
pub struct ConformanceCheck {
    /// What it must do, as a name.
    pub name: &'static str,
    /// Tries it on an empty store; panics if the store does something else.
    pub run: fn(&dyn Store),
}

macro_rules! checks {
    ($($module:ident :: { $($name:ident),+ $(,)? }),+ $(,)?) => {
        &[$($(ConformanceCheck { name: stringify!($name), run: $module::$name }),+),+]
    };
}

/// Everything a backend must do.
pub const CHECKS: &[ConformanceCheck] = checks![
    steps::{
        the_first_step_creates_the_run,
        each_step_raises_the_revision,
        a_stale_step_changes_nothing,
        a_step_of_a_missing_run_is_refused,
        a_known_source_changes_nothing,
        a_second_delivery_finds_the_first_answer,
        a_source_twice_in_one_step_is_refused,
        sources_belong_to_their_run,
        a_refused_step_leaves_no_trace,
        steps_of_racing_threads_are_all_counted,
        a_turn_admits_its_own_thread,
        a_turn_holds_up_nobody_else,
    },
    effects::{
        effects_wait_in_order,
        effects_wait_until_they_are_due,
        a_key_is_never_enqueued_twice,
        an_effect_is_pending_until_it_is_done,
        a_step_can_close_its_own_effects,
        a_step_cannot_close_the_effects_of_others,
        effects_are_closed_together_and_fenced,
        effects_are_chosen_by_kind_and_counted,
    },
    claims::{
        an_effect_is_handed_out_once,
        a_claim_can_be_kept_and_given_back,
        a_claim_that_is_done_is_over,
        an_effect_that_failed_comes_back,
        an_effect_that_was_given_up_stays_visible,
        an_old_claim_closes_nothing,
        the_coordinator_closes_claimed_effects,
        a_worker_gets_what_it_asks_for,
        labels_must_be_offered,
        a_lane_is_first_in_first_out,
        a_lane_is_held_up_by_what_others_must_do,
        a_long_lane_holds_up_nobody_else,
        a_lane_can_be_trimmed,
        racing_workers_share_the_effects,
    },
    feed::{
        a_wait_without_a_change_ends_in_time,
        a_change_before_the_wait_ends_it_at_once,
        every_waiting_thread_is_woken,
        nothing_is_missed_between_reading_and_waiting,
    },
    coordination::{
        timers_come_due_in_order,
        a_timer_can_be_moved_and_cleared,
        a_lease_keeps_others_out,
        an_expired_lease_passes_on,
        a_lease_can_be_kept,
        a_lost_lease_cannot_be_kept,
        a_released_lease_is_free,
        a_lease_can_be_broken,
        the_same_name_takes_over_from_itself,
        an_old_fencing_number_writes_nothing,
        being_fenced_is_said_first,
        leases_of_missing_runs_are_refused,
        a_lease_survives_steps,
    },
    listing::{
        runs_are_listed_newest_first,
        runs_are_filtered,
        a_summary_has_everything_but_the_state,
        runs_are_listed_in_pages,
        runs_are_found_by_prefix,
        events_are_read_in_pages,
        decisions_are_read_backwards_across_runs,
        decisions_can_be_followed,
        missing_things_are_not_errors,
        limits_hold,
    },
    retention::{
        only_old_ended_runs_are_pruned,
        pruning_forgets_everything,
        a_probe_leaves_nothing_behind,
        a_pruned_effect_frees_its_lane,
        a_reader_knows_what_it_missed,
    },
    parts::{
        parts_are_kept_until_they_change,
        a_run_and_its_parts_are_of_one_step,
        a_refused_step_leaves_the_parts,
    },
    workers::{
        workers_are_listed_as_they_announced_themselves,
        workers_that_are_long_gone_are_forgotten,
    },
    tickets::{
        a_ticket_is_put_once_while_it_holds,
        a_ticket_is_taken_once,
        tickets_are_listed_latest_first,
        tickets_that_are_over_are_forgotten,
        racing_threads_share_tickets,
    },
    text::{
        any_text_comes_back_as_it_was,
        text_is_compared_exactly,
        huge_text_comes_back_as_it_was,
        extreme_moments_come_back_as_they_were,
        extreme_numbers_are_only_refused,
    },
];

/// Runs every check on a store of its own.
///
/// # Panics
///
/// When the backend fails one; the message names it.
pub fn check(mut open: impl FnMut(&ConformanceCheck) -> Box<dyn Store>) {
    for check in CHECKS {
        let store = open(check);
        let outcome = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            (check.run)(&*store);
        }));
        assert!(outcome.is_ok(), "the check `{}` failed, see above", check.name);
    }
}

/// Takes the value, or panics with the error and the line that asked.
#[track_caller]
fn ok<T, E: Debug>(result: Result<T, E>) -> T {
    match result {
        Ok(value) => value,
        Err(error) => panic!("unexpected {error:?}"),
    }
}

/// Takes the value, or panics with the line that asked.
#[track_caller]
fn some<T>(option: Option<T>) -> T {
    let Some(value) = option else { panic!("unexpected None") };
    value
}

#[track_caller]
fn id(text: &str) -> RunId {
    ok(RunId::new(text))
}

fn at(millis: i64) -> Timestamp {
    Timestamp::from_millis(millis)
}

fn record() -> RunRecord {
    RunRecord {
        project: "aldis".to_owned(),
        session: Some("session-1".to_owned()),
        machine: "run".to_owned(),
        driver: Driver::Process,
        title: "Fix the tests".to_owned(),
        active: true,
        state: r#"{"iteration":0}"#.to_owned(),
    }
}

fn event(kind: &str, source: Option<&str>) -> NewEvent {
    NewEvent {
        kind: kind.to_owned(),
        body: format!(r#"{{"{kind}":true}}"#),
        source: source.map(|key| Source { key: key.to_owned(), digest: format!("of {kind}") }),
        at: at(1_000),
    }
}

fn decision(body: &str) -> NewDecision {
    NewDecision { body: body.to_owned(), at: at(1_000) }
}

fn effect(key: &str, due: i64) -> NewEffect {
    NewEffect {
        key: key.to_owned(),
        kind: "notify".to_owned(),
        body: format!(r#"{{"to":"{key}"}}"#),
        due: at(due),
        lane: String::new(),
        requires: Vec::new(),
    }
}

fn set(key: &str, due: i64) -> TimerChange {
    TimerChange::Set { key: key.to_owned(), due: at(due) }
}

/// A step that changes nothing but the revision.
fn step(run: &str, expected: u64) -> Step {
    Step::new(id(run), Revision(expected), record(), at(1_000))
}

/// A step that touches every table.
pub(crate) fn full_step(run: &str, expected: u64, mark: &str) -> Step {
    Step {
        events: vec![event(mark, Some(mark)), event("plain", None)],
        decisions: vec![decision(mark)],
        effects: vec![NewEffect { lane: "lane".to_owned(), ..effect(mark, 0) }],
        timers: vec![set(mark, 5)],
        parts: vec![PartChange::Set { key: mark.to_owned(), body: mark.to_owned() }],
        record: RunRecord { state: mark.to_owned(), ..record() },
        ..step(run, expected)
    }
}

/// Commits a first step.
#[track_caller]
fn create(store: &dyn Store, run: &str) -> Committed {
    ok(store.commit(&step(run, 0)))
}

#[track_caller]
fn stored(store: &dyn Store, run: &str) -> Run {
    some(ok(store.run(&id(run))))
}

/// Commits a step that must be refused, and returns why.
#[track_caller]
fn refused(store: &dyn Store, step: &Step) -> CommitError {
    match store.commit(step) {
        Ok(committed) => panic!("unexpected {committed:?}"),
        Err(error) => error,
    }
}
