//! The helpers of the seeds' parsers, as the specification has them.

use super::*;

#[track_caller]
fn check_strip(dialect: &str, text: &str, want: &str) {
    assert_eq!(
        Parser::builtin(dialect).unwrap().read(text).without_signals(),
        want,
        "stripping {text:?}"
    );
}

#[test]
fn helpers_look_at_all_signals() {
    let chorus = Parser::builtin("chorus").unwrap();
    let text = "<chorus>PROGRESS: 20</chorus> ... <chorus>PROGRESS: 80</chorus>\n<chorus>COMPLETE</chorus>";
    assert!(chorus.read(text).is_complete());
    assert!(chorus.read(text).has_signal("COMPLETE"));
    assert_eq!(chorus.read(text).progress(), Some(80));
    assert_eq!(&*chorus.read(text).signals()[0].name, "PROGRESS");
    assert_eq!(chorus.read(text).signals().len(), 3);
    assert_eq!(chorus.read(text).signals(), chorus.read(text).signals());
    assert!(chorus.read("nothing").signals().is_empty());
}

#[test]
fn reason_is_the_first_that_asks() {
    let chorus = Parser::builtin("chorus").unwrap();
    let text = "<chorus>NEEDS_HUMAN: which schema?</chorus><chorus>BLOCKED: disk full</chorus>";
    assert_eq!(chorus.read(text).reason(), Some("which schema?"));
    let pilot = Parser::builtin("pilot").unwrap();
    let text = "```pilot-signal\n{\"type\":\"exit\",\"success\":false,\"reason\":\"registry offline\"}\n```";
    assert_eq!(pilot.read(text).reason(), Some("registry offline"));
}

#[test]
fn strip_removes_trailing_keywords_and_nothing_else() {
    check_strip("turn", "Here's my response.\n\nTURN_COMPLETE", "Here's my response.");
    check_strip("turn", "Done.\nTURN_COMPLETE\n\nTURN_COMPLETE", "Done.");
    check_strip("turn", "Done. TURN_COMPLETE   \r\n\r\n", "Done.");
    check_strip("turn", "Done. TURN_COMPLETE\u{200b}", "Done.");
    check_strip("turn", "    code line\nTURN_COMPLETE", "    code line");
    check_strip("turn", "TURN_COMPLETE", "");
    check_strip("turn", "TURN_COMPLETE and one more thought", "TURN_COMPLETE and one more thought");
    check_strip("turn", "   \n  ", "   \n  ");
    check_strip("turn", "NOT_TURN_COMPLETE\nTURN_COMPLETE", "NOT_TURN_COMPLETE");
    check_strip("turn", "Done.\nTURN_COMPLETE\u{200b}\nTURN_COMPLETE", "Done.");
    check_strip("turn", "Done.\u{feff}\n TURN_COMPLETE TURN_COMPLETE\nTURN_COMPLETE", "Done.");
    check_strip("turn", "> TURN_COMPLETE\n\nTURN_COMPLETE", "> TURN_COMPLETE");
}

#[test]
fn strip_removes_the_colours_of_keywords() {
    let keyword = "\x1b[32mTURN_COMPLETE\x1b[0m";
    check_strip("turn", keyword, "");
    check_strip("turn", &format!("Done.\n{keyword}\n"), "Done.");
    check_strip("turn", &format!("Done.\n{keyword}\n{keyword}\nTURN_COMPLETE"), "Done.");
    // What was said before keeps the end of its own colours.
    check_strip("turn", "\x1b[1mDone.\x1b[0m\nTURN_COMPLETE", "\x1b[1mDone.\x1b[0m");
}

#[test]
fn strip_removes_signals_in_the_middle() {
    check_strip("chorus", "a <chorus>PROGRESS: 5</chorus> b", "a b");
    check_strip("chorus", "`<chorus>COMPLETE</chorus>` stays", "`<chorus>COMPLETE</chorus>` stays");
}
