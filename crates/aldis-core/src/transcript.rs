//! Transcripts: hosts' files and streams as messages.
