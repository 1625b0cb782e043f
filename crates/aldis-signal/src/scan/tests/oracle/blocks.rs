//! Block dialects, and status blocks between an opening and a closing line of their own.

use super::*;

const KEYS: &[&str] =
    &["signal", "phase", "status", "timestamp", "next", "error", "recoverable", "token"];
const CLAIMS: &[&str] = &["QA_COMPLETE", "INIT_COMPLETE", "AUTO_COMPLETE", "FIX_COMPLETE"];
const OTHERS: &[&str] = &["PHASE_ERROR", "TRANSITION_TO_QA"];

/// Returns key (in lower case) and value of `KEY: value`.
fn key_line(line: &str) -> Option<(String, &str)> {
    let (key, value) = line.split_once(':')?;
    (!key.is_empty() && !key.contains(' ')).then(|| (key.to_ascii_lowercase(), value.trim()))
}

fn known(name: &str) -> Option<&'static str> {
    let mut all = CLAIMS.iter().chain(OTHERS);
    all.find(|known| known.eq_ignore_ascii_case(name)).copied()
}

/// Judges the lines between the delimiters.
fn judge(inside: &[Line<'_>]) -> Option<&'static str> {
    let mut seen: Vec<(String, &str)> = Vec::new();
    for line in inside {
        let (key, value) = key_line(line.text)?;
        let repeated = seen.iter().any(|(other, _)| *other == key);
        if !KEYS.contains(&key.as_str()) || repeated || value.starts_with('[') {
            return None;
        }
        seen.push((key, value));
    }
    let name = known(seen.first()?.1)?;
    let other_status = seen.iter().any(|(key, value)| key == "status" && *value != "complete");
    (!(CLAIMS.contains(&name) && other_status)).then_some(name)
}

fn starts_block(all: &[Line<'_>], at: usize) -> bool {
    let signal = all.get(at + 1).and_then(|line| key_line(line.text));
    all[at].text == "---" && signal.is_some_and(|(key, _)| key == "signal")
}

/// Returns how many lines from the opening `---` on belong to the block, and whether it is whole.
fn extent(all: &[Line<'_>], at: usize) -> (usize, bool) {
    for (count, line) in all[at..].iter().enumerate().skip(1) {
        if line.text == "---" {
            return (count + 1, true);
        }
        if key_line(line.text).is_none() {
            return (count, all[at + count..].iter().all(Line::is_blank));
        }
    }
    (all.len() - at, true)
}

fn inner<'a, 'b>(all: &'a [Line<'b>], at: usize, count: usize) -> &'a [Line<'b>] {
    let inside = &all[at + 1..at + count];
    inside.strip_suffix_if(|line| line.text == "---")
}

/// Drops the last line if it is the closing one.
trait StripLast<T> {
    fn strip_suffix_if(&self, closes: impl Fn(&T) -> bool) -> &Self;
}

impl<T> StripLast<T> for [T] {
    fn strip_suffix_if(&self, closes: impl Fn(&T) -> bool) -> &Self {
        match self {
            [rest @ .., last] if closes(last) => rest,
            all => all,
        }
    }
}

/// Returns what is said, or `None` where the specification leaves it open.
fn expected(text: &str) -> Option<Vec<Said>> {
    let all = lines(text);
    let mut out = Vec::new();
    let mut at = 0;
    let mut read_to = 0;
    while at < all.len() {
        if all[at].quoted || !starts_block(&all, at) {
            at += 1;
            continue;
        }
        let (count, whole) = extent(&all, at);
        if let Some(name) = judge(inner(&all, at, count)).filter(|_| whole) {
            out.push((name.to_owned(), None, all[at].start));
        }
        at += count;
        read_to = at;
    }
    let Some(last) = all.iter().rposition(|line| !line.is_blank()) else { return Some(out) };
    if all[last].quoted {
        out.extend(fenced_terminal(&all, last)?);
    } else if last >= read_to
        && let Some((key, value)) = key_line(all[last].text)
        && let Some(name) = known(value).filter(|_| key == "signal")
    {
        out.push((name.to_owned(), None, all[last].start));
    }
    Some(out)
}

/// A fence without info string that holds nothing but one signal and ends the message.
fn fenced_terminal(all: &[Line<'_>], last: usize) -> Option<Option<Said>> {
    let first = all[..last].iter().rposition(|line| !line.bare_fence).map_or(0, |at| at + 1);
    let inside = &all[first.min(last)..last];
    let speaks = inside.iter().any(|line| line.text.to_ascii_lowercase().contains("signal:"));
    let opening = first.checked_sub(1).and_then(|at| fence_line(all[at].text));
    let closed = match (opening, fence_line(all[last].text)) {
        (Some((open, least, _)), Some((marker, length, ""))) => {
            all[last].bare_fence && marker == open && length >= least
        }
        _ => false,
    };
    if !speaks {
        return Some(None);
    }
    let whole = inside.len() > 2
        && starts_block(inside, 0)
        && extent(inside, 0) == (inside.len(), true)
        && inside[inside.len() - 1].text == "---";
    match (closed, whole) {
        (true, true) => {
            let name = judge(inner(inside, 0, inside.len()));
            Some(name.map(|name| (name.to_owned(), None, inside[0].start)))
        }
        // Unclosed fences, fences with more than a block: not decided here.
        _ => None,
    }
}

fn block() -> impl Strategy<Value = Vec<String>> {
    let first = owned(&[
        "SIGNAL: QA_COMPLETE",
        "SIGNAL: QA_COMPLETE",
        "signal:init_complete",
        "Signal: Auto_Complete",
        "SIGNAL: PHASE_ERROR",
        "SIGNAL: TRANSITION_TO_QA",
        "SIGNAL: NOPE",
        "SIGNAL: QA_COMPLETED",
    ]);
    let field = owned(&[
        "PHASE: qa",
        "STATUS: complete",
        "status:complete",
        "TIMESTAMP: 2026-03-02T09:15:00Z",
        "NEXT: review",
        "STATUS: error",
        "COLOUR: red",
        "TIMESTAMP: [ISO8601]",
        "ERROR: no disk",
        "RECOVERABLE: true",
        "TOKEN: k7Qd",
        "SIGNAL: FIX_COMPLETE",
        "",
        "Some words.",
    ]);
    (first, vec(field, 0..4), any::<bool>()).prop_map(|(first, fields, closed)| {
        let mut lines = vec!["---".to_owned(), first];
        lines.extend(fields);
        lines.extend(closed.then(|| "---".to_owned()));
        lines
    })
}

fn part() -> impl Strategy<Value = Vec<String>> {
    let single =
        owned(&["---", "--- ", "SIGNAL: QA_COMPLETE", "SIGNAL: NOPE", "STATUS: complete", " ---"]);
    let fenced = (block(), owned(&["```", "~~~", "````"])).prop_map(|(mut lines, fence)| {
        lines.insert(0, fence.clone());
        lines.push(fence);
        lines
    });
    prop_oneof![
        4 => block(),
        1 => fenced,
        2 => single.prop_map(|line| vec![line]),
        3 => owned(AROUND).prop_map(|line| vec![line]),
    ]
}

const STATUS_OPEN: &str = "---RALPH_STATUS---";
const STATUS_CLOSE: &str = "---END_RALPH_STATUS---";

/// An opening line counts if only key lines stand between it and its closing line. Returns `None`
/// where other lines stand there.
fn expected_status(text: &str) -> Option<Vec<Said>> {
    let all = lines(text);
    let mut out = Vec::new();
    for (at, line) in all.iter().enumerate() {
        if line.quoted || line.text != STATUS_OPEN {
            continue;
        }
        let inside = all[at + 1..].iter().take_while(|line| key_line(line.text).is_some()).count();
        let keys: Vec<_> =
            all[at + 1..].iter().take(inside).map(|line| key_line(line.text)).collect();
        let repeated = (1..keys.len()).any(|index| {
            keys[..index]
                .iter()
                .flatten()
                .any(|key| keys[index].as_ref().is_some_and(|it| it.0 == key.0))
        });
        match all.get(at + 1 + inside).map(|line| line.text) {
            Some(STATUS_CLOSE) if !repeated => {
                out.push(("RALPH_STATUS".to_owned(), None, line.start));
            }
            Some(STATUS_CLOSE | STATUS_OPEN) | None => {}
            Some(_) => return None,
        }
    }
    Some(out)
}

fn status_part() -> impl Strategy<Value = Vec<String>> {
    let whole = select(&["STATUS: COMPLETE", "STATUS: IN_PROGRESS"][..]).prop_map(|status| {
        let lines = [STATUS_OPEN, status, "EXIT_SIGNAL: true", "FILES_MODIFIED: 3", STATUS_CLOSE];
        lines.map(str::to_owned).to_vec()
    });
    let fenced = (whole.clone(), owned(&["```", "~~~", "````"])).prop_map(|(mut lines, fence)| {
        lines.insert(0, fence.clone());
        lines.push(fence);
        lines
    });
    let single = owned(&[STATUS_OPEN, STATUS_CLOSE, "STATUS: COMPLETE", " ---RALPH_STATUS---"]);
    prop_oneof![
        3 => whole,
        1 => fenced,
        1 => single.prop_map(|line| vec![line]),
        3 => owned(AROUND).prop_map(|line| vec![line]),
    ]
}

#[test]
fn a_key_that_is_given_twice_breaks_a_status_block() {
    let text = "---RALPH_STATUS---\nSTATUS: COMPLETE\nSTATUS: COMPLETE\n---END_RALPH_STATUS---";
    assert_eq!(taken(&plain_rules("ralph-status"), text), []);
    assert_eq!(expected_status(text), Some(Vec::new()));
}

#[test]
fn an_indented_rule_ends_a_quotation() {
    let text = "> quote\n ---\nSIGNAL: QA_COMPLETE";
    assert_eq!(taken(&plain_rules("caw"), text), [("QA_COMPLETE".to_owned(), None, 13)]);
    assert_eq!(expected(text).unwrap().len(), 1);
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn blocks_are_read_alike(
        parts in vec(part(), 0..8), crlf in any::<bool>(), last in any::<bool>(),
    ) {
        let text = joined(&parts.concat(), crlf, last);
        let want = expected(&text);
        prop_assume!(want.is_some());
        prop_assert_eq!(taken(&plain_rules("caw"), &text), want.unwrap(), "{:?}", text);
    }

    #[test]
    fn status_blocks_are_read_alike(
        parts in vec(status_part(), 0..8), crlf in any::<bool>(), last in any::<bool>(),
    ) {
        let text = joined(&parts.concat(), crlf, last);
        let want = expected_status(&text);
        prop_assume!(want.is_some());
        prop_assert_eq!(taken(&plain_rules("ralph-status"), &text), want.unwrap(), "{:?}", text);
    }
}
