//! The parse-level part of every case in `conformance/cases.jsonl`.

use super::*;
