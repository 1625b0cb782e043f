//! What keys mean while an answer is typed.

use aldis_machine::HumanCommand;
use ratatui::crossterm::event::KeyCode;

use super::{Model, Order, Over};
use crate::tui::scene::Asks;

/// The longest answer that can be typed.
pub(super) const ANSWER_MAX: usize = 4_000;

impl Model {
    /// A key while an answer is typed.
    pub(super) fn typed(&mut self, key: KeyCode, asks: Asks, mut text: String) -> Option<Order> {
        match key {
            KeyCode::Esc => return None,
            KeyCode::Enter if !text.trim().is_empty() => {
                let command =
                    HumanCommand::Answer { id: asks.question.id, text: text.trim().to_owned() };
                return Some(Order::Command { run: asks.run, command });
            }
            KeyCode::Char(letter) if text.chars().count() < ANSWER_MAX => text.push(letter),
            KeyCode::Backspace => drop(text.pop()),
            KeyCode::Tab => text = next_option(&asks.question.options, &text).to_owned(),
            _ => {}
        }
        self.over = Some(Over::Answer { asks, text });
        None
    }
}

/// The option after the one that is typed; what is typed if there is none.
fn next_option<'o>(options: &'o [String], typed: &'o str) -> &'o str {
    let at = options.iter().position(|option| option == typed).map_or(0, |at| at + 1);
    options.get(at).or_else(|| options.first()).map_or(typed, |option| option)
}
