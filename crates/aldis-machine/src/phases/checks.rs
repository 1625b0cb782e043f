//! Claims that are checked before they count.
//!
//! The claim that ends a run is not taken at its word where there are checks. The stop is blocked, or
//! allowed where it must be, and [`Effect::Check`](super::Effect::Check) asks for the checks, which take
//! as long as they take. [`Event::Checked`](super::Event::Checked) brings what they said: then the claim
//! counts, or the agent gets the reason with its next stop, its next prompt, or when it is woken.

use serde::{Deserialize, Serialize};

use super::apply::{complete, finish, record};
use super::config::TokenPolicy;
use super::decide;
use super::event::{PhaseSignal, Stop};
use super::pipeline::COMPLETE;
use super::prompts;
use super::rule::Rule;
use super::state::{Effect, Outcome, State};
use super::tally::StopTally;
use super::wake;
use crate::evidence::ending as end_of;
use crate::proof::{self, Acceptance, Proof, Verdict};
use crate::run::{Question, QuestionDraft};
use crate::words::{self, accepts, counted, duration, is_zero};
use crate::{Evidence, Refusal};
use aldis_signal::scan::Token;
use aldis_signal::time::Timestamp;

/// How often the checks of one claim are started: whoever runs them may die.
pub const CHECK_STARTS_MAX: u32 = 2;
/// How much of a check's output is quoted.
const OUTPUT_MAX: usize = 4_000;
/// How much of a human's words stands in a sentence.
const QUOTE_MAX: usize = 200;

/// What is known about the checks of a run.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Checks {
    /// What was claimed and is being checked.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub claim: Option<CheckedClaim>,
    /// A claim that counts if a human accepts it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub asks: Option<AskedClaim>,
    /// Why the last claim does not hold, until the agent was told.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub refused: Option<RefusedClaim>,
    /// Whether the checks let the run advance and the main agent was not told yet.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub advanced: bool,
    /// How often checks were started.
    #[serde(skip_serializing_if = "is_zero")]
    pub started: u32,
    /// What was pinned, and the last round.
    #[serde(skip_serializing_if = "Proof::is_empty")]
    pub proof: Proof,
}

/// A claim that is being checked.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CheckedClaim {
    /// Which start of the checks it is.
    pub check: u32,
    /// The phase that is claimed to be complete.
    pub phase: String,
    /// Whether the whole run is.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub finish: bool,
    /// The claim.
    pub signal: PhaseSignal,
    /// Since when it is checked.
    pub since: Timestamp,
    /// How often the checks of this claim were started.
    pub starts: u32,
}

/// A claim that counts if a human accepts it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AskedClaim {
    /// The claim.
    pub claim: CheckedClaim,
    /// What is asked.
    pub question: Question,
}

/// A claim that does not hold.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RefusedClaim {
    /// Why, as a clause.
    pub because: String,
    /// What the agent reads.
    pub feedback: String,
}

impl Checks {
    /// Nothing but what was pinned when the run began.
    pub(super) fn of(proof: Proof) -> Self {
        Self { proof, ..Self::default() }
    }

    /// Whether nothing is known.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// Whether further claims mean nothing yet: one is being checked, waits for a human, or was refused
    /// without the agent knowing.
    pub(super) fn withhold(&self) -> bool {
        self.claim.is_some() || self.asks.is_some() || self.refused.is_some()
    }

    /// Forgets claims: the run has ended, or the agent took them back.
    pub(super) fn drop_claims(&mut self) {
        (self.claim, self.asks, self.refused, self.advanced) = (None, None, None, false);
    }
}

impl CheckedClaim {
    /// What is claimed, as a clause.
    pub fn clause(&self) -> String {
        match self.finish {
            true => "the run is complete".to_owned(),
            false => format!("phase {} is complete", self.phase),
        }
    }
}

/// Whether a claim is checked before it counts: that of the last phase, and that of the whole run.
pub(super) fn wants_check(state: &State, finish: bool) -> bool {
    let next = state
        .setup
        .pipeline
        .next(&state.progress.phase, &state.setup.config.skip)
        .unwrap_or(COMPLETE);
    state.setup.config.proof.is_active() && (finish || next == COMPLETE)
}

/// Takes a claim that is to be checked.
pub(super) fn claim(
    state: &mut State,
    now: Timestamp,
    signal: &PhaseSignal,
    finish: bool,
    tally: &mut StopTally,
) {
    // A phase that began in this very message has a code that the agent cannot know.
    if state.setup.config.token == TokenPolicy::Require && !tally.completed.is_empty() {
        return tally.refuse(signal, Refusal::WrongToken);
    }
    record(state, now, signal);
    tally.quote(signal, None);
    let (phase, signal) = (state.progress.phase.clone(), signal.clone());
    let claim = CheckedClaim { check: 0, phase, finish, signal, since: now, starts: 0 };
    start(state, now, claim);
    tally.claimed = true;
}

