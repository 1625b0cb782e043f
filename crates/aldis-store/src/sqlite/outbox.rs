//! The outbox: effects come with their step, are claimed, and closed by whoever may.
//!
//! `head` marks the effects that have no earlier pending one of their lane in front of them. It is
//! kept true wherever an effect comes or goes, so that a claim looks at heads alone, however long a
//! lane is. An effect without a lane is always a head.

use std::time::Duration;

use aldis_signal::time::Timestamp;
use rusqlite::{Connection, OptionalExtension, ToSql, params};

use super::labels;
use super::read::{Query, clamp, count, to_effect};
use super::statements::Statements;
use super::write::Refusable;
use crate::claim::{Claim, ClaimRequest};
use crate::error::CommitError;
use crate::step::{NewEffect, RunId};

pub(super) fn enqueue(
    statements: &mut Statements<'_>,
    run: &RunId,
    effect: &NewEffect,
) -> rusqlite::Result<()> {
    statements
        .get(
            "INSERT INTO outbox (key, run, due, kind, body, lane, requires, head) \
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, iif(?6 = '', 1, NOT EXISTS \
             (SELECT 1 FROM outbox WHERE state = 0 AND lane <> '' AND lane = ?6))) \
             ON CONFLICT (key) DO NOTHING",
        )?
        .execute(params![
            effect.key,
            run.as_str(),
            effect.due.as_millis(),
            effect.kind,
            effect.body,
            effect.lane,
            labels::encode(&effect.requires),
        ])?;
    Ok(())
}

/// Closes an effect of a run. Returns whether it was pending.
pub(super) fn close(
    statements: &mut Statements<'_>,
    run: &RunId,
    key: &str,
) -> rusqlite::Result<bool> {
    let lane = statements
        .get(
            "UPDATE outbox SET state = 1 WHERE key = ?1 AND state = 0 AND run = ?2 RETURNING lane",
        )?
        .query_row(params![key, run.as_str()], |row| row.get::<_, String>(0))
        .optional()?;
    promote(statements, lane)
}

pub(super) fn effects_done(
    statements: &mut Statements<'_>,
    run: &RunId,
    fence: Option<u64>,
    keys: &[String],
) -> Refusable<usize, CommitError> {
    let found = statements
        .get("SELECT fence FROM runs WHERE id = ?1")?
        .query_row([run.as_str()], |row| count(row, 0))
        .optional()?;
    let current = found.unwrap_or(0);
    if fence.is_some_and(|fence| fence != current) {
        return Ok(Err(CommitError::Fenced { current }));
    }
    if found.is_none() {
        return Ok(Err(CommitError::NoSuchRun { run: run.clone() }));
    }
    let mut closed = 0;
    for key in keys {
        closed += usize::from(close(statements, run, key)?);
    }
    Ok(Ok(closed))
}

pub(super) fn claim(
    statements: &mut Statements<'_>,
    request: &ClaimRequest,
) -> rusqlite::Result<Vec<Claim>> {
    let mut chosen = Vec::new();
    for (seq, lane) in heads(statements.connection(), request)? {
        chosen.push(seq);
        if !lane.is_empty() {
            followers(statements, request, &lane, seq, &mut chosen)?;
        }
    }
    // A head that was not looked at is behind all of them.
    chosen.sort_unstable();
    chosen.truncate(request.limit);
    let until = request.now.after(request.ttl);
    let mut claims = Vec::with_capacity(chosen.len());
    for seq in chosen {
        claims.push(
            statements
                .get(
                    "UPDATE outbox SET claim = claim + 1, worker = ?2, claimed_until = ?3 \
                     WHERE seq = ?1 RETURNING key, run, kind, body, due, attempts, error, state, \
                     lane, requires, worker, claim",
                )?
                .query_row(params![seq, request.worker, until.as_millis()], |row| {
                    Ok(Claim { effect: to_effect(row)?, fence: count(row, 11)?, until })
                })?,
        );
    }
    Ok(claims)
}

/// Finds the first heads that can be claimed, with their lanes.
fn heads(connection: &Connection, request: &ClaimRequest) -> rusqlite::Result<Vec<(i64, String)>> {
    let run = request.run.as_ref().map(RunId::as_str);
    let now = request.now.as_millis();
    let index = match (run, request.lane.as_deref()) {
        (Some(_), _) => "outbox_by_state",
        (None, None | Some("")) => "outbox_pending",
        (None, Some(_)) => "outbox_by_lane",
    };
    let mut query =
        Query::new(&format!("SELECT seq, lane, requires FROM outbox INDEXED BY {index}"));
    query.and("state = 0 AND head = 1 AND due <= ?");
    query.and("(claimed_until IS NULL OR claimed_until <= ?)");
    query.values.extend([&now as &dyn ToSql, &now]);
    query.one_of("kind", &request.kinds);
    if let Some(run) = &run {
        query.and("run = ?");
        query.values.push(run);
    }
    if let Some(lane) = &request.lane {
        query.and(if lane.is_empty() { "lane = ?" } else { "lane <> '' AND lane = ?" });
        query.values.push(lane);
    }
    let mut heads = Vec::new();
    query.visit(connection, "seq", |row| {
        if heads.len() < request.limit && request.offers(&labels::decode(&row.get::<_, String>(2)?))
        {
            heads.push((row.get(0)?, row.get(1)?));
        }
        Ok(heads.len() < request.limit)
    })?;
    Ok(heads)
}

