#!/bin/sh
# Claude Code as an agent: what `--host claude-code` starts in the first iteration, to change as you need.
# The prompt comes on standard input.
#   aldis run "Make the tests pass" -- examples/agents/claude-code.sh
set -eu
exec claude -p --output-format stream-json --verbose --permission-mode acceptEdits "$@"
