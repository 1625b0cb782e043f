//! The inside of blocks, tags and bodies.

use super::structure;
use crate::corpus::claims::{self, PHASES, TAGS};
use crate::corpus::filler;
use crate::corpus::{Expected, Phenomenon, Rng, SampleDraft};

const TYPED: &[&str] = &["chorus", "axiom"];
const REPEATABLE: &[&str] =
    &["caw", "delivery", "chorus", "pilot", "promise", "ralph-status", "ralphex", "event", "axiom"];

pub(super) const PHENOMENA: &[Phenomenon] = &[
    structure("status_not_complete", &["caw"], status_not_complete),
    structure("duplicate_field", &["caw"], duplicate_field),
    structure("unknown_field", &["caw"], unknown_field),
    structure("blank_in_block", &["caw"], blank_in_block),
    structure("bare_last_line", &["caw"], bare_last_line),
    structure("rule_before", &["caw"], rule_before),
    structure("tag_unclosed", TYPED, tag_unclosed),
    structure("tag_nested", TYPED, tag_nested),
    structure("tag_padded", TYPED, tag_padded),
    structure("tag_payload", TYPED, tag_payload),
    structure("tag_escaped", TAGS, tag_escaped),
    structure("too_long", TYPED, too_long),
    structure("not_at_end", &["turn"], not_at_end),
    structure("delegation", &["delivery"], delegation),
    structure("two_signals", REPEATABLE, two_signals),
];

fn twin(rng: &mut Rng, dialect: &str, core: &str, expected: Option<Expected>) -> SampleDraft {
    SampleDraft::heard(filler::around(rng, dialect, core), expected.into_iter().collect())
}

/// A completion says so in its status; an error block is another signal.
fn status_not_complete(rng: &mut Rng, dialect: &'static str, genuine: bool) -> SampleDraft {
    let claim = claims::caw(rng);
    if !genuine {
        let status = rng.pick(&["error", "failed", "partial", "in_progress", "incomplete"]);
        let core = claim.text.replacen("STATUS: complete", &format!("STATUS: {status}"), 1);
        return twin(rng, dialect, &core, None);
    }
    if rng.chance(50) {
        return twin(rng, dialect, &claim.text, Some(claim.expected));
    }
    let (_, phase, _) = rng.pick(PHASES);
    let (time, again) = (claims::time(rng), rng.pick(&["true", "false"]));
    let core = format!(
        "---\nSIGNAL: PHASE_ERROR\nPHASE: {phase}\nSTATUS: error\nTIMESTAMP: {time}\nERROR: registry \
         answers 503\nRECOVERABLE: {again}\n---"
    );
    twin(rng, dialect, &core, Some(Expected::new("PHASE_ERROR")))
}

fn duplicate_field(rng: &mut Rng, dialect: &'static str, genuine: bool) -> SampleDraft {
    let claim = claims::caw(rng);
    if genuine {
        return twin(rng, dialect, &claim.text, Some(claim.expected));
    }
    let lines: Vec<&str> = claim.text.lines().collect();
    let inner = &lines[1..lines.len() - 1];
    let again = rng.pick(inner);
    let core = format!("---\n{}\n{again}\n---", inner.join("\n"));
    twin(rng, dialect, &core, None)
}

/// Members may be missing; others than the listed ones make it something else.
fn unknown_field(rng: &mut Rng, dialect: &'static str, genuine: bool) -> SampleDraft {
    let claim = claims::caw(rng);
    if genuine {
        let lines: Vec<&str> = claim.text.lines().collect();
        let kept = lines.iter().enumerate().filter(|(at, _)| {
            let outer = *at < 2 || *at + 1 == lines.len();
            outer || rng.chance(50)
        });
        let core = kept.map(|(_, line)| *line).collect::<Vec<_>>().join("\n");
        return twin(rng, dialect, &core, Some(claim.expected));
    }
    let field = rng.pick(&["OWNER: dana", "BRANCH: feat/limits", "NOTE: see above", "SCORE: 9"]);
    let core = claim.text.replacen("\nSTATUS", &format!("\n{field}\nSTATUS"), 1);
    twin(rng, dialect, &core, None)
}

