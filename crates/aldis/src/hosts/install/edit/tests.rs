//! Changes in all the styles that people write JSON in.

use super::*;

fn check(before: &str, path: &[&str], name: Option<&str>, value: &Json, after: &str) {
    let mut document = Document::parse(before.as_bytes()).unwrap();
    let root = document.root().unwrap();
    document.append(root.find(path).unwrap(), name, value);
    assert_eq!(String::from_utf8(document.clone().into_bytes()).unwrap(), after);
    let root = document.root().unwrap();
    let container = root.find(path).unwrap();
    let last = container.parts().len() - 1;
    document.remove(container, last);
    assert_eq!(String::from_utf8(document.into_bytes()).unwrap(), before, "after removal");
}

#[test]
fn adds_in_the_style_of_the_file() {
    let value = Json::Object(vec![("x", Json::Array(vec![Json::Number(1), Json::text("ü\"")]))]);
    let table = [
        ("{}\n", "{\n  \"k\": {\n    \"x\": [1, \"ü\\\"\"]\n  }\n}\n"),
        (r#"{"a":1}"#, r#"{"a":1, "k": {"x": [1, "ü\""]}}"#),
        ("{\n\t\"a\": 1\n}", "{\n\t\"a\": 1,\n\t\"k\": {\n\t\t\"x\": [1, \"ü\\\"\"]\n\t}\n}"),
        (
            "{\r\n    \"a\": 1\r\n}\r\n",
            "{\r\n    \"a\": 1,\r\n    \"k\": {\r\n        \"x\": [1, \"ü\\\"\"]\r\n    }\r\n}\r\n",
        ),
        (
            "{\n  \"a\": 1, // about a\n}",
            "{\n  \"a\": 1, // about a\n  \"k\": {\n    \"x\": [1, \"ü\\\"\"]\n  },\n}",
        ),
        (
            "// top\n{\n  \"a\": 1 // about a, too\n  /* end */\n} // bye",
            "// top\n{\n  \"a\": 1, // about a, too\n  /* end */\n  \"k\": {\n    \"x\": [1, \"ü\\\"\"]\n  }\n} // bye",
        ),
        ("\u{feff}{}\n", "\u{feff}{\n  \"k\": {\n    \"x\": [1, \"ü\\\"\"]\n  }\n}\n"),
    ];
    for (before, after) in table {
        check(before, &[], Some("k"), &value, after);
    }
}

#[test]
fn adds_to_lists() {
    check(r#"{"a": [1]}"#, &["a"], None, &Json::Number(2), r#"{"a": [1, 2]}"#);
    check(
        "{\n  \"a\": [\n    1\n  ]\n}",
        &["a"],
        None,
        &Json::Number(2),
        "{\n  \"a\": [\n    1,\n    2\n  ]\n}",
    );
}

#[test]
fn removes_from_the_middle() {
    let table = [
        (r#"{"a": [1, 2, 3]}"#, 0, r#"{"a": [ 2, 3]}"#),
        (r#"{"a": [1, 2, 3]}"#, 1, r#"{"a": [1, 3]}"#),
        (r#"{"a": [1, 2, 3,]}"#, 2, r#"{"a": [1, 2,]}"#),
        ("{\"a\": [ // c\n 1, 2]}", 0, "{\"a\": [ // c\n  2]}"),
        ("{\"a\": [1, // c\n 2]}", 1, "{\"a\": [1 // c\n ]}"),
        ("{\"a\": [\n  1\n]}", 0, "{\"a\": []}"),
    ];
    for (before, index, after) in table {
        let mut document = Document::parse(before.as_bytes()).unwrap();
        let root = document.root().unwrap();
        document.remove(root.get("a").unwrap(), index);
        assert_eq!(document.text, after, "{before}");
        document.root().unwrap();
    }
}

#[test]
fn says_where_a_file_is_wrong() {
    let table: &[(&[u8], &str)] = &[
        (b"{\n  \"a\": 1\n  \"b\": 2\n}", "line 2: not valid JSON"),
        (b"{\n  \"a\": \n", "line 3: not valid JSON"),
        (b"[]", "line 1: the file is not a JSON object"),
        (b"// nothing", "line 1: the file holds only comments"),
        (b"{\n\"a\": \"\xff\"}", "line 2: not UTF-8"),
        (b"{'a': 1}", "line 1: not valid JSON"),
        (b"{a: 1}", "line 1: not valid JSON"),
    ];
    for (bytes, expected) in table {
        let error = Document::parse(bytes).unwrap_err().to_string();
        assert!(error.starts_with(expected), "{error} instead of {expected}");
    }
}
