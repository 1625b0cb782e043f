//! pilot: JSON that is JSON, its layouts, and the forms that came before it.

use super::structure;
use crate::corpus::claims;
use crate::corpus::filler;
use crate::corpus::{Expected, Phenomenon, Rng, SampleDraft};

const PILOT: &[&str] = &["pilot"];

pub(super) const PHENOMENA: &[Phenomenon] = &[
    structure("json_broken", PILOT, json_broken),
    structure("json_duplicate_key", PILOT, json_duplicate_key),
    structure("json_boolean", PILOT, json_boolean),
    structure("json_two_values", PILOT, json_two_values),
    structure("json_depth", PILOT, json_depth),
    structure("json_number", PILOT, json_number),
    structure("json_layout", PILOT, json_layout),
    structure("json_bare_line", PILOT, json_bare_line),
    structure("legacy_form", PILOT, legacy_form),
    structure("legacy_status", PILOT, legacy_status),
    structure("legacy_beside_json", PILOT, legacy_beside_json),
];

fn fence(json: &str) -> String {
    format!("```pilot-signal\n{json}\n```")
}

fn twin(rng: &mut Rng, core: &str, expected: Option<Expected>) -> SampleDraft {
    SampleDraft::heard(filler::around(rng, "pilot", core), expected.into_iter().collect())
}

/// One of two JSON texts, in a fence.
fn either(rng: &mut Rng, genuine: bool, good: &str, bad: &str, name: &str) -> SampleDraft {
    let json = if genuine { good } else { bad };
    twin(rng, &fence(json), genuine.then(|| Expected::new(name)))
}

fn json_broken(rng: &mut Rng, _: &'static str, genuine: bool) -> SampleDraft {
    let exit = rng.chance(50);
    let (json, name) = claims::pilot_json(rng, exit);
    let body = json.trim_end_matches('}');
    let bad = match rng.below(5) {
        0 => format!("{body},}}"),
        1 => body.to_owned(),
        2 => json.replace('"', "'"),
        3 => format!("{body},\"progress\":NaN}}"),
        _ => format!("{body},\"note\": // later\n1}}"),
    };
    either(rng, genuine, &json, &bad, name)
}

fn json_duplicate_key(rng: &mut Rng, _: &'static str, genuine: bool) -> SampleDraft {
    let again =
        rng.pick(&["\"success\":false", "\"type\":\"status\"", "\"typ\\u0065\":\"status\""]);
    let good = "{\"v\":2,\"type\":\"exit\",\"success\":true,\"exit_signal\":true}";
    let bad =
        format!("{{\"v\":2,\"type\":\"exit\",\"success\":true,\"exit_signal\":true,{again}}}");
    either(rng, genuine, good, &bad, "EXIT")
}

/// Booleans are booleans.
fn json_boolean(rng: &mut Rng, _: &'static str, genuine: bool) -> SampleDraft {
    let value = rng.pick(&["\"true\"", "1", "\"yes\"", "[true]"]);
    let key = rng.pick(&["exit_signal", "success"]);
    let good = format!("{{\"v\":2,\"type\":\"exit\",\"{key}\":true}}");
    let bad = format!("{{\"v\":2,\"type\":\"exit\",\"{key}\":{value}}}");
    either(rng, genuine, &good, &bad, "EXIT")
}

fn json_two_values(rng: &mut Rng, _: &'static str, genuine: bool) -> SampleDraft {
    let (json, name) = claims::pilot_json(rng, false);
    let (other, _) = claims::pilot_json(rng, true);
    let gap = rng.pick(&["\n", " ", "", "\n\n"]);
    either(rng, genuine, &json, &format!("{json}{gap}{other}"), name)
}

fn json_depth(rng: &mut Rng, _: &'static str, genuine: bool) -> SampleDraft {
    let depth = if genuine { rng.between(1, 8) } else { rng.between(40, 400) };
    let nested = format!("{}1{}", "[".repeat(depth), "]".repeat(depth));
    let json = format!("{{\"v\":2,\"type\":\"status\",\"progress\":40,\"context\":{nested}}}");
    twin(rng, &fence(&json), genuine.then(|| Expected::new("STATUS")))
}

