//! Run tokens: whether what was said with a signal is what was told to the agent.

use super::Token;
use super::engine::Engine;
use crate::signal::Via;

impl Engine<'_> {
    pub(crate) fn token_fits(&self, said: Option<&str>) -> bool {
        match (&self.options.token, said) {
            (Token::Off, _) | (Token::Accept(_), None) => true,
            (Token::Accept(expected) | Token::Require(expected), Some(said)) => expected == said,
            (Token::Require(_), None) => false,
        }
    }

    pub(crate) fn has_token(&self) -> bool {
        self.options.token != Token::Off
    }

    /// Returns how a signal came that was written with this token, or without one.
    pub(crate) fn via(&self, written: Option<&str>) -> Via {
        match &self.options.token {
            Token::Accept(expected) | Token::Require(expected) if written == Some(expected) => {
                Via::Token
            }
            Token::Accept(_) | Token::Off | Token::Require(_) => Via::Said,
        }
    }
}
