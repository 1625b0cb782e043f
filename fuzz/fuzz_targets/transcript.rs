//! Any bytes as any host's transcript, cut anywhere: the same messages; and what the quick look
//! leaves out holds no signal.
#![no_main]

use aldis_transcript::{Format, Reader, detect};
use aldis_signal::{Finding, Message, Rules, scan};
use aldis_fuzz::Input;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: Input| {
    let text = &*input.text;
    let format = Format::ALL.get(usize::from(input.choice % 32)).copied();
    let format = format.unwrap_or_else(|| detect(text));
    let quick = |raw: &[u8]| Rules::builtin().may_match_json(raw);
    let reader = || match input.choice & 32 {
        0 => Reader::new(format).with_filter(&quick),
        _ => Reader::new(format).with_filter(&quick).signals_only(),
    };

    let whole = read(reader(), [text].into_iter());
    let cut = read(reader(), input.chunks());
    assert_eq!(cut, whole, "{format}: chunks (left) change the messages");

    let all = read(Reader::new(format), [text].into_iter());
    if whole.0 != all.0 {
        let (heard, said) = (signals(&whole.0), signals(&all.0));
        assert_eq!(heard, said, "{format}: the quick look (left) hid a signal");
    }
});

/// Returns the messages and how many lines were skipped.
fn read<'t>(mut reader: Reader<'_>, chunks: impl Iterator<Item = &'t [u8]>) -> (Vec<Message>, u64) {
    let mut messages = Vec::new();
    for chunk in chunks {
        reader.push(chunk, &mut |message| messages.push(message));
    }
    let skipped = reader.finish_counting(&mut |message| messages.push(message));
    (messages, skipped)
}

/// Returns every signal with the entry it was said in.
fn signals(messages: &[Message]) -> Vec<(Option<u64>, String)> {
    let mut all = Vec::new();
    for message in messages {
        let findings = scan(Rules::builtin(), message.text.as_bytes(), &message.origin);
        let signals = findings.iter().filter_map(Finding::signal);
        all.extend(signals.map(|signal| (message.entry, format!("{signal:?}"))));
    }
    all
}
