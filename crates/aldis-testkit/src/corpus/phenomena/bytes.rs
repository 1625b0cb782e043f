//! Line ends, byte order marks, invisible characters, terminal sequences.

use super::structure;
use crate::corpus::claims::{self, ALL, WrittenSignal};
use crate::corpus::filler;
use crate::corpus::{Expected, Phenomenon, Rng, SampleDraft};

/// Dialects in which a control character can stand inside the claim and stay on its line.
const NO_PILOT: &[&str] =
    &["caw", "delivery", "chorus", "turn", "promise", "ralph-status", "ralphex", "event", "axiom"];

pub(super) const PHENOMENA: &[Phenomenon] = &[
    structure("line_ends", NO_PILOT, line_ends),
    structure("byte_order_mark", ALL, byte_order_mark),
    structure("trailing_blanks", ALL, trailing_blanks),
    structure("zero_width", ALL, zero_width),
    structure("bidi_control", ALL, bidi_control),
    structure("nul", ALL, nul),
    structure("homoglyph", ALL, homoglyph),
    structure("combining_mark", NO_PILOT, combining_mark),
    structure("colour_or_conceal", NO_PILOT, colour_or_conceal),
    structure("colour_or_erase", NO_PILOT, colour_or_erase),
    structure("unicode_line_end", &["delivery"], unicode_line_end),
    structure("separator_blank", &["delivery"], separator_blank),
];

/// Puts something into the middle of the key.
fn inside_key(rng: &mut Rng, claim: &WrittenSignal, intruder: &str) -> String {
    let at = rng.between(1, claim.key.len());
    let (front, back) = claim.key.split_at(at);
    claim.with_key(&format!("{front}{intruder}{back}"))
}

/// The false twin has the intruder in its key, the genuine one in the prose before.
fn intruded(rng: &mut Rng, dialect: &str, genuine: bool, intruder: &str) -> SampleDraft {
    let claim = claims::done(rng, dialect);
    if !genuine {
        let broken = inside_key(rng, &claim, intruder);
        return SampleDraft::unheard(filler::around(rng, dialect, &broken));
    }
    let prose = format!("The label{intruder} is trimmed on input. {}\n\n", filler::lead(rng));
    let text = filler::around(rng, dialect, &claim.text);
    SampleDraft::heard(format!("{prose}{text}"), vec![claim.expected])
}

/// CRLF makes no difference; a bare CR is no line end and shows another text on a terminal.
fn line_ends(rng: &mut Rng, dialect: &'static str, genuine: bool) -> SampleDraft {
    let claim = claims::any(rng, dialect);
    if genuine {
        let text = filler::around(rng, dialect, &claim.text).replace('\n', "\r\n");
        return SampleDraft::heard(text, vec![claim.expected]);
    }
    let broken = match dialect {
        "caw" | "ralph-status" => claim.text.replace('\n', "\r"),
        "delivery" => format!("{}\r{}", filler::lead(rng), claim.text),
        _ => inside_key(rng, &claim, "\r"),
    };
    SampleDraft::unheard(filler::around(rng, dialect, &broken))
}

fn byte_order_mark(rng: &mut Rng, dialect: &'static str, genuine: bool) -> SampleDraft {
    let claim = claims::done(rng, dialect);
    if genuine {
        let text = match rng.chance(50) || dialect == "turn" {
            true => format!("\u{feff}{}", claim.text),
            false => format!("\u{feff}{}", filler::around(rng, dialect, &claim.text)),
        };
        return SampleDraft::heard(text, vec![claim.expected]);
    }
    let broken = inside_key(rng, &claim, "\u{feff}");
    SampleDraft::unheard(filler::around(rng, dialect, &broken))
}

/// Blanks at line ends and invisible characters after the last word do no harm.
fn trailing_blanks(rng: &mut Rng, dialect: &'static str, genuine: bool) -> SampleDraft {
    let claim = claims::done(rng, dialect);
    if !genuine {
        // The same blanks, in the middle of the name.
        let blanks = rng.pick(&[" ", "\t", "  "]);
        let broken = inside_key(rng, &claim, blanks);
        return SampleDraft::unheard(filler::around(rng, dialect, &broken));
    }
    let blanks = rng.pick(&[" ", "  ", "\t", " \t "]);
    let core = format!("{}{blanks}", claim.text.replace('\n', &format!("{blanks}\n")));
    let tail = match rng.below(3) {
        0 if claims::TAGS.contains(&dialect) || dialect == "turn" => "\u{200b}",
        1 => "\n \n",
        _ => "",
    };
    let before = filler::before(rng);
    SampleDraft::heard(format!("{before}{core}{tail}"), vec![claim.expected])
}

fn zero_width(rng: &mut Rng, dialect: &'static str, genuine: bool) -> SampleDraft {
    let intruder = rng.pick(&["\u{200b}", "\u{200d}", "\u{2060}", "\u{ad}"]);
    intruded(rng, dialect, genuine, intruder)
}

fn bidi_control(rng: &mut Rng, dialect: &'static str, genuine: bool) -> SampleDraft {
    let intruder = rng.pick(&["\u{202e}", "\u{2066}", "\u{200f}"]);
    intruded(rng, dialect, genuine, intruder)
}

fn nul(rng: &mut Rng, dialect: &'static str, genuine: bool) -> SampleDraft {
    intruded(rng, dialect, genuine, "\0")
}

