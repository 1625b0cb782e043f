//! Plans that are too long to be checked in a simple way.

use super::*;

#[test]
fn a_long_chain_is_no_cycle_and_a_long_cycle_is_cut() {
    let chain = |count: usize, close: bool| {
        let tasks = (0..count).map(|no| {
            let need = format!("t{}", (no + 1) % count);
            let last = no + 1 == count && !close;
            spec(
                &format!("t{no}"),
                if last { &[] } else { std::slice::from_ref(&need) }
                    .iter()
                    .map(String::as_str)
                    .collect::<Vec<_>>()
                    .as_slice(),
            )
        });
        Plan { title: String::new(), tasks: tasks.collect() }
    };
    assert_eq!(chain(20_000, false).check(&[]), []);
    let problems = chain(1_000, true).check(&[]);
    assert_eq!(problems.len(), 1);
    assert!(problems[0].what.contains("t0 -> t1 -> ") && problems[0].what.len() < 200);
    assert!(problems[0].what.ends_with("-> ... -> t0"));
}
