//! What to tell an agent so that it speaks a dialect.
