//! The timeline of a run in cells: the same rows, kinds and words as the picture of the dashboard.

use aldis_signal::time::Timestamp;
use ratatui::text::{Line, Span};

use super::palette::Palette;
use super::words::wrapped;
use crate::view::display;
use crate::view::time::{clock_time, elapsed};
use crate::view::timeline::{Lane, MarkKind, SpanKind, Timeline};
use crate::view::wire::report::{ClaimFate, ReportClaim};

/// How much of a label is shown, and the fewest cells that a row is worth drawing in.
const LABEL: usize = 16;
const CELLS_MIN: usize = 10;
/// How many rows are drawn.
const LANES_MAX: usize = 12;

/// Draws a timeline; nothing if there is no room or nothing happened.
pub(super) fn lines(palette: Palette, timeline: &Timeline, width: usize) -> Vec<Line<'static>> {
    let cells = width.saturating_sub(LABEL + 1);
    let lanes = timeline.lanes.iter().filter(|it| !it.spans.is_empty() || !it.marks.is_empty());
    let rows: Vec<Line<'static>> =
        lanes.take(LANES_MAX).map(|lane| row(palette, timeline, lane, cells)).collect();
    if cells < CELLS_MIN || rows.is_empty() {
        return Vec::new();
    }
    let (from, to) = (clock_time(timeline.from), clock_time(timeline.to));
    let spanned = elapsed(timeline.to.since(timeline.from));
    let middle = cells.saturating_sub(from.len() + to.len());
    let axis = format!("{:LABEL$} {from}{spanned:^middle$}{to}", "");
    let legend = "█ work  ▒ check  ─ waiting  ✔ held  ✘ refused  ◆ question, notice";
    let mut lines = vec![Line::default()];
    lines.extend(rows);
    lines.push(Line::from(palette.dim(axis)));
    lines.push(Line::from(palette.dim(legend)));
    lines
}

fn row(palette: Palette, timeline: &Timeline, lane: &Lane, cells: usize) -> Line<'static> {
    let mut row = vec![' '; cells];
    let place = |at: Timestamp| {
        let whole = timeline.to.since(timeline.from).as_millis().max(1);
        let part = at.since(timeline.from).as_millis().min(whole);
        let last = cells.saturating_sub(1);
        usize::try_from(part * last as u128 / whole).unwrap_or(last)
    };
    for span in &lane.spans {
        let sign = match span.kind {
            SpanKind::Work => '█',
            SpanKind::Check => '▒',
            SpanKind::Wait => '─',
        };
        let cells = row.get_mut(place(span.from)..=place(span.to));
        cells.into_iter().flatten().for_each(|cell| *cell = sign);
    }
    for mark in &lane.marks {
        let sign = match mark.kind {
            MarkKind::Good => '✔',
            MarkKind::Bad => '✘',
            MarkKind::Note => '◆',
        };
        row.get_mut(place(mark.at)).into_iter().for_each(|cell| *cell = sign);
    }
    let label = display::excerpt(&lane.label, LABEL - 2);
    let mut spans = vec![palette.dim(format!("{label:<LABEL$} "))];
    spans.extend(row.chunk_by(|one, other| one == other).map(|same| painted(palette, same)));
    Line::from(spans)
}

fn painted(palette: Palette, same: &[char]) -> Span<'static> {
    let text: String = same.iter().collect();
    match same.first() {
        Some('✔') => palette.good(text),
        Some('✘') => palette.bad(text),
        Some('◆' | '─') => palette.warn(text),
        _ => palette.plain(text),
    }
}

/// A claim, and what became of it.
pub(super) fn claim(palette: Palette, claim: &ReportClaim, width: usize) -> Vec<Line<'static>> {
    let (at, quote) = (clock_time(claim.at), display::excerpt(&claim.quote, 80));
    let (fate, because) = match claim.fate {
        ClaimFate::Held => ("✔ held", &*claim.because),
        ClaimFate::Refused => ("✘ did not hold", &*claim.because),
        ClaimFate::Open => ("● not judged yet", ""),
    };
    let text = format!("{at} {fate}: \"{quote}\" {because}");
    wrapped(&text, width, |text| match claim.fate {
        ClaimFate::Held => palette.good(text),
        ClaimFate::Refused => palette.bad(text),
        ClaimFate::Open => palette.plain(text),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::view::timeline::{Span as Part, TimelineMark};

    fn at(seconds: i64) -> Timestamp {
        Timestamp::from_millis(1_772_445_600_000 + seconds * 1_000)
    }

    #[test]
    fn kinds_differ_in_shape() {
        let span = |from, to, kind| Part {
            from: at(from),
            to: at(to),
            kind,
            title: String::new(),
            decision: None,
        };
        let mark = |seconds, kind| TimelineMark {
            at: at(seconds),
            kind,
            title: String::new(),
            decision: None,
        };
        let lane = Lane {
            label: "the agent".to_owned(),
            task: None,
            spans: vec![
                span(0, 50, SpanKind::Work),
                span(50, 70, SpanKind::Check),
                span(70, 100, SpanKind::Wait),
            ],
            marks: vec![mark(70, MarkKind::Bad), mark(100, MarkKind::Note)],
        };
        let timeline = Timeline { from: at(0), to: at(100), lanes: vec![lane] };
        let palette = Palette { color: false };
        let text = |width| -> Vec<String> {
            lines(palette, &timeline, width).iter().map(ToString::to_string).collect()
        };
        assert_eq!(text(38)[1], "the agent        ██████████▒▒▒▒✘─────◆");
        assert!(
            text(38)[2].contains("10:00:00") && text(38)[2].ends_with("10:01:40"),
            "{:?}",
            text(38)
        );
        assert_eq!(text(20), [""; 0], "no room");
    }
}
