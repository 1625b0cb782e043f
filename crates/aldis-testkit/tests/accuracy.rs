//! The accuracy that the project promises, on a smaller corpus than the report's.

use aldis_testkit::accuracy::{Matching, Report};
use aldis_testkit::corpus::samples;

const COUNT: usize = 5_000;
const SEED: u64 = 20_261_115;

fn measured() -> (Report, Vec<String>) {
    let mut report = Report::default();
    let mut wrong = Vec::new();
    for sample in samples(SEED, COUNT) {
        if !report.generated(&sample) && wrong.len() < 10 {
            let text: String = sample.text.chars().take(600).collect();
            wrong.push(format!("{} {}: {text:?}", sample.phenomenon, sample.dialect));
        }
    }
    (report, wrong)
}

#[test]
fn careful_matching_never_errs_where_structure_decides() {
    let (report, wrong) = measured();
    let total = report.total(Matching::Careful);
    assert_eq!(total.errors(), 0, "{total:?}\n{}", wrong.join("\n"));
}

/// If these fell, the corpus would have stopped to hold what it is for.
#[test]
fn reference_matching_errs_as_it_does_in_practice() {
    let (report, _) = measured();
    let total = report.total(Matching::Reference);
    let false_messages = total.messages - total.genuine;
    assert!(total.false_stops * 100 / false_messages >= 25, "{total:?}");
    assert!(total.misses * 100 / total.genuine <= 25, "{total:?}");
}