/// Starts the checks of a claim; [`State::on_event`] adds the effect.
fn start(state: &mut State, now: Timestamp, claim: CheckedClaim) {
    state.checks.started = state.checks.started.saturating_add(1);
    let (check, starts) = (state.checks.started, claim.starts.saturating_add(1));
    state.checks.claim = Some(CheckedClaim { check, starts, since: now, ..claim });
}

/// A sub-agent claims what is checked now.
pub(super) fn claimed_by_subagent(claim: &CheckedClaim, named: &str, tally: StopTally) -> Outcome {
    Outcome::allowed(Rule::CheckStarted, format!("Checking the claim that {}", claim.clause()))
        .seen(tally.evidence)
        .because(format!("{named} reported {}", claim.signal.name))
        .next("the main agent gets the verdict at its next stop")
}

/// The agent wants to stop while its claim is checked.
pub(super) fn checking(
    state: &mut State,
    now: Timestamp,
    stop: &Stop,
    tally: StopTally,
) -> Outcome {
    let Some(claim) = state.checks.claim.clone() else { return Outcome::untouched() };
    let is_new = tally.claimed;
    let because = match is_new {
        true => format!("the agent reported {}", claim.signal.name),
        false => format!("the checks have run for {}", duration(now.since(claim.since).as_secs())),
    };
    let clause = claim.clause();
    if !state.block_limit.may_block(stop.cap) {
        let summary = format!("Let the agent stop: the claim that {clause} is still being checked");
        return Outcome::allowed(Rule::Capped, summary)
            .seen(tally.evidence)
            .because(format!("{because}, and no more stops in a row can be blocked"))
            .next("the verdict counts as soon as it is there; `aldis auto status` shows it");
    }
    let reason = prompts::checking(state, &claim);
    decide::given(state, &reason);
    let rule = if is_new { Rule::CheckStarted } else { Rule::StillChecking };
    Outcome::decided(rule, format!("Blocked the stop: the claim that {clause} is being checked"))
        .seen(tally.evidence)
        .because(because)
        .next("the agent gets the verdict at its next stop; `aldis auto stop` ends the run")
        .with([Effect::Block { reason }, Effect::WriteView])
}

/// The agent may stop: a human decides about its claim.
pub(super) fn waits_for_human(asked: &AskedClaim, tally: StopTally) -> Outcome {
    let clause = asked.claim.clause();
    let id = &asked.question.id;
    Outcome::allowed(
        Rule::CheckAsks,
        format!("Let the agent stop: whether {clause} is yours to say"),
    )
    .seen(tally.evidence)
    .because(asked.question.text.clone())
    .next(format!(
        "`aldis answer {id} accept` takes the claim as it is; any other answer refuses it"
    ))
}

/// What the checks of a claim said.
pub(super) fn on_checked(
    state: &mut State,
    now: Timestamp,
    check: u32,
    proof: &Proof,
    fresh_token: Option<&str>,
) -> Outcome {
    let is_asked = |claim: &mut CheckedClaim| claim.check == check;
    if !state.is_live() {
        return Outcome::untouched();
    }
    let Some(claim) = state.checks.claim.take_if(is_asked) else { return Outcome::untouched() };
    state.touch(now);
    state.checks.proof = proof.clone();
    let verdict = proof.round().and_then(|round| round.verdict.as_ref());
    let Some(verdict) = verdict else {
        return refuse(state, &claim, Rule::CheckLost, "the checks came to no verdict".to_owned());
    };
    match verdict.acceptance {
        Acceptance::Accepted => {
            let passed = passed(proof, verdict);
            accept(state, now, claim, &passed, fresh_token)
        }
        Acceptance::Refused => {
            let opinion = proof.round().and_then(|round| round.opinion.as_ref());
            let rule = match opinion.is_some_and(proof::Opinion::refuses) {
                true => Rule::OpinionRefused,
                false => Rule::CheckFailed,
            };
            refuse(state, &claim, rule, verdict.because())
        }
        Acceptance::Asks => ask(state, now, claim, verdict),
    }
}

/// Whoever ran the checks is gone without a result.
pub(super) fn on_lost(state: &mut State, now: Timestamp, check: u32, what: &str) -> Outcome {
    let is_asked = |claim: &mut CheckedClaim| claim.check == check;
    if !state.is_live() {
        return Outcome::untouched();
    }
    let Some(claim) = state.checks.claim.take_if(is_asked) else { return Outcome::untouched() };
    if claim.starts >= CHECK_STARTS_MAX {
        let because = format!("the checks did not end: {what}");
        return refuse(state, &claim, Rule::CheckLost, because);
    }
    let summary = format!("Started the checks of the claim that {} again", claim.clause());
    start(state, now, claim);
    Outcome::decided(Rule::CheckLost, summary)
        .because(what.to_owned())
        .next("the agent gets the verdict at its next stop; `aldis auto stop` ends the run")
        .with([Effect::WriteView])
}

