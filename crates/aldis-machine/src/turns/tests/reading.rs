//! What is found in a message, and turns that end without the keyword.

use super::*;

/// A change of the configuration, a message, whether it has the keyword, and what is left of it.
type Row = (&'static str, fn(&mut Config), &'static str, bool, &'static str);

const KEYWORDS: &[Row] = &[
    ("own word", |c| c.keyword = "OVER_TO_YOU".to_owned(), "Yes. OVER_TO_YOU", true, "Yes."),
    (
        "not the old one",
        |c| c.keyword = "OVER_TO_YOU".to_owned(),
        "Yes. TURN_COMPLETE",
        false,
        "Yes. TURN_COMPLETE",
    ),
    ("any case", |c| c.case_sensitive = false, "Yes. turn_complete", true, "Yes."),
    (
        "any case, repeated",
        |c| c.case_sensitive = false,
        "Yes. Turn_Complete\nturn_complete",
        true,
        "Yes.",
    ),
    ("right case", |_| {}, "Yes. turn_complete", false, "Yes. turn_complete"),
    (
        "anywhere",
        |c| c.require_at_end = false,
        "Yes. TURN_COMPLETE Next one please.",
        true,
        "Yes. Next one please.",
    ),
    (
        "alternatives",
        |c| c.alternative_signals = vec!["PASS".to_owned()],
        "I have nothing.\nPASS",
        true,
        "I have nothing.",
    ),
    (
        "alternatives, repeated",
        |c| c.alternative_signals = vec!["PASS".to_owned()],
        "No.\nPASS\nTURN_COMPLETE\nPASS",
        true,
        "No.",
    ),
    ("no alternatives", |_| {}, "I have nothing.\nPASS", false, "I have nothing.\nPASS"),
    ("a longer word", |_| {}, "It is NOT_TURN_COMPLETE", false, "It is NOT_TURN_COMPLETE"),
    (
        "announced",
        |_| {},
        "When I am ready I will say TURN_COMPLETE",
        false,
        "When I am ready I will say TURN_COMPLETE",
    ),
    (
        "indentation stays",
        |_| {},
        "    x = 1\nTURN_COMPLETE\n\nTURN_COMPLETE \u{200b}",
        true,
        "    x = 1",
    ),
];

#[test]
fn keywords_are_configurable() {
    for (name, change, text, signal, display) in KEYWORDS {
        let mut config = Config::default();
        change(&mut config);
        config.check().unwrap();
        let message = MessageReader::new(&config).read(text);
        assert_eq!(message.signal.is_some(), *signal, "{name}");
        assert_eq!(&message.display, display, "{name}");
    }
}

#[test]
fn near_misses_are_evidence() {
    for (text, reason) in [
        ("Yes. TURN_COMPLETE.", "not_at_end"),
        ("Yes. **TURN_COMPLETE**", "decorated"),
        ("Yes.\n```\nTURN_COMPLETE\n```", "quoted"),
        ("Yes. turn_complete", "wrong_case"),
    ] {
        let mut state = channel(&["pm", "dev"]);
        let outcome = says(&mut state, 1, "pm", text);
        let evidence = &outcome.decision().unwrap().evidence;
        assert_eq!(evidence[0].reason.as_deref(), Some(reason), "{text}");
    }
}

#[test]
fn a_phrase_ends_a_turn_only_as_a_whole_sentence() {
    let mut config = Config::default();
    config.auto_detect.enabled = true;
    let reader = MessageReader::new(&config);
    for (text, phrase) in [
        ("Done", true),
        ("The parser works. Done.", true),
        ("The parser works!\nThat\u{2019}s all.", true),
        ("FINISHED!!", true),
        ("I am not done", false),
        ("Not done.", false),
        ("Done?", false),
        ("Done!?", false),
        ("Are we done?", false),
        ("完了しました。Done？", false),
        ("All done!", true),
        ("I'm done.", true),
        ("I\u{2019}m all done", true),
        ("I am finished.", true),
        ("It works now. It's complete!", true),
        ("Almost done.", false),
        ("Well done!", false),
        ("I'm not done.", false),
        ("All of it is not done.", false),
        ("Overdone.", false),
        ("I'mdone.", false),
        ("When it is done", false),
        ("I'm done with this", false),
        ("Done. Now the next part", false),
        ("", false),
    ] {
        assert_eq!(reader.read(text).completion_phrase, phrase, "{text:?}");
    }
    assert!(
        !MessageReader::new(&Config::default()).read("Done.").completion_phrase,
        "off by default"
    );
}

#[test]
fn phrases_and_silence_end_turns_where_they_may() {
    for (name, text, punctuation, wait, want) in [
        ("phrase", "Done.", true, 1, Some("turns/completion-phrase")),
        ("silence after a sentence", "I looked at it.", true, 32, Some("turns/silence")),
        ("not yet", "I looked at it.", true, 31, None),
        ("silence in mid-sentence", "I looked at", true, 32, None),
        ("any silence", "I looked at", false, 32, Some("turns/silence")),
    ] {
        let mut state = channel_with(&["pm", "dev"], |start| {
            start.config.auto_detect.enabled = true;
            start.config.auto_detect.detect_punctuation = punctuation;
        });
        let first = says(&mut state, 1, "pm", text);
        let mut rules = vec![rule(&first).to_owned()];
        rules.extend(wait_until(&mut state, wait).iter().map(|o| rule(o).to_owned()));
        rules.retain(|rule| rule != "turns/posted");
        assert_eq!(rules.first().map(String::as_str), want, "{name}");
        let next = if want.is_some() { "dev" } else { "pm" };
        assert_eq!(state.active_agent(), Some(next), "{name}");
    }
    // An agent that has not said a word runs out of time, not of words.
    let mut state = channel_with(&["pm", "dev"], |start| start.config.auto_detect.enabled = true);
    assert_eq!(wait_until(&mut state, 59).len(), 0);
}
