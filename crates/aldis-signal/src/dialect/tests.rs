//! Tests of loading dialects: the built-in ones, what is refused and how that is said, and users' own.

mod faults;

use std::collections::HashSet;

use super::*;
use crate::message::Origin;
use crate::scan::{Rules, scan};
use crate::signal::{Finding, Reason};

const VALID: &str = r#"v = 1
name = "team"
about = "what the team says"

[syntax]
family = "tag"
open = "<team>"
close = "</team>"

[[signals]]
name = "SHIPPED"
meaning = "done"

[[signals]]
name = "STUCK"
meaning = "blocked"
payload = "text"
"#;

/// A dialect of each family that knows SHIPPED, a text that says it, and one that quotes it.
const FAMILIES: &[(&str, &str, &str, &str)] = &[
    ("tag", "open = \"<team>\"\nclose = \"</team>\"", "<team>SHIPPED</team>", ""),
    (
        "block",
        "delimiter = \"+++\"\nkey = \"STATE\"\nkeys = [\"NOTE\"]",
        "+++\nSTATE: SHIPPED\nNOTE: fine\n+++",
        "",
    ),
    ("line", "body = true", "SHIPPED: t1\nNote: fine", "subject = \"required\""),
    (
        "status",
        "open = \"[[STATE]]\"\nclose = \"[[/STATE]]\"",
        "[[STATE]]\nNOTE: fine\n[[/STATE]]",
        "",
    ),
    ("trailer", "keyword = \"SHIPPED\"", "SHIPPED", ""),
    (
        "fence",
        "info = \"team-state\"\ndefault_name = \"SHIPPED\"\nversion = 1\n\
         members = { v = \"version\", type = \"name\", note = \"text\" }",
        "```team-state\n{\"v\":1,\"type\":\"shipped\",\"note\":\"fine\"}\n```",
        "",
    ),
];

fn family_file(family: &str, keys: &str, signal_keys: &str, verdict_words: bool) -> String {
    format!(
        "v = 1\nname = \"team\"\nabout = \"what the team says\"\nverdict_words = {verdict_words}\n\
         [syntax]\nfamily = \"{family}\"\n{keys}\n\
         [[signals]]\nname = \"SHIPPED\"\nmeaning = \"done\"\n{signal_keys}\n"
    )
}

fn load(text: &str) -> Arc<Dialect> {
    Arc::new(Dialect::from_toml(text).unwrap_or_else(|error| panic!("{error}\n{text}")))
}

fn found(dialect: impl Into<Arc<Dialect>>, text: &str) -> Vec<Finding> {
    scan(&Rules::new([dialect.into()]), text.as_bytes(), &Origin::assistant())
}

/// Returns the names that count.
fn said(dialect: impl Into<Arc<Dialect>>, text: &str) -> Vec<String> {
    let found = found(dialect, text);
    found.iter().filter_map(Finding::signal).map(|signal| signal.name.to_string()).collect()
}

fn refused(dialect: impl Into<Arc<Dialect>>, text: &str) -> Vec<Reason> {
    let found = found(dialect, text);
    let reason = |finding: &Finding| match finding {
        Finding::NearMiss(miss) => Some(miss.reason),
        Finding::Signal(_) => None,
    };
    found.iter().filter_map(reason).collect()
}

#[test]
fn all_built_in_dialects_load() {
    assert_eq!(builtins().len(), BUILTINS.len());
    assert_eq!(builtins().len(), 10);
    let names: Vec<&str> = builtins().iter().map(|dialect| &*dialect.name).collect();
    assert_eq!(names[..5], ["caw", "delivery", "chorus", "turn", "pilot"], "the seeds come first");
    assert_eq!(names.iter().collect::<HashSet<_>>().len(), names.len(), "{names:?}");
}

#[test]
fn sources_are_those_of_their_names() {
    for dialect in builtins() {
        let source = builtin_source(&dialect.name).unwrap();
        assert_eq!(load(source).name, dialect.name);
        let found = Dialect::builtin(&dialect.name).unwrap();
        assert!(Arc::ptr_eq(found, dialect));
        assert!(!dialect.about.is_empty() && !dialect.prompt.is_empty(), "{}", dialect.name);
    }
    assert!(builtin_source("nothing").is_none() && Dialect::builtin("nothing").is_none());
}

