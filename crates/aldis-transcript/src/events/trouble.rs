//! Tells limits from other errors, by the words of hosts and services.
//!
//! Both tables are only asked about text that a host wrote. [`kind`] is for members that hold an
//! error and nothing else; [`line`] for texts that might be something else, and knows whole lines.

use std::sync::LazyLock;

use regex::RegexSet;

/// Whether waiting helps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// The service will work again by itself.
    Limit,
    /// Somebody must do something.
    Error,
}

/// Judges the text of an error.
pub(crate) fn kind(text: &str) -> Kind {
    let passes = LIMIT.is_match(text) || OUTAGE.is_match(text);
    if passes && !NO_LIMIT.is_match(text) { Kind::Limit } else { Kind::Error }
}

/// Whether what passes by itself is no limit: the service or the way to it is broken.
pub(crate) fn is_outage(text: &str) -> bool {
    OUTAGE.is_match(text) && !LIMIT.is_match(text)
}

/// Judges an error by its HTTP status or its name in Claude's and OpenAI's lists, else by its text.
pub(crate) fn kind_of(status: Option<u64>, name: Option<&str>, text: &str) -> Kind {
    match name {
        Some("rate_limit" | "rate_limit_error" | "overloaded" | "overloaded_error") => Kind::Limit,
        // The service's own error: it passes, as an outage does.
        Some("api_error" | "server_error" | "internal_server_error") => Kind::Limit,
        Some("authentication_failed" | "billing_error" | "oauth_org_not_allowed") => Kind::Error,
        _ if NO_LIMIT.is_match(text) => Kind::Error,
        _ if matches!(status, Some(429 | 500 | 502..=504 | 529)) => Kind::Limit,
        _ => kind(text),
    }
}

/// Judges a whole line that may or may not be a host's report: only exact forms are taken.
pub(crate) fn line(text: &str) -> Option<Kind> {
    let text = text.trim();
    // Building the tables takes longer than all else at the end of an agent's output.
    if text.len() > FORM_MAX || !IN_FORMS.iter().any(|word| text.contains(word)) {
        return None;
    }
    if LIMIT_LINE.is_match(text) {
        return Some(Kind::Limit);
    }
    ERROR_LINE.is_match(text).then(|| kind(text))
}

/// A report is one sentence or two, not a page.
const FORM_MAX: usize = 600;

/// What at least one of is in each form.
const IN_FORMS: [&str; 5] = ["limit", "extra usage", "API Error: ", "/login", "is too low"];

/// Words about money and size: the service refuses, and waiting does not help.
static NO_LIMIT: LazyLock<RegexSet> = LazyLock::new(|| {
    words(&[
        r"insufficient_quota",
        r"credit balance is too low",
        r"out of credits",
        r"payment required",
        r"spend(?:ing)? limit",
        r"prompt is too long",
        r"context (?:window|length|limit)",
    ])
});

/// Words about limits that go away.
static LIMIT: LazyLock<RegexSet> = LazyLock::new(|| {
    words(&[
        r"rate[ _-]?limit",
        r"usage limit",
        r"(?:session|weekly|daily|monthly|hourly|hour|opus|sonnet) limit",
        r"hit your (?:[\w-]+ ){0,3}limit",
        r"limiting requests",
        r"too many requests",
        r"\b(?:status(?: code)?|error|http|code)\b\W{0,3}(?:429|529)\b",
        r"\b(?:429|529) ",
        r"\(429\)",
        r"overloaded",
        r"\b(?:at|no) capacity\b",
        r"exhausted your (?:[\w-]+ ){0,2}(?:capacity|quota)",
        r"resource[_ ](?:has been )?exhausted",
        r"\bquota\b",
    ])
});

/// Words that say that the service or the way to it is broken. That passes, too.
static OUTAGE: LazyLock<RegexSet> = LazyLock::new(|| {
    words(&[
        r"\b(?:status(?: code)?|error|http|code)\b\W{0,3}50[0234]\b",
        r"internal server error",
        r"bad gateway",
        r"service (?:is )?(?:temporarily )?unavailable",
        r"gateway time-?out",
        r"connection error",
        r"stream disconnected",
        r"fetch failed",
        r"socket hang up",
        r"\b(?:ECONNRESET|ECONNREFUSED|ETIMEDOUT|EAI_AGAIN|ENETUNREACH|ENOTFOUND)\b",
    ])
});

/// Whole lines with which hosts end when they are refused, in their plain output.
static LIMIT_LINE: LazyLock<RegexSet> = LazyLock::new(|| {
    lines(&[
        // Claude Code, from the oldest form to the newest.
        r"Claude AI usage limit reached\|\d{10,13}",
        r"Claude usage limit reached\. Your limit will reset at .{1,60}",
        r"(?:5-hour|Session|Weekly|Opus|Sonnet|Opus weekly) limit reached [·∙•-] resets .{1,60}",
        r"You['’]ve hit your (?:[\w-]+ ){0,3}limit(?: [·∙•-] resets .{1,60})?\.?",
        r"You['’]re out of extra usage [·∙•-] resets .{1,60}",
        // Codex.
        r"(?:ERROR: |■ )?You['’]ve hit your usage limit\..{0,400}\b[Tt]ry again (?:later|(?:at|in) .{1,50})\.?",
        r"(?:ERROR: |■ )?exceeded retry limit, last status: (?:429|529)\b.{0,100}",
    ])
});

