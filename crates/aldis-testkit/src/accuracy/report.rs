//! The sums, by source and by phenomenon, and the Markdown that shows them.

use std::fmt::{self, Write as _};

use super::labelled::{HardEnding, Labelled};
use super::{Matching, Score, Tally, judge};
use crate::corpus::{Phenomenon, Sample, phenomena};

/// Sums of both matchers, in the order of [`Matching::ALL`].
type Both = [Tally; 2];

/// What careful matching made of some of the hard endings.
#[derive(Clone, Copy, Debug)]
struct HardRow {
    decided_by: &'static str,
    strict: bool,
    tally: Tally,
}

/// What was measured.
#[derive(Clone, Debug)]
pub struct Report {
    sources: Vec<(&'static str, Both)>,
    hard: Vec<HardRow>,
    generated: Vec<(Phenomenon, Both)>,
}

impl Default for Report {
    fn default() -> Self {
        let generated = phenomena().into_iter().map(|known| (known, Both::default())).collect();
        Self { sources: Vec::new(), hard: Vec::new(), generated }
    }
}

impl Report {
    /// Measures labelled messages of one source; returns those that careful matching gets wrong.
    pub fn labelled<'l>(&mut self, source: &'static str, all: &'l [Labelled]) -> Vec<&'l Labelled> {
        let mut both = Both::default();
        let mut wrong = Vec::new();
        for message in all {
            for (tally, matching) in both.iter_mut().zip(Matching::ALL) {
                let verdict = message.judge(matching);
                tally.add(message.is_genuine(), verdict);
                if matching == Matching::Careful && !verdict.is_right() {
                    wrong.push(message);
                }
            }
        }
        self.sources.push((source, both));
        wrong
    }

    /// Measures one generated message; returns whether careful matching is right.
    pub fn generated(&mut self, sample: &Sample) -> bool {
        let row = self.generated.iter_mut().find(|(known, _)| known.name == sample.phenomenon);
        let Some((_, both)) = row else { return true };
        let mut right = true;
        for (tally, matching) in both.iter_mut().zip(Matching::ALL) {
            let verdict = judge(matching, sample);
            tally.add(!sample.genuine.is_empty(), verdict);
            right &= matching != Matching::Careful || verdict.is_right();
        }
        right
    }

    /// Measures the hard endings.
    pub fn hard(&mut self, all: &[HardEnding]) {
        for decided_by in ["structure", "words"] {
            let chosen = || all.iter().filter(|ending| ending.decided_by == decided_by);
            for strict in [false, true] {
                let mut tally = Tally::default();
                for ending in chosen() {
                    let claimed = ending.claims(strict);
                    let (false_stop, miss) = (claimed && !ending.claim, !claimed && ending.claim);
                    tally.add(ending.claim, Score { false_stop, miss });
                }
                self.hard.push(HardRow { decided_by, strict, tally });
            }
        }
    }

    /// Returns the sums of the generated messages.
    pub fn total(&self, matching: Matching) -> Tally {
        let mut total = Tally::default();
        for (_, [reference, careful]) in &self.generated {
            total.merge(match matching {
                Matching::Reference => *reference,
                Matching::Careful => *careful,
            });
        }
        total
    }

    /// Returns whether careful matching makes no error where none is allowed: on labelled messages
    /// and on generated ones.
    pub fn is_clean(&self) -> bool {
        self.sources.iter().all(|(_, [_, careful])| careful.errors() == 0)
            && self.total(Matching::Careful).errors() == 0
    }
}

fn row(out: &mut String, name: &str, [reference, careful]: &Both) -> fmt::Result {
    let Tally { messages, genuine, .. } = reference;
    writeln!(
        out,
        "| {name} | {genuine} | {} | {} | {} | {} | {} |",
        messages - genuine,
        reference.false_stops,
        reference.misses,
        careful.false_stops,
        careful.misses
    )
}

const HEAD: &str = "genuine | false | reference: false stops | reference: misses | \
                    careful: false stops | careful: misses |\n|---|--:|--:|--:|--:|--:|--:|";

fn markdown(report: &Report, out: &mut String) -> fmt::Result {
    writeln!(out, "# Accuracy\n")?;
    writeln!(
        out,
        "A false stop is a message in which a signal is accepted that was not said, a miss one in \
         which a signal that was said is not accepted. *Genuine* messages hold a signal, *false* \
         ones only look like it.\n"
    )?;
    writeln!(out, "| source | {HEAD}")?;
    for (source, both) in &report.sources {
        row(out, source, both)?;
    }
    row(out, "generated", &Matching::ALL.map(|matching| report.total(matching)))?;
    writeln!(
        out,
        "\n| hard endings | false | accepted | genuine | refused |\n|---|--:|--:|--:|--:|"
    )?;
    for HardRow { decided_by, strict, tally } in &report.hard {
        let how = if *strict { ", `strict`" } else { "" };
        let Tally { messages, genuine, false_stops, misses } = *tally;
        let (untrue, percent) =
            (messages - genuine, |part: usize, all: usize| 100 * part / all.max(1));
        writeln!(
            out,
            "| decided by {decided_by}{how} | {untrue} | {false_stops} ({} %) | {genuine} | {misses} ({} %) |",
            percent(false_stops, untrue),
            percent(misses, genuine)
        )?;
    }
    writeln!(out, "\n| phenomenon | {HEAD}")?;
    for (phenomenon, both) in &report.generated {
        row(out, phenomenon.name, both)?;
    }
    Ok(())
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut out = String::new();
        markdown(self, &mut out)?;
        f.write_str(&out)
    }
}
