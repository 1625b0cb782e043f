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
        let spent = &mut self.run.spent;
        spent.tokens = spent.tokens.saturating_add(usage.tokens);
        spent.micro_dollars = spent.micro_dollars.saturating_add(usage.micro_dollars);
        if self.run.ending.is_some() || self.run.budget_warned {
            return;
        }
        let DeliveryRun { config, spent, .. } = &self.run;
        let near = |used: u64, most: Option<u64>| {
            most.filter(|most| used.saturating_mul(3) >= most.saturating_mul(2))
        };
        let tokens = near(spent.tokens, config.max_tokens)
            .map(|most| format!("{} of {most} tokens are used", spent.tokens));
        let cost = near(spent.micro_dollars, config.max_micro_dollars)
            .map(|most| format!("{} of {} are spent", dollars(spent.micro_dollars), dollars(most)));
        if let Some(used) = tokens.or(cost) {
            self.run.budget_warned = true;
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
        let DeliveryRun { spent, config, .. } = &self.run;
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
    let over = |used: u64, most: Option<u64>| most.is_some_and(|most| used >= most);
    if over(run.spent.tokens, config.max_tokens) {
        Some(BudgetLimit::Tokens)
    } else if over(run.spent.micro_dollars, config.max_micro_dollars) {
        Some(BudgetLimit::Cost)
    } else if over(worked / 1_000, config.max_time) {
        Some(BudgetLimit::Time)
    } else {
        None
    }
}
