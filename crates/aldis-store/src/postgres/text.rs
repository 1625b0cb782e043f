//! Text as PostgreSQL keeps it: anything but NUL, which is escaped so that the order of bytes stays.

use std::borrow::Cow;

const NUL: char = '\0';
const ESCAPE: char = '\u{1}';

/// Returns the text to store. NUL becomes `01 01` and the escape itself `01 02`: no other text
/// looks like that, and whatever was sorted before is sorted before.
pub(super) fn encode(text: &str) -> Cow<'_, str> {
    if !text.contains([NUL, ESCAPE]) {
        return Cow::Borrowed(text);
    }
    let mut encoded = String::with_capacity(text.len() + 8);
    for character in text.chars() {
        match character {
            NUL => encoded.push_str("\u{1}\u{1}"),
            ESCAPE => encoded.push_str("\u{1}\u{2}"),
            other => encoded.push(other),
        }
    }
    Cow::Owned(encoded)
}

/// Returns the text that was stored.
pub(super) fn decode(stored: String) -> String {
    if !stored.contains(ESCAPE) {
        return stored;
    }
    let mut text = String::with_capacity(stored.len());
    let mut characters = stored.chars();
    while let Some(character) = characters.next() {
        text.push(match character {
            ESCAPE if characters.next() == Some('\u{1}') => NUL,
            other => other,
        });
    }
    text
}

/// Returns a label as one element of the column `requires`. It never is empty, and has no line feed.
pub(super) fn encode_label(label: &str) -> String {
    format!(":{}", encode(&label.replace('\\', "\\\\").replace('\n', "\\n")))
}

/// Returns the label of such an element.
pub(super) fn decode_label(stored: String) -> String {
    let escaped = decode(stored);
    let mut label = String::with_capacity(escaped.len());
    let mut characters = escaped.chars().skip(1);
    while let Some(character) = characters.next() {
        label.push(match character {
            '\\' if characters.next() == Some('n') => '\n',
            other => other,
        });
    }
    label
}

#[cfg(test)]
mod tests {
    //! Whatever is stored comes back, and in the order of its bytes.

    use proptest::prelude::*;

    use super::*;

    fn awkward() -> impl Strategy<Value = String> {
        "[\0\u{1}\u{2}a\\\\n\né]{0,6}"
    }

    proptest! {
        #[test]
        fn text_comes_back_in_order(one in awkward(), other in awkward()) {
            let [stored, later] = [&one, &other].map(|text| encode(text).into_owned());
            prop_assert!(!stored.contains(NUL));
            prop_assert_eq!(stored.cmp(&later), one.cmp(&other));
            prop_assert_eq!(decode(stored), one);
        }

        #[test]
        fn labels_come_back(label in awkward()) {
            let stored = encode_label(&label);
            prop_assert!(!stored.contains(['\n', NUL]) && !stored.is_empty());
            prop_assert_eq!(decode_label(stored), label);
        }
    }
}
