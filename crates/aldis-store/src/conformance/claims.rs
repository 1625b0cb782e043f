//! Claims: one worker at a time, lanes in order, and nothing closed with an old fencing number.

use std::collections::BTreeSet;
use std::thread;
use std::time::Duration;

use super::{at, create, effect, id, ok, some, step};
use crate::claim::{Claim, ClaimRequest};
use crate::record::EffectState;
use crate::step::{NewEffect, Step};
use crate::store::Store;

const TTL: Duration = Duration::from_millis(100);

/// An effect of the kind `kind`, in a lane, with what it requires.
fn of(key: &str, kind: &str, lane: &str, requires: &[&str]) -> NewEffect {
    NewEffect {
        kind: kind.to_owned(),
        lane: lane.to_owned(),
        requires: requires.iter().map(|&label| label.to_owned()).collect(),
        ..effect(key, 0)
    }
}

fn in_lane(key: &str, lane: &str) -> NewEffect {
    of(key, "notify", lane, &[])
}

fn enqueue(store: &dyn Store, run: &str, expected: u64, effects: &[NewEffect]) {
    ok(store.commit(&Step { effects: effects.to_vec(), ..step(run, expected) }));
}

fn request(now: i64) -> ClaimRequest {
    ClaimRequest::new(&[], "me", at(now), TTL)
}

fn claim(store: &dyn Store, now: i64, limit: usize) -> Vec<Claim> {
    ok(store.claim(&ClaimRequest { limit, ..request(now) }))
}

fn keys(claims: &[Claim]) -> Vec<&str> {
    claims.iter().map(|claim| &*claim.effect.key).collect()
}

