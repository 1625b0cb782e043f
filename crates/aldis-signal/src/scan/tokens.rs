//! Run tokens: whether what was said with a signal is what was told to the agent.

use super::Token;
use super::engine::Engine;

impl Engine<'_> {
    pub(crate) fn token_fits(&self, said: Option<&str>) -> bool {
        match (&self.token, said) {
            (Token::Off, _) | (Token::Accept(_), None) => true,
            (Token::Accept(expected) | Token::Require(expected), Some(said)) => expected == said,
            (Token::Require(_), None) => false,
        }
    }

    pub(crate) fn has_token(&self) -> bool {
        self.token != Token::Off
    }

    pub(crate) fn is_trusted(&self, said: Option<&str>) -> bool {
        match &self.token {
            Token::Off => false,
            Token::Accept(expected) | Token::Require(expected) => said == Some(expected),
        }
    }
}
