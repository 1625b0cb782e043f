//! Claims and leases: who may act, until when, by the clock that all share.

use std::time::Duration;

use aldis_signal::time::Timestamp;
use tokio_postgres::Row;

use super::PostgresStore;
use super::link::Repeat;
use super::read::{EFFECT, all, first, to_claim};
use super::text;
use super::values::{Columns, Decoded, Values};
use crate::claim::{Claim, ClaimRequest};
use crate::error::{LeaseError, StoreError};
use crate::record::Lease;
use crate::step::RunId;

impl PostgresStore {
    pub(super) fn claim_effects(&self, request: &ClaimRequest) -> Result<Vec<Claim>, StoreError> {
        let sql = format!(
            "SELECT {EFFECT}, claim, claimed_until \
             FROM {{s}}.claim($1, $2, $3, $4, $5, $6, $7, $8)"
        );
        let labels = request.labels.iter().map(|label| text::encode_label(label)).collect();
        let values = Values::default()
            .texts_or_any(&request.kinds)
            .maybe_text(request.lane.as_deref())
            .maybe_text(request.run.as_ref().map(RunId::as_str))
            .raw_texts(labels)
            .text(&request.worker)
            .limit(request.limit)
            .maybe_signed(self.given(request.now))
            .signed(millis(request.ttl));
        let claims = self.write("claim effects", &sql, values, all(to_claim))?;
        self.note(!claims.is_empty());
        Ok(claims)
    }

    pub(super) fn keep_claims(
        &self,
        claims: &[Claim],
        now: Timestamp,
        ttl: Duration,
    ) -> Result<Vec<bool>, StoreError> {
        let values = Values::default()
            .texts(claims.iter().map(|claim| &*claim.effect.key))
            .numbers(claims.iter().map(|claim| claim.fence))
            .maybe_signed(self.given(now))
            .signed(millis(ttl));
        let sql = "SELECT {s}.keep($1, $2, $3, $4)";
        let kept = self.write("keep claims", sql, values, first(|columns| columns.flags()))?;
        let kept = kept.unwrap_or_default();
        self.note(kept.contains(&true));
        Ok(kept)
    }

    /// Closes a claim: done without an error; else to be tried again at `next`, or never.
    pub(super) fn settle(
        &self,
        doing: &'static str,
        claim: &Claim,
        error: Option<&str>,
        next: Option<Timestamp>,
    ) -> Result<bool, StoreError> {
        let values = Values::default()
            .text(&claim.effect.key)
            .number(claim.fence)
            .maybe_text(error)
            .maybe_signed(next.map(Timestamp::as_millis));
        self.yes(doing, "SELECT {s}.settle($1, $2, $3, $4)", values)
    }

    pub(super) fn trim(
        &self,
        lane: &str,
        keep: usize,
        now: Timestamp,
        error: &str,
    ) -> Result<usize, StoreError> {
        let values =
            Values::default().text(lane).limit(keep).maybe_signed(self.given(now)).text(error);
        let sql = "SELECT {s}.trim_lane($1, $2, $3, $4)";
        let trimmed = self.write("trim a lane", sql, values, first(|columns| columns.number()))?;
        let trimmed = trimmed.unwrap_or_default();
        self.note(trimmed > 0);
        Ok(usize::try_from(trimmed).unwrap_or(usize::MAX))
    }

    pub(super) fn acquire(
        &self,
        run: &RunId,
        holder: &str,
        now: Timestamp,
        ttl: Duration,
    ) -> Result<Lease, LeaseError> {
        let values = Values::default()
            .text(run.as_str())
            .text(holder)
            .maybe_signed(self.given(now))
            .signed(millis(ttl));
        let sql = "SELECT * FROM {s}.acquire_lease($1, $2, $3, $4)";
        let acquired = self.write("acquire a lease", sql, values, |rows| acquired(run, &rows))?;
        self.note(acquired.is_ok());
        acquired
    }

    pub(super) fn renew(
        &self,
        lease: &Lease,
        now: Timestamp,
        ttl: Duration,
    ) -> Result<Lease, LeaseError> {
        let values = Values::default()
            .text(lease.run.as_str())
            .text(&lease.holder)
            .number(lease.fence)
            .maybe_signed(self.given(now))
            .signed(millis(ttl));
        let sql = "SELECT * FROM {s}.renew_lease($1, $2, $3, $4, $5)";
        let renewed = self.write("renew a lease", sql, values, |rows| renewed(lease, &rows))?;
        self.note(renewed.is_ok());
        renewed
    }

    /// Ends a lease: given back by its holder, or broken.
    pub(super) fn end(
        &self,
        doing: &'static str,
        run: &RunId,
        fence: u64,
        holder: Option<&str>,
    ) -> Result<bool, StoreError> {
        let values = Values::default().text(run.as_str()).number(fence).maybe_text(holder);
        self.yes(doing, "SELECT {s}.end_lease($1, $2, $3)", values)
    }

    /// Asks for a change that may come to nothing.
    fn yes(&self, doing: &'static str, sql: &str, values: Values) -> Result<bool, StoreError> {
        let changed =
            self.write(doing, sql, values, first(|columns| columns.flag()))?.unwrap_or_default();
        self.note(changed);
        Ok(changed)
    }

    /// The time of the caller, if it counts.
    pub(super) fn given(&self, now: Timestamp) -> Option<i64> {
        self.link.address.callers_clock.then(|| now.as_millis())
    }

    fn write<T>(
        &self,
        doing: &'static str,
        sql: &str,
        values: Values,
        understand: impl FnOnce(Vec<Row>) -> Decoded<T>,
    ) -> Result<T, StoreError> {
        self.link.call(doing, Repeat::Write, sql, values, understand)
    }
}

fn acquired(run: &RunId, rows: &[Row]) -> Decoded<Result<Lease, LeaseError>> {
    let mut columns = Columns::of(rows.first().ok_or("an outcome is missing")?);
    let (outcome, fence) = (columns.small()?, columns.maybe_number()?.unwrap_or_default());
    if outcome == 3 {
        return Ok(Err(LeaseError::NoSuchRun { run: run.clone() }));
    }
    let (holder, until) = (columns.text()?, columns.moment()?);
    Ok(match outcome {
        0 => Ok(Lease { run: run.clone(), holder, fence, until }),
        _ => Err(LeaseError::Held { holder, until, fence }),
    })
}

fn renewed(lease: &Lease, rows: &[Row]) -> Decoded<Result<Lease, LeaseError>> {
    let mut columns = Columns::of(rows.first().ok_or("an outcome is missing")?);
    let (outcome, current) = (columns.small()?, columns.maybe_number()?.unwrap_or_default());
    Ok(match outcome {
        0 => Ok(Lease { until: columns.moment()?, ..lease.clone() }),
        1 => Err(LeaseError::Lost { current }),
        _ => Err(LeaseError::NoSuchRun { run: lease.run.clone() }),
    })
}

/// A time that is too long for the database is as long as it takes.
pub(super) fn millis(ttl: Duration) -> i64 {
    i64::try_from(ttl.as_millis()).unwrap_or(i64::MAX)
}
