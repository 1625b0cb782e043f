//! Claims that only the words around them decide: talked about, or taken back.
//!
//! The sentences are what agents write, and the labels are what a reader would say. They are not
//! derived from the scanner's word tables, so some must be expected to defeat them.

use crate::corpus::claims;
use crate::corpus::filler;
use crate::corpus::{Decided, Draft, Phenomenon, Rng};

/// Dialects with claims.
const CLAIMING: &[&str] =
    &["caw", "delivery", "chorus", "turn", "pilot", "promise", "ralph-status", "ralphex", "axiom"];
const NO_TURN: &[&str] =
    &["caw", "delivery", "chorus", "pilot", "promise", "ralph-status", "ralphex", "axiom"];
const INLINE: &[&str] = &["chorus", "promise", "ralphex", "axiom"];

pub(super) const PHENOMENA: &[Phenomenon] = &[
    words("mentioned", CLAIMING, mentioned),
    words("mentioned_inline", INLINE, mentioned_inline),
    words("retracted", NO_TURN, retracted),
];

const fn words(
    name: &'static str,
    dialects: &'static [&'static str],
    build: fn(&mut Rng, &'static str, bool) -> Draft,
) -> Phenomenon {
    Phenomenon { name, decided: Decided::Words, genuine_in: dialects, false_in: dialects, build }
}

/// What stands on the line before a claim that is not made.
const TALK: &[&str] = &[
    "When everything passes I will print this:",
    "The expected completion block is:",
    "Here is an example of the signal:",
    "The format of the final status block is as follows:",
    "I must not send the following signal yet:",
    "After the fix I'm going to emit this marker:",
    "Once the pipeline is through I should output:",
    "For reference, the signal to be printed at the end:",
    "Before I can write the completion signal I need the fixtures:",
    "My instructions say to reply with this tag after the last step:",
    "Two items are open, so I cannot claim",
    "As soon as the reviewer agrees, I'll respond with",
    "The template for the closing line:",
    "A sample of the marker:",
    "I would only write this signal after a second review:",
    "Don't output this signal until the migration ran:",
    "The coordinator told me to end with the following marker when all is merged:",
    "If the audit agrees, the agent prints:",
    "Still to do: the docs. Then the next step is to send:",
    "I have not earned this signal:",
];

/// The same for a claim that ends the message and its line.
const TALK_TURN: &[&str] = &[
    "I won't be sending",
    "Next time I will end with",
    "Tell me when I should write",
    "I have more to add, so I will not say",
    "Should I write",
    "The rules ask everyone to finish with the line",
    "Once Dana agrees I'm going to send",
    "Remember to close with",
];

/// What stands on the line before a claim that is made.
const MADE: &[&str] = &[
    "All done; here is the completion signal:",
    "Everything is finished, so I now print the signal:",
    "Signalling completion:",
    "As instructed, I end with the signal:",
    "The work is finished and verified:",
    "Per the protocol, I must output the completion signal, so here it is:",
    "Nothing is left to do.",
    "The criteria are met; emitting the marker now:",
    "Finished. Closing with the status block below.",
    "I checked each requirement before writing this. It holds:",
    "The parser no longer crashes if a block is not closed.",
    "The endpoint must respond with 429, and it does.",
    "Added a test for when the output is empty.",
    "We should not send e-mails before the user confirms, and we don't.",
    "I verified that nothing is written before validation. All steps are done:",
    "The command line flag is only read once, so the output should be stable.",
    "Done. The build does not print warnings.",
];

fn mentioned(rng: &mut Rng, dialect: &'static str, genuine: bool) -> Draft {
    let claim = claims::done(rng, dialect);
    let prose = filler::paragraph(rng);
    if dialect == "turn" {
        let lead = if genuine { rng.pick(MADE) } else { rng.pick(TALK_TURN) };
        let gap = if genuine { rng.pick(&["\n", "\n\n"]) } else { " " };
        let text = format!("{prose}\n\n{lead}{gap}{}", claim.text);
        return Draft::heard(text, if genuine { vec![claim.expected] } else { Vec::new() });
    }
    let lead = if genuine { rng.pick(MADE) } else { rng.pick(TALK) };
    // An unfinished sentence runs on into the next line, not over a blank one.
    let gap = if lead.ends_with([':', '.']) { rng.pick(&["\n", "\n\n"]) } else { "\n" };
    let text = format!("{prose}\n\n{lead}{gap}{}", claim.text);
    Draft::heard(text, if genuine { vec![claim.expected] } else { Vec::new() })
}

