//! What a delivery may cost, and how long it may take.

use super::config::Config;
use super::event::{Notice, Severity};
use super::rule::Rule;
use super::run::{DeliveryRun, Ending};
use super::state::State;
use crate::run::Usage;
use crate::words::{dollars, duration};

/// A limit of a whole delivery.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BudgetLimit {
    /// Of tokens.
    Tokens,
    /// Of money.
    Cost,
    /// Of time.
    Time,
}

impl BudgetLimit {
    /// Returns how a delivery ends that reaches it.
    pub fn ending(self) -> Ending {
        match self {
            Self::Tokens | Self::Cost => Ending::OverBudget,
            Self::Time => Ending::TimedOut,
        }
    }
}

impl State {
    /// Something was spent.
    pub(super) fn add_spending(&mut self, usage: Usage) {
        if usage == Usage::default() {
            return;
        }
        self.run.spending.spent = self.run.spending.spent.plus(usage);
        if self.run.ending.is_some() || self.run.spending.budget_warned {
            return;
        }
        let (config, spent) = (&self.run.config, &self.run.spending.spent);
        let [tokens, cost] = spent.reaches(2, config.max_tokens, config.max_micro_dollars);
        let tokens = config.max_tokens.filter(|_| tokens);
        let tokens = tokens.map(|most| format!("{} of {most} tokens are used", spent.tokens));
        let cost = config.max_micro_dollars.filter(|_| cost);
        let cost = cost
            .map(|most| format!("{} of {} are spent", dollars(spent.micro_dollars), dollars(most)));
        if let Some(used) = tokens.or(cost) {
            self.run.spending.budget_warned = true;
            let text = format!("{}: {used}.", self.run.title);
            self.notice((Notice::BudgetSoon, Severity::Warning), None, text);
            self.decide(None, Rule::BudgetWarning, "Warned: the budget is nearly used")
                .because(used)
                .next("the delivery ends at the limit and can then be continued with a higher one");
        }
    }

    /// Ends the delivery when a limit is reached. What is complete by then is complete: the last verdict
    /// counts before its price.
    pub(super) fn end_if_used_up(&mut self) {
        if self.index.complete() == self.tasks.len() {
            return;
        }
        let Some(limit) = reached(&self.run, &self.run.config, self.out.worked) else { return };
        let (config, spent) = (&self.run.config, &self.run.spending.spent);
        let (rule, used, option) = match limit {
            BudgetLimit::Tokens => {
                let used = format!("{} tokens are used", spent.tokens);
                (Rule::BudgetUsedUp, used, "--max-tokens N")
            }
            BudgetLimit::Cost => {
                let used = format!("{} are spent", dollars(spent.micro_dollars));
                (Rule::BudgetUsedUp, used, "--max-cost DOLLARS")
            }
            BudgetLimit::Time => {
                let most = config.max_time.unwrap_or_default();
                let used = format!("agents have worked for {}, the limit", duration(most));
                (Rule::TimeUsedUp, used, "--total-timeout TIME")
            }
        };
        let ending = limit.ending();
        let summary = match ending {
            Ending::TimedOut => "Ended the delivery: its time is used up",
            _ => "Ended the delivery: its budget is used up",
        };
        let (unfinished, evidence) = self.unfinished();
        self.decide(None, rule, summary)
            .because(format!("{used}; {unfinished}"))
            .seen(evidence)
            .next(format!("continue with a higher limit: aldis deliver --continue {option}"));
        self.end(ending);
    }
}

/// The first limit that is reached.
pub(super) fn reached(run: &DeliveryRun, config: &Config, worked: u64) -> Option<BudgetLimit> {
    match run.spending.spent.reaches(3, config.max_tokens, config.max_micro_dollars) {
        [true, _] => Some(BudgetLimit::Tokens),
        [_, true] => Some(BudgetLimit::Cost),
        _ => {
            let out_of_time = config.max_time.is_some_and(|most| worked / 1_000 >= most);
            out_of_time.then_some(BudgetLimit::Time)
        }
    }
}
