//! What a file may not say because it could never be heard, or would be heard for ever.

use super::*;

/// A built-in dialect, a text of its file, what stands there instead, and words of the error, which
/// is about the last line of that.
const FAULTS: &[(&str, &str, &str, &str)] = &[
    ("turn", "keyword = \"TURN_COMPLETE\"", "keyword = \"A B C\"", "`A B C` cannot be a keyword"),
    (
        "turn",
        "keyword = \"TURN_COMPLETE\"",
        "keyword = \"OVER\"\nalternative_signals = [\"DONE\", \"\"]",
        "cannot be a keyword",
    ),
    ("delivery", "\"---DELEGATION PROMPT START---\"", "\"\"", "`start` has 3"),
    ("delivery", "\"---DELEGATION PROMPT END---\"", "\"END \"", "`end` has 3"),
    ("delivery", "\"delegation_prompt\"\n", "\"\"\n", "`field` has 1"),
    ("delivery", "body = true", "body = true\nseparator = \"\"", "`separator` has 1"),
    ("caw", "delimiter = \"---\"", "delimiter = \"\"", "`delimiter` has 3"),
    ("caw", "key = \"SIGNAL\"", "key = \"SIG:NAL\"", "colon"),
    ("caw", "\nkeys = [", "\nkeys = [\"\", ", "`keys` has 1"),
    ("caw", "\nkeys = [", "\nkeys = [\"A:B\", ", "colon"),
    ("caw", "\ntext_keys = [", "\ntext_keys = [\"\", ", "`text_keys` has 1"),
    ("caw", "claim_needs = {", "claim_needs = { \"\" = \"x\",", "`claim_needs` has 1"),
    ("caw", "\nfields = [", "\nfields = [\"\", ", "`fields` has 1"),
    ("event", "\"topic\"", "\"\"", "`attribute` has 1"),
    ("promise", "text = \"COMPLETE\"", "text = \"\"", "cannot be the agreed text"),
    ("promise", "text = \"COMPLETE\"", "text = \"A</promise>\"", "cannot hold `<promise>`"),
    ("ralphex", "\"<<<RALPHEX:END>>>\"", "\"<<<RALPHEX:END>>> \"", "`end` has 3"),
    ("ralph-status", "\"---RALPH_STATUS---\"", "\"\"", "`open` has 3"),
    ("pilot", "'{\"v\":'", "''", "`bare` has 3"),
    ("pilot", "heading = \"NAVIGATOR_STATUS\"", "heading = \"\"", "`heading` has 3"),
    ("pilot", "rules = \"=━\"", "rules = \"\"", "no line can be drawn"),
    ("pilot", "key = \"PHASE\"", "key = \"\"", "`key` has 3"),
    ("pilot", "key = \"EXIT_SIGNAL\"", "key = \"EXIT:\"", "colon"),
    ("pilot", "\"LOOP COMPLETE\"", "\"\"", "`text` has 3"),
    ("pilot", "default_name = \"STATUS\"", "default_name = \"STATE\"", "the signals are STATUS"),
];

#[test]
fn every_text_that_is_looked_for_is_checked() {
    for (name, from, to, words) in FAULTS {
        let source = builtin_source(name).unwrap();
        let (before, after) = source.split_once(from).unwrap_or_else(|| panic!("{name}: {from}"));
        let error = Dialect::from_toml(&format!("{before}{to}{after}")).expect_err(to);
        let shown = error.to_string();
        assert!(shown.contains(words), "{name}: {to}: {shown}");
        let line = before.matches('\n').count() + to.trim_end().matches('\n').count() + 1;
        assert_eq!(error.line, Some(line), "{name}: {to}: {shown}");
        assert!(error.help.is_some(), "{name}: {to}: {shown}");
    }
}

#[test]
fn members_have_names() {
    for keys in [
        "require = [\"\"]",
        "subject_from = \"\"",
        "expect = { \"\" = \"a\" }",
        "when = [{ if = { \"\" = \"a\" }, meaning = \"info\" }]",
    ] {
        let text = family_file("line", "body = true", keys, true);
        let error = Dialect::from_toml(&text).expect_err(&text);
        assert_eq!(error.line, Some(text.lines().count()), "{error}");
    }
    let text = family_file("line", "values = { \"\" = [\"HIGH\"] }", "", true);
    assert_eq!(Dialect::from_toml(&text).unwrap_err().line, Some(7));
}

/// A form that does not say which signal it is has one.
#[test]
fn signals_that_could_never_be_said_are_refused() {
    let second = "[[signals]]\nname = \"STUCK\"\nmeaning = \"blocked\"\n";
    for (family, keys) in [
        ("trailer", "keyword = \"SHIPPED\""),
        ("status", "open = \"[[STATE]]\"\nclose = \"[[/STATE]]\""),
        ("tag", "open = \"<team>\"\nclose = \"</team>\"\ntext = \"ALL DONE\""),
        ("tag", "open = \"<team\"\nclose = \"</team>\"\nattribute = \"to\""),
    ] {
        let text = family_file(family, keys, second, true);
        let error = Dialect::from_toml(&text).expect_err(&text);
        let header = text.find(second).unwrap();
        assert_eq!(error.line, Some(text[..header].matches('\n').count() + 1), "{error}");
        assert!(error.message.contains("`STUCK` could never be said"), "{error}");
        assert!(error.help.is_some(), "{error}");
    }
    let subject = "payload = \"text\"\nsubject = \"required\"";
    expect_error("payload = \"text\"", subject, 18, &["`STUCK`", "`attribute`"]);
    expect_error("STUCK", "VERY-STUCK", 15, &["`VERY-STUCK`", "digits and `_`"]);
}

/// A keyword in a file that was not checked cannot hang whoever strips it.
#[test]
fn an_empty_keyword_is_never_stripped() {
    let mut turn = Dialect::clone(Dialect::builtin("turn").unwrap());
    if let Syntax::Trailer(trailer) = &mut turn.syntax {
        trailer.alternative_signals.push(String::new());
    }
    let text = "Fine.\nTURN_COMPLETE TURN_COMPLETE";
    assert_eq!(crate::Parser::new(turn.into()).read(text).without_signals(), "Fine.");
}