/// Adds the effects of a lane that can be claimed together with its head.
fn followers(
    statements: &mut Statements<'_>,
    request: &ClaimRequest,
    lane: &str,
    head: i64,
    chosen: &mut Vec<i64>,
) -> rusqlite::Result<()> {
    let most = clamp(request.limit.saturating_sub(1) as u64);
    let sql = "SELECT key, run, kind, '', due, attempts, error, state, lane, requires, worker, seq, \
               claimed_until FROM outbox INDEXED BY outbox_by_lane \
               WHERE state = 0 AND lane <> '' AND lane = ?1 AND seq > ?2 ORDER BY seq LIMIT ?3";
    let statement = statements.get(sql)?;
    let mut rows = statement.query(params![lane, head, most])?;
    while let Some(row) = rows.next()? {
        let claimed: Option<i64> = row.get(12)?;
        let free = claimed.is_none_or(|until| until <= request.now.as_millis());
        if !free || !request.wants(&to_effect(row)?) {
            break;
        }
        chosen.push(row.get(11)?);
    }
    Ok(())
}

pub(super) fn keep(
    statements: &mut Statements<'_>,
    claims: &[Claim],
    now: Timestamp,
    ttl: Duration,
) -> rusqlite::Result<Vec<bool>> {
    let until = now.after(ttl).as_millis();
    let statement = statements.get(
        "UPDATE outbox SET claimed_until = ?3 WHERE key = ?1 AND state = 0 AND claim = ?2 \
         AND claimed_until IS NOT NULL",
    )?;
    let mut keep = |claim: &Claim| -> rusqlite::Result<bool> {
        Ok(statement.execute(params![claim.effect.key, clamp(claim.fence), until])? > 0)
    };
    claims.iter().map(&mut keep).collect()
}

pub(super) fn done(statements: &mut Statements<'_>, claim: &Claim) -> rusqlite::Result<bool> {
    let lane = statements
        .get(
            "UPDATE outbox SET state = 1 WHERE key = ?1 AND state = 0 AND claim = ?2 \
             AND claimed_until IS NOT NULL RETURNING lane",
        )?
        .query_row(params![claim.effect.key, clamp(claim.fence)], |row| row.get::<_, String>(0))
        .optional()?;
    promote(statements, lane)
}

pub(super) fn failed(
    statements: &mut Statements<'_>,
    claim: &Claim,
    next: Option<Timestamp>,
    error: &str,
) -> rusqlite::Result<bool> {
    let next = next.map(Timestamp::as_millis);
    let lane = statements
        .get(
            "UPDATE outbox SET attempts = attempts + 1, error = ?3, due = ifnull(?4, due), \
             state = iif(?4 IS NULL, 2, 0), claimed_until = NULL \
             WHERE key = ?1 AND state = 0 AND claim = ?2 AND claimed_until IS NOT NULL \
             RETURNING lane",
        )?
        .query_row(params![claim.effect.key, clamp(claim.fence), error, next], |row| {
            row.get::<_, String>(0)
        })
        .optional()?;
    promote(statements, lane)
}

pub(super) fn trim(
    statements: &mut Statements<'_>,
    lane: &str,
    keep: usize,
    now: Timestamp,
    error: &str,
) -> rusqlite::Result<usize> {
    let trimmed = statements
        .get(
            "UPDATE outbox SET state = 2, error = ?4, claimed_until = NULL WHERE seq IN \
             (SELECT seq FROM outbox INDEXED BY outbox_by_lane WHERE state = 0 AND lane <> '' \
             AND lane = ?1 ORDER BY seq DESC LIMIT -1 OFFSET ?2) \
             AND (claimed_until IS NULL OR claimed_until <= ?3)",
        )?
        .execute(params![lane, clamp(keep as u64), now.as_millis(), error])?;
    promote(statements, Some(lane.to_owned()))?;
    Ok(trimmed)
}

/// Makes the next effect of a lane its head after a change to one of them. Returns whether there
/// was a change.
pub(super) fn promote(
    statements: &mut Statements<'_>,
    lane: Option<String>,
) -> rusqlite::Result<bool> {
    if let Some(lane) = lane.as_ref().filter(|lane| !lane.is_empty()) {
        statements
            .get(
                "UPDATE outbox SET head = 1 WHERE seq = (SELECT min(seq) FROM outbox \
                 WHERE state = 0 AND lane <> '' AND lane = ?1) AND head = 0",
            )?
            .execute([lane])?;
    }
    Ok(lane.is_some())
}
