//! Whatever a settings file looks like: nothing of it is lost, and all of ours goes again.

use proptest::prelude::*;

use super::*;
use crate::hosts::install::Form;

const HOSTS: [Host; 7] = [
    Host::ClaudeCode,
    Host::Codex,
    Host::Gemini,
    Host::Cursor,
    Host::Copilot,
    Host::Qwen,
    Host::Droid,
];

fn layout(host: Host) -> Layout {
    match host.form() {
        Form::Entries(layout) => layout,
        Form::Files(_) => unreachable!("{host:?} has files"),
    }
}

fn added(host: Host, program: &str, text: &str) -> Document {
    let mut document = Document::parse(text.as_bytes()).unwrap();
    add(host, &layout(host), program, &mut document).unwrap();
    document
}

fn text(document: Document) -> String {
    String::from_utf8(document.into_bytes()).unwrap()
}

/// A value without its ranges.
fn plain(node: &Node) -> serde_json::Value {
    match &node.kind {
        Kind::Object(members) => {
            members.iter().map(|(name, _, value)| (name.clone(), plain(value))).collect()
        }
        Kind::Array(items) => items.iter().map(plain).collect(),
        Kind::Text(text) => text.clone().into(),
        Kind::Flag(flag) => (*flag).into(),
        Kind::Number(number) => number.clone().into(),
        Kind::Null => serde_json::Value::Null,
    }
}

#[test]
fn registers_what_each_host_wants() {
    for host in HOSTS {
        insta::assert_snapshot!(host.name(), text(added(host, "aldis", "{}\n")));
    }
}

