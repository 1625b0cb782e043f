//! The sums, by source and by phenomenon, and the Markdown that shows them.

use std::fmt::{self, Write as _};

use super::labelled::Labelled;
use super::{Matching, Tally, judge};
use crate::corpus::{Decided, Phenomenon, Sample, phenomena};

/// Sums of both matchers, in the order of [`Matching::ALL`].
type Both = [Tally; 2];

/// What was measured.
#[derive(Clone, Debug)]
pub struct Report {
    sources: Vec<(&'static str, Both)>,
    generated: Vec<(Phenomenon, Both)>,
}

impl Default for Report {
    fn default() -> Self {
        let generated = phenomena().into_iter().map(|known| (known, Both::default())).collect();
        Self { sources: Vec::new(), generated }
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

    /// Returns the sums of the generated messages that one kind of evidence decides.
    pub fn total(&self, matching: Matching, decided: Decided) -> Tally {
        let mut total = Tally::default();
        for (_, both) in self.generated.iter().filter(|(known, _)| known.decided == decided) {
            let [reference, careful] = *both;
            total.merge(match matching {
                Matching::Reference => reference,
                Matching::Careful => careful,
            });
        }
        total
    }

    /// Returns whether careful matching makes no error where none is allowed: on labelled messages
    /// and where structure decides.
    pub fn is_clean(&self) -> bool {
        self.sources.iter().all(|(_, [_, careful])| careful.errors() == 0)
            && self.total(Matching::Careful, Decided::Structure).errors() == 0
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
    for (name, decided) in [
        ("generated, decided by structure", Decided::Structure),
        ("generated, decided by words", Decided::Words),
    ] {
        row(out, name, &Matching::ALL.map(|matching| report.total(matching, decided)))?;
    }
    writeln!(out, "\n| phenomenon | {HEAD}")?;
    for (phenomenon, both) in &report.generated {
        let words = if phenomenon.decided == Decided::Words { " (words)" } else { "" };
        row(out, &format!("{}{words}", phenomenon.name), both)?;
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
