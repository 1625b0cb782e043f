//! What a delivery may cost, and how long it may take.

use super::config::Config;
use super::event::{Notice, Severity};
use super::run::{DeliveryRun, Ending};
use super::state::{State, StepOutput, decision};
use crate::run::Usage;

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

/// Something was spent.
pub(super) fn spent(state: &mut State, out: &mut StepOutput, usage: Usage) {
    if usage == Usage::default() {
        return;
    }
    let spent = &mut state.run.spent;
    spent.tokens = spent.tokens.saturating_add(usage.tokens);
    spent.micro_dollars = spent.micro_dollars.saturating_add(usage.micro_dollars);
    if state.run.ending.is_some() || state.run.budget_warned {
        return;
    }
    let DeliveryRun { config, spent, .. } = &state.run;
    let near = |used: u64, most: Option<u64>| {
        most.is_some_and(|most| used.saturating_mul(3) >= most.saturating_mul(2))
    };
    if near(spent.tokens, config.max_tokens) || near(spent.micro_dollars, config.max_micro_dollars)
    {
        state.run.budget_warned = true;
        let text = "two thirds of the budget are used";
        out.notice((Notice::BudgetSoon, Severity::Warning), None, text);
        out.decided(None, decision("budget", "Warned of the budget").because(text));
    }
}

/// Ends the delivery when a limit is reached. What is complete by then is complete: the last verdict
/// counts before its price.
pub(super) fn heed(state: &mut State, out: &mut StepOutput) {
    if state.index.complete() == state.tasks.len() {
        return;
    }
    let Some(limit) = reached(&state.run, &state.run.config, out.worked) else { return };
    let DeliveryRun { spent, .. } = &state.run;
    let (because, option) = match limit {
        BudgetLimit::Tokens => (format!("{} tokens are used", spent.tokens), "--max-tokens N"),
        BudgetLimit::Cost => {
            let cents = spent.micro_dollars / 10_000;
            (format!("${}.{:02} are spent", cents / 100, cents % 100), "--max-cost DOLLARS")
        }
        BudgetLimit::Time => {
            (format!("agents worked {} s", out.worked / 1_000), "--total-timeout TIME")
        }
    };
    let ending = limit.ending();
    let decision = decision("used-up", format!("Ended the delivery: {}", ending.as_str()))
        .because(because)
        .next(format!("go on with a higher limit: `aldis deliver --continue {option}`"));
    out.decided(None, decision);
    state.end(out, ending);
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