fn blank_in_block(rng: &mut Rng, dialect: &'static str, genuine: bool) -> SampleDraft {
    let claim = claims::caw(rng);
    if genuine {
        let core = format!("\n\n{}\n\n", claim.text);
        return twin(rng, dialect, &core, Some(claim.expected));
    }
    let key = rng.pick(&["\nPHASE", "\nSTATUS", "\nNEXT"]);
    let core = claim.text.replacen(key, &format!("\n{key}"), 1);
    twin(rng, dialect, &core, None)
}

/// As the last line a name counts without delimiters; elsewhere, or in a sentence, it does not.
fn bare_last_line(rng: &mut Rng, _: &'static str, genuine: bool) -> SampleDraft {
    let (name, ..) = rng.pick(PHASES);
    let before = filler::before(rng);
    if genuine {
        let end = rng.pick(&["", "\n", "\n\n"]);
        return SampleDraft::heard(
            format!("{before}SIGNAL: {name}{end}"),
            vec![Expected::new(name)],
        );
    }
    let text = match rng.below(3) {
        0 => format!("{before}SIGNAL: {name}\n\n{}", filler::closing(rng)),
        1 => format!("{before}The table maps qa to SIGNAL: {name}"),
        _ => format!("{before}SIGNAL: {name} is what the table maps qa to"),
    };
    SampleDraft::unheard(text)
}

/// A horizontal rule is not the start of a block unless the signal follows at once.
fn rule_before(rng: &mut Rng, dialect: &'static str, genuine: bool) -> SampleDraft {
    let claim = claims::caw(rng);
    let lead = filler::lead(rng);
    if genuine {
        let core = format!("---\n\n{lead}\n\n{}", claim.text);
        return twin(rng, dialect, &core, Some(claim.expected));
    }
    let core = format!("---\n\nSIGNAL: {}\n\n---\n\n{lead}", claim.key);
    twin(rng, dialect, &core, None)
}

/// A new opening tag starts again; one that is never closed says nothing.
fn tag_unclosed(rng: &mut Rng, dialect: &'static str, genuine: bool) -> SampleDraft {
    let open = format!("<{dialect}>");
    let claim = claims::any(rng, dialect);
    if genuine {
        let first = rng.pick(&["PROGRESS: 10", "BLOCKED: no quota", "COMPLETE"]);
        let core = format!("{open}{first}\n\n{}\n\n{}", filler::lead(rng), claim.text);
        return twin(rng, dialect, &core, Some(claim.expected));
    }
    let core = claim.text.replace(&format!("</{dialect}>"), "");
    twin(rng, dialect, &core, None)
}

/// Tags follow one another; one inside the other is neither.
fn tag_nested(rng: &mut Rng, dialect: &'static str, genuine: bool) -> SampleDraft {
    let claim = claims::done(rng, dialect);
    let outer = claims::with_payload(rng, dialect);
    if genuine {
        let text = format!("{}\n\n{}", outer.text, claim.text);
        return SampleDraft::heard(
            filler::around(rng, dialect, &text),
            vec![outer.expected, claim.expected],
        );
    }
    let core = format!("<{dialect}>BLOCKED: see {} here</{dialect}>", claim.text);
    twin(rng, dialect, &core, None)
}

/// No blanks around the type; around the payload they come off.
fn tag_padded(rng: &mut Rng, dialect: &'static str, genuine: bool) -> SampleDraft {
    let claim = claims::done(rng, dialect);
    if genuine {
        let core = format!("<{dialect}>BLOCKED:   quota used up  </{dialect}>");
        return twin(rng, dialect, &core, Some(Expected::new("BLOCKED")));
    }
    let (front, back) = rng.pick(&[(" ", " "), (" ", ""), ("\n", "\n"), ("\t", "")]);
    let key = format!("{front}{}{back}", claim.key);
    twin(rng, dialect, &claim.with_key(&key), None)
}