/// `ALDIS_BLESS=1` writes them anew.
#[test]
#[expect(clippy::disallowed_methods, reason = "a test writes what it checks")]
fn json_forms_are_made_from_the_files() {
    for (name, toml, json) in BUILTINS {
        let value: Value = toml::from_str(toml).unwrap();
        let want = format!("{value:#}\n");
        if std::env::var_os("ALDIS_BLESS").is_some() {
            let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/src/dialect/builtin");
            std::fs::write(format!("{folder}/{name}.json"), want).unwrap();
        } else {
            assert!(*json == want, "{name}.json is out of date: run this test with ALDIS_BLESS=1");
        }
    }
}

#[test]
fn signals_are_found_by_their_exact_name() {
    let caw = Dialect::builtin("caw").unwrap();
    assert_eq!(caw.signals.len(), 14);
    assert_eq!(caw.signal("QA_COMPLETE").unwrap().meaning, Meaning::Done);
    assert!(caw.signal("qa_complete").is_none());
    let delivery = Dialect::builtin("delivery").unwrap();
    assert_eq!(delivery.signals.len(), 18);
    let chorus = Dialect::builtin("chorus").unwrap();
    assert_eq!(chorus.signals.len(), 6);
}

#[test]
fn the_valid_file_is_valid() {
    let dialect = load(VALID);
    assert_eq!((&*dialect.name, dialect.syntax.family()), ("team", "tag"));
    assert!(dialect.verdict_words && dialect.placeholders.is_empty());
    assert_eq!(dialect.signals[0].priority, 5);
}

/// Replaces one text of the valid file and returns the error.
#[track_caller]
fn error_of(from: &str, to: &str) -> DialectError {
    let text = VALID.replacen(from, to, 1);
    assert_ne!(text, VALID, "{from} is not in the file");
    let error = Dialect::from_toml(&text).unwrap_err();
    if let (Some(line), Some(span)) = (error.line, &error.span) {
        let counted = text[..span.start].matches('\n').count() + 1;
        assert_eq!(line, counted, "{error}");
    }
    error
}

/// Checks the line, and that the whole text shown to people holds all of `words`.
#[track_caller]
fn expect_error(from: &str, to: &str, line: usize, words: &[&str]) {
    let error = error_of(from, to);
    let shown = error.to_string();
    assert_eq!(error.line, Some(line), "{shown}");
    assert!(shown.starts_with(&format!("line {line}: ")), "{shown}");
    for word in words {
        assert!(shown.contains(word), "{word:?} is not in {shown:?}");
    }
}

#[test]
fn unknown_families_are_named_with_the_known_ones() {
    let all = ["`tags`", "block", "line", "tag", "trailer", "fence", "status"];
    expect_error("\"tag\"", "\"tags\"", 6, &all);
}

#[test]
fn unknown_keys_are_named_with_the_known_ones() {
    expect_error("open =", "opening = \"x\"\nopen =", 7, &["opening", "open", "close"]);
    expect_error("about =", "abuot =", 3, &["abuot", "about"]);
    expect_error("payload =", "pay_load =", 17, &["pay_load", "payload"]);
}

#[test]
fn the_format_version_is_checked() {
    expect_error("v = 1", "v = 2", 1, &["2", "`v = 1`"]);
}

#[test]
fn dialect_names_are_checked() {
    for name in ["Team", "4team", "my team", "", "te_am", "t\u{e9}am", &"x".repeat(33)] {
        let to = format!("\"{name}\"");
        expect_error("\"team\"", &to, 2, &[name, "lower-case letters, digits and hyphens"]);
    }
}

#[test]
fn signal_names_are_unique_and_plain() {
    expect_error("STUCK", "SHIPPED", 14, &["`SHIPPED` is defined twice", "unique"]);
    expect_error("STUCK", "ST:UCK", 14, &["`ST:UCK`", "ASCII letters"]);
    expect_error("STUCK", "STUC\u{41a}", 14, &["ASCII letters"]);
    expect_error("STUCK", "", 14, &["1 to 64"]);
}

