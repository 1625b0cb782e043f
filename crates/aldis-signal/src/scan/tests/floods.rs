//! Many of the same: colours, old forms, near misses, words that may take claims back.

use super::*;

#[test]
fn a_colour_of_any_length_is_one_in_any_pieces() {
    let rules = rules_for("delivery");
    for parameters in 55..70 {
        let colour = format!("\x1b[{}m", "1".repeat(parameters));
        let text = format!("{colour}READY_FOR_REVIEW: t-1\n");
        let whole = findings(&rules, text.as_bytes(), usize::MAX);
        assert_eq!(signals(&whole).len(), usize::from(colour.len() <= 64), "{parameters}");
        for cut in 1..colour.len() {
            let mut out = Vec::new();
            let mut scanner = Scan::new(&rules).stream();
            scanner.push(&text.as_bytes()[..cut], &mut |finding| out.push(finding));
            scanner.push(&text.as_bytes()[cut..], &mut |finding| out.push(finding));
            scanner.finish(&mut |finding| out.push(finding));
            assert_eq!(out, whole, "{parameters} parameters, cut at {cut}");
        }
    }
}

#[test]
fn colours_without_text_are_not_remembered_for_ever() {
    let mut scanner = Scan::new(Rules::builtin()).stream();
    let colours = b"\x1b[0m".repeat(1024);
    let mut out = Vec::new();
    for _ in 0..256 {
        scanner.push(&colours, &mut |finding| out.push(finding));
    }
    assert!(scanner.stripper.offsets().held() <= 4 << 20);
    scanner.push(b"\nREADY_FOR_REVIEW: t-1\n", &mut |finding| out.push(finding));
    scanner.finish(&mut |finding| out.push(finding));
    assert_eq!(signals(&out).len(), 1);
    assert_eq!(out[0].place().span.start, 256 * 4096 + 1);
}

#[test]
fn an_end_in_an_old_form_is_heard_behind_any_number_of_others() {
    let rules = rules_for("pilot");
    let phases = "PHASE: INIT → IMPL\n".repeat(20_000);
    let text = format!("{phases}Now it is all over.\n\nEXIT_SIGNAL: true\n");
    let found = findings(&rules, text.as_bytes(), usize::MAX);
    let ends = signals(&found).into_iter().filter(|signal| signal.meaning == Meaning::Done);
    assert_eq!(ends.count(), 1);
    let block = format!("====\nNAVIGATOR_STATUS\n====\nPhase: {}\n====\n", "x".repeat(60_000));
    let mut scanner = Scan::new(&rules).stream();
    (0..500).for_each(|_| scanner.push(block.as_bytes(), &mut |_| {}));
    assert!(scanner.engine.queue.legacy_text <= 8 << 20);
}

#[test]
fn near_misses_at_the_end_are_told_once() {
    for count in [10, 64, 65, 300] {
        let text = format!("text\n\n{}", "SIGNAL: QA_COMPLET\n".repeat(count));
        let found = findings(Rules::builtin(), text.as_bytes(), usize::MAX);
        assert_eq!(misses(&found).len(), count);
    }
}

#[test]
fn many_claims_stand_on_one_line() {
    let text = "<chorus>COMPLETE</chorus> ".repeat(200);
    let found = findings(&rules_for("chorus"), text.as_bytes(), 100);
    assert_eq!(signals(&found).len(), 200, "{found:#?}");
}

#[test]
fn words_behind_many_claims_are_read_once() {
    let sentence = "wait for ci ".repeat(330);
    let text = format!("<chorus>COMPLETE</chorus>\n\n{sentence}\n\n").repeat(200);
    let found = findings(&rules_for("chorus"), text.as_bytes(), usize::MAX);
    assert_eq!(signals(&found).len(), 200);
    let taken_back = text.replacen("wait for ci \n", "it runs. Wait, ci fails.\n", 1);
    let found = findings(&rules_for("chorus"), taken_back.as_bytes(), usize::MAX);
    assert_eq!(signals(&found).len(), 199);
}

#[test]
fn what_waits_for_its_end_is_told_when_that_comes() {
    let mut scanner = Scan::new(Rules::builtin()).stream();
    let mut out = Vec::new();
    let mut push = |text: &str, scanner: &mut Scanner<'_>| {
        text.bytes().for_each(|byte| scanner.push(&[byte], &mut |finding| out.push(finding)));
        out.len()
    };
    let words = "some words of it\n".repeat(500);
    assert_eq!(push("<<<RALPHEX:QUESTION>>>\n", &mut scanner), 0);
    assert_eq!(push(&words, &mut scanner), 0);
    assert_eq!(push("<<<RALPHEX:END>>>\n", &mut scanner), 1);
}
