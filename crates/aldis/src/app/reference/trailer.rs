//! The JavaScript patterns of seed 003, `/TURN_COMPLETE\s*$/` and its strip, without backtracking:
//! the seed's own strip takes hours on ten megabytes of blanks.

use super::Hit;
use super::tags::js_blank;
use aldis_signal::dialect::Syntax;

const KEYWORD: &str = "TURN_COMPLETE";

pub(super) fn turn(syntax: &Syntax, text: &str) -> Vec<Hit> {
    let keyword = match syntax {
        Syntax::Trailer(trailer) => trailer.keyword.as_str(),
        Syntax::Block(_)
        | Syntax::Fence(_)
        | Syntax::Line(_)
        | Syntax::Status(_)
        | Syntax::Tag(_) => KEYWORD,
    };
    match before(text, keyword) {
        Some(rest) => vec![Hit::new(keyword, rest.len(), text.len())],
        None => Vec::new(),
    }
}

/// Returns what stands before a final keyword.
fn before<'t>(text: &'t str, keyword: &str) -> Option<&'t str> {
    text.trim_end_matches(js_blank).strip_suffix(keyword)
}

/// Removes the final TURN_COMPLETE as seed 003 does:
/// `message.replace(/\s*TURN_COMPLETE\s*$/, '').trim()`. It takes one keyword, and it takes the
/// message's own leading indentation too.
pub fn strip_turn(text: &str) -> String {
    before(text, KEYWORD).unwrap_or(text).trim_matches(js_blank).to_owned()
}
