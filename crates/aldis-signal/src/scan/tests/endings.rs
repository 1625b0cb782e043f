//! Every line of `conformance/endings.jsonl`: claims that are meant, and claims that are not.

use super::*;

#[test]
fn endings_are_judged_as_labelled() {
    let mut wrong = Vec::new();
    for row in json_lines("conformance/endings.jsonl") {
        let rules = rules_for(row["dialect"].as_str().unwrap());
        let text = row["text"].as_str().unwrap();
        let got = scan(&rules, text.as_bytes(), &Origin::assistant());
        let claimed = signals(&got).iter().any(|signal| signal.meaning.is_claim());
        if claimed != row["claim"].as_bool().unwrap() {
            wrong.push(format!("claim {claimed} in {text:?}\n{got:#?}"));
        }
    }
    assert!(wrong.is_empty(), "{} wrong\n{}", wrong.len(), wrong.join("\n\n"));
}
