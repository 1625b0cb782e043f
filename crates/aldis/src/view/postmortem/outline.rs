//! A postmortem as a page: the picture of the night first, then the sessions that need a look.

use super::{Remark, Summary};
use crate::view::display::excerpt;
use crate::view::page::{Block, PageMark};
use crate::view::time::{elapsed, written};
use crate::view::timeline::{Lane, MarkKind, Span, SpanKind, Timeline, TimelineMark};
use crate::view::wire::postmortem::{ClaimVerdict, PostmortemLine, Waited};

/// How much of a prompt stands beside its session.
const ASKED_MAX: usize = 400;

/// Puts a postmortem in order. `timeline` is [`Summary::timeline`].
pub(crate) fn blocks<'s>(summary: &Summary<'s>, timeline: &'s Timeline) -> Vec<Block<'s>> {
    let failed = summary.sessions.iter().any(PostmortemLine::has_failure);
    let mut blocks = vec![
        Block::Title {
            title: summary.title().into(),
            outcome: summary.outcome().into(),
            mark: if failed { PageMark::Bad } else { PageMark::Good },
        },
        Block::Sentence(summary.totals()),
    ];
    if !timeline.lanes.is_empty() {
        blocks.extend([Block::Heading("Timeline".into()), Block::Picture(timeline)]);
    }
    let (noted, quiet): (Vec<_>, Vec<_>) =
        summary.sessions.iter().partition(|line| !line.remarks().is_empty());
    noted.into_iter().for_each(|line| session(summary, line, &mut blocks));
    if !quiet.is_empty() {
        let rows = quiet.into_iter().map(|line| {
            let claims = line.claims_words().unwrap_or_default();
            vec![line.name(), line.figures(summary.now).join(" · "), claims, line.file.clone()]
        });
        let (head, rows) = (&["Session", "Figures", "Claims", "File"][..], rows.collect());
        blocks.push(Block::Heading("Nothing to look at".into()));
        blocks.push(Block::Table { head, rows });
    }
    blocks
}

/// A session that needs a look: what was asked of it, and each thing with its place.
fn session<'s>(summary: &Summary<'_>, line: &'s PostmortemLine, blocks: &mut Vec<Block<'s>>) {
    let asked = line.asked.as_deref().map(|asked| ("Asked", excerpt(asked, ASKED_MAX)));
    let mut facts: Vec<(&'static str, String)> = asked.into_iter().collect();
    facts.push(("Figures", line.figures(summary.now).join(" · ")));
    facts.extend(line.claims_words().map(|words| ("Claims", words)));
    facts.push(("File", line.file.clone()));
    let rows = line.remarks().into_iter().map(|Remark { failure, sentence, line }| {
        let sign = if failure { "✗" } else { "!" };
        vec![line.to_string(), format!("{sign} {sentence}")]
    });
    blocks.push(Block::Heading(line.name().into()));
    blocks.push(Block::Facts(facts));
    blocks.push(Block::Table { head: &["Line", "What"], rows: rows.collect() });
    if line.unlisted() > 0 {
        blocks.push(Block::Sentence(format!("And {} more.", line.unlisted())));
    }
}

impl Summary<'_> {
    /// Returns what the page is about.
    pub(crate) fn title(&self) -> String {
        format!("Postmortem: {}", self.window)
    }

    /// Returns when each session worked, waited, claimed and failed, the earliest first.
    pub(crate) fn timeline(&self) -> Timeline {
        let timed = self.sessions.iter().filter_map(|line| Some((line.began?, line.ended?, line)));
        let mut timed: Vec<_> = timed.collect();
        timed.sort_by_key(|(began, ..)| *began);
        let from = timed.iter().map(|(began, ..)| *began).min().unwrap_or(self.now);
        let to = timed.iter().map(|(_, ended, _)| *ended).max().unwrap_or(self.now);
        let lanes = timed.into_iter().map(|(.., line)| lane(line)).collect();
        Timeline { from, to, lanes }
    }
}

/// The row of a session: what is no wait is work.
fn lane(line: &PostmortemLine) -> Lane {
    let (Some(began), Some(ended)) = (line.began, line.ended) else { return Lane::default() };
    let title = line.asked.clone().unwrap_or_else(|| line.name());
    let work =
        |from, to| Span { from, to, kind: SpanKind::Work, title: title.clone(), decision: None };
    let (mut spans, mut at) = (Vec::new(), began);
    for &Waited { from, until } in line.waits.iter().filter(|wait| wait.until > began) {
        let from = from.max(began);
        if from > at {
            spans.push(work(at, from));
        }
        let title = format!("waited {}", elapsed(until.since(from)));
        spans.push(Span { from, to: until, kind: SpanKind::Wait, title, decision: None });
        at = until.max(at);
    }
    if ended > at || spans.is_empty() {
        spans.push(work(at, ended));
    }
    let claims = line.claims.iter().filter_map(|claim| {
        let (kind, what) = match claim.verdict {
            ClaimVerdict::Contradicted => (MarkKind::Bad, "contradicted by a failed check"),
            ClaimVerdict::Confirmed => (MarkKind::Good, "confirmed by passed checks"),
            ClaimVerdict::Unchecked => (MarkKind::Note, "no check"),
            ClaimVerdict::Outdated => (MarkKind::Note, "files were written after the checks"),
        };
        let title = format!("claims done ({}): {what}, line {}", claim.words, claim.line);
        Some(TimelineMark { at: claim.at?, kind, title, decision: None })
    });
    let found = line.findings.iter().filter_map(|found| {
        let kind = if found.failure { MarkKind::Bad } else { MarkKind::Note };
        let Remark { sentence, line, .. } = super::incident(found);
        let title = format!("{sentence}, line {line}");
        Some(TimelineMark { at: found.at?, kind, title, decision: None })
    });
    // Sessions in one project have one name.
    let label = format!("{} {}", written(began, "%H:%M"), line.name());
    Lane { label, task: None, spans, marks: claims.chain(found).collect() }
}
