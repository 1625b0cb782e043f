//! The long benchmark text says exactly what it was made to say, in every dialect at once.

use aldis_signal::{Finding, Origin, Rules, scan};
use aldis_testkit::corpus::bulk::agent_text;

#[test]
fn agent_text_says_what_it_was_made_to_say() {
    let bulk = agent_text(2_000_000, Some(50_000), 5);
    let findings = scan(Rules::builtin(), bulk.text.as_bytes(), &Origin::assistant());
    let found = findings.iter().filter_map(Finding::signal);
    let found: Vec<_> =
        found.map(|signal| (&*signal.dialect, &*signal.name, signal.subject.as_deref())).collect();
    let said = bulk.signals.iter();
    let said: Vec<_> = said
        .map(|(dialect, said)| (*dialect, said.name.as_str(), said.subject.as_deref()))
        .collect();
    assert_eq!(found, said);
}

#[test]
fn text_without_signals_says_nothing() {
    let bulk = agent_text(500_000, None, 6);
    let findings = scan(Rules::builtin(), bulk.text.as_bytes(), &Origin::assistant());
    assert_eq!(findings.iter().filter_map(Finding::signal).next(), None);
}
