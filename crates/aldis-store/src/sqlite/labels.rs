//! Labels as one text: each ends with a line feed, so that an empty list and an empty label differ.

pub(super) fn encode(labels: &[String]) -> String {
    let escaped = labels.iter().map(|label| label.replace('\\', "\\\\").replace('\n', "\\n"));
    escaped.map(|label| label + "\n").collect()
}

pub(super) fn decode(text: &str) -> Vec<String> {
    text.split_terminator('\n').map(unescape).collect()
}

fn unescape(escaped: &str) -> String {
    let mut label = String::with_capacity(escaped.len());
    let mut characters = escaped.chars();
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
    //! Whatever a label says, it comes back.

    use super::*;

    #[test]
    fn labels_come_back() {
        for labels in [&[][..], &[""], &["", ""], &["a"], &["a", "\n", "\\n", "\\", "a\nb\\\\n"]] {
            let labels: Vec<String> = labels.iter().map(|&label| label.to_owned()).collect();
            assert_eq!(decode(&encode(&labels)), labels);
        }
    }
}
