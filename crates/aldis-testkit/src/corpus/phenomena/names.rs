//! Names, subjects and what stands directly around them.

use aldis_signal::Dialect;

use super::{structure, twins};
use crate::corpus::claims::{self, ALL};
use crate::corpus::filler;
use crate::corpus::{Expected, Phenomenon, Rng, SampleDraft};

pub(super) const PHENOMENA: &[Phenomenon] = &[
    twins("case", &["caw"], &["chorus", "axiom", "delivery", "turn", "ralphex", "promise"], case),
    structure("affix", ALL, affix),
    structure("unknown_name", &["caw", "chorus", "axiom", "promise", "ralphex"], unknown_name),
    structure("separator", &["caw", "delivery", "chorus", "axiom"], separator),
    structure("bad_id", &["delivery"], bad_id),
    structure("bad_path", &["delivery"], bad_path),
    structure("missing_subject", &["delivery", "event"], missing_subject),
    structure("prose_after_id", &["delivery"], prose_after_id),
    twins("indentation", &["delivery", "pilot"], &["delivery"], indentation),
    structure("decoration", &["delivery", "turn"], decoration),
    structure("truncated", ALL, truncated),
    structure("placeholder", &["caw", "delivery", "chorus", "axiom"], placeholder),
    structure("instructions_echoed", ALL, instructions_echoed),
];

/// Names of task signals.
const TASK: &[&str] = &["READY_FOR_REVIEW", "REVIEW_PASSED", "AUDIT_PASSED", "CHECKPOINT"];

fn twin(rng: &mut Rng, dialect: &str, core: &str, expected: Option<Expected>) -> SampleDraft {
    SampleDraft::heard(filler::around(rng, dialect, core), expected.into_iter().collect())
}

/// Changes the case of letters at random.
fn scramble(rng: &mut Rng, word: &str) -> String {
    let style = rng.below(3);
    let change = |c: char, rng: &mut Rng| match style {
        0 => c.to_ascii_lowercase(),
        1 if rng.chance(50) => c.to_ascii_lowercase(),
        _ => c,
    };
    word.chars().map(|c| change(c, rng)).collect()
}

/// caw takes any case, the others only their own.
fn case(rng: &mut Rng, dialect: &'static str, genuine: bool) -> SampleDraft {
    let claim = claims::done(rng, dialect);
    if !genuine {
        let lower = claim.key.to_ascii_lowercase();
        let title = format!("{}{}", &claim.key[..1], &lower[1..]);
        let key = if rng.chance(60) { lower } else { title };
        return twin(rng, dialect, &claim.with_key(&key), None);
    }
    let mut lines = Vec::new();
    for line in claim.text.lines() {
        lines.push(match line.split_once(": ") {
            Some(("SIGNAL", name)) => {
                format!("{}: {}", scramble(rng, "SIGNAL"), scramble(rng, name))
            }
            Some((key, value)) => format!("{}: {value}", scramble(rng, key)),
            None => line.to_owned(),
        });
    }
    twin(rng, dialect, &lines.join("\n"), Some(claim.expected))
}

/// A name inside a longer name is not that name.
fn affix(rng: &mut Rng, dialect: &'static str, genuine: bool) -> SampleDraft {
    let claim = claims::done(rng, dialect);
    let lower = claim.key.starts_with(|c: char| c.is_ascii_lowercase());
    let (front, back) = match (lower, rng.chance(50)) {
        (true, true) => (rng.pick(&["my", "x"]), ""),
        (true, false) => ("", rng.pick(&["s", "-v1", "2"])),
        (false, true) => (rng.pick(&["NOT_", "PRE_", "X"]), ""),
        (false, false) => ("", rng.pick(&["D", "S", "_2", "_NOT"])),
    };
    let longer = format!("{front}{}{back}", claim.key);
    if !genuine {
        return twin(rng, dialect, &claim.with_key(&longer), None);
    }
    let prose =
        format!("The variant `{longer}` is gone from the enum.\n\n{}\n\n", filler::lead(rng));
    twin(rng, dialect, &format!("{prose}{}", claim.text), Some(claim.expected))
}

