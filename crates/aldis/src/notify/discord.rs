//! Discord webhooks: a persona's name and picture, pieces that fit, nobody mentioned.

use serde_json::{Value, json};

use super::sink::{Address, Delivery, answered};
use crate::view::wire::notice::Notice;

/// The longest message that Discord takes, in characters as it counts them.
const PIECE_MAX: usize = 2_000;
/// The most pieces that one post becomes; what is longer is cut.
const PIECES_MAX: usize = 10;
/// The longest name.
const NAME_MAX: usize = 80;

/// Cuts a post into pieces that Discord takes. Each is delivered by itself, so that one that fails
/// does not repeat those before it.
pub(super) fn pieces(post: &Value) -> Vec<Value> {
    let text = post.get("text").and_then(Value::as_str).unwrap_or_default();
    let piece = |text: String| {
        let mut piece = post.clone();
        if let Value::Object(members) = &mut piece {
            members.insert("text".to_owned(), Value::String(text));
        }
        piece
    };
    cut_up(text).into_iter().map(piece).collect()
}

pub(super) fn send(address: &Address, notice: &Notice) -> Delivery {
    let text = |name: &str| notice.data.effect.as_ref()?.get(name)?.as_str();
    let name = display_name(text("name").or_else(|| text("agent")).unwrap_or("aldis"));
    let avatar = text("avatar").filter(|url| url.starts_with("https://"));
    let mut body = json!({
        "content": text("text").unwrap_or_default(),
        "username": name,
        // Nothing that an agent writes calls anybody.
        "allowed_mentions": { "parse": [] },
    });
    if let (Some(avatar), Value::Object(members)) = (avatar, &mut body) {
        members.insert("avatar_url".to_owned(), json!(avatar));
    }
    // Without `wait` Discord answers before it knows whether it takes the message.
    let request = address
        .agent
        .post(&address.url)
        .query("wait", "true")
        .header("content-type", "application/json");
    answered(request.send(body.to_string().as_bytes()))
}

/// A name that Discord takes.
fn display_name(name: &str) -> String {
    // It refuses names with these words in them.
    let taken = ["discord", "clyde"].iter().any(|word| name.to_lowercase().contains(word));
    let short: String = name.trim().chars().take(NAME_MAX).collect();
    if taken || short.is_empty() { "agent".to_owned() } else { short }
}

/// Cuts a text into pieces that fit, at line ends where there are any.
fn cut_up(text: &str) -> Vec<String> {
    let mut rest = text.trim_end();
    let mut pieces = Vec::new();
    while !rest.is_empty() && pieces.len() < PIECES_MAX {
        let (piece, later) = cut(rest);
        if !piece.trim().is_empty() {
            pieces.push(piece.to_owned());
        }
        rest = later;
    }
    if let (false, Some(last)) = (rest.is_empty(), pieces.last_mut()) {
        let kept: String = last.chars().take(PIECE_MAX - 100).collect();
        // Two characters of the old piece may count for one of ours: stay well below the limit.
        *last = format!("{}\n… (cut)", fitting(&kept).0);
    }
    pieces
}

/// Cuts off the first piece.
fn cut(text: &str) -> (&str, &str) {
    let (fits, rest) = fitting(text);
    if rest.is_empty() {
        return (fits, rest);
    }
    match fits.rfind('\n') {
        Some(end) if end > 0 => {
            let (piece, later) = text.split_at(end);
            (piece, later.strip_prefix('\n').unwrap_or(later))
        }
        _ => (fits, rest),
    }
}

/// Splits behind the last character that fits. Discord counts UTF-16 units.
fn fitting(text: &str) -> (&str, &str) {
    let mut units = 0;
    let end = text.char_indices().find_map(|(at, c)| {
        units += c.len_utf16();
        (units > PIECE_MAX).then_some(at)
    });
    text.split_at(end.unwrap_or(text.len()))
}

#[cfg(test)]
mod tests {
    //! Pieces and names.

    use super::*;

    #[test]
    fn long_texts_become_pieces_that_fit() {
        let line = format!("{}\n", "x".repeat(99));
        for (name, text, want) in [
            ("empty", String::new(), vec![]),
            ("short", "hello\n".to_owned(), vec![5]),
            ("just fits", "y".repeat(2_000), vec![2_000]),
            ("one too many", "y".repeat(2_001), vec![2_000, 1]),
            ("at line ends", line.repeat(30), vec![1_999, 999]),
            ("two units each", "😀".repeat(1_001), vec![1_000, 1]),
        ] {
            let lengths: Vec<usize> =
                cut_up(&text).iter().map(|piece| piece.chars().count()).collect();
            assert_eq!(lengths, want, "{name}");
        }
        let huge = cut_up(&"z".repeat(100_000));
        assert_eq!(huge.len(), PIECES_MAX);
        assert!(huge.iter().all(|piece| piece.encode_utf16().count() <= PIECE_MAX));
        assert!(huge.last().unwrap().ends_with("… (cut)"));
    }

    #[test]
    fn pieces_lose_nothing_but_line_ends() {
        let text = format!("{}\n\n{}\nend", "a b\n".repeat(700), "c".repeat(1_990));
        let joined = cut_up(&text);
        let plain = |text: &str| text.replace('\n', "");
        assert_eq!(plain(&joined.concat()), plain(&text));
    }

    #[test]
    fn names_are_such_that_discord_takes_them() {
        for (name, want) in [
            ("Product", "Product"),
            (" ", "agent"),
            ("My Discord Bot", "agent"),
            ("CLYDE", "agent"),
        ] {
            assert_eq!(display_name(name), want);
        }
        assert_eq!(display_name(&"n".repeat(200)).len(), NAME_MAX);
    }
}