pub(super) fn an_effect_is_handed_out_once(store: &dyn Store) {
    let late = NewEffect { due: at(50), ..effect("late", 0) };
    enqueue(store, "r", 0, &[effect("a", 0), late, effect("b", 0), effect("c", 0)]);
    let first = claim(store, 10, 2);
    assert_eq!(keys(&first), ["a", "b"], "what is due, in order");
    let Claim { effect, fence, until } = &first[0];
    assert_eq!((*fence, *until, effect.worker.as_deref()), (1, at(110), Some("me")));
    assert_eq!((&effect.run, &*effect.body, effect.attempts), (&id("r"), r#"{"to":"a"}"#, 0));
    assert_eq!(keys(&claim(store, 10, 10)), ["c"]);
    assert_eq!(keys(&claim(store, 10, 10)), [""; 0]);
    assert_eq!(keys(&claim(store, 60, 0)), [""; 0]);
    assert_eq!(keys(&claim(store, 60, 10)), ["late"]);
    // Reading shows them, and who has them.
    let seen = some(ok(store.effect("a")));
    assert_eq!((seen.state, seen.worker.as_deref()), (EffectState::Pending, Some("me")));
    // A claim that is over is handed out again, with another number.
    let again = claim(store, 110, 10);
    assert_eq!(keys(&again), ["a", "b", "c"]);
    assert_eq!(again[0].fence, 2);
}

pub(super) fn a_claim_can_be_kept_and_given_back(store: &dyn Store) {
    enqueue(store, "r", 0, &[effect("a", 0), effect("b", 0)]);
    let claims = claim(store, 0, 10);
    assert_eq!(ok(store.keep(&claims, at(90), TTL)), [true, true]);
    assert_eq!(keys(&claim(store, 189, 10)), [""; 0]);
    // Late, but nobody took them. Then one is given back at once.
    assert_eq!(ok(store.keep(&claims, at(500), TTL)), [true, true]);
    assert_eq!(ok(store.keep(&claims[1..], at(510), Duration::ZERO)), [true]);
    let taken = claim(store, 510, 10);
    assert_eq!(keys(&taken), ["b"]);
    assert_eq!(ok(store.keep(&claims, at(520), TTL)), [true, false], "the other one is lost");
    assert!(ok(store.done(&taken[0])));
    assert_eq!(ok(store.keep(&[], at(0), TTL)), [false; 0]);
    let unknown = Claim { effect: some(ok(store.effect("a"))), fence: 7, until: at(0) };
    assert_eq!(ok(store.keep(&[taken[0].clone(), unknown], at(520), TTL)), [false, false]);
}

pub(super) fn a_claim_that_is_done_is_over(store: &dyn Store) {
    enqueue(store, "r", 0, &[effect("a", 0)]);
    let claim = claim(store, 0, 1).remove(0);
    assert!(ok(store.done(&claim)));
    assert_eq!(some(ok(store.effect("a"))).state, EffectState::Done);
    assert!(!ok(store.done(&claim)));
    assert!(!ok(store.failed(&claim, None, "too late")));
    assert_eq!(ok(store.keep(&[claim], at(1), TTL)), [false]);
}

pub(super) fn an_effect_that_failed_comes_back(store: &dyn Store) {
    enqueue(store, "r", 0, &[effect("k", 0)]);
    for attempt in 1..=3 {
        let next = i64::from(attempt) * 1_000;
        let claims = claim(store, next - 1_000, 1);
        assert!(ok(store.failed(&claims[0], Some(at(next)), "refused")));
        assert!(!ok(store.failed(&claims[0], Some(at(0)), "twice")));
        assert!(!ok(store.done(&claims[0])));
        assert_eq!(keys(&claim(store, next - 1, 1)), [""; 0]);
        let effect = some(ok(store.effect("k")));
        assert_eq!((effect.attempts, effect.due), (attempt, at(next)));
        assert_eq!(effect.error.as_deref(), Some("refused"));
    }
    assert!(ok(store.done(&claim(store, 3_000, 1)[0])));
    assert_eq!(some(ok(store.effect("k"))).attempts, 3);
}

pub(super) fn an_effect_that_was_given_up_stays_visible(store: &dyn Store) {
    create(store, "r");
    enqueue(store, "r", 1, &[effect("k", 7)]);
    let claims = claim(store, 7, 1);
    assert!(ok(store.failed(&claims[0], None, "gone for good")));
    assert_eq!(keys(&claim(store, 1_000, 10)), [""; 0]);
    let effect = some(ok(store.effect("k")));
    assert_eq!((effect.state, effect.attempts), (EffectState::GivenUp, 1));
    assert_eq!((effect.error.as_deref(), effect.due), (Some("gone for good"), at(7)));
    assert_eq!(ok(store.effects_done(&id("r"), None, &["k".to_owned()])), 0);
    enqueue(store, "r", 2, &[super::effect("k", 7)]);
    assert_eq!(keys(&claim(store, 1_000, 10)), [""; 0], "its key is known");
}

pub(super) fn an_old_claim_closes_nothing(store: &dyn Store) {
    enqueue(store, "r", 0, &[effect("a", 0), effect("b", 0)]);
    let slept = claim(store, 0, 10);
    let taken = ok(store.claim(&ClaimRequest { worker: "other".to_owned(), ..request(200) }));
    assert!(!ok(store.done(&slept[0])));
    assert!(!ok(store.failed(&slept[0], None, "gone")));
    assert_eq!(some(ok(store.effect("a"))).state, EffectState::Pending);
    // A number that was not given out yet is no better.
    let forged = Claim { fence: 3, ..slept[0].clone() };
    assert!(!ok(store.done(&forged)));
    assert!(ok(store.done(&taken[0])));
    // Over, but not taken by anybody: the work was done, so it counts.
    assert!(ok(store.done(&taken[1])));
    assert_eq!(some(ok(store.effect("b"))).worker.as_deref(), Some("other"));
}

pub(super) fn the_coordinator_closes_claimed_effects(store: &dyn Store) {
    enqueue(store, "r", 0, &[in_lane("a", "x"), in_lane("b", "x"), effect("c", 0)]);
    let claims = claim(store, 0, 10);
    ok(store.commit(&Step { done: vec!["a".to_owned()], ..step("r", 1) }));
    assert_eq!(ok(store.effects_done(&id("r"), None, &["c".to_owned()])), 1);
    assert_eq!(ok(store.keep(&claims, at(1), TTL)), [false, true, false]);
    assert!(!ok(store.done(&claims[0])));
    assert_eq!(keys(&claim(store, 200, 10)), ["b"], "the next of the lane");
}

pub(super) fn a_worker_gets_what_it_asks_for(store: &dyn Store) {
    let effects = [of("1", "a", "", &[]), of("2", "b", "x", &[]), of("3", "c", "", &[])];
    enqueue(store, "r", 0, &effects);
    enqueue(store, "s", 0, &[of("4", "a", "", &[]), of("5", "b", "y", &[])]);
    let asked = |change: fn(&mut ClaimRequest)| {
        let mut request = request(0);
        change(&mut request);
        let claims = ok(store.claim(&request));
        // For the next one.
        assert!(ok(store.keep(&claims, at(0), Duration::ZERO)).iter().all(|kept| *kept));
        claims.into_iter().map(|claim| claim.effect.key).collect::<Vec<_>>()
    };
    assert_eq!(asked(|_| {}), ["1", "2", "3", "4", "5"]);
    assert_eq!(asked(|it| it.kinds = vec!["a".to_owned()]), ["1", "4"]);
    assert_eq!(asked(|it| it.kinds = vec!["c".to_owned(), "b".to_owned()]), ["2", "3", "5"]);
    assert_eq!(asked(|it| it.lane = Some(String::new())), ["1", "3", "4"]);
    assert_eq!(asked(|it| it.lane = Some("x".to_owned())), ["2"]);
    assert_eq!(asked(|it| it.run = Some(id("s"))), ["4", "5"]);
    assert_eq!(asked(|it| it.run = Some(id("none"))), [""; 0]);
    let narrow = |it: &mut ClaimRequest| {
        (it.run, it.lane, it.kinds) = (Some(id("r")), Some("x".to_owned()), vec!["b".to_owned()]);
    };
    assert_eq!(asked(narrow), ["2"]);
    assert_eq!(asked(|it| (it.run, it.lane) = (Some(id("r")), Some("y".to_owned()))), [""; 0]);
}

pub(super) fn labels_must_be_offered(store: &dyn Store) {
    let effects = [
        of("any", "run", "", &[]),
        of("gpu", "run", "", &["gpu"]),
        of("both", "run", "", &["linux", "gpu", "gpu"]),
        of("odd", "run", "", &["", "a\nb", "\\"]),
    ];
    enqueue(store, "r", 0, &effects);
    let offered = |labels: &[&str]| {
        let labels = labels.iter().map(|&label| label.to_owned()).collect();
        let claims = ok(store.claim(&ClaimRequest { labels, ..request(0) }));
        ok(store.keep(&claims, at(0), Duration::ZERO));
        claims.into_iter().map(|claim| claim.effect.key).collect::<Vec<_>>()
    };
    assert_eq!(offered(&[]), ["any"]);
    assert_eq!(offered(&["GPU", "linux"]), ["any"]);
    assert_eq!(offered(&["gpu"]), ["any", "gpu"]);
    assert_eq!(offered(&["gpu", "linux", "more"]), ["any", "gpu", "both"]);
    assert_eq!(offered(&["\\", "a\nb", ""]), ["any", "odd"]);
    let requires = some(ok(store.effect("odd"))).requires;
    assert_eq!(requires, ["", "a\nb", "\\"]);
    // Those that nobody here can perform do not use up the limit.
    let claims = ok(store.claim(&ClaimRequest { limit: 2, ..request(0) }));
    assert_eq!(keys(&claims), ["any"]);
}

pub(super) fn a_lane_is_first_in_first_out(store: &dyn Store) {
    let effects = ["x1", "y1", "x2", "x3", "y2"].map(|key| in_lane(key, &key[..1]));
    enqueue(store, "r", 0, &effects);
    // The head of a lane, and what follows it in the same claim.
    let first = claim(store, 0, 2);
    assert_eq!(keys(&first), ["x1", "y1"]);
    assert_eq!(keys(&claim(store, 0, 10)), [""; 0], "both lanes are held up");
    assert!(ok(store.done(&first[0])));
    let second = claim(store, 0, 10);
    assert_eq!(keys(&second), ["x2", "x3"]);
    // One that waits for its next attempt holds up the rest, one that is given up does not.
    assert!(ok(store.failed(&first[1], Some(at(50)), "later")));
    assert_eq!(keys(&claim(store, 49, 10)), [""; 0]);
    let y1 = claim(store, 50, 1);
    assert_eq!(keys(&y1), ["y1"]);
    assert!(ok(store.failed(&y1[0], None, "never")));
    assert_eq!(keys(&claim(store, 50, 10)), ["y2"]);
    // Out of order: closing a later one frees nobody.
    assert!(ok(store.done(&second[1])));
    enqueue(store, "r", 1, &[in_lane("x4", "x")]);
    assert_eq!(keys(&claim(store, 50, 10)), [""; 0]);
    assert!(ok(store.done(&second[0])));
    assert_eq!(keys(&claim(store, 50, 10)), ["x4"]);
}

pub(super) fn a_lane_is_held_up_by_what_others_must_do(store: &dyn Store) {
    // Across runs and kinds.
    enqueue(store, "a", 0, &[of("1", "dispatch", "x", &["gpu"]), of("2", "notify", "x", &[])]);
    enqueue(store, "b", 0, &[of("3", "notify", "x", &[]), of("4", "notify", "", &[])]);
    let notify = ClaimRequest { kinds: vec!["notify".to_owned()], ..request(0) };
    assert_eq!(keys(&ok(store.claim(&notify))), ["4"]);
    let of_b = ClaimRequest { run: Some(id("b")), lane: Some("x".to_owned()), ..request(0) };
    assert_eq!(keys(&ok(store.claim(&of_b))), [""; 0]);
    let with_gpu = ClaimRequest { labels: vec!["gpu".to_owned()], ..notify.clone() };
    assert_eq!(keys(&ok(store.claim(&with_gpu))), [""; 0], "of another kind");
    let dispatch = ClaimRequest { kinds: vec!["dispatch".to_owned()], ..with_gpu };
    let first = ok(store.claim(&dispatch));
    assert_eq!(keys(&first), ["1"]);
    assert!(ok(store.done(&first[0])));
    assert_eq!(keys(&ok(store.claim(&notify))), ["2", "3"]);
}

pub(super) fn a_long_lane_holds_up_nobody_else(store: &dyn Store) {
    let mut effects: Vec<NewEffect> =
        (0..300).map(|number| in_lane(&format!("x{number}"), "x")).collect();
    effects.push(in_lane("y", "y"));
    effects.push(effect("free", 0));
    enqueue(store, "r", 0, &effects);
    let head = claim(store, 0, 1);
    assert_eq!(keys(&head), ["x0"]);
    assert_eq!(keys(&claim(store, 0, 2)), ["y", "free"]);
    assert!(ok(store.done(&head[0])));
    let rest = claim(store, 0, 1_000);
    assert_eq!(rest.len(), 299);
    assert!(keys(&rest).into_iter().eq(effects[1..300].iter().map(|effect| &*effect.key)));
}

pub(super) fn a_lane_can_be_trimmed(store: &dyn Store) {
    let effects = ["x1", "y1", "x2", "x3", "x4", "free"];
    let lane = |key: &str| if key == "free" { "" } else { &key[..1] }.to_owned();
    enqueue(store, "r", 0, &effects.map(|key| in_lane(key, &lane(key))));
    let trim = |lane: &str, keep| ok(store.trim_lane(lane, keep, at(0), "too many"));
    assert_eq!((trim("x", 4), trim("z", 0), trim("", 0)), (0, 0, 0));
    // The one that is being performed is left alone, and still the first.
    let first = claim(store, 0, 1);
    assert_eq!(trim("x", 2), 1);
    let trimmed = some(ok(store.effect("x2")));
    assert_eq!((trimmed.state, trimmed.error.as_deref()), (EffectState::GivenUp, Some("too many")));
    assert_eq!(keys(&claim(store, 0, 10)), ["y1", "free"]);
    assert!(ok(store.failed(&first[0], Some(at(90)), "later")));
    let counted = ok(store.pending_count()).into_iter();
    let errors: Vec<_> =
        counted.filter(|it| it.lane == "x").map(|it| (it.count, it.error)).collect();
    assert_eq!(errors, [(3, Some("later".to_owned()))]);
    // One that waits for its next attempt does not hold up what is left when it is dropped.
    assert_eq!(trim("x", 1), 2);
    assert_eq!(keys(&claim(store, 0, 10)), ["x4"]);
}

pub(super) fn racing_workers_share_the_effects(store: &dyn Store) {
    const EFFECTS: usize = 40;
    let lane = |number: usize| if number.is_multiple_of(2) { "" } else { "x" };
    let effects: Vec<NewEffect> =
        (0..EFFECTS).map(|number| in_lane(&format!("{number:02}"), lane(number))).collect();
    enqueue(store, "r", 0, &effects);
    let work = |worker: usize| {
        let mut mine = Vec::new();
        loop {
            let limit = 1 + worker % 3;
            let claims = claim(store, 0, limit);
            for claim in &claims {
                assert!(ok(store.done(claim)), "nobody else has it");
                mine.push(claim.effect.key.clone());
            }
            if claims.is_empty() && ok(store.pending_count()).is_empty() {
                return mine;
            }
        }
    };
    let done: Vec<String> = thread::scope(|scope| {
        let workers: Vec<_> = (0..4).map(|worker| scope.spawn(move || work(worker))).collect();
        let done = workers.into_iter().flat_map(|worker| match worker.join() {
            Ok(done) => done,
            Err(_) => panic!("a worker failed"),
        });
        done.collect()
    });
    assert_eq!(done.len(), EFFECTS, "each was performed once");
    assert_eq!(done.iter().collect::<BTreeSet<_>>().len(), EFFECTS);
}
