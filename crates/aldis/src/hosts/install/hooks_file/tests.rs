//! Whatever a settings file looks like: nothing of it is lost, and all of ours goes again.

use proptest::prelude::*;
use serde_json::json;

use super::*;
use crate::hosts::Host;
use crate::hosts::spec::Registration;
use crate::hosts::tests::*;

const HOSTS: [Host; 8] = [ANTIGRAVITY, CLAUDE_CODE, CODEX, GEMINI, CURSOR, COPILOT, QWEN, DROID];

fn layout(host: Host) -> Layout {
    match host.spec().registration {
        Registration::Entries(layout) => layout,
        Registration::Plugin { .. } => unreachable!("{host:?} has a plugin"),
    }
}

fn try_add(host: Host, program: &str, text: &str) -> Result<Document, EditError> {
    let document = Document::parse(text.as_bytes())?;
    add(host.name(), &layout(host), program, &document).map(|()| document)
}

fn added(host: Host, program: &str, text: &str) -> String {
    try_add(host, program, text).unwrap().text()
}

fn removed(host: Host, text: &str) -> String {
    remove(host.name(), Document::parse(text.as_bytes()).unwrap()).unwrap().text()
}

/// What a file says, without its comments and blanks.
fn value(text: &str) -> Value {
    edit::read_json(text.as_bytes()).unwrap()
}

/// The comments of a file, in order.
fn comments(text: &str) -> Vec<String> {
    fn add(node: &CstNode, found: &mut Vec<String>) {
        found.extend(node.as_comment().map(|comment| comment.raw_value()));
        node.children().iter().for_each(|child| add(child, found));
    }
    let mut found = Vec::new();
    let document = Document::parse(text.as_bytes()).unwrap();
    add(&document.object.root_node().unwrap().into(), &mut found);
    found
}

#[test]
fn registers_what_each_host_wants() {
    for host in HOSTS {
        insta::assert_snapshot!(host.name(), added(host, "aldis", "{}\n"));
    }
}

