//! Corpora, generators and fakes for the tests.

pub mod accuracy;
#[cfg(target_os = "linux")]
pub mod chaos;
pub mod corpus;
pub mod history;
pub mod model_server;
#[cfg(target_os = "linux")]
pub mod postgres;
pub mod real_host;
pub mod scale;
pub mod scripted;
pub mod sim;
