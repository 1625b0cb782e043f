//! Counts the tests of a JUnit report.

use aldis_machine::proof::TestCounts;
use quick_xml::Reader;
use quick_xml::events::Event;

/// Counts the test cases of a report; nothing if it has none, or is no XML.
pub(super) fn count(report: &[u8]) -> Option<TestCounts> {
    let mut reader = Reader::from_reader(report);
    let mut counts = TestCounts::default();
    // What is known about the test case around here.
    let mut case: Option<Outcome> = None;
    let mut buffer = Vec::new();
    loop {
        match reader.read_event_into(&mut buffer).ok()? {
            Event::Eof => break,
            Event::Start(tag) if tag.local_name().as_ref() == b"testcase" => {
                case = Some(Outcome::Passed);
            }
            Event::Empty(tag) if tag.local_name().as_ref() == b"testcase" => counts.passed += 1,
            Event::Start(tag) | Event::Empty(tag) => {
                if let Some(case) = &mut case {
                    case.take(tag.local_name().as_ref());
                }
            }
            Event::End(tag) if tag.local_name().as_ref() == b"testcase" => match case.take() {
                Some(Outcome::Passed) => counts.passed += 1,
                Some(Outcome::Failed) => counts.failed += 1,
                Some(Outcome::Skipped) => counts.skipped += 1,
                None => {}
            },
            _ => {}
        }
        buffer.clear();
    }
    (counts.total() > 0).then_some(counts)
}

enum Outcome {
    Passed,
    Failed,
    Skipped,
}

impl Outcome {
    fn take(&mut self, tag: &[u8]) {
        match tag {
            b"failure" | b"error" => *self = Self::Failed,
            b"skipped" if !matches!(self, Self::Failed) => *self = Self::Skipped,
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cases_are_counted_not_what_the_header_says() {
        let report = br#"<?xml version="1.0"?>
            <testsuites tests="100"><testsuite name="a" tests="50">
              <testcase name="x"/>
              <testcase name="y"><failure message="m">no</failure></testcase>
              <testcase name="z"><skipped/></testcase>
              <testcase name="e"><error/><system-out>x</system-out></testcase>
              <testcase name="o"><system-out>ok</system-out></testcase>
            </testsuite></testsuites>"#;
        let counts = count(report).unwrap();
        assert_eq!((counts.passed, counts.failed, counts.skipped), (2, 2, 1));
        for none in [&b""[..], b"<a/>", b"no xml", b"<testsuites><testcase", b"\xff\xfe"] {
            assert_eq!(count(none), None);
        }
    }
}