#[test]
fn a_shell_gets_quotes_where_it_needs_them() {
    let line = added(CODEX, "/opt/it's here/aldis", "{}\n");
    assert!(line.contains(r#""command": "'/opt/it'\\''s here/aldis' hook codex""#), "{line}");
    let list = added(CLAUDE_CODE, "/opt/it's here/aldis", "{}\n");
    assert!(list.contains(r#""command": "/opt/it's here/aldis""#), "{list}");
}

#[test]
fn another_program_takes_the_place_of_the_first() {
    for host in HOSTS {
        let file = "{\n  // mine\n  \"a\": 1\n}\n";
        let second = added(host, "/opt/aldis", &added(host, "aldis", file));
        assert_eq!(second, added(host, "/opt/aldis", file));
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
        let found = find(CODEX.name(), &document).unwrap();
        assert_eq!((found.current.len(), found.outdated.len()), (ours, others), "{handler}");
    }
}

#[test]
fn odd_files_are_refused() {
    for (file, message) in [
        (r#"{"hooks": []}"#, "line 1: `hooks` is not an object"),
        ("{\"hooks\": {\n\"Stop\": 1}}", "line 2: `hooks.Stop` is not an array"),
        ("{\"hooks\": {},\n\"hooks\": {}}", "line 2: `hooks` is there twice"),
        ("{\"hooks\": {\"Stop\": [],\n\n\"Stop\": []}}", "line 3: `Stop` is there twice"),
    ] {
        let error = try_add(CODEX, "aldis", file).unwrap_err();
        assert_eq!(error.to_string(), message);
    }
}

#[test]
fn leaves_the_neighbours_in_a_group() {
    let file = r#"{"hooks": {"Stop": [{"hooks": [{"command": "mine"}, {"command": "aldis hook codex"}]}]}}"#;
    assert_eq!(removed(CODEX, file), r#"{"hooks": {"Stop": [{"hooks": [{"command": "mine"}]}]}}"#);
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

/// A value as people write it.
fn any_value() -> impl Strategy<Value = String> {
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
    let group = any_value().prop_map(|value| {
        format!("{{\"hooks\": [{{\"type\": \"command\", \"command\": \"mine\", \"x\": {value}}}]}}")
    });
    let event = proptest::sample::select(vec!["Stop", "stop", "AfterAgent", "PreToolUse"]);
    let event = (event, list(group, '[', ']', 1)).prop_map(|(k, v)| format!("\"{k}\": {v}"));
    let hooks = list(event, '{', '}', 1).prop_map(|hooks| format!("\"hooks\": {hooks}"));
    let other = ("k[a-z]{1,3}", any_value()).prop_map(|(k, v)| format!("\"{k}\": {v}"));
    let version = Just("\"version\": 1".to_owned());
    let first = (trivia(), list(version, '{', '}', 1), trivia());
    let full = (trivia(), list(prop_oneof![3 => other, 1 => hooks], '{', '}', 1), trivia());
    prop_oneof![1 => first, 4 => full].prop_map(|(before, object, after)| before + &object + &after)
}

/// A settings file as editors and hosts write it: one member a line, evenly indented, comments on
/// lines of their own or at the end of one.
fn tidy_settings() -> impl Strategy<Value = String> {
    let style = (
        proptest::sample::select(vec!["  ", "    ", "\t"]),
        proptest::sample::select(vec!["\n", "\r\n"]),
        any::<bool>(),
        proptest::collection::vec(0..4_u8, 1..6),
    );
    let event = || proptest::sample::select(vec!["Stop", "PreToolUse", "SessionEnd"]);
    let groups = proptest::collection::vec(Just(json!({"hooks": [{"command": "mine"}]})), 1..3);
    let hooks = proptest::collection::btree_map(event(), groups, 1..3);
    let other = prop_oneof![Just(json!(1)), Just(json!({})), Just(json!(["a", {"b": null}]))];
    let others = proptest::collection::btree_map("k[a-z]{1,2}", other, 1..3);
    (style, proptest::option::of(hooks), others).prop_map(|(style, hooks, others)| {
        let mut file = json!(others);
        if let Some(hooks) = hooks {
            file["hooks"] = json!(hooks);
        }
        let (unit, newline, trailing, ref comments) = style;
        let mut comments = comments.iter().copied().cycle();
        let mut text = String::new();
        tidy(&file, "", (unit, newline, trailing), &mut comments, &mut text);
        text + newline
    })
}

fn tidy(
    value: &Value,
    indent: &str,
    style: (&str, &str, bool),
    comments: &mut impl Iterator<Item = u8>,
    out: &mut String,
) {
    let (open, close, parts): (_, _, Vec<(Option<&String>, &Value)>) = match value {
        Value::Object(members) => ('{', '}', members.iter().map(|(k, v)| (Some(k), v)).collect()),
        Value::Array(items) => ('[', ']', items.iter().map(|item| (None, item)).collect()),
        scalar => return out.push_str(&scalar.to_string()),
    };
    out.push(open);
    let (unit, newline, trailing) = style;
    let (inner, last) = (format!("{indent}{unit}"), parts.len());
    for (index, (name, part)) in parts.into_iter().enumerate() {
        out.extend([newline, &inner]);
        let comment = comments.next().unwrap();
        if comment == 1 {
            out.extend(["/* one, two } */", newline, &inner]);
        }
        out.extend(name.map(|name| format!("\"{name}\": ")));
        tidy(part, &inner, style, comments, out);
        out.extend((index + 1 < last || trailing).then_some(","));
        out.extend((comment == 2).then_some(" // three, {"));
        if index + 1 == last {
            out.extend([newline, indent]);
        }
    }
    out.push(close);
}

fn host() -> impl Strategy<Value = Host> {
    proptest::sample::select(HOSTS.to_vec())
}

proptest! {
    #[test]
    fn twice_is_once(host in host(), file in settings()) {
        let Ok(once) = try_add(host, "aldis", &file) else { return Ok(()) };
        assert_eq!(added(host, "aldis", &once.text()), once.text());
    }

    #[test]
    fn what_was_there_stays(host in host(), file in settings()) {
        let Ok(document) = try_add(host, "aldis", &file) else { return Ok(()) };
        let entries = layout(host).events.len() + layout(host).wakes_after.len();
        assert_eq!(find(host.name(), &document).unwrap().current.len(), entries);
        let with = document.text();
        assert_eq!(comments(&with), comments(&file), "{with}");
        let without = removed(host, &with);
        assert_eq!(comments(&without), comments(&file), "{without}");
        let (mut after, before) = (value(&without), value(&file));
        if before.get("version").is_none() {
            after.as_object_mut().unwrap().remove("version");
        }
        assert_eq!(after, before);
    }

    #[test]
    fn removing_gives_the_text_back(file in tidy_settings()) {
        let with = added(CODEX, "aldis", &file);
        assert_eq!(removed(CODEX, &with), file, "{with}");
    }
}