/// A human decides about a claim.
pub(super) fn on_answer(
    state: &mut State,
    now: Timestamp,
    (text, by): (&str, &str),
    fresh_token: Option<&str>,
) -> Outcome {
    let Some(AskedClaim { claim, .. }) = state.checks.asks.take().filter(|_| state.is_live())
    else {
        return Outcome::untouched();
    };
    state.touch(now);
    if accepts(text) {
        state.checks.proof.accept(by);
        let passed = format!("a human accepted it by {}", words::cause(by));
        return accept(state, now, claim, &passed, fresh_token);
    }
    let because = format!("a human refused it: {}", words::inline(text, QUOTE_MAX));
    refuse(state, &claim, Rule::ClaimRefused, because)
}

fn passed(proof: &Proof, verdict: &Verdict) -> String {
    let count = proof.round().map_or(0, |round| round.results.len());
    let passed = match count {
        1 => "the check passed".to_owned(),
        count => format!("{} passed", counted(count, "check")),
    };
    match verdict.because() {
        remarks if remarks.is_empty() => passed,
        remarks => format!("{passed}; {remarks}"),
    }
}

/// The claim holds: the phase is complete, and with it perhaps the run.
fn accept(
    state: &mut State,
    now: Timestamp,
    claim: CheckedClaim,
    passed: &str,
    fresh_token: Option<&str>,
) -> Outcome {
    // What is claimed while the checks run is about nothing that begins after them.
    let signal = PhaseSignal { at: Some(now), ..claim.signal };
    let of_subagent = signal.subagent;
    let mut tally = StopTally { of_subagent, ..StopTally::default() };
    match claim.finish {
        true => finish(state, now, &signal, &mut tally),
        false => complete(state, now, &signal, fresh_token, &mut tally),
    }
    if let Some(reason) = tally.ended {
        return decide::ended(state, reason, tally, Some(passed));
    }
    if tally.completed.is_empty() {
        // Its code is not the one of this phase.
        let evidence = std::mem::take(&mut tally.evidence);
        return Outcome::decided(Rule::CheckPassed, "Ignored the claim whose checks passed")
            .seen(evidence)
            .because("it does not carry the code of its phase")
            .next("the agent is asked again at its next stop");
    }
    state.checks.advanced = true;
    wake::call(state);
    let next = match state.handover.ends_at_next_stop {
        true => "the main agent's next stop ends the run",
        false => "the agent gets the prompt of the next phase at its next stop",
    };
    let because = format!("{}, and {passed}", tally.completed_by());
    Outcome::decided(Rule::CheckPassed, format!("Phase {} is complete", claim.phase))
        .seen(tally.evidence)
        .because(because)
        .next(next)
        .with([Effect::WriteView])
}

/// The claim does not hold.
fn refuse(state: &mut State, claim: &CheckedClaim, rule: Rule, because: String) -> Outcome {
    let told = match rule {
        Rule::CheckFailed | Rule::OpinionRefused => {
            state.checks.proof.feedback(&state.setup.config.proof)
        }
        _ => format!("You reported done, but {because}."),
    };
    let PhaseSignal { name, quote, line, via, agent, .. } = &claim.signal;
    let seen = Evidence::signal(name, quote, *line, *via).by_agent(agent.clone());
    let refused = seen.refused(rule.as_str());
    let mut evidence = vec![refused.clone()];
    let opinion = state.checks.proof.round().and_then(|round| round.opinion.as_ref());
    evidence.extend(opinion.map(proof::opinion_evidence));
    evidence.extend(outputs(&state.checks.proof));
    state.last_refused = Some(refused);
    state.checks.refused = Some(RefusedClaim { because: because.clone(), feedback: told });
    wake::call(state);
    Outcome::decided(rule, format!("Refused the claim that {}", claim.clause()))
        .seen(evidence)
        .because(because)
        .next("the agent gets this at its next stop; `aldis auto stop` ends the run")
        .with([Effect::WriteView])
}

/// What the checks printed that did not pass.
fn outputs(proof: &Proof) -> Vec<Evidence> {
    let results = proof.round().into_iter().flat_map(|round| &round.results);
    let failed = results.filter(|it| !it.passed() && !it.output.tail.is_empty());
    failed
        .map(|it| Evidence::new("output", end_of(&it.output.tail, OUTPUT_MAX, &Token::Off)))
        .collect()
}

/// The checks passed, and something else is for a human to say.
fn ask(state: &mut State, now: Timestamp, claim: CheckedClaim, verdict: &Verdict) -> Outcome {
    state.questions_asked = state.questions_asked.saturating_add(1);
    let clause = claim.clause();
    let because = verdict.because();
    let id = format!("q{}", state.questions_asked);
    let text = format!("Does it count that {clause}? {because}");
    let question = QuestionDraft::new(text).named(&id, now);
    state.checks.asks = Some(AskedClaim { claim, question });
    Outcome::decided(Rule::CheckAsks, format!("Asked whether it counts that {clause}"))
        .because(because)
        .next(format!(
            "`aldis answer {id} accept` takes the claim as it is; any other answer refuses it"
        ))
        .with([Effect::WriteView])
}
