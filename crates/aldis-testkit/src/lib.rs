//! Corpora, generators and fakes for the tests.

pub mod accuracy;
pub mod corpus;
pub mod model_server;
pub mod real_host;
pub mod scripted;
pub mod sim;
