//! The sequence: pin the files when the work begins, and at each claim inspect them, run the checks
//! in order, and judge.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::config::{Check, Config, RedFirst};
use super::opinion::Opinion;
use super::record::{CheckResult, CheckStatus, Inspection, Pinned, TestCounts};
use super::verdict::{Acceptance, Verdict, Weight, judge};
use super::words;
use crate::evidence::ending as end_of;
use aldis_signal::codes;
use aldis_signal::scan::Token;

/// How much of a check's output is kept with a run.
const OUTPUT_MAX: usize = 4_000;

codes! {
    /// When checks run.
    #[derive(Default)]
    pub enum Stage {
        /// Before the work starts.
        Start = "start",
        /// After a claim.
        #[default]
        Claim = "claim",
    }
}

/// What is claimed to be done, as far as the repository tells.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Claim {
    /// The current commit.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub commit: Option<String>,
    /// The commit when the work began.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub base: Option<String>,
    /// Whether there are changes that are not committed.
    pub dirty: bool,
    /// Whether the agent says that there was nothing to do.
    pub no_op: bool,
}

impl Claim {
    /// Whether there is a commit of the work.
    pub(super) fn is_committed(&self) -> bool {
        self.commit.is_some() && (self.no_op || self.commit != self.base)
    }
}

/// One round of checks.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Round {
    /// When it takes place.
    pub stage: Stage,
    /// What is claimed.
    pub claim: Claim,
    /// How the project stood before the checks ran.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub inspection: Option<Inspection>,
    /// What came of the checks so far, in the order in which they ran.
    pub results: Vec<CheckResult>,
    /// The second opinion, where one is asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub opinion: Option<Opinion>,
    /// Whether files are pinned only: a human reopened the run with other checks.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub pins_only: bool,
    /// What it amounts to, once it is over.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub verdict: Option<Verdict>,
}

impl Round {
    /// What came of the check of this name.
    pub fn result(&self, name: &str) -> Option<&CheckResult> {
        self.results.iter().find(|result| result.name == name)
    }

    /// Whether every check ran and passed.
    pub fn all_passed(&self) -> bool {
        !self.results.is_empty() && self.results.iter().all(CheckResult::passed)
    }
}

/// What is to be done next.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Step {
    /// Pin the files, or compare them with the pins; with a commit, in a clean checkout of it, in
    /// which the checks run, too. Answered by [`Proof::on_inspected`].
    Inspect {
        /// At the start files are pinned, at a claim they are compared.
        stage: Stage,
        /// The commit to check out.
        commit: Option<String>,
        /// Whether what was pinned before stays pinned as it was then.
        keep: bool,
    },
    /// Run a check. Answered by [`Proof::on_result`].
    Run {
        /// Which.
        check: Check,
        /// The how manieth time in this round, from 1.
        attempt: u32,
    },
    /// Ask for a second opinion. Answered by [`Proof::on_opinion`].
    Ask,
    /// The round is over.
    Judged(Verdict),
}

/// What is known about the checks of a run: what was pinned, what the checks said at the start, and
/// the last round.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Proof {
    #[serde(skip_serializing_if = "Option::is_none")]
    pinned: Option<Pinned>,
    /// The round before the work started.
    #[serde(skip_serializing_if = "Option::is_none")]
    start: Option<Round>,
    /// The tests that each check counted when it first ran after a claim.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    first: BTreeMap<String, TestCounts>,
    /// The round of the last claim.
    #[serde(skip_serializing_if = "Option::is_none")]
    round: Option<Round>,
    /// Which round goes on.
    #[serde(skip_serializing_if = "Option::is_none")]
    stage: Option<Stage>,
}

impl Proof {
    /// Whether nothing is known yet.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// What was pinned when the work began.
    pub fn pinned(&self) -> Option<&Pinned> {
        self.pinned.as_ref()
    }

    /// The round before the work started.
    pub fn start(&self) -> Option<&Round> {
        self.start.as_ref()
    }

    /// The round of the last claim.
    pub fn round(&self) -> Option<&Round> {
        self.round.as_ref()
    }

    /// The round that goes on.
    pub fn current(&self) -> Option<&Round> {
        match self.stage? {
            Stage::Start => self.start.as_ref(),
            Stage::Claim => self.round.as_ref(),
        }
    }

    /// Begins the round before the work: what is there now is what counts as unchanged.
    pub fn begin_start(&mut self, config: &Config, commit: Option<String>) -> Step {
        let claim = Claim { commit, ..Claim::default() };
        self.start = Some(Round { stage: Stage::Start, claim, ..Round::default() });
        self.stage = Some(Stage::Start);
        self.next(config)
    }

