//! `spec/0`, rule 8: mentioned is not said.

use super::*;

pub(super) const ROWS: &[&[Row<'_>]] = &[LEAD_IN, MID_SENTENCE];

/// Checks one row for each word in place of `{w}`.
#[track_caller]
pub(super) fn check_each(dialect: &str, template: &str, words: &[&str], want: &str) {
    let texts: Vec<String> = words.iter().map(|word| template.replace("{w}", word)).collect();
    let rows = words.iter().zip(&texts).map(|(word, text)| (*word, dialect, text.as_str(), want));
    check(&rows.collect::<Vec<_>>());
}

#[test]
fn lead_ins() {
    check(LEAD_IN);
}

#[test]
fn claims_in_mid_sentence() {
    check(MID_SENTENCE);
}

#[test]
fn utterings_in_any_inflection() {
    let words = [
        "print",
        "prints",
        "printed",
        "printing",
        "output",
        "outputs",
        "outputting",
        "emit",
        "emits",
        "emitted",
        "emitting",
        "reply",
        "replies",
        "replied",
        "replying",
        "respond",
        "responds",
        "responded",
        "responding",
        "say",
        "says",
        "said",
        "saying",
        "write",
        "writes",
        "wrote",
        "written",
        "writing",
        "send",
        "sends",
        "sent",
        "sending",
        "claim",
        "claims",
        "claimed",
        "claiming",
        "end with",
        "ends with",
        "ended with",
        "ending with",
        "finish with",
        "finishes with",
        "finished with",
        "finishing with",
        "close with",
        "closes with",
        "closed with",
        "closing with",
    ];
    check_each("chorus", "It is not {w}\n<chorus>COMPLETE</chorus>", &words, "!mentioned COMPLETE");
    check_each("chorus", "I just {w}\n<chorus>COMPLETE</chorus>", &words, "COMPLETE");
}

#[test]
fn nouns() {
    let words = ["marker", "signal", "tag", "promise", "sentinel", "block", "line"];
    check_each("chorus", "Never the {w}\n<chorus>COMPLETE</chorus>", &words, "!mentioned COMPLETE");
    check_each("chorus", "The {w}\n<chorus>COMPLETE</chorus>", &words, "COMPLETE");
    let plural = ["markers", "signals", "tags"];
    check_each("chorus", "No need for {w}\n<chorus>COMPLETE</chorus>", &plural, "COMPLETE");
}

#[test]
fn sample_words() {
    let words =
        ["example", "sample", "format", "template", "looks like", "expected", "for reference"];
    check_each("chorus", "The tag {w}\n<chorus>COMPLETE</chorus>", &words, "!mentioned COMPLETE");
    check_each("chorus", "I write {w}:\n<chorus>COMPLETE</chorus>", &words, "!mentioned COMPLETE");
    check_each("chorus", "The run, {w}:\n<chorus>COMPLETE</chorus>", &words, "COMPLETE");
    let excused = ["as the format", "per the format"];
    check_each("chorus", "The tag, {w} asks:\n<chorus>COMPLETE</chorus>", &excused, "COMPLETE");
}

#[test]
fn negations() {
    let words = ["do not", "don't", "didn't", "won't", "never", "cannot"];
    check_each("chorus", "I {w} write\n<chorus>COMPLETE</chorus>", &words, "!mentioned COMPLETE");
    check_each("chorus", "I {w} stop\n<chorus>COMPLETE</chorus>", &words, "COMPLETE");
    check_each(
        "chorus",
        "It is {w} a tag\n<chorus>COMPLETE</chorus>",
        &["without"],
        "!mentioned COMPLETE",
    );
}

#[test]
fn future_and_condition() {
    let verbs = [
        "I will",
        "I'll",
        "I would",
        "I'd",
        "I must",
        "I should",
        "I shall",
        "I am going to",
        "I am about to",
        "Until then I",
        "Once ready I",
        "When ready I",
        "If ready I",
        "Before that I",
        "Only after that I",
        "As soon as possible I",
        "I was told to",
        "I was asked to",
        "It says to",
        "My instructions say to",
        "The prompt told me to",
        "You asked me to",
        "The rules ask everyone to",
        "I remember to",
        "As next step I",
        "Pending that I",
    ];
    check_each("chorus", "{w} write:\n<chorus>COMPLETE</chorus>", &verbs, "!mentioned COMPLETE");
    // "say" is itself an uttering.
    let others: Vec<&str> = verbs.into_iter().filter(|verb| !verb.contains(" say")).collect();
    let reasons = ["As you asked me to, I write:", "You asked me to add a tag, and I did:"];
    check_each("chorus", "{w}\n<chorus>COMPLETE</chorus>", &reasons, "COMPLETE");
    check_each("chorus", "{w} rest:\n<chorus>COMPLETE</chorus>", &others, "COMPLETE");
    check_each("chorus", "Now {w} write:\n<chorus>COMPLETE</chorus>", &verbs, "COMPLETE");
    check_each(
        "chorus",
        "The tag is {w}:\n<chorus>COMPLETE</chorus>",
        &["to be", "pending"],
        "!mentioned COMPLETE",
    );
}

#[test]
fn excuses() {
    let words = ["now", "here is", "here it is", "hereby"];
    check_each("chorus", "I must write, {w}:\n<chorus>COMPLETE</chorus>", &words, "COMPLETE");
    check_each(
        "chorus",
        "I must not write, {w}:\n<chorus>COMPLETE</chorus>",
        &words,
        "!mentioned COMPLETE",
    );
    check_each(
        "chorus",
        "The tag format, {w}:\n<chorus>COMPLETE</chorus>",
        &words,
        "!mentioned COMPLETE",
    );
}

const LEAD_IN: &[Row<'_>] = &[
    (
        "planned, and now said",
        "chorus",
        "I was told to emit the signal when finished. Here it is: <chorus>COMPLETE</chorus>",
        "COMPLETE",
    ),
    (
        "planned, and now done",
        "chorus",
        "I said I would output the tag when done. Now it is done.\n\n<chorus>COMPLETE</chorus>",
        "COMPLETE",
    ),
    (
        "denied, and now something else",
        "chorus",
        "I will not write the tag. Now I wait:\n\n<chorus>COMPLETE</chorus>",
        "!mentioned COMPLETE",
    ),
    ("end with", "turn", "I will end my message with TURN_COMPLETE", "!mentioned TURN_COMPLETE"),
    (
        "the name of a file",
        "chorus",
        "I will write src/signal.rs anew once it is merged.\n\n<chorus>COMPLETE</chorus>",
        "COMPLETE",
    ),
    (
        "finished, both",
        "chorus",
        "I will not write the tag.\n\n<chorus>COMPLETE</chorus>",
        "!mentioned COMPLETE",
    ),
    (
        "finished by !",
        "chorus",
        "I will not write the tag!\n\n<chorus>COMPLETE</chorus>",
        "!mentioned COMPLETE",
    ),
    (
        "finished by ?",
        "chorus",
        "Should I write the tag?\n\n<chorus>COMPLETE</chorus>",
        "!mentioned COMPLETE",
    ),
    (
        "finished, only an uttering",
        "chorus",
        "I will not write more.\n\n<chorus>COMPLETE</chorus>",
        "COMPLETE",
    ),
    (
        "finished, only a noun",
        "chorus",
        "The tag is not ready.\n\n<chorus>COMPLETE</chorus>",
        "COMPLETE",
    ),
    (
        "finished, a plain block",
        "chorus",
        "I will write the block.\n\n<chorus>COMPLETE</chorus>",
        "COMPLETE",
    ),
    (
        "finished, a plain line",
        "chorus",
        "I will write one line.\n\n<chorus>COMPLETE</chorus>",
        "COMPLETE",
    ),
    (
        "a completion block",
        "chorus",
        "I will write the completion block.\n\n<chorus>COMPLETE</chorus>",
        "!mentioned COMPLETE",
    ),
    (
        "a status line",
        "chorus",
        "I will write the status line.\n\n<chorus>COMPLETE</chorus>",
        "!mentioned COMPLETE",
    ),
    (
        "an exit block",
        "chorus",
        "I will write the exit block.\n\n<chorus>COMPLETE</chorus>",
        "!mentioned COMPLETE",
    ),
    (
        "a final line",
        "chorus",
        "I will write the final line.\n\n<chorus>COMPLETE</chorus>",
        "!mentioned COMPLETE",
    ),
    (
        "a signal block",
        "chorus",
        "I will write the signal block.\n\n<chorus>COMPLETE</chorus>",
        "!mentioned COMPLETE",
    ),
    (
        "not the last sentence but both",
        "chorus",
        "I will not write the tag. Tests are green.\n\n<chorus>COMPLETE</chorus>",
        "!mentioned COMPLETE",
    ),
    (
        "only the last line counts",
        "chorus",
        "I will not write the tag.\nTests are green.\n<chorus>COMPLETE</chorus>",
        "COMPLETE",
    ),
    (
        "open, on the line above",
        "chorus",
        "I will print\n<chorus>COMPLETE</chorus>",
        "!mentioned COMPLETE",
    ),
    (
        "open, a blank line between",
        "chorus",
        "I will print\n\n<chorus>COMPLETE</chorus>",
        "COMPLETE",
    ),
    (
        "open, a blank line and a colon",
        "chorus",
        "I will print:\n\n<chorus>COMPLETE</chorus>",
        "!mentioned COMPLETE",
    ),
    (
        "open, on the line itself",
        "chorus",
        "I will print <chorus>COMPLETE</chorus>",
        "!mentioned COMPLETE",
    ),
    (
        "the rest of the line",
        "chorus",
        "<chorus>COMPLETE</chorus> is what I will print",
        "!mentioned COMPLETE",
    ),
    (
        "the rest is a new sentence",
        "chorus",
        "<chorus>COMPLETE</chorus> Next I will print more",
        "COMPLETE",
    ),
    (
        "more than 300 bytes back",
        "chorus",
        "I will print {310}:\n<chorus>COMPLETE</chorus>",
        "COMPLETE",
    ),
    (
        "less than 300 bytes back",
        "chorus",
        "I will print {200}:\n<chorus>COMPLETE</chorus>",
        "!mentioned COMPLETE",
    ),
    ("no claim", "chorus", "I will print:\n<chorus>BLOCKED: no db</chorus>", "BLOCKED=no db"),
    (
        "part of a word",
        "chorus",
        "Blueprints are notable, willow:\n<chorus>COMPLETE</chorus>",
        "COMPLETE",
    ),
    ("caw", "caw", "I will print this at the end:\n{qa}", "!mentioned QA_COMPLETE"),
    ("caw, before its fence", "caw", "I will print this at the end:\n\n```\n{qa}\n```", "-*"),
    (
        "caw, no claim",
        "caw",
        "I will print:\n---\nSIGNAL: TRANSITION_TO_QA\n---",
        "TRANSITION_TO_QA~*",
    ),
    ("delivery", "delivery", "I would say\nREVIEW_PASSED: t-1", "!mentioned REVIEW_PASSED"),
    ("delivery, no claim", "delivery", "I would say\nREVIEW_FAILED: t-1", "REVIEW_FAILED:t-1"),
    ("turn", "turn", "I will not send TURN_COMPLETE", "!mentioned TURN_COMPLETE"),
    ("pilot", "pilot", "I will emit this when done:\n{exit}", "!mentioned EXIT"),
    (
        "pilot, progress",
        "pilot",
        "I will emit:\n```pilot-signal\n{\"v\":2,\"progress\":5}\n```",
        "STATUS@5",
    ),
    (
        "ralph-status",
        "ralph-status",
        "I will print this at the end:\n{ralph}",
        "!mentioned RALPH_STATUS",
    ),
    ("ralphex", "ralphex", "I must not print\n<<<RALPHEX:REVIEW_DONE>>>", "!mentioned REVIEW_DONE"),
    ("promise", "promise", "I must not print\n<promise>COMPLETE</promise>", "!mentioned PROMISE"),
    ("axiom", "axiom", "I must not print\n<axiom>COMPLETE</axiom>", "!mentioned COMPLETE"),
];

const MID_SENTENCE: &[Row<'_>] = &[
    ("four words", "chorus", "All of it works <chorus>COMPLETE</chorus>", "!mentioned COMPLETE"),
    (
        "four words and a comma",
        "chorus",
        "All of it works, <chorus>COMPLETE</chorus>",
        "!mentioned COMPLETE",
    ),
    ("three words", "chorus", "All parts work <chorus>COMPLETE</chorus>", "COMPLETE"),
    ("a full stop", "chorus", "All of it works. <chorus>COMPLETE</chorus>", "COMPLETE"),
    ("a colon", "chorus", "All of it works: <chorus>COMPLETE</chorus>", "COMPLETE"),
    (
        "words before the last tag",
        "chorus",
        "All of it works. <chorus>PROGRESS: 90</chorus> and then <chorus>COMPLETE</chorus>",
        "PROGRESS=90@90, COMPLETE",
    ),
    ("not for other families", "turn", "All of it works TURN_COMPLETE", "TURN_COMPLETE"),
    ("no claim", "chorus", "All of it works <chorus>PROGRESS: 90</chorus>", "PROGRESS=90@90"),
];

#[test]
fn can_be_switched_off() {
    for (dialect, text, name) in [
        ("chorus", "I will print <chorus>COMPLETE</chorus>\n\nWait, no.", "COMPLETE"),
        ("caw", "I will print\n---\nSIGNAL: QA_COMPLETE\n---\n\nWait, no.", "QA_COMPLETE"),
        ("turn", "I will not send TURN_COMPLETE", "TURN_COMPLETE"),
        ("delivery", "I would say\nREVIEW_PASSED: t-1\n\nWait, no.", "REVIEW_PASSED"),
    ] {
        let mut off = Dialect::clone(Dialect::builtin(dialect).unwrap());
        off.verdict_words = false;
        let found = scan(&Rules::new([Arc::new(off)]), text.as_bytes(), &Origin::assistant());
        assert_eq!(signals(&found).len(), 1, "{dialect}: {}", show(&found));
        assert_eq!(&*signals(&found)[0].name, name);
        assert!(
            signals(&scan(&rules_for(dialect), text.as_bytes(), &Origin::assistant())).is_empty()
        );
    }
}
