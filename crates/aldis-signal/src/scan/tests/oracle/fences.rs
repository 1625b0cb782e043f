//! Fence dialects: JSON in a fence of its own, or a bare line of it. What is expected is known from
//! how the message is put together.

use super::*;

/// JSON texts, and the signal each is.
const JSON: &[(&str, Option<&str>)] = &[
    ("{\"v\":2}", Some("STATUS")),
    ("{\"v\":2,\"type\":\"status\",\"progress\":40}", Some("STATUS")),
    ("{\"v\":2,\"type\":\"phase\",\"phase\":\"impl\"}", Some("PHASE")),
    ("{\"v\":2,\"type\":\"exit\",\"success\":true,\"reason\":\"all } done\"}", Some("EXIT")),
    ("{\"v\":2,\"type\":\"stagnation\"}", Some("STAGNATION")),
    ("{\"v\":2,\"indicators\":{\"tests\":true}}", Some("STATUS")),
    ("{\"v\":2,}", None),
    ("{\"v\":2,\"v\":2}", None),
    ("{\"v\":2} {\"v\":2}", None),
    ("{\"v\":2,\"exit_signal\":\"yes\"}", None),
    ("{\"v\":2,\"progress\":1e999}", None),
    ("{\"v\":2,\"reason\":\"\\ud800\"}", None),
    ("{\"v\":2]}", None),
];

/// Ways to write it: what stands before and after.
const FORMS: &[(&str, &str)] = &[
    ("```pilot-signal\n", "\n```"),
    ("```pilot-signal ", "\n```"),
    ("```pilot-signal\n", "```"),
    ("```pilot-signal\n\n", "\n\n```"),
    ("", ""),
];

/// What quotes a whole form.
const QUOTES: &[(&str, &str)] =
    &[("````\n", "\n````"), ("~~~\n", "\n~~~"), ("~~~text\n", "\n~~~"), ("<!--\n", "\n-->")];

/// Whole lines, and the signal in them.
fn segment() -> impl Strategy<Value = (String, Option<&'static str>)> {
    let said = (select(JSON), select(FORMS))
        .prop_map(|((json, name), (before, after))| (format!("{before}{json}{after}"), name));
    let pretty = select(&JSON[..6]).prop_map(|(json, name)| {
        let json = json.replace('{', "{\n  ").replace(',', ",\n  ").replace(":2", ": 2");
        (format!("```pilot-signal\n{json}\n```"), name)
    });
    let quoted = (select(JSON), select(FORMS), select(QUOTES)).prop_map(|(json, form, quote)| {
        (format!("{}{}{}{}{}", quote.0, form.0, json.0, form.1, quote.1), None)
    });
    let block_quote = (select(JSON), select(FORMS)).prop_map(|(json, form)| {
        (format!("> {}", format!("{}{}{}", form.0, json.0, form.1).replace('\n', "\n> ")), None)
    });
    let bare_in_fence = select(JSON).prop_map(|(json, _)| (format!("```json\n{json}\n```"), None));
    let prose = select(&["", "Some words.", "> quote", "- item", "{\"a\": 1}"][..])
        .prop_map(|line| (line.to_owned(), None));
    prop_oneof![6 => said, 1 => pretty, 3 => quoted, 1 => block_quote, 1 => bare_in_fence, 3 => prose]
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn fences_are_read_alike(segments in vec(segment(), 0..10), crlf in any::<bool>()) {
        let mut text = String::new();
        let mut want = Vec::new();
        for (segment, name) in &segments {
            want.extend(name.map(|name| (name.to_owned(), text.len())));
            let segment = format!("{segment}\n\n");
            text += &if crlf { segment.replace('\n', "\r\n") } else { segment };
        }
        let got = taken(&plain_rules("pilot"), &text).into_iter();
        let got: Vec<(String, usize)> = got.map(|(name, _, start)| (name, start)).collect();
        prop_assert_eq!(got, want, "{:?}", text);
    }
}