#[test]
fn a_dialect_has_signals() {
    let without = &VALID[..VALID.find("[[signals]]").unwrap()];
    let error = Dialect::from_toml(without).unwrap_err();
    assert!(error.to_string().contains("signals"), "{error}");
    let empty = without.replacen("\n[syntax]", "signals = []\n\n[syntax]", 1);
    let error = Dialect::from_toml(&empty).unwrap_err();
    assert_eq!(error.line, Some(4), "{error}");
    assert!(error.to_string().contains("at least one signal"), "{error}");
}

#[test]
fn delimiters_have_a_least_length() {
    expect_error("\"<team>\"", "\"<\"", 7, &["`open`", "3 to 64"]);
    expect_error("\"</team>\"", "\"\"", 8, &["`close`", "1 to 64"]);
    expect_error("\"<team>\"", "\"<t\u{e9}am>\"", 7, &["`open`", "ASCII"]);
    expect_error("\"<team>\"", "\"<team> \"", 7, &["`open`"]);
}

#[test]
fn words_that_could_never_be_heard_are_refused() {
    expect_error("</team>", "<team>", 8, &["`close`", "`open`"]);
    expect_error("</team>\"", "</team>\"\nend = \"<end>\"", 9, &["<end>", "<team>"]);
    expect_error("\"SHIPPED\"", "\" SHIPPED\"", 10, &[" SHIPPED", "signal name"]);
}

#[test]
fn meanings_are_named_with_the_known_ones() {
    expect_error("\"blocked\"", "\"bloked\"", 16, &["bloked", "blocked", "needs_human", "done"]);
}

#[test]
fn what_is_not_toml_says_where() {
    expect_error("meaning = \"done\"", "meaning = done", 12, &[]);
    let error = Dialect::from_toml("").unwrap_err();
    assert!(error.to_string().contains("syntax"), "{error}");
}

#[test]
fn a_promise_may_have_another_text() {
    let promise = Dialect::builtin("promise").unwrap();
    let changed = promise.with_word("ALL TESTS PASS").unwrap();
    let new = "<promise>ALL TESTS PASS</promise>";
    let old = "<promise>COMPLETE</promise>";
    assert_eq!(said(changed.clone(), new), ["PROMISE"]);
    assert!(said(changed, old).is_empty());
    assert_eq!(said(promise.clone(), old), ["PROMISE"]);
    assert!(said(promise.clone(), new).is_empty());
}

#[test]
fn a_turn_may_have_another_keyword() {
    let turn = Dialect::builtin("turn").unwrap();
    let changed = turn.with_word("OVER_TO_YOU").unwrap();
    assert_eq!(said(changed.clone(), "Fine by me.\nOVER_TO_YOU"), ["OVER_TO_YOU"]);
    assert!(said(changed, "Fine by me.\nTURN_COMPLETE").is_empty());
    assert!(said(turn.clone(), "Fine by me.\nOVER_TO_YOU").is_empty());
}

#[test]
fn other_dialects_have_no_free_word() {
    for dialect in builtins().iter().filter(|d| !["promise", "turn"].contains(&&*d.name)) {
        let error = dialect.with_word("WORD").unwrap_err();
        assert!(error.message.contains("has no word to set"), "{}: {error}", dialect.name);
    }
}

/// A word that is set follows the rule of one that is written.
#[test]
fn free_words_are_checked_like_written_ones() {
    let turn = Dialect::builtin("turn").unwrap();
    let promise = Dialect::builtin("promise").unwrap();
    let long = "x".repeat(1025);
    for word in ["", "AB", "A B C", "OVER ", "\u{dc}BER", &long] {
        let error = turn.with_word(word).unwrap_err();
        assert!(error.to_string().contains("3 to 64"), "{error}");
        assert!(error.line.is_none() && error.message.len() < 100, "{error}");
    }
    for word in ["", " DONE", "A\nB", "a</promise>", "<promise>", &long] {
        let error = promise.with_word(word).unwrap_err();
        assert!(error.to_string().contains("cannot be the agreed text"), "{error}");
        assert!(error.message.len() < 100, "{error}");
    }
    for word in ["ALL DONE", "\u{dc}ber alles", "x"] {
        assert!(promise.with_word(word).is_ok(), "{word}");
    }
}

