"""Scenarios that reach as much of every machine as possible, played with a release's own binary."""