    /// Pins what is not pinned yet, once a human reopened a run with other checks. What the checks
    /// said before the work started stays known.
    pub fn begin_pins(&mut self, config: &Config, commit: Option<String>) -> Step {
        let results = self.start.take().map(|round| round.results).unwrap_or_default();
        let claim = Claim { commit, ..Claim::default() };
        let pins_only = true;
        self.start =
            Some(Round { stage: Stage::Start, claim, results, pins_only, ..Round::default() });
        self.stage = Some(Stage::Start);
        self.next(config)
    }

    /// Begins the round of a claim.
    pub fn begin_claim(&mut self, config: &Config, claim: Claim) -> Step {
        self.round = Some(Round { stage: Stage::Claim, claim, ..Round::default() });
        self.stage = Some(Stage::Claim);
        self.next(config)
    }

    /// What a claim would amount to by what is seen of the files and by these results: `None` while
    /// checks are still to run. Nothing is decided by that.
    pub fn preview(
        &self,
        config: &Config,
        claim: Claim,
        seen: &Inspection,
        results: &[CheckResult],
    ) -> Option<Verdict> {
        let mut copy = self.clone();
        let mut step = copy.begin_claim(config, claim);
        if matches!(step, Step::Inspect { .. }) {
            step = copy.on_inspected(config, seen)?;
        }
        for result in results {
            step = copy.on_result(config, result).unwrap_or(step);
        }
        match step {
            Step::Judged(verdict) => Some(verdict),
            _ => None,
        }
    }

    /// Says again what is to be done, after a crash of whoever does it.
    pub fn again(&mut self, config: &Config) -> Option<Step> {
        let clean = config.clean;
        if let Some(round) = self.current_mut()
            && clean
        {
            // Its checkout is gone with whoever made it.
            round.inspection = None;
        }
        self.stage?;
        Some(self.next(config))
    }

    /// Takes what the inspection showed.
    pub fn on_inspected(&mut self, config: &Config, inspection: &Inspection) -> Option<Step> {
        let round = self.current_mut().filter(|round| round.inspection.is_none())?;
        round.inspection = Some(inspection.clone());
        if let Some(pinned) = &inspection.pinned {
            self.pinned = Some(pinned.clone());
        }
        Some(self.next(config))
    }

    /// Takes what came of a check. One that failed is repeated as often as the settings say.
    pub fn on_result(&mut self, config: &Config, result: &CheckResult) -> Option<Step> {
        let expected = self.wanted(config)?;
        if expected.0 != result.name {
            return None;
        }
        let mut result = result.clone();
        result.output.tail = end_of(result.output.tail.trim_end(), OUTPUT_MAX, &Token::Off);
        let stage = self.stage;
        let round = self.current_mut()?;
        match round.results.iter_mut().find(|before| before.name == result.name) {
            Some(before) => {
                result.runs = before.runs.saturating_add(1);
                result.failures = before.failures.saturating_add(u32::from(!result.passed()));
                *before = result;
            }
            None => round.results.push(result),
        }
        let counts = round.results.last().and_then(|last| Some((last.name.clone(), last.tests?)));
        if let (Some((name, tests)), Some(Stage::Claim)) = (counts, stage) {
            self.first.entry(name).or_insert(tests);
        }
        Some(self.next(config))
    }

    /// Takes a second opinion, if one is asked for.
    pub fn on_opinion(&mut self, config: &Config, opinion: &Opinion) -> Option<Step> {
        let round = self.asks(config).then(|| self.current_mut()).flatten()?;
        round.opinion = Some(opinion.clone());
        Some(self.next(config))
    }

    /// A human takes the claim as it is.
    pub fn accept(&mut self, by: &str) {
        if let Some(verdict) = self.round.as_mut().and_then(|round| round.verdict.as_mut()) {
            verdict.acceptance = Acceptance::Accepted;
            verdict.accepted_by = Some(by.to_owned());
        }
    }

    /// A human does not take the claim as it is.
    pub fn decline(&mut self) {
        if let Some(verdict) = self.round.as_mut().and_then(|round| round.verdict.as_mut()) {
            verdict.acceptance = Acceptance::Refused;
        }
        // Its tests are no measure for the next claim: what was added may have to go.
        self.first.clear();
    }

    /// What became of the last claim.
    pub fn verdict(&self) -> Option<&Verdict> {
        self.round.as_ref()?.verdict.as_ref()
    }

