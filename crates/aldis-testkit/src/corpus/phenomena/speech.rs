//! Who says it, and whether anything is said at all.

use aldis_signal::Role;

use super::structure;
use crate::corpus::claims::{self, ALL};
use crate::corpus::filler;
use crate::corpus::{Phenomenon, Rng, SampleDraft};

pub(super) const PHENOMENA: &[Phenomenon] = &[
    structure("plain", ALL, plain),
    structure("origin", ALL, origin),
    structure("prompt_echoed", ALL, prompt_echoed),
];

/// The signal at the end, or the same news without one.
fn plain(rng: &mut Rng, dialect: &'static str, genuine: bool) -> SampleDraft {
    let before = filler::before(rng);
    if genuine {
        let claim = claims::any(rng, dialect);
        return SampleDraft::heard(format!("{before}{}", claim.text), vec![claim.expected]);
    }
    let words = rng.pick(&[
        "The task is complete.",
        "All done!",
        "Everything is finished and ready for review.",
        "My turn is complete.",
        "Status: complete",
        "Progress is at 100 %.",
    ]);
    SampleDraft::unheard(format!("{before}{words}"))
}

/// Only the agent's own words count, and the final message of a sub-agent.
fn origin(rng: &mut Rng, dialect: &'static str, genuine: bool) -> SampleDraft {
    let claim = claims::any(rng, dialect);
    let text = filler::around(rng, dialect, &claim.text);
    let (role, expected) = match genuine {
        true => (rng.pick(&[Role::Assistant, Role::Subagent]), vec![claim.expected]),
        false => (rng.pick(&[Role::User, Role::Tool, Role::System, Role::Host]), Vec::new()),
    };
    SampleDraft { text, role, genuine: expected }
}

/// A prompt asks for the very signal it wants.
fn prompt_echoed(rng: &mut Rng, dialect: &'static str, genuine: bool) -> SampleDraft {
    let claim = claims::done(rng, dialect);
    let task = filler::paragraph(rng);
    if genuine {
        let text = format!("{task}\n\n{}\n\n{}", filler::lead(rng), claim.text);
        return SampleDraft::heard(text, vec![claim.expected]);
    }
    let text = format!("{task}\n\nWhen you are finished, say:\n\n{}", claim.text);
    SampleDraft { text, role: Role::User, genuine: Vec::new() }
}