/// A tag that begins like a built-in one: while one of them waits for more text, the other must not
/// be read twice.
#[test]
fn tags_that_start_alike_are_read_once() {
    let dialect = load(
        "v = 1\nname = \"long\"\nabout = \"x\"\n[syntax]\nfamily = \"tag\"\n\
         open = \"<promise><<<LONG:\"\nclose = \">>>\"\nend = \"<promise><<<LONG:END>>>\"\n\
         [[signals]]\nname = \"READY\"\nmeaning = \"done\"\n",
    );
    let rules = Rules::new(builtins().iter().cloned().chain([dialect]));
    let text = "It is done. <promise><<<LONG:READY>>> and on it goes for a while.\n\nThe end.\n";
    reads_the_same_in_chunks(&rules, text, 2);
}

#[track_caller]
fn reads_the_same_in_chunks(rules: &Rules, text: &str, findings: usize) {
    let whole = scan(rules, text.as_bytes(), &Origin::assistant());
    assert_eq!(whole.len(), findings, "{whole:#?}");
    for size in 1..text.len() {
        let mut found = Vec::new();
        let mut scanner = crate::Scan::new(rules).stream();
        for chunk in text.as_bytes().chunks(size) {
            scanner.push(chunk, &mut |finding| found.push(finding));
        }
        scanner.finish(&mut |finding| found.push(finding));
        found.sort_by_key(|finding| finding.place().span);
        assert_eq!(found, whole, "in chunks of {size}");
    }
}

/// One sees that its block is broken while another still waits for the end of its own.
#[test]
fn blocks_that_start_alike_are_read_once() {
    let dialect = |name: &str, keys: &str| {
        load(&format!(
            "v = 1\nname = \"{name}\"\nabout = \"x\"\n[syntax]\nfamily = \"block\"\n\
             delimiter = \"===\"\nkey = \"SAYS\"\nkeys = [{keys}]\n\
             [[signals]]\nname = \"READY\"\nmeaning = \"done\"\n"
        ))
    };
    let rules = Rules::new([dialect("short", ""), dialect("long", "\"TWO WORDS\"")]);
    let words = "yes ".repeat(50);
    let text = format!("Here it is.\n\n===\nSAYS: READY\nTWO WORDS: {words}\n===\n\nThe end.\n");
    reads_the_same_in_chunks(&rules, &text, 2);
}

#[test]
fn any_line_may_start_a_prompt() {
    for start in ["PROMPT STARTS", "<prompt>", "=== prompt: ==="] {
        let rules = Rules::new([load(&format!(
            "v = 1\nname = \"own\"\nabout = \"x\"\n[syntax]\nfamily = \"line\"\nbody = true\n\
             [syntax.delegation]\nstart = \"{start}\"\nend = \"PROMPT ENDS\"\nfield = \"prompt\"\n\
             [[signals]]\nname = \"ASK\"\nmeaning = \"info\"\n"
        ))]);
        let text = format!("ASK\nSome words.\n{start}\nASK\nWhich?\nPROMPT ENDS\n");
        let found = scan(&rules, text.as_bytes(), &Origin::assistant());
        let [Finding::Signal(signal)] = found.as_slice() else { panic!("{start}: {found:#?}") };
        assert_eq!(signal.fields["prompt"], "ASK\nWhich?", "{start}");
    }
}

