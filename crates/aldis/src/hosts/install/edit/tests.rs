//! Files that are refused, and what is read of the others.

use super::*;

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

#[test]
fn a_file_that_is_not_changed_keeps_every_byte() {
    for text in ["{}", "\u{feff}{ }", "{\r\n\t\"a\": [1, /* b */ 2,], // c\r\n}\r\n\r\n", "//\n{}"]
    {
        assert_eq!(Document::parse(text.as_bytes()).unwrap().text(), text);
    }
    for blank in ["", " \n", "\u{feff}"] {
        assert!(Document::parse(blank.as_bytes()).unwrap().text().ends_with(EMPTY));
    }
}

#[test]
fn names_that_stand_twice_are_found() {
    let check = |text: &str| check_names(&Document::parse(text.as_bytes()).unwrap().object);
    assert_eq!(check("{\"a\": 1, \"b\": {\"a\": 1}}"), Ok(()));
    let error = check("{\"a\": 1,\n\"\\u0061\": 2}").unwrap_err();
    assert_eq!(error.to_string(), "line 2: `a` is there twice");
}

#[test]
fn reads_what_hosts_read() {
    let value = read_json("\u{feff}{\"a\": {\"b\": [1,]}, // c\n}".as_bytes()).unwrap();
    assert_eq!(find(&value, &["a", "b"]), Some(&serde_json::json!([1])));
    assert_eq!(find(&value, &["a", "c"]), None);
    assert_eq!(read_json(b"{"), None);
}