fn unknown_name(rng: &mut Rng, dialect: &'static str, genuine: bool) -> SampleDraft {
    let claim = claims::done(rng, dialect);
    let other = match dialect {
        "caw" => rng.pick(&["DEPLOY_COMPLETE", "TESTS_GREEN", "COMPLETE"]),
        "promise" => rng.pick(&["ALL GREEN", "DONE", "The docs are live"]),
        "ralphex" => rng.pick(&["SHIPPED", "STEP_2_OF_9", "HELLO"]),
        _ => rng.pick(&["FINISHED", "DONE", "OK", "SHIPPED"]),
    };
    match genuine {
        true => twin(rng, dialect, &claim.text, Some(claim.expected)),
        false => twin(rng, dialect, &claim.with_key(other), None),
    }
}

/// The blank after the colon may be missing, the colon may not.
fn separator(rng: &mut Rng, dialect: &'static str, genuine: bool) -> SampleDraft {
    let (from, claim) = match dialect {
        "caw" => ("SIGNAL: ", claims::caw(rng)),
        "delivery" => (": ", claims::delivery(rng, TASK)),
        _ => {
            let text = format!("<{dialect}>BLOCKED: no access</{dialect}>");
            let expected = Expected::new("BLOCKED");
            (": ", claims::WrittenSignal { text, key: "BLOCKED", expected })
        }
    };
    let to = if genuine { from.trim_end().to_owned() } else { from.replace(':', "") };
    let core = claim.text.replacen(from, &to, 1);
    twin(rng, dialect, &core, genuine.then_some(claim.expected))
}

fn bad_id(rng: &mut Rng, dialect: &'static str, genuine: bool) -> SampleDraft {
    let name = rng.pick(TASK);
    let id = match (genuine, rng.below(3)) {
        (true, 0) => "t".repeat(64),
        (true, 1) => "9".to_owned(),
        (true, _) => "Core.api_v2-final".to_owned(),
        (false, 0) => "t".repeat(rng.between(65, 200)),
        (false, _) => rng
            .pick(&["../task-1", "a/b", "C:\\task", "-rf", "tâche-1", "a//b", "_x", "task\u{301}1"])
            .to_owned(),
    };
    let core = format!("{name}: {id}");
    twin(rng, dialect, &core, genuine.then(|| Expected::about(name, id)))
}

fn bad_path(rng: &mut Rng, dialect: &'static str, genuine: bool) -> SampleDraft {
    let good = ["src/lib.rs", "docs/user guide.md", "a/b/c.txt", "Makefile"];
    let bad = ["/etc/passwd", "../secrets.env", "src/../../x.rs", "C:\\temp\\x.rs"];
    let path = if genuine { rng.pick(&good) } else { rng.pick(&bad) };
    let core = format!("FILE CONFLICT: {path}\nCan Wait: YES");
    twin(rng, dialect, &core, genuine.then(|| Expected::about("FILE CONFLICT", path)))
}

/// A colon with nothing behind it does not reach for the next line.
fn missing_subject(rng: &mut Rng, dialect: &'static str, genuine: bool) -> SampleDraft {
    if dialect == "event" {
        let claim = claims::done(rng, dialect);
        return match genuine {
            true => twin(rng, dialect, &claim.text, Some(claim.expected)),
            false => twin(rng, dialect, "<event>42 cases</event>", None),
        };
    }
    let (name, id) = (rng.pick(TASK), claims::id(rng));
    let blanks = rng.pick(&["", " ", "\t", "  "]);
    let subject = if genuine { format!(" {id}") } else { blanks.to_owned() };
    let core = format!("{name}:{subject}\n\nFiles Modified:\n- src/lib.rs: limits");
    twin(rng, dialect, &core, genuine.then(|| Expected::about(name, id)))
}

/// Closing punctuation and quotes come off an id; more words make it a sentence.
fn prose_after_id(rng: &mut Rng, dialect: &'static str, genuine: bool) -> SampleDraft {
    let (name, id) = (rng.pick(TASK), claims::id(rng));
    let core = if genuine {
        match rng.below(4) {
            0 => format!("{name}: {id}."),
            1 => format!("{name}: `{id}`"),
            2 => format!("{name}: \"{id}\""),
            _ => format!("{name}: {id}!"),
        }
    } else {
        let rest =
            rng.pick(&["is what we want", "- at last", "and api-9", "(second try)", "for Dana"]);
        format!("{name}: {id} {rest}")
    };
    twin(rng, dialect, &core, genuine.then(|| Expected::about(name, id)))
}

