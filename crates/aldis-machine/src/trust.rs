//! Who is believed where an agent reports about one subject in several ways within one turn (spec 0,
//! Trust): what came in the stronger way. One rule for every machine.
//!
//! A weaker report that says the same counts once, as the stronger one; one that says something else
//! is outranked: its machine refuses it and quotes it.

use std::collections::{BTreeMap, BTreeSet};

use aldis_signal::signal::{Meaning, Via};

/// A report, as far as another one can outrank it.
#[derive(Clone, Debug)]
pub(crate) struct RankedReport<'c> {
    /// What it is about, and where several agents may report, who reports.
    pub(crate) subject: (&'c str, &'c str),
    pub(crate) name: &'c str,
    pub(crate) meaning: Meaning,
    pub(crate) via: Via,
}

/// How a report stands among the others of its turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Rank {
    Counts,
    /// A stronger one says the same.
    Repeats,
    /// A stronger one, which came in this way, says something else.
    Outranked(Via),
}

/// What was reported about one subject: how, what, and under which name.
type Reports<'c> = BTreeSet<(Via, Meaning, &'c str)>;

/// Returns how each of the reports of one turn stands.
pub(crate) fn ranks(claims: &[RankedReport<'_>]) -> Vec<Rank> {
    let first = claims.first().map(|claim| claim.via);
    // Nearly always all came in one way.
    if claims.iter().all(|claim| Some(claim.via) == first) {
        return vec![Rank::Counts; claims.len()];
    }
    let mut reports: BTreeMap<(&str, &str), Reports<'_>> = BTreeMap::new();
    for claim in claims.iter().filter(|claim| claim.meaning.is_decisive()) {
        let about = reports.entry(claim.subject).or_default();
        about.insert((claim.via, claim.meaning, claim.name));
    }
    claims.iter().map(|claim| rank(claim, reports.get(&claim.subject))).collect()
}

fn rank(claim: &RankedReport<'_>, about: Option<&Reports<'_>>) -> Rank {
    let Some(about) = about.filter(|_| claim.meaning.is_decisive()) else { return Rank::Counts };
    let stronger = || about.iter().rev().take_while(|(via, ..)| *via > claim.via);
    let Some((strongest, ..)) = stronger().next() else { return Rank::Counts };
    let same = || stronger().filter(|(_, meaning, _)| *meaning == claim.meaning);
    match () {
        () if same().any(|(.., name)| *name == claim.name) => Rank::Repeats,
        // Two names for one thing do not contradict each other.
        () if same().next().is_some() => Rank::Counts,
        () => Rank::Outranked(*strongest),
    }
}

/// Says why an outranked report does not count, as a clause.
pub(crate) fn outranked(by: Via) -> String {
    format!("what it reported {} says something else, and counts more", how(by))
}

/// How a report came, as an adverb.
pub(crate) fn how(via: Via) -> &'static str {
    match via {
        Via::Said => "in its output",
        Via::Token => "in its output, with the run token",
        Via::Receipt => "with `aldis signal`",
        Via::Call => "by tool call",
    }
}

#[cfg(test)]
mod tests {
    //! One table for the rule; that each machine keeps it is in the tables of the machines.

    use super::*;
    use Meaning::{Blocked, Done, Failed, Progress};
    use Rank::{Counts, Outranked, Repeats};
    use Via::{Call, Receipt, Said, Token};

    #[test]
    fn the_stronger_way_wins() {
        for (name, reports, expected) in [
            ("one way", vec![("a", "D", Done, Said), ("a", "F", Failed, Said)], vec![Counts; 2]),
            (
                "the same",
                vec![("a", "D", Done, Said), ("a", "D", Done, Call)],
                vec![Repeats, Counts],
            ),
            ("order", vec![("a", "D", Done, Call), ("a", "D", Done, Said)], vec![Counts, Repeats]),
            (
                "contradiction",
                vec![("a", "D", Done, Said), ("a", "B", Blocked, Receipt)],
                vec![Outranked(Receipt), Counts],
            ),
            (
                "by the strongest",
                vec![("a", "D", Done, Call), ("a", "B", Blocked, Token), ("a", "F", Failed, Said)],
                vec![Counts, Outranked(Call), Outranked(Call)],
            ),
            (
                "the stronger ones disagree",
                vec![("a", "D", Done, Call), ("a", "B", Blocked, Call), ("a", "B", Blocked, Said)],
                vec![Counts, Counts, Repeats],
            ),
            ("two names", vec![("a", "D", Done, Call), ("a", "E", Done, Said)], vec![Counts; 2]),
            (
                "two subjects",
                vec![("a", "D", Done, Call), ("b", "F", Failed, Said)],
                vec![Counts; 2],
            ),
            (
                "progress is no claim",
                vec![
                    ("a", "P", Progress, Call),
                    ("a", "D", Done, Said),
                    ("a", "P", Progress, Said),
                ],
                vec![Counts; 3],
            ),
            ("nothing", vec![], vec![]),
        ] {
            let claims: Vec<RankedReport<'_>> = reports
                .iter()
                .map(|(subject, name, meaning, via)| RankedReport {
                    subject: ("", subject),
                    name,
                    meaning: *meaning,
                    via: *via,
                })
                .collect();
            assert_eq!(ranks(&claims), expected, "{name}");
        }
    }
}