#[test]
fn users_write_dialects_of_every_family() {
    for (family, keys, genuine, signal_keys) in FAMILIES {
        let dialect = load(&family_file(family, keys, signal_keys, true));
        assert_eq!(dialect.syntax.family(), *family);
        assert_eq!(said(dialect.clone(), genuine), ["SHIPPED"], "{family}: {genuine}");
        let crlf = genuine.replace('\n', "\r\n");
        assert_eq!(said(dialect.clone(), &crlf), ["SHIPPED"], "{family}: {crlf:?}");
        for quoted in [
            format!("The form:\n\n````\n{genuine}\n````\n"),
            format!("The form:\n\n~~~~text\n{genuine}\n~~~~\n"),
            format!("<!--\n{genuine}\n-->\n"),
        ] {
            assert!(said(dialect.clone(), &quoted).is_empty(), "{family}: {quoted}");
            let reasons = refused(dialect.clone(), &quoted);
            // A fence inside a longer one may pass as the quotation it is.
            let least = usize::from(*family != "fence");
            assert!(reasons.len() >= least, "{family}: {quoted}");
            assert!(
                reasons.iter().all(|reason| *reason == Reason::Quoted),
                "{family}: {reasons:?}"
            );
        }
    }
}

#[test]
fn required_members_are_required_in_every_family() {
    for (family, keys, genuine, signal_keys) in FAMILIES {
        let requires = |member: &str| {
            let signal_keys = format!("{signal_keys}\nrequire = [\"{member}\"]");
            load(&family_file(family, keys, &signal_keys, true))
        };
        let has_members = genuine.to_lowercase().contains("note");
        let wanted: &[&str] = if has_members { &["SHIPPED"] } else { &[] };
        assert_eq!(said(requires("note"), genuine), wanted, "{family}");
        if has_members && *family != "fence" {
            assert_eq!(said(requires("Note"), genuine), wanted, "{family}: keys in any case");
        }
        assert_eq!(refused(requires("other"), genuine), [Reason::MissingField], "{family}");
    }
}

#[test]
fn tags_may_hold_json() {
    let keys = "open = \"<team>\"\nclose = \"</team>\"";
    let dialect = load(&family_file("tag", keys, "payload = \"json\"", true));
    let found = found(dialect.clone(), "<team>SHIPPED: {\"to\": [1, 2]}</team>");
    let signal = found.first().and_then(Finding::signal).unwrap();
    assert_eq!(signal.fields["to"], serde_json::json!([1, 2]));
    for text in
        ["<team>SHIPPED: {to}</team>", "<team>SHIPPED: {\"to\"}</team>", "<team>SHIPPED</team>"]
    {
        assert!(said(dialect.clone(), text).is_empty(), "{text}");
        assert_eq!(refused(dialect.clone(), text).len(), 1, "{text}");
    }
}

#[test]
fn verdict_words_can_be_switched_off() {
    for (family, keys, genuine, signal_keys) in FAMILIES {
        let on = load(&family_file(family, keys, signal_keys, true));
        let off = load(&family_file(family, keys, signal_keys, false));
        let mentioned = format!("When everything works I will print the marker:\n{genuine}");
        assert!(said(on.clone(), &mentioned).is_empty(), "{family}");
        assert_eq!(refused(on.clone(), &mentioned), [Reason::Introduced], "{family}");
        assert_eq!(said(off.clone(), &mentioned), ["SHIPPED"], "{family}");
        if *family == "trailer" {
            continue;
        }
        let retracted = format!("{genuine}\n\nWait, one test still fails.");
        assert_eq!(refused(on, &retracted), [Reason::Retracted], "{family}");
        assert_eq!(said(off, &retracted), ["SHIPPED"], "{family}");
    }
}

#[test]
fn phases_of_old_forms_are_spelled_as_those_of_today() {
    for (said, phase) in [("Implementation", "IMPL"), ("COMPLETED", "COMPLETE"), ("x", "X")] {
        let block = format!("NAVIGATOR_STATUS\n===\nPhase: {said}\u{200b}\n===\n");
        for text in [block, format!("PHASE: Verification → {said}\u{200b}")] {
            let found = found(Dialect::builtin("pilot").unwrap().clone(), &text);
            let signal = found.first().and_then(Finding::signal).unwrap();
            assert_eq!(signal.fields["phase"], phase, "{text}");
            assert!(signal.fields.get("from").is_none_or(|from| from == "VERIFY"), "{text}");
        }
    }
}
