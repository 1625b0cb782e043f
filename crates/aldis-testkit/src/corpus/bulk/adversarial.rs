//! Inputs that make a careless matcher quadratic: openers without closers, runs of blanks, nesting,
//! near misses. Each is one unit repeated, because that is what hurts.

/// One kind of hostile text.
#[derive(Clone, Copy, Debug)]
pub struct Adversarial {
    /// Its name in reports.
    pub name: &'static str,
    head: &'static str,
    unit: &'static str,
    tail: &'static str,
    /// Whether every unit is a genuine signal: what it takes is what telling them takes.
    pub genuine: bool,
}

impl Adversarial {
    /// Returns how often its unit stands in a text of about `bytes` bytes.
    pub fn units(&self, bytes: usize) -> usize {
        bytes.div_ceil(self.unit.len().max(1))
    }
}

/// Makes a hostile text of about `bytes` bytes.
pub fn adversarial(kind: &Adversarial, bytes: usize) -> String {
    let Adversarial { head, unit, tail, .. } = *kind;
    let count = kind.units(bytes);
    let mut text = String::with_capacity(head.len() + count * unit.len() + tail.len());
    text.push_str(head);
    text.extend(std::iter::repeat_n(unit, count));
    text.push_str(tail);
    text
}

const fn repeated(name: &'static str, unit: &'static str) -> Adversarial {
    Adversarial { name, head: "", unit, tail: "", genuine: false }
}

const fn genuine(name: &'static str, unit: &'static str) -> Adversarial {
    Adversarial { name, head: "", unit, tail: "", genuine: true }
}

const fn behind(name: &'static str, head: &'static str, unit: &'static str) -> Adversarial {
    Adversarial { name, head, unit, tail: "", genuine: false }
}

const fn between(
    name: &'static str,
    head: &'static str,
    unit: &'static str,
    tail: &'static str,
) -> Adversarial {
    Adversarial { name, head, unit, tail, genuine: false }
}

const BLANKS: &str = "<chorus>A:                                                      ";
const CLAIM: &str = "<chorus>COMPLETE</chorus>\n\n";

/// Every kind. The first rows are those on which the seeds' own JavaScript takes hours.
pub const ADVERSARIAL: &[Adversarial] = &[
    repeated("chorus_unclosed", "<chorus>A: "),
    repeated("chorus_unclosed_blanks", BLANKS),
    behind("chorus_one_opener_blanks", "<chorus>A:", " "),
    repeated("chorus_unclosed_lines", "<chorus>A: \n"),
    behind("chorus_endless_name", "<chorus>", "A"),
    repeated("blanks", " "),
    repeated("blank_lines", " \n"),
    repeated("newlines", "\n"),
    repeated("turn_blanks", "TURN_COMPLETE   "),
    between("turn_then_blanks", "TURN_COMPLETE", " ", "x"),
    repeated("turn_lines", "TURN_COMPLETE\n"),
    behind("signal_one_blanks", "SIGNAL:", " "),
    repeated("signal_blanks", "SIGNAL:        "),
    repeated("signal_newlines", "SIGNAL:\n\n\n"),
    repeated("fences_nested", "```text\n````text\n~~~\n"),
    repeated("fences_unclosed", "```\n"),
    repeated("fence_lines_indented", "   ```text\n"),
    repeated("pilot_openers", "```pilot-signal\n"),
    behind("pilot_endless", "```pilot-signal\n", "{\"v\":2,\n"),
    repeated("backticks", "`"),
    repeated("backtick_runs", "` `` ``` "),
    repeated("rules", "---\n"),
    genuine("caw_blocks_open", "---\nSIGNAL: QA_COMPLETE\n"),
    repeated("caw_fields", "PHASE: qa\nSTATUS: complete\n"),
    repeated("comments_open", "<!--"),
    repeated("comments_closed", "<!-- -->"),
    repeated("delivery_empty", "READY_FOR_REVIEW:\n"),
    genuine("delivery_signals", "READY_FOR_REVIEW: t\n"),
    behind("delivery_endless_body", "READY_FOR_REVIEW: t\n", "Key: value\n- item\n"),
    repeated("delivery_delegations", "EXPERT_REQUEST\n---DELEGATION PROMPT START---\n"),
    repeated("escapes", "\x1b["),
    repeated("escape_colours", "\x1b[31m"),
    behind("escape_endless", "\x1b]52;c;", "A"),
    repeated("json_lines", "{\"v\":\n"),
    genuine("json_objects", "{\"v\":2}\n"),
    behind("json_deep", "{\"v\":2,\"a\":", "["),
    repeated("tags_nested", "<chorus>BLOCKED: "),
    repeated("tags_closers", "</chorus>"),
    repeated("tags_mixed", "<chorus><axiom><promise><event topic=\""),
    repeated("ralphex_open", "<<<RALPHEX:"),
    repeated("ralphex_questions", "<<<RALPHEX:QUESTION>>>\n"),
    repeated("ralph_status_open", "---RALPH_STATUS---\nSTATUS: COMPLETE\n"),
    repeated("navigator_open", "NAVIGATOR_STATUS\n====\n"),
    repeated("near_misses", "QA_COMPLETED TURN_COMPLETED READY_FOR_REVIEWS SIGNALS: "),
    repeated("near_miss_lines", "READY_FOR_REVIEWS: t\nAUDIT_PASSE: t\n"),
    behind("retractions", CLAIM, "Wait, "),
    behind("negations", CLAIM, "not "),
    behind("sentences", CLAIM, "It is not. "),
    genuine("claims_taken_back", "<chorus>COMPLETE</chorus>\nWait, no.\n"),
    genuine("claims_in_a_line", "<chorus>COMPLETE</chorus> "),
    genuine(
        "claims_and_failing_words",
        "<chorus>COMPLETE</chorus>\n\n\
         ci fail0 ci fail0 ci fail0 ci fail0 ci fail0 ci fail0 ci fail0 ci fail0 \
         ci fail0 ci fail0 ci fail0 ci fail0 ci fail0 ci fail0 ci fail0 ci fail0 \
         \n\n",
    ),
    repeated("colours", "\x1b[0m"),
    repeated("quotes", "> "),
    repeated("tables", "| "),
    repeated("quotation_marks", "\""),
    repeated("zero_width", "\u{200b}"),
    repeated("carriage_returns", "\r"),
    repeated("nuls", "\0"),
    repeated("one_line", "word "),
];