/// Sentences with the claim in the middle.
const TALK_INLINE: &[(&str, &str)] = &[
    ("I will print ", " once the integration tests pass."),
    ("Don't send ", " yet."),
    ("I'll reply with ", " as soon as CI is through."),
    ("I cannot claim ", " while two items are open."),
    ("The runner wants me to output ", " at the end."),
    ("My instructions say to write ", " when everything is finished."),
    ("The closing tag looks like ", " and I have not earned it."),
    ("For reference, the marker is ", "."),
    ("We should not say ", " before the audit."),
    ("Remember to finish with ", " after the last step."),
    ("To finish, the agent prints ", ""),
    ("Should I write ", "?"),
    ("prompt.md says to answer ", " after the last task."),
    ("The loop ends when it reads ", " in the log."),
];

const MADE_INLINE: &[(&str, &str)] = &[
    ("All criteria are met. ", ""),
    ("Done: ", ""),
    ("CI is green, so I can output the completion tag: ", ""),
    ("Work complete; the check that would not print now prints. ", ""),
    ("Finished! ", " Thanks for the help."),
    ("", " That was the last item."),
    ("Here it is: ", ""),
];

fn mentioned_inline(rng: &mut Rng, dialect: &'static str, genuine: bool) -> Draft {
    let claim = claims::done(rng, dialect);
    let (front, back) = if genuine { rng.pick(MADE_INLINE) } else { rng.pick(TALK_INLINE) };
    let text = format!("{}\n\n{front}{}{back}", filler::paragraph(rng), claim.text);
    Draft::heard(text, if genuine { vec![claim.expected] } else { Vec::new() })
}

/// What takes a claim back, at the start of a line.
const TAKEN_BACK: &[&str] = &[
    "Correction: two fixtures are missing.",
    "Wait, the linter is red.",
    "Actually, three tests are still failing.",
    "Hold on, the fixture for tenants is empty. Let me fix that.",
    "Oops, I spoke too soon.",
    "Scratch that: the upload path needs another look.",
    "On second thought, the cache layer needs more work.",
    "Sorry, that was premature.",
];

/// What takes a claim back without announcing it; in a body it may describe something else.
const CONTRADICTED: &[&str] = &[
    "3 tests are still failing.",
    "The build is broken on Windows.",
    "CI is red.",
    "The migration is not finished yet.",
    "The docs remain incomplete.",
    "That claim was premature.",
    "Lint fails on two files, so I keep going.",
    "I am not done with the retry path.",
];

/// What only sounds like it.
const KEPT: &[&str] = &[
    "Note: the flaky upstream test was failing before and is unrelated.",
    "Sorry for the long diff, the generated files are included.",
    "Waiting times are bounded now.",
    "The previous implementation was incomplete; this one covers all cases.",
    "Let me know if anything should change.",
    "The TLS test still fails on main and is unrelated to this change.",
    "Actually exercised against the staging cluster.",
    "The pre-existing lint failures are tracked elsewhere.",
];

fn retracted(rng: &mut Rng, dialect: &'static str, genuine: bool) -> Draft {
    let claim = claims::done(rng, dialect);
    let words = match (genuine, dialect, rng.chance(50)) {
        (true, ..) => rng.pick(KEPT),
        (false, "delivery", _) | (false, _, true) => rng.pick(TAKEN_BACK),
        (false, _, false) => rng.pick(CONTRADICTED),
    };
    let text = format!("{}{}\n\n{words}", filler::before(rng), claim.text);
    Draft::heard(text, if genuine { vec![claim.expected] } else { Vec::new() })
}
