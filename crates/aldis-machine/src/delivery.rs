//! The delivery loop: developer, critic and auditor, until every task of a plan is complete.
//!
//! The machine gets what agents reported and how they ended, and decides which agents to start with
//! which prompt. A task is complete when an auditor passes what a critic passed before, and in no other
//! way: who reported something decides, not only what was reported.
//!
//! Whoever drives it keeps to five rules:
//!
//! * Decide, store, then act: [`State::on_event`] changes the state and returns an [`Outcome`]; store
//!   [`State::run`] and the tasks that [`State::take_changed`] returns before performing its effects.
//! * Start an agent for every [`Effect::Dispatch`] that [`State::agent`] still knows, read its final
//!   message with [`AgentReply::read`], and pass it on as [`Event::Finished`].
//! * Send [`Event::Tick`] when [`Machine::next_wake`](crate::Machine::next_wake) is due. Too many ticks
//!   do no harm.
//! * Report what an agent does and costs while it works: [`Event::Active`], [`Event::Worked`],
//!   [`Event::Waiting`], [`Event::Spent`]. Without these, limits that depend on them are never reached.
//! * After a crash send [`Event::Recovered`]: agents that were at work are started again under new
//!   numbers, and whatever the old ones still report is late. Merges and checks are asked for again, and
//!   so are the open questions.
//!
//! ```
//! use aldis_machine::delivery::{
//!     AgentReply, Config, Effect, Ending, Event, Plan, Role, Start, State, TaskSpec,
//! };
//! use aldis_signal::{Rules, time::Timestamp};
//!
//! let acceptance = vec!["quotes are escaped".to_owned()];
//! let csv = TaskSpec { id: "csv".to_owned(), acceptance, ..TaskSpec::default() };
//! let plan = Plan { title: "Billing export".to_owned(), tasks: vec![csv] };
//! let now = Timestamp::from_millis(0);
//! let mut state = State::start(now, Start { plan, config: Config::default(), token: None });
//!
//! // Agents that always report success.
//! let mut roles = Vec::new();
//! let mut outcome = state.on_event(now, &Event::Begin);
//! while let Some(Effect::Dispatch(dispatch)) =
//!     outcome.effects.iter().find(|effect| matches!(effect, Effect::Dispatch(_)))
//! {
//!     let text = match dispatch.role {
//!         Role::Developer => "READY_FOR_REVIEW: csv",
//!         Role::Critic => "REVIEW_PASSED: csv",
//!         _ => "AUDIT_PASSED: csv",
//!     };
//!     roles.push(dispatch.role);
//!     let agent = dispatch.agent;
//!     let reply = AgentReply::read(Rules::builtin(), &state.expected_token(agent), text);
//!     outcome = state.on_event(now, &Event::Finished { agent, exit: None, reply });
//! }
//! assert_eq!(roles, [Role::Developer, Role::Critic, Role::Auditor]);
//! assert_eq!(state.ending(), Some(Ending::Complete));
//! ```

mod budget;
mod checks;
mod config;
mod contract;
mod event;
mod expert;
mod failures;
mod human;
mod index;
mod judge;
mod ledger;
mod liveness;
mod locks;
mod matrix;
mod plan;
mod prompts;
mod remediation;
mod reply;
mod rule;
mod run;
mod schedule;
mod signal;
mod state;
mod task;
mod unfinished;
mod workers;
mod workflow;

#[cfg(test)]
mod tests;

pub use super::limits::ConfigError;
pub use budget::BudgetLimit;
pub use config::{Config, Timeouts};
pub use event::{AgentRequest, Dispatch, Effect, Event, Notice, Severity};
pub use ledger::{FindingStatus, Ledger, ReviewFinding};
pub use plan::{Plan, PlanProblem, Priority, TaskSpec};
pub use reply::{AgentReply, ReportedSignal};
pub use rule::{Rule, rule_of_0_1_0};
pub use run::{
    CheckpointRequest, Consultation, DeliveryRun, DeliverySpending, Ending, ExpertCandidate,
    Experts, Question, QuestionSubject, Remediation, Stage, Work, WorkerClaim, WorkingAgent,
};
pub use signal::{DIALECT, Role, SignalKind};
pub use state::{Outcome, Start, State};
pub use task::{Counters, Expansion, PromptNote, Status, Task, Wait};
