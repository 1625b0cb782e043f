//! The literal regexes of the seed documents.
