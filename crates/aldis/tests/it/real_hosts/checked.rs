//! The claim that ends a run is checked beside the session of the host itself.

use aldis_testkit::model_server::ScriptedReply;
use aldis_testkit::real_host::HostKind::Claude;

use super::stage::Stage;
use super::{SHORT, SHORT_PHASES, assert_told, model, work};

/// The agent is told to wait, gets the verdict with its next stop, and is believed once the check passes.
#[test]
fn a_claim_is_checked_and_its_verdict_reaches_the_agent() {
    let Some(stage) = Stage::new(Claude) else { return };
    let session = stage.open_session();
    stage.start(
        &session,
        &[&SHORT[..], &["--verify", "test -e done || { echo 'un'finished; false; }"]].concat(),
    );
    let waits =
        || [ScriptedReply::runs("aldis auto status --wait"), ScriptedReply::says("I waited.")];
    let claims = work(&SHORT_PHASES);
    let claims_again = claims[claims.len() - 1].clone();
    let replies = [
        claims,
        waits().into(),
        vec![ScriptedReply::runs("touch done"), claims_again],
        waits().into(),
    ];
    let model = model(replies.concat());
    stage.run(&model, &session);
    stage.assert_complete();
    let asked = model.main_requests();
    assert_eq!(asked.len(), 6 + 2 + 2 + 2, "{:#?}", asked.last().map(|it| it.told()));
    assert_told(&asked[6], "is being checked");
    assert_told(&asked[8], "unfinished");
    let receipt = stage.json(&["proof", "show", "--json"]);
    assert_eq!(receipt["receipt"]["checks"][0]["status"], "passed", "{receipt}");
    stage.aldis(&["proof", "verify"]);
}