/// A payload runs over lines and may hold angle brackets, but ends only at the closing tag.
fn tag_payload(rng: &mut Rng, dialect: &'static str, genuine: bool) -> SampleDraft {
    let payload = rng.pick(&[
        "expected Vec<u8>,\ngot <T>",
        "a < b holds for\n\nall inputs",
        "</div> has no partner\nin page.html",
        "line one\nline two\nline three",
    ]);
    let name = rng.pick(&["BLOCKED", "NEEDS_HELP", "NEEDS_HUMAN"]);
    let close = match genuine {
        true => format!("</{dialect}>"),
        false => rng.pick(&["</ chorus>", "</chorus", "<chorus/>"]).replace("chorus", dialect),
    };
    let core = format!("<{dialect}>{name}: {payload}{close}");
    twin(rng, dialect, &core, genuine.then(|| Expected::new(name)))
}

/// Entities are text, not tags.
fn tag_escaped(rng: &mut Rng, dialect: &'static str, genuine: bool) -> SampleDraft {
    let claim = claims::done(rng, dialect);
    if genuine {
        let core = format!("Escapes &lt;b&gt; and &amp; now.\n\n{}", claim.text);
        return twin(rng, dialect, &core, Some(claim.expected));
    }
    let core = claim.text.replace('<', "&lt;").replace('>', "&gt;");
    twin(rng, dialect, &core, None)
}

/// 64 KiB are enough for everybody.
fn too_long(rng: &mut Rng, dialect: &'static str, genuine: bool) -> SampleDraft {
    let words = if genuine { rng.between(2_000, 5_000) } else { rng.between(7_000, 9_000) };
    let payload = "overflows ".repeat(words);
    let core = format!("<{dialect}>BLOCKED: {payload}</{dialect}>");
    twin(rng, dialect, &core, genuine.then(|| Expected::new("BLOCKED")))
}

fn not_at_end(rng: &mut Rng, _: &'static str, genuine: bool) -> SampleDraft {
    let before = filler::before(rng);
    let keyword = "TURN_COMPLETE";
    if genuine {
        let end = rng.pick(&["", "\n", " \n\n", "\t", "\u{a0}", "\n\u{200b}"]);
        let text = format!("{before}{keyword}{end}");
        return SampleDraft::heard(text, vec![Expected::new(keyword)]);
    }
    let rest = rng.pick(&["\n\nOver to you, Dev.", " and over to Dev", "\n- one more thing", "?"]);
    SampleDraft::unheard(format!("{before}{keyword}{rest}"))
}

/// What is delegated is payload; only what follows its end marker is speech again.
fn delegation(rng: &mut Rng, _: &'static str, genuine: bool) -> SampleDraft {
    let names = ["READY_FOR_REVIEW", "TASK_INCOMPLETE", "AUDIT_PASSED"];
    let (inner, outer) = (claims::delivery(rng, &names), claims::delivery(rng, &names));
    let head =
        "EXPERT_REQUEST\nTarget Agent: dba\nRequest Type: decision\nContext Snapshot: schema v4";
    let prompt = format!("Please pick an index.\n{}\nThanks.", inner.text);
    let start = "---DELEGATION PROMPT START---";
    let end = "---DELEGATION PROMPT END---";
    let before = filler::before(rng);
    if !genuine {
        let text = format!("{before}{head}\n\n{start}\n{prompt}\n\n{}", outer.text);
        return SampleDraft::unheard(text);
    }
    let mut genuine = vec![Expected::new("EXPERT_REQUEST")];
    let mut text = format!("{before}{head}\n\n{start}\n{prompt}\n{end}");
    if rng.chance(50) {
        text = format!("{text}\n\n{}\n\n{}", filler::lead(rng), outer.text);
        genuine.push(outer.expected);
    }
    SampleDraft::heard(text, genuine)
}

fn two_signals(rng: &mut Rng, dialect: &'static str, genuine: bool) -> SampleDraft {
    let (first, second) = (claims::any(rng, dialect), claims::any(rng, dialect));
    let text = format!("{}\n\n{}\n\n{}", first.text, filler::lead(rng), second.text);
    if genuine {
        let text = filler::around(rng, dialect, &text);
        return SampleDraft::heard(text, vec![first.expected, second.expected]);
    }
    let core = format!("````text\n{text}\n````");
    twin(rng, dialect, &core, None)
}
