//! Every row of `hostile/scan.jsonl`, whole and in every split.

use super::*;

/// Returns what careful matching takes, as the rows spell it.
fn accepted(findings: &[Finding]) -> Vec<String> {
    let mut out: Vec<String> = Vec::new();
    for signal in signals(findings) {
        let name = match (&*signal.dialect, &*signal.name) {
            ("pilot", name) if signal.fields.contains_key("legacy") => {
                format!("legacy_{}", name.to_lowercase())
            }
            ("pilot", name) => name.to_lowercase(),
            ("delivery", "HEALTH_AUDIT") => signal.subject.clone().unwrap(),
            (_, name) => {
                let said = signal.subject.as_ref().or(signal.payload.as_ref());
                let short = said.filter(|_| *signal.dialect == *"delivery" || name == "PROGRESS");
                short.map_or_else(|| name.to_owned(), |said| format!("{name}:{said}"))
            }
        };
        if !out.contains(&name) {
            out.push(name);
        }
    }
    out
}

/// The one that wins where the row speaks of priority.
fn highest_priority(rules: &Rules, findings: &[Finding]) -> Vec<String> {
    let best = signals(findings)
        .into_iter()
        .min_by_key(|signal| rules.dialects()[0].signal(&signal.name).map(|def| def.priority));
    let best: Vec<Finding> = best.into_iter().cloned().map(Finding::from).collect();
    accepted(&best)
}

#[test]
fn hostile_files_are_judged_as_labelled() {
    for row in json_lines("hostile/scan.jsonl") {
        let file = row["file"].as_str().unwrap();
        let rules = rules_for(row["dialect"].as_str().unwrap());
        let text = bytes_of(&format!("hostile/{file}"));
        let got = scan(&rules, &text, &Origin::assistant());
        let want: Vec<&str> =
            row["accept"].as_str().unwrap().split(',').filter(|name| !name.is_empty()).collect();
        let taken = match row["attack"].as_str().unwrap() {
            attack if attack.contains("priority rule") => highest_priority(&rules, &got),
            _ => accepted(&got),
        };
        assert_eq!(taken, want, "{file}: {}\n{got:#?}", row["attack"]);
    }
}

#[test]
fn hostile_files_do_not_depend_on_chunks() {
    let all = Rules::builtin();
    for row in json_lines("hostile/scan.jsonl") {
        let file = row["file"].as_str().unwrap();
        let text = bytes_of(&format!("hostile/{file}"));
        let whole = scan(all, &text, &Origin::assistant());
        for (first, second) in splits(text.len()) {
            let mut got = Vec::new();
            let mut scanner = Scanner::new(all, Origin::assistant());
            for piece in [&text[..first], &text[first..second], &text[second..]] {
                scanner.push(piece, &mut |finding| got.push(finding));
            }
            scanner.finish(&mut |finding| got.push(finding));
            got.sort_by_key(|finding| finding.place().span);
            assert_eq!(got, whole, "{file} cut at {first} and {second}");
        }
    }
}

/// Every split of a small file, 64 pseudo-random ones of a large.
fn splits(length: usize) -> Vec<(usize, usize)> {
    if length <= 4096 {
        return (0..=length).map(|at| (at, at)).collect();
    }
    let mut seed = 0x9E37_79B9_7F4A_7C15_u64;
    let mut next = || {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        usize::try_from(seed >> 33).unwrap() % length
    };
    (0..64).map(|_| (next(), next())).map(|(a, b)| (a.min(b), a.max(b))).collect()
}
