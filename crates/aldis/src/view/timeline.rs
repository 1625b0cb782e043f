//! A picture of what happened when: plain data in, SVG out. `report`, `postmortem` and the dashboard
//! draw with it.
//!
//! The picture needs no style sheet and no script, so that it is shown under any content security policy
//! and as a file of its own. Kinds differ in shape as well as in colour. Classes let a page with colours
//! of its own (a dark one) override them.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::time::Duration;

use aldis_signal::redact::redact;
use aldis_signal::time::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::display;
use super::time::{clock_time, elapsed, written};

/// What happened, in rows above one axis of time.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub(crate) struct Timeline {
    /// Where the axis begins.
    #[schemars(with = "String")]
    pub(crate) from: Timestamp,
    /// Where it ends.
    #[schemars(with = "String")]
    pub(crate) to: Timestamp,
    /// The rows, from top to bottom.
    pub(crate) lanes: Vec<Lane>,
}

/// A row: an agent, a task, a session.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub(crate) struct Lane {
    /// Whose.
    pub(crate) label: String,
    /// The task of a delivery that it is about.
    pub(crate) task: Option<String>,
    /// What took time.
    pub(crate) spans: Vec<Span>,
    /// Moments, drawn above the spans.
    pub(crate) marks: Vec<TimelineMark>,
}

/// Something that took time.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub(crate) struct Span {
    /// When it began.
    #[schemars(with = "String")]
    pub(crate) from: Timestamp,
    /// When it ended.
    #[schemars(with = "String")]
    pub(crate) to: Timestamp,
    /// What kind of thing it was.
    pub(crate) kind: SpanKind,
    /// What it was, for whoever points at it.
    pub(crate) title: String,
    /// The decision it began with.
    pub(crate) decision: Option<u64>,
}

/// What took time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum SpanKind {
    /// An agent worked.
    Work,
    /// A check ran.
    Check,
    /// A limit, a question, a pause.
    Wait,
}

/// A moment that matters.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub(crate) struct TimelineMark {
    /// When.
    #[schemars(with = "String")]
    pub(crate) at: Timestamp,
    /// What kind of thing it was.
    pub(crate) kind: MarkKind,
    /// What happened, for whoever points at it.
    pub(crate) title: String,
    /// The decision that it is.
    pub(crate) decision: Option<u64>,
}

/// How good a moment was.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum MarkKind {
    /// A claim that held, a good end.
    Good,
    /// A claim that did not hold, a crash, a bad end.
    Bad,
    /// A question, a decision.
    Note,
}

/// The size of the picture, in its own units.
const WIDTH: f64 = 960.0;
const LABELS: f64 = 180.0;
const RIGHT: f64 = 16.0;
const ROW: f64 = 28.0;
const TOP: f64 = 8.0;
const FOOT: f64 = 52.0;
/// How thick the bar of work is, that of a check, and that of a wait.
const BARS: [f64; 3] = [14.0, 8.0, 3.0];
/// What happened in a moment is still seen.
const NARROWEST: f64 = 1.5;
/// How many rows are drawn, and how much in one.
const LANES_MAX: usize = 60;
const PARTS_MAX: usize = 1_000;
/// How much of a label and of a title is shown.
const LABEL_MAX: usize = 24;
const TITLE_MAX: usize = 200;
/// How many steps the axis has at most.
const STEPS_MAX: u64 = 8;
/// Steps of the axis in seconds.
const STEPS: [u64; 16] =
    [1, 5, 10, 30, 60, 120, 300, 600, 900, 1_800, 3_600, 7_200, 10_800, 21_600, 43_200, 86_400];

impl Timeline {
    /// Leaves out what cannot be seen where there is too much: of each row the shortest spans, and of
    /// the marks those of the least weight. Returns how many.
    pub(crate) fn thin(&mut self, most: usize) -> usize {
        let mut left_out = 0;
        for lane in &mut self.lanes {
            left_out += keep(&mut lane.spans, most, |span| span.to.since(span.from).as_millis());
            left_out += keep(&mut lane.marks, most, |mark| match mark.kind {
                MarkKind::Bad => 2,
                MarkKind::Good => 1,
                MarkKind::Note => 0,
            });
        }
        left_out
    }
}

/// Keeps those that weigh most, in their order. Of equals the latest stay.
fn keep<T>(parts: &mut Vec<T>, most: usize, weight: impl Fn(&T) -> u128) -> usize {
    let surplus = parts.len().saturating_sub(most);
    if surplus == 0 {
        return 0;
    }
    let mut places: Vec<usize> = (0..parts.len()).collect();
    places.sort_by_key(|place| parts.get(*place).map(&weight));
    let dropped: BTreeSet<usize> = places.into_iter().take(surplus).collect();
    let mut place = 0..;
    parts.retain(|_| place.next().is_some_and(|place| !dropped.contains(&place)));
    surplus
}

