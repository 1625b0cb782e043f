//! Corpora, generators and fakes for the tests.

pub mod accuracy;
pub mod corpus;
