//! What the last lines of a transcript say beside their text.

use aldis_signal::time::Timestamp;
use aldis_transcript::events::{ToolAnswer, is_own_tool};
use aldis_transcript::{LineSummary, Mark};

/// Folded over lines in order.
#[derive(Debug, Default)]
pub(super) struct Facts {
    /// The agent used a tool.
    pub(super) tools_ran: bool,
    /// When the last prompt came.
    pub(super) turn_began: Option<Timestamp>,
    /// The agent spoke last.
    pub(super) answered: bool,
    /// The answers to calls of our tools.
    pub(super) answers: Vec<ToolAnswer>,
    /// The calls of our tools.
    own_calls: Vec<String>,
    /// The calls of shells that run `aldis signal` and nothing else.
    reports: Vec<String>,
    /// The call that asks the user something and has no answer.
    asking: Option<String>,
}

impl Facts {
    /// Takes in one line.
    pub(super) fn add(&mut self, line: &LineSummary) {
        for mark in &line.marks {
            self.answered = *mark == Mark::Text;
            match mark {
                Mark::Text => {}
                Mark::Prompt => {
                    self.turn_began = line.at;
                    self.asking = None;
                }
                Mark::Notice => self.asking = None,
                Mark::Call { id, name, reports } => {
                    self.tools_ran = true;
                    if *reports && !id.is_empty() {
                        self.reports.push(id.clone());
                    }
                    if is_own_tool(name) {
                        self.own_calls.push(id.clone());
                    }
                    if asks_user(name) {
                        self.asking = Some(id.clone());
                    }
                }
                Mark::Result { id, ids, receipt } => {
                    self.tools_ran = true;
                    let (is_own, reports) =
                        (self.own_calls.contains(id), self.reports.contains(id));
                    let receipt = receipt.clone().filter(|_| reports && !is_own);
                    if is_own || receipt.is_some() {
                        let ids = if is_own { ids.clone() } else { Vec::new() };
                        let call_id = id.clone();
                        self.answers.push(ToolAnswer { call_id, receipt, ids, sidechain: false });
                    }
                    let same = |asking: &mut String| asking == id || id.is_empty();
                    self.asking.take_if(same);
                }
            }
        }
    }

    /// Returns whether the agent asked the user something and waits for the answer.
    pub(super) fn asked_user(&self) -> bool {
        self.asking.is_some()
    }
}

/// The tools by which agents ask.
fn asks_user(name: &str) -> bool {
    let plain: String = name.chars().filter(char::is_ascii_alphanumeric).collect();
    let plain = plain.to_ascii_lowercase();
    [
        "askuserquestion",
        "askuser",
        "askquestion",
        "exitplanmode",
        "exitspecmode",
        "requestuserinput",
    ]
    .contains(&&*plain)
}