/// Whole lines with which hosts end for any other reason, or for either.
static ERROR_LINE: LazyLock<RegexSet> = LazyLock::new(|| {
    lines(&[
        r"API Error: (?:\d{3}\b|Repeated \d|Server is|Request|Rate limit|Connection|Unable to).{0,400}",
        r"\[API Error: .+\]",
        r"(?:Invalid API key|Not logged in|OAuth token (?:revoked|has expired)) [·∙•-] Please run /login",
        r"Credit balance is too low",
        r"(?:ERROR: |■ )?exceeded retry limit, last status: \d{3}\b.{0,100}",
    ])
});

/// Words anywhere in a text.
fn words(table: &[&str]) -> RegexSet {
    RegexSet::new(table.iter().map(|word| format!("(?i){word}"))).unwrap_or_default()
}

/// Lines from their start to their end.
fn lines(table: &[&str]) -> RegexSet {
    RegexSet::new(table.iter().map(|line| format!("^(?:{line})$"))).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    //! The words hosts were seen to use.

    use super::*;

    #[test]
    fn tables_compile() {
        for set in [&*NO_LIMIT, &*LIMIT, &*OUTAGE, &*LIMIT_LINE, &*ERROR_LINE] {
            assert!(!set.is_empty());
        }
    }

    #[test]
    fn errors_are_sorted() {
        for text in [
            "exceeded retry limit, last status: 429 Too Many Requests",
            "You've hit your usage limit. Try again at 3:28 PM.",
            "You've hit your Opus limit · resets 3:45pm",
            "API Error: Repeated 529 Overloaded errors",
            "API Error: Server is temporarily limiting requests (not your usage limit)",
            "Request rejected (429)",
            "RESOURCE_EXHAUSTED: You have exhausted your capacity on this model.",
            "You exceeded your current quota, please check your plan and billing details.",
            "The model is overloaded. Please try again later.",
            r#"429 {"type":"error","error":{"type":"rate_limit_error","message":"x"}}"#,
            "[code=upstream_error] Our servers are currently overloaded.",
            "Selected model is at capacity. Please try a different model.",
            "API Error: 500 Internal server error",
            "API Error: Connection error.",
            "stream disconnected before completion",
            "unexpected status 503 Service Unavailable",
            "TypeError: fetch failed",
            "connect ECONNREFUSED 127.0.0.1:443",
        ] {
            assert_eq!(kind(text), Kind::Limit, "{text}");
        }
        for text in [
            "",
            "401 Unauthorized",
            "Credit balance is too low",
            "insufficient_quota: You exceeded your current quota",
            "prompt is too long: 210429 tokens > 200000 maximum",
            "Reached maximum number of turns (3)",
            "Reached the maximum turn limit",
            "You have hit your spend limit",
            "request req_0429a failed",
        ] {
            assert_eq!(kind(text), Kind::Error, "{text}");
        }
        assert_eq!(kind_of(Some(529), None, "boom"), Kind::Limit);
        assert_eq!(kind_of(Some(429), None, "Credit balance is too low"), Kind::Error);
        assert_eq!(kind_of(Some(429), Some("billing_error"), "x"), Kind::Error);
        assert_eq!(kind_of(None, Some("overloaded"), "x"), Kind::Limit);
    }

    #[test]
    fn lines_are_exact() {
        for text in [
            "Claude AI usage limit reached|1747123200",
            "Claude usage limit reached. Your limit will reset at 3pm (America/New_York).",
            "5-hour limit reached ∙ resets 5am",
            "You've hit your limit · resets 1:30am (Asia/Dhaka)",
            "You’ve hit your weekly limit · resets Aug 17, 5am (America/Sao_Paulo)",
            "You've hit your session limit",
            "You're out of extra usage · resets 8pm (Europe/Berlin)",
            "ERROR: You've hit your usage limit. Visit https://chatgpt.com/codex/settings/usage to \
             purchase more credits or try again at 3:28 PM.",
            "You've hit your usage limit. Try again at 3:28 PM.",
            "exceeded retry limit, last status: 429 Too Many Requests, request id: x",
            "[API Error: You have exhausted your capacity on this model.]",
            r#"API Error: 529 {"type":"error","error":{"type":"overloaded_error"}}"#,
            "API Error: 500 Internal server error",
        ] {
            assert_eq!(line(text), Some(Kind::Limit), "{text}");
        }
        for text in ["Invalid API key · Please run /login", "Credit balance is too low"] {
            assert_eq!(line(text), Some(Kind::Error), "{text}");
        }
        for text in [
            "",
            "Done.",
            "The log says: You've hit your limit · resets 5pm",
            "You've hit your limit · resets 5pm, says the banner that I added to the page; it is shown for ten seconds.",
            "> You've hit your limit · resets 5pm",
            "`You've hit your limit · resets 5pm`",
            "- 5-hour limit reached ∙ resets 5am",
            "The rate limit is documented in docs/limits.md",
            "I handle API Error: 429 now.",
            "API Error: now handled in retry.rs",
        ] {
            assert_eq!(line(text), None, "{text}");
        }
    }
}
