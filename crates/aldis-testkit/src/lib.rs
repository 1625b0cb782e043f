//! Corpora, generators and fakes for the tests.
