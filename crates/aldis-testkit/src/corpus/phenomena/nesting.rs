//! Contexts inside contexts: what opens, closes or quotes only outside another one.

use super::{structure, twins};
use crate::corpus::claims::{self, ALL, TAGS, WrittenSignal};
use crate::corpus::filler;
use crate::corpus::{Phenomenon, Rng, SampleDraft};

const NO_TURN: &[&str] =
    &["caw", "delivery", "chorus", "pilot", "promise", "ralph-status", "ralphex", "event", "axiom"];
const NO_PILOT: &[&str] =
    &["caw", "delivery", "chorus", "turn", "promise", "ralph-status", "ralphex", "event", "axiom"];

pub(super) const PHENOMENA: &[Phenomenon] = &[
    structure("comment_in_fence", ALL, comment_in_fence),
    structure("comment_in_code", ALL, comment_in_code),
    twins("fence_in_comment", ALL, ALL, fence_in_comment),
    structure("fence_closer_with_words", NO_PILOT, fence_closer_with_words),
    structure("fence_in_line", NO_PILOT, fence_in_line),
    structure("fence_other_mark", NO_PILOT, fence_other_mark),
    structure("code_with_longer_run", TAGS, code_with_longer_run),
    structure("quoted_then_said", NO_TURN, quoted_then_said),
    structure("many_pieces", ALL, many_pieces),
];

fn twin(
    rng: &mut Rng,
    dialect: &str,
    claim: WrittenSignal,
    core: &str,
    genuine: bool,
) -> SampleDraft {
    let text = filler::around(rng, dialect, core);
    SampleDraft::heard(text, if genuine { vec![claim.expected] } else { Vec::new() })
}

/// In a fence `<!--` is code; outside it hides what follows.
fn comment_in_fence(rng: &mut Rng, dialect: &'static str, genuine: bool) -> SampleDraft {
    let (claim, lead) = (claims::any(rng, dialect), filler::lead(rng));
    let core = match genuine {
        true => format!("```html\n<!-- open\n```\n\n{lead}\n\n{}", claim.text),
        false => format!("```html\n<p>\n```\n\n<!-- open\n\n{lead}\n\n{}", claim.text),
    };
    twin(rng, dialect, claim, &core, genuine)
}

fn comment_in_code(rng: &mut Rng, dialect: &'static str, genuine: bool) -> SampleDraft {
    let (claim, lead) = (claims::any(rng, dialect), filler::lead(rng));
    let core = match genuine {
        true => format!("The lexer knows `<!--` now.\n\n{lead}\n\n{}", claim.text),
        false => format!("The lexer is new. <!-- later:\n\n{lead}\n\n{}", claim.text),
    };
    twin(rng, dialect, claim, &core, genuine)
}

/// In a comment a fence is text, and ends with the comment.
fn fence_in_comment(rng: &mut Rng, dialect: &'static str, genuine: bool) -> SampleDraft {
    let (claim, lead) = (claims::any(rng, dialect), filler::lead(rng));
    let core = match genuine {
        true => format!("<!--\n```\nold\n-->\n\n{lead}\n\n{}", claim.text),
        false => format!("<!--\n```\nold\n```\n\n{}\n-->\n\n{lead}", claim.text),
    };
    twin(rng, dialect, claim, &core, genuine)
}

/// A closing fence stands alone on its line; with words behind it the fence goes on.
fn fence_closer_with_words(rng: &mut Rng, dialect: &'static str, genuine: bool) -> SampleDraft {
    let (claim, lead) = (claims::any(rng, dialect), filler::lead(rng));
    let closer = if genuine { "```  " } else { "``` end" };
    let core = format!("```sh\ncargo build\n{closer}\n\n{lead}\n\n{}", claim.text);
    twin(rng, dialect, claim, &core, genuine)
}

/// Three back-quotes inside a line open no fence.
fn fence_in_line(rng: &mut Rng, dialect: &'static str, genuine: bool) -> SampleDraft {
    let (claim, lead) = (claims::any(rng, dialect), filler::lead(rng));
    let first = if genuine { "A fence is ```sh``` here." } else { "```sh" };
    let core = format!("{first}\n\n{lead}\n\n{}", claim.text);
    twin(rng, dialect, claim, &core, genuine)
}

/// Tildes do not close back-quotes.
fn fence_other_mark(rng: &mut Rng, dialect: &'static str, genuine: bool) -> SampleDraft {
    let (claim, lead) = (claims::any(rng, dialect), filler::lead(rng));
    let (open, close) = rng.pick(&[("```", "~~~"), ("~~~", "```"), ("````", "```")]);
    let close = if genuine { open } else { close };
    let core = format!("{open}text\nstep 1\n{close}\n\n{lead}\n\n{}", claim.text);
    twin(rng, dialect, claim, &core, genuine)
}

/// Inline code ends at a run of the same length only.
fn code_with_longer_run(rng: &mut Rng, dialect: &'static str, genuine: bool) -> SampleDraft {
    let claim = claims::any(rng, dialect);
    let core = match genuine {
        true => format!("Quoted as ``a ` b`` there.\n\n{}", claim.text),
        false => format!("Quoted as ``a ` {} ` b`` there.", claim.text),
    };
    twin(rng, dialect, claim, &core, genuine)
}

/// An example and then the real thing: one signal, not two and not none.
fn quoted_then_said(rng: &mut Rng, dialect: &'static str, genuine: bool) -> SampleDraft {
    let (shown, said) = (claims::any(rng, dialect), claims::any(rng, dialect));
    let example = format!("````markdown\n{}\n````", shown.text);
    let lead = filler::lead(rng);
    let core = match genuine {
        true => format!("{example}\n\n{lead}\n\n{}", said.text),
        false => format!("{example}\n\n{lead}\n\n{example}"),
    };
    twin(rng, dialect, said, &core, genuine)
}

/// A long reply, with the signal after everything or in one of its quotations.
fn many_pieces(rng: &mut Rng, dialect: &'static str, genuine: bool) -> SampleDraft {
    let claim = claims::any(rng, dialect);
    let count = rng.between(8, 30);
    let pieces: Vec<String> = (0..count).map(|_| filler::piece(rng)).collect();
    let pieces = pieces.join("\n\n");
    let lead = filler::lead(rng);
    if genuine {
        return SampleDraft::heard(
            format!("{pieces}\n\n{lead}\n\n{}", claim.text),
            vec![claim.expected],
        );
    }
    SampleDraft::unheard(format!(
        "{pieces}\n\n````text\n{}\n````\n\n{pieces}\n\n{lead}",
        claim.text
    ))
}