/// Draws a timeline.
pub(crate) fn svg(timeline: &Timeline) -> String {
    let lanes = timeline.lanes.len().min(LANES_MAX);
    let height = TOP + ROW * lanes as f64 + FOOT;
    let mut out = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {height}\" width=\"{WIDTH}\" \
         height=\"{height}\" role=\"img\" font-family=\"system-ui, sans-serif\" font-size=\"12\">"
    );
    let spanned = elapsed(timeline.to.since(timeline.from));
    push(&mut out, format_args!("<title>Timeline: {spanned} in {lanes} rows</title>"));
    axis(&mut out, timeline, TOP + ROW * lanes as f64);
    for (row, lane) in timeline.lanes.iter().take(LANES_MAX).enumerate() {
        draw_lane(&mut out, timeline, lane, TOP + ROW * (row as f64 + 0.5));
    }
    legend(&mut out, height - 12.0);
    let more = timeline.lanes.len() - lanes;
    if more > 0 {
        push(&mut out, format_args!("<text x=\"{LABELS}\" y=\"{TOP}\">{more} more rows</text>"));
    }
    out.push_str("</svg>");
    out
}

fn draw_lane(out: &mut String, timeline: &Timeline, lane: &Lane, middle: f64) {
    let label = escaped(&lane.label, LABEL_MAX);
    push(
        out,
        format_args!(
            "<text x=\"{x}\" y=\"{y}\" text-anchor=\"end\" fill=\"currentColor\">{label}</text>",
            x = LABELS - 10.0,
            y = middle + 4.0
        ),
    );
    for span in lane.spans.iter().take(PARTS_MAX) {
        let (from, to) = (place(timeline, span.from), place(timeline, span.to));
        let (width, title) = ((to - from).max(NARROWEST), escaped(&span.title, TITLE_MAX));
        bar(out, span.kind, (from, middle, width), &title);
    }
    for mark in lane.marks.iter().take(PARTS_MAX) {
        let title = escaped(&mark.title, TITLE_MAX);
        let at = clock_time(mark.at);
        symbol(out, mark.kind, (place(timeline, mark.at), middle), &format!("{at} {title}"));
    }
}

fn bar(out: &mut String, kind: SpanKind, (x, middle, width): (f64, f64, f64), title: &str) {
    let (class, fill, height) = match kind {
        SpanKind::Work => ("work", "#3b82f6", BARS[0]),
        SpanKind::Check => ("check", "#8b5cf6", BARS[1]),
        SpanKind::Wait => ("wait", "#d97706", BARS[2]),
    };
    let y = middle - height / 2.0;
    push(
        out,
        format_args!(
            "<rect class=\"{class}\" x=\"{x:.1}\" y=\"{y:.1}\" width=\"{width:.1}\" height=\"{height}\" \
         fill=\"{fill}\"><title>{title}</title></rect>"
        ),
    );
}

fn symbol(out: &mut String, kind: MarkKind, (x, y): (f64, f64), title: &str) {
    let (class, color, path) = match kind {
        // A tick, a cross, a diamond.
        MarkKind::Good => ("good", "#16a34a", "l4,4 l7,-9"),
        MarkKind::Bad => ("bad", "#dc2626", "l9,9 m0,-9 l-9,9"),
        MarkKind::Note => ("note", "#d97706", "l5,-5 l5,5 l-5,5 z"),
    };
    let (x, y) = match kind {
        MarkKind::Good => (x - 5.0, y),
        MarkKind::Bad => (x - 4.5, y - 4.5),
        MarkKind::Note => (x - 5.0, y),
    };
    let line = format!("d=\"M{x:.1},{y:.1} {path}\" fill=\"none\"");
    push(
        out,
        format_args!(
            "<g class=\"{class}\"><path class=\"halo\" {line} stroke=\"#fff\" stroke-width=\"6\"/>\
         <path {line} stroke=\"{color}\" stroke-width=\"2.5\"/><title>{title}</title></g>"
        ),
    );
}

/// Lines and times below the rows.
fn axis(out: &mut String, timeline: &Timeline, bottom: f64) {
    let seconds = timeline.to.since(timeline.from).as_secs().max(1);
    let fits = STEPS.iter().find(|step| seconds / **step <= STEPS_MAX).copied();
    let step = fits.unwrap_or_else(|| (seconds / STEPS_MAX).div_ceil(86_400) * 86_400);
    let form = match step {
        0..60 => "%H:%M:%S",
        60..86_400 => "%H:%M",
        _ => "%m-%d",
    };
    let first = u64::try_from(timeline.from.as_millis()).unwrap_or_default().div_ceil(step * 1_000);
    for number in 0..=STEPS_MAX {
        let since_epoch = Duration::from_secs((first + number) * step);
        let at = Timestamp::from_millis(0).after(since_epoch);
        if at > timeline.to {
            break;
        }
        let (x, label) = (place(timeline, at), written(at, form));
        push(
            out,
            format_args!(
                "<path d=\"M{x:.1},{TOP} V{bottom}\" stroke=\"currentColor\" stroke-opacity=\"0.15\"/>\
             <text x=\"{x:.1}\" y=\"{y}\" text-anchor=\"middle\" fill=\"currentColor\">{label}</text>",
                y = bottom + 16.0
            ),
        );
    }
}