fn json_number(rng: &mut Rng, _: &'static str, genuine: bool) -> SampleDraft {
    let good = rng.pick(&["0", "42", "100", "140", "-3"]);
    let bad = rng.pick(&["1e400", "-1e999", "0x10", "01", "Infinity"]);
    let number = if genuine { good } else { bad };
    let json = format!("{{\"v\":2,\"type\":\"status\",\"progress\":{number}}}");
    twin(rng, &fence(&json), genuine.then(|| Expected::new("STATUS")))
}

/// The layouts that models make of it; another info string is another fence.
fn json_layout(rng: &mut Rng, _: &'static str, genuine: bool) -> SampleDraft {
    let exit = rng.chance(50);
    let (json, name) = claims::pilot_json(rng, exit);
    let pretty = json.replace("{", "{\n  ").replace(",\"", ",\n  \"").replace("}", "\n}");
    if !genuine {
        let info = rng.pick(&["json", "pilot", "pilot_signal", "json pilot-signal"]);
        return twin(rng, &format!("```{info}\n{pretty}\n```"), None);
    }
    let core = match rng.below(4) {
        0 => fence(&pretty),
        1 => format!("```pilot-signal {json}\n```"),
        2 => format!("```pilot-signal\n{json}```"),
        _ => fence(&json).replace('\n', "\r\n"),
    };
    twin(rng, &core, Some(Expected::new(name)))
}

/// A line of its own outside any fence, or inside one.
fn json_bare_line(rng: &mut Rng, _: &'static str, genuine: bool) -> SampleDraft {
    let exit = rng.chance(50);
    let (json, name) = claims::pilot_json(rng, exit);
    let core = match (genuine, rng.below(3)) {
        (true, _) => json,
        (false, 0) => format!("```json\n{json}\n```"),
        (false, 1) => format!("The log has {json} in it."),
        (false, _) => json.trim_end_matches('}').to_owned(),
    };
    twin(rng, &core, genuine.then(|| Expected::new(name)))
}

/// The old banners count on a line of their own and never in prose.
fn legacy_form(rng: &mut Rng, _: &'static str, genuine: bool) -> SampleDraft {
    let (words, name) = rng.pick(&[
        ("EXIT_SIGNAL: true", "EXIT"),
        ("LOOP COMPLETE", "EXIT"),
        ("TASK MODE COMPLETE", "EXIT"),
        ("STAGNATION DETECTED", "STAGNATION"),
        ("PHASE: IMPL → VERIFY", "PHASE"),
    ]);
    let core = match (genuine, rng.below(2)) {
        (true, _) => words.to_owned(),
        (false, 0) => format!("The old wrapper greps for {words} in its log."),
        (false, _) => format!("{words} was the banner of version 1."),
    };
    twin(rng, &core, genuine.then(|| Expected::new(name)))
}

fn legacy_status(rng: &mut Rng, _: &'static str, genuine: bool) -> SampleDraft {
    let rule =
        rng.pick(&["====", "━━━━━━━━", "=================================================="]);
    let (phase, progress) = (rng.pick(&["INIT", "RESEARCH", "IMPL", "VERIFY"]), rng.below(100));
    let inner = format!("Phase: {phase}\nIteration: 2/5\nProgress: {progress}%");
    if genuine {
        let core = format!("NAVIGATOR_STATUS\n{rule}\n{inner}\n{rule}");
        return twin(rng, &core, Some(Expected::new("STATUS")));
    }
    let core = match rng.below(2) {
        0 => format!("The NAVIGATOR_STATUS block had these members.\n\n{inner}"),
        _ => format!("> NAVIGATOR_STATUS\n> {rule}\n> Phase: {phase}\n> {rule}"),
    };
    twin(rng, &core, None)
}

/// The old forms count only where the new one is not used.
fn legacy_beside_json(rng: &mut Rng, _: &'static str, genuine: bool) -> SampleDraft {
    let (json, name) = claims::pilot_json(rng, false);
    let legacy = rng.pick(&["LOOP COMPLETE", "EXIT_SIGNAL: true", "STAGNATION DETECTED"]);
    if genuine {
        let core = match rng.chance(50) {
            true => format!("{legacy}\n\n{}", fence(&json)),
            false => format!("{}\n\n{legacy}", fence(&json)),
        };
        return twin(rng, &core, Some(Expected::new(name)));
    }
    let broken = fence(json.trim_end_matches('}'));
    let core = format!("{broken}\n\nThe wrapper also knows {legacy} from version 1.");
    twin(rng, &core, None)
}