/// A Cyrillic or Greek letter that looks like the Latin one.
fn homoglyph(rng: &mut Rng, dialect: &'static str, genuine: bool) -> SampleDraft {
    let claim = claims::done(rng, dialect);
    if genuine {
        let prose = "Naïve façade renamed; the Cyrillic sample «СОМРLЕТЕ» sorts last.\n\n";
        let text = filler::around(rng, dialect, &claim.text);
        let lead = filler::lead(rng);
        return SampleDraft::heard(format!("{prose}{lead}\n\n{text}"), vec![claim.expected]);
    }
    let twins: &[(char, char)] = &[
        ('A', '\u{410}'),
        ('C', '\u{421}'),
        ('E', '\u{415}'),
        ('O', '\u{39f}'),
        ('T', '\u{422}'),
        ('I', '\u{406}'),
        ('R', '\u{13a1}'),
        ('e', '\u{435}'),
        ('i', '\u{456}'),
    ];
    let known = |c: char| twins.iter().find(|(latin, _)| *latin == c).map(|(_, other)| *other);
    let places: Vec<usize> =
        claim.key.char_indices().filter(|(_, c)| known(*c).is_some()).map(|(at, _)| at).collect();
    let place = rng.pick(&places);
    let key = claim.key.char_indices();
    let key: String =
        key.map(|(at, c)| if at == place { known(c).unwrap_or(c) } else { c }).collect();
    SampleDraft::unheard(filler::around(rng, dialect, &claim.with_key(&key)))
}

/// An accent on the last letter of the name, or on a word of the prose.
fn combining_mark(rng: &mut Rng, dialect: &'static str, genuine: bool) -> SampleDraft {
    let claim = claims::done(rng, dialect);
    if genuine {
        let text = filler::around(rng, dialect, &claim.text);
        let text = format!("The cafe\u{301} dataset is included. {}\n\n{text}", filler::lead(rng));
        return SampleDraft::heard(text, vec![claim.expected]);
    }
    let broken = claim.with_key(&format!("{}\u{301}", claim.key));
    SampleDraft::unheard(filler::around(rng, dialect, &broken))
}

/// Colour is transparent, concealed text is hidden.
fn colour_or_conceal(rng: &mut Rng, dialect: &'static str, genuine: bool) -> SampleDraft {
    let claim = claims::done(rng, dialect);
    let mut lines = claim.text.lines();
    let head = lines.next().unwrap_or_default().to_owned();
    let rest: String = lines.map(|line| format!("\n{line}")).collect();
    let colour = rng.pick(&["\x1b[32m", "\x1b[1m", "\x1b[1;32m", "\x1b[38;5;40m"]);
    let conceal = rng.pick(&["\x1b[8m", "\x1b[1;8m"]);
    let on = if genuine { colour } else { conceal };
    // A body belongs to the line above it and keeps its own colour.
    let core = match dialect {
        "delivery" => format!("{on}{head}\x1b[0m{rest}"),
        _ => format!("{on}{head}{rest}\x1b[0m"),
    };
    let text = filler::around(rng, dialect, &core);
    if genuine {
        SampleDraft::heard(text, vec![claim.expected])
    } else {
        SampleDraft::unheard(text)
    }
}

/// Colour beside the name is transparent; a sequence that moves or erases inside it is not.
fn colour_or_erase(rng: &mut Rng, dialect: &'static str, genuine: bool) -> SampleDraft {
    let claim = claims::done(rng, dialect);
    if genuine {
        let core = match dialect {
            "caw" => claim.with_key(&format!("\x1b[1m{}\x1b[0m", claim.key)),
            "delivery" => claim.with_key(&format!("\x1b[36m{}\x1b[0m", claim.key)),
            _ => format!("\x1b[36m{}\x1b[39m", claim.text),
        };
        let text = filler::around(rng, dialect, &core);
        return SampleDraft::heard(text, vec![claim.expected]);
    }
    let erase = rng.pick(&["\x1b[2K", "\x1b[1A", "\x1b[5D", "\x1b[2J", "\x1b[1G"]);
    let broken = inside_key(rng, &claim, erase);
    SampleDraft::unheard(filler::around(rng, dialect, &broken))
}

/// Only LF ends a line, whatever an editor shows.
fn unicode_line_end(rng: &mut Rng, dialect: &'static str, genuine: bool) -> SampleDraft {
    let claim = claims::any(rng, dialect);
    let end = rng.pick(&["\u{2028}", "\u{2029}", "\u{85}", "\u{b}", "\u{c}"]);
    let lead = filler::lead(rng);
    let after = filler::after(rng);
    if genuine {
        let text = format!("{lead}{end}{lead}\n\n{}{after}", claim.text);
        return SampleDraft::heard(text, vec![claim.expected]);
    }
    SampleDraft::unheard(format!("{lead}{end}{}{after}", claim.text))
}

/// Only blank and tab separate.
fn separator_blank(rng: &mut Rng, dialect: &'static str, genuine: bool) -> SampleDraft {
    let name = rng.pick(&["READY_FOR_REVIEW", "AUDIT_PASSED", "CHECKPOINT"]);
    let id = claims::id(rng);
    let plain = rng.pick(&[" ", "\t", "  ", ""]);
    let odd = rng.pick(&["\u{a0}", "\u{2003}", "\u{3000}", "\u{202f}"]);
    let core = format!("{name}:{}{id}", if genuine { plain } else { odd });
    let text = filler::around(rng, dialect, &core);
    let expected = Expected::about(name, id);
    if genuine { SampleDraft::heard(text, vec![expected]) } else { SampleDraft::unheard(text) }
}
