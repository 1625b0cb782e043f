//! What is told from the bytes of a line alone.

use super::*;

#[test]
fn strings_end_where_they_say() {
    for length in 1..50 {
        for (at, odd) in (0..length).flat_map(|at| [(at, b'"'), (at, b'\\')]) {
            let mut id = vec![b'a'; length];
            assert!(is_plain(&id));
            id[at] = odd;
            assert!(!is_plain(&id), "{at} of {length}");
        }
    }
    assert_eq!(plain_until_quote("é\" x".as_bytes()), Some(("é".as_bytes(), &b"\" x"[..])));
    for left_to_the_parser in [&b"a\\\"b\""[..], b"a\xFF\"", b"a"] {
        assert_eq!(plain_until_quote(left_to_the_parser), None, "{left_to_the_parser:?}");
    }
}