fn legend(out: &mut String, y: f64) {
    let mut x = LABELS;
    let text = |out: &mut String, x: f64, what: &str| {
        push(
            out,
            format_args!("<text x=\"{x}\" y=\"{}\" fill=\"currentColor\">{what}</text>", y + 4.0),
        );
    };
    for (kind, what) in
        [(SpanKind::Work, "work"), (SpanKind::Check, "check"), (SpanKind::Wait, "waiting")]
    {
        bar(out, kind, (x, y, 22.0), what);
        text(out, x + 28.0, what);
        x += 90.0;
    }
    for (kind, what) in [
        (MarkKind::Good, "held, complete"),
        (MarkKind::Bad, "refused, failed"),
        (MarkKind::Note, "question, notice"),
    ] {
        symbol(out, kind, (x, y), what);
        text(out, x + 12.0, what);
        x += 130.0;
    }
}

/// Where a moment is, from left to right.
fn place(timeline: &Timeline, at: Timestamp) -> f64 {
    let whole = timeline.to.since(timeline.from).as_millis().max(1) as f64;
    let part = at.since(timeline.from).as_millis() as f64;
    LABELS + (part / whole).clamp(0.0, 1.0) * (WIDTH - LABELS - RIGHT)
}

/// Words of others as the text of an element, without secrets.
fn escaped(text: &str, most: usize) -> String {
    let text = display::excerpt(&redact(text), most);
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

/// Writing to a string cannot fail.
fn push(out: &mut String, text: std::fmt::Arguments<'_>) {
    let _written = out.write_fmt(text);
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn at(seconds: i64) -> Timestamp {
        Timestamp::from_millis(1_794_787_200_000 + seconds * 1_000)
    }

    fn example() -> Timeline {
        let span = |from, to, kind, title: &str| Span {
            from: at(from),
            to: at(to),
            kind,
            title: title.to_owned(),
            decision: None,
        };
        let mark = |seconds, kind, title: &str| TimelineMark {
            at: at(seconds),
            kind,
            title: title.to_owned(),
            decision: None,
        };
        let lane = Lane {
            label: "developer <b>".to_owned(),
            task: None,
            spans: vec![
                span(0, 600, SpanKind::Work, "iteration 1"),
                span(600, 660, SpanKind::Check, "npm test"),
                span(660, 3_000, SpanKind::Wait, "rate limited"),
                span(3_000, 3_600, SpanKind::Work, "iteration 2 & last"),
            ],
            marks: vec![
                mark(660, MarkKind::Bad, "claims done: npm test failed"),
                mark(3_600, MarkKind::Good, "done"),
            ],
        };
        Timeline { from: at(0), to: at(3_600), lanes: vec![lane] }
    }

    #[test]
    fn a_run_is_drawn() {
        let svg = svg(&example());
        assert_eq!(svg.matches("class=\"work\"").count(), 3, "two of them and the legend: {svg}");
        assert!(svg.contains("developer &lt;b&gt;") && svg.contains("2 &amp; last"), "{svg}");
        // Half past, on the axis, in the middle.
        let middle = LABELS + (WIDTH - LABELS - RIGHT) / 2.0;
        assert!(svg.contains(&format!("x=\"{middle:.1}\"")) && svg.contains(":30</text>"), "{svg}");
        assert!(!svg.contains("style") && !svg.contains("href"), "any policy lets it pass: {svg}");
    }

    #[test]
    fn a_moment_and_nothing_at_all_are_drawn() {
        let mut empty = example();
        (empty.to, empty.lanes[0].spans[0].to) = (empty.from, empty.from);
        assert!(svg(&empty).contains("width=\"1.5\""));
        empty.lanes.clear();
        assert!(svg(&empty).ends_with("</svg>"));
    }

    #[test]
    fn what_is_too_much_is_thinned_by_weight() {
        let mut timeline = example();
        assert_eq!(timeline.thin(4), 0);
        assert_eq!(timeline.thin(1), 4);
        let lane = &timeline.lanes[0];
        assert_eq!(lane.spans[0].title, "rate limited", "the longest");
        assert_eq!(lane.marks[0].kind, MarkKind::Bad);
    }

    proptest! {
        /// Whatever agents say, the picture is well formed and holds no element of theirs.
        #[test]
        fn words_stay_words(label: String, title: String, from in 0..9_999_i64, to in 0..9_999_i64) {
            let mut timeline = example();
            timeline.lanes[0].label = label;
            timeline.lanes[0].spans[0].title = title;
            (timeline.from, timeline.to) = (at(from), at(to));
            let plain = svg(&example());
            let svg = svg(&timeline);
            prop_assert_eq!(svg.matches("<rect").count(), plain.matches("<rect").count());
            prop_assert_eq!(svg.matches("<title>").count(), svg.matches("</title>").count());
            prop_assert!(!svg.contains("NaN") && !svg.contains("inf"));
        }
    }
}
