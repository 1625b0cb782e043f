//! What is told from the bytes of a line alone.

use super::*;

#[test]
fn prints_tell_lines_apart() {
    for length in [1, 31, 32, 33, 63, 64, 65, 127, 128, 129, 500] {
        let line: Vec<u8> = (0..length).map(|n: u32| (n * 7) as u8).collect();
        for matters in [false, true] {
            let own = print(&line, matters);
            assert_eq!(own, print(&line.clone(), matters));
            assert_ne!(own, print(&line, !matters));
            assert_ne!(own, print(&[&line[..], b"\0"].concat(), matters), "{length} and one more");
            for at in 0..line.len() {
                let mut other = line.clone();
                other[at] ^= 1;
                // In the middle of a line that is only counted nothing is looked at.
                let seen = matters || at < ENDS || line.len() - at <= ENDS;
                assert_eq!(own != print(&other, matters), seen, "{at} of {length}, {matters}");
            }
        }
    }
}

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