/// Line signals start their line; a pilot fence may be indented.
fn indentation(rng: &mut Rng, dialect: &'static str, genuine: bool) -> SampleDraft {
    let blanks = rng.pick(&[" ", "  ", "   "]);
    if dialect == "pilot" {
        let claim = claims::any(rng, dialect);
        let lines = claim.text.lines().map(|line| format!("{blanks}{line}")).collect::<Vec<_>>();
        let core = format!("- last step\n{}", lines.join("\n"));
        return twin(rng, dialect, &core, Some(claim.expected));
    }
    let claim = claims::any(rng, dialect);
    if genuine {
        let core = format!("- item\n{blanks}more of it\n\n{}", claim.text);
        return twin(rng, dialect, &core, Some(claim.expected));
    }
    let blanks = rng.pick(&[" ", "  ", "\t", "    "]);
    twin(rng, dialect, &format!("{blanks}{}", claim.text), None)
}

/// A heading, bold, a bullet or a full stop makes it prose.
fn decoration(rng: &mut Rng, dialect: &'static str, genuine: bool) -> SampleDraft {
    let claim = claims::done(rng, dialect);
    if genuine {
        let head = rng.pick(&["## Result", "**Result**", "- one\n- two"]);
        let core = format!("{head}\n\n{}\n\n{}", filler::lead(rng), claim.text);
        return twin(rng, dialect, &core, Some(claim.expected));
    }
    let head = claim.text.lines().next().unwrap_or_default();
    let core = match (dialect, rng.below(3)) {
        ("turn", 0) => format!("{head}."),
        ("turn", 1) => format!("({head})"),
        (_, 0) => format!("{} {head}", rng.pick(&["#", "##", "-", "*", "1."])),
        (_, 1) => format!("_{head}_"),
        _ => format!("**{head}**"),
    };
    twin(rng, dialect, &core, None)
}

/// The reply was cut off.
fn truncated(rng: &mut Rng, dialect: &'static str, genuine: bool) -> SampleDraft {
    let claim = claims::done(rng, dialect);
    let before = filler::before(rng);
    if genuine {
        return SampleDraft::heard(format!("{before}{}", claim.text), vec![claim.expected]);
    }
    let at = claim.text.find(claim.key).unwrap_or(0) + claim.key.len() / 2;
    SampleDraft::unheard(format!("{before}{}", &claim.text[..at]))
}

/// A template that nobody filled in.
fn placeholder(rng: &mut Rng, dialect: &'static str, genuine: bool) -> SampleDraft {
    match dialect {
        "caw" => {
            let claim = claims::caw(rng);
            let time = claim.text.lines().find_map(|line| line.strip_prefix("TIMESTAMP: "));
            let unfilled = match rng.below(3) {
                0 => claim.with_key(rng.pick(&["{expected_signal}", "[PHASE]_COMPLETE"])),
                _ => {
                    let words = rng.pick(&["[ISO8601]", "[current time ISO8601]"]);
                    claim.text.replacen(time.unwrap_or_default(), words, 1)
                }
            };
            let core = if genuine { claim.text } else { unfilled };
            twin(rng, dialect, &core, genuine.then_some(claim.expected))
        }
        "delivery" => {
            let name = rng.pick(TASK);
            let unfilled = rng.pick(&["[task_id]", "[task-id]", "{task_id}"]);
            let id = if genuine { claims::id(rng) } else { unfilled.to_owned() };
            let core = format!("{name}: {id}\n\nSummary: limiter in place");
            twin(rng, dialect, &core, genuine.then(|| Expected::about(name, id)))
        }
        _ => {
            let filled = ["[P1] no access to the registry", "reason unknown so far", "quota {eu}"];
            let unfilled = ["reason", "[reason]", "{reason}", "question", "[question]"];
            let words = if genuine { rng.pick(&filled) } else { rng.pick(&unfilled) };
            let name = rng.pick(&["BLOCKED", "NEEDS_HELP", "NEEDS_HUMAN"]);
            let core = format!("<{dialect}>{name}: {words}</{dialect}>");
            twin(rng, dialect, &core, genuine.then(|| Expected::new(name)))
        }
    }
}

/// The agent repeats what it was told to write, without writing it.
fn instructions_echoed(rng: &mut Rng, dialect: &'static str, genuine: bool) -> SampleDraft {
    let prompt = Dialect::builtin(dialect).map_or("", |known| known.prompt.trim());
    let claim = claims::done(rng, dialect);
    if !genuine {
        return SampleDraft::unheard(format!("{prompt}\n\n{}", filler::closing(rng)));
    }
    let text = format!("{prompt}\n\n{}\n\n{}", filler::lead(rng), claim.text);
    SampleDraft::heard(text, vec![claim.expected])
}
