//! Who coordinates a run, and since which fencing number.

use std::time::Duration;

use aldis_signal::time::Timestamp;
use rusqlite::{OptionalExtension, params};

use super::read::{clamp, count};
use super::statements::Statements;
use super::write::Refusable;
use crate::error::LeaseError;
use crate::record::Lease;
use crate::step::RunId;

pub(super) fn acquire(
    statements: &mut Statements<'_>,
    run: &RunId,
    holder: &str,
    now: Timestamp,
    ttl: Duration,
) -> Refusable<Lease, LeaseError> {
    let found = statements
        .get("SELECT fence, lease_holder, lease_until FROM runs WHERE id = ?1")?
        .query_row([run.as_str()], |row| {
            Ok((count(row, 0)?, row.get::<_, Option<String>>(1)?, row.get::<_, Option<i64>>(2)?))
        })
        .optional()?;
    let Some((fence, current, until)) = found else {
        return Ok(Err(LeaseError::NoSuchRun { run: run.clone() }));
    };
    let until = until.map(Timestamp::from_millis);
    if let (Some(current), Some(until)) = (current, until)
        && current != holder
        && until > now
    {
        return Ok(Err(LeaseError::Held { holder: current, until, fence }));
    }
    let until = now.after(ttl);
    let lease = Lease { run: run.clone(), holder: holder.to_owned(), fence: fence + 1, until };
    lend(statements, &lease)?;
    Ok(Ok(lease))
}

pub(super) fn renew(
    statements: &mut Statements<'_>,
    lease: &Lease,
    now: Timestamp,
    ttl: Duration,
) -> Refusable<Lease, LeaseError> {
    let found = statements
        .get("SELECT fence, lease_holder FROM runs WHERE id = ?1")?
        .query_row([lease.run.as_str()], |row| {
            Ok((count(row, 0)?, row.get::<_, Option<String>>(1)?))
        })
        .optional()?;
    let Some((fence, holder)) = found else {
        return Ok(Err(LeaseError::NoSuchRun { run: lease.run.clone() }));
    };
    if fence != lease.fence || holder.as_ref() != Some(&lease.holder) {
        return Ok(Err(LeaseError::Lost { current: fence }));
    }
    let lease = Lease { until: now.after(ttl), ..lease.clone() };
    lend(statements, &lease)?;
    Ok(Ok(lease))
}

pub(super) fn release(statements: &mut Statements<'_>, lease: &Lease) -> rusqlite::Result<bool> {
    let changed = statements
        .get(
            "UPDATE runs SET lease_holder = NULL, lease_until = NULL \
             WHERE id = ?1 AND fence = ?2 AND lease_holder = ?3",
        )?
        .execute(params![lease.run.as_str(), clamp(lease.fence), lease.holder])?;
    Ok(changed > 0)
}

pub(super) fn end(
    statements: &mut Statements<'_>,
    run: &RunId,
    fence: u64,
) -> rusqlite::Result<bool> {
    let changed = statements
        .get(
            "UPDATE runs SET fence = fence + 1, lease_holder = NULL, lease_until = NULL \
             WHERE id = ?1 AND fence = ?2 AND lease_holder IS NOT NULL",
        )?
        .execute(params![run.as_str(), clamp(fence)])?;
    Ok(changed > 0)
}

fn lend(statements: &mut Statements<'_>, lease: &Lease) -> rusqlite::Result<()> {
    statements
        .get("UPDATE runs SET fence = ?2, lease_holder = ?3, lease_until = ?4 WHERE id = ?1")?
        .execute(params![
            lease.run.as_str(),
            clamp(lease.fence),
            lease.holder,
            lease.until.as_millis(),
        ])?;
    Ok(())
}
