//! The line at the bottom of the terminal of a run.

use std::time::Duration;

use aldis_machine::run::{State, Status, Usage};
use aldis_machine::stagnation::Level;
use aldis_signal::time::Timestamp;

use crate::view::display;
use crate::view::paint::Paint;
use crate::view::run_view::run_status;
use crate::view::show::{dollars, spent};
use crate::view::time::{ago, elapsed, short};
use crate::view::wrap::width;

/// The iteration, as it stands in front of what happens in it.
pub(super) fn count(state: &State) -> String {
    count_of(state.iteration().into(), state.setup().config.max_iterations.into())
}

/// This iteration of so many.
pub(super) fn count_of(iteration: u64, most: u64) -> String {
    let most = most.to_string();
    let width = most.len();
    format!("  {iteration:>width$}/{most}")
}

/// The line at the bottom: iteration, progress, time and cost with their limits, and what happens now.
/// What matters least goes first where there is no room.
pub(super) fn status_line(
    paint: Paint,
    now: Timestamp,
    state: &State,
    active: Option<Timestamp>,
    columns: usize,
) -> String {
    let config = &state.setup().config;
    let worked = elapsed(Duration::from_millis(state.worked_since_opened(now)));
    let time = format!("{worked} of {}", short(Duration::from_secs(config.timeout)));
    let cost = state.cost();
    let cost = match (config.max_micro_dollars, config.max_tokens) {
        (Some(most), _) => {
            let most = Usage { tokens: 0, micro_dollars: most };
            Some(format!("{} of {}", dollars(cost), dollars(most)))
        }
        (None, Some(most)) => Some(format!("{} of {most} tokens", cost.tokens)),
        (None, None) => spent(cost),
    };
    let level = Some(state.monitor().level()).filter(|level| *level != Level::None);
    let now_doing = match state.status() {
        Status::Working => active.map(|at| format!("last activity {}", ago(now, at))),
        _ => Some(run_status(now, state).1),
    };
    let percent = state.shown_progress().map(|percent| format!("{percent} %"));
    let phase = state.phase().map(|phase| display::excerpt(phase, 20));
    // From the first to go to the last; the order of the line is another.
    let mut parts = [
        (1, Some(count(state))),
        (5, percent),
        (2, phase),
        (4, Some(time)),
        (3, cost),
        (6, now_doing),
        (7, level.map(|level| format!("stalled: {}", level.as_str()))),
    ]
    .map(|(rank, part)| part.map(|part| (rank, part)));
    let line = |parts: &[Option<(u8, String)>]| {
        let parts: Vec<&str> = parts.iter().flatten().map(|(_, part)| &**part).collect();
        parts.join("  ")
    };
    for rank in 1..=7 {
        if width(&line(&parts)) <= columns {
            break;
        }
        let left = parts.iter().flatten().count();
        parts
            .iter_mut()
            .filter(|_| left > 1)
            .for_each(|part| drop(part.take_if(|it| it.0 == rank)));
    }
    let line = line(&parts);
    let warns = level.is_some() || *state.status() != Status::Working;
    if warns { paint.warn(line).to_string() } else { paint.dim(line).to_string() }
}
