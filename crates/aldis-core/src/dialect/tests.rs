//! Tests of loading dialects.