    /// What a human was asked about in the last claim, as clauses.
    pub fn asked_about(&self) -> String {
        let asked = self.verdict().into_iter().flat_map(|it| it.weighing(Weight::Asks));
        asked.map(|it| &*it.what).collect::<Vec<_>>().join("; ")
    }

    /// What the agent reads about its last claim, which does not hold.
    pub fn feedback(&self, config: &Config) -> String {
        match self.round.as_ref().and_then(|round| Some((round, round.verdict.as_ref()?))) {
            Some((round, verdict)) => words::feedback(config, round, verdict),
            None => String::new(),
        }
    }

    fn current_mut(&mut self) -> Option<&mut Round> {
        match self.stage? {
            Stage::Start => self.start.as_mut(),
            Stage::Claim => self.round.as_mut(),
        }
    }

    /// The check that runs now, and the how manieth time.
    fn wanted(&self, config: &Config) -> Option<(String, u32)> {
        let round = self.current()?;
        round.inspection.as_ref()?;
        let repeat = match round.stage {
            Stage::Start => 0,
            Stage::Claim => config.repeat,
        };
        let failed = round.results.last().filter(|last| {
            !matches!(last.status, CheckStatus::Passed | CheckStatus::NotRun) && last.runs <= repeat
        });
        if let Some(failed) = failed {
            return Some((failed.name.clone(), failed.runs + 1));
        }
        let ready = |check: &&Check| {
            round.result(&check.name).is_none()
                && check.needs.iter().all(|need| round.result(need).is_some())
        };
        config.checks.iter().find(ready).map(|check| (check.name.clone(), 1))
    }

    /// Says what comes next, and closes the round when nothing does.
    fn next(&mut self, config: &Config) -> Step {
        let Some(round) = self.current() else { return Step::Judged(Verdict::nothing()) };
        let (stage, claim) = (round.stage, &round.claim);
        if stage == Stage::Claim && config.clean && !claim.is_committed() {
            return self.close(config);
        }
        if round.inspection.is_none() {
            let commit = claim.commit.clone().filter(|_| config.clean);
            return Step::Inspect { stage, commit, keep: round.pins_only };
        }
        let refused = self.judged(config).is_some_and(|it| it.acceptance == Acceptance::Refused);
        let runs = match stage {
            Stage::Start => config.runs_at_start() && !round.pins_only,
            // A claim that is refused by its files needs no check.
            Stage::Claim => !(refused && round.results.is_empty()),
        };
        if !runs {
            return self.close(config);
        }
        while let Some((name, attempt)) = self.wanted(config) {
            let Some(check) = config.check_named(&name).cloned() else { break };
            let missing = self.missing(&check);
            if missing.is_empty() {
                return Step::Run { check, attempt };
            }
            let result = CheckResult {
                missing,
                ..CheckResult::new(&check.name, &check.command, CheckStatus::NotRun)
            };
            if let Some(round) = self.current_mut() {
                round.results.push(result);
            }
        }
        if self.asks(config) { Step::Ask } else { self.close(config) }
    }

    /// Whether a second opinion is asked for now: about a claim that nothing refuses.
    fn asks(&self, config: &Config) -> bool {
        let Some(round) = self.current() else { return false };
        let wanted = config.judge.is_some() && round.stage == Stage::Claim;
        let ready = round.inspection.is_some() && round.opinion.is_none();
        let stands = || self.judged(config).is_some_and(|it| it.acceptance != Acceptance::Refused);
        wanted && ready && self.wanted(config).is_none() && stands()
    }

    /// The checks that a check needs and that did not pass.
    fn missing(&self, check: &Check) -> Vec<String> {
        let passed = |need: &&String| {
            self.current().and_then(|round| round.result(need)).is_some_and(CheckResult::passed)
        };
        check.needs.iter().filter(|need| !passed(need)).cloned().collect()
    }

    fn judged(&self, config: &Config) -> Option<Verdict> {
        Some(judge(config, self.current()?, self.start.as_ref(), &self.first))
    }

    fn close(&mut self, config: &Config) -> Step {
        let verdict = self.judged(config).unwrap_or_else(Verdict::nothing);
        if let Some(round) = self.current_mut() {
            round.verdict = Some(verdict.clone());
        }
        self.stage = None;
        Step::Judged(verdict)
    }

    /// Whether the checks passed before the work started, although one should have failed.
    pub fn proves_nothing(&self, config: &Config) -> bool {
        config.red_first != RedFirst::Off && self.start.as_ref().is_some_and(Round::all_passed)
    }
}
