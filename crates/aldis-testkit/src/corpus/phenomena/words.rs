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
    "You told me to print:",
    "An example:",
    "Every run of this agent closes like so:",
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
    "As you asked me to, I end with the signal:",
    "You asked me to fix the tag parser, and I did:",
    "The last failing test passes now:",
];

const CONDITIONS: &[&str] = &[
    "Once the tests pass",
    "When the review is through",
    "As soon as CI has finished",
    "If nobody objects",
    "After the migration",
    "When both branches are merged",
];
const FUTURES: &[&str] = &["I will", "I'll", "I am going to", "I shall", "I should", "I would"];
const UTTERINGS: &[(&str, &str)] = &[
    ("print", "Printing"),
    ("output", "Outputting"),
    ("emit", "Emitting"),
    ("send", "Sending"),
    ("write", "Writing"),
    ("reply with", "Replying with"),
    ("respond with", "Responding with"),
    ("end with", "Ending with"),
    ("close with", "Closing with"),
    ("finish with", "Finishing with"),
];
const NOUNS: &[&str] = &[
    "this signal",
    "the following marker",
    "the completion block",
    "the tag below",
    "the final line",
    "the sentinel",
    "my status block",
];
const REFUSALS: &[&str] = &["I must not", "I cannot", "I will not", "Do not", "Never", "I don't"];
const SAMPLES: &[&str] =
    &["An example", "The format", "A template", "The expected form", "A sample"];
const SOURCES: &[&str] =
    &["The prompt says", "README.md says", "The coordinator told me", "I was asked"];
const FACTS: &[&str] = &[
    "All tests pass",
    "Every item of the plan is ticked",
    "The review is through",
    "All acceptance criteria are met",
    "The branch is merged and deployed",
    "Nothing is left on the list",
];

/// A sentence about a claim, put together from its usual parts.
fn talk(rng: &mut Rng) -> String {
    let ((utter, _), noun) = (rng.pick(UTTERINGS), rng.pick(NOUNS));
    match rng.below(5) {
        0 => format!("{}, {} {utter} {noun}:", rng.pick(CONDITIONS), rng.pick(FUTURES)),
        1 => format!("{} {utter} {noun} yet:", rng.pick(REFUSALS)),
        2 => format!("{} of {noun}:", rng.pick(SAMPLES)),
        3 => format!("{} to {utter} {noun} at the very end:", rng.pick(SOURCES)),
        _ => rng.pick(TALK).to_owned(),
    }
}

/// A sentence that makes a claim, put together likewise.
fn made(rng: &mut Rng) -> String {
    let ((utter, uttering), noun) = (rng.pick(UTTERINGS), rng.pick(NOUNS));
    match rng.below(5) {
        0 => format!("{}, so I {utter} {noun}:", rng.pick(FACTS)),
        1 => format!("{}. {uttering} {noun}:", rng.pick(FACTS)),
        2 => format!("{}; here is {noun}:", rng.pick(FACTS)),
        3 => format!("{}.", rng.pick(FACTS)),
        _ => rng.pick(MADE).to_owned(),
    }
}

fn mentioned(rng: &mut Rng, dialect: &'static str, genuine: bool) -> Draft {
    let claim = claims::done(rng, dialect);
    let prose = filler::paragraph(rng);
    let lead = match (genuine, dialect) {
        (true, _) => made(rng),
        (false, "turn") => rng.pick(TALK_TURN).to_owned(),
        (false, _) => talk(rng),
    };
    // An unfinished sentence runs on into the line of a trailer and into the line below otherwise,
    // not over a blank one.
    let gap = match (lead.ends_with([':', '.']), dialect) {
        (true, _) => rng.pick(&["\n", "\n\n"]),
        (false, "turn") => " ",
        (false, _) => "\n",
    };
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
    ("The agent prints ", " at the very end of its work."),
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
    "wait, one endpoint has no test",
    "Let me look once more... wait, no.",
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
    "There are two failing tests.",
    "The type-check is red.",
    "I was wrong: the build is broken.",
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
    "None of the tests fail any more.",
    "I added a test for the broken link.",
    "The failing test of last week is fixed.",
    "If CI fails on your side, clear the cache.",
    "Without the fixture the test would fail.",
    "Tell me if anything is not complete.",
];

const OPENERS: &[&str] = &[
    "Correction:",
    "Wait,",
    "Wait -",
    "Actually,",
    "Hold on:",
    "Oops,",
    "Oops!",
    "Scratch that.",
    "On second thought,",
    "Sorry,",
];
const REASONS: &[&str] = &[
    "the import still needs a guard.",
    "I forgot the second endpoint.",
    "one migration has no down step.",
    "the docs still show the old flag.",
    "there is one more task on the list.",
    "the retry path drops a header.",
];
const CHECKED: &[&str] = &[
    "The integration test",
    "The build",
    "The lint job",
    "The type check",
    "CI",
    "The smoke test",
];
const BROKEN: &[&str] = &["is failing", "still fails", "fails on Windows", "is red", "is broken"];
const HISTORY: &[&str] = &[
    "was red before this change.",
    "fails on main too and is unrelated.",
    "was broken by an upstream release, now pinned.",
    "passes again.",
    "is green.",
];
const WORK: &[&str] = &["The cache layer", "The importer", "The second endpoint", "This"];
const UNFINISHED: &[&str] =
    &["is not finished yet.", "is not done.", "is incomplete.", "is not really complete."];

fn take_back(rng: &mut Rng) -> String {
    match rng.chance(60) {
        true => format!("{} {}", rng.pick(OPENERS), rng.pick(REASONS)),
        false => rng.pick(TAKEN_BACK).to_owned(),
    }
}

fn contradict(rng: &mut Rng) -> String {
    match rng.below(3) {
        0 => format!("{} {}.", rng.pick(CHECKED), rng.pick(BROKEN)),
        1 => format!("{} {}", rng.pick(WORK), rng.pick(UNFINISHED)),
        _ => rng.pick(CONTRADICTED).to_owned(),
    }
}

fn keep(rng: &mut Rng) -> String {
    match rng.chance(50) {
        true => format!("{} {}", rng.pick(CHECKED), rng.pick(HISTORY)),
        false => rng.pick(KEPT).to_owned(),
    }
}

fn retracted(rng: &mut Rng, dialect: &'static str, genuine: bool) -> Draft {
    let claim = claims::done(rng, dialect);
    let words = match (genuine, dialect, rng.chance(50)) {
        (true, ..) => keep(rng),
        (false, "delivery", _) | (false, _, true) => take_back(rng),
        (false, _, false) => contradict(rng),
    };
    // Sometimes at once, sometimes after other things were said.
    let between =
        if rng.chance(30) { format!("{}\n\n", filler::paragraph(rng)) } else { String::new() };
    let text = format!("{}{}\n\n{between}{words}", filler::before(rng), claim.text);
    Draft::heard(text, if genuine { vec![claim.expected] } else { Vec::new() })
}
