//! Fires timers: asleep until the next one is due, woken by whatever moves it.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use tokio::time;

use super::app::App;

/// Even without news the timers are looked at so often: other processes set them too, and a machine
/// that was suspended wakes up late.
const LOOK_EVERY: Duration = Duration::from_secs(1);
/// After a failure of the store.
const AFTER_FAILURE: Duration = Duration::from_secs(5);

pub(super) async fn watch(app: Arc<App>) {
    loop {
        let now = app.now();
        let pause = match app.fire(now, false).await {
            Ok(0) => until_next(&app).await,
            Ok(fired) => {
                app.metrics.timers.fetch_add(fired as u64, Ordering::Relaxed);
                Duration::ZERO
            }
            Err(error) => {
                tracing::warn!(%error, "cannot fire timers");
                AFTER_FAILURE
            }
        };
        tokio::select! {
            () = app.stopped() => return,
            () = app.commits.timers.notified() => {}
            () = time::sleep(pause) => {}
        }
    }
}

/// How long nothing is due. Timers that are set from here on wake us if they are earlier.
async fn until_next(app: &Arc<App>) -> Duration {
    let latest = app.now().after(LOOK_EVERY);
    app.commits.sleep_until(latest);
    let next = app.with_engine(|engine| engine.store().next_timer()).await;
    let wake = next.ok().flatten().map_or(latest, |next| next.min(latest));
    app.commits.sleep_until(wake);
    wake.since(app.now())
}