#[test]
fn a_shell_gets_quotes_where_it_needs_them() {
    let line = text(added(Host::Codex, "/opt/it's here/aldis", "{}\n"));
    assert!(line.contains(r#""command": "'/opt/it'\\''s here/aldis' hook codex""#), "{line}");
    let list = text(added(Host::ClaudeCode, "/opt/it's here/aldis", "{}\n"));
    assert!(list.contains(r#""command": "/opt/it's here/aldis""#), "{list}");
}

#[test]
fn another_program_takes_the_place_of_the_first() {
    for host in HOSTS {
        let first = text(added(host, "aldis", "{\n  // mine\n  \"a\": 1\n}\n"));
        let second = text(added(host, "/opt/aldis", &first));
        assert_eq!(second, text(added(host, "/opt/aldis", "{\n  // mine\n  \"a\": 1\n}\n")));
    }
}

#[test]
fn knows_other_spellings() {
    let table = [
        (r#"{"command": "aldis", "args": ["hook", "codex"]}"#, 1, 0),
        (r#"{"command": "'/a b/aldis' hook codex"}"#, 1, 0),
        (r#"{"command": "aldis hook stop --host codex"}"#, 0, 1),
        (r#"{"command": "aldis hook gemini"}"#, 0, 1),
        (r#"{"command": "sh -c 'aldis hook codex'"}"#, 0, 1),
        (r#"{"command": "aldis hook \"$(cat .run)\""}"#, 0, 1),
        (r#"{"command": "./aldis hook codex"}"#, 0, 1),
        (r#"{"command": "caldis hooks"}"#, 0, 0),
        (r#"{"command": 1}"#, 0, 0),
        ("1", 0, 0),
    ];
    for (handler, ours, others) in table {
        let file = format!("{{\"hooks\": {{\"Stop\": [{{\"hooks\": [{handler}]}}]}}}}");
        let document = Document::parse(file.as_bytes()).unwrap();
        let found = find(Host::Codex, &document).unwrap();
        assert_eq!((found.ours.len(), found.others.len()), (ours, others), "{handler}");
    }
}

#[test]
fn odd_files_are_refused() {
    for (file, message) in [
        (r#"{"hooks": []}"#, "line 1: `hooks` is not an object"),
        ("{\"hooks\": {\n\"Stop\": 1}}", "line 2: `hooks.Stop` is not an array"),
    ] {
        let mut document = Document::parse(file.as_bytes()).unwrap();
        let error = add(Host::Codex, &layout(Host::Codex), "aldis", &mut document).unwrap_err();
        assert_eq!(error.to_string(), message);
    }
}

#[test]
fn leaves_the_neighbours_in_a_group() {
    let file = r#"{"hooks": {"Stop": [{"hooks": [{"command": "mine"}, {"command": "aldis hook codex"}]}]}}"#;
    let mut document = Document::parse(file.as_bytes()).unwrap();
    remove(Host::Codex, &mut document).unwrap();
    assert_eq!(text(document), r#"{"hooks": {"Stop": [{"hooks": [{"command": "mine"}]}]}}"#);
}

/// Blanks and comments, as people put them between tokens.
fn trivia() -> impl Strategy<Value = String> {
    let part = prop_oneof![
        4 => Just(" "),
        4 => Just("\n"),
        2 => Just("\n    "),
        1 => Just("\r\n\t"),
        1 => Just("// a, \"b\" {\n"),
        1 => Just("/* , } */"),
    ];
    proptest::collection::vec(part, 0..3).prop_map(|parts| parts.concat())
}

/// A value as people write it. With `full`, containers are not empty.
fn value() -> impl Strategy<Value = String> {
    let leaf = prop_oneof![
        Just("1".to_owned()),
        Just("-2.5e3".to_owned()),
        Just("null".to_owned()),
        Just("true".to_owned()),
        "[a-z,/ ]{0,6}".prop_map(|text| format!("\"{text}\"")),
        Just(r#""// \" } ü \u00e9""#.to_owned()),
    ];
    leaf.prop_recursive(3, 12, 3, |inner| {
        prop_oneof![
            list(inner.clone(), '[', ']', 0),
            list((("[a-z]{1,4}"), inner).prop_map(|(k, v)| format!("\"{k}\": {v}")), '{', '}', 0),
        ]
    })
}

fn list(
    item: impl Strategy<Value = String> + 'static,
    open: char,
    close: char,
    least: usize,
) -> impl Strategy<Value = String> {
    let items = proptest::collection::vec((trivia(), item, trivia()), least..least + 3);
    (items, trivia(), any::<bool>()).prop_map(move |(items, end, trailing)| {
        let count = items.len();
        let mut text = open.to_string();
        for (index, (before, item, after)) in items.into_iter().enumerate() {
            text.extend([before, item, after]);
            if index + 1 < count || trailing {
                text.push(',');
            }
        }
        text + &end + &close.to_string()
    })
}

/// A settings file, with or without somebody else's hooks.
fn settings() -> impl Strategy<Value = String> {
    let group = value().prop_map(|value| {
        format!("{{\"hooks\": [{{\"type\": \"command\", \"command\": \"mine\", \"x\": {value}}}]}}")
    });
    let event = proptest::sample::select(vec!["Stop", "stop", "AfterAgent", "PreToolUse"]);
    let event = (event, list(group, '[', ']', 1)).prop_map(|(k, v)| format!("\"{k}\": {v}"));
    let hooks = list(event, '{', '}', 1).prop_map(|hooks| format!("\"hooks\": {hooks}"));
    let other = ("k[a-z]{1,3}", value()).prop_map(|(k, v)| format!("\"{k}\": {v}"));
    let version = Just("\"version\": 1".to_owned());
    let first = (trivia(), list(version, '{', '}', 1), trivia());
    let full = (trivia(), list(prop_oneof![3 => other, 1 => hooks], '{', '}', 1), trivia());
    prop_oneof![1 => first, 4 => full].prop_map(|(before, object, after)| before + &object + &after)
}

fn host() -> impl Strategy<Value = Host> {
    proptest::sample::select(HOSTS.to_vec())
}

proptest! {
    #[test]
    fn twice_is_once(host in host(), file in settings()) {
        let once = text(added(host, "aldis", &file));
        assert_eq!(text(added(host, "aldis", &once)), once);
    }

    #[test]
    fn what_was_there_stays(host in host(), file in settings()) {
        let before = Document::parse(file.as_bytes()).unwrap();
        let mut document = added(host, "aldis", &file);
        assert_eq!(find(host, &document).unwrap().ours.len(), layout(host).events.len());
        remove(host, &mut document).unwrap();
        let (mut after, before) = (plain(&document.root().unwrap()), plain(&before.root().unwrap()));
        if before.get("version").is_none() {
            after.as_object_mut().unwrap().remove("version");
        }
        assert_eq!(after, before);
    }

    #[test]
    fn removing_gives_the_text_back(file in settings()) {
        let host = Host::Codex;
        // Of two members with one name the last counts; the first may be passed over.
        prop_assume!(file.matches("\"hooks\": {").count() <= 1);
        prop_assume!(file.matches("\"Stop\"").count() <= 1);
        let mut document = added(host, "aldis", &file);
        remove(host, &mut document).unwrap();
        assert_eq!(text(document), file);
    }
}
