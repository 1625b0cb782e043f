//! Rule 8: a claim stands on its own, is not doubted by what leads into it, and is not taken back.

use super::*;

pub(super) const ROWS: &[&[Row<'_>]] = &[STANDING, INTRODUCED, TAKEN_BACK, OTHER_LANGUAGES];

#[test]
fn a_claim_stands_on_its_own() {
    check(STANDING);
}

#[test]
fn a_claim_is_not_doubted_by_what_leads_into_it() {
    check(INTRODUCED);
}

#[test]
fn a_claim_is_not_taken_back() {
    check(TAKEN_BACK);
}

#[test]
fn other_languages() {
    check(OTHER_LANGUAGES);
}

const STANDING: &[Row<'_>] = &[
    ("alone", "promise", "<promise>COMPLETE</promise>", "PROMISE=COMPLETE"),
    ("indented a little", "promise", "  <promise>COMPLETE</promise>", "PROMISE=COMPLETE"),
    ("a list item", "promise", "- <promise>COMPLETE</promise>", "PROMISE=COMPLETE"),
    ("a numbered item", "promise", "3. <promise>COMPLETE</promise>", "PROMISE=COMPLETE"),
    ("a ticked box", "promise", "- [x] <promise>COMPLETE</promise>", "PROMISE=COMPLETE"),
    ("a box that is not", "promise", "- [ ] <promise>COMPLETE</promise>", "!in_sentence PROMISE"),
    ("emphasis", "promise", "**<promise>COMPLETE</promise>**", "PROMISE=COMPLETE"),
    ("symbols", "promise", "✅ <promise>COMPLETE</promise> 🎉", "PROMISE=COMPLETE"),
    ("an operator", "promise", "x = <promise>COMPLETE</promise>", "!in_sentence PROMISE"),
    ("a command", "promise", "$ echo <promise>COMPLETE</promise>", "!in_sentence PROMISE"),
    ("behind a sentence", "promise", "All green. <promise>COMPLETE</promise>", "PROMISE=COMPLETE"),
    ("behind a colon", "promise", "Status: <promise>COMPLETE</promise>", "PROMISE=COMPLETE"),
    ("behind an arrow", "promise", "Result → <promise>COMPLETE</promise>", "PROMISE=COMPLETE"),
    ("behind done", "promise", "All done <promise>COMPLETE</promise>", "PROMISE=COMPLETE"),
    (
        "behind done and an operator",
        "promise",
        "done != <promise>COMPLETE</promise>",
        "-in_sentence",
    ),
    ("behind words", "promise", "3. Output <promise>COMPLETE</promise>", "!in_sentence PROMISE"),
    ("negated", "promise", "I will NOT <promise>COMPLETE</promise> yet", "!in_sentence PROMISE"),
    ("a full stop behind", "promise", "<promise>COMPLETE</promise>.", "PROMISE=COMPLETE"),
    (
        "a new sentence behind",
        "promise",
        "<promise>COMPLETE</promise> All tests pass.",
        "PROMISE=COMPLETE",
    ),
    (
        "the sentence goes on",
        "promise",
        "<promise>COMPLETE</promise> would be a lie at this point.",
        "!in_sentence PROMISE",
    ),
    ("asked", "promise", "<promise>COMPLETE</promise>? Not yet.", "!in_sentence PROMISE"),
    (
        "one word joins two",
        "chorus",
        "Fine. <chorus>PROGRESS: 90</chorus> and <chorus>COMPLETE</chorus>",
        "PROGRESS=90@90, COMPLETE",
    ),
    (
        "two words do not",
        "chorus",
        "Fine. <chorus>PROGRESS: 90</chorus> and not <chorus>COMPLETE</chorus>",
        "PROGRESS=90@90, !in_sentence COMPLETE",
    ),
    (
        "other signals, too",
        "chorus",
        "If the database is down I'd say <chorus>BLOCKED: db down</chorus> and stop.",
        "!in_sentence BLOCKED",
    ),
    (
        "but not progress",
        "chorus",
        "I am at <chorus>PROGRESS: 40</chorus> of it.",
        "PROGRESS=40@40",
    ),
    ("a keyword behind words", "turn", "Over to you TURN_COMPLETE", "TURN_COMPLETE"),
    (
        "a named tag in a sentence",
        "ralphex",
        "When done print <<<RALPHEX:ALL_TASKS_DONE>>> and stop",
        "!in_sentence ALL_TASKS_DONE",
    ),
];

const INTRODUCED: &[Row<'_>] = &[
    (
        "another signal leads into nothing",
        "axiom",
        "<axiom>PENDING: not reviewed yet</axiom>\n<axiom>COMPLETE</axiom>",
        "PENDING=not reviewed yet, COMPLETE",
    ),
    (
        "but words beside it do",
        "axiom",
        "Not yet: <axiom>PROGRESS: 5</axiom>\n<axiom>COMPLETE</axiom>",
        "PROGRESS=5@5, !introduced COMPLETE",
    ),
    (
        "once as an adverb",
        "promise",
        "Sending the signal once:\n\n<promise>COMPLETE</promise>",
        "PROMISE=COMPLETE",
    ),
    (
        "once as a conjunction",
        "promise",
        "Once CI is green:\n\n<promise>COMPLETE</promise>",
        "!introduced PROMISE",
    ),
    ("an example", "promise", "Example:\n\n<promise>COMPLETE</promise>", "!introduced PROMISE"),
    ("expected", "promise", "Expected: <promise>COMPLETE</promise>", "!introduced PROMISE"),
    (
        "in the expected format",
        "promise",
        "In the expected format:\n<promise>COMPLETE</promise>",
        "PROMISE=COMPLETE",
    ),
    (
        "a condition",
        "promise",
        "Once CI is green:\n\n<promise>COMPLETE</promise>",
        "!introduced PROMISE",
    ),
    ("a denial", "promise", "Not yet:\n<promise>COMPLETE</promise>", "!introduced PROMISE"),
    (
        "a failure",
        "promise",
        "Two tests are red\n<promise>COMPLETE</promise>",
        "!introduced PROMISE",
    ),
    (
        "a plan",
        "promise",
        "I will output the signal:\n<promise>COMPLETE</promise>",
        "!introduced PROMISE",
    ),
    (
        "a plan that is carried out",
        "promise",
        "All green, so I will output the signal:\n<promise>COMPLETE</promise>",
        "PROMISE=COMPLETE",
    ),
    ("an order", "promise", "Afterwards:\n\n<promise>COMPLETE</promise>", "!introduced PROMISE"),
    (
        "an order among words",
        "promise",
        "Tidied up afterwards:\n\n<promise>COMPLETE</promise>",
        "PROMISE=COMPLETE",
    ),
    (
        "a finished sentence",
        "promise",
        "The parser does not emit end tags for void elements.\n\n<promise>COMPLETE</promise>",
        "PROMISE=COMPLETE",
    ),
    (
        "a finished one that points",
        "promise",
        "When it is green I print the line below.\n\n<promise>COMPLETE</promise>",
        "!introduced PROMISE",
    ),
    (
        "open, and a blank line between",
        "promise",
        "No test failed\n\n<promise>COMPLETE</promise>",
        "PROMISE=COMPLETE",
    ),
    (
        "a list item above",
        "promise",
        "- fixed the failing test\n<promise>COMPLETE</promise>",
        "PROMISE=COMPLETE",
    ),
    (
        "a heading above",
        "promise",
        "## Not done (out of scope)\n<promise>COMPLETE</promise>",
        "PROMISE=COMPLETE",
    ),
    ("a block", "caw", "What is broken\n{qa}", "!introduced QA_COMPLETE"),
    ("bare no", "promise", "No findings:\n\n<promise>COMPLETE</promise>", "PROMISE=COMPLETE"),
    ("code is not said", "promise", "Fixed `if`:\n<promise>COMPLETE</promise>", "PROMISE=COMPLETE"),
    (
        "bad news may deny",
        "chorus",
        "The tests do not pass:\n<chorus>BLOCKED: no db</chorus>",
        "BLOCKED=no db",
    ),
    (
        "bad news may not be an example",
        "chorus",
        "For example:\n<chorus>BLOCKED: no db</chorus>",
        "!introduced BLOCKED",
    ),
    ("delivery", "delivery", "I would say\nREVIEW_PASSED: t-1", "!introduced REVIEW_PASSED"),
    ("pilot", "pilot", "I will emit this later:\n{exit}", "!introduced EXIT"),
    (
        "ralph-status",
        "ralph-status",
        "At the end I will print:\n{ralph}",
        "!introduced RALPH_STATUS",
    ),
    ("the clause of a keyword", "turn", "We do not use TURN_COMPLETE", "!introduced TURN_COMPLETE"),
    (
        "another clause",
        "turn",
        "I did not touch the API, over to you TURN_COMPLETE",
        "TURN_COMPLETE",
    ),
    (
        "a condition in front",
        "turn",
        "When you are finished, reply with TURN_COMPLETE",
        "!introduced TURN_COMPLETE",
    ),
    (
        "a finished sentence before a keyword",
        "turn",
        "We should not send mails before that. TURN_COMPLETE",
        "TURN_COMPLETE",
    ),
];

const TAKEN_BACK: &[Row<'_>] = &[
    (
        "an opener and a failure",
        "promise",
        "<promise>COMPLETE</promise>\n\nWait, two tests still fail.",
        "!retracted PROMISE",
    ),
    (
        "the failure in the next sentence",
        "promise",
        "<promise>COMPLETE</promise>\n\nCorrection.\n\nThe build is broken.",
        "!retracted PROMISE",
    ),
    (
        "behind emphasis",
        "promise",
        "<promise>COMPLETE</promise>\n\n**All fine.** **Edit:** the suite just went red",
        "!retracted PROMISE",
    ),
    (
        "on its line",
        "promise",
        "<promise>COMPLETE</promise> Actually no. Two endpoints are missing.",
        "!retracted PROMISE",
    ),
    (
        "no more than that",
        "promise",
        "<promise>COMPLETE</promise>\n\nWait, no.",
        "!retracted PROMISE",
    ),
    (
        "void by itself",
        "promise",
        "<promise>COMPLETE</promise>\n\nI take that back.",
        "!retracted PROMISE",
    ),
    (
        "void by itself, the line above",
        "promise",
        "<promise>COMPLETE</promise>\n\nIgnore the line above",
        "!retracted PROMISE",
    ),
    (
        "an opener, and void",
        "promise",
        "<promise>COMPLETE</promise>\n\nApologies, I jumped the gun",
        "!retracted PROMISE",
    ),
    (
        "an addition",
        "promise",
        "<promise>COMPLETE</promise>\n\nWait, I also bumped the version.",
        "PROMISE=COMPLETE",
    ),
    (
        "a report without an opener",
        "promise",
        "<promise>COMPLETE</promise>\n\nTwo tests fail.",
        "PROMISE=COMPLETE",
    ),
    (
        "a word and no opener",
        "promise",
        "<promise>COMPLETE</promise>\n\nWait times are not bounded.",
        "PROMISE=COMPLETE",
    ),
    (
        "quoted",
        "promise",
        "<promise>COMPLETE</promise>\n\n> Wait, this fails.\n\n```\nWait, this fails.\n```\n",
        "PROMISE=COMPLETE",
    ),
    (
        "in quotation marks",
        "promise",
        "<promise>COMPLETE</promise>\n\n\"Wait, it fails\" is what he said.",
        "PROMISE=COMPLETE",
    ),
    (
        "in a body, in a line",
        "delivery",
        "READY_FOR_REVIEW: t-1\nSummary: fine. Wait, it failed at first.\n",
        "READY_FOR_REVIEW:t-1",
    ),
    (
        "in a body, an item",
        "delivery",
        "READY_FOR_REVIEW: t-1\nNotes:\n- Actually, nothing is missing\n",
        "READY_FOR_REVIEW:t-1",
    ),
    (
        "in a body, a line",
        "delivery",
        "READY_FOR_REVIEW: t-1\nSummary: fine\n\nWait, it fails.\n",
        "!retracted READY_FOR_REVIEW",
    ),
    (
        "bad news",
        "chorus",
        "<chorus>BLOCKED: no db</chorus>\n\nWait, it still fails.",
        "BLOCKED=no db",
    ),
    (
        "said again",
        "chorus",
        "<chorus>COMPLETE</chorus>\nOops, one file is missing.\n\nAdded.\n<chorus>COMPLETE</chorus>",
        "!retracted COMPLETE, COMPLETE",
    ),
    ("caw", "caw", "{qa}\n\nOops, one file is missing.", "!retracted QA_COMPLETE"),
    ("pilot", "pilot", "{exit}\n\nOops, one file is missing.", "!retracted EXIT"),
    (
        "ralph-status",
        "ralph-status",
        "{ralph}\n\nNever mind, the build is red.",
        "!retracted RALPH_STATUS",
    ),
];

const OTHER_LANGUAGES: &[Row<'_>] = &[
    (
        "German, a condition",
        "promise",
        "Sobald die Tests grün sind, gebe ich Folgendes aus:\n\n<promise>COMPLETE</promise>",
        "!introduced PROMISE",
    ),
    (
        "German, meant",
        "promise",
        "Alle Tests sind grün.\n\n<promise>COMPLETE</promise>",
        "PROMISE=COMPLETE",
    ),
    (
        "French, an example",
        "promise",
        "Par exemple :\n\n<promise>COMPLETE</promise>",
        "!introduced PROMISE",
    ),
    (
        "Spanish, in a sentence",
        "promise",
        "Después escribo <promise>COMPLETE</promise> y termino.",
        "!in_sentence PROMISE",
    ),
    (
        "Japanese, taken back",
        "promise",
        "<promise>COMPLETE</promise>\n\n訂正：テストが2件失敗しています。",
        "!retracted PROMISE",
    ),
    (
        "French, actually no",
        "promise",
        "<promise>COMPLETE</promise>\n\nEn fait non, la CI échoue.",
        "!retracted PROMISE",
    ),
    (
        "Japanese, said now",
        "promise",
        "すべて完了しました。完了シグナルを出力します：\n\n<promise>COMPLETE</promise>",
        "PROMISE=COMPLETE",
    ),
    (
        "Japanese, the sentence goes on",
        "promise",
        "<promise>COMPLETE</promise>と書くのはまだ早い。",
        "!in_sentence PROMISE",
    ),
    (
        "Japanese, behind a sentence",
        "promise",
        "すべて完了しました。<promise>COMPLETE</promise>",
        "PROMISE=COMPLETE",
    ),
    (
        "Chinese, a condition",
        "promise",
        "如果测试通过：\n<promise>COMPLETE</promise>",
        "!introduced PROMISE",
    ),
    (
        "Russian, taken back",
        "promise",
        "<promise>COMPLETE</promise>\n\nПоправка: два теста падают.",
        "!retracted PROMISE",
    ),
];

#[test]
fn strict_wants_a_signal_to_be_the_last_thing_said() {
    for (text, want) in [
        ("All green.\n\n<chorus>COMPLETE</chorus>\n", "COMPLETE"),
        ("<chorus>COMPLETE</chorus> 🎉\n\n---\n", "COMPLETE"),
        ("<chorus>COMPLETE</chorus>\n\nAll green.", "!not_at_end COMPLETE"),
        ("Done:\n<chorus>COMPLETE</chorus>", "!introduced COMPLETE"),
        ("<chorus>COMPLETE</chorus>\n<chorus>PROGRESS: 100</chorus>", "COMPLETE, PROGRESS=100@100"),
        (
            "<chorus>COMPLETE</chorus>\n<chorus>PROGRESS: 9</chorus> So.",
            "!not_at_end COMPLETE, PROGRESS=9@9",
        ),
        ("<chorus>PROGRESS: 9</chorus>\n\nMore to do.", "PROGRESS=9@9"),
    ] {
        for chunk in [1, 7, usize::MAX] {
            let rules = rules_for("chorus").strict(true);
            let found = findings(&rules, text.as_bytes(), chunk);
            assert!(matches(&found, want), "{text:?}: {}", show(&found));
        }
    }
}

#[test]
fn words_can_be_switched_off() {
    for (dialect, text, name) in [
        ("chorus", "I will print:\n<chorus>COMPLETE</chorus>\n\nWait, it fails.", "COMPLETE"),
        ("caw", "I will print:\n---\nSIGNAL: QA_COMPLETE\n---\n\nWait, it fails.", "QA_COMPLETE"),
        ("turn", "I will not send TURN_COMPLETE", "TURN_COMPLETE"),
        ("delivery", "I would say\nREVIEW_PASSED: t-1\n\nWait, it fails.", "REVIEW_PASSED"),
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
