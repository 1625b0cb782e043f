//! How far something long has come, for whoever waits at a terminal. What is over in a moment shows
//! nothing.

use std::time::Duration;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

/// How long something takes before it is worth a bar.
const PATIENCE: Duration = Duration::from_secs(1);
/// How it looks.
const BYTES: &str = "{prefix}  {bar:30}  {bytes} of {total_bytes}  {eta} left";

/// A bar on standard error.
pub(crate) struct Progress {
    bar: ProgressBar,
    /// Whether it is not shown yet.
    waits: bool,
}

impl Progress {
    /// Starts a bar of so many bytes. Whoever does must see to it that somebody looks at standard error,
    /// and that nothing else is printed there.
    pub(crate) fn bytes(what: &str, total: u64) -> Self {
        let style = ProgressStyle::with_template(BYTES);
        let style = style.unwrap_or_else(|_| ProgressStyle::default_bar());
        let hidden = ProgressDrawTarget::hidden();
        let bar = ProgressBar::with_draw_target(Some(total), hidden).with_style(style);
        bar.set_prefix(super::display::line(what));
        Self { bar, waits: true }
    }

    /// So much more is done.
    pub(crate) fn advance(&mut self, by: u64) {
        if self.waits && self.bar.elapsed() >= PATIENCE {
            self.waits = false;
            self.bar.set_draw_target(ProgressDrawTarget::stderr());
        }
        self.bar.inc(by);
    }
}

impl Drop for Progress {
    /// Leaves nothing on the terminal.
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}
