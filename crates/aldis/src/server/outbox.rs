//! Carries effects out: at least once, each with its key, later again where that helps.

use std::sync::Arc;
use std::time::Duration;

use aldis_signal::time::Timestamp;
use aldis_store::{ClaimRequest, CommitError, Effect, EffectFilter};
use serde_json::Value;
use tokio::time;

use super::app::App;
use super::metrics::add;
use super::sinks::{Delivery, Parcel, SINK, Sinks};

/// Even without news the outbox is looked at so often: what failed comes due by itself.
const LOOK_EVERY: Duration = Duration::from_secs(1);
/// How many effects are looked at together. Not only those that are due: one that waits holds up
/// what was said after it.
const PAGE: usize = 4_096;
/// After so many tries an effect is given up: with the pauses below, after about a day.
const TRIES_MAX: u32 = 20;
const PAUSE_MIN: Duration = Duration::from_secs(1);
const PAUSE_MAX: Duration = Duration::from_secs(2 * 60 * 60);

pub(super) async fn deliver(app: Arc<App>) {
    loop {
        round(&app).await;
        tokio::select! {
            () = app.stopped() => return,
            () = app.commits.outbox.notified() => {}
            () = time::sleep(LOOK_EVERY) => {}
        }
    }
}

/// Tries what is due, in the order it was asked for.
async fn round(app: &Arc<App>) {
    let ever = Timestamp::from_millis(i64::MAX);
    // Other kinds are performed by those who drive the run.
    let kinds = vec![SINK.to_owned()];
    let filter = EffectFilter { kinds, limit: PAGE, ..EffectFilter::due_by(ever) };
    let waiting = app.with_engine(move |engine| engine.store().pending_effects(&filter)).await;
    let mut held_up: Vec<String> = Vec::new();
    for effect in waiting.unwrap_or_default() {
        if *app.stopping.borrow() {
            return;
        }
        if held_up.contains(&effect.lane) {
            continue;
        }
        if effect.due > app.now() || !one(app, &effect).await {
            held_up.push(effect.lane);
        }
    }
}

/// Tries one effect; returns whether it is out of the way.
async fn one(app: &Arc<App>, effect: &Effect) -> bool {
    let (sinks, sent, at) = (app.sinks.clone(), effect.clone(), app.now().as_millis() / 1_000);
    let delivery = tokio::task::spawn_blocking(move || send(&sinks, &sent, at)).await;
    let broken = || Delivery::Later { why: "the delivery broke off".to_owned(), after: None };
    match delivery.unwrap_or_else(|_| broken()) {
        Delivery::Done => {
            add(&app.metrics.delivered);
            tracing::debug!(run = %effect.run, sink = effect.lane, "delivered");
            let (run, key) = (effect.run.clone(), effect.key.clone());
            let done = app.with_engine(move |engine| {
                match engine.store().effects_done(&run, None, &[key]) {
                    Err(CommitError::Store(error)) => Err(error),
                    _ => Ok(()),
                }
            });
            done.await.is_ok()
        }
        Delivery::Later { why, after } if effect.attempts + 1 < TRIES_MAX => {
            add(&app.metrics.delivery_failures);
            let next = app.now().after(after.unwrap_or_else(|| pause(effect.attempts)));
            // Whether or not this could be written, the lane waits.
            failed(app, effect, Some(next), why).await;
            false
        }
        Delivery::Later { why, .. } | Delivery::Impossible(why) => {
            add(&app.metrics.given_up);
            failed(app, effect, None, why).await
        }
    }
}

/// Records a failure. Claimed for this alone: there is one server, and one that is killed while it
/// sends leaves nothing behind that its successor would have to wait for. Returns whether it could be
/// written.
async fn failed(app: &Arc<App>, effect: &Effect, next: Option<Timestamp>, why: String) -> bool {
    let (run, sink, attempt) = (&effect.run, &effect.lane, effect.attempts + 1);
    match next {
        Some(next) => tracing::info!(%run, sink, attempt, why, %next, "delivery failed"),
        None => tracing::warn!(%run, sink, attempt, why, "delivery given up"),
    }
    let request = ClaimRequest {
        lane: Some(effect.lane.clone()),
        run: Some(effect.run.clone()),
        ..ClaimRequest::new(&[SINK], "server", app.now(), Duration::ZERO)
    };
    let key = effect.key.clone();
    let written = app.with_engine(move |engine| {
        let claims = engine.store().claim(&request)?;
        match claims.iter().find(|claim| claim.effect.key == key) {
            Some(claim) => engine.store().failed(claim, next, &why),
            None => Ok(false),
        }
    });
    written.await.is_ok()
}

fn send(sinks: &Sinks, effect: &Effect, at: i64) -> Delivery {
    let body: Value = serde_json::from_str(&effect.body).unwrap_or_default();
    let sink = body.get("sink").and_then(Value::as_str).unwrap_or_default();
    let what = body.get("effect").cloned().unwrap_or_default();
    sinks.send(sink, Parcel { key: &effect.key, run: effect.run.as_str(), effect: &what, at })
}

/// How long to wait after so many failures: twice as long each time.
fn pause(attempts: u32) -> Duration {
    PAUSE_MIN.saturating_mul(1 << attempts.min(20)).min(PAUSE_MAX)
}
